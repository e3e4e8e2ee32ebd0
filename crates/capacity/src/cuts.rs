//! Cuts that are worth a look before, and a name for, what the linear program finds: every
//! host, every leaf and every pod by itself, and minimum cuts from and to each leaf, each pod
//! and between all pods.
//!
//! Every set of edges is a valid proof, whatever it separates; a good one is a short one.

use crate::network::{CapacityGraph, Edge, Proof, Shape, pairs};
use crate::{Demands, FlowNetwork, flow::UNLIMITED};
use weft_units::HostId;
use weft_units::id::Id;

/// Minimum cuts are searched in fabrics of up to so many leaves.
const SEARCHED_LEAVES: usize = 256;

/// Edges with their lengths, and what they prove.
#[derive(Clone, Debug)]
pub(crate) struct CutProof {
    pub(crate) lengths: Vec<u64>,
    pub(crate) proof: Proof,
}

impl CutProof {
    pub(crate) fn new(network: &CapacityGraph, demands: &Demands, lengths: Vec<u64>) -> CutProof {
        let proof = network.proof(demands, &lengths);
        CutProof { lengths, proof }
    }

    fn of(network: &CapacityGraph, demands: &Demands, edges: &[usize]) -> CutProof {
        let mut lengths = vec![0; network.shape.edges()];
        for edge in edges {
            lengths[*edge] = 1;
        }
        CutProof::new(network, demands, lengths)
    }

    /// The one that proves more, the first of equals.
    pub(crate) fn tighter(self, other: CutProof) -> CutProof {
        if other.proof.limit() < self.proof.limit() { other } else { self }
    }
}

/// The tightest of all.
pub(crate) fn tightest(network: &CapacityGraph, demands: &Demands) -> CutProof {
    let around = tightest_around(network, demands);
    let shape = network.shape;
    let mut best = CutProof::of(network, demands, &around);
    if shape.leaves <= SEARCHED_LEAVES {
        for (from, to) in terminals(shape) {
            let edges = minimum(network, &from, &to);
            best = best.tighter(CutProof::of(network, demands, &edges));
        }
    }
    best
}

/// The edges around one host, leaf or pod that are the scarcest.
fn tightest_around(network: &CapacityGraph, demands: &Demands) -> Vec<usize> {
    let shape = network.shape;
    let mut best = (f64::INFINITY, Vec::new());
    let mut offer = |edges: Vec<usize>, demand: u128| {
        let sum: u128 = edges.iter().map(|edge| u128::from(network.capacity[*edge])).sum();
        let limit = Proof { capacity: sum * u128::from(demands.per), demand }.limit();
        if limit < best.0 {
            best = (limit, edges);
        }
    };
    for host in 0..shape.hosts {
        let id = HostId::from_index(host);
        offer(vec![shape.edge(Edge::HostUp(host))], demands.sent[id].into());
        offer(vec![shape.edge(Edge::HostDown(host))], demands.received[id].into());
    }
    let sums = Sums::new(shape, demands);
    for leaf in 0..shape.leaves {
        let edges = |of: fn(usize, usize) -> Edge| {
            (0..shape.mids).map(|mid| shape.edge(of(leaf, mid))).collect()
        };
        offer(edges(Edge::LeafUp), sums.leaf_out[leaf]);
        offer(edges(Edge::LeafDown), sums.leaf_in[leaf]);
    }
    for pod in 0..shape.pods {
        let edges = |of: fn(usize, usize) -> Edge| {
            (0..shape.cores).map(|core| shape.edge(of(pod, core))).collect()
        };
        offer(edges(Edge::PodUp), sums.pod_out[pod]);
        offer(edges(Edge::PodDown), sums.pod_in[pod]);
    }
    best.1
}

/// What leaves and enters each leaf and each pod.
struct Sums {
    leaf_out: Vec<u128>,
    leaf_in: Vec<u128>,
    pod_out: Vec<u128>,
    pod_in: Vec<u128>,
}

impl Sums {
    fn new(shape: Shape, demands: &Demands) -> Sums {
        let (leaves, pods) = (vec![0; shape.leaves], vec![0; shape.pods]);
        let mut sums =
            Sums { leaf_out: leaves.clone(), leaf_in: leaves, pod_out: pods.clone(), pod_in: pods };
        for (src, dst) in pairs(shape.leaves) {
            let amount = u128::from(demands.between(src, dst));
            sums.leaf_out[src] += amount;
            sums.leaf_in[dst] += amount;
            if shape.pod(src) != shape.pod(dst) {
                sums.pod_out[shape.pod(src)] += amount;
                sums.pod_in[shape.pod(dst)] += amount;
            }
        }
        sums
    }
}

/// From which leaves to which: each leaf and each pod against the rest, both ways.
fn terminals(shape: Shape) -> impl Iterator<Item = (Vec<usize>, Vec<usize>)> {
    let leaves = (0..shape.leaves).map(|leaf| vec![leaf]);
    let pods = (0..shape.pods).map(move |pod| shape.leaves_of(pod).collect());
    leaves.chain(pods).flat_map(move |inside: Vec<usize>| {
        let outside: Vec<usize> = (0..shape.leaves).filter(|leaf| !inside.contains(leaf)).collect();
        [(inside.clone(), outside.clone()), (outside, inside)]
    })
}

/// The nodes of the flow network: switches on the way up, and again on the way down.
struct Nodes(Shape);

impl Nodes {
    fn leaf(&self, leaf: usize, down: bool) -> usize {
        leaf + self.0.leaves * usize::from(down)
    }
    fn mid(&self, pod: usize, plane: usize, down: bool) -> usize {
        let Shape { pods, mids, leaves, .. } = self.0;
        2 * leaves + pod * mids + plane + pods * mids * usize::from(down)
    }
    fn core(&self, core: usize) -> usize {
        2 * (self.0.leaves + self.0.pods * self.0.mids) + core
    }
    fn source(&self) -> usize {
        self.core(self.0.cores)
    }
}

/// The edges of a minimum cut between the leaves `from` and the leaves `to`, which have none
/// in common.
fn minimum(network: &CapacityGraph, from: &[usize], to: &[usize]) -> Vec<usize> {
    let shape = network.shape;
    let nodes = Nodes(shape);
    let (source, sink) = (nodes.source(), nodes.source() + 1);
    let mut flow = FlowNetwork::new(sink + 1);
    let mut edges = Vec::new();
    for (edge, tail, head) in ways(shape, &nodes) {
        flow.link(tail, head, network.capacity(edge));
        edges.push((shape.edge(edge), tail, head));
    }
    for pod in 0..shape.pods {
        for mid in 0..shape.mids {
            flow.link(nodes.mid(pod, mid, false), nodes.mid(pod, mid, true), UNLIMITED);
        }
    }
    for leaf in from {
        flow.link(source, nodes.leaf(*leaf, false), UNLIMITED);
    }
    for leaf in to {
        flow.link(nodes.leaf(*leaf, true), sink, UNLIMITED);
    }
    flow.max_flow(source, sink);
    let side = flow.source_side();
    edges.retain(|(_, tail, head)| side[*tail] && !side[*head]);
    edges.into_iter().map(|(edge, ..)| edge).collect()
}

/// All edges between switches with their ends.
fn ways(shape: Shape, nodes: &Nodes) -> Vec<(Edge, usize, usize)> {
    let mut ways = Vec::with_capacity(shape.switch_edges());
    for leaf in 0..shape.leaves {
        for mid in 0..shape.mids {
            let at = |down| (nodes.leaf(leaf, down), nodes.mid(shape.pod(leaf), mid, down));
            ways.push((Edge::LeafUp(leaf, mid), at(false).0, at(false).1));
            ways.push((Edge::LeafDown(leaf, mid), at(true).1, at(true).0));
        }
    }
    for pod in 0..shape.pods {
        for plane in 0..shape.mids {
            for core in shape.cores_of(plane) {
                let (up, down) = (nodes.mid(pod, plane, false), nodes.mid(pod, plane, true));
                ways.push((Edge::PodUp(pod, core), up, nodes.core(core)));
                ways.push((Edge::PodDown(pod, core), nodes.core(core), down));
            }
        }
    }
    ways
}
