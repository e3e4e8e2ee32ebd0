//! PAT: parallel aggregated trees. Every rank's block takes a binomial tree of its own; at each
//! level a rank sends what all trees want from it in one message, to one other rank.
//!
//! All-gather begins with the farthest rank, which then gets least, and ends with the nearest;
//! reduce-scatter is its mirror image. It takes `log2 n` steps, for any number of ranks. Source:
//! Jeaugey (2025), as NCCL has it from 2.23 on.

use super::{AlgorithmInfo, Call, Operation, Schedule, Step};
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
    fn step(&self, call: &Call, rank: u32, _: u32, at: u32) -> Option<Step> {
        let levels = call.ranks.next_power_of_two().trailing_zeros();
        let turn = at / 2;
        if turn >= levels {
            return None;
        }
        let gathers = call.operation == Operation::AllGather;
        let distance = 1 << if gathers { levels - 1 - turn } else { turn };
        let (next, previous) = (call.ahead(rank, distance), call.behind(rank, distance));
        Some(match (gathers, at % 2) {
            (true, 0) => {
                let bytes = passed_on(call, rank, distance);
                Step::Send { to: next, bytes, sequence: 0, receipt: turn }
            }
            (true, _) => {
                Step::Receive { from: previous, bytes: passed_on(call, previous, distance) }
            }
            // Where blocks came from they go to now.
            (false, 0) => {
                let bytes = passed_on(call, previous, distance);
                Step::Send { to: previous, bytes, sequence: 0, receipt: turn }
            }
            (false, _) => Step::Receive { from: next, bytes: passed_on(call, rank, distance) },
        })
    }
}

/// What `rank` passes on to the rank `distance` after it in an all-gather: its own block and those
/// that came over longer distances, unless the rank ahead is where they began or beyond it.
fn passed_on(call: &Call, rank: u32, distance: u32) -> u64 {
    let far = (0..call.ranks - distance).step_by(2 * distance as usize);
    far.map(|back| call.blocks().len(u64::from(call.behind(rank, back)))).sum()
}
