//! Neighbour exchange: pairs of ranks swap blocks, with the neighbour on either side in turn.

use super::{AlgorithmInfo, Call, Operation, Payload, Schedule, Step};
use crate::WorkloadError;
use weft_units::{OptionError, Options};

/// It has no options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborExchange;

impl Schedule for NeighborExchange {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "neighbor-exchange",
        summary: "pairs of ranks swap two blocks a step, with the neighbour on either side in turn",
        source: "Weft's guide to new algorithms; Chen et al. (2005); Open MPI",
        operations: &[Operation::AllGather],
        options: &[],
    };

    fn read(_: &mut Options<'_>) -> Result<NeighborExchange, OptionError> {
        Ok(NeighborExchange)
    }
    fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        match call.ranks.is_multiple_of(2) {
            true => Ok(()),
            false => Err(WorkloadError(format!(
                "algorithm: \"neighbor-exchange\" needs an even number of ranks, not {}; use \"ring\"",
                call.ranks
            ))),
        }
    }
    fn sequences(&self, _: &Call) -> u32 {
        1
    }
    /// Each turn is a send and then a receipt: of the own block, then of the pair that came last.
    fn step(&self, call: &Call, rank: u32, _: u32, at: u32) -> Option<Step<Payload>> {
        let (turn, half) = (at / 2, at % 2);
        if turn >= call.ranks / 2 {
            return None;
        }
        let is_next = rank.is_multiple_of(2) == turn.is_multiple_of(2);
        let other = if is_next { call.ahead(rank, 1) } else { call.behind(rank, 1) };
        let payload = |of: u32| match turn {
            0 => call.blocks(of, 1),
            _ => call.blocks(last_pair(call, of, turn - 1), 2),
        };
        Some(match half {
            0 => Step::Send { to: other, payload: payload(rank), sequence: 0, receipt: turn },
            _ => Step::Receive { from: other, payload: payload(other) },
        })
    }
}

/// The first of the two blocks that `rank` has got last after `turn`; after turn 0 its own and its
/// partner's.
fn last_pair(call: &Call, rank: u32, turn: u32) -> u32 {
    let own = rank - rank % 2;
    let distance = turn + turn % 2;
    match rank.is_multiple_of(2) == turn.is_multiple_of(2) {
        true => call.ahead(own, distance),
        false => call.behind(own, distance),
    }
}
