//! PAT: parallel aggregated trees. Every rank's block takes a binomial tree of its own; at each
//! level a rank sends what all trees want from it in one message, to one other rank.
//!
//! All-gather begins with the farthest rank, which then gets least, and ends with the nearest;
//! reduce-scatter is its mirror image. It takes `log2 n` steps, for any number of ranks. Source:
//! Jeaugey (2025), as NCCL has it from 2.23 on.

use super::{AlgorithmInfo, Call, Operation, Payload, Schedule, Step};
use weft_units::{OptionError, Options};

/// Parallel aggregated trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pat;

impl Schedule for Pat {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "pat",
        summary: "a binomial tree for every block, aggregated into one message a level",
        source: "Jeaugey (2025); NCCL",
        operations: &[Operation::AllGather, Operation::ReduceScatter],
        options: &[],
    };

    fn read(_: &mut Options<'_>) -> Result<Pat, OptionError> {
        Ok(Pat)
    }
    fn sequences(&self, _: &Call) -> u32 {
        1
    }
    #[inline(always)]
    fn step(&self, call: &Call, rank: u32, _: u32, at: u32) -> Option<Step<Payload>> {
        let levels = call.ranks.next_power_of_two().trailing_zeros();
        let turn = at / 2;
        if turn >= levels {
            return None;
        }
        let gathers = call.operation == Operation::AllGather;
        let distance = 1 << if gathers { levels - 1 - turn } else { turn };
        let (next, previous) = (call.ahead(rank, distance), call.behind(rank, distance));
        // Where blocks of an all-gather go to, those of a reduce-scatter come from.
        let (to, from) = if gathers { (next, previous) } else { (previous, next) };
        let payload = |onward: bool| {
            let first = if onward { rank } else { previous };
            passed_on(call, first, distance)
        };
        Some(match at % 2 {
            0 => Step::Send { to, payload: payload(gathers), sequence: 0, receipt: turn },
            _ => Step::Receive { from, payload: payload(!gathers) },
        })
    }
}

/// What `rank` passes on to the rank `distance` after it in an all-gather: its own block and those
/// that came over longer distances, unless the rank ahead is where they began or beyond it.
fn passed_on(call: &Call, rank: u32, distance: u32) -> Payload {
    let stride = 2 * distance;
    let many = (call.ranks - distance).div_ceil(stride);
    let first = call.behind(rank, (many - 1) * stride);
    Payload { stride, many, ..Payload::share(0, 1).block(first, call.ranks) }
}
