//! The links of an experiment's fabric as they are at the start: what plans and configurations of
//! a real cluster stand on.
//!
//! The order is fixed: the links of hosts by host, then those above leaves by leaf and uplink, then
//! those above aggregation switches likewise.

use crate::reader::Reader;
use crate::section::folder_of;
use crate::section::{fabric, failures};
use crate::value::Table;
use crate::{ExperimentError, Origin, only_clos};
use weft_balance::known::Known;
use weft_balance::scheme::SchemeConfig;
use weft_fabric::{Clos, Fabric, Failures, Node};
use weft_units::{PortId, SwitchId, Time};

/// A fabric and how its links stand.
#[derive(Clone, Debug)]
pub struct FabricLinks {
    /// The fabric.
    pub fabric: Fabric,
    /// What it was built from.
    pub clos: Clos,
    /// What fails in it, and when.
    pub failures: Failures,
    /// `fabric` and `failures` as they were read, every default written out.
    pub resolved: Table,
    /// Most payload of a packet, in bytes.
    pub mtu: u32,
    /// NICs of a server.
    pub nics: u32,
    /// Whether those are under different leaves.
    pub rails: bool,
    /// By their numbers.
    pub switches: Vec<SwitchRow>,
    /// In the order above.
    pub links: Vec<LinkRow>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchRow {
    /// As failures name it.
    pub node: String,
    /// 0 leaf, 1 spine or aggregation, 2 core.
    pub tier: u32,
    /// Its pod; 0 of a core.
    pub pod: u32,
    /// Which of its tier.
    pub index: u32,
}

/// A link, from its lower end to its upper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// A node as failures name it.
    pub lower: String,
    /// The node at its upper end.
    pub upper: String,
    /// Which of the links between the two.
    pub member: u32,
    /// Its rate, in bits per second.
    pub line_bps: u64,
    /// What is left of it at the start in the worse direction. One that is down keeps its rate; bursts
    /// of flaky links are not counted.
    pub rate_bps: u64,
    /// Whether it carries anything.
    pub state: LinkState,
}

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It works at its full rate.
    Up,
    /// Slower than its line.
    Degraded,
    /// Dead in a direction.
    Down,
}

/// What hosts of `scheme` are told of links before they begin: how these stand at the start, by
/// the file. The same for all that run on real networks.
pub fn known_at_start(fabric: &Fabric, failures: &Failures, scheme: &SchemeConfig) -> Known {
    let rates = failures.capacities(fabric, Time::ZERO);
    Known::beside_rules(fabric, scheme, |port| rates[port])
}

/// The fabric of `whole`, of which only `[fabric]` and `[failures]` are read. Topology files are looked
/// for beside the file `source`; `seed` draws the links that fail at random.
///
/// # Errors
/// The first mistake, with the name of the source.
pub fn fabric_links(
    whole: &Table,
    source: &str,
    seed: u64,
) -> Result<FabricLinks, ExperimentError> {
    read(whole, source, seed).map_err(|error| error.in_source(source))
}

fn read(whole: &Table, source: &str, seed: u64) -> Result<FabricLinks, ExperimentError> {
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
    let clos = *only_clos(&network.fabric, "clusters and plans are of").map_err(located)?;
    let failing = root
        .section("failures", "links that fail", |r| failures::read(r, &network.fabric))
        .map_err(located)?;
    let failures = Failures::new(&network.fabric, &failing, seed)
        .map_err(|error| ExperimentError::new("failures", Origin::Unknown, error.0))?;
    Ok(FabricLinks {
        resolved: root.finish()?,
        mtu: network.packet.mtu,
        nics: network.servers.nics,
        rails: network.servers.rails,
        switches: switches(&network.fabric, &clos),
        clos,
        links: links(&network.fabric, &failures),
        fabric: network.fabric,
        failures,
    })
}

fn switches(fabric: &Fabric, clos: &Clos) -> Vec<SwitchRow> {
    let (leaves, mids) = (fabric.leaves(), clos.pods() * clos.mids_per_pod());
    let row = |id: u32| {
        let tier = u32::from(fabric.tier(SwitchId(id)));
        let (pod, index) = match tier {
            0 => (id / clos.leaves_per_pod(), id),
            1 => ((id - leaves) / clos.mids_per_pod(), id - leaves),
            _ => (0, id - leaves - mids),
        };
        SwitchRow { node: fabric.name(Node::Switch(SwitchId(id))), tier, pod, index }
    };
    (0..fabric.switches()).map(row).collect()
}

fn links(fabric: &Fabric, failures: &Failures) -> Vec<LinkRow> {
    let mut before = None;
    let mut member = 0;
    let row = |id: PortId| {
        let port = &fabric.ports()[id];
        let ends = [id, port.reverse];
        let rates = ends.map(|id| failures.rate(fabric, id, Time::ZERO));
        let rate = rates[0].min(rates[1]);
        let state = match ends.into_iter().any(|id| failures.is_down(id, Time::ZERO)) {
            true => LinkState::Down,
            false if rate < port.rate => LinkState::Degraded,
            false => LinkState::Up,
        };
        // Members of a bundle stand side by side.
        let is_beside = before == Some((port.owner, port.peer));
        before = Some((port.owner, port.peer));
        member = if is_beside { member + 1 } else { 0 };
        LinkRow {
            lower: fabric.name(port.owner),
            upper: fabric.name(port.peer),
            member,
            line_bps: port.rate.as_bps(),
            rate_bps: rate.as_bps(),
            state,
        }
    };
    fabric.links().map(row).collect()
}
