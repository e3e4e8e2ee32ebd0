//! `[fabric] file`: another tool's topology file in place of `topology` and its counts.
//!
//! What the file holds is written out as the keys of `topology = "clos"` and read back from
//! these. So a file is never more than they can say, is refused where they are, and a resolved
//! experiment does not need it. What it says of switches becomes defaults of `[fabric.switch]`, and what it
//! says of servers those of `[fabric.server]`.

use super::read_text;
use super::server::{self, Servers};
use super::switch::Usual;
use super::topology::{TOPOLOGIES, check_links, clos as read_clos, graph as read_graph};
use crate::error::ExperimentError;
use crate::kind::{Kind, Span, Speed, Text};
use crate::reader::{Reader, keys_of};
use crate::value::{Table, Value};
use std::fmt::Display;
use std::path::Path;
use weft_fabric::import::{self, Htsim, Simai, Topology};
use weft_fabric::topology::Graph;
use weft_fabric::{Bundle, Clos, Link, Node, ScaleUp, Shape, Tiers};
use weft_units::{HostId, size_text};

/// The key.
pub const KEY: &str = "file";

/// A fabric, and what its file says beside it.
pub struct FromFile {
    /// The topology; of several planes that of each.
    pub topology: Shape,
    /// What the file says of servers, if it does.
    pub boxes: Option<Boxes>,
    /// What the file says of switches.
    pub usual: Usual,
    /// What the user should know.
    pub warning: Option<String>,
}

/// What a file says of servers and their NICs. Other values of these keys contradict it, but for what is between
/// the GPUs of a server.
pub struct Boxes {
    /// The file, for errors.
    pub shown: String,
    /// Ports of every NIC, each in a plane of its own.
    pub planes: u32,
    /// The servers.
    pub servers: Servers,
    /// `planes`, unless it is one, and `server`, for who writes down what the file says.
    pub keys: Table,
}

impl Boxes {
    /// What is wrong with another value than the `said` one; `None`: it is that one.
    pub fn contradicts<T: PartialEq + Display>(&self, given: T, said: T) -> Option<String> {
        let shown = &self.shown;
        (given != said).then(|| format!("{given}, where {shown} has {said}; remove it"))
    }
}

/// Whether `text` names a file rather than a topology, none of which has such a character.
pub fn is_file(text: &str) -> bool {
    text.contains(['.', '/'])
}

/// Reads `file`, which is looked for in `folder`; `None` if it is not given.
pub fn read(r: &mut Reader<'_>, folder: &Path) -> Result<Option<FromFile>, ExperimentError> {
    let meaning = "a topology file of htsim, InfraGraph or the ns-3 backends of ASTRA-sim and SimAI; instead of topology";
    let name = r.get(KEY, Text, Some(String::new()), meaning)?;
    r.omit(KEY);
    if name.is_empty() || r.is_rehearsal() {
        return Ok(None);
    }
    r.beside(KEY, SAID, said_by_files());
    let path = folder.join(&name);
    let shown = path.display().to_string();
    let found = load(&path).and_then(|topology| tables(&shown, &topology));
    let (keys, from_file) = found.map_err(|what| r.wrong(KEY, what))?;
    for (key, item) in keys.iter() {
        r.record(key, item.value.clone());
    }
    Ok(Some(from_file))
}

/// Why a key has no place beside a file.
pub const SAID: &str = "stands beside file, which says it; remove one of them";

/// The keys that a file takes the place of.
pub fn said_by_files() -> impl Iterator<Item = String> {
    let keys = TOPOLOGIES.iter().flat_map(|choice| keys_of("fabric", choice, &()));
    ["topology".to_owned()].into_iter().chain(keys.map(|asked| asked.key))
}

/// What the file at `path` holds.
///
/// # Errors
/// With one line that names the file.
pub fn load(path: &Path) -> Result<Topology, String> {
    let text = read_text(path)?;
    import::read(&path.display().to_string(), &text).map_err(|error| error.0)
}

/// The fabric of the file `shown`, and the keys that say the same.
///
/// # Errors
/// If there is none in it, or these keys cannot say it.
fn tables(shown: &str, topology: &Topology) -> Result<(Table, FromFile), String> {
    let in_file = |what: String| format!("{shown}: {what}");
    let (keys, read, boxes) = said(shown, topology).map_err(in_file)?;
    let usual = match topology {
        Topology::Htsim(file) => usual(shown, file),
        _ => Usual::default(),
    };
    let odd = topology.graph().map(|(_, why)| {
        format!("{why}; so it is a graph, and what needs a folded Clos refuses it")
    });
    let renumbered = renumbered(topology).map(in_file);
    let said = topology.remarks().iter().map(|remark| in_file(remark.clone()));
    let warnings: Vec<String> = odd.into_iter().chain(said).chain(renumbered).collect();
    let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
    Ok((keys, FromFile { topology: read, boxes, usual, warning }))
}

/// The keys of `[fabric]` that say which links there are, what they say, and what is said of servers.
///
/// # Errors
/// If keys cannot say it.
pub fn said(shown: &str, topology: &Topology) -> Result<(Table, Shape, Option<Boxes>), String> {
    let (keys, shape) = match (topology.clos(), topology.graph()) {
        (Some(clos), _) => in_keys(clos).map(|(keys, clos)| (keys, Shape::Clos(clos)))?,
        (None, Some((graph, _))) => graph_in_keys(graph)?,
        (None, None) => return Err("there is no network in it; fetch it again".into()),
    };
    let boxes = boxes(shown, topology, &shape)?;
    Ok((keys, shape, boxes))
}

/// The keys of `[fabric]` that say `graph`, and what they say.
///
/// # Errors
/// If a value is out of the range of its key.
fn graph_in_keys(graph: &Graph) -> Result<(Table, Shape), String> {
    let mut table = Table::new();
    let switches = graph.host_switches.iter().map(|switch| count(*switch));
    table.put("host_switches", switches.collect::<Vec<_>>());
    if !graph.other_switches.is_empty() {
        let list = |others: &Vec<u32>| {
            Value::from(others.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
        };
        table.put("other_switches", graph.other_switches.iter().map(list).collect::<Vec<_>>());
    }
    let link = |(a, b, link): &(u32, u32, Link)| {
        let (rate, delay) = (Speed.write(&link.rate), Span::SOME.write(&link.delay));
        let text = |value: Value| match value {
            Value::Text(text) => text,
            other => other.to_json(),
        };
        Value::from(format!("{a} {b} {} {}", text(rate), text(delay)))
    };
    table.put("links", graph.links.iter().map(link).collect::<Vec<_>>());
    put_link(&mut table, ["link", "delay"], graph.host_link);
    read_back(&table, "graph", |r| read_graph(r).map(Shape::from))
}

/// The keys of `[fabric]` that say `clos`, in the order in which they are read, and what they say.
///
/// # Errors
/// If a value is out of the range of its key.
fn in_keys(clos: &Clos) -> Result<(Table, Clos), String> {
    let mut table = Table::new();
    table.put("tiers", count(if clos.cores() == 0 { 2 } else { 3 }));
    table.put("leaves", count(clos.leaves_per_pod()));
    table.put("hosts_per_leaf", count(clos.hosts_per_leaf));
    table.put("links_per_pair", count(clos.leaf_bundle.members));
    put_link(&mut table, ["link", "delay"], clos.host_link);
    put_link(&mut table, ["uplink", "uplink_delay"], clos.leaf_bundle.link);
    match clos.tiers {
        Tiers::Two { spines, .. } => table.put("spines", count(spines)),
        Tiers::Rails { .. } => unreachable!("no file has rails that never meet"),
        Tiers::Three { pods, aggs_per_pod, cores, .. } => {
            let Bundle { link, members } = clos.agg_bundle;
            table.put("pods", count(pods));
            table.put("aggs", count(aggs_per_pod));
            table.put("cores", count(cores));
            table.put("core_links_per_pair", count(members));
            put_link(&mut table, ["core_link", "core_delay"], link);
        }
    }
    check_links(clos).map_err(|what| format!("{what}; use a smaller file"))?;
    read_back(&table, "clos", read_clos)
}

/// `table` as the decoder of the topology `name` writes it out, below that name.
fn read_back<T>(
    table: &Table,
    name: &str,
    decode: impl FnOnce(&mut Reader<'_>) -> Result<T, ExperimentError>,
) -> Result<(Table, T), String> {
    let mut r = Reader::root(table);
    let read = decode(&mut r).and_then(|topology| Ok((r.finish()?, topology)));
    let (read, topology) = read.map_err(|error| format!("{}: {}", error.key(), error.what()))?;
    let mut keys = Table::new();
    keys.put("topology", name);
    for (key, item) in read.iter() {
        keys.set(key, item.clone());
    }
    Ok((keys, topology))
}

/// What `topology`, which is `shape`, says of servers.
///
/// # Errors
/// If `[fabric.server]` cannot say it.
fn boxes(shown: &str, topology: &Topology, shape: &Shape) -> Result<Option<Boxes>, String> {
    let Topology::Simai(file) = topology else { return Ok(None) };
    let mut table = Table::new();
    table.put("gpus", count(file.gpus));
    table.put("nics", count(file.gpus));
    table.put("rails", is_on_rails(file, shape)?);
    if let Some(ScaleUp { rate, latency, .. }) = file.scale_up {
        table.put("scale_up", Speed.write(&rate));
        table.put("scale_up_latency", Span::ANY.write(&latency));
    }
    let mut r = Reader::root(&table);
    let servers = server::read(&mut r, shape, None)
        .map_err(|error| format!("server.{}: {}", error.key(), error.what()))?;
    let mut keys = Table::new();
    if file.planes > 1 {
        keys.put("planes", count(file.planes));
    }
    keys.put("server", table);
    Ok(Some(Boxes { shown: shown.to_owned(), planes: file.planes, servers, keys }))
}

/// Whether the GPUs of a server are on rails; without them they are side by side.
///
/// # Errors
/// If neither puts every GPU where the file has it.
fn is_on_rails(file: &Simai, shape: &Shape) -> Result<bool, String> {
    let fabric = shape.clone().build().map_err(|error| error.0)?;
    let hosts = import::hosts(&file.nodes);
    let (gpus, nics) = (file.gpus, file.gpus);
    let elsewhere = |rails: bool| {
        let servers = Servers { gpus, nics, rails, ..Servers::USUAL };
        if rails && servers.fits(shape).is_err() {
            return Some(0);
        }
        let is_there =
            |(gpu, host): &(u32, &HostId)| servers.nic(&fabric, gpu / gpus, gpu % gpus) == **host;
        let mut all = (0..).zip(&hosts);
        all.find(|one| !is_there(one)).map(|(gpu, _)| gpu)
    };
    match (elsewhere(false), elsewhere(true)) {
        (None, _) => Ok(false),
        (_, None) => Ok(true),
        (Some(one), Some(other)) => Err(format!(
            "GPU {} is at another leaf than servers of {gpus} GPUs have it, whether they are on rails or not; number \
             GPUs server by server, and those of a leaf's servers one after the other",
            one.max(other)
        )),
    }
}

fn count(number: u32) -> Value {
    Value::Int(i64::from(number))
}

fn put_link(table: &mut Table, [rate, delay]: [&str; 2], link: Link) {
    table.put(rate, Speed.write(&link.rate));
    table.put(delay, Span::SOME.write(&link.delay));
}

/// What htsim's file says of switches. Queues belong to ports there.
fn usual(shown: &str, file: &Htsim) -> Usual {
    let top = file.queues.len() - 1;
    let tiers = file.queues.iter().enumerate();
    let ports =
        tiers.flat_map(|(tier, queues)| [Some(queues.down), (tier < top).then_some(queues.up)]);
    let mut sizes: Vec<Option<u64>> = ports.flatten().collect();
    sizes.sort_unstable();
    sizes.dedup();
    let queue = match sizes[..] {
        [None] => None,
        [Some(bytes)] if bytes > 0 => Some(Ok(bytes)),
        _ => Some(Err(odd_queues(shown, &sizes))),
    };
    Usual { latency: file.switch_latency.unwrap_or_default(), queue }
}

fn odd_queues(shown: &str, sizes: &[Option<u64>]) -> String {
    let size = |size: &Option<u64>| size.map_or_else(|| "no size".to_owned(), size_text);
    let sizes = sizes.iter().map(size).collect::<Vec<_>>().join(", ");
    format!(
        "missing; {shown} gives queues {sizes}, where all ports here have one; add it, for \
             example buffer = \"100KB\""
    )
}

/// What to say where the hosts of a file have other numbers here.
pub fn renumbered(topology: &Topology) -> Option<String> {
    if matches!(topology, Topology::Simai(_)) {
        // Ranks are on its GPUs in the order of the file.
        return None;
    }
    let hosts = topology.nodes().iter().enumerate().filter_map(|(node, is)| match is {
        Node::Host(host) => Some((node, host.0)),
        Node::Switch(_) => None,
    });
    let (rank, (node, host)) = (0..).zip(hosts).find(|(rank, (_, host))| rank != host)?;
    let node = topology.names().get(node).cloned().unwrap_or_else(|| format!("node {node}"));
    Some(format!(
        "hosts of a leaf are numbered together, so that its {node}, rank {rank} of \
         ASTRA-sim, is host-{host}; weft topology info lists all"
    ))
}
