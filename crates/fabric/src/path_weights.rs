//! How much each path between two leaves should carry, in proportion to the capacity that is
//! left: what [`crate::Weights`] says of next hops, for who chooses whole paths.
//!
//! As there, capacity is counted as a share of what there is in a fabric without failures, where
//! equal weights are right. A path has the least share of its links. Where paths have links in
//! common (in three tiers those of a plane share its links at both leaves), all of them together
//! have no more than these, in proportion to what each has above them. Somebody who knows better,
//! an optimiser, may say for pairs of leaves what the weights are ([`PathView::give`]).

use crate::{Fabric, LinkShares, PathId};
use std::collections::BTreeMap;
use weft_units::{HostId, PortId};

/// What is known of the capacity of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathView {
    links: LinkShares,
    /// By the leaves of source and destination: instead of what the links say.
    given: BTreeMap<(u32, u32), PathWeights>,
}

impl PathView {
    /// By what is left of the links.
    pub fn new(links: LinkShares) -> PathView {
        PathView { links, given: BTreeMap::new() }
    }

    /// What is left of the links.
    pub fn links(&self) -> &LinkShares {
        &self.links
    }

    /// From leaf `src` to leaf `dst` let the weights be these, whatever the links say.
    pub fn give(&mut self, (src, dst): (u32, u32), weights: PathWeights) {
        self.given.insert((src, dst), weights);
    }

    /// Whether nothing is known that would make one path better than another.
    pub fn is_plain(&self) -> bool {
        self.links.are_whole() && self.given.is_empty()
    }

    /// Whether `path` between the leaves of `src` and `dst` is known to be dead, or the way back: where there are
    /// planes, in any of these.
    pub fn is_dead(&self, fabric: &Fabric, (src, dst): (HostId, HostId), path: PathId) -> bool {
        if self.links.are_whole() {
            return false;
        }
        let ports = fabric.trace(src, dst, path);
        let in_plane = |port: &PortId, plane| PortId(port.0 + plane * fabric.ports_per_plane());
        let links = |plane| ports[1..ports.len() - 1].iter().map(move |port| in_plane(port, plane));
        (0..fabric.planes()).flat_map(links).any(|link| self.links.is_dead(fabric, link))
    }

    /// The weights of the paths from the leaf of `src` to that of `dst`.
    pub fn weights(&self, fabric: &Fabric, src: HostId, dst: HostId) -> PathWeights {
        let leaves = (fabric.leaf_of(src), fabric.leaf_of(dst));
        if let Some(given) = self.given.get(&leaves) {
            return given.clone();
        }
        if self.links.are_whole() || leaves.0 == leaves.1 {
            return PathWeights::equal(fabric, src, dst);
        }
        let set = fabric.path_set(src, dst);
        let ways =
            (0..set.len()).map(|index| PathShare::new(self, fabric, (src, dst), set.get(index)));
        let ways: Vec<PathShare> = ways.collect();
        let planes = ways.chunk_by(|a, b| a.uplink == b.uplink);
        PathWeights::new(planes.flat_map(PathShare::weights))
    }
}

/// A path by the shares of its links.
#[derive(Clone, Copy, Debug)]
struct PathShare {
    path: PathId,
    /// Paths with the same uplink have both links at the leaves in common: a plane.
    uplink: u32,
    /// The lesser share of these.
    ends: u64,
    /// The least share of the links between, which are its own.
    middle: u64,
}

impl PathShare {
    fn new(
        view: &PathView,
        fabric: &Fabric,
        (src, dst): (HostId, HostId),
        path: PathId,
    ) -> PathShare {
        let ports = fabric.trace(src, dst, path);
        // Not the NIC, nor the link to the receiver: all paths have these.
        let between = &ports[1..ports.len() - 1];
        let (first, last) = (between.first(), between.last());
        let (first, last) = first.zip(last).expect("two leaves have a link between them");
        // One that is both ends has no middle.
        let middle = between.get(1..between.len() - 1).unwrap_or_default();
        let share = |port| view.links.of(port);
        PathShare {
            path,
            uplink: first.0,
            ends: share(*first).min(share(*last)),
            middle: middle.iter().map(|port| share(*port)).min().unwrap_or(LinkShares::WHOLE),
        }
    }

    /// The weights of all paths of a plane.
    fn weights(plane: &[PathShare]) -> impl Iterator<Item = (PathId, u64)> {
        let ends = plane[0].ends * plane.len() as u64;
        let middle: u64 = plane.iter().map(|way| way.middle).sum();
        plane.iter().map(move |way| {
            let share = u128::from(way.middle) * u128::from(ends.min(middle));
            let share = share.checked_div(u128::from(middle)).unwrap_or(0) as u64;
            // However little is left, it is a way.
            (way.path, share.max(u64::from(way.middle > 0 && ends > 0)))
        })
    }
}

/// Paths between two leaves, each with a weight: the share that it should carry, of the sum of
/// all. Zero for one to be left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathWeights(Vec<(PathId, u64)>);

impl PathWeights {
    /// These. Weights above 2^32 are scaled down, all of them, so that sums stay exact; none but
    /// zero becomes zero. If all are zero they count as equal: there has to be a way.
    pub fn new(weights: impl IntoIterator<Item = (PathId, u64)>) -> PathWeights {
        let mut list: Vec<(PathId, u64)> = weights.into_iter().collect();
        let most = list.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(33);
        for (_, weight) in &mut list {
            *weight = match most {
                0 => 1,
                _ => (*weight >> shift).max(u64::from(*weight > 0)),
            };
        }
        PathWeights(list)
    }

    /// All paths from the leaf of `src` to that of `dst`, alike.
    pub fn equal(fabric: &Fabric, src: HostId, dst: HostId) -> PathWeights {
        let set = fabric.path_set(src, dst);
        PathWeights((0..set.len()).map(|index| (set.get(index), 1)).collect())
    }

    /// Only these of its paths, by their weights; all of them alike where those are zero.
    pub fn among(&self, paths: &[PathId]) -> PathWeights {
        PathWeights::new(paths.iter().map(|path| (*path, self.of(*path))))
    }

    /// The weight of `path`; zero for one that it does not have.
    pub fn of(&self, path: PathId) -> u64 {
        self.0.iter().find(|(id, _)| *id == path).map_or(0, |(_, weight)| *weight)
    }

    /// One of the paths, by its weight: the one at `bits`, drawn from all 64-bit numbers. `None`
    /// if there is none.
    pub fn pick(&self, bits: u64) -> Option<PathId> {
        let mut at = ((u128::from(bits) * u128::from(self.sum())) >> 64) as u64;
        let hit = self.iter().find(|(_, weight)| match at.checked_sub(*weight) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
        hit.map(|(path, _)| path)
    }

    /// Every path with its weight.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (PathId, u64)> {
        self.0.iter().copied()
    }

    /// The sum of all weights, in which a path's weight is its share.
    pub fn sum(&self) -> u64 {
        self.iter().map(|(_, weight)| weight).sum()
    }
}
