//! Messages: posted when their dependencies are met, complete when both ends say so.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::nic::Reordering;
use crate::outcome::MessageResult;
use crate::partition::{OwnHost, ReceivingId};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::World;
use std::sync::Arc;
use weft_balance::plan::Post;
use weft_units::{IdVec, MessageId, Time, id};
use weft_workload::When;

id!(
    /// A message among those that a partition's hosts send.
    pub struct SendingId
);
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
    /// A message that its rank posted at `posted` goes to its NIC.
    pub(crate) fn post(&mut self, message: SendingId, posted: Time) {
        self.sending[message].posted = posted;
        self.unfinished += 1;
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
        Receiving { message, bytes_missing: bytes, spurious: 0, posted, received, reordering }
    }
    /// Payload of it that is not here; queue pairs that have a part of theirs count as without any.
    pub(crate) fn bytes_missing(&self) -> u64 {
        self.bytes_missing
    }
}

/// Schedules the messages that wait for nothing.
pub(crate) fn start<Q: EventQueue, P>(world: &World, partitions: &mut [Engine<Q, P>]) {
    for (id, message) in world.config.workload.messages().enumerate() {
        let partition =
            &mut partitions[usize::from(world.partitioning.hosts[message.src].partition)];
        if partition.jobs.sending[world.sending[id]].unmet == 0 {
            partition.agenda.push(Event::new(message.start, Class::Post, id.0));
        }
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

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A host posts a message to its NIC.
    pub(crate) fn post(&mut self, id: MessageId) {
        let message = &self.config.workload.messages()[id];
        let sending = self.world.sending[id];
        self.jobs.sending[sending].posted = self.now;
        // A pause in the workload is no stall: from now on something can be delivered.
        self.progress.make(self.now);
        let (dst, bytes, tag) = (message.dst, message.bytes, sending.0);
        let post = Post { message: id, dst, bytes, job: 0, ranks: (0, 0), tag };
        self.plan(self.world.partitioning.hosts[message.src].own, post);
    }

    /// The planner of `host` takes a message.
    pub(crate) fn plan(&mut self, host: OwnHost, post: Post) {
        let planner = &mut self.hosts[host].planner;
        planner.post(self.now, post, self.config.fabric, &mut self.subflows);
        let deadline = planner.deadline();
        self.flush_by(host, deadline);
        self.open_flows(host);
    }

    /// Sees to it that a `Flush` event comes at `deadline`.
    pub(crate) fn flush_by(&mut self, host: OwnHost, deadline: Option<Time>) {
        let state = &mut self.hosts[host];
        if let Some(at) = deadline
            && state.flush_at != deadline
        {
            state.flush_at = deadline;
            self.agenda.push(Event::new(at, Class::Flush, host.0));
        }
    }

    /// A planner's batch is complete.
    pub(crate) fn flush(&mut self, host: OwnHost) {
        let state = &mut self.hosts[host];
        state.flush_at = None;
        state.planner.flush(self.now, self.config.fabric, &mut self.subflows);
        let deadline = state.planner.deadline();
        self.flush_by(host, deadline);
        self.open_flows(host);
    }

    /// A receiver has all of one subflow, `bytes` of payload.
    pub(crate) fn subflow_received(&mut self, id: ReceivingId, bytes: u64) {
        let receiving = self.jobs.receiving_mut(id);
        receiving.bytes_missing -= bytes;
        if receiving.bytes_missing == 0 {
            receiving.received = self.now;
            let message = receiving.message;
            match self.ranks {
                Some(_) => self.rank_received(id),
                None => self.end_reached(message, When::Received),
            }
        }
    }

    /// All of one subflow has left its host once, `bytes` of payload.
    pub(crate) fn subflow_left(&mut self, id: SendingId, bytes: u64) {
        let sending = &mut self.jobs.sending[id];
        sending.bytes_here -= bytes;
        if sending.bytes_here == 0 {
            self.rank_message_left(id);
        }
    }

    /// A sender has the last acknowledgement of one subflow, `bytes` of payload.
    pub(crate) fn subflow_sent(&mut self, id: SendingId, bytes: u64) {
        let sending = &mut self.jobs.sending[id];
        sending.bytes_open -= bytes;
        if sending.bytes_open == 0 {
            sending.sent = self.now;
            let message = sending.message;
            self.jobs.unfinished -= 1;
            match self.ranks {
                Some(_) => self.rank_sent(id),
                None => self.end_reached(message, When::Sent),
            }
        }
    }

    /// One end of a message is done: whoever waited for it may go on. Where the waiting host
    /// is not the one that saw it, the news takes one link delay, the least that keeps hosts
    /// independent of each other for that long.
    fn end_reached(&mut self, id: MessageId, when: When) {
        let world = Arc::clone(&self.world);
        let messages = self.config.workload.messages();
        let observer = match when {
            When::Sent => messages[id].src,
            When::Received => messages[id].dst,
        };
        for dependency in world.dependents.numbers(id, when) {
            let host = messages[world.dependents.message(dependency)].src;
            if host == observer {
                self.dependency_met(dependency);
            } else {
                let at = self.now + world.news_delay;
                let news = Event::new(at, Class::DependencyMet, dependency);
                self.agenda.push_at(world.partitioning.hosts[host].partition, news);
            }
        }
    }

    /// The sender of the message that waits under `dependency` hears that it is met.
    pub(crate) fn dependency_met(&mut self, dependency: u32) {
        let id = self.world.dependents.message(dependency);
        let waiting = &mut self.jobs.sending[self.world.sending[id]];
        waiting.unmet -= 1;
        if waiting.unmet == 0 {
            let at = self.now + self.config.workload.messages()[id].start;
            self.agenda.push(Event::new(at, Class::Post, id.0));
        }
    }
}
