//! Whether the names and addresses of a cluster can be: distinct where they must be, and nothing
//! that a shell, a switch or a kernel would take for something else.

use crate::cluster::naming::Names;
use crate::cluster::{Cluster, Link, MOST_QUEUE_PAIRS, QUEUE_PAIRS, quoted};
use crate::{ExperimentError, Origin};
use rustc_hash::FxHashMap;
use std::net::Ipv4Addr;

type Result<T> = std::result::Result<T, ExperimentError>;

/// Where the names and addresses are written, which messages are about.
#[derive(Clone, Copy)]
pub(super) enum Written<'a> {
    /// In a cluster file.
    AsPatterns(&'a Names<'a>),
    /// One by one.
    InPlan,
}

/// Where a value stands.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    /// The key of its pattern in a cluster file.
    pattern: &'a str,
    /// Its list in a plan and its place in there; none: it is in no list.
    list: Option<(&'a str, usize)>,
    /// Its key in a plan.
    key: &'a str,
}

impl<'a> At<'a> {
    pub(super) fn top(key: &'a str) -> At<'a> {
        At { pattern: key, list: None, key }
    }
    pub(super) fn host(place: usize, pattern: &'a str, key: &'a str) -> At<'a> {
        At { pattern, list: Some(("hosts", place)), key }
    }
    pub(super) fn switch(place: usize, pattern: &'a str, key: &'a str) -> At<'a> {
        At { pattern, list: Some(("switches", place)), key }
    }
    pub(super) fn link(place: usize, pattern: &'a str, key: &'a str) -> At<'a> {
        At { pattern, list: Some(("links", place)), key }
    }
}

impl Written<'_> {
    /// The mistake `what`; `mend` is for patterns.
    pub(super) fn wrong(self, at: At<'_>, what: &str, mend: &str) -> ExperimentError {
        let key = match (self, at.list) {
            (Written::AsPatterns(names), _) => {
                return names.wrong(at.pattern, format!("{what}; {mend}"));
            }
            (Written::InPlan, Some((list, place))) => format!("cluster.{list}[{place}].{}", at.key),
            (Written::InPlan, None) => format!("cluster.{}", at.key),
        };
        ExperimentError::new(key, Origin::Unknown, format!("{what}; make the plan again"))
    }
}

/// Refuses the first that cannot be. Every leaf has a prefix, and every host a leaf.
pub(super) fn check(cluster: &Cluster, written: Written<'_>) -> Result<()> {
    ports_for_uplinks(cluster, written)?;
    let mut seen = Distinct::new(written, "name", "make the pattern differ by node");
    for (place, host) in cluster.hosts.iter().enumerate() {
        let who = format!("host-{}", host.number);
        seen.note(At::host(place, "host", "name"), &who, "", &host.name)?;
    }
    let cores = cluster.switches.iter().any(|switch| switch.tier == 2);
    for (place, switch) in cluster.switches.iter().enumerate() {
        let pattern = match switch.tier {
            0 => "leaf",
            1 if cores => "agg",
            1 => "spine",
            _ => "core",
        };
        seen.note(At::switch(place, pattern, "name"), &switch.node, "", &switch.name)?;
    }
    let mut seen = Distinct::new(written, "port", "make the pattern differ by port");
    for (place, link) in cluster.links.iter().enumerate() {
        let Link { lower, upper, .. } = link;
        let [at_lower, at_upper] = patterns_of_ports(link);
        let [at_lower, at_upper] =
            [At::link(place, at_lower, "lower_port"), At::link(place, at_upper, "upper_port")];
        // The interfaces of a server's NICs are of one machine, but hosts of the fabric.
        seen.note(at_lower, &format!("{lower} to {upper}"), lower, &link.lower_port)?;
        seen.note(at_upper, &format!("{upper} to {lower}"), upper, &link.upper_port)?;
    }
    addresses(cluster, written)
}

fn ports_for_uplinks(cluster: &Cluster, written: Written<'_>) -> Result<()> {
    let mut above: FxHashMap<&str, u32> = FxHashMap::default();
    for link in &cluster.links[cluster.hosts.len()..] {
        *above.entry(&link.lower).or_default() += 1;
    }
    let most = above.into_values().max().unwrap_or_default();
    let ports = i64::from(cluster.last_port) + 1 - i64::from(cluster.first_port);
    if ports >= i64::from(most.max(1)) {
        return Ok(());
    }
    let (ports, least) = (ports.max(0), most.max(1));
    let what = format!("{ports} source ports for {most} uplinks");
    let mend = format!("let it be {least} or more above first_port");
    Err(written.wrong(At::top("last_port"), &what, &mend))
}

fn patterns_of_ports(link: &Link) -> [&'static str; 2] {
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
    written: Written<'a>,
    what: &'static str,
    mend: &'static str,
    seen: FxHashMap<(&'a str, &'a str), String>,
}

impl<'a> Distinct<'a> {
    fn new(written: Written<'a>, what: &'static str, mend: &'static str) -> Distinct<'a> {
        Distinct { written, what, mend, seen: FxHashMap::default() }
    }

    fn note(&mut self, at: At<'_>, who: &str, scope: &'a str, name: &'a str) -> Result<()> {
        let what = self.what;
        if !can_be(name) {
            let name = quoted(name);
            return Err(self.written.wrong(at, &format!("{name} is no {what}"), ALLOWED));
        }
        match self.seen.insert((scope, name), who.to_owned()) {
            None => Ok(()),
            Some(other) => {
                let what = format!("{who} has the {what} {name}, and so has {other}");
                Err(self.written.wrong(at, &what, self.mend))
            }
        }
    }
}

/// What [`can_be`] takes.
const ALLOWED: &str = "use letters, digits and _ . / : -";

/// Nothing that a shell or a switch could take for more than a name.
pub(super) fn can_be(name: &str) -> bool {
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
        let is_number = length.bytes().all(|digit| digit.is_ascii_digit());
        let length = length.parse().ok().filter(|length| is_number && *length <= 32)?;
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

fn addresses(cluster: &Cluster, written: Written<'_>) -> Result<()> {
    let leaves = || cluster.switches.iter().enumerate().filter(|(_, switch)| switch.tier == 0);
    let racks = leaves().map(|(place, leaf)| rack(written, place, &leaf.racks[0]));
    let racks = racks.collect::<Result<Vec<_>>>()?;
    let mut sorted: Vec<_> = racks.iter().copied().zip(leaves().map(|(place, _)| place)).collect();
    sorted.sort_by_key(|(rack, _)| (rack.first, rack.length));
    for pair in sorted.windows(2) {
        let [(rack, _), (next, place)] = [pair[0], pair[1]];
        if rack.last() >= next.first {
            let (what, mend) =
                (format!("{rack} and {next} overlap"), "give every leaf its own prefix");
            return Err(written.wrong(At::switch(place, "rack", "racks"), &what, mend));
        }
    }
    let mut seen = FxHashMap::default();
    for ((place, leaf), rack) in leaves().zip(&racks) {
        let at = At::switch(place, "gateway", "gateway");
        let text = leaf.gateway.as_deref().unwrap_or_default();
        let found = address(written, at, &leaf.node, text)?;
        note(&mut seen, written, at, &leaf.node, found)?;
        inside(written, at, found, *rack)?;
    }
    for (place, host) in cluster.hosts.iter().enumerate() {
        let at = At::host(place, "host_address", "address");
        let who = format!("host-{}", host.number);
        of_a_host(written, at, &who, host.address)?;
        note(&mut seen, written, at, &who, host.address)?;
        inside(written, at, host.address, racks[host.leaf as usize])?;
    }
    for (place, link) in cluster.links.iter().enumerate().skip(cluster.hosts.len()) {
        let [lower, upper] = match link.lower.starts_with("leaf-") {
            true => ["uplink_address", "uplink_next_hop"],
            false => ["agg_uplink_address", "agg_uplink_next_hop"],
        };
        let who = format!("{} to {}", link.lower, link.upper);
        for (at, text) in [
            (At::link(place, lower, "lower_address"), &link.lower_address),
            (At::link(place, upper, "upper_address"), &link.upper_address),
        ] {
            let found = address(written, at, &who, text)?;
            note(&mut seen, written, at, &who, found)?;
            let number = u32::from(found);
            let above = sorted.partition_point(|(rack, _)| rack.first <= number);
            if above > 0 && sorted[above - 1].0.has(number) {
                let what = format!("{found} is inside a rack's prefix");
                return Err(written.wrong(at, &what, "use others for links"));
            }
        }
    }
    Ok(())
}

/// The address in `text`, of somebody (`who`) who can have it.
pub(super) fn address(written: Written<'_>, at: At<'_>, who: &str, text: &str) -> Result<Ipv4Addr> {
    let found: Ipv4Addr = text.parse().map_err(|_| {
        let what = format!("{} is no IPv4 address ({who})", quoted(text));
        written.wrong(at, &what, "mend the pattern")
    })?;
    of_a_host(written, at, who, found)?;
    Ok(found)
}

fn of_a_host(written: Written<'_>, at: At<'_>, who: &str, found: Ipv4Addr) -> Result<()> {
    if found.is_multicast() || found.is_unspecified() || found.is_loopback() {
        let what = format!("{found} ({who}) is no host's");
        return Err(written.wrong(at, &what, "use a private range"));
    }
    Ok(())
}

fn rack(written: Written<'_>, place: usize, text: &str) -> Result<Prefix> {
    Prefix::read(text).ok_or_else(|| {
        let what = format!("{} is no IPv4 prefix", quoted(text));
        written.wrong(At::switch(place, "rack", "racks"), &what, "write one as 10.0.0.0/16")
    })
}

/// Refuses an address that somebody else has.
fn note(
    seen: &mut FxHashMap<Ipv4Addr, String>,
    written: Written<'_>,
    at: At<'_>,
    who: &str,
    address: Ipv4Addr,
) -> Result<()> {
    match seen.insert(address, who.to_owned()) {
        None => Ok(()),
        Some(other) => {
            let what = format!("{who} has the address {address}, and so has {other}");
            Err(written.wrong(at, &what, "make the pattern differ"))
        }
    }
}

fn inside(written: Written<'_>, at: At<'_>, address: Ipv4Addr, rack: Prefix) -> Result<()> {
    let number = u32::from(address);
    if rack.has(number) && number != rack.first && number != rack.last() {
        return Ok(());
    }
    let what = format!("{address} is no host address of its rack {rack}");
    Err(written.wrong(at, &what, "mend one of the two"))
}

/// Whether a shell can have the variable `key` with this value, and NCCL take it.
///
/// # Errors
/// What is wrong with it, and the mend.
pub(super) fn variable(key: &str, value: &str) -> std::result::Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.is_empty() || !key.chars().all(is_name) || key.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err("is no variable; use letters, digits and _".to_owned());
    }
    if value.contains(char::is_control) {
        return Err(format!("{} is more than a line; write one", quoted(value)));
    }
    let counts = 1..=MOST_QUEUE_PAIRS;
    if key == QUEUE_PAIRS && !value.parse().is_ok_and(|count| counts.contains(&count)) {
        let range = format!("use 1 to {MOST_QUEUE_PAIRS}");
        return Err(format!("{} is out of range; {range}", quoted(value)));
    }
    Ok(())
}
