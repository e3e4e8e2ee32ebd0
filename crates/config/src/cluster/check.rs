//! Whether the names and addresses of a cluster can be: distinct where they must be, and nothing
//! that a shell, a switch or a kernel would take for something else.

use crate::ExperimentError;
use crate::cluster::naming::Names;
use crate::cluster::nodes::Named;
use crate::cluster::{Link, quoted};
use rustc_hash::FxHashMap;
use std::net::Ipv4Addr;

type Result<T> = std::result::Result<T, ExperimentError>;

/// Refuses the first that cannot be. With `cores` switches of the middle are aggregation switches.
pub(crate) fn check(named: &Named, names: &Names<'_>, cores: bool) -> Result<()> {
    ports_for_uplinks(named, names)?;
    let mut seen = Distinct::new("name", "make the pattern differ by node");
    for host in &named.hosts {
        seen.note(names, "host", &format!("host-{}", host.number), "", &host.name)?;
    }
    for switch in &named.switches {
        let key = match switch.tier {
            0 => "leaf",
            1 if cores => "agg",
            1 => "spine",
            _ => "core",
        };
        seen.note(names, key, &switch.node, "", &switch.name)?;
    }
    let mut seen = Distinct::new("port", "make the pattern differ by port");
    for link in &named.links {
        let Link { lower, upper, .. } = link;
        let [at_lower, at_upper] = keys_of_ports(link);
        // The interfaces of a server's NICs are of one machine, but hosts of the fabric.
        seen.note(names, at_lower, &format!("{lower} to {upper}"), lower, &link.lower_port)?;
        seen.note(names, at_upper, &format!("{upper} to {lower}"), upper, &link.upper_port)?;
    }
    addresses(named, names)
}

fn ports_for_uplinks(named: &Named, names: &Names<'_>) -> Result<()> {
    let mut above: FxHashMap<&str, u32> = FxHashMap::default();
    for link in &named.links[named.hosts.len()..] {
        *above.entry(&link.lower).or_default() += 1;
    }
    let most = above.into_values().max().unwrap_or_default();
    let ports = u32::from(named.last_port).saturating_add(1) as i64 - i64::from(named.first_port);
    if ports >= i64::from(most.max(1)) {
        return Ok(());
    }
    let (ports, least) = (ports.max(0), most.max(1));
    let what = format!("{ports} source ports for {most} uplinks");
    Err(names.wrong("last_port", format!("{what}; let it be {least} or more above first_port")))
}

fn keys_of_ports(link: &Link) -> [&'static str; 2] {
    if link.lower.starts_with("host-") {
        ["host_interface", "host_port"]
    } else if link.lower.starts_with("leaf-") {
        ["uplink_port", "downlink_port"]
    } else {
        ["agg_uplink_port", "core_downlink_port"]
    }
}

/// Names that must differ within a scope.
struct Distinct<'a> {
    what: &'static str,
    mend: &'static str,
    seen: FxHashMap<(&'a str, &'a str), String>,
}

impl<'a> Distinct<'a> {
    fn new(what: &'static str, mend: &'static str) -> Distinct<'a> {
        Distinct { what, mend, seen: FxHashMap::default() }
    }

    fn note(
        &mut self,
        names: &Names<'_>,
        key: &str,
        who: &str,
        scope: &'a str,
        name: &'a str,
    ) -> Result<()> {
        let (what, mend) = (self.what, self.mend);
        if !can_be(name) {
            let name = quoted(name);
            let allowed = "letters, digits and _ . / : -";
            return Err(names.wrong(key, format!("{name} is no {what}; use {allowed}")));
        }
        match self.seen.insert((scope, name), who.to_owned()) {
            None => Ok(()),
            Some(other) => {
                let what = format!("{who} has the {what} {name}, and so has {other}");
                Err(names.wrong(key, format!("{what}; {mend}")))
            }
        }
    }
}

/// Nothing that a shell or a switch could take for more than a name.
fn can_be(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_./:-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed)
}

/// An IPv4 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    first: u32,
    length: u32,
}

impl Prefix {
    /// Reads `10.0.0.0/16`; an address alone is a prefix of 32 bits.
    fn read(text: &str) -> Option<Prefix> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let first = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let length = length.parse().ok().filter(|length| *length <= 32)?;
        let prefix = Prefix { first, length };
        (first & prefix.hosts() == 0).then_some(prefix)
    }
    /// The bits behind it.
    fn hosts(self) -> u32 {
        u32::MAX.checked_shr(self.length).unwrap_or(0)
    }
    fn last(self) -> u32 {
        self.first | self.hosts()
    }
    fn has(self, address: u32) -> bool {
        (self.first..=self.last()).contains(&address)
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.length)
    }
}

fn addresses(named: &Named, names: &Names<'_>) -> Result<()> {
    let leaves = || named.switches.iter().filter(|switch| switch.tier == 0);
    let racks = leaves().map(|leaf| rack(names, &leaf.racks[0])).collect::<Result<Vec<_>>>()?;
    let mut sorted = racks.clone();
    sorted.sort_by_key(|rack| (rack.first, rack.length));
    for pair in sorted.windows(2) {
        if pair[0].last() >= pair[1].first {
            let what = format!("{} and {} overlap", pair[0], pair[1]);
            return Err(names.wrong("rack", format!("{what}; give every leaf its own prefix")));
        }
    }
    let mut seen = FxHashMap::default();
    for (leaf, rack) in leaves().zip(&racks) {
        let text = leaf.gateway.as_deref().unwrap_or_default();
        let found = names.address("gateway", &leaf.node, text)?;
        note(&mut seen, names, "gateway", &leaf.node, found)?;
        inside(names, "gateway", found, *rack)?;
    }
    for host in &named.hosts {
        let who = format!("host-{}", host.number);
        note(&mut seen, names, "host_address", &who, host.address)?;
        inside(names, "host_address", host.address, racks[host.leaf as usize])?;
    }
    for link in &named.links[named.hosts.len()..] {
        let keys = match link.lower.starts_with("leaf-") {
            true => ["uplink_address", "uplink_next_hop"],
            false => ["agg_uplink_address", "agg_uplink_next_hop"],
        };
        let who = format!("{} to {}", link.lower, link.upper);
        for (key, text) in keys.into_iter().zip([&link.lower_address, &link.upper_address]) {
            let found = names.address(key, &who, text)?;
            note(&mut seen, names, key, &who, found)?;
            let number = u32::from(found);
            let at = sorted.partition_point(|rack| rack.first <= number);
            if at > 0 && sorted[at - 1].has(number) {
                let what = format!("{found} is inside a rack's prefix");
                return Err(names.wrong(key, format!("{what}; use others for links")));
            }
        }
    }
    Ok(())
}

fn rack(names: &Names<'_>, text: &str) -> Result<Prefix> {
    Prefix::read(text).ok_or_else(|| {
        let what = format!("{} is no IPv4 prefix", quoted(text));
        names.wrong("rack", format!("{what}; write one as 10.0.0.0/16"))
    })
}

/// Refuses an address that somebody else has.
fn note(
    seen: &mut FxHashMap<Ipv4Addr, String>,
    names: &Names<'_>,
    key: &str,
    who: &str,
    address: Ipv4Addr,
) -> Result<()> {
    match seen.insert(address, who.to_owned()) {
        None => Ok(()),
        Some(other) => {
            let what = format!("{who} has the address {address}, and so has {other}");
            Err(names.wrong(key, format!("{what}; make the pattern differ")))
        }
    }
}

fn inside(names: &Names<'_>, key: &str, address: Ipv4Addr, rack: Prefix) -> Result<()> {
    let number = u32::from(address);
    if rack.has(number) && number != rack.first && number != rack.last() {
        return Ok(());
    }
    let what = format!("{address} is no host address of its rack {rack}; mend one of the two");
    Err(names.wrong(key, what))
}
