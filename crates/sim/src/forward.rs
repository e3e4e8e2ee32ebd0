//! A packet at the far end of a link: handed to its host, or sent on by a switch.

use crate::config::RunConfig;
use crate::engine::Engine;
use crate::event::{Packet, flag};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::hash;
use weft_fabric::{Fabric, Node};
use weft_units::{HostId, IdVec, PortId, SwitchId};

/// The far end of a port's link, packed for the hot path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// A host, or with [`Link::SWITCH`] set a switch.
    peer: u32,
    /// The port at the far end that leads back.
    reverse: PortId,
}

impl Link {
    const SWITCH: u32 = 1 << 31;

    pub(crate) fn all(fabric: &Fabric) -> IdVec<PortId, Link> {
        let link = |port: &weft_fabric::Port| {
            let peer = match port.peer {
                Node::Host(host) => host.0,
                Node::Switch(switch) => switch.0 | Link::SWITCH,
            };
            Link { peer, reverse: port.reverse }
        };
        fabric.ports().iter().map(link).collect()
    }
}

/// The hash salt of every switch: its own, or one for all.
pub(crate) fn salts(config: &RunConfig) -> IdVec<SwitchId, u64> {
    let of = |switch| if config.switch.same_salt { SwitchId(0) } else { SwitchId(switch) };
    (0..config.fabric.switches()).map(|switch| hash::salt(config.seed, of(switch))).collect()
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached the far end of the link of `port`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, port: PortId, packet: Packet) {
        let Link { peer, reverse } = self.links[port];
        if packet.is(flag::PFC) {
            return self.pfc_frame(reverse, packet);
        }
        if let Some(audit) = &mut self.audit {
            audit.arrived(port, &packet);
        }
        if peer & Link::SWITCH != 0 {
            return self.relay(SwitchId(peer & !Link::SWITCH), reverse, packet);
        }
        self.delivered.add(&packet);
        self.totals.end = self.now;
        if packet.is(flag::CONTROL) {
            self.answered(HostId(peer), packet);
        } else {
            self.receive(HostId(peer), packet);
        }
    }

    /// A switch chooses the next port and queues the packet there.
    #[inline(always)]
    fn relay(&mut self, switch: SwitchId, ingress: PortId, mut packet: Packet) {
        let group = self.config.fabric.next_hops(switch, packet.dst());
        let port = if packet.is(flag::PINNED) {
            let port = group.pinned(packet.path());
            packet.route = packet.path().swapped().0;
            port
        } else if group.count == 1 {
            group.first
        } else {
            // Acknowledgements hash by where they go and the entropy that they echo.
            let key = if packet.is(flag::CONTROL) { packet.to & flag::HOST } else { packet.aux };
            let salt = self.salts[switch];
            PortId(group.first.0 + hash::choose(key, packet.route, salt, group.count))
        };
        self.ports.forward(self.now, port, ingress, packet, &mut self.events);
    }

    /// A PFC frame for `port`.
    #[cold]
    fn pfc_frame(&mut self, port: PortId, packet: Packet) {
        let paused = packet.is(flag::PAUSE);
        if self.ports.pause(self.now, port, paused, &mut self.events) {
            // Only a NIC asks for data, and NICs are numbered like their hosts.
            self.pull(HostId(port.0));
        }
    }
}
