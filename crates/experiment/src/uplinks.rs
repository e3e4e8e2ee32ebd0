//! How evenly the uplinks of leaves were used, as CTCCL (2025) measures it (section 4.2, figures 6
//! and 7): by the shares of their capacity, in percent, until the last packet of the run.
//!
//! What counts are the leaves that sent anything up, and of each the uplinks that are alive at the end
//! and lead on to another leaf: a dead one is no want of balance, nor is one to a switch that has
//! lost all its other links.

use weft_fabric::{Fabric, Failures, Node, Port};
use weft_sim::Outcome;
use weft_units::{PortId, Time};

/// Of all leaves that sent anything up; zero where none did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Balance {
    /// The mean usage, in percent.
    pub(crate) usage: f64,
    /// The variance of usage over the uplinks of a leaf, each counted once (the population's), the
    /// mean over leaves; in percent squared.
    pub(crate) variance: f64,
    /// The most used uplink of a leaf less the least used one, of the leaf where that is most; in
    /// percent points.
    pub(crate) spread: f64,
}

/// Whether `port` of a leaf is alive at `at`, and the switch behind it has a live link to another one
/// than that leaf.
fn leads_on(fabric: &Fabric, failures: &Failures, port: PortId, at: Time) -> bool {
    let Port { owner, peer, .. } = fabric.ports()[port];
    let Node::Switch(above) = peer else { return false };
    let other = |next: PortId| {
        let Port { peer, .. } = fabric.ports()[next];
        peer != owner && !failures.is_down(next, at)
    };
    !failures.is_down(port, at) && fabric.ports_of(above).ids().any(other)
}

impl Balance {
    /// What the ports of `outcome` say.
    pub(crate) fn of(fabric: &Fabric, failures: &Failures, outcome: &Outcome) -> Balance {
        let end = outcome.totals.end;
        let usage = |port: PortId| {
            let capacity = fabric.ports()[port].rate.as_bps() as f64 * end.as_secs_f64();
            outcome.ports[port].bytes as f64 * 8.0 / capacity * 100.0
        };
        let leaf = |(plane, leaf): (u32, u32)| {
            let leaf = fabric.leaf_in_plane(leaf, plane);
            let (all, ups) = (fabric.ports_of(leaf), fabric.uplinks(leaf));
            let live = all.ids().skip((all.count - ups) as usize);
            let live: Vec<PortId> =
                live.filter(|port| leads_on(fabric, failures, *port, end)).collect();
            let sent = live.iter().any(|port| outcome.ports[*port].bytes > 0);
            sent.then(|| live.into_iter().map(usage).collect::<Vec<f64>>())
        };
        // Other homes of hosts are numbered behind the leaves.
        let switches = fabric.leaves() * fabric.homes();
        let leaves: Vec<Balance> = (0..fabric.planes())
            .flat_map(|plane| (0..switches).map(move |leaf| (plane, leaf)))
            .filter_map(leaf)
            .map(|usages| Balance::among(&usages))
            .collect();
        if leaves.is_empty() {
            return Balance::default();
        }
        let over =
            |of: fn(&Balance) -> f64| leaves.iter().map(of).sum::<f64>() / leaves.len() as f64;
        Balance {
            usage: over(|leaf| leaf.usage),
            variance: over(|leaf| leaf.variance),
            spread: leaves.iter().map(|leaf| leaf.spread).fold(0.0, f64::max),
        }
    }

    /// Among the uplinks of one leaf, of which there is at least one.
    fn among(usages: &[f64]) -> Balance {
        let count = usages.len() as f64;
        let mean = |of: &dyn Fn(f64) -> f64| usages.iter().map(|one| of(*one)).sum::<f64>() / count;
        // From the first one on, so that equal ones have no variance at all.
        let above = mean(&|one| one - usages[0]);
        let usage = usages[0] + above;
        let variance = mean(&|one| (one - usage) * (one - usage));
        let most = usages.iter().copied().fold(0.0, f64::max);
        let least = usages.iter().copied().fold(f64::INFINITY, f64::min);
        Balance { usage, variance, spread: most - least }
    }
}
