//! Packets at switches that keep a state (`weft_balance::tor`): tags that packets carry from leaf to
//! leaf, control packets that leaves write to each other, and packets that leaves hold back.
//!
//! A packet that reaches such a switch comes here instead of to `relay`. Its tag lies in [`Tags`]
//! while it is in a partition, and in the mail on its way to another; the packet has its place where
//! its hash key was, which the tag has with it. A control packet is a packet of its own, addressed to the
//! host of the sender and read by the leaf above. What a leaf lets go is handled as if it had just
//! come.
//!
//! Invariant: whoever takes a tagged packet out of the network takes its tag, too.

mod conga;
mod conweave;
mod tags;

pub(crate) use tags::{Tagged, Tags};

use crate::config::RunConfig;
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::outcome::TorCounts;
use crate::packet::{Packed, Packet};
use crate::partition::{OutPort, OwnSwitch, Partition};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::tor::{Tor, TorContext};
use weft_fabric::Node;
use weft_units::{HostId, IdVec, PortId, Rate, SwitchId, Time};

/// The states of a partition's switches.
#[derive(Debug)]
pub(crate) struct Tors {
    /// What is held is a packet, beside the port that it came in by.
    states: IdVec<OwnSwitch, Option<Tor<Packed>>>,
    /// When the `Leaf` events of each come, the next one last.
    alarms: IdVec<OwnSwitch, Vec<Time>>,
    /// Scratch: what is let go.
    out: Vec<Packed>,
    /// Control packets, at both ends.
    pub(crate) written: u64,
    pub(crate) read: u64,
}

/// What `switch` keeps in a run.
fn state(config: &RunConfig, switch: SwitchId) -> Option<Tor<Packed>> {
    let RunConfig { fabric, seed, packet, .. } = *config;
    let packet = packet.mtu + packet.header;
    config.balance.scheme.tor(&TorContext { switch, fabric, seed, packet })
}

/// Whether `switch` keeps a state.
pub(crate) fn keeps(config: &RunConfig, switch: SwitchId) -> bool {
    config.balance.scheme.info().tor.includes(switch.0 < config.fabric.leaves())
}

impl Tors {
    /// Those of a partition, if the scheme has any.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> Option<Tors> {
        let states = || partition.switches.iter().map(|switch| state(config, *switch)).collect();
        let mut tors = config.tags().then(|| Tors {
            states: states(),
            alarms: partition.switches.iter().map(|_| Vec::new()).collect(),
            out: Vec::new(),
            written: 0,
            read: 0,
        })?;
        for (own, switch) in partition.switches.enumerate() {
            for (place, port) in (0..).zip(config.fabric.ports_of(*switch).ids()) {
                tors.set_rate(own, place, config.port_at_start(port).rate);
            }
        }
        Some(tors)
    }
    /// The `port`-th port of `switch` has another rate from now on.
    fn set_rate(&mut self, switch: OwnSwitch, port: u32, rate: Rate) {
        if let Some(Tor::Conga(state)) = &mut self.states[switch] {
            state.set_rate(port, rate);
        }
    }
    /// Adds what they took to `counts`.
    pub(crate) fn add_counts(&self, counts: &mut TorCounts) {
        self.states.iter().flatten().for_each(|state| counts.add(&state.counts()));
    }
    /// Packets that are held.
    pub(crate) fn holding(&self) -> u64 {
        let held = self.states.iter().flatten().map(|state| match state {
            Tor::ConWeave(leaf) => leaf.holding(),
            Tor::Conga(_) => 0,
        });
        held.sum()
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A port has another rate from now on.
    pub(crate) fn tell_rate(&mut self, port: PortId, rate: Rate) {
        if let (Some(tors), Node::Switch(switch)) =
            (&mut self.tors, self.config.fabric.ports()[port].owner)
        {
            let place = port.0 - self.config.fabric.ports_of(switch).first.0;
            tors.set_rate(self.world.partitioning.switches[switch].own, place, rate);
        }
    }

    /// A packet, beside the port that leads back, has reached a switch that keeps a state.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter(&mut self, switch: OwnSwitch, packed: Packed) {
        let (packet, ingress) = (packed.packet(), OutPort(packed.beside()));
        let tors = self.tors.as_ref().expect("the switch keeps something");
        match tors.states[switch].as_ref().expect("it is marked so") {
            Tor::ConWeave(_) => self.enter_conweave(switch, ingress, packet),
            Tor::Conga(_) => self.enter_conga(switch, ingress, packet),
        }
    }

    /// The host at the other end of the link that `ingress` leads back, if it is one.
    fn host_behind(&self, ingress: OutPort) -> Option<HostId> {
        let port = self.world.partitioning.partitions[usize::from(self.own)].ports[ingress];
        match self.config.fabric.ports()[port].peer {
            Node::Host(host) => Some(host),
            Node::Switch(_) => None,
        }
    }

    /// Whether `packet` is for a host below this leaf.
    fn is_below(&self, switch: OwnSwitch, packet: &Packet) -> bool {
        self.config.fabric.leaf_of(packet.dst()) == self.switches[switch].id.0
    }

    /// Goes on as at any switch.
    #[inline(never)]
    fn pass(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        self.relay(switch, ingress, packet);
    }

    /// Queues a packet at `port`.
    fn queue_at(&mut self, switch: OwnSwitch, port: OutPort, ingress: OutPort, packet: Packet) {
        self.ports.forward(self.now, port, ingress, packet, &mut self.agenda);
        if let Some(header) = self.ports.returned() {
            self.return_header(switch, ingress, header);
        }
    }

    /// `packet` with a tag.
    fn tag(&mut self, packet: Packet, tagged: Tagged) -> Packet {
        let tags = self.agenda.tags.as_mut().expect("packets have tags");
        let lost = [self.ports.losses_mut(), &mut self.losses];
        for losses in lost {
            while let Some(place) = losses.take_tag() {
                tags.take(place);
            }
        }
        packet.tagged(tags.put(tagged))
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
    fn deliver(&mut self, switch: OwnSwitch, out: &mut Vec<Packed>) {
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

    /// Sees to it that a `Leaf` event comes when this leaf has something to do.
    fn set_alarm(&mut self, switch: OwnSwitch) {
        let Tors { states, alarms, .. } = self.tors.as_mut().expect("the leaf keeps something");
        let Some(Tor::ConWeave(leaf)) = &mut states[switch] else { return };
        let Some(at) = leaf.deadline() else { return };
        // Two events of one leaf at one time would be one too many.
        if alarms[switch].last().is_none_or(|next| at < *next) {
            alarms[switch].push(at);
            self.agenda.push(Event::new(at, Class::Leaf, switch.0));
        }
    }

    /// A `Leaf` event.
    pub(crate) fn leaf_time(&mut self, switch: OwnSwitch) {
        let Tors { states, alarms, out, .. } = self.tors.as_mut().expect("a leaf asked for it");
        alarms[switch].pop();
        let Some(Tor::ConWeave(leaf)) = &mut states[switch] else { return };
        let mut out = std::mem::take(out);
        leaf.time(self.now, &mut out);
        self.deliver(switch, &mut out);
        self.tors.as_mut().expect("as above").out = out;
        self.set_alarm(switch);
    }
}
