//! A collective at one of its ranks: sequences that send and wait, chunk after chunk.
//!
//! A sequence is numbered through all chunks: sequence `s` of chunk `c` is `c * width + s`, where a
//! chunk has `width` of them.

use super::AwaitSends;
use super::ahead::Ahead;
use super::role::Role;
use crate::collective::{Call, Step, Switched};

/// A rank's part in a collective.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    role: Role<'a>,
    /// The chunk that it is at, and what is done with it.
    chunk: u32,
    call: Call,
    has_begun: bool,
    sequences: Vec<Sequence>,
    /// Strands that are not over.
    open: u32,
    /// Receipts for later chunks: sequence and number.
    later: Vec<(u32, u32)>,
    /// Where sequences pause, if they do, and whether that is known.
    pause: Option<Pause>,
    is_paused: bool,
}

/// A phase of which only the first rounds are done as messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    /// Which phase.
    pub(super) phase: u32,
    /// The rounds that lie behind a sequence when it pauses, those of other phases among them.
    pub(super) rounds: u32,
}

#[derive(Clone, Debug, Default)]
struct Sequence {
    /// The step that it stands at.
    at: u32,
    is_over: bool,
    /// It takes part in what switches do at its step.
    has_joined: bool,
    /// How many sends lie behind it.
    posted: u32,
    received: Ahead,
    acknowledged: Ahead,
    /// How many sends have been acknowledged.
    acknowledgements: u32,
    /// Receipts below are expected, as far as has been asked.
    expected: u32,
}

impl Sequence {
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

/// What a sequence begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Send(Sending),
    Join(Joining),
}

/// A sequence's part in what switches do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joining {
    pub(super) part: Switched,
    /// Whose receipt what comes of it is, and which.
    pub(super) sequence: u32,
    pub(super) receipt: u32,
}

/// A message that a sequence posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    /// Which rank of the group receives it.
    pub(super) to: u32,
    pub(super) bytes: u64,
    /// Whose send it is, and which.
    pub(super) sequence: u32,
    pub(super) number: u32,
    /// Whose receipt it will be, and which.
    pub(super) target: u32,
    pub(super) receipt: u32,
    /// Whether its receiver adds it to what it has.
    pub(super) reduces: bool,
}

impl<'a> Part<'a> {
    /// Before its first chunk.
    pub(super) fn new(role: Role<'a>) -> Part<'a> {
        let call = role.chunk(0);
        let open = role.steps.sequences(&call);
        let sequences = vec![Sequence::default(); open as usize];
        let (has_begun, is_paused) = (false, false);
        let (later, pause) = (Vec::new(), None);
        Part { role, chunk: 0, call, has_begun, sequences, open, later, pause, is_paused }
    }
    /// Goes on behind its first `rounds` rounds, those of phases that are over, up to `pause`.
    pub(super) fn resume(&mut self, rounds: u32, pause: Option<Pause>) {
        (self.pause, self.is_paused) = (pause, false);
        self.open = self.sequences.len() as u32;
        for sequence in &mut self.sequences {
            (sequence.at, sequence.is_over) = (2 * rounds, false);
            sequence.received.skip_to(rounds);
        }
    }
    /// Where it pauses, if it does: that is known from then on.
    pub(super) fn take_pause(&mut self) -> Option<Pause> {
        self.is_paused = self.pause.is_some();
        self.pause
    }
    /// Whether it has paused, and that is known.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }
    /// Which rank of the group it is of.
    pub(super) fn place(&self) -> u32 {
        self.role.place
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
        self.open = self.sequences.len() as u32;
        self.sequences.fill(Sequence::default());
        for (sequence, number) in std::mem::take(&mut self.later) {
            self.note(sequence, number);
        }
        true
    }
    /// Begins the chunk, or goes on with it: runs all sequences as far as they come.
    pub(super) fn begin(&mut self, out: &mut dyn FnMut(Deed)) {
        self.has_begun = true;
        for sequence in 0..self.sequences.len() as u32 {
            self.advance(sequence, out);
        }
    }
    /// Receipt `number` of `sequence` has come, perhaps before its turn.
    pub(super) fn received(&mut self, sequence: u32, number: u32, out: &mut dyn FnMut(Deed)) {
        if let Some(sequence) = self.note(sequence, number) {
            self.advance(sequence, out);
        }
    }
    /// Send `number` of `sequence` has been acknowledged.
    pub(super) fn sent(&mut self, sequence: u32, number: u32, out: &mut dyn FnMut(Deed)) {
        // Acknowledgements may come after the end of their chunk.
        let Some((sequence, 0)) = self.locate(sequence) else { return };
        self.sequences[sequence as usize].acknowledge(number);
        self.advance(sequence, out);
    }
    /// Whether `sequence` expects receipt `number`: it needs no other one to get there.
    pub(super) fn expects(&mut self, sequence: u32, number: u32) -> bool {
        let Some((place, ahead)) = self.locate(sequence) else { return true };
        if ahead > 0 || !self.has_begun {
            return false;
        }
        let sequence = &mut self.sequences[place as usize];
        let next = sequence.received.next();
        if sequence.expected <= next && !sequence.is_over {
            let steps = |at| self.role.steps.step(&self.call, self.role.place, place, at);
            let steps = (sequence.at..).map_while(steps);
            let is_receive = |step: &Step| matches!(step, Step::Receive { .. });
            let receives = steps.skip_while(|step| !is_receive(step)).take_while(is_receive);
            sequence.expected = next + receives.count() as u32;
        }
        number < sequence.expected
    }

    /// What its sequences wait for, each one step: a receive, or the send that has not been
    /// acknowledged.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = Step> + '_ {
        let open = (0..).zip(&self.sequences).filter(|(_, sequence)| !sequence.is_over);
        open.filter_map(|(number, sequence)| {
            let Role { steps, place, await_sends, .. } = self.role;
            let step = |at| steps.step(&self.call, place, number, at);
            let first = || (0..sequence.posted).find(|send| !sequence.acknowledged.has(*send));
            let awaited = match step(sequence.at) {
                Some(Step::Sent(send)) => send,
                Some(Step::Receive { .. }) if sequence.holds_back(await_sends) => first()?,
                Some(other) => return Some(other),
                None => first()?,
            };
            let sends = (0..sequence.at).filter_map(step);
            sends.filter(|step| matches!(step, Step::Send { .. })).nth(awaited as usize)
        })
    }

    /// Which sequence of its chunk `sequence` is, and how many chunks ahead that is; `None`: of one
    /// that is done.
    fn locate(&self, sequence: u32) -> Option<(u32, u32)> {
        let width = self.sequences.len() as u32;
        let ahead = (sequence / width).checked_sub(self.chunk)?;
        Some((sequence % width, ahead))
    }
    /// Notes a receipt; returns the sequence that it is for, unless that has to wait for its chunk.
    fn note(&mut self, sequence: u32, number: u32) -> Option<u32> {
        match self.locate(sequence)? {
            (sequence, 0) => {
                self.sequences[sequence as usize].received.put(number);
                Some(sequence)
            }
            _ => {
                self.later.push((sequence, number));
                None
            }
        }
    }

    fn advance(&mut self, number: u32, out: &mut dyn FnMut(Deed)) {
        let Role { steps, place, await_sends, .. } = self.role;
        let first = self.chunk * self.sequences.len() as u32;
        let most = self.pause.map_or(u32::MAX, |pause| 2 * pause.rounds);
        let sequence = &mut self.sequences[number as usize];
        if sequence.is_over || !self.has_begun {
            return;
        }
        loop {
            let at = sequence.at;
            let step = (at < most).then(|| steps.step(&self.call, place, number, at));
            match step.flatten() {
                None if await_sends != AwaitSends::Never && !sequence.is_acknowledged() => return,
                None => {
                    sequence.is_over = true;
                    self.open -= 1;
                    return;
                }
                // What is nothing needs no message, and nobody waits for it.
                Some(Step::Send { payload: 0, .. }) => {
                    sequence.acknowledge(sequence.posted);
                    sequence.posted += 1;
                }
                Some(Step::Send { to, payload: bytes, sequence: target, receipt }) => {
                    let sending = sequence.posted;
                    sequence.posted += 1;
                    out(Deed::Send(Sending {
                        to,
                        bytes,
                        sequence: first + number,
                        number: sending,
                        target: first + target,
                        receipt,
                        reduces: steps.reduces(&self.call, target, receipt),
                    }));
                }
                Some(Step::Receive { payload: 0, .. }) => sequence.received.skip(),
                Some(Step::Receive { .. }) => {
                    if sequence.holds_back(await_sends) || !sequence.received.take() {
                        return;
                    }
                }
                Some(Step::Sent(send)) => {
                    if !sequence.acknowledged.has(send) {
                        return;
                    }
                }
                Some(Step::Switched { payload: 0 }) => sequence.received.skip(),
                Some(Step::Switched { payload: bytes }) => {
                    if !std::mem::replace(&mut sequence.has_joined, true) {
                        let part = steps.switched(&self.call, (place, number, at), bytes);
                        let (sequence, receipt) = (first + number, sequence.received.next());
                        out(Deed::Join(Joining { part, sequence, receipt }));
                    }
                    if !sequence.received.take() {
                        return;
                    }
                    sequence.has_joined = false;
                }
            }
            sequence.at += 1;
        }
    }
}
