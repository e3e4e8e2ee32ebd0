//! Who gets the next credit of a receiving NIC (RCCC's other half).
//!
//! Queue pairs that want more than they got take turns, a grant each. Only when nobody does, those that
//! are satisfied get some ahead of demand, so that their next packets need not wait for a round trip.
//! A grant keeps the NIC from the next one for as long as what it allows takes on the link.
//!
//! A receiver knows its own link only. Where uplinks carry less than the hosts below them, and nobody else
//! looks after that, it grants at a share of its rate that follows what is marked and trimmed on the way
//! ([`UplinkShare`]).

use std::collections::VecDeque;
use weft_units::{Rate, Stream, Time};

/// Bytes in which credit is counted.
pub const QUANTUM: u32 = 256;
/// The link is shared out a little short of what it carries.
const SHARE: f64 = 0.99;
/// Quanta that a pull which grants nothing is as long as.
const EMPTY: u32 = 4;

/// How many quanta `bytes` are, rounded up.
fn quanta(bytes: u64) -> u32 {
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
    /// If uplinks may be short.
    uplinks: Option<UplinkShare>,
}

/// The share of a receiver's rate that the uplinks towards it have room for, by what came of the packets
/// granted before (UEC htsim, `oversubscribed_cc`). About every one and a half round trips: less for
/// trimmed packets and for many marks, else a little more, and twice as much each time while nothing is marked.
#[derive(Clone, Debug)]
pub struct UplinkShare {
    /// Of the rate, 0.01 to 1.
    share: f64,
    /// Moving average of the marked share.
    marked: f64,
    /// Times in a row that it was raised.
    raised: u32,
    /// Since it was last looked at: packets, those marked, those trimmed before the last hop.
    packets: u32,
    marks: u32,
    trims: u32,
    look_at: Time,
    round_trip: Time,
    chance: Stream,
}

impl UplinkShare {
    /// Of a NIC that draws from `chance`, over paths with such an unloaded `round_trip`.
    pub fn new(round_trip: Time, chance: Stream) -> UplinkShare {
        UplinkShare {
            share: 1.0,
            marked: 0.0,
            raised: 0,
            packets: 0,
            marks: 0,
            trims: 0,
            look_at: round_trip,
            round_trip,
            chance,
        }
    }
    /// The share now, between 0 and 1.
    pub fn share(&self) -> f64 {
        self.share
    }
    /// A packet came, `trimmed` before the last hop, or `marked`, or neither.
    pub fn note(&mut self, marked: bool, trimmed: bool) {
        self.packets += 1;
        self.trims += u32::from(trimmed);
        self.marks += u32::from(marked && !trimmed);
    }
    /// Looks at what came, if it is time.
    pub fn look(&mut self, now: Time) {
        if now < self.look_at {
            return;
        }
        let spread = 1.5 * (0.75 + 0.5 * self.chance.unit());
        self.look_at = now + Time((self.round_trip.0 as f64 * spread) as u64);
        if self.packets == 0 {
            return;
        }
        let [packets, marks, trims] = [self.packets, self.marks, self.trims].map(f64::from);
        let whole = (packets - trims).max(1.0);
        self.marked = 0.5 * self.marked + 0.5 * marks / whole;
        self.share -= trims / packets;
        let many = self.marked > MANY_MARKED;
        if many {
            self.share *= 1.0 - 0.5 * (self.marked - MANY_MARKED);
        }
        if self.trims == 0 && !many {
            let times = if self.marks == 0 {
                f64::from(1u32 << self.raised.min(MOST_DOUBLED))
            } else {
                1.0
            };
            self.share += LEAST_SHARE * times;
            self.raised += 1;
        } else {
            self.raised = 0;
        }
        self.share = self.share.clamp(LEAST_SHARE, 1.0);
        (self.packets, self.marks, self.trims) = (0, 0, 0);
    }
}

/// Marks are many from this share on.
const MANY_MARKED: f64 = 0.3;
/// The least share, and what is added to it.
const LEAST_SHARE: f64 = 0.01;
/// By then the share is one.
const MOST_DOUBLED: u32 = 7;

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
            uplinks: None,
        }
    }
    /// The same, for a NIC that minds its uplinks.
    pub fn minding(self, uplinks: UplinkShare) -> Granter<C> {
        Granter { uplinks: Some(uplinks), ..self }
    }
    /// As [`UplinkShare::note`].
    #[inline]
    pub fn note(&mut self, marked: bool, trimmed: bool) {
        if let Some(uplinks) = &mut self.uplinks {
            uplinks.note(marked, trimmed);
        }
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
    pub fn pull(&mut self, now: Time) -> Option<Pull<C>> {
        let share = self.uplinks.as_mut().map_or(1.0, |uplinks| {
            uplinks.look(now);
            uplinks.share()
        });
        let (mut puller, quanta) = match self.active.pop_front() {
            Some(puller) => (puller, puller.target.wrapping_sub(puller.granted).min(self.grant)),
            None => {
                let at = self.idle.iter().position(|puller| self.could_have_more(puller))?;
                (self.idle.remove(at)?, self.grant)
            }
        };
        puller.granted = puller.granted.wrapping_add(quanta);
        let gap = Time((f64::from(quanta.max(EMPTY)) * self.time / share) as u64);
        let pull = Pull { connection: puller.connection, granted: puller.granted, gap };
        self.line_up(puller);
        Some(pull)
    }
}
