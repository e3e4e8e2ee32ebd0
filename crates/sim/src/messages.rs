//! The messages of a partition: what their senders and receivers know of them.

use crate::nic::Reordering;
use crate::outcome::MessageResult;
use crate::partition::{ReceivingId, SendingId};
use crate::world::World;
use weft_units::{IdVec, MessageId, Time};

/// The messages of one partition: what its hosts know as senders, and what they know as receivers.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    sending: IdVec<SendingId, Sending>,
    /// By the partition of the sender.
    receiving: Vec<Vec<Receiving>>,
    /// Messages that are not acknowledged to the end.
    unfinished: u32,
}

/// A message at its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) message: MessageId,
    pub(crate) receiving: ReceivingId,
    /// Its payload.
    pub(crate) bytes: u64,
    /// Dependencies that are not met.
    unmet: u32,
    /// Queue pairs that carry it, and how many of them have given up their places.
    subflows: u32,
    over: u32,
    retransmits: u32,
    /// Payload on queue pairs that are not acknowledged to the end.
    bytes_open: u64,
    /// Payload on queue pairs of which something has not left yet; if anybody wants to know.
    bytes_here: u64,
    posted: Time,
    sent: Time,
}

/// A message at its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiving {
    pub(crate) message: MessageId,
    bytes_missing: u64,
    /// Some of it is there, not all, and somebody waits for it; if anybody wants to know.
    is_coming: bool,
    pub(crate) spurious: u32,
    /// Of ranks' messages.
    pub(crate) posted: Time,
    pub(crate) received: Time,
    /// Of queue pairs whose places others have.
    reordering: Reordering,
}

impl Messages {
    /// The messages of every partition.
    pub(crate) fn all(world: &World) -> Vec<Messages> {
        let partitions = world.partitioning.partitions.len();
        let none = || Messages { receiving: vec![Vec::new(); partitions], ..Messages::default() };
        let mut all: Vec<_> = (0..partitions).map(|_| none()).collect();
        for (id, message) in world.config.workload.messages().enumerate() {
            let (src, dst) =
                (world.partitioning.hosts[message.src], world.partitioning.hosts[message.dst]);
            let sender = &mut all[usize::from(src.partition)];
            sender.unfinished += 1;
            let unmet = world.dependents.unmet()[id];
            sender.sending.push(Sending::new(id, world.receiving[id], message.bytes, unmet));
            let receiving =
                &mut all[usize::from(dst.partition)].receiving[usize::from(src.partition)];
            receiving.push(Receiving::new(id, message.bytes, Time::ZERO));
        }
        all
    }
    pub(crate) fn unfinished(&self) -> u32 {
        self.unfinished
    }
    /// A message of the workload goes to its NIC.
    pub(crate) fn post(&mut self, now: Time, message: SendingId) {
        self.sending[message].posted = now;
    }
    /// The same of one that its rank posted at `posted`.
    pub(crate) fn post_new(&mut self, posted: Time, message: SendingId) {
        self.post(posted, message);
        self.unfinished += 1;
    }
    /// One more dependency of `message` is met. Returns whether that was the last.
    pub(crate) fn meet(&mut self, message: SendingId) -> bool {
        let unmet = &mut self.sending[message].unmet;
        *unmet -= 1;
        *unmet == 0
    }
    /// A receiver has all of one subflow, `bytes` of payload. Returns the message if that is complete.
    pub(crate) fn receive(&mut self, now: Time, id: ReceivingId, bytes: u64) -> Option<MessageId> {
        let receiving = self.receiving_mut(id);
        receiving.bytes_missing -= bytes;
        (receiving.bytes_missing == 0).then(|| {
            receiving.received = now;
            receiving.message
        })
    }
    /// All of one subflow has left its host once. Returns whether all of the message has.
    pub(crate) fn leave(&mut self, id: SendingId, bytes: u64) -> bool {
        let bytes_here = &mut self.sending[id].bytes_here;
        *bytes_here -= bytes;
        *bytes_here == 0
    }
    /// A sender has the last acknowledgement of one subflow. Returns the message if it has all.
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        id: SendingId,
        bytes: u64,
    ) -> Option<MessageId> {
        let sending = &mut self.sending[id];
        sending.bytes_open -= bytes;
        (sending.bytes_open == 0).then(|| {
            sending.sent = now;
            self.unfinished -= 1;
            sending.message
        })
    }
    pub(crate) fn push_sending(&mut self, sending: Sending) -> SendingId {
        self.sending.push(sending)
    }
    /// Puts a message into the place of one that is over.
    pub(crate) fn put_sending(&mut self, id: SendingId, sending: Sending) {
        self.sending[id] = sending;
    }
    /// The same at the receiver, where the place may be new; returns whose it was.
    pub(crate) fn put_receiving(
        &mut self,
        from: usize,
        number: u32,
        receiving: Receiving,
    ) -> Option<Receiving> {
        let list = &mut self.receiving[from];
        match list.get_mut(number as usize) {
            Some(place) => Some(std::mem::replace(place, receiving)),
            None => {
                list.push(receiving);
                None
            }
        }
    }
    /// All messages at their receivers, as far as their places have no others.
    pub(crate) fn all_receiving(&self) -> impl Iterator<Item = &Receiving> {
        self.receiving.iter().flatten()
    }
    /// A queue pair of `message` is over. Returns whether nothing of the message is left.
    pub(crate) fn end_subflow(&mut self, message: SendingId) -> bool {
        let sending = &mut self.sending[message];
        sending.over += 1;
        sending.bytes_open == 0 && sending.over == sending.subflows
    }
    pub(crate) fn add_subflow(&mut self, message: SendingId) {
        self.sending[message].subflows += 1;
    }
    pub(crate) fn add_retransmit(&mut self, message: SendingId) {
        self.sending[message].retransmits += 1;
    }
    /// `bytes` more of a message are there, which somebody waits for now, or not yet: by how many more messages come that
    /// somebody waits for.
    pub(crate) fn begin_expected(&mut self, id: ReceivingId, bytes: u64, is_expected: bool) -> i32 {
        let receiving = self.receiving_mut(id);
        let was_coming = receiving.is_coming;
        receiving.is_coming = (was_coming || is_expected) && receiving.bytes_missing > bytes;
        i32::from(receiving.is_coming) - i32::from(was_coming)
    }
    pub(crate) fn add_spurious(&mut self, message: ReceivingId) {
        self.receiving_mut(message).spurious += 1;
    }
    pub(crate) fn add_reordering(&mut self, message: ReceivingId, reordering: &Reordering) {
        self.receiving_mut(message).reordering.add(reordering);
    }
    pub(crate) fn sending(&self, message: SendingId) -> &Sending {
        &self.sending[message]
    }
    /// Those of its hosts' messages that are not acknowledged to the end.
    pub(crate) fn open(&self) -> impl Iterator<Item = (SendingId, &Sending)> {
        self.sending.enumerate().filter(|(_, sending)| sending.bytes_open > 0)
    }
    pub(crate) fn receiving(&self, message: ReceivingId) -> &Receiving {
        &self.receiving[message.partition()][message.number()]
    }
    fn receiving_mut(&mut self, message: ReceivingId) -> &mut Receiving {
        &mut self.receiving[message.partition()][message.number()]
    }
}

impl Sending {
    pub(crate) fn new(
        message: MessageId,
        receiving: ReceivingId,
        bytes: u64,
        unmet: u32,
    ) -> Sending {
        let (posted, sent) = (Time::ZERO, Time::ZERO);
        Sending {
            message,
            receiving,
            bytes,
            unmet,
            subflows: 0,
            over: 0,
            retransmits: 0,
            bytes_open: bytes,
            bytes_here: bytes,
            posted,
            sent,
        }
    }
}

impl Sending {
    /// How many dependencies it waits for.
    pub(crate) fn unmet(&self) -> u32 {
        self.unmet
    }
    /// What its sender knows of it.
    pub(crate) fn result(&self) -> MessageResult {
        let Sending { posted, sent, subflows, retransmits, .. } = *self;
        MessageResult { posted, sent, subflows, retransmits, ..MessageResult::default() }
    }
}

impl Receiving {
    pub(crate) fn new(message: MessageId, bytes: u64, posted: Time) -> Receiving {
        let (received, reordering) = (Time::ZERO, Reordering::default());
        Receiving {
            message,
            bytes_missing: bytes,
            is_coming: false,
            spurious: 0,
            posted,
            received,
            reordering,
        }
    }
    /// Payload of it that is not here; queue pairs that have a part of theirs count as without any.
    pub(crate) fn bytes_missing(&self) -> u64 {
        self.bytes_missing
    }
}

/// The result of a message, from what its sender and its receiver know.
pub(crate) fn result(sending: &Sending, receiving: &Receiving) -> MessageResult {
    MessageResult {
        received: receiving.received,
        spurious: receiving.spurious,
        reordered: receiving.reordering.packets,
        farthest: receiving.reordering.farthest,
        ..sending.result()
    }
}
