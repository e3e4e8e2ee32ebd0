//! `[fabric]`: the topology, its rates and delays, its switches and NICs.

use super::server::{self, Servers};
use super::switch::{self, SwitchSection, Usual};
use super::topology::{COUNTS, TOPOLOGIES, check_links};
use super::topology_file::{self, Boxes, FromFile};
use crate::kind::{Integer, OneOf, Size, Span};
use crate::memory::{self, Need};
use crate::reader::{Asked, Reader, keys_asked_by, keys_of};
use crate::value::Table;
use crate::{ExperimentError, Origin};
use std::path::Path;
use weft_fabric::{Clos, Fabric, Link, PacketConfig, Service, Shape};
use weft_units::{Rate, Time};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What `[fabric]` says.
#[derive(Clone, Debug)]
pub struct FabricSection {
    /// The topology with its rates and delays.
    pub fabric: Fabric,
    /// `[fabric.switch]`.
    pub switch: SwitchSection,
    /// Packet sizes, of `[fabric.nic]`.
    pub packet: PacketConfig,
    /// Who sends next, of `[fabric.nic]`.
    pub service: Service,
    /// `[fabric.server]`.
    pub servers: Servers,
    /// What the user should know.
    pub warnings: Vec<String>,
}

const CIRCLES: &str = "fabric.switch.pfc: routes of this topology go in circles, so that packets that pause each \
                       other may wait for ever; a run then stalls and says so; set pfc = false, or choose a \
                       recovery that trims";

/// Payload of a full packet unless the experiment says otherwise, in bytes.
pub const USUAL_MTU: u32 = 4096;

/// The names of all topologies.
pub fn names() -> Vec<&'static str> {
    TOPOLOGIES.iter().map(|topology| topology.name).collect()
}

/// The keys of `[fabric]` under the topology `name`, or beside a file.
pub fn keys(name: &str) -> Vec<String> {
    let choice = TOPOLOGIES.iter().find(|topology| topology.name == name);
    let own = choice.map(|choice| keys_of("fabric", choice, &())).unwrap_or_default();
    let own = own.into_iter().map(|asked| asked.key);
    own.chain(["planes", "homes", "switch", "nic", "server"].map(str::to_owned)).collect()
}

/// Reads `[fabric]`; a topology file is looked for in `folder`.
pub fn read(r: &mut Reader<'_>, folder: &Path) -> Result<FabricSection> {
    let found = match topology_file::read(r, folder)? {
        Some(found) => found,
        None => FromFile {
            topology: read_topology(r)?,
            boxes: None,
            usual: Usual::default(),
            warning: None,
        },
    };
    let FromFile { topology, boxes, usual, warning } = found;
    let (planes, homes) = read_nic_ports(r, boxes.as_ref())?;
    if homes > 1 && planes > 1 {
        return Err(r.wrong("homes", "stands beside planes; remove one of them"));
    }
    let mut topology = topology.homed(homes).map_err(|error| r.wrong("homes", error.0))?;
    let nic = r.section("nic", "network cards and packet sizes", read_nic)?;
    let Nic { latency, packet, service } = nic;
    let servers = r.section("server", "GPUs and NICs of a server", |r| {
        server::read(r, &topology, boxes.as_ref())
    })?;
    let slowest = topology.slowest();
    let switch = r.section("switch", "queues, marks and pauses", |r| {
        switch::read(r, slowest, &packet, &usual)
    })?;
    topology.set_latencies(switch.latency, latency);
    let links = topology.links() * u64::from(planes);
    let need = Need::of(r.largest(&COUNTS), links, "links", memory::LINK);
    let near = need.check()?;
    let built = topology.build().and_then(|fabric| fabric.in_planes(planes));
    let fabric = built.map_err(|error| {
        let has_mend = error.0.contains("; ") || error.0.contains(": choose");
        let what = if has_mend { error.0 } else { format!("{error}; correct the counts") };
        // Of the counts only this one has to suit others.
        let at_fault = [("cores", "cores"), ("planes", "planes"), ("links", "path")];
        match at_fault.iter().find(|(key, word)| r.has(key) && what.contains(word)) {
            Some((key, _)) => r.wrong(key, what),
            None => r.wrong_here(what),
        }
    })?;
    let is_circular = switch.switch.pfc.is_some() && fabric.has_circular_routes();
    let circles = is_circular.then(|| CIRCLES.to_owned());
    let warnings = warning.into_iter().chain(near).chain(circles).collect();
    Ok(FabricSection { fabric, switch, packet, service, servers, warnings })
}

/// How many ports every NIC has: in planes, and at leaves of one network. `said` is what a topology file says of it.
fn read_nic_ports(r: &mut Reader<'_>, said: Option<&Boxes>) -> Result<(u32, u32)> {
    let usual = said.map_or(1, |said| said.planes);
    let planes = r.get(
        "planes",
        Integer { min: 1, max: 8 },
        Some(usual),
        "ports of every NIC, each of `link`, and each in a plane of its own: a network like the others",
    )?;
    let homes = r.get(
        "homes",
        Integer { min: 1, max: 8 },
        Some(1),
        "ports of every NIC, each of `link`, at leaves of one network: so many neighbouring leaves share their hosts",
    )?;
    for (key, given, file) in [("planes", planes, usual), ("homes", homes, 1)] {
        if let Some(what) = said.and_then(|said| said.contradicts(given, file)) {
            return Err(r.wrong(key, what));
        }
    }
    Ok((planes, homes))
}

/// The keys of `[fabric]`, with those of its first topology.
pub fn section_keys() -> Vec<Asked> {
    keys_asked_by("fabric", |r| read(r, Path::new("")))
}

/// The topology that the keys describe.
fn read_topology(r: &mut Reader<'_>) -> Result<Shape> {
    let topology = r.choose("topology", None, "kind of fabric", TOPOLOGIES, &())?;
    if let Shape::Clos(clos) = &topology {
        check_links(clos).map_err(|what| {
            let what = format!("{what}; use smaller counts");
            ExperimentError::new(r.largest(&COUNTS), Origin::Unknown, what)
        })?;
    }
    Ok(topology)
}

/// What NICs have in common.
struct Nic {
    latency: Time,
    packet: PacketConfig,
    service: Service,
}

fn read_nic(r: &mut Reader<'_>) -> Result<Nic> {
    let small = |max| Size { min: 1, max };
    let latency = r.get("latency", Span::ANY, Some(Time::ZERO), "time in the receiving NIC")?;
    let usual = Some(USUAL_MTU.into());
    let mtu = r.get("mtu", small(60_000), usual, "most payload of a packet")?;
    let headers = Size { min: 0, max: 1_000 };
    let header = r.get("header", headers, Some(48), "headers of a data packet")?;
    let ack = r.get("ack", small(9_000), Some(60), "an acknowledgement, in all")?;
    let packet = PacketConfig { mtu: mtu as u32, header: header as u32, ack: ack as u32 };
    let services = ["in-order", "round-robin", "oldest"];
    let meaning = "who sends next: queue pairs in turn, a packet each, where messages from one \
                   rank of a job to another follow each other (\"in-order\", as on a connection \
                   of NCCL) or are all under way at once (\"round-robin\", as in Ethereal (2025)); or \
                   the \"oldest\" queue pair that can";
    let service = match r.get("serve", OneOf(&services), Some(0), meaning)? {
        0 => Service::InOrder,
        1 => Service::RoundRobin,
        _ => Service::OldestFirst,
    };
    Ok(Nic { latency, packet, service })
}

/// The keys that all topologies have, with their defaults at 100 Gb/s: ports of NICs, `[fabric.switch]`, `[fabric.nic]`
/// and `[fabric.server]`.
pub fn box_keys() -> Vec<Asked> {
    let empty = Table::new();
    let packet = PacketConfig { mtu: USUAL_MTU, header: 48, ack: 60 };
    let mut all = keys_asked_by("fabric", |r| read_nic_ports(r, None));
    let mut take = |path: &str, r: &Reader<'_>| {
        all.extend(r.asked().iter().cloned().map(|mut asked| {
            asked.key = format!("{path}.{}", asked.key);
            asked
        }));
    };
    let mut r = Reader::rehearse("fabric.switch", &empty);
    let _ = switch::read(&mut r, Rate::gbps(100), &packet, &Usual::default());
    take("switch", &r);
    let mut r = Reader::rehearse("fabric.nic", &empty);
    let _ = read_nic(&mut r);
    take("nic", &r);
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    let mut r = Reader::rehearse("fabric.server", &empty);
    let _ = server::read(&mut r, &Shape::Clos(Clos::leaf_spine(1, 1, 1, link)), None);
    take("server", &r);
    all
}
