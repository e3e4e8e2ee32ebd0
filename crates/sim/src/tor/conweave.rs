//! Packets at leaves under ConWeave (`weft_balance::tor::conweave`).

use super::{Tagged, Tors};
use crate::engine::Engine;
use crate::packet::{Kind, Packed, Packet, flag};
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::Routes;
use weft_balance::tor::conweave::rx::Came;
use weft_balance::tor::conweave::{ControlPacket, Leaf};
use weft_balance::tor::{Control, FlowId, Tag, Tor, Ways};
use weft_fabric::{Fabric, Node, PathId, PathSet};
use weft_units::{HostId, PortId, SwitchId};

/// The paths from a leaf to a host of another one.
pub(super) struct Paths<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) routes: Option<&'a Routes>,
    pub(super) leaf: SwitchId,
    pub(super) dst: HostId,
    pub(super) set: PathSet<'a>,
}

impl Paths<'_> {
    fn all(&self) -> impl Iterator<Item = PathId> {
        (0..self.set.len()).map(|index| self.set.get(index))
    }
    /// Those that lead there; if there is none, those in which other members of bundles stand in for dead ones.
    fn alive(&self) -> impl Iterator<Item = PathId> {
        let is_alive =
            |path, stands_in| self.routes.is_none_or(|it| self.is_alive(path, it, stands_in));
        let stands_in = !self.all().any(|path| is_alive(path, false));
        self.all().filter(move |path| is_alive(*path, stands_in))
    }
    /// Whether all links on it are left, by what every switch on it knows; if one is not, whether another one may
    /// stand in for it.
    fn is_alive(&self, mut path: PathId, routes: &Routes, stands_in: bool) -> bool {
        let mut switch = self.leaf;
        loop {
            let (left, _) = routes.of(switch, self.dst);
            let hop = self.fabric.pinned_hop(switch, self.dst, path, left.filter(|_| stands_in));
            let Some((port, next)) = hop else { return false };
            if left.is_some_and(|left| !left.contains(&port)) {
                return false;
            }
            let Node::Switch(peer) = self.fabric.ports()[port].peer else { return true };
            (switch, path) = (peer, next);
        }
    }
    /// The port of the leaf on a path, and the path as the next switch reads it.
    pub(super) fn first_hop(&self, path: PathId) -> (PortId, PathId) {
        let left = self.routes.and_then(|routes| routes.of(self.leaf, self.dst).0);
        self.fabric.pinned_hop(self.leaf, self.dst, path, left).expect("it is one of the paths")
    }
}

impl Ways for Paths<'_> {
    fn count(&self) -> u32 {
        match self.routes {
            None => self.set.len(),
            Some(_) => self.alive().count() as u32,
        }
    }
    fn get(&self, index: u32) -> PathId {
        match self.routes {
            None => self.set.get(index),
            Some(_) => self.alive().nth(index as usize).expect("below their count"),
        }
    }
    fn has(&self, path: PathId) -> bool {
        let Some(routes) = self.routes else { return true };
        self.is_alive(path, routes, false) || self.alive().any(|other| other == path)
    }
}

impl Tors {
    fn leaf(&mut self, switch: OwnSwitch) -> &mut Leaf<Packed> {
        match &mut self.states[switch] {
            Some(Tor::ConWeave(leaf)) => leaf,
            other => unreachable!("{switch:?} has {:?}", other.is_some()),
        }
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached a leaf.
    pub(super) fn enter_conweave(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        if packet.kind() == Kind::TorControl {
            self.read_control(switch, ingress, packet);
        } else if packet.is(flag::TAGGED) {
            self.leave_paths(switch, ingress, packet);
        } else if packet.is(flag::CONTROL) || self.is_below(switch, &packet) {
            self.pass(switch, ingress, packet);
        } else {
            self.take_path(switch, ingress, packet);
        }
    }

    /// A data packet leaves to another leaf.
    fn take_path(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let here = self.switches[switch];
        let (fabric, dst) = (self.config.fabric, packet.dst());
        let src = self.host_behind(ingress).expect("data without a tag comes from a host");
        let flow = FlowId { key: packet.as_data().key, control: false, src, dst };
        let (set, (tors, routes)) = (fabric.path_set(src, dst), self.switches.tors_beside_routes());
        let paths = Paths { fabric, routes, leaf: here.id, dst, set };
        let leaf = tors.leaf(switch);
        let Some(tag) = leaf.send(self.now, flow, fabric.leaf_of(dst), &paths) else {
            return self.counts.lose(self.now, ingress, packet.lost());
        };
        let (port, path) = paths.first_hop(tag.path);
        let packet = self.tag(packet, src, Tag::ConWeave(tag)).pinned(path);
        self.queue_at(switch, here.own(port), ingress, packet);
    }

    /// A data packet comes from another leaf.
    fn leave_paths(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        let (packet, tagged) = self.untag(packet);
        let Some(Tagged { src, tag: Tag::ConWeave(tag), .. }) = tagged else {
            unreachable!("{packet:?} has {tagged:?}")
        };
        if packet.is(flag::TRIMMED) {
            // It went ahead of what it was to follow, and says nothing about the order.
            return self.pass(switch, ingress, packet);
        }
        let key = packet.as_data().key;
        let flow = FlowId { key, control: false, src, dst: packet.dst() };
        let (marked, bytes) = (packet.is(flag::MARKED), u32::from(packet.size));
        let came = Came { flow, tag, marked, bytes, item: Packed::new(packet, ingress.0) };
        let tors = self.switches.tors_mut();
        let mut out = std::mem::take(&mut tors.out);
        let message = tors.leaf(switch).receive(self.now, came, &mut out);
        for message in message.into_iter().flatten() {
            let control = Control::ConWeave(ControlPacket { flow, message });
            self.send_control(switch, packet.entropy(), control);
        }
        self.deliver(switch, &mut out);
        self.switches.tors_mut().out = out;
        self.set_alarm(switch);
    }

    /// A control packet has come, by the link that `ingress` leads back.
    fn read_control(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        self.counts.end(self.now, ingress, packet.lost());
        let Control::ConWeave(control) = packet.as_tor_control() else {
            unreachable!("{packet:?} is of another scheme")
        };
        let from = self.config.fabric.leaf_of(control.flow.dst);
        let tors = self.switches.tors_mut();
        tors.read += 1;
        tors.leaf(switch).hear(self.now, from, &control);
    }
}
