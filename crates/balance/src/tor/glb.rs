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
//! with eight of them each, and the worse quality counts. Where samples are so short that this would take more than
//! an eighth of its slowest link, it floods less often.
//!
//! Of several links to a leaf a spine chooses as under `dlb`, and leaves count the best of them.

use super::{CONTROL_BYTES, TorContext, TorCounts};
use crate::forward::quality::{Options, Ports};
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
    /// What each spine said, by its port to each leaf.
    behind: Vec<Vec<u8>>,
    /// Links to a spine, which stand side by side at both ends.
    members: usize,
    /// How many leaves a spine has.
    leaves: u32,
}

/// A spine.
#[derive(Clone, Debug)]
pub struct Spine {
    options: Options,
    ports: Ports,
    /// Its first port.
    first: PortId,
    /// By port: the band that was flooded last.
    told: Vec<u8>,
    /// When the next sample is taken; `None`: all is quiet, and every leaf knows it.
    due: Option<Time>,
    /// It floods no sooner than this, and so much later the next time.
    next_flood: Time,
    flood_gap: Time,
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
                behind: ups.iter().step_by(members as usize).map(below).collect(),
                members: members as usize,
                leaves,
            });
        }
        let slowest = ports.ids().map(|port| fabric.ports()[port].rate).min();
        let slowest = slowest.expect("a switch has ports");
        let flood = u64::from(CONTROL_BYTES) * u64::from(ports.count).div_ceil(GROUP as u64);
        Switch::Spine(Spine {
            options,
            ports: Ports::new(options, fabric, switch, seed),
            first: ports.first,
            told: vec![0; ports.count as usize],
            due: None,
            next_flood: Time::ZERO,
            flood_gap: slowest.serialize(8 * flood),
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
            let bands = &behind[(port.0 - first_up.0) as usize / *members];
            // A spine with several links to a leaf chooses the best, as everybody does.
            bands[first..first + *members].iter().copied().min().unwrap_or(0)
        })
    }
    /// The spine behind `uplink` has said this.
    pub fn hear(&mut self, uplink: PortId, said: &Qualities) {
        let bands = &mut self.behind[(uplink.0 - self.first_up.0) as usize / self.members];
        let told = bands.chunks_mut(GROUP).nth(said.group as usize);
        told.into_iter().flatten().zip(said.bands).for_each(|(band, said)| *band = said);
    }
}

impl Spine {
    /// The hop of a packet to a leaf, which leaves by it.
    pub fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let now = packet.now;
        if self.due.is_none() {
            // Nothing has been sampled since all was quiet.
            let ports = (self.first.0..).map(PortId).take(self.told.len());
            ports.for_each(|port| _ = self.ports.band(now, port, 0));
            let sample = self.options.sample.0;
            self.due = Some(Time((now.0 / sample + 1) * sample));
        }
        if hops.count() > 1 {
            return self.ports.choose_by(packet, hops, |_| 0);
        }
        self.ports.send(now, hops.port(0), packet.bytes, hops.queued(0));
        0
    }
    /// Takes a sample of all ports, with so many bytes `queued` at each, and none at those that routing knows to be
    /// dead; what is to be flooded goes to `out`.
    pub fn time(
        &mut self,
        now: Time,
        queued: impl Fn(u32) -> Option<u64>,
        out: &mut Vec<Qualities>,
    ) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let mut is_quiet = true;
        let floods = now >= self.next_flood;
        for group in 0..self.told.len().div_ceil(GROUP) {
            let mut bands = [0; GROUP];
            let mut is_new = false;
            let first = group * GROUP;
            for port in first..self.told.len().min(first + GROUP) {
                let waiting = queued(port as u32);
                let own = PortId(self.first.0 + port as u32);
                let measured = self.ports.band(now, own, waiting.unwrap_or(0));
                is_quiet &= measured == 0 && waiting.unwrap_or(0) == 0;
                let band = if waiting.is_some() { measured } else { self.options.worst() };
                is_new |= self.told[port] != band;
                bands[port - first] = band;
            }
            if is_new && floods {
                let told = &mut self.told[first..];
                told.iter_mut().zip(bands).for_each(|(told, band)| *told = band);
                self.control_packets += self.leaves;
                self.next_flood = now + self.flood_gap;
                out.push(Qualities { group: group as u32, bands });
            }
            is_quiet &= floods || !is_new;
        }
        self.due = (!is_quiet).then_some(now + self.options.sample);
    }
}
