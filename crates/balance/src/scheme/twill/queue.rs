//! Messages that wait for their chunks to leave.

use crate::plan::Post;
use std::collections::VecDeque;
use weft_units::Time;

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) post: Post,
    pub(super) left: u64,
    /// Payload of a chunk.
    pub(super) chunk: u64,
    /// Chunks that have left.
    pub(super) parts: u32,
    /// Its receiver asks that others go first.
    pub(super) defers: bool,
}

/// Messages that take turns.
#[derive(Clone, Debug)]
struct Batch {
    /// When they were posted.
    since: Time,
    /// Batches of a lower rank go first.
    rank: Time,
    messages: VecDeque<Rest>,
}

/// Batches of messages, by rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    batches: VecDeque<Batch>,
    /// Messages of all batches.
    messages: usize,
    /// Messages whose receivers ask that others go first.
    deferred: u32,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
    /// A message joins those that were posted at `since`, of which the highest rank counts.
    pub(super) fn push(&mut self, since: Time, rank: Time, post: Post) {
        self.messages += 1;
        let rest = Rest { post, left: post.bytes, chunk: 0, parts: 0, defers: false };
        let batches = &mut self.batches;
        let batch = batches.iter().rposition(|batch| batch.since == since);
        let mut batch = batch.and_then(|at| batches.remove(at)).unwrap_or_else(|| Batch {
            since,
            rank,
            messages: VecDeque::new(),
        });
        batch.rank = batch.rank.max(rank);
        batch.messages.push_back(rest);
        let at = batches.partition_point(|other| other.rank <= batch.rank);
        batches.insert(at, batch);
    }
    /// The receiver of the message that its caller calls `tag` asks that others go first, or no longer does.
    pub(super) fn defer(&mut self, tag: u32, defers: bool) {
        if !defers && self.deferred == 0 {
            return;
        }
        let mut all = self.batches.iter_mut().flat_map(|batch| &mut batch.messages);
        let Some(rest) = all.find(|rest| rest.post.tag == tag) else { return };
        self.deferred -= u32::from(rest.defers);
        self.deferred += u32::from(defers);
        rest.defers = defers;
    }
    /// Offers messages to `send`, and says how many there are. It takes a chunk of one at a time and says so, until it
    /// breaks off or has refused all that are left. Whether it broke off.
    pub(super) fn offer(&mut self, mut send: impl FnMut(&mut Rest, usize) -> Offer) -> bool {
        let mut at = 0;
        while let Some(batch) = self.batches.get_mut(at) {
            let group = &mut batch.messages;
            let mut refused = 0;
            while refused < group.len() {
                match send(&mut group[0], self.messages) {
                    Offer::Stop => return true,
                    Offer::Refused => {
                        refused += 1;
                        group.rotate_left(1);
                    }
                    Offer::Taken => {
                        refused = 0;
                        if group[0].left == 0 {
                            self.deferred -= u32::from(group[0].defers);
                            self.messages -= 1;
                            group.pop_front();
                        } else {
                            group.rotate_left(1);
                        }
                    }
                }
            }
            if group.is_empty() {
                self.batches.remove(at);
            } else {
                at += 1;
            }
        }
        false
    }
}

/// What became of a message that was offered.
pub(super) enum Offer {
    /// Nothing more is taken, of any message.
    Stop,
    /// Nothing is taken of this one.
    Refused,
    /// A chunk has left.
    Taken,
}
