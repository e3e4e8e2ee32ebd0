//! What a rank does in an operation: sends and receives, and what each of them waits for.
//!
//! One file an algorithm. An algorithm lists its tasks in an order in which they could be done one
//! after the other; [`Builder`] finds out which really depend on each other, by the memory that
//! they touch. So all that does not is under way at once, chunks follow each other through the
//! ranks, and nothing is overwritten that may have to be sent again.
//!
//! A receive may have to wait for a send that reads the same bytes, but never for one of the same
//! step: a send is over only when the other end has received, and that may wait for our receive.
//!
//! Messages from one rank to another match in the order of their tasks. All ranks cut buffers
//! alike, so both ends agree on every length.

mod around;
mod chain;
mod direct;
mod doubling;
mod overlap;

use crate::call::{Call, Operation};
use crate::memory::Span;
use overlap::Overlap;

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
/// Receives that have room at a time, where what comes in is reduced.
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
    slots: usize,
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
            slots: 0,
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
    /// Lengths of a buffer's parts, one for each rank: whole elements, the first ones an element
    /// longer where they do not divide.
    fn parts(&self, len: usize) -> Vec<usize> {
        let (elements, ranks) = (len / self.element, self.ranks as usize);
        let long = elements % ranks;
        (0..ranks)
            .map(|part| (elements / ranks + usize::from(part < long)) * self.element)
            .collect()
    }
    /// Room for something that comes in. It is reused: nothing may be read from it after the next
    /// [`SLOTS`] calls.
    fn slot(&mut self, len: usize) -> Span {
        let start = self.slots % SLOTS * self.chunk;
        self.slots += 1;
        self.schedule.room = self.schedule.room.max(start + len.next_multiple_of(8));
        Span { segment: self.lens.len(), start, len }
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
        let mut needs = Vec::new();
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
    let mut builder = Builder::new(call, rank, ranks, tuning);
    match call.operation {
        Operation::AllReduce => {
            let len = builder.output(0).len;
            if ranks.is_power_of_two() && len <= tuning.small {
                doubling::all_reduce(&mut builder);
            } else {
                around::all_reduce(&mut builder);
            }
        }
        Operation::AllGather => around::all_gather(&mut builder),
        Operation::ReduceScatter => around::reduce_scatter(&mut builder),
        Operation::AllToAll => direct::all_to_all(&mut builder),
        Operation::Broadcast { root } => chain::broadcast(&mut builder, root),
        Operation::Reduce { root } => chain::reduce(&mut builder, root),
        Operation::Gather { root } => direct::gather(&mut builder, root),
        Operation::Scatter { root } => direct::scatter(&mut builder, root),
        Operation::Barrier => direct::barrier(&mut builder),
        Operation::Send { .. } | Operation::Receive { .. } | Operation::ReceiveAny { .. } => {}
    }
    builder.schedule
}
