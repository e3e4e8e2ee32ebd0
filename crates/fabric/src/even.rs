//! Weights of all paths together, such that no link is fuller than it must be if every leaf sends
//! alike to every other one.
//!
//! A path's own links do not say what else goes over them: a spine to which some leaf has a slow
//! link gets less from that leaf, so that the others may send more through it. In rounds every pair
//! of leaves moves weight from its fuller paths, by their fullest link, to its emptier ones. For
//! all-to-all demands this comes to within a percent of the least that the fullest link can have.

use crate::path_weights::{PathView, PathWeights};
use crate::{Fabric, LinkShares, PathId};
use weft_units::{IdVec, PortId};

/// After so many rounds little changes any more.
const ROUNDS: u32 = 20;
/// Where leaves have more paths to each other in all, their own links decide: some 700 MB.
const MOST: u64 = 1 << 24;

impl PathView {
    /// The same links, with weights given for every pair of leaves such that demands alike between
    /// all leaves load all links as evenly as they can, in proportion to what these have left.
    /// Unchanged if nothing is amiss, or the fabric is too large.
    #[must_use]
    pub fn evened(mut self, fabric: &Fabric) -> PathView {
        let leaves = u64::from(fabric.leaves());
        let (first, last) = fabric.farthest();
        let paths = u64::from(fabric.path_set(first, last).len());
        if self.is_plain() || leaves * leaves * paths > MOST {
            return self;
        }
        let mut evening = Evening::new(&self, fabric);
        for _ in 0..ROUNDS {
            evening.round();
        }
        for (leaves, weights) in evening.weights() {
            self.give(leaves, weights);
        }
        self
    }
}

/// A path of a pair of leaves.
struct WeightedPath {
    path: PathId,
    /// Its links between switches: two, or four.
    /// All but the NIC's and the receiver's.
    ports: Vec<PortId>,
    /// Its share of what the pair sends.
    share: f64,
}

/// All paths of all pairs of leaves, and the links that they cross.
struct Evening {
    /// The leaves of each pair, and where its paths end in `ways`.
    pairs: Vec<((u32, u32), usize)>,
    ways: Vec<WeightedPath>,
    /// What each link can carry, in bits per second.
    capacities: IdVec<PortId, f64>,
    /// What it does carry, of what pairs send.
    loads: IdVec<PortId, f64>,
}

impl Evening {
    fn new(view: &PathView, fabric: &Fabric) -> Evening {
        // What is dead, and still in use for want of a way, counts as next to nothing.
        let left = |id| view.links().of(id).max(1) as f64 / LinkShares::WHOLE as f64;
        let capacities =
            fabric.ports().enumerate().map(|(id, port)| port.rate.as_bps() as f64 * left(id));
        let loads = fabric.ports().iter().map(|_| 0.0).collect();
        let (mut pairs, mut ways) = (Vec::new(), Vec::new());
        let leaves = || 0..fabric.leaves();
        let all = leaves().flat_map(|src| leaves().map(move |dst| (src, dst)));
        for (src, dst) in all.filter(|(src, dst)| src != dst) {
            let hosts = [src, dst].map(|leaf| fabric.first_host(leaf));
            if !fabric.reaches(hosts[0], hosts[1]) {
                continue;
            }
            let weights = view.weights(fabric, hosts[0], hosts[1]);
            let sum = weights.sum() as f64;
            ways.extend(weights.iter().map(|(path, weight)| {
                let trace = fabric.trace(hosts[0], hosts[1], path);
                let ports = trace[1..trace.len() - 1].to_vec();
                WeightedPath { path, ports, share: weight as f64 / sum }
            }));
            pairs.push(((src, dst), ways.len()));
        }
        Evening { pairs, ways, capacities: capacities.collect(), loads }
    }

    fn round(&mut self) {
        self.loads.iter_mut().for_each(|load| *load = 0.0);
        for way in &self.ways {
            for port in &way.ports {
                self.loads[*port] += way.share;
            }
        }
        let mut begin = 0;
        for (_, end) in &self.pairs {
            let (loads, capacities) = (&self.loads, &self.capacities);
            let fullest = |way: &WeightedPath| {
                let fill = way.ports.iter().map(|port| loads[*port] / capacities[*port]);
                fill.fold(0.0, f64::max)
            };
            let ways = &mut self.ways[begin..*end];
            let mean: f64 = ways.iter().map(|way| way.share * fullest(way)).sum();
            let mut sum = 0.0;
            for way in ways.iter_mut() {
                // Halfway towards what its fullest link asks for: more would swing.
                way.share *= 2.0 * mean / (mean + fullest(way));
                sum += way.share;
            }
            ways.iter_mut().for_each(|way| way.share /= sum);
            begin = *end;
        }
    }

    fn weights(&self) -> impl Iterator<Item = ((u32, u32), PathWeights)> {
        let begins = std::iter::once(0).chain(self.pairs.iter().map(|(_, end)| *end));
        begins.zip(&self.pairs).map(|(begin, (leaves, end))| {
            let weight = |way: &WeightedPath| {
                let weight = (way.share * LinkShares::WHOLE as f64) as u64;
                (way.path, weight.max(u64::from(way.share > 0.0)))
            };
            (*leaves, PathWeights::new(self.ways[begin..*end].iter().map(weight)))
        })
    }
}
