//! What is unusual about the way from some switches to some leaves: a list for each such pair.

use crate::{Fabric, Shape, Wiring};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_units::{FastDiv, HostId, IdVec, SwitchId};

/// Nothing unusual.
const AS_USUAL: u32 = u32::MAX;

/// Lists by switch and leaf; memory follows the switches that have any.
#[derive(Clone, Debug)]
pub(crate) struct Exceptions<T> {
    leaf_of: LeafOf,
    leaves: u32,
    /// Where the leaves of a switch begin in `slots`; [`AS_USUAL`] for a switch without lists.
    rows: IdVec<SwitchId, u32>,
    /// For each leaf which of `lists`, or [`AS_USUAL`].
    slots: Vec<u32>,
    /// Where they stand in `items`: first and end.
    lists: Vec<(u32, u32)>,
    items: Vec<T>,
    /// The list of a switch and a host, where it is not that of the leaf.
    by_host: FxHashMap<(SwitchId, HostId), u32>,
}

/// Tells the leaf of a host.
#[derive(Clone, Debug)]
enum LeafOf {
    Even(FastDiv),
    Wiring(Arc<Wiring>),
}

impl<T: Clone> Exceptions<T> {
    /// None, in `fabric`.
    pub(crate) fn new(fabric: &Fabric) -> Exceptions<T> {
        Exceptions {
            leaf_of: match fabric.shape() {
                Shape::Clos(clos) => LeafOf::Even(FastDiv::new(clos.hosts_per_leaf)),
                Shape::Wiring(wiring) => LeafOf::Wiring(wiring.clone()),
            },
            leaves: fabric.leaves(),
            rows: (0..fabric.switches()).map(|_| AS_USUAL).collect(),
            slots: Vec::new(),
            lists: Vec::new(),
            items: Vec::new(),
            by_host: FxHashMap::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// The list of `switch` and the leaf of `dst`, if there is one.
    #[inline]
    pub(crate) fn get(&self, switch: SwitchId, dst: HostId) -> Option<&[T]> {
        if !self.by_host.is_empty()
            && let Some(list) = self.by_host.get(&(switch, dst))
        {
            return Some(self.list(*list));
        }
        let row = self.rows[switch];
        if row == AS_USUAL {
            return None;
        }
        let leaf = match &self.leaf_of {
            LeafOf::Even(hosts) => hosts.div(dst.0),
            LeafOf::Wiring(wiring) => wiring.hosts[dst.0 as usize],
        };
        let list = self.slots[(row + leaf) as usize];
        if list == AS_USUAL {
            return None;
        }
        Some(self.list(list))
    }

    fn list(&self, number: u32) -> &[T] {
        let (first, end) = self.lists[number as usize];
        &self.items[first as usize..end as usize]
    }

    /// Gives `switch` and `leaf`, which have none yet, a list.
    pub(crate) fn note(&mut self, switch: SwitchId, leaf: u32, list: &[T]) {
        if self.rows[switch] == AS_USUAL {
            self.rows[switch] = self.slots.len() as u32;
            self.slots.resize(self.slots.len() + self.leaves as usize, AS_USUAL);
        }
        let slot = (self.rows[switch] + leaf) as usize;
        self.slots[slot] = self.add(list);
    }

    /// Gives `switch` a list for `dst` alone.
    pub(crate) fn note_host(&mut self, switch: SwitchId, dst: HostId, list: &[T]) {
        let number = self.add(list);
        self.by_host.insert((switch, dst), number);
    }

    fn add(&mut self, list: &[T]) -> u32 {
        let first = self.items.len() as u32;
        self.items.extend_from_slice(list);
        self.lists.push((first, self.items.len() as u32));
        self.lists.len() as u32 - 1
    }
}
