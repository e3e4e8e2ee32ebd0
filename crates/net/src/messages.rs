//! Messages on their way: how far they are cut into subflows, and how much of them is answered.

use crate::report::SentMessage;
use weft_balance::plan::Subflow;
use weft_units::{HostId, MessageId, Time};

/// A message that may not be over.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    message: MessageId,
    dst: HostId,
    bytes: u64,
    /// How much of it has subflows.
    cut: u64,
    /// Bytes of its subflows that are not answered.
    open: u64,
    subflows: u32,
    posted: Time,
}

/// The messages of a host, by the tags that their subflows carry.
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<Outgoing>);

impl Messages {
    /// A message is posted; returns its tag.
    pub fn post(&mut self, now: Time, message: MessageId, dst: HostId, bytes: u64) -> u32 {
        let (cut, open, subflows) = (0, bytes, 0);
        self.0.push(Outgoing { message, dst, bytes, cut, open, subflows, posted: now });
        self.0.len() as u32 - 1
    }
    /// A subflow is cut off: where in its message it begins, and the bytes of that message. Subflows
    /// follow each other in the order in which they are cut.
    pub fn cut(&mut self, subflow: &Subflow) -> (u64, u64) {
        let outgoing = &mut self.0[subflow.tag as usize];
        let offset = outgoing.cut;
        outgoing.cut += subflow.bytes;
        outgoing.subflows += 1;
        (offset, outgoing.bytes)
    }
    /// A subflow of the message with this tag is answered to the end; returns the message if it was
    /// the last one.
    pub fn answered(&mut self, now: Time, tag: u32, bytes: u64) -> Option<SentMessage> {
        let outgoing = &mut self.0[tag as usize];
        outgoing.open -= bytes;
        let Outgoing { message, dst, bytes, subflows, posted, open, .. } = *outgoing;
        (open == 0).then_some(SentMessage { message, dst, bytes, subflows, posted, answered: now })
    }
}
