//! What ranks start with, and what must come out. All numbers are small and whole, so that sums are
//! exact whatever their order.

use crate::operation::Operation;

/// Element `index` of what rank `rank` starts with, in round `round`.
fn value(rank: usize, index: usize, round: usize) -> f32 {
    let mixed = index.wrapping_mul(7) ^ rank.wrapping_mul(31) ^ round.wrapping_mul(13);
    (mixed % 251) as f32
}

/// The sum over all ranks.
fn sum(ranks: usize, index: usize, round: usize) -> f32 {
    (0..ranks).map(|rank| value(rank, index, round)).sum()
}

/// Fills in what `rank` starts with: the source, and of operations in place the result.
pub fn fill(
    operation: Operation,
    rank: usize,
    ranks: usize,
    round: usize,
    source: &mut [f32],
    result: &mut [f32],
) {
    let own = source.len() / ranks;
    for (index, one) in source.iter_mut().enumerate() {
        *one = value(rank, index, round);
    }
    match operation {
        Operation::AllReduce | Operation::ReduceScatter => result.copy_from_slice(source),
        Operation::AllGather => {
            result.fill(-1.0);
            let mine = rank * own..(rank + 1) * own;
            result[mine.clone()].copy_from_slice(&source[mine]);
        }
        Operation::SendRecv => result.fill(-1.0),
        Operation::AllToAll => {
            result.fill(-1.0);
            // One's own part does not go over the network.
            let mine = rank * own..(rank + 1) * own;
            result[mine.clone()].copy_from_slice(&source[mine]);
        }
    }
}

/// Elements of the result that are not what they must be.
#[must_use]
pub fn wrong(
    operation: Operation,
    rank: usize,
    ranks: usize,
    round: usize,
    result: &[f32],
) -> usize {
    let own = (result.len() / ranks).max(1);
    let mine = rank * own..(rank + 1) * own;
    let expected = |index: usize| match operation {
        Operation::AllReduce => Some(sum(ranks, index, round)),
        // Only its own part is the sum; the others are on their way to theirs.
        Operation::ReduceScatter => mine.contains(&index).then(|| sum(ranks, index, round)),
        Operation::AllGather => Some(value(index / own, index, round)),
        Operation::SendRecv => Some(value((rank + ranks - 1) % ranks, index, round)),
        // From each rank the part that is this one's.
        Operation::AllToAll => Some(value(index / own, rank * own + index % own, round)),
    };
    let differs = |(index, got): (usize, &f32)| {
        expected(index).is_some_and(|expected| expected.to_bits() != got.to_bits())
    };
    result.iter().enumerate().filter(|one| differs(*one)).count()
}
