//! What became of the messages that ranks sent: kept apart from what is under way, whose places
//! are used again.
//!
//! Invariant: a message is recorded once at its sender, when that has the last acknowledgement,
//! and once at its receiver, when another takes its place there or the run is over.

use crate::histogram::DurationHistogram;
use crate::messages::{Receiving, Sending};
use crate::nic::Reordering;
use crate::outcome::{MessageResult, RankMessage};
use weft_units::{HostId, MessageId, Time};
use weft_workload::job::{Receipt, Sent};

/// The records of one partition.
#[derive(Debug)]
pub(crate) struct Records {
    /// One for each message; else only [`Records::durations`].
    is_each: bool,
    sent: Vec<RankMessage>,
    received: Vec<(MessageId, Time, u32)>,
    reordering: Vec<(MessageId, Reordering)>,
    /// Whose receiving halves have which place: by partition of the sender.
    served: Vec<Vec<MessageId>>,
    durations: DurationHistogram,
}

/// Who sends what to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) sent: Sent,
    pub(crate) receipt: Receipt,
}

impl Records {
    pub(crate) fn new(is_each: bool, partitions: usize) -> Records {
        Records {
            is_each,
            sent: Vec::new(),
            received: Vec::new(),
            reordering: Vec::new(),
            served: vec![Vec::new(); partitions],
            durations: DurationHistogram::default(),
        }
    }

    /// The last acknowledgement has come.
    pub(crate) fn add_sent(&mut self, owner: Owner, hosts: (HostId, HostId), sending: &Sending) {
        if self.is_each {
            let Owner { src, dst, sent, .. } = owner;
            let result = sending.result();
            let (message, node, bytes) = (sending.message, sent.node, sending.bytes);
            self.sent.push(RankMessage { message, src, dst, hosts, node, bytes, result });
        }
    }

    /// The last byte has come.
    pub(crate) fn add_duration(&mut self, duration: Time) {
        if !self.is_each {
            self.durations.add(duration);
        }
    }

    /// Nothing more will come for a message at its receiver.
    pub(crate) fn add_received(&mut self, receiving: &Receiving) {
        if self.is_each {
            let Receiving { message, received, spurious, .. } = *receiving;
            self.received.push((message, received, spurious));
        }
    }

    /// A receiving half at place `number` among those from partition `from` serves `message`; what
    /// the one before it has seen is `over`.
    pub(crate) fn serve(
        &mut self,
        from: usize,
        number: u32,
        message: MessageId,
        over: Option<Reordering>,
    ) {
        if let Some(over) = over {
            self.add_reordering(from, number, over);
        }
        let served = &mut self.served[from];
        match served.get_mut(number as usize) {
            Some(place) => *place = message,
            None => served.push(message),
        }
    }

    /// What the receiving half at this place has seen, of whose message nothing more will come.
    pub(crate) fn add_reordering(&mut self, from: usize, number: u32, reordering: Reordering) {
        if self.is_each && reordering != Reordering::default() {
            self.reordering.push((self.served(from, number), reordering));
        }
    }

    /// What was sent, to be joined; nothing more comes.
    pub(crate) fn take_sent(&mut self) -> Vec<RankMessage> {
        std::mem::take(&mut self.sent)
    }

    /// Whose the receiving half at this place is.
    pub(crate) fn served(&self, from: usize, number: u32) -> MessageId {
        self.served[from][number as usize]
    }
}

/// All messages, by their names, and how long all took together; from what the partitions have sent
/// ([`Records::take_sent`]) and know, and how many packets messages have lost.
pub(crate) fn join(
    sent: Vec<Vec<RankMessage>>,
    records: Vec<&Records>,
    losses: impl Iterator<Item = (MessageId, u32)>,
) -> (Vec<RankMessage>, DurationHistogram) {
    let count = sent.iter().map(Vec::len).sum::<usize>();
    let mut sent = sent.into_iter();
    let mut all = sent.next().unwrap_or_default();
    all.reserve_exact(count - all.len());
    sent.for_each(|more| all.extend(more));
    all.sort_unstable_by_key(|one| one.message);
    let mut durations = DurationHistogram::default();
    for one in &records {
        durations.merge(&one.durations);
        for (message, received, spurious) in &one.received {
            let result = find(&mut all, *message);
            (result.received, result.spurious) = (*received, *spurious);
        }
        for (message, Reordering { packets, farthest }) in &one.reordering {
            let result = find(&mut all, *message);
            result.reordered += packets;
            result.farthest = result.farthest.max(*farthest);
        }
    }
    let is_each = records.iter().all(|one| one.is_each);
    for (message, lost) in losses.filter(|_| is_each) {
        find(&mut all, message).lost += lost;
    }
    (all, durations)
}

fn find(all: &mut [RankMessage], message: MessageId) -> &mut MessageResult {
    let at = all.binary_search_by_key(&message, |one| one.message);
    &mut all[at.expect("its sender knows it")].result
}
