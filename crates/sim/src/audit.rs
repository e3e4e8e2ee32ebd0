//! A second, independent count, for tests: what arrived at the far end of every link, and
//! whether packets of one flow overtook each other on one path.

use crate::event::{Packet, flag};
use crate::outcome::PortResult;
use std::collections::BTreeMap;
use weft_fabric::{Fabric, Node};
use weft_units::id::Id;
use weft_units::{IdVec, PortId};

/// Counts at the far ends of links.
#[derive(Debug)]
pub struct Audit {
    links: IdVec<PortId, Seen>,
    /// The newest packet of each (flow, route, first switch port) that left once.
    newest: BTreeMap<(u32, u16, u32), u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    bytes: u64,
    packets: u64,
}

impl Audit {
    pub(crate) fn new(fabric: &Fabric) -> Audit {
        let links = fabric.ports().iter().map(|_| Seen::default()).collect();
        Audit { links, newest: BTreeMap::new() }
    }

    /// `packet` reached the far end of `port`'s link.
    ///
    /// # Panics
    /// If it overtook an earlier packet of its flow that took the same path.
    pub(crate) fn arrived(&mut self, port: PortId, packet: &Packet) {
        let seen = &mut self.links[port];
        seen.bytes += u64::from(packet.size);
        seen.packets += 1;
        if packet.is(flag::CONTROL | flag::AGAIN) {
            return;
        }
        let newest = self.newest.entry((packet.flow, packet.route, port.0)).or_insert(packet.seq);
        assert!(*newest <= packet.seq, "{packet:?} was overtaken by {newest} on its own path");
        *newest = packet.seq;
    }

    /// Compares with what the ports say that they sent.
    ///
    /// # Panics
    /// If a link delivered other bytes than its port sent, or a switch sent and dropped other
    /// bytes than it received.
    pub(crate) fn check(&self, fabric: &Fabric, ports: &[PortResult]) {
        let mut switches = vec![0i64; fabric.switches() as usize];
        for (id, port) in fabric.ports().enumerate() {
            let (seen, sent) = (&self.links[id], &ports[id.index()]);
            assert_eq!(seen.bytes, sent.bytes, "bytes over the link of {id:?}");
            assert_eq!(seen.packets, sent.packets, "packets over the link of {id:?}");
            if let Node::Switch(to) = port.peer {
                switches[to.index()] += seen.bytes as i64;
            }
            if let Node::Switch(from) = port.owner {
                switches[from.index()] -= (sent.bytes + sent.dropped_bytes) as i64;
            }
        }
        for (switch, balance) in switches.iter().enumerate() {
            assert_eq!(*balance, 0, "bytes in minus bytes out at switch {switch}");
        }
    }
}
