//! An address for each path to a host (RLB: resilient load balancing by destination address).
//!
//! `[cluster] path_addresses` names an IPv4 network beside the addresses that hosts have. Each host has
//! an address in it for every uplink of a leaf, and switches have plain routes to them: a packet takes
//! the uplink that its destination address stands for, and no rule looks at ports. An address is
//! network, uplink, leaf and host, each with as many bits as it needs, so that all addresses of an
//! uplink share a prefix and so do those of a leaf below it.

use super::naming::{Names, PATH_ADDRESSES};
use super::{Cluster, quoted};
use crate::{ExperimentError, Origin};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::net::Ipv4Addr;

/// The addresses and prefixes of paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathAddresses {
    /// By host and uplink.
    pub hosts: Vec<Vec<Ipv4Addr>>,
    /// By leaf and uplink: the prefix of its hosts' addresses.
    pub racks: Vec<Vec<String>>,
    /// By uplink: the prefix of all addresses.
    pub uplinks: Vec<String>,
}

/// Bits behind the network, from the left.
#[derive(Clone, Copy, Debug)]
struct Layout {
    network: u32,
    length: u32,
    leaf: u32,
    host: u32,
}

impl Layout {
    fn address(self, uplink: u32, leaf: u32, place: u32) -> Ipv4Addr {
        let behind = (uplink << self.leaf | leaf) << self.host | (place + 1);
        Ipv4Addr::from(self.network | behind)
    }
    fn rack(self, uplink: u32, leaf: u32) -> String {
        let address = self.network | (uplink << self.leaf | leaf) << self.host;
        format!("{}/{}", Ipv4Addr::from(address), 32 - self.host)
    }
    fn uplink(self, uplink: u32) -> String {
        let behind = uplink << (self.leaf + self.host);
        format!("{}/{}", Ipv4Addr::from(self.network | behind), 32 - self.leaf - self.host)
    }
}

impl Cluster {
    /// The addresses of paths, if hosts have them.
    ///
    /// # Errors
    /// If the network is none or too small, or has addresses of others in it; or if the fabric has
    /// three tiers, where an uplink of a leaf is not yet a path.
    pub fn path_addresses(&self) -> Result<Option<PathAddresses>, ExperimentError> {
        let Some(network) = &self.path_addresses else { return Ok(None) };
        self.addresses_in(network).map(Some).map_err(|what| {
            ExperimentError::new(format!("cluster.{PATH_ADDRESSES}"), Origin::Unknown, what)
        })
    }

    pub(super) fn check_path_addresses(&self, names: &Names<'_>) -> Result<(), ExperimentError> {
        let Some(network) = &self.path_addresses else { return Ok(()) };
        self.addresses_in(network).map(drop).map_err(|what| names.wrong(PATH_ADDRESSES, what))
    }

    fn addresses_in(&self, network: &str) -> Result<PathAddresses, String> {
        if self.switches.iter().any(|switch| switch.tier == 2) {
            return Err("an uplink of a leaf is no path in three tiers; leave it out".to_owned());
        }
        let mut up: FxHashMap<&str, u32> = FxHashMap::default();
        for link in &self.links[self.hosts.len()..] {
            *up.entry(&link.lower).or_default() += 1;
        }
        let uplinks = up.into_values().max().unwrap_or(1);
        let leaves = self.switches.iter().filter(|switch| switch.tier == 0).count() as u32;
        let places = self.hosts.iter().map(|host| host.place + 1).max().unwrap_or(1);
        let layout = layout(network, uplinks, leaves, places)?;
        self.leaves_alone(layout)?;
        let of = |host: &super::Host| {
            (0..uplinks).map(|uplink| layout.address(uplink, host.leaf, host.place)).collect()
        };
        Ok(PathAddresses {
            hosts: self.hosts.iter().map(of).collect(),
            racks: (0..leaves)
                .map(|leaf| (0..uplinks).map(|uplink| layout.rack(uplink, leaf)).collect())
                .collect(),
            uplinks: (0..uplinks).map(|uplink| layout.uplink(uplink)).collect(),
        })
    }

    /// Refuses a network with addresses that somebody has.
    fn leaves_alone(&self, layout: Layout) -> Result<(), String> {
        let mask = u32::MAX.checked_shl(32 - layout.length).unwrap_or(0);
        let links = self.links.iter().flat_map(|link| [&link.lower_address, &link.upper_address]);
        let racks = self.switches.iter().flat_map(|switch| &switch.racks);
        for text in links.chain(racks) {
            let (address, length) = text.split_once('/').unwrap_or((text, "32"));
            let Ok(address) = address.parse::<Ipv4Addr>() else { continue };
            let wide = u32::MAX.checked_shl(32 - length.parse().unwrap_or(32)).unwrap_or(0);
            if (u32::from(address) ^ layout.network) & mask & wide == 0 {
                return Err(format!("{text} of the cluster is in it; use another network"));
            }
        }
        Ok(())
    }
}

fn layout(text: &str, uplinks: u32, leaves: u32, places: u32) -> Result<Layout, String> {
    let parts = text.split_once('/').and_then(|(network, length)| {
        Some((u32::from(network.parse::<Ipv4Addr>().ok()?), length.parse::<u32>().ok()?))
    });
    let wrong = || format!("{} is no IPv4 network; write one as 172.16.0.0/12", quoted(text));
    let (network, length) = parts.filter(|parts| (1..=31).contains(&parts.1)).ok_or_else(wrong)?;
    if network << length != 0 {
        return Err(wrong());
    }
    // Neither the first address of a rack nor the last is a host's.
    let (leaf, host) = (bits(leaves), bits(places + 2));
    let needed = bits(uplinks) + leaf + host;
    if length + needed > 32 {
        return Err(format!(
            "{uplinks} uplinks, {leaves} leaves and {places} hosts of a leaf need {needed} bits, but {} \
             has {}; use a larger network",
            quoted(text),
            32 - length
        ));
    }
    Ok(Layout { network, length, leaf, host })
}

/// How many bits tell so many apart.
fn bits(count: u32) -> u32 {
    count.max(1).next_power_of_two().trailing_zeros()
}

/// What the key says, if it is there.
pub(super) fn given(names: &Names<'_>) -> Result<Option<String>, ExperimentError> {
    names.text(PATH_ADDRESSES, "172.16.0.0/12")
}
