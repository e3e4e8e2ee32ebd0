//! The fabric as a routing problem sees it: every bundle one edge with the capacity that its
//! members have left, paths between leaves, and the two sides of a proof, loads and lengths.
//!
//! Invariant: edges stand kind by kind: leaf up, leaf down, pod up, pod down, host up, host
//! down. A path from leaf to leaf crosses one edge of the first two kinds each, and between
//! pods one of the next two each, with the same plane throughout.

use crate::Demands;
use weft_fabric::{Clos, Fabric, Node};
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId, SwitchId};

/// A kind of edges and their place, as numbers of leaf and aggregation switch (spine), pod and
/// core, or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    LeafUp(usize, usize),
    LeafDown(usize, usize),
    PodUp(usize, usize),
    PodDown(usize, usize),
    HostUp(usize),
    HostDown(usize),
}

/// The counts of a fabric, and what follows from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) pods: usize,
    pub(crate) leaves: usize,
    /// Aggregation switches of a pod, or spines: as many as planes.
    pub(crate) mids: usize,
    pub(crate) cores: usize,
    pub(crate) hosts: usize,
}

impl Shape {
    /// Of several planes, which share nothing but hosts, those of each come one after the other.
    fn new(clos: &Clos, planes: u32) -> Shape {
        Shape {
            pods: clos.pods() as usize,
            leaves: (clos.pods() * clos.leaves_per_pod()) as usize,
            mids: (planes * clos.mids_per_pod()) as usize,
            cores: (planes * clos.cores()) as usize,
            hosts: clos.hosts() as usize,
        }
    }
    pub(crate) fn pod(self, leaf: usize) -> usize {
        leaf / (self.leaves / self.pods)
    }
    pub(crate) fn leaves_of(self, pod: usize) -> std::ops::Range<usize> {
        let each = self.leaves / self.pods;
        pod * each..(pod + 1) * each
    }
    pub(crate) fn cores_of(self, plane: usize) -> std::ops::Range<usize> {
        let each = self.cores / self.mids;
        plane * each..(plane + 1) * each
    }
    pub(crate) fn edge(self, edge: Edge) -> usize {
        let (leaf_edges, pod_edges) = (self.leaves * self.mids, self.pods * self.cores);
        match edge {
            Edge::LeafUp(leaf, mid) => leaf * self.mids + mid,
            Edge::LeafDown(leaf, mid) => leaf_edges + leaf * self.mids + mid,
            Edge::PodUp(pod, core) => 2 * leaf_edges + pod * self.cores + core,
            Edge::PodDown(pod, core) => 2 * leaf_edges + pod_edges + pod * self.cores + core,
            Edge::HostUp(host) => self.switch_edges() + host,
            Edge::HostDown(host) => self.switch_edges() + self.hosts + host,
        }
    }
    /// Edges between switches.
    pub(crate) fn switch_edges(self) -> usize {
        2 * (self.leaves * self.mids + self.pods * self.cores)
    }
    pub(crate) fn edges(self) -> usize {
        self.switch_edges() + 2 * self.hosts
    }
}

/// A fabric with capacities.
#[derive(Clone, Debug)]
pub(crate) struct CapacityGraph {
    pub(crate) shape: Shape,
    /// Of each edge, in bits per second.
    pub(crate) capacity: Vec<u64>,
    /// The members of each edge.
    pub(crate) ports: Vec<Vec<PortId>>,
}

impl CapacityGraph {
    pub(crate) fn new(fabric: &Fabric, capacities: &IdVec<PortId, u64>) -> CapacityGraph {
        let clos = fabric.clos().expect("who asks has checked that it is a folded Clos");
        let shape = Shape::new(clos, fabric.planes());
        let mut capacity = vec![0; shape.edges()];
        let mut ports = vec![Vec::new(); shape.edges()];
        for (id, port) in fabric.ports().enumerate() {
            let edge = shape.edge(edge_of(fabric, clos, shape, port.owner, port.peer));
            capacity[edge] += capacities[id];
            ports[edge].push(id);
        }
        CapacityGraph { shape, capacity, ports }
    }

    pub(crate) fn capacity(&self, edge: Edge) -> u64 {
        self.capacity[self.shape.edge(edge)]
    }

    /// What `lengths` of edges prove: no more than the first over the second of the demands
    /// fits at once. The first is the capacity of all edges times their lengths; the second
    /// are the demands times their shortest distances, which is what they use up at least.
    /// Both in 1/`per` bits per second.
    pub(crate) fn proof(&self, demands: &Demands, lengths: &[u64]) -> Proof {
        let weighted = self.capacity.iter().zip(lengths);
        let capacity: u128 = weighted.map(|(c, l)| u128::from(*c) * u128::from(*l)).sum();
        let mut demand = 0;
        for host in 0..self.shape.hosts {
            let up = lengths[self.shape.edge(Edge::HostUp(host))];
            let down = lengths[self.shape.edge(Edge::HostDown(host))];
            let id = HostId::from_index(host);
            demand += u128::from(demands.sent[id]) * u128::from(up);
            demand += u128::from(demands.received[id]) * u128::from(down);
        }
        let over = self.over_cores(lengths);
        for (src, dst) in pairs(self.shape.leaves) {
            let amount = demands.between(src, dst);
            if amount > 0 {
                let distance = self.distance(lengths, &over, src, dst);
                demand += u128::from(amount) * u128::from(distance);
            }
        }
        Proof { capacity: capacity * u128::from(demands.per), demand }
    }

    /// From pod to pod in each plane, the shortest way over a core.
    fn over_cores(&self, lengths: &[u64]) -> Vec<u64> {
        let shape = self.shape;
        let mut over = Vec::with_capacity(shape.pods * shape.pods * shape.mids);
        for (from, to) in all_pairs(shape.pods) {
            for plane in 0..shape.mids {
                let ways = shape.cores_of(plane).map(|core| {
                    lengths[shape.edge(Edge::PodUp(from, core))]
                        + lengths[shape.edge(Edge::PodDown(to, core))]
                });
                // Within a pod there is no core on the way.
                over.push(if from == to { 0 } else { ways.min().unwrap_or(0) });
            }
        }
        over
    }

    fn distance(&self, lengths: &[u64], over: &[u64], src: usize, dst: usize) -> u64 {
        let shape = self.shape;
        let pods = (shape.pod(src) * shape.pods + shape.pod(dst)) * shape.mids;
        let ways = (0..shape.mids).map(|mid| {
            lengths[shape.edge(Edge::LeafUp(src, mid))]
                + over[pods + mid]
                + lengths[shape.edge(Edge::LeafDown(dst, mid))]
        });
        ways.min().unwrap_or(0)
    }
}

/// All pairs of different numbers below `n`.
pub(crate) fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    all_pairs(n).filter(|(a, b)| a != b)
}
/// All pairs of numbers below `n`, row by row.
pub(crate) fn all_pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)))
}

fn edge_of(fabric: &Fabric, clos: &Clos, shape: Shape, owner: Node, peer: Node) -> Edge {
    let (from, to) = match (owner, peer) {
        (Node::Host(host), _) => return Edge::HostUp(host.index()),
        (_, Node::Host(host)) => return Edge::HostDown(host.index()),
        (Node::Switch(from), Node::Switch(to)) => (from, to),
    };
    let plane = fabric.plane_of(from) as usize;
    let [from, to] = [from, to].map(|switch| fabric.in_first_plane(switch).index());
    let (mids, cores) = (clos.mids_per_pod() as usize, clos.cores() as usize);
    let mid = |switch: usize| plane * mids + (switch - shape.leaves) % mids;
    let pod = |switch: usize| (switch - shape.leaves) / mids;
    let core = |switch: usize| plane * cores + switch - shape.leaves - shape.pods * mids;
    let tier = |switch: usize| fabric.tier(SwitchId::from_index(switch));
    match (tier(from), tier(to)) {
        (0, _) => Edge::LeafUp(from, mid(to)),
        (_, 0) => Edge::LeafDown(to, mid(from)),
        (1, _) => Edge::PodUp(pod(from), core(to)),
        _ => Edge::PodDown(pod(to), core(from)),
    }
}

/// An upper limit of the share of the demands that fits, as a fraction of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) capacity: u128,
    pub(crate) demand: u128,
}

impl Proof {
    /// Infinite where nothing is asked for.
    pub(crate) fn limit(self) -> f64 {
        if self.demand == 0 { f64::INFINITY } else { self.capacity as f64 / self.demand as f64 }
    }
    pub(crate) fn is_enough(self) -> bool {
        self.capacity >= self.demand
    }
}
