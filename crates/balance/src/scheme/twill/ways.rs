//! The ways from a host to the hosts of a leaf: paths, by the ports of its NIC.

use super::links::{Link, Span};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_fabric::{Fabric, PathId, PathView};
use weft_units::{HostId, PortId, Time};

/// A path, and a port of the NIC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) path: PathId,
    /// The port of the NIC. Its plane, where there are planes.
    pub(super) port: u8,
    /// Payload that has taken it, made up for those that had to wait.
    pub(super) given: u64,
    /// The queue that the last chunk met which has come back by it; `NaN`: none has.
    queue: f32,
}

/// All ways to a leaf, in the order in which they are taken.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    pub(super) ways: Vec<Way>,
    /// The links of each between its switches, by their numbers.
    links: Vec<u32>,
    /// The number of the queue that chunks to the leaf usually meet.
    pub(super) queue: u32,
    /// For the median of the queues of ways.
    known: Vec<f32>,
}

impl Ways {
    /// A chunk by the `at`-th way has met a queue. The usual one: half of the ways have a longer one.
    pub(super) fn learn(&mut self, at: usize, queue: Span) -> Span {
        self.ways[at].queue = queue as f32;
        self.known.clear();
        self.known.extend(self.ways.iter().map(|way| way.queue).filter(|queue| !queue.is_nan()));
        median(&mut self.known)
    }

    /// For how long chunks are out on half of the ways, at the least, beyond what they take where there is no queue.
    pub(super) fn waits(&self, links: &[Link], now: Time) -> Span {
        let of = |at: usize| {
            let waits = self.links(at).iter().map(|link| links[*link as usize].waits(now));
            waits.max().unwrap_or(Time::ZERO).0 as f32
        };
        let is_dead = |at: &usize| self.links(*at).iter().any(|link| links[*link as usize].is_dead);
        let all = 0..self.ways.len();
        let all_dead = all.clone().all(|at| is_dead(&at));
        median(&mut all.filter(|at| all_dead || !is_dead(at)).map(of).collect::<Vec<f32>>())
    }

    /// The links of the `at`-th way between its switches, by their numbers.
    pub(super) fn links(&self, at: usize) -> &[u32] {
        let each = self.links.len() / self.ways.len();
        &self.links[at * each..(at + 1) * each]
    }
}

/// The median of some values; the lower one.
fn median(values: &mut [f32]) -> Span {
    let middle = (values.len() - 1) / 2;
    Span::from(*values.select_nth_unstable_by(middle, f32::total_cmp).1)
}

/// The ways to a leaf, the links of all ways, and all queues.
pub(super) struct Known<'a> {
    pub(super) ways: &'a mut Ways,
    pub(super) links: &'a mut Vec<Link>,
    pub(super) queues: &'a mut Vec<Span>,
}

/// The queue that chunks usually meet, of `queues` by the numbers of those to their leaf and their receiver.
pub(super) fn usual(queues: &[Span], of: [u32; 2]) -> Span {
    queues[of[0] as usize].max(queues[of[1] as usize])
}

/// The links and ways that a host has used.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    pub(super) links: Vec<Link>,
    /// The queues that chunks usually meet: to each leaf, and to each receiver.
    pub(super) queues: Vec<Span>,
    /// What is known of links; nothing: all are alive.
    known: Option<Arc<PathView>>,
    numbers: FxHashMap<(u8, PortId), u32>,
    leaves: FxHashMap<u32, Ways>,
}

impl Network {
    /// The number of a link, as a port of the NIC reaches it.
    pub(super) fn link(&mut self, port: u8, link: PortId, fabric: &Fabric) -> u32 {
        let Network { links, known, .. } = self;
        *self.numbers.entry((port, link)).or_insert_with(|| {
            let mut new = Link::default();
            new.is_dead = known.as_ref().is_some_and(|known| is_dead(known, fabric, port, link));
            links.push(new);
            links.len() as u32 - 1
        })
    }

    /// So much is known of links from now on.
    pub(super) fn learn(&mut self, view: &Arc<PathView>, fabric: &Fabric) {
        for ((port, link), number) in &self.numbers {
            self.links[*number as usize].is_dead = is_dead(view, fabric, *port, *link);
        }
        self.known = Some(Arc::clone(view));
    }
    /// Whether some links may be known to be dead.
    pub(super) fn knows(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.is_plain())
    }

    /// One more queue, of which nothing is known: its number.
    pub(super) fn queue(&mut self) -> u32 {
        self.queues.push(0.0);
        self.queues.len() as u32 - 1
    }

    /// The ways to the leaf of `dst`, links and queues; `rotated`: from another uplink on at each host of the leaf.
    pub(super) fn ways(
        &mut self,
        fabric: &Fabric,
        host: HostId,
        dst: HostId,
        rotated: bool,
    ) -> Known<'_> {
        let leaf = fabric.leaf_of(dst);
        if !self.leaves.contains_key(&leaf) {
            let ways = self.find(fabric, host, dst, rotated);
            self.leaves.insert(leaf, ways);
        }
        let ways = self.leaves.get_mut(&leaf).expect("it is there");
        Known { ways, links: &mut self.links, queues: &mut self.queues }
    }

    /// Paths in turn by their uplinks, and each by one port after the other.
    fn find(&mut self, fabric: &Fabric, host: HostId, dst: HostId, rotated: bool) -> Ways {
        let set = fabric.path_set(host, dst);
        let traces: Vec<(PathId, Vec<PortId>)> = (0..set.len())
            .map(|index| {
                let mut trace = fabric.trace(host, dst, set.get(index));
                trace.pop();
                trace.remove(0);
                (set.get(index), trace)
            })
            .collect();
        let mut by_uplink: Vec<Vec<usize>> = Vec::new();
        for (at, (_, trace)) in traces.iter().enumerate() {
            let uplink = |at: usize| traces[at].1.first();
            match by_uplink.iter_mut().find(|paths| uplink(paths[0]) == trace.first()) {
                Some(paths) => paths.push(at),
                None => by_uplink.push(vec![at]),
            }
        }
        let rounds = by_uplink.iter().map(Vec::len).max().unwrap_or(0);
        let mut order: Vec<usize> = (0..rounds)
            .flat_map(|round| by_uplink.iter().filter_map(move |paths| paths.get(round).copied()))
            .collect();
        if rotated {
            let (leaf, uplinks) = (fabric.leaf_of(host), by_uplink.len());
            let (place, hosts) = (fabric.place_below_leaf(host), fabric.hosts_of_leaf(leaf).len());
            // Where there are more uplinks than hosts, as far from each other as can be: short messages reach few of them.
            let place = place as usize * uplinks.max(hosts) / hosts;
            let start = place + uplinks * leaf as usize;
            let len = order.len();
            order.rotate_left(start % len);
        }
        let ports = ports(fabric);
        let mut all =
            Ways { ways: Vec::new(), links: Vec::new(), queue: self.queue(), known: Vec::new() };
        for at in order {
            let (path, trace) = &traces[at];
            for port in 0..ports {
                all.ways.push(Way { path: *path, port, given: 0, queue: f32::NAN });
                all.links.extend(trace.iter().map(|link| self.link(port, *link, fabric)));
            }
        }
        all
    }
}

/// Whether a link of the first plane is known to be dead in the plane of a port.
fn is_dead(known: &PathView, fabric: &Fabric, port: u8, link: PortId) -> bool {
    let in_plane = PortId(link.0 + u32::from(port) * fabric.ports_per_plane());
    known.links().is_dead(fabric, in_plane)
}

/// How many ports of a NIC hosts choose from: those in planes. A bond chooses by itself.
pub(super) fn ports(fabric: &Fabric) -> u8 {
    if fabric.homes() > 1 { 1 } else { fabric.nic_ports() as u8 }
}
