//! Progress: a message was posted, or a receiver accepted a packet, so that some message is nearer
//! to its end.
//!
//! A run that makes none for too long has stalled. Each partition notes its own; whether all of them
//! together get on is looked at between epochs (`epochs::watch`).

use weft_units::Time;

/// What one partition notes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// When it last made any.
    pub(crate) last: Time,
    /// When a timer last found a queue pair that waits.
    pub(crate) awaited: Time,
}

impl Progress {
    pub(crate) const START: Progress = Progress { last: Time::ZERO, awaited: Time::ZERO };

    /// Some message is nearer to its end.
    #[inline(always)]
    pub(crate) fn make(&mut self, now: Time) {
        self.last = now;
    }
    /// A timer found a queue pair that waits.
    pub(crate) fn wait(&mut self, now: Time) {
        self.awaited = now;
    }
    /// That of several partitions together.
    pub(crate) fn of_all(all: impl Iterator<Item = Progress>) -> Progress {
        let both = |one: Progress, other: Progress| Progress {
            last: one.last.max(other.last),
            awaited: one.awaited.max(other.awaited),
        };
        all.fold(Progress::START, both)
    }
    /// For how long queue pairs have waited without any progress.
    pub(crate) fn silence(&self) -> Time {
        self.last.until(self.awaited)
    }
}
