//! Recursive halving and doubling: partners at distances 1, 2, 4, ...
//!
//! Reduce-scatter exchanges half of the buffer with the neighbour, then a quarter with the rank
//! two away, and so on; all-gather is its mirror image, all-reduce the one and then the other.
//! The number of ranks is a power of two. Source: Thakur, Rabenseifner and Gropp (2005);
//! ASTRA-sim's `halvingDoubling`, the recursive doubling of Ethereal (2025).

use super::{AlgorithmInfo, Call, Operation, Payload, Schedule, Step};
use crate::WorkloadError;
use weft_units::{OptionError, Options};

/// Recursive halving and doubling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalvingDoubling;

impl Schedule for HalvingDoubling {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "recursive-doubling",
        summary: "halves or doubles what it exchanges with partners at distances 1, 2, 4, ...",
        source: "Thakur, Rabenseifner and Gropp (2005); ASTRA-sim; Ethereal (2025)",
        operations: &[Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter],
        options: &[],
    };

    fn read(_: &mut Options<'_>) -> Result<HalvingDoubling, OptionError> {
        Ok(HalvingDoubling)
    }
    fn check(&self, call: &Call) -> Result<(), WorkloadError> {
        if !call.ranks.is_power_of_two() {
            return Err(WorkloadError(format!(
                "algorithm: \"recursive-doubling\" needs a power of two of ranks, not {}; use \
                 \"ring\"",
                call.ranks
            )));
        }
        Ok(())
    }
    fn sequences(&self, _: &Call) -> u32 {
        1
    }
    #[inline(always)]
    fn step(&self, call: &Call, rank: u32, _: u32, at: u32) -> Option<Step<Payload>> {
        let levels = call.ranks.trailing_zeros();
        let turn = at / 2;
        let (halves, level) = match call.operation {
            Operation::AllReduce if turn < levels => (true, turn),
            Operation::AllReduce => (false, (2 * levels).checked_sub(turn + 1)?),
            Operation::ReduceScatter => (true, turn),
            _ => (false, levels.checked_sub(turn + 1)?),
        };
        if level >= levels {
            return None;
        }
        let partner = rank ^ (1 << level);
        // The blocks that are one rank's business after this level share its lowest bits. Those of
        // the partner leave while halving, and its own while doubling.
        let group = |rank: u32| {
            let stride = 2 << level;
            let all = Payload::share(0, 1).block(rank % stride, call.ranks);
            Payload { stride, many: call.ranks / stride, ..all }
        };
        let (sent, received) = if halves { (partner, rank) } else { (rank, partner) };
        Some(match at % 2 {
            0 => Step::Send { to: partner, payload: group(sent), sequence: 0, receipt: turn },
            _ => Step::Receive { from: partner, payload: group(received) },
        })
    }
    /// By the bits of its number read backwards: those that share their lowest bits lie together.
    fn position(&self, call: &Call, block: u32) -> u32 {
        block.reverse_bits().checked_shr(32 - call.ranks.trailing_zeros()).unwrap_or(0)
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        receipt < call.ranks.trailing_zeros()
    }
}
