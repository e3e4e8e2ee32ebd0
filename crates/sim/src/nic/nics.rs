//! The hosts of a partition, and the halves of queue pairs that are at them.

use super::chunks::Chunks;
use super::flow::{ReceivingQp, SendingQp};
use super::host::Host;
use super::planes::{Plane, Several};
use super::time_outs::TimeOuts;
use super::turns::Turns;
use crate::config::RunConfig;
use crate::packet::{Kind, Packet};
use crate::partition::{NicPorts, OutPort, OwnHost, Partition, ReceiverId};
use rustc_hash::FxHashMap;
use weft_balance::known::Known;
use weft_balance::plan::Subflow;
use weft_fabric::Fabric;
use weft_units::prefetch::prefetch;
use weft_units::{HostId, IdVec, Time};

/// The NICs of a partition.
#[derive(Debug)]
pub(crate) struct Nics {
    pub(super) hosts: IdVec<OwnHost, Host>,
    /// The ports of the NIC of each host, where there are several.
    pub(super) several: IdVec<OwnHost, Several>,
    /// Sending halves of the queue pairs of this partition's hosts.
    pub(super) senders: Vec<SendingQp>,
    /// Which queue pair of its host each of them is, if that decides whose turn it is.
    pub(super) opening_order: Vec<u32>,
    pub(super) chunks: Chunks,
    pub(super) time_outs: TimeOuts,
    /// Receiving halves, by the partition of the sender.
    pub(super) receivers: Vec<Vec<ReceivingQp>>,
    /// How many receiving halves the queue pairs to hosts of each partition take, and which of their
    /// places are free again.
    pub(super) opened: Vec<u32>,
    pub(super) free_receivers: Vec<Vec<u32>>,
    /// The ports of NICs.
    pub(super) ports: NicPorts,
    /// Queue pairs that want to send, the next one first: of the first host in each plane, of the second one, and so on.
    rounds: Vec<Turns>,
    /// What each queue pair knows of its planes, one after the other, where there are several.
    pub(super) planes: Vec<Plane>,
    /// Ports of NICs whose links are known to be dead, a bit each, of all hosts of the fabric that have others.
    pub(super) dead: FxHashMap<HostId, u8>,
    /// Packets of some queue pairs need more of it than those of plain ones: it is paced, or not plain.
    pub(super) need_all: bool,
    /// Packets leave in slots of their GPUs.
    pub(super) has_slots: bool,
    /// Scratch for planners.
    pub(super) subflows: Vec<Subflow>,
}

/// With more queue pairs than this, or ports of NICs, what packets need of them is out of the caches near a core when
/// they reach their hosts.
const MANY: usize = 1 << 11;

impl Nics {
    /// Those of a partition, of `partitions`.
    pub(crate) fn new(config: &RunConfig, partition: &Partition, partitions: usize) -> Nics {
        Nics {
            hosts: Host::all(config, partition),
            several: partition.hosts.iter().map(|_| Several::default()).collect(),
            senders: Vec::new(),
            opening_order: Vec::new(),
            time_outs: TimeOuts::default(),
            receivers: (0..partitions).map(|_| Vec::new()).collect(),
            opened: vec![0; partitions],
            free_receivers: vec![Vec::new(); partitions],
            ports: NicPorts::new(config.fabric, partition),
            rounds: vec![
                Turns::default();
                partition.hosts.len() * config.fabric.nic_ports() as usize
            ],
            planes: Vec::new(),
            dead: FxHashMap::default(),
            need_all: false,
            has_slots: config.job.as_ref().is_some_and(|job| job.pcie.is_some()),
            subflows: Vec::new(),
            chunks: Chunks::default(),
        }
    }
    /// The round of the port of a host in a plane.
    #[inline(always)]
    pub(crate) fn round(&mut self, host: OwnHost, plane: u32) -> &mut Turns {
        &mut self.rounds[self.ports.index(host.0, plane)]
    }
    /// What queue pair `id` knows of a plane.
    #[inline(always)]
    pub(super) fn plane(&mut self, id: u32, plane: u32) -> &mut Plane {
        &mut self.planes[self.ports.index(id, plane)]
    }
    /// Whose port of a NIC it is, and in which plane.
    pub(crate) fn owner(&self, port: OutPort) -> (OwnHost, u32) {
        self.ports.owner(port)
    }
    /// How many subflows a host has opened.
    pub(crate) fn opened_by(&self, host: OwnHost) -> u32 {
        self.hosts[host].opened
    }
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }
    /// All sending halves.
    pub(crate) fn senders(&self) -> &[SendingQp] {
        &self.senders
    }
    /// A receiving half.
    #[inline(always)]
    pub(crate) fn receiver(&self, id: ReceiverId) -> &ReceivingQp {
        &self.receivers[id.partition()][id.number()]
    }
    /// All receiving halves, by the partition of the sender.
    pub(crate) fn receivers(&self) -> &[Vec<ReceivingQp>] {
        &self.receivers
    }
    /// Planners hear what is known from now on.
    pub(crate) fn learn(&mut self, now: Time, known: &Known, fabric: &Fabric) {
        self.hosts.iter_mut().for_each(|host| known.tell(now, &mut host.planner, fabric));
    }

    /// Whether packets are worth to be [expected](Nics::expect).
    pub(crate) fn are_many(&self) -> bool {
        self.senders.len() > MANY
    }
    /// The same of the ports of NICs.
    pub(crate) fn have_many_ports(&self) -> bool {
        self.rounds.len() > MANY
    }
    /// The pacing gap of a queue pair is over soon: has the cache fetch it.
    pub(crate) fn expect_start(&self, id: u32) {
        if let Some(flow) = self.senders.get(id as usize) {
            flow.prefetch(true);
        }
    }
    /// A packet is on its way to its host, which may be of another partition: has the cache
    /// fetch its queue pair.
    #[inline(always)]
    pub(crate) fn expect(&self, packet: Packet) {
        if !self.are_many() {
            return;
        }
        match packet.kind() {
            Kind::Data => {
                let id = packet.receiver();
                if let Some(flow) = self.receivers[id.partition()].get(id.number()) {
                    prefetch(flow);
                }
            }
            Kind::Ack | Kind::Nack => {
                if let Some(flow) = self.senders.get(packet.sender() as usize) {
                    flow.prefetch(false);
                }
            }
            Kind::TorControl | Kind::Pfc => {}
        }
    }
}
