//! CONGA (Alizadeh et al., SIGCOMM 2014): flowlets go by the path whose most loaded link carries
//! least, as leaves tell each other.
//!
//! # How
//! Every switch estimates the load of each of its ports ([`Load`], section 3.2). A packet from leaf
//! to leaf carries the number of the uplink that it took and the highest load on its way. The other
//! leaf notes it, and sends it back with some packet of its own, data or acknowledgement (section
//! 3.3). When a flow begins, or has paused, its leaf takes the uplink for which the larger of its own
//! load and what the other leaf said is smallest; a flow stays where it was unless another one
//! is better (section 3.5).
//!
//! Numbers are those of the code behind ConWeave (SIGCOMM 2023), which ParaLet (2024) compares with.
//! That code looks at four paths in a row, feeds back one of them by chance, and moves a flow between
//! equally good ones; here as in the paper all uplinks are looked at, feedback goes round and begins
//! with what has changed, and ties leave a flow where it is.
//!
//! # Three tiers
//! The paper is about two. In three, as it suggests (section 7), only leaves choose; a switch above
//! that has a choice hashes, and what is fed back about an uplink is about all ways that begin
//! with it.
//!
//! Invariant: packets of a flow that follow each other within the gap take one uplink, as long as
//! it is left.

mod feedback;
mod load;

pub use load::Load;

use super::table::Table;
use super::{FlowId, TorContext, TorCounts};
use crate::forward::Hops;
use feedback::{Heard, Seen};
use weft_units::{Draw, Rate, Stream, Time};

/// What switches are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A flow is placed anew once its last packet is longer ago than this.
    pub gap: Time,
    /// An estimate loses a share of itself every so often: the paper's T_dre.
    pub interval: Time,
    /// That share: the paper's alpha.
    pub decay: f64,
    /// Loads have so many bits: the paper's Q.
    pub bits: u32,
    /// What another leaf said is forgotten after this.
    pub aging: Time,
}

/// What a packet carries from leaf to leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Which uplink it took: the paper's LBTag.
    pub uplink: u32,
    /// The highest load of the links so far: the paper's CE.
    pub load: u8,
    /// An uplink of the leaf that it goes to, and the highest load on the way from there.
    pub feedback: Option<(u32, u8)>,
}

/// Any switch: loads of its ports, and more in a leaf.
#[derive(Clone, Debug)]
pub struct Switch {
    /// By the port's place in its switch.
    loads: Vec<Load>,
    leaf: Option<Leaf>,
}

#[derive(Clone, Debug)]
struct Leaf {
    options: Options,
    /// By the other leaf.
    heard: Vec<Heard>,
    seen: Vec<Seen>,
    flowlets: Table<Flowlet>,
    stream: Stream,
    reroutes: u64,
    /// Scratch: the best hops.
    best: Vec<u32>,
}

/// Where the present flowlet of a flow goes.
#[derive(Clone, Copy, Debug)]
struct Flowlet {
    /// By its place.
    uplink: u32,
    /// When its last packet left.
    last: Time,
}

impl Switch {
    /// For the switch of `context`.
    pub fn new(options: &Options, context: &TorContext<'_>) -> Switch {
        let TorContext { switch, fabric, seed, .. } = *context;
        let ports = fabric.ports_of(switch).ids();
        let loads = ports.map(|port| Load::new(options, fabric.ports()[port].rate)).collect();
        let leaves = fabric.leaves() as usize;
        let leaf = context.is_leaf().then(|| Leaf {
            options: *options,
            heard: vec![Heard::default(); leaves],
            seen: vec![Seen::default(); leaves],
            flowlets: Table::new(options.aging.max(options.gap)),
            stream: Draw::new(seed, "conga").stream(u64::from(switch.0)),
            reroutes: 0,
            best: Vec::new(),
        });
        Switch { loads, leaf }
    }

    /// The `port`-th port of this switch has another rate from now on.
    pub fn set_rate(&mut self, port: u32, rate: Rate) {
        self.loads[port as usize].set_rate(rate);
    }

    /// A packet of `flow` came from its host to this leaf and leaves to the leaf numbered `to`: by
    /// which of `hops`? The port of the first uplink is the `first_up`-th of the switch.
    ///
    /// # Panics
    /// In a switch that is no leaf.
    #[inline]
    pub fn choose<H: Hops>(
        &mut self,
        now: Time,
        flow: FlowId,
        to: u32,
        first_up: u32,
        hops: &H,
    ) -> u32 {
        let leaf = self.leaf.as_mut().expect("hosts are below leaves");
        let known = leaf.flowlets.touch(flow, now);
        let before = known.as_ref().map(|flowlet| flowlet.uplink);
        if let Some(flowlet) = known
            && flowlet.last.until(now) <= leaf.options.gap
            && let Some(hop) = hop_at(hops, flowlet.uplink)
        {
            flowlet.last = now;
            return hop;
        }
        let (heard, aging) = (&leaf.heard[to as usize], leaf.options.aging);
        let mut least = u8::MAX;
        leaf.best.clear();
        for hop in 0..hops.count() {
            let uplink = hops.place(hop);
            let load = self.loads[(first_up + uplink) as usize].level(now);
            let load = load.max(heard.level(uplink, now, aging));
            if load < least {
                least = load;
                leaf.best.clear();
            }
            if load == least {
                leaf.best.push(hop);
            }
        }
        let stays = leaf.best.iter().copied().find(|hop| Some(hops.place(*hop)) == before);
        let drawn = leaf.best[leaf.stream.below(leaf.best.len() as u32) as usize];
        let hop = stays.unwrap_or(drawn);
        let uplink = hops.place(hop);
        leaf.reroutes += u64::from(before.is_some_and(|before| before != uplink));
        leaf.flowlets.insert(flow, now, Flowlet { uplink, last: now });
        hop
    }

    /// What a packet by `uplink` to the leaf numbered `to` carries at first.
    pub fn tag(&mut self, uplink: u32, to: u32) -> Tag {
        let leaf = self.leaf.as_mut().expect("hosts are below leaves");
        Tag { uplink, load: 0, feedback: leaf.seen[to as usize].next() }
    }

    /// A packet of `bytes` leaves by the `port`-th port of this switch.
    #[inline]
    pub fn leaves(&mut self, now: Time, port: u32, bytes: u32, tag: &mut Tag) {
        let load = &mut self.loads[port as usize];
        load.add(now, bytes);
        tag.load = tag.load.max(load.level(now));
    }

    /// A packet came to this leaf from that numbered `from`.
    ///
    /// # Panics
    /// In a switch that is no leaf.
    #[inline]
    pub fn receive(&mut self, now: Time, from: u32, tag: &Tag) {
        let leaf = self.leaf.as_mut().expect("tags end at leaves");
        leaf.seen[from as usize].note(tag.uplink, tag.load);
        if let Some((uplink, load)) = tag.feedback {
            leaf.heard[from as usize].note(uplink, load, now);
        }
    }

    /// What it took so far.
    pub fn counts(&self) -> TorCounts {
        let Some(leaf) = &self.leaf else { return TorCounts::default() };
        let flows = leaf.flowlets.most() as u64;
        TorCounts { flows, reroutes: leaf.reroutes, ..TorCounts::default() }
    }
}

/// The hop at `place`, if it is left.
fn hop_at<H: Hops>(hops: &H, place: u32) -> Option<u32> {
    if hops.count() == hops.places() {
        return Some(place);
    }
    (0..hops.count()).find(|hop| hops.place(*hop) == place)
}
