//! Everybody to everybody: to the next rank, the one after it, and so on.
//!
//! At most `window` sends of a rank are not acknowledged. An all-to-all may have unequal sizes
//! ([`Skew`](crate::Skew)). All-reduce is reduce-scatter, then,
//! when all of that has arrived, all-gather. Source: ASTRA-sim's `direct`.

use super::{AlgorithmInfo, Call, MOST_CHUNKS, Operation, Payload, Schedule, Step};
use crate::{Skew, WorkloadError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// Direct exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// The most sends of a rank that are out at once; `None`: all of them.
    pub window: Option<u32>,
    /// Who gets more of an all-to-all than others; `None`: nobody.
    pub skew: Option<Skew>,
}

impl Schedule for Direct {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "direct",
        summary: "every rank sends to the next one, the one after it, and so on",
        source: "ASTRA-sim",
        operations: &[
            Operation::AllReduce,
            Operation::AllGather,
            Operation::ReduceScatter,
            Operation::AllToAll,
        ],
        options: &[
            OptionInfo {
                key: "window",
                default: "all of them",
                kind: OptionKind::Whole(1, MOST_CHUNKS),
                meaning: "the most sends of a rank that are out at once",
            },
            Skew::OPTION,
        ],
    };

    fn read(options: &mut Options<'_>) -> Result<Direct, OptionError> {
        let window = options.number_if_given("window")?;
        Ok(Direct { window, skew: Skew::read(options)? })
    }
    fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        match self.skew {
            Some(_) if call.operation != Operation::AllToAll => Err(WorkloadError(format!(
                "skew: only an all-to-all has one, not {}; remove it",
                call.operation.name()
            ))),
            _ => Ok(()),
        }
    }
    fn sequences(&self, _: &Call) -> u32 {
        1
    }
    #[inline(always)]
    fn step(&self, call: &Call, rank: u32, _: u32, at: u32) -> Option<Step<Payload>> {
        let phases = 1 + u32::from(call.operation == Operation::AllReduce);
        let others = call.ranks - 1;
        let window = self.window.unwrap_or(others).clamp(1, others.max(1));
        // A phase: the sends, all but the first `window` behind a wait, then all receipts.
        let waits = others - window.min(others);
        let length = 2 * others + waits;
        // There are two at most: no division, which would take as long as all the rest.
        let phase = u32::from(at >= length);
        let at = at - phase * length;
        if at >= length || phase >= phases {
            return None;
        }
        // An all-gather sends its own block to all, the others each the block that is theirs.
        let gathers = call.operation == Operation::AllGather || phase == 1;
        let block = |rank: u32| Payload::share(0, 1).block(rank, call.ranks);
        let send = |index: u32| {
            let to = call.ahead(rank, index + 1);
            let payload = block(if gathers { rank } else { to });
            Step::Send { to, payload, sequence: 0, receipt: phase * others + index }
        };
        Some(if at < window {
            send(at)
        } else if at < others + waits {
            let index = window + (at - window) / 2;
            match (at - window) % 2 {
                0 => Step::Sent(phase * others + index - window),
                _ => send(index),
            }
        } else {
            let from = call.behind(rank, at - others - waits + 1);
            Step::Receive { from, payload: block(if gathers { from } else { rank }) }
        })
    }
    #[inline]
    fn bytes(&self, call: &Call, payload: Payload) -> u64 {
        match &self.skew {
            None => payload.bytes(call.bytes),
            Some(skew) => skew.block(call.bytes, call.ranks, payload.first),
        }
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        receipt < call.ranks - 1
    }
}
