//! What a scheme decides when a host posts messages: how to split them and how each part
//! finds its way.
//!
//! One [`Planner`] per host. The pieces of a message add up to it exactly, and under one seed
//! a piece starts out with the same delay under every scheme. Random positions in the NIC's
//! list of queue pairs are the NIC's work.

use crate::ethereal::Interceptor;
use crate::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Fabric, PathId};
use weft_units::{Draw, HostId, MessageId, Time};

/// A message that a host hands to its NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post {
    /// Which.
    pub message: MessageId,
    /// To whom.
    pub dst: HostId,
    /// Payload.
    pub bytes: u64,
}

/// How a packet finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Switches hash the flow's addresses and this entropy value (a UDP source port).
    Hashed(u16),
    /// Switches follow the path id.
    Pinned(PathId),
}

/// One part of a message, to be carried by a queue pair of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The message that it is a part of.
    pub message: MessageId,
    /// To whom.
    pub dst: HostId,
    /// Payload of this part. The parts of a message add up to its size.
    pub bytes: u64,
    /// Which part of its message: 0, 1, ...
    pub part: u32,
    /// How its packets start out; a steering scheme may change it packet by packet.
    pub route: Route,
    /// Leave this much later than now.
    pub delay: Time,
}

/// Why a flow asks for a new route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The receiver saw a gap.
    Nack,
    /// Nothing came back for a retransmission time-out.
    TimeOut,
}

/// What one host plans with. Posts go in, pieces come out, some at once and some when
/// [`Planner::deadline`] has come.
#[derive(Clone, Debug)]
pub enum Planner {
    /// Every message leaves at once and whole (all schemes but Ethereal).
    Whole(Whole),
    /// Batches, splits and pins.
    Ethereal(Box<Interceptor>),
}

impl Planner {
    /// The planner of `host`. All its randomness follows from `seed`.
    pub fn new(config: &BalanceConfig, host: HostId, seed: u64) -> Planner {
        let starts = Starts::new(config.start_jitter, seed);
        match config.scheme {
            SchemeConfig::Ethereal(ethereal) => {
                Planner::Ethereal(Box::new(Interceptor::new(ethereal, starts, host, seed)))
            }
            SchemeConfig::Ecmp
            | SchemeConfig::Spray
            | SchemeConfig::SprayCounter { .. }
            | SchemeConfig::Reps { .. }
            | SchemeConfig::RepsSticky { .. } => Planner::Whole(Whole::new(starts, seed)),
        }
    }

    /// Takes a message; appends to `out` what can leave at once.
    pub fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Piece>) {
        match self {
            Planner::Whole(whole) => out.push(whole.piece(post)),
            Planner::Ethereal(interceptor) => interceptor.post(now, post, fabric, out),
        }
    }

    /// When [`Planner::flush`] is due, if messages are waiting. It changes only in `post`
    /// and `flush`.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Planner::Whole(_) => None,
            Planner::Ethereal(interceptor) => interceptor.deadline(),
        }
    }

    /// Ends the batch: appends to `out` the pieces of every waiting message, in the order in
    /// which the messages were posted. Nothing if none waits.
    pub fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Piece>) {
        match self {
            Planner::Whole(_) => {}
            Planner::Ethereal(interceptor) => interceptor.flush(now, fabric, out),
        }
    }

    /// A flow to `dst` that takes `route` is in trouble. Its new route; `None`: the old one.
    pub fn trouble(
        &mut self,
        now: Time,
        dst: HostId,
        route: Route,
        trouble: Trouble,
        fabric: &Fabric,
    ) -> Option<Route> {
        match (self, route, trouble) {
            (Planner::Whole(_), ..) | (_, Route::Hashed(_), _) => None,
            // Algorithm 1 of paper 000 answers both alike.
            (
                Planner::Ethereal(interceptor),
                Route::Pinned(path),
                Trouble::Nack | Trouble::TimeOut,
            ) => interceptor.reroute(now, dst, path, fabric).map(Route::Pinned),
        }
    }
}

/// One piece a message, hashed under an entropy of its own.
#[derive(Clone, Debug)]
pub struct Whole {
    entropy: Draw,
    starts: Starts,
}

impl Whole {
    fn new(starts: Starts, seed: u64) -> Whole {
        Whole { entropy: Draw::new(seed, "entropy"), starts }
    }

    fn piece(&self, post: Post) -> Piece {
        let Post { message, dst, bytes } = post;
        let entropy = (self.entropy.at(u64::from(message.0), 0) >> 48) as u16;
        let (route, delay) = (Route::Hashed(entropy), self.starts.delay(message, 0));
        Piece { message, dst, bytes, part: 0, route, delay }
    }
}

/// The random start of every flow: a function of message and part, so that all schemes see
/// the same starts under one seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starts {
    draw: Draw,
    /// Every delay is below this; zero for none at all.
    jitter: Time,
}

impl Starts {
    pub(crate) fn new(jitter: Time, seed: u64) -> Starts {
        Starts { draw: Draw::new(seed, "start-jitter"), jitter }
    }

    pub(crate) fn delay(self, message: MessageId, part: u32) -> Time {
        let bits = self.draw.at(u64::from(message.0), u64::from(part));
        Time(((u128::from(bits) * u128::from(self.jitter.0)) >> 64) as u64)
    }
}
