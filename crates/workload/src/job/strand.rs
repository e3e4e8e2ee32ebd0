//! A collective at one of its ranks: strands that send and wait.

use super::ahead::Ahead;
use crate::collective::{Algorithm, Call, Step};

/// A rank's part in a collective that has begun.
#[derive(Clone, Debug)]
pub(super) struct Part {
    algorithm: Algorithm,
    call: Call,
    /// Which rank of the group it is.
    place: u32,
    strands: Vec<Strand>,
    /// Strands that are not over.
    open: u32,
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
}

impl Part {
    pub(super) fn new(algorithm: Algorithm, call: Call, place: u32) -> Part {
        let open = algorithm.strands(&call);
        Part { algorithm, call, place, strands: vec![Strand::default(); open as usize], open }
    }
    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }
    /// Runs all strands as far as they come.
    pub(super) fn begin(&mut self, out: &mut dyn FnMut(Sending)) {
        for strand in 0..self.strands.len() as u32 {
            self.advance(strand, out);
        }
    }
    /// Receipt `number` of `strand` has come, perhaps before its turn.
    pub(super) fn received(&mut self, strand: u32, number: u32, out: &mut dyn FnMut(Sending)) {
        self.strands[strand as usize].received.put(number);
        self.advance(strand, out);
    }
    /// Send `number` of `strand` has been acknowledged.
    pub(super) fn sent(&mut self, strand: u32, number: u32, out: &mut dyn FnMut(Sending)) {
        self.strands[strand as usize].acknowledged.put(number);
        self.advance(strand, out);
    }
    /// The ranks of the group that its strands wait for, with their strands.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = (u32, Step)> + '_ {
        let open = (0..).zip(&self.strands).filter(|(_, strand)| !strand.is_over);
        open.filter_map(|(number, strand)| {
            let step = self.algorithm.step(&self.call, self.place, number, strand.at)?;
            Some((number, step))
        })
    }

    fn advance(&mut self, number: u32, out: &mut dyn FnMut(Sending)) {
        let strand = &mut self.strands[number as usize];
        if strand.is_over {
            return;
        }
        loop {
            match self.algorithm.step(&self.call, self.place, number, strand.at) {
                None => {
                    strand.is_over = true;
                    self.open -= 1;
                    return;
                }
                // What is nothing needs no message, and nobody waits for it.
                Some(Step::Send { bytes: 0, .. }) => {
                    strand.acknowledged.put(strand.posted);
                    strand.posted += 1;
                }
                Some(Step::Send { to, bytes, strand: target, receipt }) => {
                    let sending = strand.posted;
                    strand.posted += 1;
                    out(Sending { to, bytes, strand: number, number: sending, target, receipt });
                }
                Some(Step::Receive { bytes: 0, .. }) => strand.received.skip(),
                Some(Step::Receive { .. }) => {
                    if !strand.received.take() {
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
