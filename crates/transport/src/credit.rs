//! Who gets the next credit of a receiving NIC (RCCC's other half).
//!
//! Queue pairs that want more than they got take turns, a grant each. Only when nobody does, those that
//! are satisfied get some ahead of demand, so that their next packets need not wait for a round trip.
//! A grant keeps the NIC from the next one for as long as what it allows takes on the link.

use std::collections::VecDeque;
use weft_units::{Rate, Time};

/// Bytes in which credit is counted.
pub const QUANTUM: u32 = 256;
/// The link is shared out a little short of what it carries.
const SHARE: f64 = 0.99;
/// Quanta that a pull which grants nothing is as long as.
const EMPTY: u32 = 4;

/// How many quanta `bytes` are, rounded up.
pub(crate) fn quanta(bytes: u64) -> u32 {
    bytes.div_ceil(u64::from(QUANTUM)) as u32
}

/// A connection, as its receiver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Puller<C> {
    connection: C,
    /// All that it was granted, in quanta; wraps.
    granted: u32,
    /// All that it is known to want.
    target: u32,
}

/// The credit of one NIC, granted to connections named `C`.
#[derive(Clone, Debug)]
pub struct Granter<C> {
    /// Want more than they got; the next one first.
    active: VecDeque<Puller<C>>,
    /// Got what they wanted.
    idle: VecDeque<Puller<C>>,
    /// Quanta of a grant.
    grant: u32,
    /// Quanta that an idle one may have ahead.
    ahead: u32,
    /// Picoseconds of a quantum.
    time: f64,
}

/// What a NIC sends: all that a connection was granted, and when the next may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull<C> {
    /// To whom.
    pub connection: C,
    /// All that it was granted, in quanta; wraps.
    pub granted: u32,
    /// Until the next pull.
    pub gap: Time,
}

impl<C: Copy + PartialEq> Granter<C> {
    /// Of a NIC whose ports together have this `rate`, for packets of `payload` bytes, four of which
    /// are a grant; `window`: the most credit of a connection, in bytes.
    pub fn new(rate: Rate, payload: u32, window: u64) -> Granter<C> {
        Granter {
            active: VecDeque::new(),
            idle: VecDeque::new(),
            grant: (4 * payload / QUANTUM).max(1),
            ahead: quanta(window),
            time: f64::from(8 * QUANTUM) * 1e12 / rate.as_bps() as f64 / SHARE,
        }
    }
    /// Whether somebody might get something.
    pub fn has_work(&self) -> bool {
        let could = |puller: &Puller<C>| self.could_have_more(puller);
        !self.active.is_empty() || self.idle.iter().any(could)
    }
    fn could_have_more(&self, puller: &Puller<C>) -> bool {
        (puller.granted.wrapping_sub(puller.target) as i32) < self.ahead as i32
    }
    /// `connection` says that it could use so many quanta in all.
    pub fn want(&mut self, connection: C, target: u32) {
        let is_it = |puller: &Puller<C>| puller.connection == connection;
        let newer = |old: u32| if target.wrapping_sub(old) as i32 > 0 { target } else { old };
        if let Some(puller) = self.active.iter_mut().find(|puller| is_it(puller)) {
            puller.target = newer(puller.target);
            return;
        }
        let known = self.idle.iter().position(is_it).and_then(|at| self.idle.remove(at));
        let mut puller = known.unwrap_or(Puller { connection, granted: 0, target: 0 });
        puller.target = newer(puller.target);
        self.line_up(puller);
    }
    fn line_up(&mut self, puller: Puller<C>) {
        match puller.target.wrapping_sub(puller.granted) as i32 > 0 {
            true => self.active.push_back(puller),
            false => self.idle.push_back(puller),
        }
    }
    /// All that `connection` was granted, in quanta, for one that may have missed it.
    pub fn granted(&self, connection: C) -> Option<u32> {
        let mut all = self.active.iter().chain(&self.idle);
        all.find(|puller| puller.connection == connection).map(|puller| puller.granted)
    }
    /// `connection` is over.
    pub fn forget(&mut self, connection: C) {
        self.active.retain(|puller| puller.connection != connection);
        self.idle.retain(|puller| puller.connection != connection);
    }
    /// The next pull.
    pub fn pull(&mut self) -> Option<Pull<C>> {
        let (mut puller, quanta) = match self.active.pop_front() {
            Some(puller) => (puller, puller.target.wrapping_sub(puller.granted).min(self.grant)),
            None => {
                let at = self.idle.iter().position(|puller| self.could_have_more(puller))?;
                (self.idle.remove(at)?, self.grant)
            }
        };
        puller.granted = puller.granted.wrapping_add(quanta);
        let gap = Time((f64::from(quanta.max(EMPTY)) * self.time) as u64);
        let pull = Pull { connection: puller.connection, granted: puller.granted, gap };
        self.line_up(puller);
        Some(pull)
    }
}
