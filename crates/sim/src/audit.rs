//! A second, independent count, for tests: what arrived at the far end of every link, and
//! whether packets of one flow overtook each other on one path.

use crate::cut::{InLink, Territory};
use crate::event::{Packet, flag};
use crate::outcome::PortResult;
use std::collections::BTreeMap;
use weft_fabric::{Fabric, Node};
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId};

/// Counts at the far ends of links.
#[derive(Debug)]
pub(crate) struct Audit {
    links: IdVec<InLink, Seen>,
    /// The newest packet of each (destination, flow, route, link) that left once.
    newest: BTreeMap<(HostId, u32, u16, InLink), u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    bytes: u64,
    packets: u64,
}

impl Audit {
    /// For the links that end in a domain.
    pub(crate) fn new(territory: &Territory) -> Audit {
        let links = territory.links.iter().map(|_| Seen::default()).collect();
        Audit { links, newest: BTreeMap::new() }
    }

    /// `packet` reached the end of `link`.
    ///
    /// # Panics
    /// If it overtook an earlier packet of its flow that took the same path.
    pub(crate) fn arrived(&mut self, link: InLink, packet: &Packet) {
        let seen = &mut self.links[link];
        seen.bytes += u64::from(packet.size);
        seen.packets += 1;
        if packet.is(flag::CONTROL | flag::AGAIN) {
            return;
        }
        let newest = self
            .newest
            .entry((packet.dst(), packet.flow, packet.route, link))
            .or_insert(packet.seq);
        assert!(*newest <= packet.seq, "{packet:?} was overtaken by {newest} on its own path");
        *newest = packet.seq;
    }

    /// Adds what was counted at the ends of a domain's links to `all` links of the fabric.
    pub(crate) fn gather(&self, territory: &Territory, all: &mut IdVec<PortId, Seen>) {
        for (link, port) in territory.links.enumerate() {
            all[*port] = self.links[link];
        }
    }
}

/// Compares what reached the ends of links with what the ports say that they sent.
///
/// # Panics
/// If a link delivered other bytes than its port sent, or a switch sent and dropped other
/// bytes than it received.
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
            switches[from.index()] -= (sent.bytes + sent.dropped_bytes) as i64;
        }
    }
    for (switch, balance) in switches.iter().enumerate() {
        assert_eq!(*balance, 0, "bytes in minus bytes out at switch {switch}");
    }
}
