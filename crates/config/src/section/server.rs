//! `[fabric.server]`: GPUs and NICs of a server, and the links between its GPUs.

use super::topology_file::Boxes;
use crate::error::ExperimentError;
use crate::kind::{Flag, Integer, OneOf, Or, Size, Span, Speed};
use crate::reader::Reader;
use weft_fabric::{Fabric, Pxn, RelayAt, Relays, ScaleUp, Shape};
use weft_units::{HostId, Rate, Time};

/// What every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Servers {
    /// GPUs; a multiple of the NICs.
    pub gpus: u32,
    /// NICs, each a host of the fabric, shared by equally many GPUs.
    pub nics: u32,
    /// Whether the NICs of a server are under different leaves: all first ones under one, ...
    pub rails: bool,
    /// Between GPUs of a server.
    pub scale_up: ScaleUp,
    /// From a GPU to its NIC; `None`: no limit.
    pub pcie: Option<Rate>,
    /// What a GPU takes before it first sends in a collective, and over each message that it receives.
    pub endpoint_delay: Time,
    /// What a GPU's memory moves; `None`: in no time.
    pub memory: Option<Rate>,
    /// How messages between rails change over to another GPU; `None`: NICs send to any other.
    pub pxn: Option<Pxn>,
}

impl Servers {
    /// A GPU and a NIC each, whose GPUs take no time over messages.
    pub const USUAL: Servers = Servers {
        gpus: 1,
        nics: 1,
        rails: false,
        scale_up: ScaleUp { rate: Rate::gbps(3_600), latency: Time::ns(500), cycle: Time::ZERO },
        pcie: None,
        endpoint_delay: Time::ZERO,
        memory: None,
        pxn: None,
    };

    /// What servers are where nothing is said of them, on a fabric with so many rails that never meet, or with none:
    /// with a GPU and a NIC for each of them.
    pub fn usual(rails: Option<u32>) -> Servers {
        let usual = Servers::USUAL;
        match rails {
            Some(nics) => Servers { gpus: nics, nics, rails: true, pxn: Some(PXN), ..usual },
            None => usual,
        }
    }
}

/// In the pieces in which NCCL sends over networks (`NCCL_P2P_NET_CHUNKSIZE`).
const PXN: Pxn = Pxn { at: RelayAt::Source, chunk: 128 << 10 };

/// Reads `[fabric.server]`; `said` is what a topology file says of it.
pub fn read(
    r: &mut Reader<'_>,
    topology: &Shape,
    said: Option<&Boxes>,
) -> Result<Servers, ExperimentError> {
    let usual = said.map_or_else(|| Servers::usual(topology.rails()), |said| said.servers);
    let count = Integer { min: 1, max: 1_024 };
    let gpus =
        r.get("gpus", count, Some(usual.gpus), "GPUs of a server, which ranks of jobs are on")?;
    let meaning = "NICs of a server, each a host of the fabric; they share its GPUs equally";
    let nics = r.get("nics", count, Some(usual.nics), meaning)?;
    let meaning = "whether a server's NICs are under different leaves, each kind under its own";
    let rails = r.get("rails", Flag, Some(usual.rails), meaning)?;
    let line = Some(usual.scale_up.rate);
    let rate = r.get("scale_up", Speed, line, "what a GPU sends at to others of its server")?;
    let meaning = "from the last byte until it is there, between GPUs of a server";
    let latency = r.get("scale_up_latency", Span::ANY, Some(usual.scale_up.latency), meaning)?;
    let meaning = "what a GPU sends at to its NIC, on all its queue pairs together";
    let pcie = r.get("pcie", Or(Speed, "unlimited"), Some(usual.pcie), meaning)?;
    let meaning = "before a GPU first sends in a collective, and over each message it receives";
    let delay = r.get("endpoint_delay", Span::ANY, Some(usual.endpoint_delay), meaning)?;
    let meaning = "what a GPU's memory moves; a message that is reduced passes it three times";
    let memory = r.get("memory", Or(Speed, "unlimited"), Some(usual.memory), meaning)?;
    let meaning = "round times on scale-up links and in memory down to whole ones of this; 0ns: no";
    let cycle = r.get("cycle", Span::ANY, Some(usual.scale_up.cycle), meaning)?;
    let scale_up = ScaleUp { rate, latency, cycle };
    let pxn = read_pxn(r, usual.pxn.is_some())?;
    let servers = Servers { gpus, nics, rails, scale_up, pcie, endpoint_delay: delay, memory, pxn };
    if let Some((key, what)) = said.and_then(|said| servers.contradicts(said)) {
        return Err(r.wrong(key, what));
    }
    match servers.fits(topology) {
        Err((key, what)) if !r.is_rehearsal() => Err(r.wrong(key, what)),
        _ => Ok(servers),
    }
}

/// Whether, where and how messages between rails change over.
fn read_pxn(r: &mut Reader<'_>, usual: bool) -> Result<Option<Pxn>, ExperimentError> {
    let meaning = "whether messages go over the scale-up link to or from another GPU, so that on the network they \
                   stay in a rail (NCCL's PXN); true where rails never meet";
    let is_on = r.get("pxn", Flag, Some(usual), meaning)?;
    let meaning = "with pxn, in which server they change over: that of the sender (\"source\") or of the \
                   receiver (\"destination\")";
    let at = r.get("pxn_at", OneOf(&["source", "destination"]), Some(0), meaning)?;
    let at = [RelayAt::Source, RelayAt::Destination][at];
    let meaning = "with pxn, the pieces in which a GPU passes a message on";
    let chunk = r.get("pxn_chunk", Size::SOME, Some(PXN.chunk), meaning)?;
    Ok(is_on.then_some(Pxn { at, chunk }))
}

impl Servers {
    /// Which key says something else than a topology file, and what.
    fn contradicts(&self, said: &Boxes) -> Option<(&'static str, String)> {
        let file = &said.servers;
        let counts = [("gpus", self.gpus, file.gpus), ("nics", self.nics, file.nics)];
        let mut counts = counts.into_iter();
        let odd = counts.find_map(|(key, own, file)| Some((key, said.contradicts(own, file)?)));
        odd.or_else(|| Some(("rails", said.contradicts(self.rails, file.rails)?)))
    }

    /// Whether servers fill a topology; else the key to blame, and why.
    pub(super) fn fits(&self, topology: &Shape) -> Result<(), (&'static str, String)> {
        let Servers { gpus, nics, rails, .. } = *self;
        if !gpus.is_multiple_of(nics) {
            let what = format!("{gpus} GPUs cannot share {nics} NICs equally; use a multiple");
            return Err(("gpus", what));
        }
        if let Some(all) = topology.rails() {
            if nics != all {
                let what = format!(
                    "{nics}, where each of {all} rails has a NIC of every server; use {all}"
                );
                return Err(("nics", what));
            }
            if !rails {
                let what = "false, where every NIC of a server is in a rail of its own; remove it";
                return Err(("rails", what.into()));
            }
        }
        let (places, what) = match rails {
            true => (topology.leaves(), "leaves"),
            false => (topology.hosts_per_leaf(), "hosts of a leaf"),
        };
        if !places.is_multiple_of(nics) {
            return Err(("nics", format!("{nics} do not divide {places} {what}; use a divisor")));
        }
        let sizes = topology.hosts_of_leaves();
        let uneven = |group: &[u32]| group.iter().any(|hosts| *hosts != group[0]);
        match rails && sizes.chunks(nics as usize).any(uneven) {
            false => Ok(()),
            true => {
                let what = format!(
                    "true, but {nics} leaves that share servers have other numbers of hosts; give them as many"
                );
                Err(("rails", what))
            }
        }
    }

    /// How many servers there are on `fabric`.
    pub fn count(&self, fabric: &Fabric) -> u32 {
        fabric.hosts() / self.nics
    }

    /// The host that is the NIC of a GPU of a server.
    pub fn nic(&self, fabric: &Fabric, server: u32, gpu: u32) -> HostId {
        let nic = gpu / (self.gpus / self.nics);
        if !self.rails {
            return HostId(server * self.nics + nic);
        }
        let under = match (fabric.rails(), fabric.shape()) {
            (Some(rails), _) => fabric.hosts() / rails,
            (None, Shape::Clos(_)) => fabric.hosts_of_leaf(0).len() as u32,
            (None, Shape::Wiring(_)) => return self.nic_of_leaf(fabric, server, nic),
        };
        // As many servers as a leaf has hosts share as many leaves as a server has NICs; all do where rails never meet.
        HostId((server / under * self.nics + nic) * under + server % under)
    }

    /// The same on rails where some leaves may have more hosts than others.
    fn nic_of_leaf(&self, fabric: &Fabric, server: u32, nic: u32) -> HostId {
        let mut place = server;
        for leaf in (nic..fabric.leaves()).step_by(self.nics as usize) {
            let hosts = fabric.hosts_of_leaf(leaf);
            match place < hosts.len() as u32 {
                true => return HostId(hosts.start + place),
                false => place -= hosts.len() as u32,
            }
        }
        unreachable!("there are as many servers as leaves have room for")
    }

    /// GPUs that pass on messages between rails, for ranks on these GPUs; `None`: none does.
    pub fn relays(&self, fabric: &Fabric, ranks: &[u32]) -> Option<Relays> {
        let pxn = self.pxn?;
        let all = 0..self.count(fabric) * self.gpus;
        let nic = |gpu: u32| self.nic(fabric, gpu / self.gpus, gpu % self.gpus);
        let (per_server, per_nic) = (self.gpus, self.gpus / self.nics);
        Some(Relays {
            pxn,
            per_server,
            per_nic,
            nics: all.map(nic).collect(),
            gpus: ranks.to_vec(),
        })
    }
}
