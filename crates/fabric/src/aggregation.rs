//! Aggregation trees: switches that together reduce what some hosts send, and copy the result to them.
//!
//! A tree has a root, and from every leaf with such hosts the shortest way to it. In a Clos the root is the
//! hosts' leaf, if they share one, else a switch of the lowest tier that is above all of them; in other networks
//! a switch that is nearest to the farthest of their leaves. Which of several, and which of parallel links, is
//! for a number to say that differs from tree to tree, so that trees spread over the fabric.
//!
//! In a fabric of planes a tree is in one of them; where hosts have several homes it is at one home of each. With
//! which it begins differs from tree to tree, too.
//!
//! Links that are known to be dead, in either direction, are in no tree; with them a root may be farther away
//! than it had to be else.

use crate::{Fabric, Node};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_units::{HostId, PortId, SwitchId};

/// A tree over switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregationTree {
    /// By switch.
    branches: BTreeMap<SwitchId, Branch>,
    nics: Vec<PortId>,
}

/// A switch of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The port to the next switch up; `None`: it is the root.
    pub up: Option<PortId>,
    /// The ports down, to switches and hosts of the tree, sorted.
    pub down: Vec<PortId>,
    /// The hosts below, by their places among all of the tree, sorted; beside the port down to each, by its
    /// place in [`Branch::down`].
    pub below: Vec<(u32, u32)>,
    /// How many hosts are below each port of [`Branch::down`].
    pub sizes: Vec<u32>,
}

impl Branch {
    /// By which port down the host at `place` is below, if it is.
    pub fn child_of(&self, place: u32) -> Option<u32> {
        let at = self.below.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(self.below[at].1)
    }
}

impl AggregationTree {
    /// A tree for `hosts`, each named once, around links that are `dead` (sorted). `spread` says which of those
    /// that are equally good. `None`: some host cannot be reached by the others.
    pub fn new(
        fabric: &Fabric,
        hosts: &[HostId],
        spread: u32,
        dead: &[PortId],
    ) -> Option<AggregationTree> {
        let planes = fabric.planes();
        let plane = |turn: u32| (spread + turn) % planes;
        (0..planes).find_map(|turn| in_plane(fabric, hosts, (plane(turn), spread / planes), dead))
    }
    /// Its switches, sorted.
    pub fn switches(&self) -> impl Iterator<Item = (SwitchId, &Branch)> {
        self.branches.iter().map(|(switch, branch)| (*switch, branch))
    }
    /// What a switch has to do with it.
    pub fn at(&self, switch: SwitchId) -> Option<&Branch> {
        self.branches.get(&switch)
    }
    /// The port of the NIC of the host at `place` that its packets leave by.
    pub fn nic(&self, place: u32) -> PortId {
        self.nics[place as usize]
    }
    /// Whether one of its links is among those that are `dead`, sorted.
    pub fn uses(&self, fabric: &Fabric, dead: &[PortId]) -> bool {
        let down = self.branches.values().flat_map(|branch| &branch.down);
        down.into_iter().any(|port| is_dead(fabric, *port, dead))
    }
}

fn is_dead(fabric: &Fabric, port: PortId, dead: &[PortId]) -> bool {
    let has = |port| dead.binary_search(&port).is_ok();
    !dead.is_empty() && (has(port) || has(fabric.ports()[port].reverse))
}

/// The tree in one plane.
fn in_plane(
    fabric: &Fabric,
    hosts: &[HostId],
    (plane, spread): (u32, u32),
    dead: &[PortId],
) -> Option<AggregationTree> {
    let nics = nics(fabric, hosts, (plane, spread), dead);
    let spread = spread / fabric.homes();
    let first = nics.iter().map(|own| own.first().map(|nic| leaf(fabric, *nic)));
    let leaves: BTreeSet<SwitchId> = first.collect::<Option<_>>()?;
    let mut best: Option<(u32, Vec<PortId>, Ways)> = None;
    let (roots, height) = roots(fabric, hosts, &leaves, plane);
    let first = spread as usize % roots.len().max(1);
    for root in roots[first..].iter().chain(&roots[..first]) {
        let ways = ways(fabric, *root, spread, dead);
        let Some((farthest, linked)) = linked(fabric, &ways, &nics) else { continue };
        if best.as_ref().is_none_or(|(known, ..)| farthest < *known) {
            best = Some((farthest, linked, ways));
        }
        if Some(farthest) == height {
            break;
        }
    }
    let (_, nics, ways) = best?;
    Some(grown(fabric, &ways, nics))
}

fn leaf(fabric: &Fabric, nic: PortId) -> SwitchId {
    match fabric.ports()[nic].peer {
        Node::Switch(leaf) => leaf,
        Node::Host(_) => unreachable!("NICs lead to switches"),
    }
}

/// By host, the ports of its NIC that its packets may leave by, the best one first: where all hosts that share
/// its leaves can go to the same one, so that this adds up for them.
fn nics(
    fabric: &Fabric,
    hosts: &[HostId],
    (plane, spread): (u32, u32),
    dead: &[PortId],
) -> Vec<Vec<PortId>> {
    let homes = fabric.homes();
    // Of planes and homes a network has one or the other.
    let nic = |host, turn| fabric.nic_in_plane(host, plane + (spread + turn) % homes);
    let is_live = |host, turn| !is_dead(fabric, nic(host, turn), dead);
    let ports = hosts.iter().flat_map(|host| (0..homes).map(move |turn| (*host, turn)));
    let lacking: BTreeSet<(u32, u32)> = ports
        .filter(|(host, turn)| !is_live(*host, *turn))
        .map(|(host, turn)| (fabric.leaf_of(host), turn))
        .collect();
    let of_host = |host: &HostId| {
        let mut turns: Vec<u32> = (0..homes).filter(|turn| is_live(*host, *turn)).collect();
        turns.sort_by_key(|turn| lacking.contains(&(fabric.leaf_of(*host), *turn)));
        turns.into_iter().map(|turn| nic(*host, turn)).collect()
    };
    hosts.iter().map(of_host).collect()
}

/// How far the farthest leaf is from a root, and which of its `nics` each host takes, if there is a way to all.
fn linked(fabric: &Fabric, ways: &Ways, nics: &[Vec<PortId>]) -> Option<(u32, Vec<PortId>)> {
    let mut farthest = 0;
    let of_host = |own: &Vec<PortId>| {
        let far = |nic: &PortId| ways.get(&leaf(fabric, *nic)).map(|(far, _)| (*nic, *far));
        let (nic, far) = own.iter().find_map(far)?;
        farthest = farthest.max(far);
        Some(nic)
    };
    let linked = nics.iter().map(of_host).collect::<Option<_>>()?;
    Some((farthest, linked))
}

/// The switches that may be the root, and how far the farthest leaf is from each of them at the least, where
/// that is known.
fn roots(
    fabric: &Fabric,
    hosts: &[HostId],
    leaves: &BTreeSet<SwitchId>,
    plane: u32,
) -> (Vec<SwitchId>, Option<u32>) {
    if leaves.len() == 1 {
        return (leaves.iter().copied().collect(), Some(0));
    }
    let all = fabric.switches_of_plane(plane);
    if fabric.clos().is_none() {
        return (all.collect(), None);
    }
    let pods: BTreeSet<u32> = hosts.iter().map(|host| fabric.pod_of(*host)).collect();
    let (tier, pod) = match pods.len() {
        1 => (1, pods.first().copied()),
        _ => (2, None),
    };
    let is_root = |switch: &SwitchId| {
        let at = fabric.pod_of_switch(*switch);
        fabric.tier(*switch) == tier && (pod.is_none() || at == pod)
    };
    let mut roots: Vec<SwitchId> = all.filter(is_root).collect();
    if let (2, Some(clos)) = (tier, fabric.clos()) {
        // Cores that follow each other hang on one aggregation switch of a pod: one of each first.
        let per_plane = clos.cores_per_plane().max(1) as usize;
        let mut turns: Vec<(usize, SwitchId)> =
            roots.into_iter().enumerate().map(|(at, root)| (at % per_plane, root)).collect();
        turns.sort_unstable();
        roots = turns.into_iter().map(|(_, root)| root).collect();
    }
    (roots, Some(u32::from(tier)))
}

/// From every switch that can be reached from a root: how far it is, and its port towards that.
type Ways = BTreeMap<SwitchId, (u32, Option<PortId>)>;

fn ways(fabric: &Fabric, root: SwitchId, spread: u32, dead: &[PortId]) -> Ways {
    let mut ways = Ways::from([(root, (0, None))]);
    let mut queue = VecDeque::from([root]);
    while let Some(switch) = queue.pop_front() {
        let (far, _) = ways[&switch];
        let ports = fabric.ports_of(switch);
        let turned = (0..ports.count).map(|at| (at + spread) % ports.count.max(1));
        for port in turned.map(|at| PortId(ports.first.0 + at)) {
            let Node::Switch(next) = fabric.ports()[port].peer else { continue };
            if !ways.contains_key(&next) && !is_dead(fabric, port, dead) {
                ways.insert(next, (far + 1, Some(fabric.ports()[port].reverse)));
                queue.push_back(next);
            }
        }
    }
    ways
}

/// The tree of these ways.
fn grown(fabric: &Fabric, ways: &Ways, nics: Vec<PortId>) -> AggregationTree {
    let mut down: BTreeMap<SwitchId, BTreeMap<PortId, Vec<u32>>> = BTreeMap::new();
    let mut up = BTreeMap::new();
    for (place, nic) in (0..).zip(&nics) {
        let mut port = *nic;
        loop {
            let (peer, back) = (fabric.ports()[port].peer, fabric.ports()[port].reverse);
            let Node::Switch(switch) = peer else { unreachable!("ways lead to switches") };
            down.entry(switch).or_default().entry(back).or_default().push(place);
            let (_, next) = ways[&switch];
            up.insert(switch, next);
            match next {
                Some(next) => port = next,
                None => break,
            }
        }
    }
    let branch = |(switch, children): (SwitchId, BTreeMap<PortId, Vec<u32>>)| {
        let below = (0..)
            .zip(children.values())
            .flat_map(|(child, places)| places.iter().map(move |place| (*place, child)));
        let mut below: Vec<(u32, u32)> = below.collect();
        below.sort_unstable();
        let sizes = children.values().map(|places| places.len() as u32).collect();
        (switch, Branch { up: up[&switch], down: children.into_keys().collect(), below, sizes })
    };
    AggregationTree { branches: down.into_iter().map(branch).collect(), nics }
}
