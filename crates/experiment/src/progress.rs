//! How much there is to do in a run, and how far it is: for another thread to look at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use weft_sim::Work;

/// A run as others see it. Nothing is known until its simulation begins.
#[derive(Debug, Default)]
pub struct Progress(OnceLock<Begun>);

#[derive(Debug)]
struct Begun {
    work: Work,
    accepted: Arc<AtomicU64>,
    at: Instant,
}

/// What is known of a run under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Packet-hops that the run takes at least.
    pub hops: u64,
    /// The share of data packets that have arrived, from 0 to 1.
    pub share: f64,
    /// Seconds since the simulation began.
    pub seconds: f64,
}

impl Progress {
    /// The simulation of so much `work` begins; `accepted` counts its packets.
    pub(crate) fn begin(&self, work: Work, accepted: Arc<AtomicU64>) {
        let _ = self.0.set(Begun { work, accepted, at: Instant::now() });
    }
    /// How it stands; none before it has begun.
    pub fn state(&self) -> Option<State> {
        let Begun { work, accepted, at } = self.0.get()?;
        let done = accepted.load(Ordering::Relaxed).min(work.packets);
        let share = done as f64 / work.packets.max(1) as f64;
        Some(State { hops: work.hops, share, seconds: at.elapsed().as_secs_f64() })
    }
}
