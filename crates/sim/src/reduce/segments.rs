//! The segments of an operation: how many there are, how long, who gives and who gets.

use weft_fabric::Branch;
use weft_workload::collective::{Blocks, Operation, Switched};

/// How an operation is cut into segments: block by block where ranks have blocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segments {
    part: Switched,
    blocks: Blocks,
    /// Segments of each block.
    per_block: u32,
    /// Payload of a full one.
    payload: u32,
    count: u32,
}

impl Segments {
    /// Those of up to `payload` bytes.
    pub(crate) fn new(part: Switched, payload: u32) -> Segments {
        let has_blocks = matches!(part.operation, Operation::ReduceScatter | Operation::AllGather);
        let count = if has_blocks { part.ranks } else { 1 };
        let blocks = Blocks::new(part.bytes, count);
        let per_block = blocks.len(0).div_ceil(u64::from(payload)).max(1);
        let all = u32::try_from(per_block * u64::from(count)).expect("2^32 segments are too many");
        Segments { part, blocks, per_block: per_block as u32, payload, count: all }
    }
    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
    /// How many ranks contribute.
    pub(crate) fn ranks(&self) -> u32 {
        self.part.ranks
    }
    /// Whose block a segment is of, where ranks have blocks.
    fn owner(&self, segment: u32) -> u32 {
        segment / self.per_block
    }
    /// Its payload, in bytes.
    pub(crate) fn bytes(&self, segment: u32) -> u64 {
        let start = u64::from(segment % self.per_block) * u64::from(self.payload);
        let left = self.blocks.len(u64::from(self.owner(segment))).saturating_sub(start);
        left.min(u64::from(self.payload))
    }
    /// Whether the rank at `place` has payload to give.
    pub(crate) fn gives(&self, segment: u32, place: u32) -> bool {
        match self.part.operation {
            Operation::AllGather => self.owner(segment) == place,
            Operation::Broadcast => self.part.root == place,
            Operation::Reduce => self.part.root != place,
            _ => true,
        }
    }
    /// Whether some rank below a switch has.
    pub(crate) fn gives_below(&self, segment: u32, branch: &Branch) -> bool {
        let has = |place| branch.child_of(place).is_some();
        match self.part.operation {
            Operation::AllGather => has(self.owner(segment)),
            Operation::Broadcast => has(self.part.root),
            Operation::Reduce => branch.below.len() > 1 || !has(self.part.root),
            _ => true,
        }
    }
    /// Whether some rank below the `child`-th port down of a switch gets payload.
    pub(crate) fn gets_below(&self, segment: u32, branch: &Branch, child: u32) -> bool {
        let is_of = |place| branch.child_of(place) == Some(child);
        let has_others = |place| branch.sizes[child as usize] > 1 || !is_of(place);
        match self.part.operation {
            Operation::ReduceScatter => is_of(self.owner(segment)),
            Operation::AllGather => has_others(self.owner(segment)),
            Operation::Broadcast => has_others(self.part.root),
            Operation::Reduce => is_of(self.part.root),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Segments;
    use weft_trial::prelude::*;
    use weft_workload::collective::{Operation, Switched};

    trials! {
        /// What ranks give, and payload of all segments, is what the operation moves.
        fn volumes_are_those_of_the_operation(
            (which, ranks, bytes, payload, root) in
                (0..4_usize, 2..9_u32, 1..5_000_u64, 1..700_u32, 0..9_u32)
        ) {
            let operation = [
                Operation::AllReduce,
                Operation::ReduceScatter,
                Operation::AllGather,
                Operation::Broadcast,
            ][which];
            let root = root % ranks;
            let part = Switched { operation, first: 0, stride: 1, ranks, root, tree: 0, bytes };
            let segments = Segments::new(part, payload);
            let all = || 0..segments.count();
            prop_assert_eq!(all().map(|one| segments.bytes(one)).sum::<u64>(), bytes);
            for place in 0..ranks {
                let given = all().filter(|one| segments.gives(*one, place));
                let given: u64 = given.map(|one| segments.bytes(one)).sum();
                prop_assert_eq!(given, part.volume(place).0);
            }
        }
    }
}
