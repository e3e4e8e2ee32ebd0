//! One step of an all-reduce over two binary trees: every host sends to its parents.

use super::{PatternInfo, Scope};
use crate::collective::tree_places;
use crate::{Workload, WorkloadError};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "tree",
    summary: "every host sends `size` to its parent in each of the two trees of a \
              double-binary-tree all-reduce, or to its children",
    source: "ParaLet (2024), section 6; NCCL",
    options: &[
        OptionInfo {
            key: "way",
            default: "up",
            kind: OptionKind::Word(&["up", "down", "both"]),
            meaning: "\"up\" to the parents, \"down\" to the children, or \"both\" at once, as \
                      when chunks follow each other",
        },
        OptionInfo {
            key: "cross_rack",
            default: "true",
            kind: OptionKind::Flag,
            meaning: "whether ranks take a host of every rack in turn, so that neighbours stand \
                      under different leaves, or hosts in their order",
        },
    ],
};

/// Which messages are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sums, to the parents.
    Up,
    /// Results, to the children.
    Down,
    /// Both at once.
    Both,
}

/// Two messages a host each way, but for the roots: as every rank is inner in one tree and a leaf
/// in the other, it sends up in both, and down to two in one. One iteration: nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Which messages there are.
    pub way: Direction,
    /// Whether neighbouring ranks stand in different racks.
    pub cross_rack: bool,
}

impl Tree {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Tree, OptionError> {
        let ways = [("up", Direction::Up), ("down", Direction::Down), ("both", Direction::Both)];
        Ok(Tree { way: options.choice("way", &ways)?, cross_rack: options.flag("cross_rack")? })
    }

    /// How many messages there are at most on `scope`, and the option that makes them many.
    pub(super) fn messages(&self, scope: &Scope) -> (u64, &'static str) {
        (4 * u64::from(scope.hosts), "pattern")
    }

    /// The messages, rank by rank: up before down, the first tree before the second.
    ///
    /// # Errors
    /// If the hosts do not fill their leaves (across racks), or the scope holds fewer than two hosts
    /// or no bytes.
    pub fn generate(&self, scope: &Scope) -> Result<Workload, WorkloadError> {
        let mut workload = scope.workload(self.messages(scope))?;
        let per_rack = if self.cross_rack { scope.full_leaf()? } else { 1 };
        let racks = scope.hosts / per_rack;
        let host = |rank: u32| match self.cross_rack {
            true => rank % racks * per_rack + rank / racks,
            false => rank,
        };
        for rank in 0..scope.hosts {
            let trees = tree_places(rank, scope.hosts);
            let up =
                trees.iter().filter(|_| self.way != Direction::Down).filter_map(|tree| tree.parent);
            let down = trees.iter().filter(|_| self.way != Direction::Up);
            let down = down.flat_map(|tree| tree.children.iter().flatten().copied());
            for to in up.chain(down) {
                scope.send(&mut workload, host(rank), host(to));
            }
        }
        Ok(workload)
    }
}
