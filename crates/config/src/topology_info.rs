//! `weft topology info`: what is in a topology file, and whether it can be a fabric.

use crate::section::topology_file;
use crate::value::{Table, Value};
use crate::{ExperimentError, Origin};
use std::path::Path;
use weft_fabric::import::{Queues, Topology};
use weft_fabric::topology::Graph;
use weft_fabric::{Bundle, Clos, Fabric, Link};

/// Describes the topology file at `path` in JSON: `name`, `kind`, `hosts`, `switches`, `links`,
/// `pods`, `tiers`, `levels`, `oversubscription`, `switch_latency_s`, `nodes`,
/// `in_order`, `fabric`, `remarks`, `problems`, `file_nodes`, `planes`. Rates are bits per second, delays seconds, and
/// what the file does not say is `false`. Counts are those of a plane.
///
/// # Errors
/// If the file cannot be read, or is none of the kinds that are known.
pub fn topology_info(path: &Path) -> Result<String, ExperimentError> {
    let plain = |what: String| ExperimentError::new("", Origin::Unknown, what);
    let topology = topology_file::load(path).map_err(plain)?;
    let mut table = Table::new();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    table.put("name", name.clone());
    table.put("kind", kind(&topology));
    put_fabric(&mut table, &name, &topology).map_err(plain)?;
    Ok(Value::Table(table).to_json())
}

fn kind(topology: &Topology) -> &'static str {
    match topology {
        Topology::Ns3(_) | Topology::Ns3Graph(_) => "ns-3",
        Topology::Simai(_) => "simai",
        Topology::Infragraph(_) => "infragraph",
        Topology::Htsim(_) => "htsim",
    }
}

fn put_fabric(table: &mut Table, name: &str, topology: &Topology) -> Result<(), String> {
    let (queues, latency) = match topology {
        Topology::Htsim(file) => (&file.queues[..], file.switch_latency),
        _ => (&[][..], None),
    };
    let mut remarks = topology.remarks().to_vec();
    let ratio = match (topology.clos(), topology.graph()) {
        (Some(clos), _) => {
            put_tiers(table, clos, queues);
            let is_lone = !matches!(topology, Topology::Htsim(_)) && alone(clos);
            remarks.extend(is_lone.then(|| LONE.to_owned()));
            oversubscription(clos)
        }
        (None, Some((graph, why))) => {
            put_graph(table, graph);
            remarks.push(format!("it is no folded Clos: {why}"));
            None
        }
        (None, None) => return Err("there is no network in it; fetch it again".into()),
    };
    table.put("oversubscription", share(ratio));
    table.put("switch_latency_s", share(latency.map(|latency| latency.as_secs_f64())));
    let renumbered = topology_file::renumbered(topology);
    table.put("nodes", nodes(topology)?);
    table.put("in_order", renumbered.is_none());
    let (keys, problems) = match topology_file::said(name, topology) {
        Ok((mut keys, _, boxes)) => {
            for (key, item) in boxes.iter().flat_map(|boxes| boxes.keys.iter()) {
                keys.set(key, item.clone());
            }
            (keys, Vec::new())
        }
        Err(what) => (Table::new(), vec![Value::from(what)]),
    };
    table.put("fabric", keys);
    let remarks = renumbered.into_iter().chain(remarks).map(Value::from);
    table.put("remarks", remarks.collect::<Vec<_>>());
    table.put("problems", problems);
    let names = topology.names().iter().map(|name| Value::from(name.clone()));
    table.put("file_nodes", names.collect::<Vec<_>>());
    table.put("planes", count(topology.planes()));
    Ok(())
}

/// A network without tiers.
fn put_graph(table: &mut Table, graph: &Graph) {
    let switches = graph.switches().map_or(0, |switches| switches.len() as u64);
    let hosts = graph.host_switches.len() as u64;
    table.put("hosts", count(hosts));
    table.put("switches", count(switches));
    let ports = 1 + graph.other_switches.first().map_or(0, |others| others.len() as u64);
    table.put("links", count(hosts * ports + graph.links.len() as u64));
    table.put("pods", count(1_u32));
    table.put("tiers", Vec::new());
    table.put("levels", Vec::new());
}

/// Switches and links, tier by tier; `queues` may lack those of upper tiers.
fn put_tiers(table: &mut Table, clos: &Clos, queues: &[Queues]) {
    let (tiers, levels) = (tiers(clos), levels(clos));
    table.put("hosts", count(clos.hosts()));
    table.put("switches", count(tiers.iter().map(|tier| tier.switches).sum::<u64>()));
    table.put("links", count(levels.iter().map(|level| level.links).sum::<u64>()));
    table.put("pods", count(clos.pods()));
    let queues = queues.iter().copied().chain(std::iter::repeat(Queues::default()));
    let rows = tiers.iter().zip(queues).map(|(tier, queues)| tier.to_value(queues));
    table.put("tiers", rows.collect::<Vec<_>>());
    table.put("levels", levels.iter().map(Level::to_value).collect::<Vec<_>>());
}

const LONE: &str = "one switch connects all hosts; the spine above it is there for form, and no \
                    route uses it";

/// Whether all hosts are under one leaf.
fn alone(clos: &Clos) -> bool {
    clos.pods() * clos.leaves_per_pod() == 1
}

/// What each node of the file is called here.
fn nodes(topology: &Topology) -> Result<Vec<Value>, String> {
    if topology.nodes().is_empty() {
        return Ok(Vec::new());
    }
    let fabric = match (topology.clos(), topology.graph()) {
        (Some(clos), _) => Fabric::build(clos),
        (None, Some((graph, _))) => graph.wiring().and_then(Fabric::of_wiring),
        (None, None) => return Ok(Vec::new()),
    };
    let fabric = fabric.and_then(|fabric| fabric.in_planes(topology.planes()));
    let fabric = fabric.map_err(|error| error.0)?;
    Ok(topology.nodes().iter().map(|node| Value::from(fabric.name(*node))).collect())
}

/// The switches of a tier.
struct Tier {
    name: &'static str,
    switches: u64,
    down: u64,
    up: u64,
    /// Capacity below over capacity above, of a switch; `None` where nothing has to go up.
    ratio: Option<f64>,
}

fn tiers(clos: &Clos) -> Vec<Tier> {
    let wide = u64::from;
    let pods = wide(clos.pods());
    let (leaves, mids) = (wide(clos.leaves_per_pod()), wide(clos.mids_per_pod()));
    let (low, high) = (clos.leaf_bundle, clos.agg_bundle);
    let leaf = Tier {
        name: "leaf",
        switches: pods * leaves,
        down: wide(clos.hosts_per_leaf),
        up: mids * wide(low.members),
        ratio: None,
    };
    let down = leaves * wide(low.members);
    let leaf_ratio = ratio(leaf.down, clos.host_link, leaf.up, low);
    let leaf = Tier { ratio: (!alone(clos)).then_some(leaf_ratio), ..leaf };
    if clos.cores() == 0 {
        return vec![leaf, Tier { name: "spine", switches: mids, down, up: 0, ratio: None }];
    }
    let up = wide(clos.cores_per_plane()) * wide(high.members);
    let mid_ratio = (pods > 1).then(|| ratio(down, low.link, up, high));
    let (switches, below) = (wide(clos.cores()), pods * wide(high.members));
    vec![
        leaf,
        Tier { name: "aggregation", switches: pods * mids, down, up, ratio: mid_ratio },
        Tier { name: "core", switches, down: below, up: 0, ratio: None },
    ]
}

fn ratio(down: u64, below: Link, up: u64, above: Bundle) -> f64 {
    let capacity = |links: u64, link: Link| links as f64 * link.rate.as_bps() as f64;
    capacity(down, below) / capacity(up, above.link)
}

/// What hosts can send over what leaves the narrowest of leaves and pods; `None` of one leaf.
fn oversubscription(clos: &Clos) -> Option<f64> {
    let mut all = 1.0;
    let ratios = tiers(clos).into_iter().filter_map(|tier| tier.ratio);
    let above = ratios.map(|ratio| {
        all *= ratio;
        all
    });
    above.reduce(f64::max)
}

impl Tier {
    fn to_value(&self, queues: Queues) -> Value {
        let mut table = Table::new();
        table.put("name", self.name);
        table.put("switches", count(self.switches));
        table.put("ports_down", count(self.down));
        table.put("ports_up", count(self.up));
        table.put("oversubscription", share(self.ratio));
        table.put("queue_down", queues.down.map_or(Value::Bool(false), count));
        table.put("queue_up", queues.up.map_or(Value::Bool(false), count));
        Value::Table(table)
    }
}

/// The links between two tiers.
struct Level {
    ends: [&'static str; 2],
    links: u64,
    bundle: Bundle,
}

fn levels(clos: &Clos) -> Vec<Level> {
    let tiers = tiers(clos);
    let hosts = Bundle { link: clos.host_link, members: 1 };
    let bundles = [hosts, clos.leaf_bundle, clos.agg_bundle];
    let below = ["host", tiers[0].name, tiers[1].name];
    let level = |((tier, bundle), below): ((&Tier, Bundle), &'static str)| Level {
        ends: [below, tier.name],
        links: tier.switches * tier.down,
        bundle,
    };
    tiers.iter().zip(bundles).zip(below).map(level).collect()
}

impl Level {
    fn to_value(&self) -> Value {
        let mut table = Table::new();
        table.put("ends", self.ends.map(Value::from).to_vec());
        table.put("links", count(self.links));
        table.put("per_pair", count(self.bundle.members));
        table.put("rate_bps", count(self.bundle.link.rate.as_bps()));
        table.put("delay_s", Value::Float(self.bundle.link.delay.as_secs_f64()));
        Value::Table(table)
    }
}

/// Counts beyond what JSON readers can hold are as large as they can be.
fn count(number: impl Into<u64>) -> Value {
    Value::Int(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// A number that may not be known.
fn share(number: Option<f64>) -> Value {
    number.map_or(Value::Bool(false), Value::Float)
}
