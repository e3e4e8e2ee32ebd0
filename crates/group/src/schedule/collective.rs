//! Drives an algorithm of `weft_workload::collective` over real buffers.
//!
//! The algorithm says what a rank sends and receives at each step, in blocks, and whether what comes
//! is reduced or kept. Here is what only real buffers need: which bytes a block is, how they are
//! cut into messages, and where sums lie that may not be made in place.
//!
//! Three rules are those of real buffers alone:
//! - Sequences of a rank are listed one after the other: messages of two ranks match in one order.
//! - A step that waits for an acknowledgement holds back sends only. A send is over when it has been
//!   received, so a receive that waited for one could wait for ever.
//! - Where ranks have blocks of their own, channels share each block. In the simulator they share
//!   the buffer; the two differ by a byte or so where the channels do not divide.

use super::{Builder, Combine, SLOTS, chunks};
use crate::memory::Span;
use std::collections::BTreeMap;
use weft_workload::collective::{Algorithm, Call, Operation, Payload, Step};

/// Lists all tasks of a rank in a call that the algorithm can do; `call.bytes` means nothing.
///
/// # Panics
/// With one line, if the algorithm has switches work: there are none here that could.
pub(super) fn carry_out(b: &mut Builder, algorithm: &Algorithm, call: &Call) {
    assert!(
        !algorithm.is_in_network(),
        "algorithm {:?} has switches add up, which weft.torch cannot; use \"ring\"",
        algorithm.info().name
    );
    // What a rank gives itself.
    match call.operation {
        Operation::AllGather => b.copy(b.input(0), b.output(b.rank)),
        Operation::ReduceScatter => b.copy(b.input(b.rank), b.output(0)),
        Operation::AllToAll => b.copy(b.input(b.rank), b.output(b.rank)),
        _ => {}
    }
    if b.ranks == 1 {
        return;
    }
    let sequences = sequences(algorithm, call, b.rank);
    let mut uses = Vec::new();
    let mut homes = Vec::new();
    for (step, reduces) in sequences.iter().flatten() {
        let (Step::Send { payload, .. } | Step::Receive { payload, .. }) = *step else { continue };
        if homes.is_empty() {
            // All payloads of a call cut the buffer alike.
            homes = self::homes(b, algorithm, call, payload);
            uses = vec![0; homes.len()];
        }
        numbers(payload).for_each(|block| uses[block] += u32::from(*reduces));
    }
    // A load balancer sees all messages of an all-to-all at once, whole, when it spreads them.
    let chunk = if call.operation == Operation::AllToAll { usize::MAX } else { b.chunk };
    let keeps = matches!(call.operation, Operation::ReduceScatter | Operation::Reduce);
    let window = if keeps { SLOTS / 2 } else { usize::MAX };
    let longest = homes.iter().map(|home| home.len.div_ceil(chunk)).max().unwrap_or(0);
    for from in (0..longest.max(1)).step_by(window) {
        let (uses, sums) = (uses.clone(), BTreeMap::new());
        let mut round = Round { b, call, homes: &homes, uses, sums, chunk, from, window };
        sequences.iter().for_each(|sequence| round.list(sequence));
    }
}

/// For each sequence of `rank` its steps, and whether what they carry is reduced by its receiver.
fn sequences(algorithm: &Algorithm, call: &Call, rank: u32) -> Vec<Vec<(Step<Payload>, bool)>> {
    let steps = |own: u32| {
        let mut receipts = 0..;
        let steps = (0..).map_while(move |at| algorithm.step_in_blocks(call, rank, own, at));
        let each = steps.map(move |step| {
            let (sequence, receipt) = match step {
                Step::Send { sequence, receipt, .. } => (sequence, receipt),
                Step::Receive { .. } => (own, receipts.next().expect("a number")),
                Step::Sent(_) => return (step, false),
                Step::Switched { .. } => unreachable!("no switch adds up real buffers"),
            };
            (step, algorithm.reduces(call, sequence, receipt))
        });
        each.collect()
    };
    (0..algorithm.sequences(call)).map(steps).collect()
}

/// The numbers of a payload's blocks, counted through all shares.
fn numbers(payload: Payload) -> impl Iterator<Item = usize> {
    payload.blocks().map(move |block| (payload.share * payload.count + block) as usize)
}

/// Where blocks lie from which a rank sends and which it keeps, by number.
fn homes(b: &Builder, algorithm: &Algorithm, call: &Call, cut: Payload) -> Vec<Span> {
    let Payload { shares, count, .. } = cut;
    let mut homes = Vec::with_capacity((shares * count) as usize);
    for share in 0..shares {
        let part = |whole: Span| b.part(whole, share, shares);
        let blocks = 0..count;
        match call.operation {
            Operation::AllGather => homes.extend(blocks.map(|block| part(b.output(block)))),
            Operation::ReduceScatter | Operation::AllToAll => {
                homes.extend(blocks.map(|block| part(b.input(block))));
            }
            _ => homes.extend(laid_out(b, algorithm, call, part(b.output(0)), count)),
        }
    }
    homes
}

/// Where `count` blocks lie in one buffer or its share: in the order of their positions.
fn laid_out(b: &Builder, algorithm: &Algorithm, call: &Call, of: Span, count: u32) -> Vec<Span> {
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by_key(|block| algorithm.position(call, *block));
    let (mut spans, mut start) = (vec![of; count as usize], of.start);
    for block in order {
        let len = b.part(of, block, count).len;
        spans[block as usize] = Span { start, len, ..of };
        start += len;
    }
    spans
}

/// Some chunks of every block, on their way through all steps.
struct Round<'a> {
    b: &'a mut Builder,
    call: &'a Call,
    homes: &'a [Span],
    /// How often each block is still to be sent or received, to be reduced.
    uses: Vec<u32>,
    /// Where blocks lie that are reduced beside their home, by that.
    sums: BTreeMap<(usize, usize), Span>,
    /// Most bytes of a message.
    chunk: usize,
    /// The first chunk of each block, and how many.
    from: usize,
    window: usize,
}

impl Round<'_> {
    fn list(&mut self, steps: &[(Step<Payload>, bool)]) {
        let (mut sends, mut has_received) = (Vec::new(), true);
        for (step, reduces) in steps {
            match *step {
                Step::Send { to, payload, .. } => {
                    if std::mem::take(&mut has_received) {
                        self.b.begin_turn();
                    }
                    let first = self.b.tasks();
                    for (home, _) in self.messages(payload, *reduces) {
                        self.send(to, home);
                    }
                    sends.push(first..self.b.tasks());
                }
                Step::Receive { from, payload } => {
                    has_received = true;
                    self.receive(from, payload, *reduces);
                }
                Step::Sent(send) => self.b.hold_sends_for(sends[send as usize].clone()),
                Step::Switched { .. } => unreachable!("no switch adds up real buffers"),
            }
        }
        self.b.hold_sends_for(0..0);
        self.b.begin_turn();
    }

    /// The homes of what each message of a step carries; and whether a receipt of it is the last
    /// that is reduced into it.
    fn messages(&mut self, payload: Payload, reduces: bool) -> Vec<(Span, bool)> {
        let mut parts = Vec::with_capacity(payload.many as usize);
        for block in numbers(payload) {
            self.uses[block] -= u32::from(reduces);
            parts.push((self.homes[block], self.uses[block] == 0));
        }
        if payload.many > 1 && self.call.operation == Operation::AllReduce {
            parts = joined(parts);
        }
        let (chunk, from, window) = (self.chunk, self.from, self.window);
        let cut = |(part, is_last)| {
            chunks(part, chunk).skip(from).take(window).map(move |one| (one, is_last))
        };
        parts.into_iter().flat_map(cut).collect()
    }

    fn send(&mut self, to: u32, home: Span) {
        match self.sums.remove(&(home.segment, home.start)) {
            None => self.b.send(to, home),
            Some(sum) => {
                self.b.send(to, sum);
                self.b.give_back_after_turn(sum);
            }
        }
    }

    fn receive(&mut self, from: u32, payload: Payload, reduces: bool) {
        if self.call.operation == Operation::AllToAll {
            // It has a place by its sender, and may have another length than what goes there.
            let into = self.b.part(self.b.output(from), payload.share, payload.shares);
            return self.b.receive(from, into);
        }
        for (home, is_last) in self.messages(payload, reduces) {
            match reduces {
                true => self.reduce(from, home, is_last),
                false => self.b.receive(from, home),
            }
        }
    }

    /// Where sums of a block are made: in place, unless the caller's buffer stays as it is. Then they
    /// are made where the first of them came in, and leave from there.
    fn reduce(&mut self, from: u32, home: Span, is_last: bool) {
        let is_own = match self.call.operation {
            Operation::ReduceScatter => home.segment == self.b.rank as usize,
            Operation::Reduce => self.b.rank == self.call.root,
            _ => true,
        };
        let key = (home.segment, home.start);
        let sum = match (is_own, self.call.operation) {
            (true, Operation::ReduceScatter) => Some(Span { segment: self.b.inputs, ..home }),
            (true, _) => Some(home),
            (false, _) => self.sums.get(&key).copied(),
        };
        let room = self.b.slot(home.len);
        match sum {
            Some(into) => {
                self.b.reduce(from, room, Combine { from: room, into, is_last });
                self.b.give_back(room);
            }
            None => {
                self.b.reduce(from, room, Combine { from: home, into: room, is_last });
                self.sums.insert(key, room);
            }
        }
    }
}

/// Spans in order, those that touch made one.
fn joined(mut parts: Vec<(Span, bool)>) -> Vec<(Span, bool)> {
    parts.sort_by_key(|(part, _)| (part.start, part.len));
    let mut all: Vec<(Span, bool)> = Vec::new();
    for (part, is_last) in parts {
        match all.last_mut() {
            Some((before, was_last)) if before.start + before.len == part.start => {
                assert_eq!(
                    *was_last, is_last,
                    "a message is the last of all its blocks or of none"
                );
                before.len += part.len;
            }
            _ => all.push((part, is_last)),
        }
    }
    all
}
