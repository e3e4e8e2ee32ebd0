//! What links carry where somebody else chose the source ports: software that has no planner.

use super::{Result, failures, wrong};
use crate::Resolved;
use weft_balance::plan::Route;
use weft_balance::scheme::{BalanceConfig, Ecmp};
use weft_fabric::Fabric;
use weft_plan::{Hashes, Loads, PlannedFabric};
use weft_sim::SwitchConfig;
use weft_units::{Draw, HostId, Time};

/// Payload of queue pairs, one an entry of each column.
#[derive(Clone, Copy, Debug)]
pub struct QueuePairs<'a> {
    /// Numbers of the sending hosts.
    pub src: &'a [u32],
    /// Numbers of the receiving hosts.
    pub dst: &'a [u32],
    /// What each sends, in bytes.
    pub bytes: &'a [u64],
    /// UDP source ports.
    pub source_port: &'a [u16],
}

/// What every link carries, in bytes, in the order of [`super::Planned::links`], if these queue pairs
/// send through the switches of `experiment`: those of its scheme where `steered`, else switches that
/// hash all (ECMP). `seed` is that of failures, `hash_seed` that of the switches' hashes. Switches
/// hash the addresses of a pair of hosts alike, so queue pairs with one port share their way. What a rule
/// leads to a switch that has lost the receiver is lost, and on no link.
///
/// # Errors
/// If columns differ in length or name hosts that are not there, or the fabric is no folded Clos.
pub fn port_loads(
    experiment: &Resolved,
    (seed, hash_seed): (u64, u64),
    steered: bool,
    pairs: &QueuePairs<'_>,
) -> Result<Vec<u64>> {
    let fabric = &experiment.fabric;
    experiment.clos("plans are made for")?;
    check(fabric, pairs)?;
    let ecmp = BalanceConfig { scheme: Ecmp.into(), ..experiment.balance.clone() };
    let balance = if steered { &experiment.balance } else { &ecmp };
    let capacities = failures(experiment, seed)?.capacities(fabric, Time::ZERO);
    let SwitchConfig { same_salt, hash: function, .. } = experiment.switch;
    let hashes = Hashes { seed: hash_seed, same_salt, function };
    let mut network =
        PlannedFabric::new(fabric, capacities, balance, hashes).with_rules(balance, hashes.seed);
    let keys = Draw::new(hash_seed, "address-key");
    let mut loads = Loads::none(fabric);
    for (number, bytes) in pairs.bytes.iter().enumerate() {
        let (src, dst) = (HostId(pairs.src[number]), HostId(pairs.dst[number]));
        let key = keys.at(u64::from(src.0), u64::from(dst.0)) as u32;
        let route = Route::Hashed(pairs.source_port[number]);
        let way = network.way(src, dst, route, key);
        let way = way.filter(|way| way.ports().iter().all(|one| network.capacities[*one] > 0));
        if let Some(way) = way {
            loads.add(way.ports(), *bytes);
        }
    }
    Ok(loads.0.iter().copied().collect())
}

fn check(fabric: &Fabric, pairs: &QueuePairs<'_>) -> Result<()> {
    let QueuePairs { src, dst, bytes, source_port } = pairs;
    let count = bytes.len();
    if [src.len(), dst.len(), source_port.len()] != [count; 3] {
        return Err(wrong("queue pairs", "columns differ in length".to_owned()));
    }
    let hosts = fabric.hosts();
    match src.iter().chain(*dst).find(|host| **host >= hosts) {
        Some(host) => Err(wrong("queue pairs", format!("host-{host}: there are {hosts} hosts"))),
        None => Ok(()),
    }
}
