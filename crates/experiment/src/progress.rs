//! How much there is to do in a run, and how far it is: for another thread to look at.

use crate::clock::Moment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weft_sim::Work;

/// A run as others see it. Nothing is known until its simulation begins.
#[derive(Debug, Default)]
pub struct Progress(OnceLock<Begun>);

#[derive(Debug)]
struct Begun {
    work: Work,
    bytes: u64,
    accepted: Arc<AtomicU64>,
    at: Moment,
    /// Seconds and share when data packets were first seen to arrive.
    first: OnceLock<(f64, f64)>,
}

/// What is known of a run under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Packet-hops that the run takes at least.
    pub hops: u64,
    /// The share of data packets that have arrived, from 0 to 1.
    pub share: f64,
    /// Payload of all messages, in bytes.
    pub bytes: u64,
    /// Seconds since the simulation began.
    pub seconds: f64,
    /// Seconds and share as of the first look that found a packet: jobs may compute for long before
    /// they send. Zero before that.
    pub first: (f64, f64),
}

impl Progress {
    /// The simulation of so much `work`, of so many `bytes` of payload, begins; `accepted` counts its packets.
    pub(crate) fn begin(&self, work: Work, bytes: u64, accepted: Arc<AtomicU64>) {
        let at = Moment::now();
        let _ = self.0.set(Begun { work, bytes, accepted, at, first: OnceLock::new() });
    }
    /// How it stands; none before it has begun.
    pub fn state(&self) -> Option<State> {
        let Begun { work, bytes, accepted, at, first } = self.0.get()?;
        let done = accepted.load(Ordering::Relaxed).min(work.packets);
        let share = done as f64 / work.packets.max(1) as f64;
        let seconds = at.seconds_until(Moment::now());
        let first = match share > 0.0 {
            true => *first.get_or_init(|| (seconds, share)),
            false => (0.0, 0.0),
        };
        Some(State { hops: work.hops, share, bytes: *bytes, seconds, first })
    }
}
