//! Trees: sums go up to the root, results come down, in chunks.
//!
//! The tree over ranks `0..n` is NCCL's: the parent of a rank is itself without its lowest bit and
//! with the next one, so that half of the ranks are leaves and neighbours are near. With two trees
//! each takes half of the buffer, and the leaves of one are the inner ranks of the other: every
//! rank sends and receives as much as with a ring, in logarithmic time. ASTRA-sim's
//! `doubleBinaryTree` uses one of two trees for a chunk, the last or the first rank its root.
//! Broadcast and reduce take one tree, turned until the root is its root. Sources: Sanders, Speck
//! and Träff (2009); NCCL.

use super::{AlgorithmInfo, Call, MOST_CHUNKS, Operation, Payload, Schedule, Step};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// One binary tree, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Of an all-reduce: two as NCCL has them, or the one of ASTRA-sim, whose root is the last
    /// rank.
    pub trees: u32,
    /// Into how many chunks each tree cuts its share.
    pub chunks: u32,
}

/// The place of a rank in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) parent: Option<u32>,
    /// At most two; the nearer to rank 0 first.
    pub(crate) children: [Option<u32>; 2],
}

/// The places of `rank` in NCCL's two trees over `ranks` ranks.
pub(crate) fn both(rank: u32, ranks: u32) -> [Place; 2] {
    [Place::nccl(rank, ranks), Place::second(rank, ranks)]
}

impl Place {
    /// Of `rank` in NCCL's tree over `ranks` ranks, whose root is 0.
    fn nccl(rank: u32, ranks: u32) -> Place {
        if rank == 0 {
            let child = (ranks > 1).then(|| 1 << (ranks - 1).ilog2());
            return Place { parent: None, children: [child, None] };
        }
        let bit = rank & rank.wrapping_neg();
        let parent = match (rank ^ bit) | (bit << 1) {
            beyond if beyond >= ranks => rank ^ bit,
            parent => parent,
        };
        let left = (bit > 1).then(|| rank - bit / 2);
        let mut offset = bit / 2;
        while offset > 0 && rank + offset >= ranks {
            offset /= 2;
        }
        let right = (offset > 0).then(|| rank + offset);
        Place { parent: Some(parent), children: [left, right] }
    }

    /// The same with every rank renamed.
    fn renamed(self, rename: impl Fn(u32) -> u32) -> Place {
        Place { parent: self.parent.map(&rename), children: self.children.map(|c| c.map(&rename)) }
    }

    /// Of `rank` in the second of two trees: the first in a mirror, or moved on by one where a
    /// mirror would leave some leaf a leaf.
    fn second(rank: u32, ranks: u32) -> Place {
        if ranks.is_multiple_of(2) {
            let mirror = |rank: u32| ranks - 1 - rank;
            Place::nccl(mirror(rank), ranks).renamed(mirror)
        } else {
            let back = |rank: u32| (rank + ranks - 1) % ranks;
            Place::nccl(back(rank), ranks).renamed(|rank| (rank + 1) % ranks)
        }
    }

    /// Which child `rank` is.
    fn index_of(&self, rank: u32) -> u32 {
        u32::from(self.children[0] != Some(rank))
    }

    fn count(&self) -> u32 {
        self.children.iter().flatten().count() as u32
    }
}

impl Tree {
    /// The place of `rank` in tree `tree`.
    pub(super) fn place(&self, call: &Call, rank: u32, tree: u32) -> Place {
        let turned = |root: u32| {
            let place = Place::nccl(call.behind(rank, root), call.ranks);
            place.renamed(|rank| call.ahead(rank, root))
        };
        match (call.operation, self.trees) {
            (Operation::Broadcast | Operation::Reduce, _) => turned(call.root),
            (_, 1) => {
                let mirror = |rank: u32| call.ranks - 1 - rank;
                Place::nccl(mirror(rank), call.ranks).renamed(mirror)
            }
            _ if tree == 0 => Place::nccl(rank, call.ranks),
            _ => Place::second(rank, call.ranks),
        }
    }

    fn trees(&self, call: &Call) -> u32 {
        if call.operation == Operation::AllReduce { self.trees } else { 1 }
    }
}

impl Schedule for Tree {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "double-binary-tree",
        summary: "sums go up a binary tree and results come down, chunk by chunk",
        source: "Sanders, Speck and Träff (2009); NCCL; ASTRA-sim",
        operations: &[Operation::AllReduce, Operation::Broadcast, Operation::Reduce],
        options: &[
            OptionInfo {
                key: "trees",
                default: "2",
                kind: OptionKind::Whole(1, 2),
                meaning: "of an all-reduce: two trees, half of the buffer each, as NCCL; or one, \
                          as ASTRA-sim with a single chunk",
            },
            OptionInfo {
                key: "chunks",
                default: "1",
                kind: OptionKind::Whole(1, MOST_CHUNKS),
                meaning: "into how many chunks each tree cuts its share",
            },
        ],
    };

    fn read(options: &mut Options<'_>) -> Result<Tree, OptionError> {
        let trees = options.number("trees")?;
        Ok(Tree { trees, chunks: options.number("chunks")? })
    }
    fn has_use_for(key: &str, operation: Operation) -> bool {
        key != "trees" || operation == Operation::AllReduce
    }
    /// For every tree one sequence up and one down.
    fn sequences(&self, call: &Call) -> u32 {
        2 * self.trees(call)
    }
    #[inline(always)]
    fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step<Payload>> {
        let (tree, down) = (sequence / 2, sequence % 2 == 1);
        let place = self.place(call, rank, tree);
        let goes_up = call.operation != Operation::Broadcast;
        let comes_down = call.operation != Operation::Reduce;
        let is_root = place.parent.is_none();
        // The root turns round: as soon as it has a chunk from all, that chunk goes down again. What
        // it does stands in the sequence up, if there is one.
        let (receipts, sends) = match (down, is_root) {
            (false, false) if goes_up => (place.count(), 1),
            (false, true) if goes_up => (place.count(), if comes_down { place.count() } else { 0 }),
            (true, false) if comes_down => (1, place.count()),
            (true, true) if comes_down && !goes_up => (0, place.count()),
            _ => return None,
        };
        let chunk = at.checked_div(receipts + sends)?;
        if chunk >= self.chunks {
            return None;
        }
        let turn = at % (receipts + sends);
        let payload = Payload::share(tree, self.trees(call)).block(chunk, self.chunks);
        let child = |index: u32| {
            place.children.iter().flatten().nth(index as usize).copied().expect("a child")
        };
        Some(if turn < receipts {
            let from = if down { place.parent.expect("not the root") } else { child(turn) };
            Step::Receive { from, payload }
        } else if down || is_root {
            let to = child(turn - receipts);
            Step::Send { to, payload, sequence: 2 * tree + 1, receipt: chunk }
        } else {
            let to = place.parent.expect("not the root");
            let above = self.place(call, to, tree);
            let receipt = chunk * above.count() + above.index_of(rank);
            Step::Send { to, payload, sequence, receipt }
        })
    }
    fn adds(&self, _: &Call, sequence: u32, _: u32) -> bool {
        sequence.is_multiple_of(2)
    }
}
