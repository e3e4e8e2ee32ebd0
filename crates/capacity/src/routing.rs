//! A routing, and how much of the demands it carries.
//!
//! Invariant: shares of a pair of leaf classes, and those of a pair of pods within a plane, sum
//! to one or, where nothing gets through, to zero.

use crate::Demands;
use crate::classes::Classes;
use crate::network::{CapacityGraph, Edge, all_pairs, pairs};

/// How each pair of leaves splits its demand over planes, and each pair of pods over the cores
/// of each plane.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    pub(crate) leaves: Classes,
    pub(crate) cores: Classes,
    /// For each pair of leaf classes, shares by plane.
    pub(crate) split: Vec<f64>,
    /// For each pair of pods, shares by core class; those of a plane sum to one.
    pub(crate) over: Vec<f64>,
}

/// A routing, and a price of each edge between switches.
pub(crate) struct Found {
    pub(crate) routing: Routing,
    pub(crate) prices: Vec<f64>,
}

impl Found {
    /// Without a solver there is only a fair routing, and no price.
    pub(crate) fn fair(network: &CapacityGraph, demands: &Demands) -> Found {
        let leaves = Classes::leaves(network, demands);
        let routing = Routing::proportional(network, leaves, Classes::cores(network));
        Found { routing, prices: vec![0.0; network.shape.edges()] }
    }
}

/// Additions of rounded numbers, at most some millions, are off by less.
const ROUNDING: f64 = 1e-11;

impl Routing {
    /// Everything in proportion to the scarcest capacity on its way.
    pub(crate) fn proportional(
        network: &CapacityGraph,
        leaves: Classes,
        cores: Classes,
    ) -> Routing {
        let shape = network.shape;
        let mut over = Vec::with_capacity(shape.pods * shape.pods * cores.len());
        let mut planes = Vec::with_capacity(shape.pods * shape.pods * shape.mids);
        for (from, to) in all_pairs(shape.pods) {
            let start = over.len();
            over.extend(cores.first.iter().zip(&cores.size).map(|(core, size)| {
                let up = network.capacity(Edge::PodUp(from, *core));
                up.min(network.capacity(Edge::PodDown(to, *core))) as f64 * *size as f64
            }));
            for plane in 0..shape.mids {
                let here = |class: &usize| shape.cores_of(plane).contains(&cores.first[*class]);
                let classes: Vec<usize> = (0..cores.len()).filter(here).collect();
                let sum: f64 = classes.iter().map(|class| over[start + class]).sum();
                classes.iter().for_each(|class| over[start + class] /= sum.max(1.0));
                planes.push(if from == to { f64::INFINITY } else { sum });
            }
        }
        let each = (shape.leaves / shape.pods) as f64;
        let mut split = Vec::with_capacity(leaves.len() * leaves.len() * shape.mids);
        for (a, b) in all_pairs(leaves.len()) {
            let (src, dst) = (leaves.first[a], leaves.first[b]);
            let pods = (shape.pod(src) * shape.pods + shape.pod(dst)) * shape.mids;
            let way = |mid: usize| {
                let up = network.capacity(Edge::LeafUp(src, mid));
                let down = network.capacity(Edge::LeafDown(dst, mid));
                (up.min(down) as f64).min(planes[pods + mid] / each)
            };
            let sum: f64 = (0..shape.mids).map(way).sum();
            split.extend((0..shape.mids).map(|mid| way(mid) / sum.max(1.0)));
        }
        Routing { leaves, cores, split, over }
    }

    /// A share of the demands that this routing carries, counting links between switches only.
    pub(crate) fn share(&self, network: &CapacityGraph, demands: &Demands) -> f64 {
        let shape = network.shape;
        let mut load = vec![0.0; shape.switch_edges()];
        let mut between_pods = vec![0.0; shape.pods * shape.pods * shape.mids];
        for (src, dst) in pairs(shape.leaves) {
            let amount = demands.between(src, dst) as f64;
            if amount == 0.0 {
                continue;
            }
            let classes = self.leaves.of[src] * self.leaves.len() + self.leaves.of[dst];
            let pods = shape.pod(src) * shape.pods + shape.pod(dst);
            for mid in 0..shape.mids {
                let part = amount * self.split[classes * shape.mids + mid];
                load[shape.edge(Edge::LeafUp(src, mid))] += part;
                load[shape.edge(Edge::LeafDown(dst, mid))] += part;
                between_pods[pods * shape.mids + mid] += part;
            }
        }
        for (from, to) in pairs(shape.pods) {
            let pods = from * shape.pods + to;
            for plane in 0..shape.mids {
                for core in shape.cores_of(plane) {
                    let share = self.over[pods * self.cores.len() + self.cores.of[core]]
                        / self.cores.size[self.cores.of[core]] as f64;
                    let part = between_pods[pods * shape.mids + plane] * share;
                    load[shape.edge(Edge::PodUp(from, core))] += part;
                    load[shape.edge(Edge::PodDown(to, core))] += part;
                }
            }
        }
        let loaded = load.iter().zip(&network.capacity).filter(|(load, _)| **load > 0.0);
        let shares = loaded.map(|(load, capacity)| *capacity as f64 / load);
        let share = shares.fold(f64::INFINITY, f64::min);
        share * demands.per as f64 * (1.0 - ROUNDING)
    }
}
