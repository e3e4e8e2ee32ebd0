//! A message that somebody waits for.

use crate::memory::Segment;
use std::time::{Duration, Instant};

/// Since when something is under way, and how long it may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) since: Instant,
    pub(crate) limit: Duration,
}

impl Timer {
    /// How long it has been under way.
    pub(crate) fn age(self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
    /// Whether that is too long.
    pub(crate) fn is_late(self, now: Instant) -> bool {
        self.age(now) > self.limit
    }
}

/// A message that somebody waits for.
#[derive(Debug)]
pub(crate) struct Item<T> {
    pub(crate) segment: Segment,
    pub(crate) timer: Timer,
    pub(crate) ticket: T,
}

impl<T> Item<T> {
    /// Refuses a message of another length.
    pub(crate) fn expects(&self, bytes: usize) -> Result<(), String> {
        let due = self.segment.len;
        if bytes == due {
            return Ok(());
        }
        Err(format!("a message of {bytes} bytes where {due} were due"))
    }
}
