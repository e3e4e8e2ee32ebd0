//! Packets at switches under CONGA (`weft_balance::tor::conga`).

use super::{Tagged, Tors};
use crate::engine::Engine;
use crate::hops::NextHops;
use crate::packet::{Packet, flag};
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::forward::Hops;
use weft_balance::tor::conga::Switch;
use weft_balance::tor::{FlowId, Tag, Tor};

impl Tors {
    fn conga(&mut self, switch: OwnSwitch) -> &mut Switch {
        match &mut self.states[switch] {
            Some(Tor::Conga(state)) => state,
            other => unreachable!("{switch:?} has {:?}", other.is_some()),
        }
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached a switch.
    pub(super) fn enter_conga(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let is_below = self.is_below(switch, &packet);
        if packet.is(flag::TAGGED) && is_below {
            self.end_flowlet(switch, ingress, packet);
        } else if let Some(place) = packet.tag() {
            self.carry_load(switch, ingress, packet, place);
        } else if self.host_behind(ingress).is_some() && !is_below {
            self.place_flowlet(switch, ingress, packet);
        } else {
            self.pass(switch, ingress, packet);
        }
    }

    /// A packet of a host leaves to another leaf.
    fn place_flowlet(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let src = self.host_behind(ingress).expect("it comes from a host");
        let here = self.switches[switch];
        let (fabric, dst) = (self.config.fabric, packet.dst());
        let control = packet.is(flag::CONTROL);
        let key = if control { u32::from(packet.entropy()) } else { packet.as_data().key };
        let flow = FlowId { key, control, src, dst };
        let (group, first) = (fabric.next_hops(here.id, dst), fabric.ports_of(here.id).first.0);
        let (tors, routes) = self.switches.tors_beside_routes();
        let hops = NextHops::new(&self.ports, self.now, routes, here, (dst, group, None));
        if hops.count() == 0 {
            return self.counts.lose(self.now, ingress, packet.lost());
        }
        let state = tors.conga(switch);
        let (to, first_up) = (fabric.leaf_of(dst), group.first.0 - first);
        let hop = state.choose(self.now, flow, to, first_up, &hops);
        let (port, uplink) = (hops.port(hop), hops.place(hop));
        let mut tag = state.tag(uplink, to);
        state.leaves(self.now, port.0 - first, u32::from(packet.size), &mut tag);
        let packet = self.tag(packet, src, Tag::Conga(tag));
        self.queue_at(switch, here.own(port), ingress, packet);
    }

    /// A packet between two leaves, whose tag is at `place`, learns how loaded the next link is.
    fn carry_load(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet, place: u32) {
        let here = self.switches[switch];
        let tags = self.agenda.tags.as_mut().expect("packets have tags");
        let untagged = packet.untagged(tags.get(place).beneath);
        let Some(port) = self.next_port(switch, &untagged) else {
            return self.counts.lose(self.now, ingress, packet.lost());
        };
        let first = self.config.fabric.ports_of(here.id).first.0;
        let now = self.now;
        let Engine { switches, agenda, .. } = self;
        let state = switches.tors_mut().conga(switch);
        let tagged = agenda.tags.as_mut().expect("packets have tags").get(place);
        if let Tag::Conga(tag) = &mut tagged.tag {
            state.leaves(now, port.0 - first, u32::from(packet.size), tag);
        }
        self.queue_at(switch, here.own(port), ingress, packet);
    }

    /// A packet comes from another leaf.
    fn end_flowlet(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let (packet, tagged) = self.untag(packet);
        let Some(Tagged { src, tag: Tag::Conga(tag), .. }) = tagged else {
            unreachable!("{packet:?} has {tagged:?}")
        };
        let from = self.config.fabric.leaf_of(src);
        let state = self.switches.tors_mut().conga(switch);
        state.receive(self.now, from, &tag);
        self.pass(switch, ingress, packet);
    }
}
