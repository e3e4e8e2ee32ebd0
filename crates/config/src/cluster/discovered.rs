//! Discovered paths as paths of a cluster: the switches that answered, by their addresses.
//!
//! A switch usually answers from the address of the link by which the probe came, or by which its answer
//! leaves: of a leaf's uplink both are `uplink_next_hop`. A silent switch is known by the link over which the
//! next one was asked, or by being the only one that nobody else is.

use super::{Cluster, Link, State};
use crate::paths_file::{PathPorts, PathsFile, TargetPaths};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use weft_balance::enforce::PortTable;
use weft_fabric::PathId;
use weft_units::HostId;

/// What a table of discovered paths says of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// Ports by hosts and path.
    pub ports: PortTable,
    /// Addresses that answered where a switch above a leaf should be, and are none of the cluster's.
    pub strangers: BTreeSet<Ipv4Addr>,
    /// Ports whose path could not be named.
    pub unnamed: u32,
}

/// The links of a cluster, as discovery looks for them.
struct Named<'a> {
    hosts: BTreeMap<Ipv4Addr, &'a super::Host>,
    /// The links above a switch, in the order of uplinks.
    above: BTreeMap<&'a str, Vec<&'a Link>>,
}

/// Names the paths of `file`; sources and targets that are no hosts of `cluster` are left out.
pub fn discovered(cluster: &Cluster, file: &PathsFile) -> Discovered {
    let mut above: BTreeMap<&str, Vec<&Link>> = BTreeMap::new();
    cluster.links.iter().for_each(|link| above.entry(&link.lower).or_default().push(link));
    let hosts = cluster.hosts.iter().map(|host| (host.address, host)).collect();
    let named = Named { hosts, above };
    let mut found = Discovered::default();
    for source in &file.sources {
        for target in &source.targets {
            let ends = named.hosts.get(&source.address).zip(named.hosts.get(&target.address));
            let Some((src, dst)) = ends else { continue };
            if src.leaf != dst.leaf {
                named.add((src, dst), target, &mut found);
            }
        }
    }
    found
}

/// Where a path leads up: the uplink of the leaf and, across pods, that of the switch there.
type Ups = (u32, Option<u32>);

impl Named<'_> {
    fn add(
        &self,
        (src, dst): (&super::Host, &super::Host),
        target: &TargetPaths,
        to: &mut Discovered,
    ) {
        let leaf = format!("leaf-{}", src.leaf);
        let mut silent = Vec::new();
        let mut seen = BTreeSet::new();
        for path in &target.paths {
            match self.ups(&leaf, dst, path, target.hops > Some(3)) {
                Some(ups) => {
                    seen.insert(ups.0);
                    self.put((src, dst), ups, path, to);
                }
                None if path.hops.get(1).is_none_or(Option::is_none) => silent.push(path),
                None => {
                    to.strangers.extend(path.hops[1]);
                    to.unnamed += path.ports.len() as u32;
                }
            }
        }
        // The only uplink that nobody else is, if there is one.
        let alive = self.above.get(leaf.as_str()).into_iter().flatten();
        let alive = (0..).zip(alive).filter(|(_, link)| link.state != State::Down);
        let missing: Vec<u32> =
            alive.map(|(number, _)| number).filter(|one| !seen.contains(one)).collect();
        let count = |paths: &[&PathPorts]| paths.iter().map(|path| path.ports.len()).sum::<usize>();
        let (all, uplinks) = (count(&target.paths.iter().collect::<Vec<_>>()), seen.len() + 1);
        // Far fewer than a share: those are answers that were late.
        let is_share = count(&silent) > 1 && count(&silent) * uplinks * 4 >= all;
        for path in silent {
            match missing[..] {
                [only] if is_share && self.is_two_tier(&leaf, only) => {
                    self.put((src, dst), (only, None), path, to);
                }
                _ => to.unnamed += path.ports.len() as u32,
            }
        }
    }

    fn is_two_tier(&self, leaf: &str, uplink: u32) -> bool {
        let above = self.above.get(leaf).and_then(|all| all.get(uplink as usize));
        above.is_some_and(|link| !self.above.contains_key(link.upper.as_str()))
    }

    fn put(
        &self,
        (src, dst): (&super::Host, &super::Host),
        (first, second): Ups,
        path: &PathPorts,
        to: &mut Discovered,
    ) {
        let leaf = format!("leaf-{}", src.leaf);
        let links = &self.above[leaf.as_str()];
        let down = links[first as usize].member;
        let id = PathId::new(first as u8, second.unwrap_or(down) as u8);
        let ends = (HostId(src.number), HostId(dst.number));
        to.ports.add(ends, id, &path.ports);
        to.ports.add(ends, id, &path.predicted);
    }

    /// Which uplinks a path takes, if its switches can be named; two of them if it `crosses` pods.
    fn ups(&self, leaf: &str, dst: &super::Host, path: &PathPorts, crosses: bool) -> Option<Ups> {
        let at = |place: usize| path.hops.get(place).copied().flatten();
        let first = match at(1) {
            Some(address) => self.uplink(leaf, address)?,
            None => self.by_next(leaf, dst, at(2)?)?,
        };
        let above = &self.above.get(leaf)?[first as usize].upper;
        match crosses {
            true => Some((first, Some(self.uplink(above, at(2)?)?))),
            false => Some((first, None)),
        }
    }

    /// The uplink of `node` at whose upper end an address is.
    fn uplink(&self, node: &str, address: Ipv4Addr) -> Option<u32> {
        let text = address.to_string();
        let links = self.above.get(node)?;
        links.iter().position(|link| link.upper_address == text).map(|place| place as u32)
    }

    /// The uplink of `leaf` that leads to a silent switch, if the leaf of `dst` has answered from the
    /// address of its link to that.
    fn by_next(&self, leaf: &str, dst: &super::Host, address: Ipv4Addr) -> Option<u32> {
        let text = address.to_string();
        let there = self.above.get(format!("leaf-{}", dst.leaf).as_str())?;
        let link = there.iter().find(|link| link.lower_address == text)?;
        let same = |one: &&Link| (&one.upper, one.member) == (&link.upper, link.member);
        self.above.get(leaf)?.iter().position(same).map(|place| place as u32)
    }
}
