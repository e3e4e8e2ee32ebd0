//! A second, independent count, for tests: what arrived at the far end of every link, and
//! whether packets of one flow overtook each other on one path.

use crate::config::RunConfig;
use crate::outcome::PortResult;
use crate::packet::{Data, Kind, LostPacket, Packet};
use crate::partition::{InLink, OutPort, Partition};
use std::collections::BTreeMap;
use weft_fabric::{Fabric, Node};
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId};

/// Counts at the far ends of links.
#[derive(Debug)]
pub(crate) struct Audit {
    links: IdVec<InLink, Seen>,
    /// Bytes that came by the link that each port leads back and got no farther.
    lost: IdVec<OutPort, u64>,
    /// Bytes of what its switch made, by the port that it left by.
    made: IdVec<OutPort, u64>,
    /// A path is told by a packet's route, and nothing on it goes ahead of the rest.
    in_order: bool,
    /// Flows with the same addresses follow each other, each beginning with packet zero.
    repeats: bool,
    /// The newest packet of each queue pair, route and link that left once. A flow's place may be
    /// another's later; its hash key tells them apart.
    newest: BTreeMap<(HostId, (u32, u32), u16, InLink), u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    bytes: u64,
    packets: u64,
    /// Bytes that the reverse link brought and that got no farther.
    lost: u64,
    /// Bytes of what the owner itself put there.
    made: u64,
}

impl Audit {
    /// For the links that end in a partition.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> Audit {
        let by_route = !config.balance.scheme.info().in_switch;
        let in_order =
            by_route && config.switch.trim.is_none() && config.failures.detected().is_empty();
        // Where data has extended headers, its number is there.
        let in_order = in_order && !config.transport.congestion.grants_credit();
        // From two homes of a host a route leads by two paths to the same links.
        let in_order = in_order && config.fabric.homes() == 1;
        Audit {
            links: partition.links.iter().map(|_| Seen::default()).collect(),
            lost: partition.ports.iter().map(|_| 0).collect(),
            made: partition.ports.iter().map(|_| 0).collect(),
            in_order,
            repeats: config.balance.scheme.info().persistent,
            newest: BTreeMap::new(),
        }
    }

    /// `packet` reached the end of `link`.
    ///
    /// # Panics
    /// If it overtook an earlier packet of its flow that took the same path.
    pub(crate) fn arrived(&mut self, link: InLink, packet: &Packet) {
        let seen = &mut self.links[link];
        seen.bytes += u64::from(packet.size);
        seen.packets += 1;
        if packet.kind() != Kind::Data || packet.is_segment() || !self.in_order {
            return;
        }
        let Data { receiver, seq, key, is_resent, .. } = packet.as_data();
        if is_resent {
            return;
        }
        let flow = (packet.dst(), (receiver.0, key), packet.entropy(), link);
        let newest = self.newest.entry(flow).or_insert(seq);
        if seq == 0 && self.repeats {
            *newest = 0;
        }
        assert!(*newest <= seq, "{packet:?} was overtaken by {newest} on its own path");
        *newest = seq;
    }

    /// `packet` came by the link that `reverse` leads back, and is gone.
    pub(crate) fn lost(&mut self, reverse: OutPort, packet: LostPacket) {
        self.lost[reverse] += u64::from(packet.size);
    }

    /// The switch of `port` has made a packet of `size` bytes that leaves there.
    pub(crate) fn made(&mut self, port: OutPort, size: u16) {
        self.made[port] += u64::from(size);
    }

    /// Adds what was counted at the ends of a partition's links to `all` links of the fabric.
    pub(crate) fn gather(&self, partition: &Partition, all: &mut IdVec<PortId, Seen>) {
        for (link, port) in partition.links.enumerate() {
            (all[*port].bytes, all[*port].packets) =
                (self.links[link].bytes, self.links[link].packets);
        }
        for (own, port) in partition.ports.enumerate() {
            (all[*port].lost, all[*port].made) = (self.lost[own], self.made[own]);
        }
    }
}

/// Compares what reached the ends of links with what the ports say that they sent.
///
/// # Panics
/// If a link delivered other bytes than its port sent, or a switch sent, cut off, dropped and
/// lost other bytes than it received or made.
pub(crate) fn check(fabric: &Fabric, links: &IdVec<PortId, Seen>, ports: &[PortResult]) {
    let mut switches = vec![0i64; fabric.switches() as usize];
    for (id, port) in fabric.ports().enumerate() {
        let (seen, sent) = (&links[id], &ports[id.index()]);
        assert_eq!(seen.bytes, sent.bytes, "bytes over the link of {id:?}");
        assert_eq!(seen.packets, sent.packets, "packets over the link of {id:?}");
        if let Node::Switch(to) = port.peer {
            switches[to.index()] += seen.bytes as i64;
        }
        if let Node::Switch(from) = port.owner {
            let gone = sent.dropped_bytes + sent.trimmed_bytes + seen.lost;
            switches[from.index()] += seen.made as i64 - (sent.bytes + gone) as i64;
        }
    }
    for (switch, balance) in switches.iter().enumerate() {
        assert_eq!(*balance, 0, "bytes in minus bytes out at switch {switch}");
    }
}
