//! A host as a receiver: datagrams to messages, each byte once, and answers.
//!
//! Two nets catch repetitions, each without looking at the other: loss recovery knows which packets of
//! a flow have come, and this which stretches of a message. The second finds nothing unless there is a bug; it says
//! so in [`Received::overlapping`].
//!
//! An answer leaves from the port of the packet that it answers, so that leaves which map ports to
//! uplinks send it back by the same spine, as the simulator does.

use crate::report::{Received, ReceivedMessage};
use crate::wire::{Answer, Data};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use weft_transport::{Receiver as Incoming, RecoveryConfig, Reply as Says};
use weft_units::{HostId, MessageId, Stretches, Time};

/// Where the contents of messages go.
pub trait Sink {
    /// Bytes of a message from `src`, for the first and only time.
    fn write(&mut self, src: HostId, message: MessageId, offset: u64, bytes: &[u8]);
}

/// An answer that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The host that it goes to.
    pub dst: HostId,
    /// What it says; its port is the one to send it from.
    pub answer: Answer,
}

/// One host's receiving half.
#[derive(Debug)]
pub struct Receiver {
    host: HostId,
    recovery: RecoveryConfig,
    /// By sender and its number of the flow. Never iterated.
    flows: FxHashMap<(u32, u32), Incoming>,
    /// By sender and message. Never iterated.
    messages: FxHashMap<(u32, u32), Stretches>,
    replies: VecDeque<Reply>,
    complete: VecDeque<ReceivedMessage>,
    /// What was counted.
    pub received: Received,
}

impl Receiver {
    /// Of `host`, where senders recover from loss as `recovery` says.
    pub fn new(host: HostId, recovery: RecoveryConfig) -> Receiver {
        Receiver {
            host,
            recovery,
            flows: FxHashMap::default(),
            messages: FxHashMap::default(),
            replies: VecDeque::new(),
            complete: VecDeque::new(),
            received: Received::default(),
        }
    }

    /// A packet came from UDP source port `port`; new payload goes to `sink`.
    pub fn handle_data(
        &mut self,
        now: Time,
        port: u16,
        data: &Data,
        payload: &[u8],
        sink: &mut impl Sink,
    ) {
        let Data { src, flow, seq, packets, clock, .. } = *data;
        let new = || Incoming::new(&self.recovery, packets);
        let arrival = self.flows.entry((src, flow)).or_insert_with(new).on_data(now, seq);
        let says = match arrival.reply {
            Says::Ack { cumulative } => Some((false, cumulative)),
            Says::Nack { cumulative } => Some((true, cumulative)),
            Says::None => None,
        };
        if let Some((nack, cumulative)) = says {
            let answer = Answer { src: self.host.0, flow, seq, port, nack, cumulative, clock };
            self.replies.push_back(Reply { dst: HostId(src), answer });
        }
        self.received.repeated += u64::from(arrival.duplicate);
        if arrival.accepted {
            self.handle_bytes(now, data, payload, sink);
        }
    }

    /// The next answer to send.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }
    /// The next message that is complete.
    pub fn poll_complete(&mut self) -> Option<ReceivedMessage> {
        self.complete.pop_front()
    }

    /// Bytes of a message came that need no answer, over a connection. Of `data` only sender, message
    /// and place count.
    pub fn handle_bytes(&mut self, now: Time, data: &Data, payload: &[u8], sink: &mut impl Sink) {
        let (src, message) = (HostId(data.src), MessageId(data.message));
        let stretches = self.messages.entry((data.src, data.message)).or_default();
        let len = payload.len() as u64;
        if !stretches.add(data.offset, len) {
            self.received.overlapping += len;
            return;
        }
        self.received.bytes += len;
        sink.write(src, message, data.offset, payload);
        if stretches.bytes() == data.total {
            // Nothing of it can come again: its flows are complete.
            self.messages.remove(&(data.src, data.message));
            let done = ReceivedMessage { message, src, bytes: data.total, received: now };
            self.received.messages.push(done);
            self.complete.push_back(done);
        }
    }
}
