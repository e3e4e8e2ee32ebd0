//! A collective at one of its ranks: strands that send and wait, chunk after chunk.
//!
//! A strand is numbered through all chunks: strand `s` of chunk `c` is `c * width + s`, where a
//! chunk has `width` of them.

use super::AwaitSends;
use super::ahead::Ahead;
use super::role::Role;
use crate::collective::{Call, Step};

/// A rank's part in a collective.
#[derive(Clone, Debug)]
pub(super) struct Part {
    role: Role,
    /// The chunk that it is at, and what is done with it.
    chunk: u32,
    call: Call,
    has_begun: bool,
    strands: Vec<Strand>,
    /// Strands that are not over.
    open: u32,
    /// Receipts for later chunks: strand and number.
    later: Vec<(u32, u32)>,
}

#[derive(Clone, Debug, Default)]
struct Strand {
    /// The step that it stands at.
    at: u32,
    is_over: bool,
    /// How many sends lie behind it.
    posted: u32,
    received: Ahead,
    acknowledged: Ahead,
    /// How many sends have been acknowledged.
    acknowledgements: u32,
}

impl Strand {
    fn acknowledge(&mut self, number: u32) {
        self.acknowledged.put(number);
        self.acknowledgements += 1;
    }
    fn is_acknowledged(&self) -> bool {
        self.acknowledgements == self.posted
    }
    /// Whether it may not go on from a receive for what it has sent.
    fn holds_back(&self, await_sends: AwaitSends) -> bool {
        await_sends == AwaitSends::Step && !self.is_acknowledged()
    }
}

/// A message that a strand posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    /// Which rank of the group receives it.
    pub(super) to: u32,
    pub(super) bytes: u64,
    /// Whose send it is, and which.
    pub(super) strand: u32,
    pub(super) number: u32,
    /// Whose receipt it will be, and which.
    pub(super) target: u32,
    pub(super) receipt: u32,
    /// Whether its receiver adds it to what it has.
    pub(super) reduces: bool,
}

impl Part {
    /// Before its first chunk.
    pub(super) fn new(role: Role) -> Part {
        let call = role.chunk(0);
        let open = role.algorithm.strands(&call);
        let strands = vec![Strand::default(); open as usize];
        Part { role, chunk: 0, call, has_begun: false, strands, open, later: Vec::new() }
    }
    /// Whether the chunk is done.
    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }
    /// Goes on to the next chunk, which is not begun by that. Returns whether there is one.
    pub(super) fn turn_to_next(&mut self) -> bool {
        if self.chunk + 1 == self.role.chunks {
            return false;
        }
        self.chunk += 1;
        self.call = self.role.chunk(self.chunk);
        self.has_begun = false;
        self.open = self.strands.len() as u32;
        self.strands.fill(Strand::default());
        for (strand, number) in std::mem::take(&mut self.later) {
            self.note(strand, number);
        }
        true
    }
    /// Begins the chunk: runs all strands as far as they come.
    pub(super) fn begin(&mut self, out: &mut dyn FnMut(Sending)) {
        self.has_begun = true;
        for strand in 0..self.strands.len() as u32 {
            self.advance(strand, out);
        }
    }
    /// Receipt `number` of `strand` has come, perhaps before its turn.
    pub(super) fn received(&mut self, strand: u32, number: u32, out: &mut dyn FnMut(Sending)) {
        if let Some(strand) = self.note(strand, number) {
            self.advance(strand, out);
        }
    }
    /// Send `number` of `strand` has been acknowledged.
    pub(super) fn sent(&mut self, strand: u32, number: u32, out: &mut dyn FnMut(Sending)) {
        // Acknowledgements may come after the end of their chunk.
        let Some((strand, 0)) = self.locate(strand) else { return };
        self.strands[strand as usize].acknowledge(number);
        self.advance(strand, out);
    }
    /// What its strands wait for, each one step: a receive, or the send that has not been
    /// acknowledged.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = Step> + '_ {
        let open = (0..).zip(&self.strands).filter(|(_, strand)| !strand.is_over);
        open.filter_map(|(number, strand)| {
            let Role { algorithm, place, await_sends, .. } = self.role;
            let step = |at| algorithm.step(&self.call, place, number, at);
            let first = || (0..strand.posted).find(|send| !strand.acknowledged.has(*send));
            let awaited = match step(strand.at) {
                Some(Step::Sent(send)) => send,
                Some(Step::Receive { .. }) if strand.holds_back(await_sends) => first()?,
                Some(other) => return Some(other),
                None => first()?,
            };
            let sends = (0..strand.at).filter_map(step);
            sends.filter(|step| matches!(step, Step::Send { .. })).nth(awaited as usize)
        })
    }

    /// Which strand of its chunk `strand` is, and how many chunks ahead that is; `None`: of one
    /// that is done.
    fn locate(&self, strand: u32) -> Option<(u32, u32)> {
        let width = self.strands.len() as u32;
        let ahead = (strand / width).checked_sub(self.chunk)?;
        Some((strand % width, ahead))
    }
    /// Notes a receipt; returns the strand that it is for, unless that has to wait for its chunk.
    fn note(&mut self, strand: u32, number: u32) -> Option<u32> {
        match self.locate(strand)? {
            (strand, 0) => {
                self.strands[strand as usize].received.put(number);
                Some(strand)
            }
            _ => {
                self.later.push((strand, number));
                None
            }
        }
    }

    fn advance(&mut self, number: u32, out: &mut dyn FnMut(Sending)) {
        let Role { algorithm, place, await_sends, .. } = self.role;
        let first = self.chunk * self.strands.len() as u32;
        let strand = &mut self.strands[number as usize];
        if strand.is_over || !self.has_begun {
            return;
        }
        loop {
            match algorithm.step(&self.call, place, number, strand.at) {
                None if await_sends != AwaitSends::Never && !strand.is_acknowledged() => return,
                None => {
                    strand.is_over = true;
                    self.open -= 1;
                    return;
                }
                // What is nothing needs no message, and nobody waits for it.
                Some(Step::Send { bytes: 0, .. }) => {
                    strand.acknowledge(strand.posted);
                    strand.posted += 1;
                }
                Some(Step::Send { to, bytes, strand: target, receipt }) => {
                    let sending = strand.posted;
                    strand.posted += 1;
                    out(Sending {
                        to,
                        bytes,
                        strand: first + number,
                        number: sending,
                        target: first + target,
                        receipt,
                        reduces: algorithm.reduces(&self.call, target, receipt),
                    });
                }
                Some(Step::Receive { bytes: 0, .. }) => strand.received.skip(),
                Some(Step::Receive { .. }) => {
                    if strand.holds_back(await_sends) || !strand.received.take() {
                        return;
                    }
                }
                Some(Step::Sent(send)) => {
                    if !strand.acknowledged.has(send) {
                        return;
                    }
                }
            }
            strand.at += 1;
        }
    }
}
