//! Messages: posted, cut into subflows by the planner of their host, and complete when all of these are.

use crate::agenda::What;
use crate::engine::Engine;
use crate::flows::Part;
use std::collections::hash_map::Entry;
use std::mem::take;
use weft_balance::plan::{FlowInfo, Post, Subflow};
use weft_sim::MessageResult;
use weft_units::{HostId, MessageId, Time};
use weft_workload::When;
use weft_workload::job::{Receipt, Sent};

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) name: MessageId,
    pub(crate) bytes: u64,
    /// Bytes that have not crossed the network, and those that have not left their NIC.
    open: u64,
    unsent: u64,
    unacknowledged: u64,
    pub(crate) subflows: u32,
    pub(crate) posted: Time,
    /// When it was handed to its planner.
    pub(crate) left_at: Time,
    pub(crate) received: Time,
    sent: Time,
    pub(crate) owner: Option<Owner>,
}

/// For whom a message of ranks is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// The ranks, numbered through all jobs.
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) sent: Sent,
    pub(crate) receipt: Receipt,
}

/// A message, before its planner has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) name: MessageId,
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    pub(crate) bytes: u64,
    pub(crate) posted: Time,
    pub(crate) job: u32,
    pub(crate) owner: Option<Owner>,
}

impl Engine<'_> {
    /// A message of the workload is posted.
    pub(crate) fn post(&mut self, name: MessageId) {
        let message = self.config.workload.messages()[name];
        let (src, dst, bytes, posted) = (message.src, message.dst, message.bytes, self.now);
        self.hand_over(Posting { name, src, dst, bytes, posted, job: 0, owner: None });
    }

    /// The planner of its host takes a message.
    pub(crate) fn hand_over(&mut self, posting: Posting) {
        let Posting { name, src, dst, bytes, posted, job, owner } = posting;
        let tag = self.new_message(Message {
            name,
            bytes,
            open: bytes,
            unsent: bytes,
            unacknowledged: bytes,
            subflows: 0,
            posted,
            left_at: self.now,
            received: Time::ZERO,
            sent: Time::ZERO,
            owner,
        });
        let ranks = owner.map_or((0, 0), |owner| (owner.src, owner.dst));
        let post = Post { message: name, dst, bytes, job, ranks, tag };
        let host = &mut self.hosts[src.0 as usize];
        host.planner.post(self.now, post, self.config.fabric, &mut self.subflows);
        self.flush_later(src);
        self.open(src);
    }

    fn new_message(&mut self, message: Message) -> u32 {
        match self.free_messages.pop() {
            Some(id) => {
                self.messages[id as usize] = message;
                id
            }
            None => {
                self.messages.push(message);
                self.messages.len() as u32 - 1
            }
        }
    }

    fn flush_later(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        let deadline = host.planner.deadline();
        if let Some(at) = deadline
            && host.flush_at != deadline
        {
            host.flush_at = deadline;
            self.agenda.push(at, What::Flush(id));
        }
    }

    /// A planner's batch is complete.
    pub(crate) fn flush(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        host.flush_at = None;
        host.planner.flush(self.now, self.config.fabric, &mut self.subflows);
        self.flush_later(id);
        self.open(id);
    }

    /// Opens what the planner of `src` has put out.
    pub(crate) fn open(&mut self, src: HostId) {
        let (mut subflows, mut parts) = (take(&mut self.subflows), take(&mut self.parts));
        subflows.drain(..).for_each(|subflow| self.divide(src, &subflow, &mut parts));
        // What begins at once may open more.
        self.subflows = subflows;
        let mut rest = &parts[..];
        while let Some(Part { subflow: first, .. }) = rest.first() {
            let (these, others) = rest.split_at(self.even_split(src, rest));
            rest = others;
            let id = self.new_flow(src, these);
            self.messages[first.tag as usize].subflows += these.len() as u32;
            these.iter().for_each(|one| self.count_queue_pair(src, &one.subflow));
            let delay = these.iter().map(|one| one.subflow.delay).min().unwrap_or(Time::ZERO);
            let delay = delay.max(self.gap_of(src, first.carrier));
            if delay > Time::ZERO {
                self.agenda.push(self.now + delay, What::Start(id));
            } else {
                self.begin(id);
            }
        }
        parts.clear();
        self.parts = parts;
    }

    fn count_queue_pair(&mut self, src: HostId, subflow: &Subflow) {
        let host = &mut self.hosts[src.0 as usize];
        let (is_active, is_known) = match subflow.carrier.persistent() {
            None => (false, false),
            Some(pair) => match host.queue_pairs.entry(pair) {
                Entry::Occupied(mut open) => {
                    *open.get_mut() += 1;
                    (*open.get() > 1, true)
                }
                Entry::Vacant(place) => {
                    place.insert(1);
                    (false, false)
                }
            },
        };
        host.established += u32::from(!is_known);
        host.active += u32::from(!is_active);
        host.most = host.most.max(host.active);
    }

    /// All bytes of a subflow have crossed their links, and are there at `there`.
    pub(crate) fn arrives(&mut self, subflow: &Subflow, there: Time) {
        let message = &mut self.messages[subflow.tag as usize];
        message.open -= subflow.bytes;
        message.received = message.received.max(there);
        if message.open == 0 {
            self.agenda.push(message.received, What::Received(subflow.tag));
        }
    }

    /// All bytes of a subflow have left its NIC: what waits for that goes on.
    pub(crate) fn sent_all(&mut self, src: HostId, subflow: &Subflow) {
        let message = &mut self.messages[subflow.tag as usize];
        message.unsent -= subflow.bytes;
        if message.unsent == 0
            && let Some(owner) = message.owner
        {
            self.rank_message_left(owner);
        }
        if let Some(pair) = subflow.carrier.persistent() {
            let planner = &mut self.hosts[src.0 as usize].planner;
            let next = planner.next(self.now, pair, self.config.fabric);
            self.subflows.extend(next);
            self.open(src);
        }
    }

    /// The last acknowledgement of a flow is in.
    pub(crate) fn acknowledged(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        let Subflow { tag, bytes, carrier, .. } = flow.subflow;
        let (src, queue_pairs) = (flow.src, flow.subflows);
        let host = &mut self.hosts[src.0 as usize];
        let info = FlowInfo::from(&flow.subflow);
        host.planner.sent(self.now, &info, self.config.fabric, &mut self.subflows);
        let still = match carrier.persistent() {
            None => 0,
            Some(pair) => {
                let open = host.queue_pairs.get_mut(&pair).expect("it is open");
                *open -= 1;
                *open
            }
        };
        host.active -= if still == 0 { queue_pairs } else { 0 };
        self.free_flows.push(id);
        let message = &mut self.messages[tag as usize];
        message.unacknowledged -= bytes;
        if message.unacknowledged == 0 {
            message.sent = self.now;
            self.sent(tag);
        }
        self.totals.end = self.totals.end.max(self.now);
        if !self.subflows.is_empty() {
            self.open(src);
        }
    }

    /// A receiver has all of a message.
    pub(crate) fn received(&mut self, tag: u32) {
        let message = self.messages[tag as usize];
        self.totals.cct = self.totals.cct.max(self.now);
        match message.owner {
            None => self.end_reached(message.name, When::Received),
            Some(owner) => self.rank_received(&message, owner),
        }
    }

    /// A sender has the last acknowledgement of a message: nobody asks for it any more.
    fn sent(&mut self, tag: u32) {
        let message = self.messages[tag as usize];
        self.free_messages.push(tag);
        let result = MessageResult {
            posted: message.posted,
            received: message.received,
            sent: message.sent,
            subflows: message.subflows,
            ..MessageResult::default()
        };
        match message.owner {
            None => {
                self.results[message.name] = result;
                self.end_reached(message.name, When::Sent);
            }
            Some(owner) => self.rank_sent(&message, owner, result),
        }
    }

    fn end_reached(&mut self, id: MessageId, when: When) {
        let messages = self.config.workload.messages();
        let observer = match when {
            When::Sent => messages[id].src,
            When::Received => messages[id].dst,
        };
        for number in 0..self.dependents.waiting(id, when).len() {
            let next = self.dependents.waiting(id, when)[number];
            let unmet = &mut self.unmet[next.0 as usize];
            *unmet -= 1;
            if *unmet == 0 {
                let is_far = messages[next].src != observer;
                let news = if is_far { self.config.fabric.min_delay() } else { Time::ZERO };
                self.agenda.push(self.now + news + messages[next].start, What::Post(next));
            }
        }
    }
}
