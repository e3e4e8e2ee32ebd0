//! What a sender needs to know of packets that have timed out.

use std::collections::{BTreeSet, VecDeque};
use weft_units::Time;

/// Packets that have timed out, until they are acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    /// All below have timed out once, or have been acknowledged.
    pub(super) below: u32,
    /// Taken for lost and not yet sent again.
    pub(super) lost: BTreeSet<u32>,
    /// Sent again, and when: in the order of these times. Some may be acknowledged.
    pub(super) resent: VecDeque<(Time, u32)>,
}

impl Late {
    /// Forgets that `seq` and all below `acked` are lost; returns how many were.
    pub(super) fn acknowledge(&mut self, seq: u32, acked: u32) -> u32 {
        let mut found = u32::from(self.lost.remove(&seq));
        while self.lost.first().is_some_and(|first| *first < acked) {
            self.lost.pop_first();
            found += 1;
        }
        found
    }
}
