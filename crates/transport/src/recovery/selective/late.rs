//! What a sender needs to know of packets that have timed out, or were reported lost.

use std::collections::{BTreeMap, BTreeSet};
use weft_units::Time;

/// Packets that have been lost, until they are acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    /// All below have timed out once, or have been acknowledged.
    pub(super) below: u32,
    /// Taken for lost and not yet sent again.
    pub(super) lost: BTreeSet<u32>,
    /// Sent again and not yet acknowledged: when.
    resent: BTreeMap<u32, Time>,
    /// The same in the order of these times.
    queue: BTreeSet<(Time, u32)>,
}

impl Late {
    /// Nothing is lost, nothing resent is out, and all that timed out is below `acked`.
    pub(super) fn is_over(&self, acked: u32) -> bool {
        self.lost.is_empty() && self.resent.is_empty() && self.below <= acked
    }
    /// Whether `seq` has been lost and is not acknowledged.
    pub(super) fn knows(&self, seq: u32) -> bool {
        self.lost.contains(&seq) || self.resent.contains_key(&seq)
    }
    /// Takes the first lost packet, to be sent again now.
    pub(super) fn resend(&mut self, now: Time) -> Option<u32> {
        let seq = self.lost.pop_first()?;
        self.resent.insert(seq, now);
        self.queue.insert((now, seq));
        Some(seq)
    }
    /// When the resent packet that is out longest was sent.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.queue.first().map(|(time, _)| *time)
    }
    /// A resent packet is lost again; false if `seq` is none.
    pub(super) fn lose_again(&mut self, seq: u32) -> bool {
        let is_out = self.forget(seq);
        if is_out {
            self.lost.insert(seq);
        }
        is_out
    }
    /// Takes for lost what was resent and `is_due`; returns how many packets those were.
    pub(super) fn expire(&mut self, is_due: impl Fn(Time) -> bool) -> u32 {
        let mut expired = 0;
        while let Some((time, seq)) = self.queue.first().copied()
            && is_due(time)
        {
            self.lose_again(seq);
            expired += 1;
        }
        expired
    }
    /// `seq` and all below `acked` are acknowledged; returns how many of them were lost.
    pub(super) fn acknowledge(&mut self, seq: u32, acked: u32) -> u32 {
        let mut found = u32::from(self.lost.remove(&seq));
        while self.lost.first().is_some_and(|first| *first < acked) {
            self.lost.pop_first();
            found += 1;
        }
        self.forget(seq);
        while let Some((first, _)) = self.resent.first_key_value()
            && *first < acked
        {
            self.forget(*first);
        }
        found
    }
    /// `seq` is out no more; false if it was not.
    fn forget(&mut self, seq: u32) -> bool {
        let time = self.resent.remove(&seq);
        time.is_some_and(|time| self.queue.remove(&(time, seq)))
    }
}
