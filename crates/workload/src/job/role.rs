//! What one rank has to do in one collective, before any of it is done.

use super::AwaitSends;
use crate::collective::{Algorithm, Blocks, Call, Step};
use std::ops::ControlFlow;

/// A rank's part in a collective: in how many chunks, one after the other, by what algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) algorithm: Algorithm,
    /// All chunks together.
    pub(super) call: Call,
    /// Which rank of the group it is.
    pub(super) place: u32,
    /// At least one, and at most as many as there are bytes.
    pub(super) chunks: u32,
    /// Whether it waits for what it sent.
    pub(super) await_sends: AwaitSends,
}

impl Role {
    /// What is done with chunk `chunk`.
    pub(super) fn chunk(&self, chunk: u32) -> Call {
        let bytes = Blocks::new(self.call.bytes, self.chunks).len(u64::from(chunk));
        Call { bytes, ..self.call }
    }

    /// How many messages the rank has under way at most: one a sequence, or all of a chunk.
    pub(super) fn at_once(&self) -> u64 {
        let call = self.chunk(0);
        match self.algorithm.is_at_once() {
            true => u64::from(call.ranks.saturating_sub(1)),
            false => u64::from(self.algorithm.sequences(&call)),
        }
    }

    /// Every step of it, chunk by chunk and sequence by sequence, until `each` has enough.
    pub(super) fn steps(&self, mut each: impl FnMut(Step) -> ControlFlow<()>) -> ControlFlow<()> {
        (0..self.chunks).try_for_each(|chunk| {
            let call = self.chunk(chunk);
            let mut sequences = 0..self.algorithm.sequences(&call);
            sequences.try_for_each(|sequence| {
                self.algorithm.walk(&call, (self.place, sequence), &mut each)
            })
        })
    }
}
