//! Loss recovery: what to send next, what to acknowledge, what to send again.
//!
//! One file a scheme; this one dispatches. A sender and its receiver speak through
//! [`Reply`]s only, which may be lost, delayed or reordered like any packet.

mod go_back_n;
mod selective;

use crate::RecoveryConfig;
use go_back_n::{GoBackNReceiver, GoBackNSender};
use selective::{SelectiveReceiver, SelectiveSender};
use weft_units::Time;

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub seq: u32,
    /// It has left before.
    pub retransmission: bool,
}

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// All packets below `cumulative` are here.
    Ack {
        /// The first packet that is missing.
        cumulative: u32,
    },
    /// As `Ack`, and the packets after it have been thrown away.
    Nack {
        /// The first packet that is missing.
        cumulative: u32,
    },
    /// Nothing to say.
    None,
}

/// What a data packet did at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The answer.
    pub reply: Reply,
    /// The packet was accepted: neither known already nor thrown away.
    pub accepted: bool,
    /// The packet was known already.
    pub duplicate: bool,
}

/// What an acknowledgement taught the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Packets acknowledged for the first time.
    pub packets: u32,
    /// Packets that were out before.
    pub in_flight: u32,
}

/// The sending half of one queue pair. Time does not run backwards from call to call.
#[derive(Clone, Debug)]
pub enum Sender {
    /// Go-back-N.
    GoBackN(GoBackNSender),
    /// Selective repeat.
    Selective(SelectiveSender),
}

/// Every flow has one, and each packet sent or acknowledged touches it: within a cache line.
const _: () = assert!(size_of::<Sender>() <= 56);

/// Dispatches a call to the scheme that is in use.
macro_rules! each {
    ($self:expr, $kind:ident, $state:ident => $call:expr) => {
        match $self {
            $kind::GoBackN($state) => $call,
            $kind::Selective($state) => $call,
        }
    };
}

impl Sender {
    /// A sender of `packets` packets, at least one.
    pub fn new(config: RecoveryConfig, packets: u32) -> Sender {
        match config {
            RecoveryConfig::GoBackN => Sender::GoBackN(GoBackNSender::new(packets)),
            RecoveryConfig::SelectiveRepeat => Sender::Selective(SelectiveSender::new(packets)),
        }
    }
    /// A sender that is done, and holds no memory.
    pub fn done() -> Sender {
        Sender::GoBackN(GoBackNSender::new(0))
    }
    /// Whether there is something to send, were the window open.
    #[inline(always)]
    pub fn has_work(&self) -> bool {
        each!(self, Sender, state => state.has_work())
    }
    /// How many packets are out: sent, and neither acknowledged nor taken for lost.
    #[inline(always)]
    pub fn in_flight(&self) -> u32 {
        each!(self, Sender, state => state.in_flight())
    }
    /// Everything is acknowledged.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        each!(self, Sender, state => state.is_done())
    }
    /// Takes the next packet to send. Call only if there [is work](Sender::has_work).
    #[inline(always)]
    pub fn send(&mut self, now: Time) -> Sent {
        each!(self, Sender, state => state.send(now))
    }
    /// The receiver got packet `seq` and has all below `cumulative`.
    #[inline(always)]
    pub fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        match self {
            Sender::GoBackN(state) => state.on_ack(now, cumulative),
            Sender::Selective(state) => state.on_ack(seq, cumulative),
        }
    }
    /// The receiver has all below `cumulative` and misses that one. `None`: the report is
    /// older than what is known already.
    pub fn on_nack(&mut self, now: Time, cumulative: u32) -> Option<Acknowledged> {
        match self {
            Sender::GoBackN(state) => state.on_nack(now, cumulative),
            Sender::Selective(state) => state.on_nack(cumulative),
        }
    }
    /// When [`Sender::on_timer`] wants to be called, if at all.
    pub fn deadline(&self, rto: Time) -> Option<Time> {
        each!(self, Sender, state => state.deadline(rto))
    }
    /// Takes for lost what has been out for `rto`; returns how many packets that were.
    pub fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        each!(self, Sender, state => state.on_timer(now, rto))
    }
}

/// The receiving half of one queue pair.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// Go-back-N.
    GoBackN(GoBackNReceiver),
    /// Selective repeat.
    Selective(SelectiveReceiver),
}

/// Every flow has one, and each packet that arrives touches it: it shares a cache line.
const _: () = assert!(size_of::<Receiver>() <= 24);

impl Receiver {
    /// A receiver of `packets` packets, at least one.
    pub fn new(config: RecoveryConfig, packets: u32) -> Receiver {
        match config {
            RecoveryConfig::GoBackN => Receiver::GoBackN(GoBackNReceiver::new(packets)),
            RecoveryConfig::SelectiveRepeat => Receiver::Selective(SelectiveReceiver::new(packets)),
        }
    }
    /// Packet `seq` arrived.
    #[inline(always)]
    pub fn on_data(&mut self, seq: u32) -> Arrival {
        each!(self, Receiver, state => state.on_data(seq))
    }
    /// Everything is here.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        each!(self, Receiver, state => state.is_done())
    }
    /// The first packet that is missing.
    pub fn expected(&self) -> u32 {
        each!(self, Receiver, state => state.expected())
    }
}
