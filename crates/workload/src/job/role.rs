//! What one rank has to do in one collective, before any of it is done.

use super::AwaitSends;
use crate::collective::{Algorithm, Around, Blocks, Call, Operation, Phase, Step, Switched};
use crate::experts::{Exchange, Way};
use std::ops::ControlFlow;

/// What the steps of a collective follow from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Steps<'a> {
    Algorithm(Algorithm),
    /// Tokens on their way to experts, or back; which of the trace's exchanges that is.
    Experts {
        exchange: &'a Exchange,
        index: u32,
        is_combine: bool,
    },
}

impl PartialEq for Steps<'_> {
    /// Within a trace.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Steps::Algorithm(one), Steps::Algorithm(other)) => one == other,
            (
                Steps::Experts { index, is_combine, .. },
                Steps::Experts { index: other, is_combine: is_other, .. },
            ) => (index, is_combine) == (other, is_other),
            _ => false,
        }
    }
}

/// As of [`Algorithm`].
impl Steps<'_> {
    pub(super) fn sequences(&self, call: &Call) -> u32 {
        match self {
            Steps::Algorithm(algorithm) => algorithm.sequences(call),
            Steps::Experts { exchange, .. } => exchange.sequences(),
        }
    }
    #[inline]
    pub(super) fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step> {
        match self {
            Steps::Algorithm(algorithm) => algorithm.step(call, rank, sequence, at),
            Steps::Experts { exchange, is_combine, .. } => {
                exchange.step(*is_combine, rank, sequence, at)
            }
        }
    }
    pub(super) fn phase(&self, call: &Call, rank: u32, phase: u32) -> Option<Phase> {
        match self {
            Steps::Algorithm(algorithm) => algorithm.phase(call, rank, phase),
            Steps::Experts { .. } => None,
        }
    }
    pub(super) fn around(
        &self,
        call: &Call,
        rank: u32,
        sequence: u32,
        phase: u32,
    ) -> Option<Around> {
        match self {
            Steps::Algorithm(algorithm) => algorithm.around(call, rank, sequence, phase),
            Steps::Experts { .. } => None,
        }
    }
    pub(super) fn walk(
        &self,
        call: &Call,
        (rank, sequence): (u32, u32),
        each: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Steps::Algorithm(algorithm) => algorithm.walk(call, (rank, sequence), each),
            Steps::Experts { exchange, is_combine, .. } => {
                let step = |at| exchange.step(*is_combine, rank, sequence, at);
                (0..).map_while(step).try_for_each(each)
            }
        }
    }
    /// What switches do in a step of theirs.
    pub(super) fn switched(&self, call: &Call, step: (u32, u32, u32), bytes: u64) -> Switched {
        match self {
            Steps::Algorithm(algorithm) => algorithm.switched(call, step, bytes),
            Steps::Experts { .. } => unreachable!("no switch does anything for experts"),
        }
    }
    pub(super) fn is_at_once(&self) -> bool {
        match self {
            Steps::Algorithm(algorithm) => algorithm.is_at_once(),
            Steps::Experts { exchange, .. } => exchange.way == Way::LowLatency,
        }
    }
    pub(super) fn reduces(&self, call: &Call, sequence: u32, receipt: u32) -> bool {
        match self {
            Steps::Algorithm(algorithm) => algorithm.reduces(call, sequence, receipt),
            Steps::Experts { is_combine, .. } => *is_combine,
        }
    }
}

/// A rank's part in a collective: in how many chunks, one after the other, by what steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Role<'a> {
    pub(super) steps: Steps<'a>,
    /// All chunks together.
    pub(super) call: Call,
    /// Which rank of the group it is.
    pub(super) place: u32,
    /// At least one, and at most as many as there are bytes.
    pub(super) chunks: u32,
    /// Whether it waits for what it sent.
    pub(super) await_sends: AwaitSends,
}

impl Role<'_> {
    /// What is done with chunk `chunk`.
    pub(super) fn chunk(&self, chunk: u32) -> Call {
        let bytes = Blocks::new(self.call.bytes, self.chunks).len(u64::from(chunk));
        Call { bytes, ..self.call }
    }

    /// Bytes that go along a ring from rank to rank, all of them past each: of a broadcast or a reduce.
    pub(super) fn along_chain(&self) -> u64 {
        let is_ring = matches!(self.steps, Steps::Algorithm(Algorithm::Ring(_)));
        let is_chain = matches!(self.call.operation, Operation::Broadcast | Operation::Reduce);
        if is_ring && is_chain && self.call.ranks > 2 { self.call.bytes } else { 0 }
    }

    /// How many messages the rank has under way at most: one a sequence, or all of a chunk.
    pub(super) fn at_once(&self) -> u64 {
        let call = self.chunk(0);
        match self.steps.is_at_once() {
            true => u64::from(call.ranks.saturating_sub(1)),
            false => u64::from(self.steps.sequences(&call)),
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
            for sequence in 0..self.steps.sequences(&call) {
                let around = |phase| self.steps.around(&call, self.place, sequence, phase);
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
                self.steps.walk(&call, (self.place, sequence), &mut step)?;
            }
        }
        alike.map_or(ControlFlow::Continue(()), |(peer, bytes, times)| each(peer, bytes, times))
    }

    /// Every step of it, chunk by chunk and sequence by sequence, until `each` has enough.
    pub(super) fn each_step(
        &self,
        mut each: impl FnMut(Step) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        (0..self.chunks).try_for_each(|chunk| {
            let call = self.chunk(chunk);
            let mut sequences = 0..self.steps.sequences(&call);
            sequences
                .try_for_each(|sequence| self.steps.walk(&call, (self.place, sequence), &mut each))
        })
    }
}
