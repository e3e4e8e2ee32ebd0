//! Packets at switches under global load balancing (`weft_balance::tor::glb`).

use super::Tors;
use crate::engine::Engine;
use crate::hops::NextHops;
use crate::packet::{Kind, Packet, flag};
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::switches::flow_of;
use weft_balance::forward::{Hops, Passing};
use weft_balance::tor::glb::{Leaf, Spine, Switch};
use weft_balance::tor::{Control, Tor};
use weft_fabric::Node;
use weft_units::PortId;

impl Tors {
    fn glb(&mut self, switch: OwnSwitch) -> &mut Switch {
        match &mut self.states[switch] {
            Some(Tor::Glb(state)) => state,
            other => unreachable!("{switch:?} has {:?}", other.is_some()),
        }
    }
    fn glb_leaf(&mut self, switch: OwnSwitch) -> &mut Leaf {
        match self.glb(switch) {
            Switch::Leaf(leaf) => leaf,
            Switch::Spine(_) => unreachable!("{switch:?} is a spine"),
        }
    }
    fn glb_spine(&mut self, switch: OwnSwitch) -> &mut Spine {
        match self.glb(switch) {
            Switch::Spine(spine) => spine,
            Switch::Leaf(_) => unreachable!("{switch:?} is a leaf"),
        }
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached a switch.
    pub(super) fn enter_glb(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        if packet.is(flag::PINNED) {
            self.pass(switch, ingress, packet);
        } else if let Switch::Spine(_) = self.switches.tors_mut().glb(switch) {
            self.place_by_quality(switch, ingress, packet);
        } else if packet.kind() == Kind::TorControl {
            self.learn_qualities(switch, ingress, packet);
        } else if self.is_below(switch, &packet) {
            self.pass(switch, ingress, packet);
        } else {
            self.place_by_quality(switch, ingress, packet);
        }
    }

    /// A packet leaves to another leaf: a leaf chooses the spine, and a spine among its links to the leaf.
    fn place_by_quality(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let here = self.switches[switch];
        let (fabric, dst, now) = (self.config.fabric, packet.dst(), self.now);
        let group = fabric.next_hops(here.id, dst);
        let (tors, routes) = self.switches.tors_beside_routes();
        let hops = NextHops::new(&self.ports, now, routes, here, (dst, group, None));
        if hops.count() == 0 {
            return self.counts.lose(now, ingress, packet.lost());
        }
        let fields = packet.hash_fields();
        let passing = Passing {
            now,
            flow: flow_of(fields),
            dst,
            control: fields.is_control(),
            entropy: packet.entropy(),
            hashed: 0,
            hash: 0,
            bytes: u32::from(packet.size),
        };
        let hop = match tors.glb(switch) {
            Switch::Leaf(leaf) => leaf.choose(&passing, fabric.leaf_of(dst), &hops),
            Switch::Spine(spine) => spine.choose(&passing, &hops),
        };
        let port = here.own(hops.port(hop));
        self.queue_at(switch, port, ingress, packet);
        self.set_alarm(switch);
    }

    /// A spine takes a sample of its ports, and tells leaves what has changed.
    pub(super) fn measure_ports(&mut self, switch: OwnSwitch) {
        let (here, now) = (self.switches[switch], self.now);
        let mut changed = Vec::new();
        let fabric = self.config.fabric;
        let (tors, routes) = self.switches.tors_beside_routes();
        let ports = &self.ports;
        let queued = |place| {
            let port = PortId(here.first.0 + place);
            let Node::Switch(leaf) = fabric.ports()[port].peer else { return Some(0) };
            let left = routes.and_then(|routes| routes.of(here.id, fabric.first_host(leaf.0)).0);
            // Where no link to a leaf is left, routing leads nobody here.
            let is_dead = left.is_some_and(|left| !left.is_empty() && !left.contains(&port));
            (!is_dead).then(|| ports.queued_bytes(now, here.own(port)))
        };
        tors.glb_spine(switch).time(now, queued, &mut changed);
        let is_below = |port| match fabric.ports()[port].peer {
            Node::Switch(leaf) => Some(leaf),
            Node::Host(_) => None,
        };
        // Members of a bundle stand side by side.
        let mut leaves: Vec<_> = fabric.ports_of(here.id).ids().filter_map(is_below).collect();
        leaves.dedup();
        for qualities in changed {
            for leaf in &leaves {
                let control = Control::Glb(fabric.first_host(leaf.0), qualities);
                self.send_control(switch, 0, control);
            }
        }
        self.set_alarm(switch);
    }

    /// A spine has told how loaded its ports are.
    fn learn_qualities(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        self.counts.end(self.now, ingress, packet.lost());
        let Control::Glb(_, said) = packet.as_tor_control() else {
            unreachable!("{packet:?} is of another scheme")
        };
        let here = self.switches[switch];
        let uplink = PortId(here.first.0 + here.place(ingress));
        let tors = self.switches.tors_mut();
        tors.read += 1;
        tors.glb_leaf(switch).hear(uplink, &said);
    }
}
