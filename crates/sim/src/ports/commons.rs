//! Shared memory behind FIFO ports: what has come and when it will have left is all that
//! admission needs, as long as nobody is paused. With PFC, the first packet that would pause
//! somebody ends that: the run starts over with real queues ([`Commons::overflowed`]).

use super::shared::{Coming, Ingress, Memory, Rules, headroom, set_aside};
use crate::config::RunConfig;
use crate::partition::{OutPort, OwnSwitch, Partition, Partitioning};
use std::cell::Cell;
use weft_fabric::Node;
use weft_units::{IdVec, Time};

/// The memories of the switches of a partition.
#[derive(Debug)]
pub(super) struct Commons {
    rules: Rules,
    /// What came in by each port's reverse link.
    ingress: IdVec<OutPort, Ingress>,
    /// The switch that owns each port; meaningless for a NIC.
    owners: IdVec<OutPort, OwnSwitch>,
    switches: IdVec<OwnSwitch, Common>,
    overflowed: bool,
    /// Scratch.
    coming: Coming,
    /// Scratch: bytes, by ingress of a switch.
    freed: Vec<u64>,
}

#[derive(Debug)]
struct Common {
    memory: Memory,
    /// Its first port, and how many there are.
    ports: (OutPort, u32),
    /// What is in memory, and what has left without being noted.
    leaving: Vec<Leaving>,
    /// At this length it is time to note what has left.
    long: usize,
    /// What is accounted to nobody: when it leaves, and its size. Apart, since it is rare.
    spared: Vec<(Time, u16)>,
}

/// A packet: when it leaves, by which ingress it came, and its size.
pub(super) type Leaving = (Time, OutPort, u16);

const SHORT: usize = 64;

impl Commons {
    pub(super) fn new(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
    ) -> Commons {
        let RunConfig { fabric, packet, .. } = config;
        let pfc = config.switch.pfc;
        let failures = &config.failures;
        let headroom = |port| pfc.map_or(0, |pfc| headroom(fabric, failures, port, packet, &pfc));
        let ingress = partition.ports.iter().map(|port| Ingress::new(headroom(*port)));
        let owners = partition.ports.iter().map(|port| match fabric.ports()[*port].owner {
            Node::Host(_) => OwnSwitch(u32::MAX),
            Node::Switch(switch) => partitioning.switches[switch].own,
        });
        let switches = partition.switches.iter().map(|switch| {
            let aside = |pfc| set_aside(fabric, failures, *switch, packet, &pfc);
            let aside = pfc.map_or(0, aside);
            let memory = Memory::new(&config.switch, aside);
            let ports = fabric.ports_of(*switch);
            let ports = (partitioning.ports[ports.first].own, ports.count);
            Common { memory, ports, leaving: Vec::new(), long: SHORT, spared: Vec::new() }
        });
        Commons {
            rules: Rules::new(&config.switch),
            ingress: ingress.collect(),
            owners: owners.collect(),
            switches: switches.collect(),
            overflowed: false,
            coming: Coming::new(partition.ports.len()),
            freed: Vec::new(),
        }
    }

    /// Whether admission depends on the length of the queue.
    pub(super) fn drops_by_queue(&self) -> bool {
        self.rules.drops_by_queue()
    }

    /// Takes a packet of `size` bytes, which came by `ingress`, into the memory of the switch
    /// of `port`, whose queue has `queued` bytes, until it leaves `at`. Returns whether there
    /// is room.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        now: Time,
        (port, ingress): (OutPort, OutPort),
        (queued, size): (u64, u16),
        at: Time,
    ) -> bool {
        let switch = self.owners[port];
        if self.switches[switch].leaving.len() >= self.switches[switch].long {
            self.free_departed(now, switch);
        }
        let room = self.take_in(switch, ingress, queued, size) || {
            self.free_departed(now, switch);
            self.take_in(switch, ingress, queued, size)
        };
        if room {
            self.switches[switch].leaving.push((at, ingress, size));
        }
        self.overflowed |= !room && self.rules.is_lossless();
        room
    }

    /// Whether [`Commons::admit_all`] can ever do it.
    pub(super) fn admits_all(&self) -> bool {
        self.rules.is_lossless()
    }

    /// Takes in all packets that come to `switch` from `start` on for a window, by these ingresses
    /// and of these sizes, until it is noted when they [leave](Commons::leaving). Returns false, and
    /// does nothing, if one of them might find no room when it comes.
    pub(super) fn admit_all(
        &mut self,
        start: Time,
        switch: OwnSwitch,
        arrivals: impl Iterator<Item = (OutPort, u16)>,
    ) -> bool {
        self.coming.add_up(arrivals);
        if self.switches[switch].leaving.len() >= self.switches[switch].long {
            self.free_departed(start, switch);
        }
        self.take_in_all(switch) || {
            self.free_departed(start, switch);
            self.take_in_all(switch)
        }
    }

    fn take_in_all(&mut self, switch: OwnSwitch) -> bool {
        let memory = &mut self.switches[switch].memory;
        self.rules.take_in_all(memory, &mut self.ingress, &self.coming.bytes)
    }

    /// Where it is to be noted when what was taken in with others leaves the switch of `port`.
    #[inline(always)]
    pub(super) fn leaving(&mut self, port: OutPort) -> &mut Vec<Leaving> {
        &mut self.switches[self.owners[port]].leaving
    }

    /// Takes a packet of `size` bytes into the memory of the switch of `port` until it leaves `at`,
    /// whatever there is.
    pub(super) fn spare(&mut self, now: Time, port: OutPort, size: u16, at: Time) {
        let spared = &mut self.switches[self.owners[port]].spared;
        if spared.len() == spared.capacity() {
            spared.retain(|(at, _)| *at > now);
        }
        spared.push((at, size));
    }

    #[inline(always)]
    fn take_in(&mut self, switch: OwnSwitch, ingress: OutPort, queued: u64, size: u16) -> bool {
        let memory = &mut self.switches[switch].memory;
        self.rules.take_in(memory, &mut self.ingress[ingress], queued, u64::from(size))
    }

    /// Notes what has left `switch`.
    #[cold]
    fn free_departed(&mut self, now: Time, switch: OwnSwitch) {
        let Common { memory, ports: (first, ports), leaving, long, .. } =
            &mut self.switches[switch];
        self.freed.clear();
        self.freed.resize(*ports as usize, 0);
        let (packets, freed) =
            (Cell::from_mut(&mut leaving[..]).as_slice_of_cells(), &mut self.freed[..]);
        let mut kept = 0;
        for packet in packets {
            // Without a jump that depends on the packet.
            let (at, ingress, size) = packet.get();
            let left = u64::from(at < now);
            freed[(ingress.0 - first.0) as usize] += u64::from(size) * left;
            packets[kept].set(packet.get());
            kept += 1 - left as usize;
        }
        leaving.truncate(kept);
        for (ingress, bytes) in (first.0..).map(OutPort).zip(&self.freed) {
            self.rules.release(memory, &mut self.ingress[ingress], *bytes);
        }
        *long = SHORT.max(2 * leaving.len());
    }

    /// Somebody would have to be paused.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Bytes in the memory of `switch`, if its ports share one.
    pub(super) fn bytes(&self, now: Time, switch: OwnSwitch) -> Option<u64> {
        let common = &self.switches[switch];
        let left = common.leaving.iter().filter(|(at, ..)| *at <= now);
        let left: u64 = left.map(|(_, _, size)| u64::from(*size)).sum();
        let spared = common.spared.iter().filter(|(at, _)| *at > now);
        let spared: u64 = spared.map(|(_, size)| u64::from(*size)).sum();
        self.rules.is_shared().then(|| common.memory.total - left + spared)
    }
}
