//! A packet at a switch that keeps a state, and what that lets go.

use super::{Tagged, Tors};
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::packet::{Packed, Packet};
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::tor::{CONTROL_BYTES, Control, Tag, Tor};
use weft_fabric::Node;
use weft_units::HostId;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet, beside the port that leads back, has reached a switch that keeps a state.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter(&mut self, switch: OwnSwitch, packed: Packed) {
        let (packet, ingress) = (packed.packet(), OutPort(packed.beside()));
        match self.switches.tors_mut().states[switch].as_ref().expect("it is marked so") {
            Tor::ConWeave(_) => self.enter_conweave(switch, ingress, packet),
            Tor::Conga(_) => self.enter_conga(switch, ingress, packet),
            Tor::Themis(_) => self.enter_themis(switch, ingress, packet),
            Tor::Glb(_) => self.enter_glb(switch, ingress, packet),
        }
    }

    /// The host at the other end of the link that `ingress` leads back, if it is one.
    pub(super) fn host_behind(&self, ingress: OutPort) -> Option<HostId> {
        let port = self.world.partitioning.partitions[usize::from(self.own)].ports[ingress];
        match self.config.fabric.ports()[port].peer {
            Node::Host(host) => Some(host),
            Node::Switch(_) => None,
        }
    }

    /// Whether `packet` is for a host below this leaf.
    pub(super) fn is_below(&self, switch: OwnSwitch, packet: &Packet) -> bool {
        self.config.fabric.leaf_of(packet.dst()) == self.switches[switch].id.0
    }

    /// Goes on as at any switch.
    #[inline(never)]
    pub(crate) fn pass(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        self.relay(switch, ingress, packet);
    }

    /// A switch writes to a leaf, in a packet of this entropy value; or not, if there is no way.
    pub(super) fn send_control(&mut self, switch: OwnSwitch, entropy: u16, control: Control) {
        let size = CONTROL_BYTES as u16;
        let packet = Packet::tor_control(entropy, size, control);
        let Some(port) = self.next_port(switch, &packet) else { return };
        let port = self.switches[switch].own(port);
        self.counts.make(port, size);
        self.switches.tors_mut().written += 1;
        self.ports.emit(self.now, port, packet, &mut self.agenda);
    }

    /// Queues a packet at `port`.
    pub(super) fn queue_at(
        &mut self,
        switch: OwnSwitch,
        port: OutPort,
        ingress: OutPort,
        packet: Packet,
    ) {
        self.ports.forward(self.now, port, ingress, packet, &mut self.agenda);
        if let Some(header) = self.ports.returned() {
            self.return_header(switch, ingress, header);
        }
    }

    /// `packet` of `src` with a tag.
    pub(super) fn tag(&mut self, packet: Packet, src: HostId, tag: Tag) -> Packet {
        let tags = self.agenda.tags.as_mut().expect("packets have tags");
        let lost = [self.ports.losses_mut(), &mut self.counts.losses];
        for losses in lost {
            while let Some(place) = losses.take_tag() {
                tags.take(place);
            }
        }
        packet.tagged(tags.put(Tagged { beneath: packet.beneath_tag(), src, tag }))
    }

    /// `packet` as its host sent it, and the tag that it had.
    pub(crate) fn untag(&mut self, packet: Packet) -> (Packet, Option<Tagged>) {
        let (Some(tags), Some(place)) = (&mut self.agenda.tags, packet.tag()) else {
            return (packet, None);
        };
        let tagged = tags.take(place);
        (packet.untagged(tagged.beneath), Some(tagged))
    }

    /// What a leaf lets go goes to its hosts.
    pub(super) fn deliver(&mut self, switch: OwnSwitch, out: &mut Vec<Packed>) {
        for packed in out.drain(..) {
            let (packet, ingress) = (packed.packet(), OutPort(packed.beside()));
            if self.config.switch.pfc.is_none() {
                self.pass(switch, ingress, packet);
            } else {
                // Headroom is for what links bring, not for what comes all at once.
                let here = self.switches[switch];
                let port = self.config.fabric.next_hops(here.id, packet.dst()).first;
                self.ports.emit(self.now, here.own(port), packet, &mut self.agenda);
            }
        }
    }

    /// Sees to it that a `Leaf` event comes when this switch has something to do.
    pub(super) fn set_alarm(&mut self, switch: OwnSwitch) {
        let Tors { states, alarms, .. } = self.switches.tors_mut();
        let deadline = match states[switch].as_mut() {
            Some(Tor::ConWeave(leaf)) => leaf.deadline(),
            Some(Tor::Glb(state)) => state.deadline(),
            _ => None,
        };
        let Some(at) = deadline else { return };
        // Two events of one switch at one time would be one too many.
        if alarms[switch].last().is_none_or(|next| at < *next) {
            alarms[switch].push(at);
            self.agenda.push_at_switch(Event::new(at, Class::Leaf, switch.0), switch);
        }
    }

    /// A `Leaf` event.
    pub(crate) fn leaf_time(&mut self, switch: OwnSwitch) {
        let Tors { states, alarms, out, .. } = self.switches.tors_mut();
        alarms[switch].pop();
        let leaf = match states[switch].as_mut() {
            Some(Tor::ConWeave(leaf)) => leaf,
            Some(Tor::Glb(_)) => return self.measure_ports(switch),
            _ => return,
        };
        let mut out = std::mem::take(out);
        leaf.time(self.now, &mut out);
        self.deliver(switch, &mut out);
        self.switches.tors_mut().out = out;
        self.set_alarm(switch);
    }
}
