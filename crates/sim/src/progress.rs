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
    /// The longest that a timer has found a queue pair's own pace to hold it back.
    pub(crate) longest_gap: Time,
}

/// A run is patient for so many gaps between packets of the queue pair that has the longest.
const GAPS: u64 = 4;

impl Progress {
    pub(crate) const START: Progress =
        Progress { last: Time::ZERO, awaited: Time::ZERO, longest_gap: Time::ZERO };

    /// Some message is nearer to its end.
    #[inline(always)]
    pub(crate) fn make(&mut self, now: Time) {
        // Logical processes take turns: what is told last may have been first.
        self.last = self.last.max(now);
    }
    /// A timer found a queue pair that waits; its own pace holds it back for `gap`.
    pub(crate) fn wait(&mut self, now: Time, gap: Time) {
        self.awaited = self.awaited.max(now);
        self.longest_gap = self.longest_gap.max(gap);
    }
    /// That of several partitions together.
    pub(crate) fn of_all(all: impl Iterator<Item = Progress>) -> Progress {
        let both = |one: Progress, other: Progress| Progress {
            last: one.last.max(other.last),
            awaited: one.awaited.max(other.awaited),
            longest_gap: one.longest_gap.max(other.longest_gap),
        };
        all.fold(Progress::START, both)
    }
    /// For how long queue pairs have waited without any progress.
    pub(crate) fn silence(&self) -> Time {
        self.last.until(self.awaited)
    }
    /// How long that may be: `usual`, and longer where packets leave that far apart.
    pub(crate) fn patience(&self, usual: Time) -> Time {
        usual.max(Time(self.longest_gap.0.saturating_mul(GAPS)))
    }
}
