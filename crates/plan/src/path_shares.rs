//! Which share of what goes from leaf to leaf each path should carry, so that the busiest link of
//! a fabric of unequal links takes as little time as possible: the weights of `ethereal-weighted`
//! in a plan.
//!
//! A greedy rule, no solver. All pairs begin with shares in proportion to the narrowest link of each
//! path, and then move, all at once, from paths with dear links to paths with cheap ones; links are
//! the dearer the busier they are, exponentially, so that the busiest decide (multiplicative
//! weights; Garg and Koenemann 2007). A step that makes things worse is taken back and the next one
//! is half as long. It ends when nothing gains, or at the lower bound.
//!
//! What this does not do: prove anything. [`crate::Bound`] says how far from the optimum it ends.

use crate::network::PlannedFabric;
use crate::steps::Transfer;
use libm::{exp, log};
use std::collections::BTreeMap;
use weft_fabric::{Fabric, PathId};
use weft_units::{HostId, IdVec, PortId};

/// Shares of paths, by pair of leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct PathShares {
    /// By sending and receiving leaf: live paths with what each carries of all that goes there.
    /// Shares of a pair add up to one, but for rounding.
    pub pairs: BTreeMap<(u32, u32), Vec<(PathId, f64)>>,
    /// What the busiest link between switches takes, in seconds.
    pub seconds: f64,
}

/// One pair of leaves.
struct Pair {
    leaves: (u32, u32),
    /// Bits from one to the other.
    bits: f64,
    /// Which paths, in [`Search::paths`].
    paths: std::ops::Range<usize>,
}

/// A live path of a pair.
struct Path {
    id: PathId,
    /// Its links, in [`Search::links`].
    links: std::ops::Range<usize>,
    share: f64,
}

struct Search {
    pairs: Vec<Pair>,
    paths: Vec<Path>,
    /// Of all paths, as places in `capacities`.
    links: Vec<u32>,
    /// Of links that some path has.
    capacities: Vec<f64>,
    /// Seconds that each takes.
    loads: Vec<f64>,
}

/// How sharply the price of a link rises, from the first round to the last: the busiest link is
/// met to about this part of its load.
const SHARPNESS: [f64; 4] = [0.1, 0.02, 0.005, 0.001];
/// Rounds of each.
const ROUNDS: usize = 400;
/// No nearer to the bound than this: bytes round more than that.
const NEAR: f64 = 1e-5;

impl PathShares {
    /// For `messages`, sent side by side. `least` is a lower bound in seconds; search ends there.
    /// `Err`: leaves between which no path is left.
    pub fn new(
        network: &PlannedFabric<'_>,
        messages: &[Transfer],
        least: f64,
    ) -> Result<PathShares, (u32, u32)> {
        let mut search = Search::new(network, messages)?;
        search.run(least);
        let pairs = search.pairs.iter().map(|pair| {
            let paths = search.paths[pair.paths.clone()].iter();
            (pair.leaves, paths.map(|path| (path.id, path.share)).collect())
        });
        Ok(PathShares { pairs: pairs.collect(), seconds: search.most() })
    }
}

impl Search {
    fn new(network: &PlannedFabric<'_>, messages: &[Transfer]) -> Result<Search, (u32, u32)> {
        let fabric = network.fabric;
        let mut bits: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for one in messages {
            let leaves = (fabric.leaf_of(one.src), fabric.leaf_of(one.dst));
            if leaves.0 != leaves.1 {
                *bits.entry(leaves).or_default() += 8.0 * one.bytes as f64;
            }
        }
        let mut places: IdVec<PortId, Option<u32>> = fabric.ports().iter().map(|_| None).collect();
        let mut search = Search {
            pairs: Vec::new(),
            paths: Vec::new(),
            links: Vec::new(),
            capacities: Vec::new(),
            loads: Vec::new(),
        };
        for (leaves, bits) in bits {
            let first = search.paths.len();
            search.add_paths(network, leaves, &mut places);
            let paths = first..search.paths.len();
            if paths.is_empty() {
                return Err(leaves);
            }
            search.pairs.push(Pair { leaves, bits, paths });
        }
        search.loads = vec![0.0; search.capacities.len()];
        search.add_up();
        Ok(search)
    }

    /// The live paths between two leaves, in proportion to their narrowest links.
    fn add_paths(
        &mut self,
        network: &PlannedFabric<'_>,
        (from, to): (u32, u32),
        places: &mut IdVec<PortId, Option<u32>>,
    ) {
        let fabric = network.fabric;
        let host = |leaf: u32| fabric.first_host(leaf);
        let set = fabric.path_set(host(from), host(to));
        let first = self.paths.len();
        for id in (0..set.len()).map(|index| set.get(index)) {
            let ports = between_switches(fabric, host(from), host(to), id);
            let capacity = |port: &PortId| network.capacities[*port];
            let narrowest = ports.iter().map(capacity).min().unwrap_or(0);
            if narrowest == 0 {
                continue;
            }
            let start = self.links.len();
            for port in ports {
                let place = *places[port].get_or_insert_with(|| {
                    self.capacities.push(network.capacities[port] as f64);
                    self.capacities.len() as u32 - 1
                });
                self.links.push(place);
            }
            self.paths.push(Path { id, links: start..self.links.len(), share: narrowest as f64 });
        }
        normalise(&mut self.paths[first..]);
    }

    fn run(&mut self, least: f64) {
        let mut best = (self.most(), self.shares());
        for sharpness in SHARPNESS {
            let mut stride = 0.5;
            for _ in 0..ROUNDS {
                if best.0 <= least * (1.0 + NEAR) {
                    break;
                }
                let before = (self.potential(sharpness), self.shares());
                self.move_by(stride, sharpness);
                self.add_up();
                if self.potential(sharpness) < before.0 {
                    stride = (stride * 1.3).min(2.0);
                } else {
                    self.restore(&before.1);
                    stride *= 0.5;
                    if stride < 1e-4 {
                        break;
                    }
                }
                if self.most() < best.0 {
                    best = (self.most(), self.shares());
                }
            }
        }
        self.restore(&best.1);
    }

    /// The smooth maximum of all loads: between the largest one and that plus `sharpness` of it.
    fn potential(&self, sharpness: f64) -> f64 {
        let most = self.most();
        let rise = self.rise(sharpness, most);
        let sum: f64 = self.loads.iter().map(|load| exp(rise * (load - most))).sum();
        most + log(sum) / rise
    }
    fn rise(&self, sharpness: f64, most: f64) -> f64 {
        log(self.loads.len() as f64 + 1.0) / (sharpness * most)
    }

    /// Every pair moves from its dear paths to its cheap ones.
    fn move_by(&mut self, stride: f64, sharpness: f64) {
        let most = self.most();
        let rise = self.rise(sharpness, most);
        let loads = self.loads.iter().zip(&self.capacities);
        let prices: Vec<f64> =
            loads.map(|(load, capacity)| exp(rise * (load - most)) / capacity).collect();
        let mut costs = Vec::new();
        for pair in &self.pairs {
            let paths = &mut self.paths[pair.paths.clone()];
            costs.clear();
            costs.extend(paths.iter().map(|path| {
                self.links[path.links.clone()].iter().map(|at| prices[*at as usize]).sum::<f64>()
            }));
            let mean: f64 = paths.iter().zip(&costs).map(|(path, cost)| path.share * cost).sum();
            if mean <= 0.0 {
                continue;
            }
            for (path, cost) in paths.iter_mut().zip(&costs) {
                let change = (stride * (1.0 - cost / mean)).max(-5.0);
                // What is left of a path may come back.
                path.share = (path.share * exp(change)).max(1e-9);
            }
            normalise(paths);
        }
    }

    fn add_up(&mut self) {
        self.loads.fill(0.0);
        for pair in &self.pairs {
            for path in &self.paths[pair.paths.clone()] {
                for at in &self.links[path.links.clone()] {
                    let at = *at as usize;
                    self.loads[at] += pair.bits * path.share / self.capacities[at];
                }
            }
        }
    }
    fn most(&self) -> f64 {
        self.loads.iter().copied().fold(0.0, f64::max)
    }
    fn shares(&self) -> Vec<f64> {
        self.paths.iter().map(|path| path.share).collect()
    }
    fn restore(&mut self, shares: &[f64]) {
        for (path, share) in self.paths.iter_mut().zip(shares) {
            path.share = *share;
        }
        self.add_up();
    }
}

/// The links of a path without those of the hosts.
fn between_switches(fabric: &Fabric, src: HostId, dst: HostId, path: PathId) -> Vec<PortId> {
    let mut ports = fabric.trace(src, dst, path);
    ports.pop();
    ports.split_off(1)
}

fn normalise(paths: &mut [Path]) {
    let sum: f64 = paths.iter().map(|path| path.share).sum();
    paths.iter_mut().for_each(|path| path.share /= sum);
}
