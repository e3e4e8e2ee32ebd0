//! ConWeave (Song et al., SIGCOMM 2023): the leaf of the sender moves a flow whose path answers
//! late, and the leaf of the receiver puts its packets back into order.
//!
//! # How
//! A flow lives in epochs. The first packet of each asks the other leaf for a reply (`INIT`). If
//! that comes in time, the next packet begins the next epoch on the same path. If it does not, the
//! next packet is the last on its path (`TAIL`); those behind it take another one, and say so by
//! their phase, 1 instead of 0. The leaf of the receiver holds packets of phase 1 back until the
//! tail is there, or until it should have been there for some time, and tells the other leaf that
//! the move is over (`CLEAR`), which begins the next epoch. For each packet that met congestion it
//! tells the other leaf to leave that path alone for a while (`NOTIFY`). There is one move at a
//! time, so that one queue a flow is enough (sections 3.2 and 3.3).
//!
//! | module | what it holds |
//! |---|---|
//! | this one | a leaf, tags, control packets, options |
//! | [`tx`] | the leaf as that of senders: epochs, phases, paths |
//! | [`rx`] | the leaf as that of receivers: reordering |
//!
//! # What holds
//! Paths deliver in order. Where no packet is on its way for longer than
//! [`Options::expiry`] and no queue is let go before its time
//! ([`premature`](super::TorCounts::premature) is zero), the packets of a flow leave the leaf of its
//! receiver in the order in which they came to that of its sender; whatever becomes of control packets.
//! Nothing is held for longer than its timer says, and nothing is lost here.
//!
//! # Where it differs from the code behind the paper
//! What follows here is that code (its ns-3 model) in all but this. A flow that is known no more
//! counts its epochs on from the time, so that the other leaf takes nothing of it for old. A
//! packet of a new epoch lets go what is still held. A tail lets a queue go at once, there 1 ns
//! later. Paths that routing knows to be dead are no choice, and a flow on one begins anew. What is
//! held is in no account of the switch's memory, there as here: the paper's switches hold packets
//! in queues that share it.

pub mod rx;
pub mod tx;

use super::{FlowId, TorContext, TorCounts, Ways};
use rx::Receiving;
use tx::Sending;
use weft_fabric::PathId;
use weft_units::Time;

/// What leaves are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A reply is late when it takes longer than a round trip without queues and this.
    pub extra_reply: Time,
    /// How long a path is left alone after a packet on it met congestion.
    pub path_pause: Time,
    /// A queue is let go when its tail is late by this.
    pub extra_flush: Time,
    /// How late a tail is expected where nothing came by the old path yet.
    pub default_wait: Time,
    /// A flow that has been silent for longer begins anew.
    pub expiry: Time,
    /// How many paths are drawn to find one that need not be left alone.
    pub samples: u32,
}

/// What every packet of a flow carries from leaf to leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its path, as its first leaf names it.
    pub path: PathId,
    /// Its epoch: one more is later, and they wrap.
    pub epoch: u32,
    /// What it is in its epoch.
    pub part: Part,
    /// When it left the first leaf.
    pub sent: Time,
    /// When the tail of its epoch did; zero before.
    pub tail: Time,
}

/// What a packet is in its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first: asks for a reply.
    Init,
    /// On the old path.
    Old,
    /// The last on the old path: asks to be told when all is in order.
    Tail,
    /// Behind the tail, on the new path: phase 1.
    New,
}

/// From the leaf of a receiver to that of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPacket {
    /// About this flow.
    pub flow: FlowId,
    /// What it says.
    pub message: ControlMessage,
}

/// What a control packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// The first packet of this epoch is there.
    Reply(u32),
    /// The tail of this epoch is there.
    Clear(u32),
    /// This path met congestion.
    Notify(PathId),
}

/// Both halves of a leaf.
#[derive(Clone, Debug)]
pub struct Leaf<T> {
    tx: Sending,
    rx: Receiving<T>,
    control_packets: u64,
}

impl<T> Leaf<T> {
    /// For the leaf of `context`.
    pub fn new(options: &Options, context: &TorContext<'_>) -> Leaf<T> {
        let stream = weft_units::Draw::new(context.seed, "conweave");
        let stream = stream.stream(u64::from(context.switch.0));
        let tx = Sending::new(*options, context.round_trips(), stream);
        Leaf { tx, rx: Receiving::new(*options), control_packets: 0 }
    }
    /// A packet of `flow` came from its host and leaves to the leaf numbered `to`: by which path,
    /// and with which tag? `None`: there is no way.
    #[inline]
    pub fn send(&mut self, now: Time, flow: FlowId, to: u32, ways: &impl Ways) -> Option<Tag> {
        self.tx.send(now, flow, to, ways)
    }
    /// A packet of `bytes` came from another leaf. What is to go to its host now is put into `out`,
    /// in this order; the control packets that it causes are in the answer.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        packet: rx::Came<T>,
        out: &mut Vec<T>,
    ) -> [Option<ControlMessage>; 2] {
        let message = self.rx.receive(now, packet, out);
        self.control_packets += message.iter().flatten().count() as u64;
        message
    }
    /// A control packet from the leaf numbered `from` came.
    pub fn hear(&mut self, now: Time, from: u32, packet: &ControlPacket) {
        self.tx.hear(now, from, packet);
    }
    /// When [`Leaf::time`] is due, if something is held.
    pub fn deadline(&mut self) -> Option<Time> {
        self.rx.deadline()
    }
    /// Puts into `out` what has been held for long enough.
    pub fn time(&mut self, now: Time, out: &mut Vec<T>) {
        self.rx.time(now, out);
    }
    /// Packets that it holds.
    pub fn holding(&self) -> u64 {
        self.rx.holding()
    }
    /// What it took so far.
    pub fn counts(&self) -> TorCounts {
        let counts = self.rx.counts();
        TorCounts {
            flows: counts.flows + self.tx.most_flows(),
            reroutes: self.tx.reroutes(),
            control_packets: self.control_packets,
            ..counts
        }
    }
}

/// Whether epoch `one` is later than `other`.
fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) as i32 > 0
}

/// No longer, so that epochs wrap no sooner than a leaf forgets them.
pub const LONGEST_EXPIRY: Time = Time::ms(500);

/// The first epoch of a flow that begins `now`: later than all that it had before, since an epoch
/// takes longer than this unit.
fn first_epoch(now: Time) -> u32 {
    (now.0 >> EPOCH) as u32
}

/// About a nanosecond, in bits of picoseconds.
const EPOCH: u32 = 10;
const _: () = assert!(LONGEST_EXPIRY.0 >> EPOCH < 1 << 29, "known for twice as long, at most");
