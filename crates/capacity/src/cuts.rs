//! Cuts that are worth a look before, and a name for, what the linear program finds: every
//! host, every leaf and every pod by itself, and the sparsest cuts from and to each leaf and each
//! pod.
//!
//! Every set of edges is a valid proof, whatever it separates; a good one is a short one.

use crate::network::{CapacityGraph, Edge, Proof, Shape, pairs};
use crate::{Demands, FlowNetwork, flow::UNLIMITED};
use weft_fabric::Fabric;
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId};

/// Sparsest cuts are searched in fabrics of up to so many leaves.
const SEARCHED_LEAVES: usize = 256;

/// Links that all which some leaves send to some others must cross, and that have little capacity for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseCut {
    /// The sending leaves, in order.
    pub from: Vec<u32>,
    /// The receiving leaves, in order.
    pub to: Vec<u32>,
    /// The links, by the ports that feed them.
    pub ports: Vec<PortId>,
}

/// Sparsest cuts of one leaf or one pod (capacity over what has to cross it, the smallest there is for what
/// this leaf or pod alone sends or receives), both ways, where that is sparser than all links of
/// the leaf or pod. None in fabrics of more than 256 leaves.
///
/// `capacities` are in bits per second, zero for a dead link; `demands` in whatever unit, as only their
/// proportions count.
///
/// # Panics
/// If the fabric is no folded Clos, or `capacities` belong to another one.
pub fn sparsest_cuts(
    fabric: &Fabric,
    capacities: &IdVec<PortId, u64>,
    demands: &Demands,
) -> Vec<SparseCut> {
    let network = CapacityGraph::new(fabric, capacities);
    if network.shape.leaves > SEARCHED_LEAVES {
        return Vec::new();
    }
    let cuts = terminals(network.shape).filter_map(|terminal| {
        let found = terminal.sparsest(&network, demands)?;
        let numbers = |leaves: Vec<usize>| leaves.into_iter().map(|leaf| leaf as u32).collect();
        let (inside, others) = (numbers(terminal.leaves), numbers(found.others));
        let (from, to) = if terminal.sends { (inside, others) } else { (others, inside) };
        let ports = found.edges.iter().flat_map(|edge| &network.ports[*edge]);
        Some(SparseCut { from, to, ports: ports.copied().collect() })
    });
    cuts.collect()
}

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
        for found in terminals(shape).filter_map(|one| one.sparsest(network, demands)) {
            best = best.tighter(CutProof::of(network, demands, &found.edges));
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

/// The leaves of one side of a cut, one leaf or one pod, and whether what crosses comes from them.
struct Terminal {
    leaves: Vec<usize>,
    sends: bool,
}

/// Each leaf and, of several, each pod, both ways.
fn terminals(shape: Shape) -> impl Iterator<Item = Terminal> {
    let leaves = (0..shape.leaves).map(|leaf| leaf..leaf + 1);
    let pods = (0..shape.pods).filter(move |_| shape.pods > 1).map(move |pod| shape.leaves_of(pod));
    leaves.chain(pods).flat_map(|inside| {
        [true, false].map(|sends| Terminal { leaves: inside.clone().collect(), sends })
    })
}

/// A cut between a terminal and some other leaves.
struct Found {
    others: Vec<usize>,
    edges: Vec<usize>,
}

impl Terminal {
    /// The sparsest cut between it and any of the leaves that it sends to or receives from, if that is
    /// sparser than its own links. What others send does not count.
    ///
    /// Dinkelbach (1967): a maximum flow says whether the share of the demands that the sparsest cut so far
    /// allows can be carried; the cut that stands in the way is a sparser one.
    fn sparsest(&self, network: &CapacityGraph, demands: &Demands) -> Option<Found> {
        let shape = network.shape;
        let wanted = |other: usize| -> u128 {
            let one = |own: &usize| match self.sends {
                true => demands.between(*own, other),
                false => demands.between(other, *own),
            };
            self.leaves.iter().map(|own| u128::from(one(own))).sum()
        };
        let outside = (0..shape.leaves).filter(|leaf| !self.leaves.contains(leaf));
        let wanted: Vec<_> = outside.map(|leaf| (leaf, wanted(leaf))).filter(|w| w.1 > 0).collect();
        let mut least = Proof {
            capacity: self.own(shape).map(|edge| u128::from(network.capacity(edge))).sum(),
            demand: wanted.iter().map(|(_, amount)| *amount).sum(),
        };
        let mut found = None;
        while least.demand > 0 {
            let part = |amount: u128| (amount * least.capacity / least.demand) as u64;
            let asked: Vec<_> = wanted.iter().map(|(leaf, all)| (*leaf, part(*all))).collect();
            let Some(cut) = self.in_the_way(network, &asked) else { break };
            let crossing = wanted.iter().filter(|(leaf, _)| cut.others.contains(leaf));
            least = Proof {
                capacity: cut.edges.iter().map(|edge| u128::from(network.capacity[*edge])).sum(),
                demand: crossing.map(|(_, amount)| *amount).sum(),
            };
            found = Some(cut);
        }
        found
    }

    /// Its links to other switches, of a pod those to the cores.
    fn own(&self, shape: Shape) -> impl Iterator<Item = Edge> {
        let sends = self.sends;
        let is_pod = self.leaves.len() > 1;
        let (leaf, pod) = (self.leaves[0], shape.pod(self.leaves[0]));
        let count = if is_pod { shape.cores } else { shape.mids };
        (0..count).map(move |at| match (is_pod, sends) {
            (false, true) => Edge::LeafUp(leaf, at),
            (false, false) => Edge::LeafDown(leaf, at),
            (true, true) => Edge::PodUp(pod, at),
            (true, false) => Edge::PodDown(pod, at),
        })
    }

    /// A minimum cut, unless all that is `asked` for of other leaves can be carried at once, in bits per
    /// second.
    fn in_the_way(&self, network: &CapacityGraph, asked: &[(usize, u64)]) -> Option<Found> {
        let shape = network.shape;
        let nodes = Nodes(shape);
        let (source, sink) = (nodes.source(), nodes.source() + 1);
        let mut flow = FlowNetwork::new(sink + 1);
        let mut edges = Vec::new();
        let own: Vec<_> = self.leaves.iter().map(|leaf| (*leaf, UNLIMITED)).collect();
        let (from, to) = if self.sends { (&own[..], asked) } else { (asked, &own[..]) };
        for (leaf, amount) in from {
            flow.link(source, nodes.leaf(*leaf, false), *amount);
        }
        for (leaf, amount) in to {
            flow.link(nodes.leaf(*leaf, true), sink, *amount);
        }
        for (edge, tail, head) in ways(shape, &nodes, from, to) {
            flow.link(tail, head, network.capacity(edge));
            edges.push((shape.edge(edge), tail, head));
        }
        for pod in 0..shape.pods {
            for mid in 0..shape.mids {
                flow.link(nodes.mid(pod, mid, false), nodes.mid(pod, mid, true), UNLIMITED);
            }
        }
        let all: u64 = asked.iter().map(|(_, amount)| amount).sum();
        if flow.max_flow(source, sink) >= all {
            return None;
        }
        let side = flow.source_side();
        edges.retain(|(_, tail, head)| side[*tail] && !side[*head]);
        // What a leaf is asked for crosses the cut where the leaf is on the far side.
        let is_cut_off = |leaf: &usize| side[nodes.leaf(*leaf, self.sends)] != self.sends;
        let others = asked.iter().map(|(leaf, _)| *leaf).filter(is_cut_off).collect();
        Some(Found { others, edges: edges.into_iter().map(|(edge, ..)| edge).collect() })
    }
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

/// All edges between switches that are on a way from leaf to leaf, with their ends.
fn ways(
    shape: Shape,
    nodes: &Nodes,
    from: &[(usize, u64)],
    to: &[(usize, u64)],
) -> Vec<(Edge, usize, usize)> {
    let mut ways = Vec::new();
    for mid in 0..shape.mids {
        let at = |leaf, down| (nodes.leaf(leaf, down), nodes.mid(shape.pod(leaf), mid, down));
        for (leaf, _) in from {
            ways.push((Edge::LeafUp(*leaf, mid), at(*leaf, false).0, at(*leaf, false).1));
        }
        for (leaf, _) in to {
            ways.push((Edge::LeafDown(*leaf, mid), at(*leaf, true).1, at(*leaf, true).0));
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
