//! The source ports of a plan's subflows, from a table of discovered paths.
//!
//! A survey for a job finds few ports of each pair of hosts, perhaps not of every path. Subflows whose path has
//! none are moved to paths that have some, so that links stay as even as they can. In a whole table a path
//! without a port is a mistake, or a link that is down: then nothing is moved.

use std::collections::{BTreeMap, BTreeSet};
use weft_balance::enforce::PortTable;
use weft_config::cluster::{Cluster, discovered};
use weft_config::paths_file::PathsFile;
use weft_config::plan_file::{self, NONE, Step, Subflows};
use weft_fabric::PathId;
use weft_plan::{Busiest, Loads, PlannedFabric};
use weft_units::{HostId, PortId};

/// Times that all subflows are looked at again: far more than it takes until none moves.
const ROUNDS: usize = 100;

/// Gives every subflow that crosses the fabric a port that was found to lead along its path, or another path
/// that has one. Those of a step that share a path take its ports in turn.
///
/// # Errors
/// If there is none: which, and the mend.
pub(super) fn give(
    steps: &mut [Step],
    cluster: &Cluster,
    table: &PathsFile,
    network: &PlannedFabric<'_>,
) -> Result<(), String> {
    let found = discovered(cluster, table);
    if let Some(stranger) = found.strangers.first() {
        return Err(format!(
            "{stranger} answered where a switch of the cluster should be; mend [cluster] \
             uplink_next_hop"
        ));
    }
    let partly = partly(cluster, table);
    for step in steps {
        if let Some(placed) = &mut step.placed {
            if let Some(loads) = fit(placed, &found.ports, &partly, network) {
                let name = |port| network.fabric.port_name(port);
                let busiest = loads.busiest(network).map(|Busiest { port, bytes, seconds }| {
                    plan_file::Busiest { link: Some(name(port)), bytes, seconds }
                });
                step.congestion = busiest.unwrap_or_default();
                step.loads = loads.0.iter().copied().collect();
            }
            give_step(placed, cluster, &found.ports)?;
        }
    }
    Ok(())
}

/// Sending and receiving hosts of which a survey has looked for some ports only.
fn partly(cluster: &Cluster, table: &PathsFile) -> BTreeSet<(u32, u32)> {
    let number = cluster.hosts.iter().map(|host| (host.address, host.number));
    let number: BTreeMap<_, _> = number.collect();
    let pairs = table.sources.iter().flat_map(|source| {
        let some = source.targets.iter().filter(|target| !target.needs.is_empty());
        some.map(|target| (source.address, target.address))
    });
    pairs
        .filter_map(|(src, dst)| number.get(&src).copied().zip(number.get(&dst).copied()))
        .collect()
}

/// A subflow that may take one of several paths, with the links of each.
struct Movable {
    at: usize,
    paths: Vec<(u32, Vec<PortId>)>,
    /// Which of them it takes; none: the one of the plan has no port.
    now: Option<usize>,
}

/// Moves subflows to paths that have ports, if some have none; what links carry then. Each takes the path that
/// adds least to the squares of the times that links are busy, again and again until none would move: so the
/// sum of squares falls, and the busiest links with it.
fn fit(
    placed: &mut Subflows,
    found: &PortTable,
    partly: &BTreeSet<(u32, u32)>,
    network: &PlannedFabric<'_>,
) -> Option<Loads> {
    let mut all = movable(placed, found, partly, network);
    if all.iter().all(|one| one.now.is_some()) {
        return None;
    }
    let mut loads = Loads::none(network.fabric);
    let fixed = |at: usize| (HostId(placed.src[at]), HostId(placed.dst[at]), placed.path[at]);
    let mut next = all.iter().map(|one| one.at).peekable();
    for at in 0..placed.src.len() {
        if next.next_if_eq(&at).is_none() {
            let (src, dst, path) = fixed(at);
            loads.add(&network.fabric.trace(src, dst, PathId(path as u16)), placed.bytes[at]);
        }
    }
    for one in &mut all {
        if let Some(now) = one.now {
            loads.add(&one.paths[now].1, placed.bytes[one.at]);
        }
    }
    for _ in 0..ROUNDS {
        let moved = all.iter_mut().filter_map(|one| {
            let bytes = placed.bytes[one.at];
            let old = one.now;
            settle(one, bytes, &mut loads, network);
            (one.now != old).then_some(())
        });
        if moved.count() == 0 {
            break;
        }
    }
    for one in &all {
        placed.path[one.at] = one.now.map_or(placed.path[one.at], |now| one.paths[now].0);
    }
    Some(loads)
}

/// The subflows that have a choice, in order. Those of a persistent queue pair stay where that is.
fn movable(
    placed: &Subflows,
    found: &PortTable,
    partly: &BTreeSet<(u32, u32)>,
    network: &PlannedFabric<'_>,
) -> Vec<Movable> {
    let of = |at: usize| {
        let (src, dst) = (HostId(placed.src[at]), HostId(placed.dst[at]));
        let is_pinned = placed.queue_pair[at] != NONE;
        let crosses = network.fabric.leaf_of(src) != network.fabric.leaf_of(dst);
        let paths: Vec<_> = found.paths(src, dst).collect();
        let is_part = partly.contains(&(src.0, dst.0));
        if is_pinned || !crosses || !is_part || paths.is_empty() {
            return None;
        }
        let links = |path: PathId| (u32::from(path.0), network.fabric.trace(src, dst, path));
        let now = paths.iter().position(|path| u32::from(path.0) == placed.path[at]);
        let paths = paths.into_iter().map(links).collect();
        Some(Movable { at, paths, now })
    };
    (0..placed.src.len()).filter_map(of).collect()
}

/// Has a subflow take the path that adds least.
fn settle(one: &mut Movable, bytes: u64, loads: &mut Loads, network: &PlannedFabric<'_>) {
    if let Some(now) = one.now {
        one.paths[now].1.iter().for_each(|port| loads.0[*port] -= bytes);
    }
    let cost = |(_, links): &(u32, Vec<PortId>)| -> f64 {
        let more = |port: &PortId| {
            let (before, rate) = (loads.0[*port] as f64, network.capacities[*port] as f64);
            (2.0 * before + bytes as f64) / (rate * rate)
        };
        links.iter().map(more).sum()
    };
    let costs: Vec<f64> = one.paths.iter().map(cost).collect();
    let least = (0..costs.len()).reduce(|best, at| if costs[at] < costs[best] { at } else { best });
    // Where nothing is gained it stays.
    let stays = one.now.filter(|now| least.is_none_or(|least| costs[*now] <= costs[least]));
    one.now = stays.or(least);
    if let Some(now) = one.now {
        loads.add(&one.paths[now].1, bytes);
    }
}

fn give_step(placed: &mut Subflows, cluster: &Cluster, found: &PortTable) -> Result<(), String> {
    let mut used: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for at in 0..placed.src.len() {
        let (src, dst, path) = (placed.src[at], placed.dst[at], placed.path[at]);
        let [from, to] = [src, dst].map(|host| &cluster.hosts[host as usize]);
        if from.leaf == to.leaf {
            placed.source_port[at] = NONE;
            continue;
        }
        let path_id = PathId(path as u16);
        let ports = found.ports(HostId(src), HostId(dst), path_id);
        let turn = used.entry((src, dst, path)).or_default();
        let Some(place) = turn.checked_rem(ports.len()) else {
            return Err(missing(&from.name, &to.name, path_id));
        };
        placed.source_port[at] = u32::from(ports[place]);
        *turn += 1;
    }
    Ok(())
}

fn missing(from: &str, to: &str, path: PathId) -> String {
    let (first, second) = (path.first(), path.second());
    format!(
        "no port from {from} to {to} leads over path {first}.{second}; run weft discover again, or \
         say under [failures] of the cluster that its link is down"
    )
}
