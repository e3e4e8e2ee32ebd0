//! Shortest paths of a network of any shape, in tables: for every switch the next hops towards every leaf.
//!
//! A path is named by which of its next hops each switch on it takes: a digit for each length that may be
//! left. So a switch finds its digit without knowing where a packet comes from, and what names no path
//! still leads to the destination.
//!
//! Memory: 6 bytes for each switch and leaf. Next hops that are alike are kept once for each switch. Of a large grid ([`crate::grid`])
//! there are no tables, and entries are worked out.

use crate::grid::{Grid, Places};
use crate::{Fabric, Node, PathId, Shape};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use weft_units::{IdVec, PortId, SwitchId};

/// The tables of a fabric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    leaves: u32,
    /// For each switch and leaf; empty of a grid.
    entries: Vec<Entry>,
    grid: Places,
    /// Where each list of a switch begins and ends among `hops`.
    lists: IdVec<SwitchId, Vec<(u32, u32)>>,
    hops: Vec<PortId>,
    /// For each length that is left: how much one is worth in that digit, and how many values it has.
    digits: Vec<(u32, u32)>,
    /// The most that a link adds to a length.
    most_cost: u32,
    groups: u32,
    /// For each switch and group, which of the lists of the switch leads to the nearest switch of the group.
    to_groups: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Which of the lists of the switch.
    list: u16,
    /// How far the leaf is.
    length: u16,
    /// How many paths have names.
    paths: u16,
}

/// No path is as long.
const FAR: u32 = u16::MAX as u32;
/// A shortest path is named by 15 bits: one tells paths over another group.
const NAMES: u32 = 1 << 15;

impl Routes {
    /// Of a fabric whose ports are there, over the links that `cost` gives a length and a dimension; `None`: a link is
    /// not used.
    pub(crate) fn new(fabric: &Fabric, cost: impl Fn(PortId) -> Option<(u32, u32)>) -> Routes {
        let (switches, leaves) = (fabric.switches(), fabric.leaves());
        let nowhere = Entry { list: 0, length: FAR as u16, paths: 0 };
        let mut routes = Routes {
            leaves,
            entries: vec![nowhere; (switches * leaves) as usize],
            lists: (0..switches).map(|_| vec![(0, 0)]).collect(),
            ..Routes::default()
        };
        let mut search = Search::new(fabric, cost);
        let costs = search.ways.iter().map(|way| way.there).filter(|there| *there < FAR);
        routes.most_cost = costs.max().unwrap_or(1);
        let mut known: FxHashMap<u64, u16> = FxHashMap::default();
        let mut radices: Vec<u32> = Vec::new();
        let mut hops = Vec::new();
        for leaf in 0..leaves {
            search.go(&ends(fabric, leaf));
            for switch in (0..switches).map(SwitchId) {
                let length = search.lengths[switch.0 as usize];
                if length == FAR {
                    continue;
                }
                search.next_hops(switch, &mut hops);
                radices.resize(radices.len().max(length as usize + 1), 1);
                let radix = &mut radices[length as usize];
                *radix = (*radix).max(hops.len() as u32);
                let list = routes.list(&mut known, switch, &hops);
                let entry = Entry { list, length: length as u16, paths: 0 };
                routes.entries[(switch.0 * leaves + leaf) as usize] = entry;
            }
        }
        routes.digits = digits(&radices);
        (0..leaves).for_each(|leaf| routes.count_paths(fabric, leaf));
        routes.find_groups(fabric, &mut search, &mut known);
        routes
    }

    /// Of a grid, all of whose links are used.
    pub(crate) fn of_grid(fabric: &Fabric, grid: &Grid) -> Routes {
        let grid = Places::new(grid);
        let mut routes = Routes {
            leaves: fabric.leaves(),
            digits: digits(&grid.radices()),
            most_cost: 1,
            ..Routes::default()
        };
        for switch in (0..fabric.switches()).map(SwitchId) {
            let spans = grid.lists(fabric, switch).into_iter().map(|list| {
                let first = routes.hops.len() as u32;
                routes.hops.extend(list);
                (first, routes.hops.len() as u32)
            });
            let spans = spans.collect();
            routes.lists.push(spans);
        }
        routes.grid = grid;
        routes
    }

    /// Finds the ways to groups, if packets may go over others.
    fn find_groups(
        &mut self,
        fabric: &Fabric,
        search: &mut Search,
        known: &mut FxHashMap<u64, u16>,
    ) {
        if !fabric.has_detours() {
            return;
        }
        let switches = || (0..fabric.switches()).map(SwitchId);
        self.groups = fabric.pods();
        self.to_groups = vec![0; (fabric.switches() * self.groups) as usize];
        let mut hops = Vec::new();
        for group in 0..self.groups {
            let own = switches().filter(|switch| fabric.pod_of_switch(*switch) == Some(group));
            search.go(&own.map(|switch| switch.0).collect::<Vec<_>>());
            for switch in switches() {
                search.next_hops(switch, &mut hops);
                let list = self.list(known, switch, &hops);
                self.to_groups[(switch.0 * self.groups + group) as usize] = list;
            }
        }
    }

    /// The switches that reach `leaf`, the nearest first.
    pub(crate) fn nearest_first(&self, leaf: u32) -> Vec<SwitchId> {
        let mut order: Vec<SwitchId> =
            self.lists.ids().filter(|switch| self.reaches(*switch, leaf)).collect();
        order.sort_unstable_by_key(|switch| self.length(*switch, leaf));
        order
    }

    /// Counts the paths to `leaf` that have names, from the nearest switches on.
    fn count_paths(&mut self, fabric: &Fabric, leaf: u32) {
        for switch in self.nearest_first(leaf) {
            let hops = self.named_hops(switch, leaf).iter();
            let behind = hops.map(|hop| self.paths_behind(fabric, *hop, leaf));
            let is_there = self.length(switch, leaf) == 0;
            let paths = if is_there { 1 } else { behind.sum() };
            let entry = &mut self.entries[(switch.0 * self.leaves + leaf) as usize];
            entry.paths = u32::min(paths, NAMES - 1) as u16;
        }
    }

    /// The number of a list of a switch, which may be known by its hash.
    fn list(&mut self, known: &mut FxHashMap<u64, u16>, switch: SwitchId, hops: &[PortId]) -> u16 {
        if hops.is_empty() {
            return 0;
        }
        let mut hasher = FxHasher::default();
        (switch, hops).hash(&mut hasher);
        let key = hasher.finish();
        let own = &mut self.lists[switch];
        let is_it = |list: &(u32, u32)| self.hops[list.0 as usize..list.1 as usize] == *hops;
        if let Some(list) = known.get(&key)
            && own.get(usize::from(*list)).is_some_and(is_it)
        {
            return *list;
        }
        let first = self.hops.len() as u32;
        own.push((first, first + hops.len() as u32));
        self.hops.extend_from_slice(hops);
        let list = (own.len() - 1) as u16;
        known.insert(key, list);
        list
    }

    #[inline(always)]
    fn place(&self, switch: SwitchId, leaf: u32) -> usize {
        switch.0 as usize * self.leaves as usize + leaf as usize
    }
    /// How far `leaf` is from `switch`.
    #[inline]
    fn length(&self, switch: SwitchId, leaf: u32) -> u32 {
        match self.entries.get(self.place(switch, leaf)) {
            Some(entry) => u32::from(entry.length),
            None => self.grid.length(switch.0, leaf),
        }
    }
    /// The ports of `switch` that lead to `leaf` on shortest paths; none at the leaf itself, or if there is no path.
    #[inline]
    pub(crate) fn next_hops(&self, switch: SwitchId, leaf: u32) -> &[PortId] {
        let list = match self.entries.get(self.place(switch, leaf)) {
            Some(entry) => usize::from(entry.list),
            None => self.grid.list(switch.0, leaf),
        };
        let (first, end) = self.lists[switch][list];
        &self.hops[first as usize..end as usize]
    }
    /// Those of them that names of paths tell apart.
    fn named_hops(&self, switch: SwitchId, leaf: u32) -> &[PortId] {
        let hops = self.next_hops(switch, leaf);
        let (_, radix) = self.digits[self.length(switch, leaf) as usize];
        &hops[..hops.len().min(radix as usize)]
    }
    /// How many shortest paths from `switch` to `leaf` have names.
    pub(crate) fn paths(&self, switch: SwitchId, leaf: u32) -> u32 {
        match self.entries.get(self.place(switch, leaf)) {
            Some(entry) => u32::from(entry.paths),
            None => self.grid.paths(switch.0, leaf, &self.digits).min(NAMES - 1),
        }
    }
    /// Whether there is a path from `switch` to `leaf`.
    pub(crate) fn reaches(&self, switch: SwitchId, leaf: u32) -> bool {
        self.length(switch, leaf) < FAR
    }
    fn paths_behind(&self, fabric: &Fabric, hop: PortId, leaf: u32) -> u32 {
        match fabric.ports()[hop].peer {
            Node::Host(_) => 1,
            Node::Switch(peer) => self.paths(peer, leaf),
        }
    }

    /// The next hop on the path of that name, among those that are `left` if some are not.
    #[inline]
    pub(crate) fn pinned(
        &self,
        switch: SwitchId,
        leaf: u32,
        path: PathId,
        left: Option<&[PortId]>,
    ) -> Option<PortId> {
        let hops = left.unwrap_or_else(|| self.next_hops(switch, leaf));
        let (worth, radix) = self.digits[self.length(switch, leaf) as usize];
        let digit = u32::from(path.0) / worth % radix;
        hops.get(digit as usize % hops.len().max(1)).copied()
    }

    /// The port of `switch` towards the nearest switch of `group`, by a digit; `None` within the group.
    #[inline]
    pub(crate) fn towards(&self, switch: SwitchId, group: u32, digit: u32) -> Option<PortId> {
        let list = self.to_groups.get((switch.0 * self.groups + group) as usize)?;
        let (first, end) = self.lists[switch][usize::from(*list)];
        let hops = &self.hops[first as usize..end as usize];
        hops.get(digit as usize % hops.len().max(1)).copied()
    }

    /// The ways to groups alone: those to leaves take most memory.
    pub(crate) fn into_group_ways(self) -> Routes {
        Routes { entries: Vec::new(), ..self }
    }

    /// The name of path `index` among those from `switch` to `leaf`, in the order of their ports.
    pub(crate) fn path(
        &self,
        fabric: &Fabric,
        mut switch: SwitchId,
        leaf: u32,
        index: u32,
    ) -> PathId {
        let (mut index, mut path) = (index, 0);
        while self.length(switch, leaf) > 0 {
            let (worth, _) = self.digits[self.length(switch, leaf) as usize];
            let mut digit = 0;
            for hop in self.named_hops(switch, leaf) {
                let behind = self.paths_behind(fabric, *hop, leaf);
                if index < behind {
                    break;
                }
                (index, digit) = (index - behind, digit + 1);
            }
            path += digit * worth;
            let Node::Switch(next) =
                fabric.ports()[self.next_hops(switch, leaf)[digit as usize]].peer
            else {
                unreachable!("only leaves lead to hosts")
            };
            switch = next;
        }
        PathId(path as u16)
    }

    /// No path from `switch` to `leaf`, shortest or not, crosses fewer links.
    pub(crate) fn least_links(&self, switch: SwitchId, leaf: u32) -> u32 {
        self.length(switch, leaf).div_ceil(self.most_cost)
    }
    /// The greatest length of a path.
    pub(crate) fn longest(&self) -> u32 {
        self.digits.len() as u32 - 1
    }
}

/// The switches of the hosts of a leaf.
fn ends(fabric: &Fabric, leaf: u32) -> Vec<u32> {
    match fabric.shape() {
        Shape::Clos(_) => vec![leaf],
        Shape::Wiring(wiring) => wiring.ends(leaf).collect(),
    }
}

/// A search of shortest ways to one leaf, or group, after the other.
pub(crate) struct Search {
    /// The ways from each switch to its neighbours, and where those of each begin.
    ways: Vec<Way>,
    firsts: Vec<u32>,
    /// How far each switch is from what is searched for.
    lengths: Vec<u32>,
    /// Switches that may be as far as a bucket's number.
    buckets: Vec<Vec<u32>>,
}

/// A link to a neighbour.
struct Way {
    port: PortId,
    peer: u32,
    dimension: u32,
    /// What the link and its reverse are long; [`FAR`], if it is not used.
    there: u32,
    back: u32,
}

impl Search {
    pub(crate) fn new(fabric: &Fabric, cost: impl Fn(PortId) -> Option<(u32, u32)>) -> Search {
        let (mut ways, mut firsts) = (Vec::new(), vec![0]);
        for switch in (0..fabric.switches()).map(SwitchId) {
            for port in fabric.ports_of(switch).ids() {
                let Node::Switch(SwitchId(peer)) = fabric.ports()[port].peer else { continue };
                let (there, back) = (cost(port), cost(fabric.ports()[port].reverse));
                let dimension = there.or(back).map_or(0, |one| one.1);
                let [there, back] = [there, back].map(|one| one.map_or(FAR, |one| one.0));
                ways.push(Way { port, peer, dimension, there, back });
            }
            firsts.push(ways.len() as u32);
        }
        Search { ways, firsts, lengths: vec![FAR; fabric.switches() as usize], buckets: Vec::new() }
    }

    fn ways_of(&self, switch: u32) -> &[Way] {
        let (first, end) = (self.firsts[switch as usize], self.firsts[switch as usize + 1]);
        &self.ways[first as usize..end as usize]
    }

    /// Finds how far each switch is from the nearest of `ends` (Dial 1969).
    pub(crate) fn go(&mut self, ends: &[u32]) {
        self.lengths.fill(FAR);
        ends.iter().for_each(|end| self.lengths[*end as usize] = 0);
        let mut buckets = std::mem::take(&mut self.buckets);
        buckets.resize(buckets.len().max(1), Vec::new());
        buckets[0].extend(ends);
        let mut length = 0;
        while length < buckets.len() {
            while let Some(switch) = buckets[length].pop() {
                if self.lengths[switch as usize] < length as u32 {
                    continue;
                }
                for number in self.firsts[switch as usize]..self.firsts[switch as usize + 1] {
                    // What matters is the way towards these.
                    let Way { peer, back, .. } = self.ways[number as usize];
                    let all = length as u32 + back;
                    if all < self.lengths[peer as usize] {
                        self.lengths[peer as usize] = all;
                        buckets.resize(buckets.len().max(all as usize + 1), Vec::new());
                        buckets[all as usize].push(peer);
                    }
                }
            }
            length += 1;
        }
        self.buckets = buckets;
    }

    /// The ports of `switch` on shortest ways, of the first dimension among these.
    pub(crate) fn next_hops(&self, switch: SwitchId, hops: &mut Vec<PortId>) {
        hops.clear();
        let own = self.lengths[switch.0 as usize];
        if own == FAR {
            // An unused link would seem to lead there.
            return;
        }
        let leads = |way: &&Way| self.lengths[way.peer as usize] + way.there == own;
        let first = self.ways_of(switch.0).iter().filter(leads).map(|way| way.dimension).min();
        let ways = self.ways_of(switch.0).iter().filter(leads);
        hops.extend(ways.filter(|way| Some(way.dimension) == first).map(|way| way.port));
    }
}

/// Digits for lengths, the shortest first. What does not fit into a name is not chosen by it.
fn digits(radices: &[u32]) -> Vec<(u32, u32)> {
    let mut worth = 1_u32;
    let digit = |radix: &u32| {
        let own = worth;
        match worth.saturating_mul(*radix) {
            all if all <= NAMES => {
                worth = all;
                (own, *radix)
            }
            _ => (1, 1),
        }
    };
    radices.iter().map(digit).collect()
}
