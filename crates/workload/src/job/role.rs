//! What one rank has to do in one collective, before any of it is done.

use super::AwaitSends;
use crate::collective::{Algorithm, Around, Blocks, Call, Step};
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

    /// What it sends: to whom, bytes, and how many such messages in a row. Until `each` has enough.
    pub(super) fn sends(
        &self,
        mut each: impl FnMut(u32, u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.messages(
            &mut each,
            |around| (around.to, around.sends),
            |step| match step {
                Step::Send { to, payload, .. } => Some((to, payload)),
                _ => None,
            },
        )
    }

    /// The same of what it receives, and from whom.
    pub(super) fn receives(
        &self,
        mut each: impl FnMut(u32, u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.messages(
            &mut each,
            |around| (around.from, around.receives),
            |step| match step {
                Step::Receive { from, payload } => Some((from, payload)),
                _ => None,
            },
        )
    }

    fn messages(
        &self,
        each: &mut impl FnMut(u32, u64, u64) -> ControlFlow<()>,
        together: impl Fn(Around) -> (u32, [(u64, u64); 2]),
        of: impl Fn(Step) -> Option<(u32, u64)>,
    ) -> ControlFlow<()> {
        let mut alike: Option<(u32, u64, u64)> = None;
        let mut add = |peer: u32, bytes: u64, times: u64| match &mut alike {
            _ if bytes == 0 || times == 0 => ControlFlow::Continue(()),
            Some((known, size, sum)) if (*known, *size) == (peer, bytes) => {
                *sum += times;
                ControlFlow::Continue(())
            }
            other => match other.replace((peer, bytes, times)) {
                None => ControlFlow::Continue(()),
                Some((peer, bytes, times)) => each(peer, bytes, times),
            },
        };
        for chunk in 0..self.chunks {
            let call = self.chunk(chunk);
            for sequence in 0..self.algorithm.sequences(&call) {
                let around = |phase| self.algorithm.around(&call, self.place, sequence, phase);
                let mut phases = (0..).map_while(around).map(&together).peekable();
                if phases.peek().is_some() {
                    let sizes = phases.flat_map(|(peer, sizes)| sizes.map(|size| (peer, size)));
                    sizes
                        .into_iter()
                        .try_for_each(|(peer, (bytes, times))| add(peer, bytes, times))?;
                    continue;
                }
                let mut step = |step| match of(step) {
                    Some((peer, bytes)) => add(peer, bytes, 1),
                    None => ControlFlow::Continue(()),
                };
                self.algorithm.walk(&call, (self.place, sequence), &mut step)?;
            }
        }
        alike.map_or(ControlFlow::Continue(()), |(peer, bytes, times)| each(peer, bytes, times))
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
