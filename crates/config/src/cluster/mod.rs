//! A real cluster: the fabric of an experiment, with the names and addresses that it has.
//!
//! A `CLUSTER.toml` has a `[fabric]` and perhaps `[failures]`, as experiments have them, and a
//! `[cluster]` that says how things are called. Everything in there has a default, so that `[fabric]`
//! alone will do. What a fabric looks like is [`crate::section`]'s to say; this gives names and
//! addresses, and refuses those that cannot be. Addresses are IPv4.
//!
//! | module | what it does |
//! |---|---|
//! | [`pattern`] | text with whole-number expressions |
//! | [`naming`] | the keys of `[cluster]` and their defaults |
//! | `nodes` | hosts, switches and links, named |
//! | `path_addresses` | an address for each path to a host |
//! | `segments` | which source ports go over which uplink |
//! | `discovered` | the paths of a table of discovered ones, named |
//! | `check` | whether the names and addresses can be |
//! | `planned` | the cluster of a plan, which somebody may have changed |

mod check;
mod discovered;
pub mod naming;
mod nodes;
mod path_addresses;
pub mod pattern;
mod planned;
mod segments;

pub use crate::Format;
pub use discovered::{Discovered, discovered};
pub use path_addresses::PathAddresses;
pub use segments::{PortSegments, PortSpan};

use check::Written;
use naming::{Names, Shape};

use crate::in_order::InOrder;
use crate::value::{Item, Table, Value, one_line};
use crate::{ExperimentError, FabricLinks, fabric_links, parse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::net::Ipv4Addr;
use std::path::Path;

/// What a `CLUSTER.toml` describes. Its JSON stands under `cluster` in a plan file, in this order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cluster {
    /// Its name for people.
    pub title: String,
    /// `[fabric]` with every default written out.
    pub fabric: Box<RawValue>,
    /// `[failures]` likewise.
    pub failures: Box<RawValue>,
    /// DSCP of the traffic that is steered.
    pub dscp: u8,
    /// Its protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// Its first destination port.
    pub port: u16,
    /// How many destination ports there are from that one on.
    #[serde(default = "one")]
    pub ports: u16,
    /// The first of its source ports.
    pub first_port: u16,
    /// The last one.
    pub last_port: u16,
    /// Most payload of a packet, in bytes.
    pub mtu: u32,
    /// NICs of a server.
    pub nics: u32,
    /// Environment for hosts, beyond what a plan asks for; in the order of the file.
    #[serde(default)]
    pub nccl: InOrder<String>,
    /// The hosts, by number.
    pub hosts: Vec<Host>,
    /// The switches, by number.
    pub switches: Vec<Switch>,
    /// Those of hosts by host, then those of leaves by leaf and uplink, and so on upwards.
    pub links: Vec<Link>,
    /// The IPv4 network in which hosts have an address for each path; none: they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_addresses: Option<String>,
}

/// A NIC: what the fabric takes for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// From zero.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The number of its leaf.
    pub leaf: u32,
    /// Which of those below its leaf.
    pub place: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// The leaf's port to it.
    pub leaf_port: String,
    /// Several NICs may be of one server.
    pub server: u32,
    /// Which NIC of its server.
    pub rail: u32,
    /// Its own name for the link.
    pub interface: String,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// From zero.
    pub number: u32,
    /// What failures and links call it.
    pub node: String,
    /// Its name.
    pub name: String,
    /// 0 leaf, 1 spine or aggregation, 2 core.
    pub tier: u32,
    /// Its pod.
    pub pod: u32,
    /// Which of its tier.
    pub index: u32,
    /// A leaf's own prefix. What lies below others follows from those.
    pub racks: Vec<String>,
    /// A leaf's address towards its hosts.
    pub gateway: Option<String>,
}

/// A link, from its lower end to its upper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// A node, as `host-3` or `leaf-0`.
    pub lower: String,
    /// The node at its upper end.
    pub upper: String,
    /// Which of the links between the two.
    pub member: u32,
    /// The port at the lower end.
    pub lower_port: String,
    /// The port at the upper end.
    pub upper_port: String,
    /// Of a host, its own.
    pub lower_address: String,
    /// The next hop on the way up.
    pub upper_address: String,
    /// Its rate, in bits per second.
    pub line_bps: u64,
    /// What it carries now while it is not down: less than the line's where it is degraded.
    pub rate_bps: u64,
    /// How it stands.
    pub state: State,
}

/// A protocol whose source ports switches look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// RoCEv2.
    #[default]
    Udp,
    /// Over TCP sockets.
    Tcp,
}

impl Protocol {
    /// Both protocols.
    pub const ALL: [Protocol; 2] = [Protocol::Udp, Protocol::Tcp];

    /// As `[cluster]` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
        }
    }

    /// Destination ports unless `[cluster]` says otherwise. Of TCP as many processes may listen at a
    /// host; RoCEv2 has one port for all.
    pub fn ports(self) -> u16 {
        match self {
            Protocol::Udp => 1,
            Protocol::Tcp => 64,
        }
    }
}

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works at its full rate.
    Up,
    /// Slower than its line.
    Degraded,
    /// Dead in a direction.
    Down,
}

/// NCCL's variable for the queue pairs of a connection.
pub const QUEUE_PAIRS: &str = "NCCL_IB_QPS_PER_CONNECTION";
/// The most that NCCL takes there; plans count with it.
pub const MOST_QUEUE_PAIRS: usize = 128;

/// What else stands in a `CLUSTER.toml`.
const SECTIONS: [&str; 6] = ["title", "notes", "fabric", "failures", "cluster", "nccl"];

/// What an experiment has as well.
const OF_A_JOB: [&str; 3] = ["workload", "transport", "balance"];

/// The cluster in `text`, and its fabric. `source` is its file, which errors name and beside which
/// topology files are looked for; `seed` draws failures that are random.
///
/// # Errors
/// The first mistake: file, key and mend.
pub fn read(
    text: &str,
    format: Format,
    source: &str,
    seed: u64,
) -> Result<(Cluster, FabricLinks), ExperimentError> {
    let whole = parse::parse(text, format).map_err(|error| error.in_source(source))?;
    of_table(&whole, source, seed)
}

/// The same of a file that has been parsed.
///
/// # Errors
/// As [`read`].
pub fn of_table(
    whole: &Table,
    source: &str,
    seed: u64,
) -> Result<(Cluster, FabricLinks), ExperimentError> {
    let found = fabric_links(whole, source, seed)?;
    let cluster = of(whole, &found, source).map_err(|error| error.in_source(source))?;
    Ok((cluster, found))
}

fn of(whole: &Table, found: &FabricLinks, source: &str) -> Result<Cluster, ExperimentError> {
    for (key, item) in whole.iter() {
        if OF_A_JOB.contains(&key) {
            let what = "does not belong to a cluster; it belongs to the job";
            return Err(ExperimentError::new(key, item.origin, what));
        }
        if !SECTIONS.contains(&key) {
            return Err(naming::unknown(key, key, item.origin, &SECTIONS));
        }
    }
    let stem = Path::new(source).file_stem().unwrap_or_default();
    let title = match whole.get("title") {
        None => stem.to_string_lossy().into_owned(),
        Some(Item { value: Value::Text(title), .. }) => one_line(title),
        Some(Item { origin, .. }) => {
            return Err(ExperimentError::new("title", *origin, "not text; write title = \"...\""));
        }
    };
    let none = Table::new();
    let clos = &found.clos;
    let shape =
        Shape { leaves: found.fabric.leaves(), hosts: clos.hosts_per_leaf, nics: found.nics };
    let names = Names::read(naming::section(whole, "cluster", &none)?, shape)?;
    let (hosts, switches, links) = nodes::build(found, &names)?;
    let (protocol, port) = (names.protocol()?, names.number("port")?);
    let cluster = Cluster {
        title,
        fabric: raw(&found.resolved, "fabric"),
        failures: raw(&found.resolved, "failures"),
        dscp: names.number("dscp")? as u8,
        protocol,
        port,
        ports: names.ports(protocol, port)?,
        first_port: names.number("first_port")?,
        last_port: names.number("last_port")?,
        mtu: found.mtu,
        nics: found.nics,
        nccl: environment(naming::section(whole, "nccl", &none)?)?,
        hosts,
        switches,
        links,
        path_addresses: path_addresses::given(&names)?,
    };
    check::check(&cluster, Written::AsPatterns(&names))?;
    cluster.check_path_addresses(&names)?;
    Ok(cluster)
}

impl Cluster {
    /// What stands under `cluster` in a plan file.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers are JSON")
    }

    /// The fabric that it was read from, with the failures of `seed`.
    ///
    /// # Errors
    /// If it is not what [`read`] has made.
    pub fn fabric(&self, source: &str, seed: u64) -> Result<FabricLinks, ExperimentError> {
        let text = format!("{{\"fabric\":{},\"failures\":{}}}", self.fabric, self.failures);
        let whole = parse::parse(&text, Format::Json).map_err(|error| error.in_source(source))?;
        fabric_links(&whole, source, seed)
    }
}

/// The section `key` as JSON.
fn raw(table: &Table, key: &str) -> Box<RawValue> {
    let text = table.get(key).map_or("{}".to_owned(), |item| item.value.to_json());
    RawValue::from_string(text).expect("values are JSON")
}

fn environment(section: &Table) -> Result<InOrder<String>, ExperimentError> {
    let one = |(key, item): (&str, &Item)| {
        let wrong = |what| ExperimentError::new(format!("nccl.{key}"), item.origin, what);
        let value = match &item.value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            _ => {
                let what = format!("neither text nor a whole number; write {key} = \"...\"");
                return Err(wrong(what));
            }
        };
        check::variable(key, &value).map_err(wrong)?;
        Ok((key.to_owned(), value))
    };
    section.iter().map(one).collect::<Result<_, _>>().map(InOrder)
}

fn one() -> u16 {
    1
}

/// `text` in single quotes, on one line.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\""))
}
