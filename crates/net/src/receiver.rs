//! A host as a receiver: datagrams to messages, each byte once, and answers.
//!
//! Two nets catch repetitions, each without looking at the other: which packets of a flow have
//! come, and which stretches of a message. The second finds nothing unless there is a bug; it says
//! so in [`Received::overlapping`].
//!
//! An answer leaves from the port of the packet that it answers, so that leaves which map ports to
//! uplinks send it back by the same spine, as the simulator does.

use crate::flow::clock as clock_of;
use crate::report::{Received, ReceivedMessage};
use crate::wire::{Answer, Data};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use weft_units::{HostId, MessageId, Time};

/// Where the contents of messages go.
pub trait Sink {
    /// Bytes of a message from `src`, for the first and only time.
    fn write(&mut self, src: HostId, message: MessageId, offset: u64, bytes: &[u8]);
}

/// An answer that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// To whom.
    pub dst: HostId,
    /// What it says; its port is the one to send it from.
    pub answer: Answer,
}

/// A packet that is to be answered.
#[derive(Clone, Copy, Debug)]
struct Owed {
    seq: u32,
    port: u16,
    clock: u32,
    took: u32,
}

/// Which packets of a flow have come.
#[derive(Debug, Default)]
struct Incoming {
    /// The packet to answer, if one is owed.
    owed: Option<Owed>,
    all_before: u32,
    /// Of the packets from `all_before` on, 64 a word.
    words: VecDeque<u64>,
}

/// Which bytes of a message have come: from, to, without touching neighbours.
#[derive(Debug, Default)]
struct Stretches {
    stretches: BTreeMap<u64, u64>,
    bytes: u64,
}

/// One host's receiving half.
#[derive(Debug)]
pub struct Receiver {
    host: HostId,
    /// By sender and its number of the flow. Never iterated.
    flows: FxHashMap<(u32, u32), Incoming>,
    /// By sender and message. Never iterated.
    messages: FxHashMap<(u32, u32), Stretches>,
    /// Flows that are owed an answer, by sender and number.
    owed: VecDeque<(u32, u32)>,
    complete: VecDeque<ReceivedMessage>,
    /// What was counted.
    pub received: Received,
}

impl Receiver {
    /// Of `host`.
    pub fn new(host: HostId) -> Receiver {
        Receiver {
            host,
            flows: FxHashMap::default(),
            messages: FxHashMap::default(),
            owed: VecDeque::new(),
            complete: VecDeque::new(),
            received: Received::default(),
        }
    }

    /// A packet came from UDP source port `port`; new payload goes to `sink`.
    pub fn handle_data(
        &mut self,
        now: Time,
        port: u16,
        data: &Data,
        payload: &[u8],
        sink: &mut impl Sink,
    ) {
        let name = (data.src, data.flow);
        let flow = self.flows.entry(name).or_default();
        let is_new = flow.take(data.seq);
        let (seq, clock) = (data.seq, data.clock);
        let took = clock_of(now).wrapping_sub(clock);
        if flow.owed.replace(Owed { seq, port, clock, took }).is_none() {
            self.owed.push_back(name);
        }
        if is_new {
            self.handle_bytes(now, data, payload, sink);
        } else {
            self.received.repeated += 1;
        }
    }

    /// The next answer to send: one for all packets of a flow that have come since its last.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        let (src, number) = self.owed.pop_front()?;
        let flow = self.flows.get_mut(&(src, number))?;
        let Owed { seq, port, clock, took } = flow.owed.take()?;
        let answer = Answer {
            src: self.host.0,
            flow: number,
            seq,
            port,
            all_before: flow.all_before,
            beyond: flow.beyond(),
            clock,
            took,
        };
        Some(Reply { dst: HostId(src), answer })
    }
    /// The next message that is complete.
    pub fn poll_complete(&mut self) -> Option<ReceivedMessage> {
        self.complete.pop_front()
    }

    /// Bytes of a message came that need no answer, over a connection. Of `data` only sender, message
    /// and place count.
    pub fn handle_bytes(&mut self, now: Time, data: &Data, payload: &[u8], sink: &mut impl Sink) {
        let (src, message) = (HostId(data.src), MessageId(data.message));
        let stretches = self.messages.entry((data.src, data.message)).or_default();
        let len = payload.len() as u64;
        if !stretches.add(data.offset, len) {
            self.received.overlapping += len;
            return;
        }
        self.received.bytes += len;
        sink.write(src, message, data.offset, payload);
        if stretches.bytes == data.total {
            // Nothing of it can come again: its flows are complete.
            self.messages.remove(&(data.src, data.message));
            let done = ReceivedMessage { message, src, bytes: data.total, received: now };
            self.received.messages.push(done);
            self.complete.push_back(done);
        }
    }
}

impl Incoming {
    /// Notes packet `seq`; returns whether it is new.
    fn take(&mut self, seq: u32) -> bool {
        let Some(ahead) = seq.checked_sub(self.base()) else { return false };
        let (word, bit) = ((ahead / 64) as usize, 1 << (ahead % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.all_before = self.base() + 64;
        }
        let first = self.words.front().copied().unwrap_or(0);
        self.all_before = self.base() + first.trailing_ones();
        is_new
    }
    /// The packet of the first bit.
    fn base(&self) -> u32 {
        self.all_before / 64 * 64
    }
    /// As [`Answer::beyond`].
    fn beyond(&self) -> u64 {
        let from = self.all_before % 64 + 1;
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        match from {
            64 => word(1),
            _ => word(0) >> from | word(1) << (64 - from),
        }
    }
}

impl Stretches {
    /// Notes `len` bytes from `from` on; returns whether all of them are new.
    fn add(&mut self, from: u64, len: u64) -> bool {
        let to = from + len;
        let before = self.stretches.range(..=from).next_back().map(|(from, to)| (*from, *to));
        let after = self.stretches.range(from..).next().map(|(from, to)| (*from, *to));
        if before.is_some_and(|(_, end)| end > from) || after.is_some_and(|(start, _)| start < to) {
            return false;
        }
        let (mut start, mut end) = (from, to);
        if let Some((first, _)) = before.filter(|(_, end)| *end == from) {
            start = first;
        }
        if let Some((next, last)) = after.filter(|(next, _)| *next == to) {
            self.stretches.remove(&next);
            end = last;
        }
        self.stretches.insert(start, end);
        self.bytes += len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_trial::prelude::*;

    trials! {
        fn packets_are_new_once_in_any_order(seqs in prop::collection::vec(0u32..300, 1..600)) {
            let mut flow = Incoming::default();
            let mut seen = std::collections::BTreeSet::new();
            for seq in seqs {
                prop_assert_eq!(flow.take(seq), seen.insert(seq));
                let all_before = (0..).find(|seq| !seen.contains(seq)).unwrap();
                prop_assert_eq!(flow.all_before, all_before);
                for bit in 0..64 {
                    let come = flow.beyond() >> bit & 1 == 1;
                    prop_assert_eq!(come, seen.contains(&(all_before + 1 + bit)), "bit {}", bit);
                }
            }
        }

        fn stretches_count_each_byte_once(parts in prop::collection::vec((0u64..60, 1u64..9), 1..40)) {
            let mut stretches = Stretches::default();
            let mut have = [false; 80];
            for (from, len) in parts {
                let part = &mut have[from as usize..(from + len) as usize];
                let is_new = part.iter().all(|byte| !byte);
                prop_assert_eq!(stretches.add(from, len), is_new);
                if is_new {
                    part.fill(true);
                }
            }
            prop_assert_eq!(stretches.bytes, have.iter().filter(|byte| **byte).count() as u64);
        }
    }
}
