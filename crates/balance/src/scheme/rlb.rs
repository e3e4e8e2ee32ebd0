//! Juniper's RDMA load balancing (RLB) with BGP-DPF: every queue pair of a connection has an IPv6 address
//! of its own, and the destination address fixes the spine.
//!
//! A leaf gives each of its ports a prefix for every colour and announces it over the spines of that colour
//! only. Spines have the colours in turn; queue pair `q` sends to an address of colour `q` mod colours. So no
//! hash decides where each colour has one spine, packets stay in order, and a message that is split over
//! all queue pairs loads all spines alike. A colour with several spines is hashed among them. One
//! whose spines are gone falls back to those of the other colours, once routing knows.
//!
//! Source: Juniper validated design "AI Data Center QPP with BGP-DPF". What is ours: the colour of an acknowledgement,
//! which is that of its queue pair, and three tiers: there a colour is that of a core, and an aggregation
//! switch's choice of one is its digit above the leaf's.

use super::connections::{Connections, Sharing, connection_draw};
use super::{Scheme, SchemeInfo};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::hash;
use crate::plan::{HostContext, Plan, Post, QueuePairId, Subflow};
use crate::steer::{Fixed, FlowContext};
use weft_fabric::Fabric;
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, SwitchId, Time};

/// An address a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlb {
    /// How messages use the queue pairs of a connection.
    pub sharing: Sharing,
    /// How many colours there are; `None`: one for each queue pair.
    pub colours: Option<u32>,
}

impl Rlb {
    fn colours(&self) -> u32 {
        self.colours.unwrap_or(self.sharing.queue_pairs)
    }
}

impl Scheme for Rlb {
    const INFO: SchemeInfo = SchemeInfo {
        name: "rlb",
        summary: "several queue pairs a connection; each has an address whose route fixes the spine",
        switches: "routes by address, one colour a spine",
        source: "Juniper RLB with BGP-DPF (2025)",
        in_switch: true,
        numbered: Some("queue_pairs"),
        persistent: true,
        options: &[
            Sharing::QUEUE_PAIRS,
            Sharing::SPLIT,
            Sharing::CHUNK,
            OptionInfo {
                key: "colours",
                default: "queue_pairs",
                kind: OptionKind::Or(&OptionKind::Whole(1, 128), "queue_pairs"),
                meaning: "colours of spines, and prefixes of a leaf's port, 1 to 128; one for each queue \
                          pair if not given",
            },
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<ColouredConnections>;
    type Steering = Fixed;
    type Switching = Colours;

    fn read(options: &mut Options<'_>) -> Result<Rlb, OptionError> {
        let sharing = Sharing::read(options)?;
        Ok(Rlb { sharing, colours: options.number_or_word("colours")? })
    }
    fn number(&self) -> Option<u32> {
        Some(self.sharing.queue_pairs)
    }
    fn needs_clos(&self) -> Option<&'static str> {
        Some("its spines have colours")
    }
    fn planner(&self, context: &HostContext) -> Box<ColouredConnections> {
        Box::new(ColouredConnections {
            host: context.host,
            colours: self.colours(),
            draw: Draw::new(context.seed, "rlb"),
            connections: Connections::new(self.sharing, context),
        })
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Colours {
        let fabric = context.fabric;
        // What leaves choose among, of which switches above know that it is done.
        let clos = fabric.clos().expect("fits has said so");
        let (chosen, members) = match fabric.tier(context.switch) {
            0 => (1, clos.leaf_bundle.members),
            _ => (fabric.uplinks(SwitchId(0)).max(1), clos.agg_bundle.members),
        };
        Colours {
            colours: self.colours(),
            chosen,
            uplinks: fabric.uplinks(context.switch),
            members,
        }
    }
}

/// The connections of one host. An entropy value stands for an address: its colour, and more that tells
/// connections apart where a colour has several spines.
#[derive(Clone, Debug)]
pub struct ColouredConnections {
    host: HostId,
    colours: u32,
    draw: Draw,
    connections: Connections,
}

impl Plan for ColouredConnections {
    fn post(&mut self, now: Time, post: Post, _: &Fabric, out: &mut Vec<Subflow>) {
        let (colours, drawn) = (self.colours, connection_draw(self.draw, self.host, &post));
        // So many addresses of each colour as 16 bits have room for.
        let addresses = (1 << 16) / colours;
        let address = |number: u32| {
            let of_colour = (drawn >> 32) as u32 % addresses;
            ((of_colour + number / colours) % addresses * colours + number % colours) as u16
        };
        self.connections.post(now, post, address, out);
    }
    fn next(&mut self, _: Time, queue_pair: QueuePairId, _: &Fabric) -> Option<Subflow> {
        self.connections.next(queue_pair)
    }
}

/// A switch under [`Rlb`].
#[derive(Clone, Copy, Debug)]
pub struct Colours {
    colours: u32,
    /// How many hops switches below have chosen among.
    chosen: u32,
    /// Its own, and how many of them lead to one switch.
    uplinks: u32,
    members: u32,
}

impl Forward for Colours {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let colour = u32::from(packet.entropy) % self.colours / self.chosen;
        let width = self.colours.div_ceil(self.chosen).min(hops.places());
        // Neighbours in this order lead to different switches, as far as there are several: a colour is that of a
        // switch first, and of one of the links to it where there are more colours than switches.
        let order = |place: u32| match hops.places() == self.uplinks {
            true => place % self.members * (self.uplinks / self.members) + place / self.members,
            false => place,
        };
        let is_own = |hop: &u32| order(hops.place(*hop)) % width == colour % width;
        let mut own = (0..hops.count()).filter(is_own);
        let count = own.clone().count() as u32;
        match count {
            0 => packet.hashed,
            _ => own.nth(hash::below(packet.hash, count) as usize).expect("below their count"),
        }
    }
}
