//! What a host counted.

use crate::flow::Packet;
use std::collections::BTreeMap;
use weft_units::{HostId, MessageId, Time};

/// Packets and payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets that left for the first time.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// Packets sent again.
    pub again_packets: u64,
    /// Their payload.
    pub again_bytes: u64,
}

/// A message that is over, at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// The message.
    pub message: MessageId,
    /// The host that received it.
    pub dst: HostId,
    /// Payload.
    pub bytes: u64,
    /// Into how many subflows it was cut.
    pub subflows: u32,
    /// When it was posted.
    pub posted: Time,
    /// When the last byte was answered.
    pub answered: Time,
}

/// A message that is complete, at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The message.
    pub message: MessageId,
    /// The host that sent it.
    pub src: HostId,
    /// Payload.
    pub bytes: u64,
    /// When the last byte came.
    pub received: Time,
}

/// A flow from which nothing came back for a time-out or more, until something did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Its message.
    pub message: MessageId,
    /// Which part of it.
    pub part: u32,
    /// When something had last come back before; else when it began.
    pub since: Time,
    /// When something came back again.
    pub until: Time,
    /// Time-outs in between.
    pub time_outs: u32,
}

/// The sending half.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// By source port, of what leaves the rack.
    pub by_port: BTreeMap<u16, Count>,
    /// Within the rack.
    pub local: Count,
    /// Packets taken for lost, but for those that a NACK had sent again.
    pub lost: u64,
    /// Answers that reported a loss: NACKs, and acknowledgements of what others had overtaken.
    pub gaps: u64,
    /// Time-outs of flows.
    pub time_outs: u64,
    /// When a flow got another route.
    pub remaps: Vec<Time>,
    /// Flows that stood still.
    pub recoveries: Vec<Recovery>,
    /// Messages that are over, in the order of their ends.
    pub messages: Vec<SentMessage>,
}

impl Sent {
    /// A packet left from `port`; `local`: to a host of the same rack.
    pub fn count(&mut self, port: u16, local: bool, packet: &Packet) {
        let count = if local { &mut self.local } else { self.by_port.entry(port).or_default() };
        let len = u64::from(packet.len);
        if packet.again {
            count.again_packets += 1;
            count.again_bytes += len;
        } else {
            count.packets += 1;
            count.bytes += len;
        }
    }
}

/// The receiving half.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Messages that are complete, in the order of their ends.
    pub messages: Vec<ReceivedMessage>,
    /// Payload handed on.
    pub bytes: u64,
    /// Packets that had come before.
    pub repeated: u64,
    /// Packets with a wrong check sum, or none of ours.
    pub damaged: u64,
    /// Payload that lay, at least in part, where some had been handed on already: zero, or this
    /// crate has a bug.
    pub overlapping: u64,
    /// Answers, by source port, to other racks.
    pub answers: BTreeMap<u16, u64>,
}
