//! Finds the folded Clos in a list of links.
//!
//! The tier of a switch is its distance from the nearest host. Switches that hang together
//! below the cores are a pod; cores under the same switch of the first pod are a plane.
//!
//! Invariant: every link is checked against the one place that the result gives it, so what is
//! recognised has neither a link more nor a link less than the file. Each check costs what the
//! links of its tier do.

use super::Odd;
use crate::topology::Graph;
use crate::{Bundle, Clos, Fabric, FabricError, Link, Node, Tiers};
use std::collections::BTreeMap;
use weft_units::{HostId, SwitchId};

/// One link of the file.
#[derive(Clone, Copy)]
pub(super) struct Wire {
    pub(super) line: u64,
    pub(super) ends: [u32; 2],
    pub(super) link: Link,
}

/// What a node of a file is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Host,
    Switch,
    /// No part of the network; no link leads there. As one of ours it is host 0, for want of another word.
    Apart,
}

/// All links of a file. Ends are below the number of nodes, and no link is a loop.
pub(super) struct Wires {
    pub(super) roles: Vec<Role>,
    pub(super) wires: Vec<Wire>,
}

impl Wires {
    pub(super) fn is_switch(&self, node: u32) -> bool {
        self.roles[node as usize] == Role::Switch
    }
    /// What stands for a node that is no part of the network.
    const APART: Node = Node::Host(HostId(0));
}

/// Parallel links by their lower and upper end.
type Pairs = BTreeMap<(u32, u32), u32>;

/// The Clos, and what each node is in it.
///
/// # Errors
/// The first thing that no regular folded Clos has, naming its node.
pub(super) fn recognise(wires: &Wires) -> Result<(Clos, Vec<Node>), Odd> {
    let levels = Levels::new(wires)?;
    let hosts_per_leaf = levels.hosts_per_leaf()?;
    let Some(host_link) = levels.links[0] else {
        return Err(Odd::whole("there are no hosts; add some, each with a link to a switch"));
    };
    let mut pods = Pods::new(&levels)?;
    let leaf_members = pods.check_mesh(&levels)?;
    let planes = Planes::new(&levels, &mut pods)?;
    let bundle = |link: Option<Link>, members| match link {
        Some(link) => Bundle { link, members },
        None => Bundle { link: host_link, members: 1 },
    };
    let clos = Clos {
        leaf_bundle: bundle(levels.links[1], leaf_members),
        agg_bundle: bundle(levels.links[2], planes.members),
        ..Clos::uniform(pods.tiers(&planes), hosts_per_leaf, host_link)
    };
    let nodes = number(&levels, &pods, &planes);
    Ok((clos, nodes))
}

/// What a list of links is a network of.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// The folded Clos that it is.
    Clos(Clos),
    /// Any other network.
    Graph {
        /// By its links. Switches have the numbers that they have in the file; hosts of a switch are numbered
        /// together, in the order of the first host of each.
        graph: Graph,
        /// Why it is no Clos, with the name of the file and the line.
        why: String,
    },
}

/// The Clos of the links if they are one, else the graph, and what each node is in it; `name` is that of the file.
///
/// # Errors
/// Why they are no Clos, if they are no network of any shape either.
pub(super) fn network(name: &str, wires: &Wires) -> Result<(Network, Vec<Node>), Odd> {
    let valid = |(clos, nodes): (Clos, Vec<Node>)| match clos.validate() {
        Ok(()) => Ok((Network::Clos(clos), nodes)),
        Err(error) => Err(Odd::whole(error)),
    };
    recognise(wires).and_then(valid).or_else(|why| match graph(wires) {
        Some(Ok((graph, nodes))) => Ok((Network::Graph { graph, why: why.of(name).0 }, nodes)),
        Some(Err(error)) => Err(Odd::whole(error)),
        None => Err(why),
    })
}

/// The network of any shape that the links are, and what each node is in it; `None`: a host has no link, links of
/// hosts differ, or parts have no link between them. An error says what is wrong with hosts of several links.
pub(super) fn graph(wires: &Wires) -> Option<Result<(Graph, Vec<Node>), FabricError>> {
    let leaves = leaves(wires)?;
    let between = |wire: &&Wire| wire.ends.iter().all(|end| wires.is_switch(*end));
    let mut host_links = wires.wires.iter().filter(|wire| !between(wire)).map(|wire| wire.link);
    let host_link = host_links.next()?;
    if host_links.any(|link| link != host_link) {
        return None;
    }
    let mut leaves: Vec<(Vec<u32>, Vec<u32>)> = leaves.into_iter().collect();
    leaves.sort_unstable_by_key(|(_, hosts)| hosts[0]);
    let apart = |role: &Role| (*role == Role::Apart).then_some(Wires::APART);
    let mut nodes: Vec<Option<Node>> = wires.roles.iter().map(apart).collect();
    let mut host_switches = Vec::new();
    let mut other_switches = Vec::new();
    for (switches, hosts) in &leaves {
        for host in hosts {
            nodes[*host as usize] = Some(Node::Host(HostId(host_switches.len() as u32)));
            host_switches.push(switches[0]);
            other_switches.push(switches[1..].to_vec());
        }
    }
    if other_switches.iter().all(Vec::is_empty) {
        other_switches.clear();
    }
    let link = |wire: &Wire| (wire.ends[0], wire.ends[1], wire.link);
    let links = wires.wires.iter().filter(between).map(link).collect();
    let graph = Graph { host_switches, other_switches, host_link, links };
    let switches = graph.switches();
    let built = graph.wiring().and_then(Fabric::of_wiring);
    let switches = match (built.and(switches), graph.other_switches.is_empty()) {
        (Ok(switches), _) => switches,
        (Err(_), true) => return None,
        (Err(error), false) => return Some(Err(error)),
    };
    for (number, node) in (0..).zip(switches) {
        nodes[node as usize] = Some(Node::Switch(SwitchId(number)));
    }
    // A switch without links is none of ours.
    Some(Ok((graph, nodes.into_iter().collect::<Option<_>>()?)))
}

/// The hosts of each list of switches, if all have links to some, and to switches only.
fn leaves(wires: &Wires) -> Option<BTreeMap<Vec<u32>, Vec<u32>>> {
    let mut above: Vec<Vec<u32>> = vec![Vec::new(); wires.roles.len()];
    for wire in &wires.wires {
        for [host, peer] in [wire.ends, [wire.ends[1], wire.ends[0]]] {
            if !wires.is_switch(host) {
                above[host as usize].push(peer);
            }
        }
    }
    let mut leaves: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for (host, mut switches) in (0..).zip(above) {
        if wires.roles[host as usize] != Role::Host {
            continue;
        }
        switches.sort_unstable();
        if switches.is_empty() || switches.iter().any(|peer| !wires.is_switch(*peer)) {
            return None;
        }
        leaves.entry(switches).or_default().push(host);
    }
    Some(leaves)
}

/// What the switches of a tier are called, from below.
const NAMES: [&str; 3] = ["leaf", "spine or aggregation switch", "core"];

/// Nodes by their distance from the hosts.
struct Levels {
    /// 0 for hosts, 1 for leaves, up to 3 for cores.
    of: Vec<u8>,
    /// The switches of each tier in the order of their numbers.
    tiers: [Vec<u32>; 3],
    /// The hosts of each leaf in the order of their numbers.
    hosts: BTreeMap<u32, Vec<u32>>,
    /// The parallel links up from hosts, leaves and aggregation switches.
    pairs: [Pairs; 3],
    /// What all links at each of these levels are.
    links: [Option<Link>; 3],
}

impl Levels {
    fn new(wires: &Wires) -> Result<Levels, Odd> {
        let hosts = hosts(wires)?;
        let of = distances(wires)?;
        let mut tiers = [Vec::new(), Vec::new(), Vec::new()];
        for (node, level) in (0..).zip(&of) {
            if *level > 0 {
                tiers[usize::from(*level) - 1].push(node);
            }
        }
        let mut levels = Levels { of, tiers, hosts, pairs: Default::default(), links: [None; 3] };
        let mut firsts = [None; 3];
        for wire in &wires.wires {
            levels.take(wire, &mut firsts)?;
        }
        Ok(levels)
    }

    /// Sorts one link in, if it is like the first of its level.
    fn take<'a>(&mut self, wire: &'a Wire, firsts: &mut [Option<&'a Wire>; 3]) -> Result<(), Odd> {
        let [a, b] = wire.ends;
        let level = |node: u32| self.of[node as usize];
        if level(a) == level(b) {
            let tier = NAMES[usize::from(level(a)) - 1];
            let what = format!(
                "switches {a} and {b} are linked, but both are of one tier ({tier}); a folded Clos \
                 has no such link"
            );
            return Err(Odd::at(wire.line, what));
        }
        let (low, high) = if level(a) < level(b) { (a, b) } else { (b, a) };
        let at = usize::from(level(low));
        let first = *firsts[at].get_or_insert(wire);
        if first.link != wire.link {
            let show = |link: Link| format!("{} and {}", link.rate, link.delay);
            let what = format!(
                "{} from {a} to {b}, but {} on line {}, of the same tier; links of one tier have \
                 one rate and delay",
                show(wire.link),
                show(first.link),
                first.line
            );
            return Err(Odd::at(wire.line, what));
        }
        self.links[at] = Some(wire.link);
        *self.pairs[at].entry((low, high)).or_default() += 1;
        Ok(())
    }

    fn hosts_per_leaf(&self) -> Result<u32, Odd> {
        let mut counts = self.hosts.iter().map(|(leaf, hosts)| (*leaf, hosts.len()));
        let Some((first, count)) = counts.next() else { return Ok(0) };
        if let Some((leaf, other)) = counts.find(|(_, other)| *other != count) {
            let what = format!(
                "switch {first} has {count} hosts and switch {leaf} has {other}; every leaf needs \
                 as many"
            );
            return Err(Odd::whole(what));
        }
        Ok(count as u32)
    }
}

/// The hosts by leaf, if each has exactly one link, to a switch.
fn hosts(wires: &Wires) -> Result<BTreeMap<u32, Vec<u32>>, Odd> {
    let mut above: Vec<Option<&Wire>> = vec![None; wires.roles.len()];
    let mut leaves: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for wire in &wires.wires {
        for [host, peer] in [wire.ends, [wire.ends[1], wire.ends[0]]] {
            if wires.is_switch(host) {
                continue;
            }
            if !wires.is_switch(peer) {
                let what = format!("hosts {host} and {peer} are linked; link each to a switch");
                return Err(Odd::at(wire.line, what));
            }
            if let Some(first) = above[host as usize].replace(wire) {
                let what = format!(
                    "host {host} has another link on line {}; a folded Clos has hosts of \
                     one link",
                    first.line
                );
                return Err(Odd::at(wire.line, what));
            }
            leaves.entry(peer).or_default().push(host);
        }
    }
    let alone = |host: &usize| wires.roles[*host] == Role::Host && above[*host].is_none();
    if let Some(host) = (0..above.len()).find(alone) {
        return Err(Odd::whole(format!("host {host} has no link; connect it or drop it")));
    }
    leaves.values_mut().for_each(|hosts| hosts.sort_unstable());
    Ok(leaves)
}

/// How many links every node is from the nearest host.
fn distances(wires: &Wires) -> Result<Vec<u8>, Odd> {
    let mut peers = vec![Vec::new(); wires.roles.len()];
    for wire in &wires.wires {
        let [a, b] = wire.ends;
        peers[a as usize].push(b);
        peers[b as usize].push(a);
    }
    let mut of: Vec<Option<u8>> =
        wires.roles.iter().map(|role| (*role != Role::Switch).then_some(0)).collect();
    let mut frontier: Vec<usize> = (0..of.len()).filter(|node| of[*node] == Some(0)).collect();
    for level in 1..=3 {
        let mut next = Vec::new();
        for peer in frontier.iter().flat_map(|node| &peers[*node]) {
            if of[*peer as usize].is_none() {
                of[*peer as usize] = Some(level);
                next.push(*peer as usize);
            }
        }
        frontier = next;
    }
    let known = |(node, level): (usize, &Option<u8>)| {
        level.ok_or_else(|| {
            Odd::whole(format!(
                "switch {node} is not within three links of a host; only two or three tiers of \
                 switches can be imported"
            ))
        })
    };
    of.iter().enumerate().map(known).collect()
}

/// Which switches form a pod.
struct Pods {
    /// The pod of every leaf and of every switch above leaves.
    of: BTreeMap<u32, usize>,
    /// The leaves of each pod, in the order of their first hosts.
    leaves: Vec<Vec<u32>>,
    /// The switches above them, in the order of their planes.
    mids: Vec<Vec<u32>>,
}

impl Pods {
    fn new(levels: &Levels) -> Result<Pods, Odd> {
        let mut peers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (leaf, mid) in levels.pairs[1].keys() {
            peers.entry(*leaf).or_default().push(*mid);
            peers.entry(*mid).or_default().push(*leaf);
        }
        let mut leaves: Vec<u32> = levels.tiers[0].clone();
        leaves.sort_by_key(|leaf| levels.hosts[leaf][0]);
        let mut pods =
            Pods { of: BTreeMap::new(), leaves: Vec::new(), mids: vec![Vec::new(); leaves.len()] };
        for leaf in leaves {
            if !pods.of.contains_key(&leaf) {
                pods.reach(leaf, &peers);
                pods.leaves.push(Vec::new());
            }
            pods.leaves[pods.of[&leaf]].push(leaf);
        }
        for mid in &levels.tiers[1] {
            pods.mids[pods.of[mid]].push(*mid);
        }
        pods.mids.truncate(pods.leaves.len());
        pods.check_sizes(levels)?;
        Ok(pods)
    }

    /// All that hangs together with `start` is the next pod.
    fn reach(&mut self, start: u32, peers: &BTreeMap<u32, Vec<u32>>) {
        let pod = self.leaves.len();
        let mut open = vec![start];
        self.of.insert(start, pod);
        while let Some(switch) = open.pop() {
            for peer in peers.get(&switch).into_iter().flatten() {
                if self.of.insert(*peer, pod).is_none() {
                    open.push(*peer);
                }
            }
        }
    }

    fn check_sizes(&self, levels: &Levels) -> Result<(), Odd> {
        let first = self.leaves[0][0];
        for (leaves, mids) in self.leaves.iter().zip(&self.mids).skip(1) {
            let leaf = leaves[0];
            if levels.tiers[2].is_empty() {
                let what = format!(
                    "switches {first} and {leaf} are not connected; every leaf needs a link to \
                     every spine"
                );
                return Err(Odd::whole(what));
            }
            let sizes = [
                ("leaves", self.leaves[0].len(), leaves.len()),
                ("aggregation switches", self.mids[0].len(), mids.len()),
            ];
            if let Some((kind, here, there)) = sizes.iter().find(|(_, here, there)| here != there) {
                let what = format!(
                    "the pod of switch {first} has {here} {kind} and that of switch {leaf} has \
                     {there}; every pod needs as many"
                );
                return Err(Odd::whole(what));
            }
        }
        Ok(())
    }

    /// Whether within each pod every leaf has as many links to every switch above; how many.
    fn check_mesh(&self, levels: &Levels) -> Result<u32, Odd> {
        let pairs = &levels.pairs[1];
        let Some((example, members)) = pairs.iter().next() else { return Ok(1) };
        for (leaves, mids) in self.leaves.iter().zip(&self.mids) {
            // Stops at the first pair without a link, so it takes no more steps than links.
            for pair in leaves.iter().flat_map(|leaf| mids.iter().map(move |mid| (*leaf, *mid))) {
                same_members(pairs, pair, (*example, *members))?;
            }
        }
        Ok(*members)
    }

    fn tiers(&self, planes: &Planes) -> Tiers {
        let count = |switches: &Vec<u32>| switches.len() as u32;
        let (leaves, mids) = (count(&self.leaves[0]), count(&self.mids[0]));
        match planes.cores.iter().map(count).sum() {
            0 => Tiers::Two { leaves, spines: mids.max(1) },
            cores => Tiers::Three {
                pods: self.leaves.len() as u32,
                leaves_per_pod: leaves,
                aggs_per_pod: mids,
                cores,
            },
        }
    }
}

/// Whether the parallel links of `pair` are as many as those of the `example`.
fn same_members(pairs: &Pairs, pair: (u32, u32), example: ((u32, u32), u32)) -> Result<(), Odd> {
    let ((from, to), members) = example;
    let (low, high) = pair;
    match pairs.get(&pair).copied().unwrap_or(0) {
        have if have == members => Ok(()),
        0 => Err(Odd::whole(format!(
            "switches {low} and {high} have no link, where {from} and {to} have {members}; add it, \
             and describe dead links as failures"
        ))),
        have => Err(Odd::whole(format!(
            "links between switches {low} and {high}: {have}, between {from} and {to}: {members}; \
             every bundle of a tier needs as many"
        ))),
    }
}

/// The cores by plane.
struct Planes {
    cores: Vec<Vec<u32>>,
    /// Links from an aggregation switch to a core of its plane.
    members: u32,
}

impl Planes {
    /// Finds them, and puts the aggregation switches of every pod in their order.
    fn new(levels: &Levels, pods: &mut Pods) -> Result<Planes, Odd> {
        let pairs = &levels.pairs[2];
        let mut planes = Planes { cores: vec![Vec::new(); pods.mids[0].len()], members: 1 };
        let Some((example, members)) = pairs.iter().next() else {
            return Ok(Planes { cores: Vec::new(), ..planes });
        };
        planes.members = *members;
        let mut below: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pair in pairs.keys() {
            same_members(pairs, *pair, (*example, *members))?;
            below.entry(pair.1).or_default().push(pair.0);
        }
        let mut plane_of: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
        let place: BTreeMap<u32, usize> =
            pods.mids[0].iter().enumerate().map(|(place, mid)| (*mid, place)).collect();
        for (core, mids) in &below {
            let plane = place[&one_in_each_pod(*core, mids, pods)?];
            planes.cores[plane].push(*core);
            for mid in mids {
                same_plane(*mid, *plane_of.entry(*mid).or_insert((plane, *core)), (plane, *core))?;
            }
        }
        planes.check_sizes(&pods.mids[0])?;
        for mids in &mut pods.mids {
            mids.sort_by_key(|mid| plane_of.get(mid).map(|(plane, _)| *plane));
        }
        Ok(planes)
    }

    fn check_sizes(&self, mids: &[u32]) -> Result<(), Odd> {
        let sizes: Vec<usize> = self.cores.iter().map(Vec::len).collect();
        match (0..sizes.len()).find(|plane| sizes[*plane] != sizes[0]) {
            None => Ok(()),
            Some(plane) => Err(Odd::whole(format!(
                "switch {} is below {} cores and switch {} below {}; every aggregation switch \
                 needs as many",
                mids[0], sizes[0], mids[plane], sizes[plane]
            ))),
        }
    }
}

/// The one of `mids`, the switches below `core`, that is in the first pod, if there is exactly
/// one in every pod.
fn one_in_each_pod(core: u32, mids: &[u32], pods: &Pods) -> Result<u32, Odd> {
    let mut by_pod = BTreeMap::new();
    for mid in mids {
        if let Some(other) = by_pod.insert(pods.of[mid], *mid) {
            let what = format!(
                "core {core} has links to switches {other} and {mid} of one pod; a core has a link \
                 to one switch of each"
            );
            return Err(Odd::whole(what));
        }
    }
    if let Some(pod) = (0..pods.leaves.len()).find(|pod| !by_pod.contains_key(pod)) {
        let what = format!(
            "core {core} has no link into the pod of switch {}; a core has a link to one switch of \
             each",
            pods.leaves[pod][0]
        );
        return Err(Odd::whole(what));
    }
    Ok(by_pod[&0])
}

/// Whether a switch below two cores finds them in one plane; cores with their planes.
fn same_plane(mid: u32, first: (usize, u32), other: (usize, u32)) -> Result<(), Odd> {
    if first.0 == other.0 {
        return Ok(());
    }
    Err(Odd::whole(format!(
        "switch {mid} is below cores {} and {}, which are above different switches of the first \
         pod; cores in planes are above the same ones",
        first.1, other.1
    )))
}

/// What each node is: leaves pod by pod, then the switches above them, then cores by plane.
fn number(levels: &Levels, pods: &Pods, planes: &Planes) -> Vec<Node> {
    let mut nodes = vec![Wires::APART; levels.of.len()];
    let leaves = || pods.leaves.iter().flatten();
    let switches = leaves().chain(pods.mids.iter().flatten()).chain(planes.cores.iter().flatten());
    for (id, switch) in (0..).zip(switches) {
        nodes[*switch as usize] = Node::Switch(SwitchId(id));
    }
    for (id, host) in (0..).zip(leaves().flat_map(|leaf| &levels.hosts[leaf])) {
        nodes[*host as usize] = Node::Host(HostId(id));
    }
    nodes
}
