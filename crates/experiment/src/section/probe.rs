//! `[probe]`: what to sample.

use crate::error::ExperimentError;
use crate::kind::{Flag, Span, Texts};
use crate::reader::{Asked, Reader, keys_asked_by};
use crate::section::smallest_fabric;
use weft_fabric::{Fabric, Node};
use weft_sim::ProbeConfig;
use weft_units::{HostId, PortId, SwitchId, Time};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What `[probe]` says.
#[derive(Clone, Debug)]
pub(crate) struct Probes {
    pub(crate) samples: ProbeConfig,
    pub(crate) timeline: bool,
}

/// Reads `[probe]`.
pub(crate) fn read(r: &mut Reader<'_>, fabric: &Fabric) -> Result<Probes> {
    let interval = r.get("interval", Span::SOME, Some(Time::us(1)), "time between two samples")?;
    let none = Some(Vec::new());
    let meaning = "queues, as \"leaf-0 -> host-0\"; \"leaf-0 -> spine-*\": all of them";
    let port_names = r.get("ports", Texts, none.clone(), meaning)?;
    let switch_names = r.get("switches", Texts, none.clone(), "whole buffers, as \"leaf-0\"")?;
    let mut ports = Vec::new();
    for name in &port_names {
        ports.extend(ports_named(fabric, name).map_err(|what| r.wrong("ports", what))?);
    }
    let mut switches = Vec::new();
    for name in &switch_names {
        switches.push(switch_named(fabric, name).map_err(|what| r.wrong("switches", what))?);
    }
    let meaning = "ports whose bytes on the wire are counted in each interval; names as in ports, \
                   and \"host-0 -> leaf-0\"";
    let sender_names = r.get("sent", Texts, none, meaning)?;
    let mut sent = Vec::new();
    for name in &sender_names {
        sent.extend(ports_named(fabric, name).map_err(|what| r.wrong("sent", what))?);
    }
    let meaning = "the payload that all hosts together receive in each interval";
    let goodput = r.get("goodput", Flag, Some(false), meaning)?;
    let meaning = "of jobs: when each node of each rank and each message begins and ends";
    let timeline = r.get("timeline", Flag, Some(false), meaning)?;
    let mut samples = ProbeConfig { interval: None, ports, switches, sent, goodput };
    samples.interval = (samples.series() > 0).then_some(interval);
    Ok(Probes { samples, timeline })
}

/// All its keys.
pub(crate) fn keys() -> Vec<Asked> {
    keys_asked_by("probe", |r| read(r, &smallest_fabric()))
}

/// `from -> to`, with `#1` behind for the second member of a bundle. A `*` at the end of a name
/// stands for any number, and for all members of the bundles.
fn ports_named(fabric: &Fabric, name: &str) -> std::result::Result<Vec<PortId>, String> {
    let how = "write \"leaf-0 -> host-0\", or \"leaf-0 -> spine-0#1\" for a second parallel link";
    let (from, to) = name.split_once("->").ok_or_else(|| format!("{name:?} is no port; {how}"))?;
    let (from, to) = (from.trim(), to.trim());
    if name.contains('*') {
        let any = ports_matching(fabric, from, to);
        return if any.is_empty() {
            Err(format!("there is no link {name:?}; {how}"))
        } else {
            Ok(any)
        };
    }
    let (to, member) = to.split_once('#').unwrap_or((to, "0"));
    let member: usize =
        member.trim().parse().map_err(|_| format!("{name:?} has no member number; {how}"))?;
    let (from, to) = (node_named(fabric, from)?, node_named(fabric, to.trim())?);
    let between =
        fabric.ports().enumerate().filter(|(_, port)| port.owner == from && port.peer == to);
    let all: Vec<PortId> = between.map(|(id, _)| id).collect();
    all.get(member).map(|port| vec![*port]).ok_or_else(|| match all.len() {
        0 => format!("there is no link {name:?}; {how}"),
        links => format!("{name:?} is one of {links} links, counted from #0; use a lower number"),
    })
}

/// All ports between nodes whose names match.
fn ports_matching(fabric: &Fabric, from: &str, to: &str) -> Vec<PortId> {
    let matches = |pattern: &str, node: Node| match pattern.strip_suffix('*') {
        Some(start) => fabric.name(node).starts_with(start),
        None => fabric.name(node) == pattern,
    };
    let ports = fabric.ports().enumerate();
    ports.filter(|(_, p)| matches(from, p.owner) && matches(to, p.peer)).map(|(id, _)| id).collect()
}

fn node_named(fabric: &Fabric, name: &str) -> std::result::Result<Node, String> {
    let Some(number) = name.strip_prefix("host-") else {
        return switch_named(fabric, name).map(Node::Switch);
    };
    let hosts = fabric.hosts();
    match number.parse::<u32>() {
        Ok(host) if host < hosts => Ok(Node::Host(HostId(host))),
        _ => Err(format!("{name:?} does not exist; use host-0 to host-{}", hosts - 1)),
    }
}

fn switch_named(fabric: &Fabric, name: &str) -> std::result::Result<SwitchId, String> {
    fabric.switch_named(name).ok_or_else(|| {
        let name_of = |id: u32| fabric.name(Node::Switch(SwitchId(id)));
        let (first, last) = (name_of(0), name_of(fabric.switches() - 1));
        format!("{name:?} does not exist; switches are named {first} to {last}")
    })
}
