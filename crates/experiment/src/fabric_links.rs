//! The links of an experiment's fabric as they are at the start: what plans and configurations of
//! a real cluster stand on.
//!
//! The order is fixed: the links of hosts by host, then those above leaves by leaf and uplink, then
//! those above aggregation switches likewise.

use crate::error::{ExperimentError, Origin};
use crate::expand::folder_of;
use crate::parse::{Format, parse};
use crate::reader::Reader;
use crate::section::{fabric, failures};
use crate::value::{Item, Table, Value};
use weft_fabric::{Fabric, Failures, Node};
use weft_units::{HostId, PortId, SwitchId, Time};

/// Describes the fabric of `text` in JSON. Of the text only `[fabric]` and `[failures]` are read;
/// `source` is its file, which errors name and beside which topology files are looked for; `seed`
/// draws the links that fail at random.
///
/// - `fabric`, `failures`: what was read, every default written out.
/// - `hosts_per_leaf`, `mtu` (bytes), `nics` (of a server), `rails` (whether those are under
///   different leaves).
/// - `switches`: `node`, `tier` (0 leaf, 1 spine or aggregation, 2 core), `pod` and `index` (in
///   its tier), a list each.
/// - `links`: `lower`, `upper` (nodes as failures name them), `member` (of a bundle), `line_bps`,
///   `rate_bps` (what is left at the start of the worse direction), `state` (`up`, `degraded`, or
///   `down` where a direction is dead), a list each. A link that is down keeps its rate; bursts of
///   flaky links are not counted.
///
/// # Errors
/// The first mistake, with the name of the source.
pub fn fabric_links(
    text: &str,
    format: Format,
    source: &str,
    seed: u64,
) -> Result<String, ExperimentError> {
    describe(text, format, source, seed).map_err(|error| error.in_source(source))
}

fn describe(
    text: &str,
    format: Format,
    source: &str,
    seed: u64,
) -> Result<String, ExperimentError> {
    let whole = parse(text, format)?;
    let mut table = Table::new();
    for key in ["fabric", "failures"] {
        if let Some(item) = whole.get(key) {
            table.set(key, item.clone());
        }
    }
    let folder = folder_of(source);
    let mut root = Reader::root(&table);
    let located = |error: ExperimentError| error.located_in(&table);
    let network =
        root.section("fabric", "the network", |r| fabric::read(r, &folder)).map_err(located)?;
    let failing = root
        .section("failures", "links that fail", |r| failures::read(r, &network.fabric))
        .map_err(located)?;
    let failures = Failures::new(&network.fabric, &failing, seed)
        .map_err(|error| ExperimentError::new("failures", Origin::Unknown, error.0))?;
    let mut out = root.finish()?;
    let fabric = &network.fabric;
    out.put("hosts_per_leaf", number(fabric.clos().hosts_per_leaf));
    out.put("mtu", number(network.packet.mtu));
    out.put("nics", number(network.servers.nics));
    out.put("rails", network.servers.rails);
    out.put("switches", switches(fabric));
    out.put("links", links(fabric, &failures));
    Ok(Value::Table(out).to_json())
}

fn switches(fabric: &Fabric) -> Table {
    let clos = fabric.clos();
    let (leaves, mids) = (fabric.leaves(), clos.pods() * clos.mids_per_pod());
    let place = |id: u32| match fabric.tier(SwitchId(id)) {
        0 => (id / clos.leaves_per_pod(), id),
        1 => ((id - leaves) / clos.mids_per_pod(), id - leaves),
        _ => (0, id - leaves - mids),
    };
    let all = || 0..fabric.switches();
    let mut table = Table::new();
    table.put("node", list(all().map(|id| fabric.name(Node::Switch(SwitchId(id))))));
    table.put("tier", list(all().map(|id| number(fabric.tier(SwitchId(id))))));
    table.put("pod", list(all().map(|id| number(place(id).0))));
    table.put("index", list(all().map(|id| number(place(id).1))));
    table
}

fn links(fabric: &Fabric, failures: &Failures) -> Table {
    let ids: Vec<PortId> = upward(fabric).collect();
    let ports = || ids.iter().map(|id| &fabric.ports()[*id]);
    let rate = |id: PortId| {
        let back = fabric.ports()[id].reverse;
        failures.rate(fabric, id, Time::ZERO).min(failures.rate(fabric, back, Time::ZERO))
    };
    let state = |id: PortId| {
        let port = &fabric.ports()[id];
        let is_down = [id, port.reverse].into_iter().any(|id| failures.is_down(id, Time::ZERO));
        match is_down {
            true => "down",
            false if rate(id) < port.rate => "degraded",
            false => "up",
        }
    };
    let mut table = Table::new();
    table.put("lower", list(ports().map(|port| fabric.name(port.owner))));
    table.put("upper", list(ports().map(|port| fabric.name(port.peer))));
    table.put("member", list(members(fabric, &ids)));
    table.put("line_bps", list(ports().map(|port| number(port.rate.as_bps()))));
    table.put("rate_bps", list(ids.iter().map(|id| number(rate(*id).as_bps()))));
    table.put("state", list(ids.iter().map(|id| state(*id))));
    table
}

/// The lower port of every link.
fn upward(fabric: &Fabric) -> impl Iterator<Item = PortId> + '_ {
    let nics = (0..fabric.hosts()).map(|host| fabric.nic(HostId(host)));
    let switches = (0..fabric.switches()).map(SwitchId);
    let above = switches.flat_map(move |switch| {
        let ports = fabric.ports_of(switch);
        let first = ports.first.0 + ports.count - fabric.uplinks(switch);
        (first..ports.first.0 + ports.count).map(PortId)
    });
    nics.chain(above)
}

/// Which link of its bundle each is. Members of a bundle stand side by side.
fn members<'a>(fabric: &'a Fabric, ids: &'a [PortId]) -> impl Iterator<Item = Value> + 'a {
    let ends = |id: PortId| (fabric.ports()[id].owner, fabric.ports()[id].peer);
    let mut before = None;
    let mut member = 0u32;
    ids.iter().map(move |id| {
        member = if before == Some(ends(*id)) { member + 1 } else { 0 };
        before = Some(ends(*id));
        number(member)
    })
}

fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    Value::List(values.into_iter().map(|value| Item::new(value.into())).collect())
}

/// Rates beyond what JSON readers can hold are as large as they can be.
fn number(number: impl Into<u64>) -> Value {
    Value::Int(i64::try_from(number.into()).unwrap_or(i64::MAX))
}
