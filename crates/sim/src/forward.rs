//! A packet at the far end of a link: handed to its host, or sent on by a switch.

use crate::engine::Engine;
use crate::packet::{Answer, Data, HashFields, Packed, Packet, flag};
use crate::partition::{InLink, OutPort, OwnHost, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::switches::Link;
use weft_balance::forward::PathStart;
use weft_balance::hash;
use weft_balance::plan::Route;
use weft_fabric::{Node, PathId, PortGroup};
use weft_units::PortId;

/// Makes the draw of a group another than that of a hop.
const DETOUR: u64 = 0x9e37_79b9_7f4a_7c15;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached the end of `link`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, link: InLink, packet: Packet) {
        let Link { peer, reverse } = self.switches.link(link);
        if packet.is(flag::PFC) {
            return self.pfc_frame(reverse, packet);
        }
        self.counts.arrive(link, packet);
        if peer & (Link::FAULTY | Link::WATCHED) != 0 {
            if peer & Link::FAULTY != 0 && self.switches.loses(self.now, link, packet.size) {
                return self.counts.lose(self.now, reverse, packet.lost());
            }
            if peer & Link::WATCHED != 0 {
                let packed = Packed::new(packet, reverse.0);
                return match self.reduction {
                    None => self.enter(OwnSwitch(peer & Link::NUMBER), packed),
                    Some(_) => self.watched(peer, packed),
                };
            }
        }
        if peer & Link::SWITCH != 0 {
            let switch = OwnSwitch(peer & !(Link::SWITCH | Link::FAULTY));
            return self.relay(switch, reverse, packet);
        }
        let peer = peer & !Link::FAULTY;
        self.counts.deliver(self.now, &packet);
        if packet.is(flag::CONTROL) {
            self.answered(OwnHost(peer), reverse, packet);
        } else {
            self.receive(OwnHost(peer), reverse, packet);
        }
    }

    /// A switch chooses the next port and queues the packet there.
    #[inline(always)]
    pub(crate) fn relay(&mut self, switch: OwnSwitch, ingress: OutPort, mut packet: Packet) {
        let here = self.switches[switch];
        let group = self.config.fabric.next_hops(here.id, packet.dst());
        if group.count == 1 {
            self.nics.expect(packet);
        }
        let port = if self.switches.are_plain() {
            match packet.is(flag::PINNED) {
                true => group.pinned(packet.swap_path()),
                false => here.hashed(packet.hash_fields(), group),
            }
        } else if packet.is(flag::PINNED) {
            let fabric = self.config.fabric;
            match self.switches.pinned_hop(fabric, here.id, packet.dst(), packet.path()) {
                Some((port, path)) => {
                    packet.set_path(path);
                    port
                }
                None => return self.counts.lose(self.now, ingress, packet.lost()),
            }
        } else {
            match self.chosen_port(switch, packet.hash_fields(), group) {
                Some(port) => match self.detour(switch, ingress, port, packet.hash_fields()) {
                    None => port,
                    Some((other, path)) => {
                        packet = packet.pinned(path);
                        other
                    }
                },
                None => return self.counts.lose(self.now, ingress, packet.lost()),
            }
        };
        self.ports.forward(self.now, here.own(port), ingress, packet, &mut self.agenda);
        if let Some(header) = self.ports.returned() {
            self.return_header(switch, ingress, header);
        }
    }

    /// The port that the hash, or what stands in its place, chooses for a packet that is not
    /// pinned.
    pub(crate) fn next_port(&mut self, switch: OwnSwitch, packet: &Packet) -> Option<PortId> {
        let (here, fields) = (self.switches[switch], packet.hash_fields());
        let group = self.config.fabric.next_hops(here.id, packet.dst());
        match self.switches.are_plain() {
            true => Some(here.hashed(fields, group)),
            false => self.chosen_port(switch, fields, group),
        }
    }

    /// The port and the path over another group, of a packet in its first group that would leave by `port`, if the scheme
    /// prefers that.
    fn detour(
        &self,
        switch: OwnSwitch,
        ingress: OutPort,
        port: PortId,
        fields: HashFields,
    ) -> Option<(PortId, PathId)> {
        if !self.switches.weigh_detours() || fields.is_control() {
            return None;
        }
        let (fabric, here, dst) = (self.config.fabric, self.switches[switch], fields.dst());
        let from = fabric.ports()[PortId(here.first.0 + here.place(ingress))].peer;
        let groups = [fabric.pod_of_switch(here.id)?, fabric.pod_of(dst)];
        // Who has been over another group is pinned, so a packet of a neighbour is still in its own.
        let may = match from {
            Node::Host(_) => true,
            Node::Switch(from) => {
                let is_own = fabric.pod_of_switch(from) == Some(groups[0]);
                is_own && self.config.balance.scheme.weighs_again()
            }
        };
        if !may || groups[0] == groups[1] {
            return None;
        }
        let bits = u64::from(hash::bits(fields.key(), fields.entropy, here.salt ^ DETOUR));
        let path = PathId::over_random(bits << 32 | bits, fabric.pods(), groups);
        let hop = |switch, path| self.switches.pinned_hop(fabric, switch, dst, path);
        let (other, next) = hop(here.id, path)?;
        let start = |port: PortId, path: PathId| {
            let queued = self.ports.queued_bytes(self.now, here.own(port));
            Some(PathStart { queued, links: fabric.links_on(here.id, path, hop)? })
        };
        let (shortest, detour) = (start(port, PathId::default())?, start(other, path)?);
        let prefers = self.config.balance.scheme.prefers_detour(shortest, detour);
        prefers.then_some((other, next))
    }

    fn chosen_port(
        &mut self,
        switch: OwnSwitch,
        fields: HashFields,
        group: PortGroup,
    ) -> Option<PortId> {
        let among = self.config.fabric.hops_among(self.switches[switch].id, fields.dst());
        self.switches.choose(switch, fields, (group, among), &self.ports, self.now)
    }

    /// Sends a header that `switch` trimmed back to its sender.
    #[cold]
    pub(crate) fn return_header(&mut self, switch: OwnSwitch, ingress: OutPort, header: Packet) {
        let (header, _) = self.untag(header);
        let Data { receiver: id, seq, is_resent, .. } = header.as_data();
        let last_hop = header.was_cut_at_last_hop();
        let (src, sender) = self.nics.receiver(id).back();
        let seq = self.turn_header(&header, seq, is_resent);
        // Not pinned: the way back of a path id begins at its far end.
        let route = Route::Hashed(header.entropy());
        let nack = Answer {
            is_nack: true,
            sender,
            seq,
            cumulative: 0,
            echo: false,
            last_hop,
            defers: false,
        };
        let nack = Packet::answer(src, route, header.size, nack);
        // Still a header, which goes first, and is known as one if it is lost.
        self.relay(switch, ingress, nack.trimmed(header.size, last_hop));
    }

    /// A PFC frame for `port`.
    #[cold]
    fn pfc_frame(&mut self, port: OutPort, packet: Packet) {
        if self.ports.pause(self.now, port, packet.pauses(), &mut self.agenda) {
            // Only a NIC asks for data.
            self.pull_port(port);
        }
    }
}
