//! What one rank has to do in one collective, before any of it is done.

use super::AwaitSends;
use crate::collective::{Algorithm, Call, Pieces, Step};

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
        let bytes = Pieces::new(self.call.bytes, self.chunks).len(u64::from(chunk));
        Call { bytes, ..self.call }
    }

    /// Every step of it, chunk by chunk and strand by strand.
    pub(super) fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        (0..self.chunks).flat_map(|chunk| {
            let (Role { algorithm, place, .. }, call) = (*self, self.chunk(chunk));
            (0..algorithm.strands(&call)).flat_map(move |strand| {
                (0..).map_while(move |at| algorithm.step(&call, place, strand, at))
            })
        })
    }
}
