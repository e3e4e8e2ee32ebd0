//! Global load balancing of leaf-spine fabrics (GLB): leaves place flowlets by the quality of their uplinks and of the
//! spines' links to the other leaf.
//!
//! Spines measure their ports as leaves do ([`crate::forward::quality`]) and flood the quality of each to all
//! their leaves: those called helpers. A leaf (load balancer) knows that of the next-next hop of every path, and
//! places flowlets by the worse of both.
//!
//! Source: Junos, global load balancing (three-stage Clos, 64 leaves at most); routes tell who the
//! next-next hops are (draft-ietf-idr-next-next-hop-nodes). How often spines flood, and how both qualities become
//! one, is not published. Here a spine floods after every sample in which a quality has changed, in control packets
//! with eight of them each, and the worse quality counts.

use super::{TorContext, TorCounts};
use crate::forward::quality::{Measured, Options, Ports};
use crate::forward::{Hops, Passing};
use weft_fabric::Node;
use weft_units::{PortId, Time};

/// The quality of some ports of a spine, as it floods it: bands, of which 0 is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualities {
    /// Ports are told of in groups of [`GROUP`], in their order: which group.
    pub group: u32,
    /// One a port.
    pub bands: [u8; GROUP],
}

/// How many qualities a control packet carries.
pub const GROUP: usize = 8;

/// The state of a switch.
#[derive(Clone, Debug)]
pub enum Switch {
    /// A leaf.
    Leaf(Leaf),
    /// A spine.
    Spine(Spine),
}

/// A leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    ports: Ports,
    /// Its first uplink.
    first_up: PortId,
    /// What spines said, by uplink; by their port to each leaf.
    behind: Vec<Vec<u8>>,
    /// Ports of a spine to each leaf.
    members: usize,
    /// How many leaves a spine has.
    leaves: u32,
}

/// A spine.
#[derive(Clone, Debug)]
pub struct Spine {
    options: Options,
    /// By port.
    measured: Vec<Measured>,
    /// By port: the band that was flooded last.
    told: Vec<u8>,
    /// When the next sample is taken; `None`: all is quiet, and every leaf knows it.
    due: Option<Time>,
    /// How many leaves are told.
    leaves: u64,
    control_packets: u64,
}

impl Switch {
    /// For the switch of `context`.
    pub fn new(options: Options, context: &TorContext<'_>) -> Switch {
        let TorContext { switch, fabric, seed, .. } = *context;
        let ports = fabric.ports_of(switch);
        let members = fabric.clos().map_or(1, |clos| clos.leaf_bundle.members);
        let leaves = fabric.clos().map_or(1, weft_fabric::Clos::leaves_per_pod);
        if context.is_leaf() {
            let is_up = |port: &PortId| matches!(fabric.ports()[*port].peer, Node::Switch(_));
            let ups: Vec<PortId> = ports.ids().filter(is_up).collect();
            let below = |port: &PortId| match fabric.ports()[*port].peer {
                Node::Switch(spine) => vec![0; fabric.ports_of(spine).count as usize],
                Node::Host(_) => Vec::new(),
            };
            return Switch::Leaf(Leaf {
                ports: Ports::new(options, fabric, switch, seed),
                first_up: ups.first().copied().unwrap_or(ports.first),
                behind: ups.iter().map(below).collect(),
                members: members as usize,
                leaves,
            });
        }
        let rate = |port| fabric.ports()[port].rate;
        Switch::Spine(Spine {
            options,
            measured: ports.ids().map(|port| Measured::new(rate(port), options.sample)).collect(),
            told: vec![0; ports.count as usize],
            due: None,
            leaves: u64::from(ports.count / members),
            control_packets: 0,
        })
    }
    /// When [`Spine::time`] is due, in a spine.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Switch::Leaf(_) => None,
            Switch::Spine(spine) => spine.due,
        }
    }
    /// What it took so far.
    pub fn counts(&self) -> TorCounts {
        match self {
            Switch::Leaf(leaf) => {
                TorCounts { reroutes: leaf.ports.moves(), ..TorCounts::default() }
            }
            Switch::Spine(spine) => {
                TorCounts { control_packets: spine.control_packets, ..TorCounts::default() }
            }
        }
    }
}

impl Leaf {
    /// The hop of a packet to the leaf numbered `to`.
    pub fn choose<H: Hops>(&mut self, packet: &Passing, to: u32, hops: &H) -> u32 {
        let Leaf { ports, first_up, behind, members, leaves } = self;
        let first = (to % *leaves) as usize * *members;
        ports.choose_by(packet, hops, |port| {
            let bands = &behind[(port.0 - first_up.0) as usize];
            // A spine with several links to a leaf chooses the best, as everybody does.
            bands[first..first + *members].iter().copied().min().unwrap_or(0)
        })
    }
    /// The spine behind `uplink` has said this.
    pub fn hear(&mut self, uplink: PortId, said: &Qualities) {
        let bands = &mut self.behind[(uplink.0 - self.first_up.0) as usize];
        let told = bands.chunks_mut(GROUP).nth(said.group as usize);
        told.into_iter().flatten().zip(said.bands).for_each(|(band, said)| *band = said);
    }
}

impl Spine {
    /// A packet of `bytes` leaves by the `port`-th port.
    pub fn send(&mut self, now: Time, port: u32, bytes: u32) {
        if self.due.is_none() {
            // Nothing has been sampled since all was quiet.
            self.measured.iter_mut().for_each(|port| _ = port.load(now, &self.options, 0));
            let sample = self.options.sample.0;
            self.due = Some(Time((now.0 / sample + 1) * sample));
        }
        self.measured[port as usize].send(bytes);
    }
    /// Takes a sample of all ports, with so many bytes `queued` at each; what is to be flooded goes to `out`.
    pub fn time(&mut self, now: Time, queued: impl Fn(u32) -> u64, out: &mut Vec<Qualities>) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let mut is_quiet = true;
        for group in 0..self.told.len().div_ceil(GROUP) {
            let mut bands = [0; GROUP];
            let mut is_new = false;
            let first = group * GROUP;
            for port in first..self.told.len().min(first + GROUP) {
                let waiting = queued(port as u32);
                let band = self.options.band(self.measured[port].load(now, &self.options, waiting));
                is_new |= std::mem::replace(&mut self.told[port], band) != band;
                is_quiet &= band == 0 && waiting == 0;
                bands[port - first] = band;
            }
            if is_new {
                self.control_packets += self.leaves;
                out.push(Qualities { group: group as u32, bands });
            }
        }
        self.due = (!is_quiet).then_some(now + self.options.sample);
    }
}
