//! Packets at leaves under Themis (`weft_balance::tor::themis`).

use super::conweave::Paths;
use super::{Tagged, Tors};
use crate::engine::Engine;
use crate::packet::{Kind, Packet, flag};
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::tor::themis::Leaf;
use weft_balance::tor::{FlowId, Tag, Tor};

impl Tors {
    fn themis(&mut self, switch: OwnSwitch) -> &mut Leaf {
        match &mut self.states[switch] {
            Some(Tor::Themis(leaf)) => leaf,
            other => unreachable!("{switch:?} has {:?}", other.is_some()),
        }
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached a leaf.
    pub(super) fn enter_themis(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        if packet.is(flag::TAGGED) {
            self.see_data(switch, ingress, packet);
        } else if self.is_below(switch, &packet) {
            self.pass(switch, ingress, packet);
        } else if packet.is(flag::CONTROL) {
            let packet = self.filtered(switch, ingress, packet);
            self.pass(switch, ingress, packet);
        } else {
            self.spray(switch, ingress, packet);
        }
    }

    /// A data packet leaves to another leaf.
    fn spray(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let here = self.switches[switch];
        let (fabric, dst) = (self.config.fabric, packet.dst());
        let src = self.host_behind(ingress).expect("data without a tag comes from a host");
        let number = self.number_of(&packet);
        let (set, (tors, routes)) = (fabric.path_set(src, dst), self.switches.tors_beside_routes());
        let paths = Paths { fabric, routes, leaf: here.id, dst, set };
        let Some(tag) = tors.themis(switch).send(packet.as_data().key, number, &paths) else {
            return self.counts.lose(self.now, ingress, packet.lost());
        };
        let (port, path) = paths.first_hop(tag.path);
        let packet = self.tag(packet, src, Tag::Themis(tag)).pinned(path);
        self.queue_at(switch, here.own(port), ingress, packet);
    }

    /// A data packet comes from another leaf.
    fn see_data(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let (packet, tagged) = self.untag(packet);
        let Some(Tagged { tag: Tag::Themis(tag), .. }) = tagged else {
            unreachable!("{packet:?} has {tagged:?}")
        };
        if !packet.is(flag::TRIMMED) {
            let (src, sender) = self.nics.receiver(packet.receiver()).back();
            let flow = FlowId { key: sender, control: false, src, dst: packet.dst() };
            self.switches.tors_mut().themis(switch).receive(self.now, flow, tag.paths);
        }
        self.pass(switch, ingress, packet);
    }

    /// An answer of a host to another leaf, as it goes on.
    fn filtered(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) -> Packet {
        let is_nack = match packet.kind() {
            Kind::Ack => false,
            Kind::Nack if !packet.is(flag::TRIMMED) && self.config.switch.trim.is_none() => true,
            _ => return packet,
        };
        // What a report says stands in its extended header; it reports no gaps.
        if self.agenda.headers.is_some() {
            return packet;
        }
        let dst = self.host_behind(ingress).expect("answers come from hosts");
        let said = packet.as_answer();
        let flow = FlowId { key: said.sender, control: false, src: packet.dst(), dst };
        let leaf = self.switches.tors_mut().themis(switch);
        packet.as_nack(leaf.answer(self.now, flow, is_nack, (said.seq, said.cumulative)))
    }

    /// Which packet of its flow data is.
    fn number_of(&mut self, packet: &Packet) -> u32 {
        let seq = packet.as_data().seq;
        self.agenda.headers.as_mut().and_then(|headers| headers.number(packet)).unwrap_or(seq)
    }
}
