//! The switches, links and failures of an experiment's fabric as tables: what a picture of it is drawn from.
//!
//! Ports have the numbers that they have in `links.parquet`. A link is named by the port at its lower end, or by that
//! which is numbered first. What fails is there for the whole run, with its times; nothing is summed up here.

use crate::columns::{Column, Columns};
use crate::experiment::Resolved;
use weft_config::{ExperimentError, Origin};
use weft_fabric::{Fabric, FailureKind, Failures, Node, Port};
use weft_units::{PortId, SwitchId, Time};

/// A fabric, as tables.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricTables {
    /// How many hosts.
    pub hosts: u32,
    /// How many planes: ports of every NIC.
    pub planes: u32,
    /// Whether it is a folded Clos.
    pub is_clos: bool,
    /// A row a switch, in the order of their numbers: `name`; `tier` (0 leaf, 1 spine or aggregation, 2 core; in a
    /// network that is no Clos how many links it is from the nearest leaf); `plane`; `group` (its pod, or group; cores
    /// have the one after the last).
    pub switches: Columns,
    /// A row a link: `port` and `reverse`, its two directions; `host` and `switch` at its lower end, of which one is
    /// [`NONE`]; `upper`, the switch at the other; `rate_bps`, `delay_s` (with latency in boxes).
    pub links: Columns,
    /// A row a failure of a direction: `port`, `kind` (`"down"`, `"degraded"`, `"flaky"`), `lost` (the share of the
    /// bandwidth; of a flaky link of the time, in the mean), `start_s`, `end_s` (infinite: for ever).
    pub failures: Columns,
}

/// No host, or no switch.
pub const NONE: u32 = u32::MAX;

/// The tables of the fabric of `experiment`; `seed` draws the links that fail at random.
///
/// # Errors
/// If there are fewer links than shall fail.
pub fn fabric_tables(experiment: &Resolved, seed: u64) -> Result<FabricTables, ExperimentError> {
    let fabric = &experiment.fabric;
    let failures = Failures::new(fabric, &experiment.failures, seed)
        .map_err(|error| ExperimentError::new("failures", Origin::Unknown, error.0))?;
    Ok(FabricTables {
        hosts: fabric.hosts(),
        planes: fabric.planes(),
        is_clos: fabric.clos().is_some(),
        switches: switches(fabric),
        links: links(fabric),
        failures: failing(&failures),
    })
}

fn switches(fabric: &Fabric) -> Columns {
    let all = || (0..fabric.switches()).map(SwitchId);
    let numbers = |of: &dyn Fn(SwitchId) -> u32| Column::U32(all().map(of).collect());
    vec![
        ("name", Column::Text(all().map(|id| fabric.name(Node::Switch(id))).collect())),
        ("tier", numbers(&|id| u32::from(fabric.tier(id)))),
        ("plane", numbers(&|id| fabric.plane_of(id))),
        ("group", numbers(&|id| fabric.pod_of_switch(id).unwrap_or_else(|| fabric.pods()))),
    ]
}

fn links(fabric: &Fabric) -> Columns {
    let all = || fabric.links().map(|id| (id, fabric.ports()[id]));
    let numbers = |of: &dyn Fn((PortId, Port)) -> u32| Column::U32(all().map(of).collect());
    let switch = |node: Node| match node {
        Node::Switch(switch) => switch.0,
        Node::Host(_) => NONE,
    };
    let host = |node: Node| match node {
        Node::Host(host) => host.0,
        Node::Switch(_) => NONE,
    };
    vec![
        ("port", numbers(&|(id, _)| id.0)),
        ("reverse", numbers(&|(_, port)| port.reverse.0)),
        ("host", numbers(&|(_, port)| host(port.owner))),
        ("switch", numbers(&|(_, port)| switch(port.owner))),
        ("upper", numbers(&|(_, port)| switch(port.peer))),
        ("rate_bps", Column::U64(all().map(|(_, port)| port.rate.as_bps()).collect())),
        ("delay_s", Column::F64(all().map(|(_, port)| port.delay.as_secs_f64()).collect())),
    ]
}

fn failing(failures: &Failures) -> Columns {
    let all: Vec<(PortId, FailureKind, Time, Time)> = failures
        .ports()
        .flat_map(|port| failures.of(port).map(move |(kind, from, to)| (port, kind, from, to)))
        .collect();
    let seconds = |time: Time| match time {
        Time::MAX => f64::INFINITY,
        time => time.as_secs_f64(),
    };
    vec![
        ("port", Column::U32(all.iter().map(|one| one.0.0).collect())),
        ("kind", Column::Text(all.iter().map(|one| name(one.1).to_owned()).collect())),
        ("lost", Column::F64(all.iter().map(|one| lost(one.1)).collect())),
        ("start_s", Column::F64(all.iter().map(|one| seconds(one.2)).collect())),
        ("end_s", Column::F64(all.iter().map(|one| seconds(one.3)).collect())),
    ]
}

fn name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Down { .. } => "down",
        FailureKind::Degraded { .. } => "degraded",
        FailureKind::Flaky { .. } => "flaky",
    }
}

fn lost(kind: FailureKind) -> f64 {
    match kind {
        FailureKind::Down { .. } => 1.0,
        FailureKind::Degraded { lost } => lost,
        FailureKind::Flaky { every, length, .. } => {
            (length.as_secs_f64() / every.as_secs_f64()).min(1.0)
        }
    }
}
