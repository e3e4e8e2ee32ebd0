//! Shortest ways in a torus or a mesh by arithmetic: what tables of routes would say of each switch and leaf, from
//! where the two stand.
//!
//! Packets cross the dimensions in their order. So the next hops of a switch are the link to one side, or to both
//! sides where a ring of an even length is crossed to its far side, of the first dimension in which it and the leaf differ.

use crate::{Fabric, Node};
use weft_units::{PortId, SwitchId};

/// The shape of a torus, or of a mesh, whose switches all have hosts and are numbered by their coordinates, the first
/// dimension's neighbours side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The length of each dimension.
    pub sizes: Vec<u32>,
    /// Whether the ends of each are linked.
    pub wraps: bool,
}

/// A grid, and where its switches stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    sizes: Vec<u32>,
    wraps: bool,
    /// Switch by switch, its place in each dimension.
    places: Vec<u32>,
}

/// To which side a packet goes: the numbers of lists of next hops, behind that of none at all.
const SIDES: usize = 3;
const UP: usize = 1;
const DOWN: usize = 2;
const BOTH: usize = 3;

impl Grid {
    /// Whether packets may wait for each other in a circle: those that cross several links of a ring.
    pub(crate) fn has_circles(&self) -> bool {
        self.wraps && self.sizes.iter().any(|size| *size > 3)
    }
}

impl Places {
    pub(crate) fn new(grid: &Grid) -> Places {
        let switches: u32 = grid.sizes.iter().product();
        let mut places = Vec::with_capacity(switches as usize * grid.sizes.len());
        for mut switch in 0..switches {
            for size in &grid.sizes {
                places.push(switch % size);
                switch /= size;
            }
        }
        Places { sizes: grid.sizes.clone(), wraps: grid.wraps, places }
    }

    fn of(&self, switch: u32) -> &[u32] {
        let count = self.sizes.len();
        &self.places[switch as usize * count..][..count]
    }

    /// From one place of a dimension to another that differs: to which side, and how far.
    #[inline]
    fn side(&self, size: u32, from: u32, to: u32) -> (usize, u32) {
        let up = if to > from { to - from } else { size + to - from };
        let down = size - up;
        // A ring of two has one link, and a mesh no way around.
        match self.wraps && size > 2 {
            true if up < down => (UP, up),
            true if down < up => (DOWN, down),
            true => (BOTH, up),
            false if to > from => (UP, up),
            false => (DOWN, down),
        }
    }

    /// Which list of next hops of `switch` leads to `leaf`: see [`Places::lists`].
    // Apart, so that networks with tables keep their few instructions a packet.
    #[inline(never)]
    pub(crate) fn list(&self, switch: u32, leaf: u32) -> usize {
        let (from, to) = (self.of(switch), self.of(leaf));
        let differ = (0..self.sizes.len()).find(|one| from[*one] != to[*one]);
        differ.map_or(0, |one| SIDES * one + self.side(self.sizes[one], from[one], to[one]).0)
    }

    /// How far `leaf` is from `switch`, and `count` of each dimension that is crossed to the far side of its ring, given
    /// how far it is from there on.
    fn walk(&self, switch: u32, leaf: u32, mut count: impl FnMut(u32)) -> u32 {
        let (from, to) = (self.of(switch), self.of(leaf));
        let mut length = 0;
        for one in (0..self.sizes.len()).rev().filter(|one| from[*one] != to[*one]) {
            let (side, far) = self.side(self.sizes[one], from[one], to[one]);
            length += far;
            if side == BOTH {
                count(length);
            }
        }
        length
    }

    /// How many paths to `leaf` have names, of digits with so many values by length.
    pub(crate) fn paths(&self, switch: u32, leaf: u32, digits: &[(u32, u32)]) -> u32 {
        let mut paths: u32 = 1;
        self.walk(switch, leaf, |left| {
            paths = paths.saturating_mul(digits[left as usize].1.min(2));
        });
        paths
    }

    /// How far `leaf` is from `switch`.
    #[inline(never)]
    pub(crate) fn length(&self, switch: u32, leaf: u32) -> u32 {
        self.walk(switch, leaf, |_| {})
    }

    /// The most next hops at each length.
    pub(crate) fn radices(&self) -> Vec<u32> {
        let most = |size: &u32| if self.wraps && *size > 2 { size / 2 } else { size - 1 };
        let longest: u32 = self.sizes.iter().map(most).sum();
        let mut radices = vec![1; longest as usize + 1];
        for (one, size) in self.sizes.iter().enumerate() {
            if self.wraps && *size > 2 && size % 2 == 0 {
                let rest: u32 = self.sizes[one + 1..].iter().map(most).sum();
                radices[(size / 2) as usize..=(size / 2 + rest) as usize].fill(2);
            }
        }
        radices
    }

    /// The lists of next hops of `switch`: none, then for each dimension up, down, and both, in the order of ports.
    pub(crate) fn lists(&self, fabric: &Fabric, switch: SwitchId) -> Vec<Vec<PortId>> {
        let mut lists = vec![Vec::new(); SIDES * self.sizes.len() + 1];
        let own = self.of(switch.0);
        for port in fabric.ports_of(switch).ids() {
            let Node::Switch(SwitchId(peer)) = fabric.ports()[port].peer else { continue };
            let other = self.of(peer);
            let Some(one) = (0..self.sizes.len()).find(|one| own[*one] != other[*one]) else {
                continue;
            };
            let side = self.side(self.sizes[one], own[one], other[one]).0;
            lists[SIDES * one + side].push(port);
            lists[SIDES * one + BOTH].push(port);
        }
        lists
    }
}
