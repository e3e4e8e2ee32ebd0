//! What a rank does in an operation: sends and receives, and what each of them waits for.
//!
//! Algorithms are those of `weft_workload::collective`, the same that are simulated; `collective`
//! drives them. Tasks are listed in an order in which they could be done one after the other;
//! [`Builder`] finds out which really depend on each other, by the memory that they touch. So all
//! that does not is under way at once, chunks follow each other through the ranks, and nothing is
//! overwritten that may have to be sent again.
//!
//! A receive may have to wait for a send that reads the same bytes, but never for one of the same
//! step: a send is over only when the other end has received, and that may wait for our receive.
//!
//! Messages from one rank to another match in the order of their tasks. All ranks cut buffers
//! alike, so both ends agree on every length.

mod collective;
mod overlap;
mod rooted;

use crate::call::{Call, Operation};
use crate::memory::Span;
use overlap::Overlap;
use std::collections::VecDeque;
use std::ops::Range;
use weft_workload::collective::Call as Collective;
use weft_workload::collective::{Algorithm, Blocks, Direct, HalvingDoubling, Ring, Servers};

/// How operations are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Most bytes of a message of a ring or a chain; a multiple of 64.
    pub chunk: usize,
    /// Up to so many bytes an all-reduce of a power of two of ranks is done by halving and
    /// doubling: fewer steps, which is what counts then.
    pub small: usize,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { chunk: 512 << 10, small: 64 << 10 }
    }
}

/// Chunks are whole multiples of this, whatever their elements.
const WORD: usize = 64;
/// Receives that have room at a time, where what comes in is reduced; more if an algorithm needs it.
const SLOTS: usize = 16;

/// What is done with what came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combine {
    pub(crate) from: Span,
    pub(crate) into: Span,
    /// Whether that was the last rank's part, after which an average is divided.
    pub(crate) is_last: bool,
}

/// One message, at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Send { to: u32, from: Span },
    Receive { from: u32, into: Span, then: Option<Combine> },
}

/// All that a rank does.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// What it copies before anything else.
    pub(crate) copies: Vec<(Span, Span)>,
    /// Messages.
    pub(crate) actions: Vec<Action>,
    /// For each action, the earlier ones that must be over before it begins.
    pub(crate) needs: Vec<Vec<u32>>,
    /// Bytes for what comes in: the segment after those of the call.
    pub(crate) room: usize,
}

/// Lists tasks.
pub(crate) struct Builder {
    schedule: Schedule,
    /// Which tasks touched what, for each segment of the call and the room.
    touched: Vec<Overlap>,
    /// Slots of the room that nothing lies in, the longest unused first; and how many there are.
    free: VecDeque<usize>,
    /// Those that are free from the next turn on.
    given_back: Vec<usize>,
    slots: usize,
    /// What sends wait for, whatever they read.
    holding: Range<u32>,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) chunk: usize,
    /// Where inputs end and outputs begin, among segments.
    pub(crate) inputs: usize,
    lens: Vec<usize>,
    /// Bytes of an element.
    element: usize,
}

impl Builder {
    fn new(call: &Call, rank: u32, ranks: u32, tuning: Tuning) -> Builder {
        let lens: Vec<usize> = call.inputs.iter().chain(&call.outputs).map(|s| s.len).collect();
        let largest = lens.iter().copied().max().unwrap_or(0).max(1);
        Builder {
            schedule: Schedule::default(),
            touched: (0..=lens.len()).map(|_| Overlap::default()).collect(),
            free: (0..SLOTS).collect(),
            given_back: Vec::new(),
            slots: SLOTS,
            holding: 0..0,
            rank,
            ranks,
            chunk: tuning.chunk.min(largest.next_multiple_of(WORD)),
            inputs: call.inputs.len(),
            lens,
            element: call.element.bytes(),
        }
    }

    /// All of input `index`.
    fn input(&self, index: u32) -> Span {
        Span { segment: index as usize, start: 0, len: self.lens[index as usize] }
    }
    /// All of output `index`.
    fn output(&self, index: u32) -> Span {
        let segment = self.inputs + index as usize;
        Span { segment, start: 0, len: self.lens[segment] }
    }
    /// The rank `distance` after this one, counted round; and before it.
    fn ahead(&self, distance: u32) -> u32 {
        ((u64::from(self.rank) + u64::from(distance)) % u64::from(self.ranks)) as u32
    }
    fn behind(&self, distance: u32) -> u32 {
        self.ahead(self.ranks - distance % self.ranks)
    }
    /// Part `index` of `count` of a span: whole elements, the first ones an element longer where
    /// they do not divide.
    fn part(&self, of: Span, index: u32, count: u32) -> Span {
        let (blocks, index) =
            (Blocks::new((of.len / self.element) as u64, count), u64::from(index));
        let before = blocks.sum(0, 1, index) as usize * self.element;
        Span { start: of.start + before, len: blocks.len(index) as usize * self.element, ..of }
    }
    /// Room for something that comes in, until it is given back.
    fn slot(&mut self, len: usize) -> Span {
        let slot = self.free.pop_front().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        let start = slot * self.chunk;
        self.schedule.room = self.schedule.room.max(start + len.next_multiple_of(8));
        Span { segment: self.lens.len(), start, len }
    }
    /// Takes a slot back that only receives use: tasks listed so far may still do so.
    fn give_back(&mut self, slot: Span) {
        self.free.push_back(slot.start / self.chunk);
    }
    /// The same of one that a send reads, for which no receive of its turn may wait.
    fn give_back_after_turn(&mut self, slot: Span) {
        self.given_back.push(slot.start / self.chunk);
    }
    /// Sends and receives that do not depend on each other are over, or go on.
    fn begin_turn(&mut self) {
        self.free.extend(self.given_back.drain(..));
    }
    /// How many tasks there are.
    fn tasks(&self) -> u32 {
        self.schedule.actions.len() as u32
    }
    /// All sends that are listed from now on wait for these tasks.
    fn hold_sends_for(&mut self, tasks: Range<u32>) {
        self.holding = tasks;
    }

    fn copy(&mut self, from: Span, to: Span) {
        if from.len > 0 {
            self.schedule.copies.push((from, to));
        }
    }
    fn send(&mut self, to: u32, from: Span) {
        self.add(Action::Send { to, from }, &[from], &[]);
    }
    fn receive(&mut self, from: u32, into: Span) {
        self.add(Action::Receive { from, into, then: None }, &[], &[into]);
    }
    /// Receives into `room`, then reduces.
    fn reduce(&mut self, from: u32, room: Span, then: Combine) {
        let action = Action::Receive { from, into: room, then: Some(then) };
        self.add(action, &[then.from], &[room, then.into]);
    }
    fn add(&mut self, action: Action, reads: &[Span], writes: &[Span]) {
        let (Action::Send { from: span, .. } | Action::Receive { into: span, .. }) = action;
        if span.len == 0 {
            return;
        }
        let task = self.schedule.actions.len() as u32;
        let mut needs = match action {
            Action::Send { .. } => self.holding.clone().collect(),
            Action::Receive { .. } => Vec::new(),
        };
        for span in reads {
            self.touched[span.segment].read(span.start..span.start + span.len, task, &mut needs);
        }
        for span in writes {
            self.touched[span.segment].write(span.start..span.start + span.len, task, &mut needs);
        }
        needs.retain(|need| *need != task);
        needs.sort_unstable();
        needs.dedup();
        self.schedule.actions.push(action);
        self.schedule.needs.push(needs);
    }
}

/// A span in chunks of at most so many bytes, as equal as whole words allow.
fn chunks(of: Span, chunk: usize) -> impl Iterator<Item = Span> {
    let count = of.len.div_ceil(chunk.max(1)).max(1);
    let each = of.len.div_ceil(count).next_multiple_of(WORD).min(chunk);
    (0..of.len).step_by(each.max(1)).map(move |at| Span {
        start: of.start + at,
        len: each.min(of.len - at),
        ..of
    })
}

/// What `rank` does in a call that has been checked. Sends and receives of single messages are
/// no schedules.
pub(crate) fn of(call: &Call, rank: u32, ranks: u32, tuning: Tuning) -> Schedule {
    by(&usual(call, ranks, tuning), call, rank, ranks, tuning)
}

/// The algorithm that a call is done by, if its operation is a collective of `weft_workload`.
fn usual(call: &Call, ranks: u32, tuning: Tuning) -> Algorithm {
    match call.operation {
        Operation::AllToAll => Algorithm::Direct(Direct { window: None, skew: None }),
        Operation::AllReduce if ranks.is_power_of_two() && call.outputs[0].len <= tuning.small => {
            Algorithm::HalvingDoubling(HalvingDoubling)
        }
        _ => Algorithm::Ring(Ring { channels: Some(1), chunks: 1 }),
    }
}

/// The same by an algorithm that can do it.
pub(crate) fn by(
    algorithm: &Algorithm,
    call: &Call,
    rank: u32,
    ranks: u32,
    tuning: Tuning,
) -> Schedule {
    let mut builder = Builder::new(call, rank, ranks, tuning);
    match call.operation {
        Operation::Gather { root } => rooted::gather(&mut builder, root),
        Operation::Scatter { root } => rooted::scatter(&mut builder, root),
        Operation::Barrier => rooted::barrier(&mut builder),
        other => {
            if let Some((operation, root)) = other.collective() {
                let call = Collective { operation, ranks, bytes: 0, root, servers: Servers::EACH };
                collective::carry_out(&mut builder, algorithm, &call);
            }
        }
    }
    builder.schedule
}
