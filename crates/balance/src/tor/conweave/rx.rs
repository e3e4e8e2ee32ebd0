//! The leaf of receivers: what it holds until the tail has come (paper, section 3.3; the code
//! behind it for the timers).
//!
//! Invariant: a flow has at most one queue, of packets of one epoch and of phase 1, in the order in
//! which they came; every queue has a time at which it is let go.

use super::{ControlMessage, Options, Part, Tag, is_later};
use crate::tor::table::Table;
use crate::tor::{FlowId, TorCounts};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use weft_units::Time;

/// A packet that came from another leaf.
#[derive(Clone, Copy, Debug)]
pub struct Came<T> {
    /// Its flow.
    pub flow: FlowId,
    /// What it carries.
    pub tag: Tag,
    /// Whether it met congestion.
    pub marked: bool,
    /// How large it is.
    pub bytes: u32,
    /// Itself, as whoever asks knows it.
    pub item: T,
}

/// The flows to the hosts below a leaf, and what it holds of them.
#[derive(Clone, Debug)]
pub struct Receiving<T> {
    options: Options,
    flows: Table<Flow>,
    /// Never iterated.
    queues: FxHashMap<FlowId, Queue<T>>,
    /// At least one time for every queue, which is not later than its own.
    timers: BinaryHeap<Reverse<(Time, FlowId)>>,
    bytes: u64,
    packets: u64,
    counts: TorCounts,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    epoch: u32,
    /// Whether phase 1 need not wait, and if so whether that was guessed.
    order: Order,
    /// When the last packet of phase 0 left the other leaf, and when it came.
    old: Option<(Time, Time)>,
    /// When the tail left the other leaf, once something said so.
    tail: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The tail has not come.
    Open,
    /// It has.
    Closed,
    /// It should have, and its time is over.
    Guessed,
}

#[derive(Clone, Debug)]
struct Queue<T> {
    items: VecDeque<Held<T>>,
    /// When it is let go.
    until: Time,
}

#[derive(Clone, Copy, Debug)]
struct Held<T> {
    item: T,
    bytes: u32,
    since: Time,
}

impl<T> Receiving<T> {
    /// For one leaf.
    pub fn new(options: Options) -> Receiving<T> {
        // A flow is silent here for as long as at the other leaf, and for as long as it takes to
        // come here: the other leaf has forgotten it first.
        let idle = Time(options.expiry.0 * 2);
        Receiving {
            options,
            flows: Table::new(idle),
            queues: FxHashMap::default(),
            timers: BinaryHeap::new(),
            bytes: 0,
            packets: 0,
            counts: TorCounts::default(),
        }
    }

    /// As [`super::Leaf::receive`].
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        came: Came<T>,
        out: &mut Vec<T>,
    ) -> [Option<ControlMessage>; 2] {
        let Came { flow, tag, .. } = came;
        let fresh = Flow { epoch: tag.epoch, order: Order::Open, old: None, tail: Time::ZERO };
        let mut state = match self.flows.touch(flow, now) {
            Some(state) if is_later(state.epoch, tag.epoch) => {
                out.push(came.item);
                return [None, None];
            }
            Some(state) if state.epoch == tag.epoch => *state,
            Some(_) => {
                self.let_go(now, flow, out);
                fresh
            }
            None => {
                self.let_go(now, flow, out);
                *self.flows.insert(flow, now, fresh)
            }
        };
        let message = [
            came.marked.then_some(ControlMessage::Notify(tag.path)),
            match tag.part {
                Part::Init => Some(ControlMessage::Reply(tag.epoch)),
                Part::Tail => Some(ControlMessage::Clear(tag.epoch)),
                Part::Old | Part::New => None,
            },
        ];
        self.place(now, came, &mut state, out);
        *self.flows.get(flow).expect("it is known") = state;
        message
    }

    /// Delivers a packet of the present epoch of its flow, or holds it.
    #[inline]
    fn place(&mut self, now: Time, came: Came<T>, state: &mut Flow, out: &mut Vec<T>) {
        let Came { flow, tag, .. } = came;
        if tag.part == Part::New {
            state.tail = tag.tail;
            match state.order {
                Order::Open => self.hold(now, came, state),
                Order::Closed | Order::Guessed => out.push(came.item),
            }
            return;
        }
        state.old = Some((tag.sent, now));
        out.push(came.item);
        // What was let go should have waited for this one.
        if state.order == Order::Guessed {
            self.counts.premature += 1;
            state.order = Order::Closed;
        }
        if tag.part == Part::Tail {
            state.order = Order::Closed;
            self.let_go(now, flow, out);
        } else if self.queues.contains_key(&flow) {
            let until = now + self.left(state.tail, tag.sent);
            self.set_timer(flow, until);
        }
    }

    /// How long after a packet that left the other leaf at `sent` comes a tail that left at `tail`,
    /// and how late that may be.
    fn left(&self, tail: Time, sent: Time) -> Time {
        sent.until(tail) + self.options.extra_flush
    }

    fn hold(&mut self, now: Time, came: Came<T>, state: &Flow) {
        let Came { flow, bytes, item, .. } = came;
        let until = match state.old {
            Some((sent, came)) => came + self.left(state.tail, sent),
            None => now + self.options.default_wait + self.options.extra_flush,
        };
        let is_first = !self.queues.contains_key(&flow);
        let queue = self.queues.entry(flow);
        let queue = queue.or_insert_with(|| Queue { items: VecDeque::new(), until: Time::MAX });
        queue.items.push_back(Held { item, bytes, since: now });
        self.bytes += u64::from(bytes);
        self.packets += 1;
        self.counts.held += 1;
        self.counts.held_bytes = self.counts.held_bytes.max(self.bytes);
        self.counts.queues = self.counts.queues.max(self.queues.len() as u64);
        if is_first {
            self.set_timer(flow, until.max(now));
        }
    }

    /// The queue of `flow` is to be let go at `until`.
    fn set_timer(&mut self, flow: FlowId, until: Time) {
        let queue = self.queues.get_mut(&flow).expect("it has one");
        // A later time is found when the earlier one has come.
        if until < queue.until {
            self.timers.push(Reverse((until, flow)));
        }
        queue.until = until;
    }

    /// Lets go what is held of `flow`, if there is something.
    fn let_go(&mut self, now: Time, flow: FlowId, out: &mut Vec<T>) {
        let Some(queue) = self.queues.remove(&flow) else { return };
        for Held { item, bytes, since } in queue.items {
            let held = now - since;
            self.counts.held_for += held;
            self.counts.longest = self.counts.longest.max(held);
            self.bytes -= u64::from(bytes);
            self.packets -= 1;
            out.push(item);
        }
    }

    /// As [`super::Leaf::deadline`].
    pub fn deadline(&mut self) -> Option<Time> {
        while let Some(Reverse((at, flow))) = self.timers.peek().copied() {
            match self.queues.get(&flow) {
                Some(queue) if queue.until == at => return Some(at),
                Some(queue) if queue.until > at => {
                    self.timers.pop();
                    self.timers.push(Reverse((queue.until, flow)));
                }
                _ => {
                    self.timers.pop();
                }
            }
        }
        None
    }

    /// As [`super::Leaf::time`].
    pub fn time(&mut self, now: Time, out: &mut Vec<T>) {
        while let Some(at) = self.deadline()
            && at <= now
        {
            let Reverse((_, flow)) = self.timers.pop().expect("it has just been looked at");
            self.counts.flushes += 1;
            self.let_go(now, flow, out);
            if let Some(state) = self.flows.get(flow) {
                state.order = Order::Guessed;
            }
        }
    }

    /// Packets that it holds.
    pub fn holding(&self) -> u64 {
        self.packets
    }
    /// What it took so far: without control packets and re-routes.
    pub fn counts(&self) -> TorCounts {
        TorCounts { flows: self.flows.most() as u64, ..self.counts }
    }
}
