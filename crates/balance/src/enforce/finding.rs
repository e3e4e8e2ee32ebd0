//! Ports that a simulated host finds out, by the survey that hosts carry out on real switches
//! ([`weft_discover::Survey`]): it asks where probes end, and is told nothing of the hash.
//!
//! Answers come at once and none is lost; what limits, loss and silence cost is studied by itself
//! (`experiments/discover`).

use super::{Ends, FiveTuple, Hashing, PortRange, clos, uplink_of};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weft_discover::{Reply, Rules, Step, Survey};
use weft_fabric::{Fabric, Node, PathId};
use weft_units::{Draw, PortId, SwitchId, Time};

/// Ports that are drawn for the search; paths have hundreds of times fewer.
const TRIED: u64 = 1_024;

/// Ports by path, towards one host.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundPorts(BTreeMap<PathId, Vec<u16>>);

impl FoundPorts {
    /// The next port of `path` after `last`, going round; of another path if it has none.
    pub(super) fn after(&self, path: PathId, last: Option<u16>) -> Option<u16> {
        let other = || {
            let place = usize::from(path.first()).checked_rem(self.0.len())?;
            self.0.values().nth(place)
        };
        let ports = self.0.get(&path).or_else(other)?;
        let place = last.and_then(|last| ports.iter().position(|port| *port == last));
        Some(ports[place.map_or(0, |place| (place + 1) % ports.len())])
    }
    /// The path of a port.
    pub(super) fn path(&self, port: u16) -> Option<PathId> {
        let mut all = self.0.iter();
        all.find(|(_, ports)| ports.contains(&port)).map(|(path, _)| *path)
    }
}

/// Finds out which ports lead from one end to the other by which path.
pub(super) fn find_ports(fabric: &Fabric, ends: &Ends, hashing: Hashing) -> FoundPorts {
    let PortRange { first, .. } = PortRange::ROCE;
    let seed = u64::from(ends.src.0) << 32 | u64::from(ends.dst.0);
    let drawn = Draw::new(seed, "ports to try");
    let tried = |place: u64| first + (drawn.at(place, 0) % u64::from(PortRange::ROCE.len())) as u16;
    let ports: Vec<u16> = (0..TRIED).map(tried).collect();
    // As hosts with a cluster file do, it looks for all paths that there should be.
    let expected = fabric.path_set(ends.src, ends.dst).len();
    let rules = Rules { interval: Time::ZERO, expected, ..Rules::default() };
    let mut survey = Survey::new(rules, &ports, seed, 1);
    let mut now = Time::ZERO;
    loop {
        match survey.poll(now) {
            Step::Send(probe) => {
                let links = links_from(fabric, ends, probe.port, |switch, tuple, hops| {
                    uplink_of(&hashing.at(fabric, switch), tuple, hops)
                });
                let reply = match links.get(usize::from(probe.ttl) - 1) {
                    Some(link) => Reply::Hop(Ipv4Addr::from(link.0)),
                    None => Reply::End,
                };
                survey.answered(probe, reply);
            }
            Step::Wait(until) => now = until,
            Step::Done => break,
        }
    }
    let mut found = FoundPorts::default();
    for path in survey.state(0).paths {
        let links: Vec<u32> = path.hops.iter().flatten().map(|hop| u32::from(*hop)).collect();
        if let Some(name) = named(fabric, ends, &links) {
            let ports = found.0.entry(name).or_default();
            ports.extend(path.ports.into_iter().chain(path.predicted));
        }
    }
    found
}

/// The links to the switches on the way of a packet between two ends from `port`, the NIC's first, where every
/// switch chooses one of so many hops.
pub fn links_from(
    fabric: &Fabric,
    ends: &Ends,
    port: u16,
    choose: impl Fn(SwitchId, &FiveTuple, u32) -> u32,
) -> Vec<PortId> {
    let tuple = FiveTuple::rocev2(ends.from, ends.to, port);
    let mut links = vec![fabric.nic(ends.src)];
    while let Node::Switch(switch) = fabric.ports()[links[links.len() - 1]].peer {
        let group = fabric.next_hops(switch, ends.dst);
        links.push(PortId(group.first.0 + choose(switch, &tuple, group.count)));
    }
    // The last one leads to the host.
    links.pop();
    links
}

/// The path over these links, the NIC's first; `None` if they do not join: where few ports were asked about a switch,
/// all are taken to meet it.
fn named(fabric: &Fabric, ends: &Ends, links: &[u32]) -> Option<PathId> {
    let hop = |place: usize| {
        let Some(link) = links.get(place) else { return Some(0) };
        let before = fabric.ports()[PortId(links[place - 1])].peer;
        let Node::Switch(switch) = before else { return None };
        let group = fabric.next_hops(switch, ends.dst);
        link.checked_sub(group.first.0).filter(|hop| *hop < group.count).map(|hop| hop as u8)
    };
    let first = hop(1)?;
    // Down over a bundle any member is taken: a path is called by the one that goes with its uplink.
    let second = match fabric.pod_of(ends.src) == fabric.pod_of(ends.dst) {
        true => (u32::from(first) % clos(fabric).leaf_bundle.members) as u8,
        false => hop(2)?,
    };
    Some(PathId::new(first, second))
}
