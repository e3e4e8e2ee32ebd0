//! The answer: whether the demands fit, how much of them does, and what stands in the way.

use crate::Demands;
use crate::cuts::{self, CutProof};
use crate::network::{CapacityGraph, Edge, Proof, pairs};
#[cfg(not(target_family = "wasm"))]
use crate::program;
use crate::routing::Found;
use weft_fabric::Fabric;
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId};

/// Whether all demands can be carried at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes: a routing is known that carries them.
    Yes,
    /// No: the bottleneck has too little capacity for them, counted in whole numbers.
    No,
    /// The capacity is what the demands need, to within the interval from
    /// [`Verdict::factor`] to [`Verdict::limit`], and rounding keeps the rest unknown.
    Borderline,
}

/// What [`carries`] finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the demands fit.
    pub answer: Answer,
    /// This share of all demands at once is carried by a known routing; infinite without
    /// demands.
    pub factor: f64,
    /// More than this share cannot be carried, because of the bottleneck.
    pub limit: f64,
    /// What limits the share; nothing without demands.
    pub bottleneck: Option<Bottleneck>,
}

/// Links whose capacity the demands use up first.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// The links, in port order; dead ones too, where demands would else pass by them.
    pub links: Vec<WeightedLink>,
    /// Their capacity in bits per second, each times its weight.
    pub capacity: f64,
    /// What the demands need of it at least: their rates in bits per second, each times the
    /// least weight on any of its paths. [`Verdict::limit`] is capacity over demand.
    pub demand: f64,
}

impl Bottleneck {
    /// Whether all weights are one, so that each demand just counts its fewest crossings.
    pub fn is_cut(&self) -> bool {
        self.links.iter().all(|link| link.weight == 1)
    }
}

/// One link of a bottleneck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedLink {
    /// The port that feeds it.
    pub port: PortId,
    /// As [`Fabric::port_name`] writes it.
    pub name: String,
    /// What it carries, in bits per second.
    pub capacity: u64,
    /// How much it counts.
    pub weight: u64,
}

/// How much of `demands` the links with `capacities` (bits per second, zero for a dead link)
/// carry at once, over all shortest up-down paths. See the head of the crate for what is exact.
///
/// # Panics
/// If `capacities` or `demands` belong to another fabric.
pub fn carries(fabric: &Fabric, capacities: &IdVec<PortId, u64>, demands: &Demands) -> Verdict {
    assert_eq!(capacities.len(), fabric.ports().len(), "one capacity a port");
    assert_eq!(demands.sent.len() as u32, fabric.hosts(), "demands of this fabric");
    let network = CapacityGraph::new(fabric, capacities);
    let dead = network.capacity.iter().map(|capacity| u64::from(*capacity == 0)).collect();
    let dead = CutProof::new(&network, demands, dead);
    if dead.proof.demand > 0 {
        return verdict(fabric, capacities, &network, demands, Lower::Zero, dead);
    }
    let cut = cuts::tightest(&network, demands);
    let even = even_share(&network, demands);
    if even.limit() >= cut.proof.limit() * (1.0 - EQUAL) {
        return verdict(fabric, capacities, &network, demands, Lower::Exact(even), cut);
    }
    let found = solved(&network, demands, &cut.proof);
    let found = found.unwrap_or_else(|| Found::fair(&network, demands));
    let share = found.routing.share(&network, demands).min(host_share(&network, demands).limit());
    let cut = nicest(&network, demands, cut, &found.prices);
    let lower = if even.limit() >= share { Lower::Exact(even) } else { Lower::Rounded(share) };
    verdict(fabric, capacities, &network, demands, lower, cut)
}

#[cfg(not(target_family = "wasm"))]
fn solved(network: &CapacityGraph, demands: &Demands, proof: &Proof) -> Option<Found> {
    program::solve(network, demands, proof.limit())
}

/// In a web page there is no solver.
#[cfg(target_family = "wasm")]
fn solved(_: &CapacityGraph, _: &Demands, _: &Proof) -> Option<Found> {
    None
}

/// Rounding of a quotient.
const EQUAL: f64 = 1e-14;
/// A bottleneck that is easier to read may prove so much less.
const NEARLY: f64 = 1e-7;

/// A share that is known to fit.
#[derive(Clone, Copy, Debug)]
enum Lower {
    Zero,
    Exact(Proof),
    Rounded(f64),
}

impl Lower {
    fn share(self) -> f64 {
        match self {
            Lower::Zero => 0.0,
            Lower::Exact(proof) => proof.limit(),
            Lower::Rounded(share) => share,
        }
    }
    fn is_enough(self) -> bool {
        match self {
            Lower::Exact(proof) => proof.is_enough(),
            other => other.share() >= 1.0,
        }
    }
}

fn verdict(
    fabric: &Fabric,
    capacities: &IdVec<PortId, u64>,
    network: &CapacityGraph,
    demands: &Demands,
    lower: Lower,
    cut: CutProof,
) -> Verdict {
    let answer = match (cut.proof.is_enough(), lower.is_enough()) {
        (false, _) => Answer::No,
        (true, true) => Answer::Yes,
        (true, false) => Answer::Borderline,
    };
    let mut links: Vec<WeightedLink> = Vec::new();
    for (ports, weight) in network.ports.iter().zip(&cut.lengths).filter(|(_, w)| **w > 0) {
        links.extend(ports.iter().map(|&port| WeightedLink {
            port,
            name: fabric.port_name(port),
            capacity: capacities[port],
            weight: *weight,
        }));
    }
    links.sort_unstable_by_key(|link| link.port);
    let per = demands.per as f64;
    let Proof { capacity, demand } = cut.proof;
    let bottleneck = (demand > 0).then(|| Bottleneck {
        links,
        capacity: capacity as f64 / per,
        demand: demand as f64 / per,
    });
    let limit = cut.proof.limit();
    // Only rounding can put the lower end above the upper.
    Verdict { answer, factor: lower.share().min(limit), limit, bottleneck }
}

/// The share that the links of hosts let through.
fn host_share(network: &CapacityGraph, demands: &Demands) -> Proof {
    let mut least = Proof { capacity: 1, demand: 0 };
    for host in 0..network.shape.hosts {
        let id = HostId::from_index(host);
        for (edge, demand) in
            [(Edge::HostUp(host), demands.sent[id]), (Edge::HostDown(host), demands.received[id])]
        {
            let capacity = u128::from(network.capacity(edge)) * u128::from(demands.per);
            let proof = Proof { capacity, demand: u128::from(demand) };
            if proof.limit() < least.limit() {
                least = proof;
            }
        }
    }
    least
}

/// The share that is carried when every pair of leaves uses all its planes, and every pair of
/// pods all cores of a plane, evenly: the best there is without failures.
fn even_share(network: &CapacityGraph, demands: &Demands) -> Proof {
    let shape = network.shape;
    // Loads are counted in parts of a path, so that they are whole.
    let per_plane = (shape.cores / shape.mids).max(1);
    let mut load = vec![0u128; shape.switch_edges()];
    let mut between_pods = vec![0u128; shape.pods * shape.pods];
    for (src, dst) in pairs(shape.leaves) {
        let amount = u128::from(demands.between(src, dst));
        for mid in 0..shape.mids {
            load[shape.edge(Edge::LeafUp(src, mid))] += amount * per_plane as u128;
            load[shape.edge(Edge::LeafDown(dst, mid))] += amount * per_plane as u128;
        }
        between_pods[shape.pod(src) * shape.pods + shape.pod(dst)] += amount;
    }
    for (from, to) in pairs(shape.pods) {
        for core in 0..shape.cores {
            load[shape.edge(Edge::PodUp(from, core))] += between_pods[from * shape.pods + to];
            load[shape.edge(Edge::PodDown(to, core))] += between_pods[from * shape.pods + to];
        }
    }
    let parts = (shape.mids * per_plane) as u128;
    let mut least = host_share(network, demands);
    for (load, capacity) in load.into_iter().zip(&network.capacity) {
        let capacity = u128::from(*capacity) * u128::from(demands.per) * parts;
        let proof = Proof { capacity, demand: load };
        if proof.limit() < least.limit() {
            least = proof;
        }
    }
    least
}

/// The proof that is easiest to read among those that prove nearly the most: `cut`, or the
/// prices as multiples of a simple fraction of the highest.
fn nicest(network: &CapacityGraph, demands: &Demands, cut: CutProof, prices: &[f64]) -> CutProof {
    const SIMPLE: [u64; 9] = [1, 2, 3, 4, 6, 8, 12, 24, 1_000_000];
    let highest = prices.iter().copied().fold(0.0, f64::max);
    if highest == 0.0 {
        return cut;
    }
    let mut cuts = vec![cut];
    for parts in SIMPLE {
        let scale = parts as f64 / highest;
        let mut lengths: Vec<u64> =
            prices.iter().map(|price| (price * scale + 0.5) as u64).collect();
        // A dead link has no price, but no demand may pass by it: first as long as the longest
        // link, which is easy to read, then as long as the longest path, which always does.
        for dead in [parts, 4 * parts] {
            for (length, capacity) in lengths.iter_mut().zip(&network.capacity) {
                *length = if *capacity == 0 { dead } else { *length };
            }
            cuts.push(CutProof::new(network, demands, lengths.clone()));
        }
    }
    let best = cuts.iter().cloned().reduce(CutProof::tighter).expect("at least the cut");
    let as_good = |cut: &CutProof| {
        cut.proof.limit() <= best.proof.limit() * (1.0 + NEARLY)
            && cut.proof.is_enough() == best.proof.is_enough()
    };
    cuts.into_iter().find(as_good).unwrap_or(best)
}
