//! A packet at the far end of a link: handed to its host, or sent on by a switch.

use crate::config::RunConfig;
use crate::cut::{Cut, InLink, OutPort, OwnHost, OwnSwitch, Territory};
use crate::engine::Engine;
use crate::event::{Packet, flag};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::hash;
use weft_fabric::{Fabric, Node};
use weft_units::{IdVec, SwitchId};

/// The end of a link, packed for the hot path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// A host, or with [`Link::SWITCH`] set a switch.
    peer: u32,
    /// The port that leads back.
    reverse: OutPort,
}

impl Link {
    const SWITCH: u32 = 1 << 31;

    /// The links that end in a domain.
    pub(crate) fn all(fabric: &Fabric, cut: &Cut, territory: &Territory) -> IdVec<InLink, Link> {
        let link = |id: &weft_units::PortId| {
            let port = &fabric.ports()[*id];
            let peer = match port.peer {
                Node::Host(host) => cut.hosts[host].own.0,
                Node::Switch(switch) => cut.switches[switch].own.0 | Link::SWITCH,
            };
            Link { peer, reverse: cut.ports[port.reverse].own }
        };
        territory.links.iter().map(link).collect()
    }
}

/// What forwarding needs to know of a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// Its number in the fabric.
    id: SwitchId,
    /// What the domain's number of a port of it is more than the fabric's.
    shift: u32,
    /// Of its hash: its own, or one for all.
    salt: u64,
}

impl Switch {
    /// The switches of a domain.
    pub(crate) fn all(
        config: &RunConfig,
        cut: &Cut,
        territory: &Territory,
    ) -> IdVec<OwnSwitch, Switch> {
        let switch = |id: &SwitchId| {
            let salted = if config.switch.same_salt { SwitchId(0) } else { *id };
            let first = config.fabric.ports_of(*id).first;
            let shift = cut.ports[first].own.0.wrapping_sub(first.0);
            Switch { id: *id, shift, salt: hash::salt(config.seed, salted) }
        };
        territory.switches.iter().map(switch).collect()
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached the end of `link`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, link: InLink, packet: Packet) {
        let Link { peer, reverse } = self.links[link];
        if packet.is(flag::PFC) {
            return self.pfc_frame(reverse, packet);
        }
        if let Some(audit) = &mut self.audit {
            audit.arrived(link, &packet);
        }
        if peer & Link::SWITCH != 0 {
            return self.relay(OwnSwitch(peer & !Link::SWITCH), reverse, packet);
        }
        self.delivered.add(&packet);
        self.totals.end = self.now;
        if packet.is(flag::CONTROL) {
            self.answered(OwnHost(peer), packet);
        } else {
            self.receive(OwnHost(peer), packet);
        }
    }

    /// A switch chooses the next port and queues the packet there.
    #[inline(always)]
    fn relay(&mut self, switch: OwnSwitch, ingress: OutPort, mut packet: Packet) {
        let Switch { id, shift, salt } = self.switches[switch];
        let group = self.config.fabric.next_hops(id, packet.dst());
        let port = if packet.is(flag::PINNED) {
            let port = group.pinned(packet.path());
            packet.route = packet.path().swapped().0;
            port.0
        } else {
            // Acknowledgements hash by where they go and the entropy that they echo.
            let key = if packet.is(flag::CONTROL) { packet.to & flag::HOST } else { packet.aux };
            group.first.0 + hash::choose(key, packet.route, salt, group.count)
        };
        let port = OutPort(port.wrapping_add(shift));
        self.ports.forward(self.now, port, ingress, packet, &mut self.agenda);
    }

    /// A PFC frame for `port`.
    #[cold]
    fn pfc_frame(&mut self, port: OutPort, packet: Packet) {
        let paused = packet.is(flag::PAUSE);
        if self.ports.pause(self.now, port, paused, &mut self.agenda) {
            // Only a NIC asks for data, and NICs are numbered like their hosts.
            self.pull(OwnHost(port.0));
        }
    }
}
