//! Receivers that ask senders to let others go first: while a message comes for which a rank of a host waits, those
//! that no rank can use yet are to defer. Only where planners watch over chunks, and hear of it.

use super::Jobs;
use crate::engine::Engine;
use crate::partition::{OwnHost, ReceivingId};
use weft_units::IdVec;

/// By host: how many messages are coming that its ranks wait for.
pub(super) type Expected = IdVec<OwnHost, u32>;

impl<Q, P> Engine<'_, Q, P> {
    /// Whether `host`, which has all of a chunk of `bytes` of a message now, asks its sender to defer.
    #[inline]
    pub(crate) fn asks_to_defer(&mut self, host: OwnHost, id: ReceivingId, bytes: u64) -> bool {
        let Some(jobs) = self.jobs.as_mut().filter(|jobs| !jobs.expected.is_empty()) else {
            return false;
        };
        let is_expected = jobs.expects(id);
        let begins = self.messages.begin_expected(id, bytes, is_expected);
        let expected = &mut jobs.expected[host];
        *expected = expected.wrapping_add_signed(begins);
        !is_expected && *expected > 0
    }
}

impl Jobs<'_> {
    /// Whether the rank that a message is for waits for it.
    fn expects(&mut self, id: ReceivingId) -> bool {
        let addressee = &self.receipts[id.partition()][id.number()];
        let (job, first) = self.homes[addressee.rank as usize];
        self.runners[job as usize].expects(addressee.rank - first, &addressee.receipt)
    }
}
