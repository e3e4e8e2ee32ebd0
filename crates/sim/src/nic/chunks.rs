//! Which queue pairs carry a chunk that a planner watches over: apart from the others, since few schemes have such.
//!
//! Here each chunk has a queue pair of its own. On a NIC those to a receiver by a path are one queue pair, which
//! delivers in order: so a chunk that is answered before one that had left earlier shows that this is lost.

use crate::partition::OwnHost;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use weft_balance::plan::{Chunk, ChunkAnswer, QueuePairId};
use weft_units::Time;

/// The chunks of a partition, by the number of their queue pair; empty where no scheme has any.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    watched: Vec<Option<Watched>>,
    /// Those that are out on what the planner calls a queue pair, by the path that they took first, in the order in which
    /// they left.
    out: FxHashMap<(OwnHost, QueuePairId), VecDeque<u32>>,
    /// How many have begun.
    begun: u64,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    chunk: Chunk,
    /// When its `Timer` event comes; another one that comes is of whoever had the place before. [`Time::MAX`]: none
    /// does.
    timer: Time,
    /// The how manieth it is.
    order: u64,
    /// Those on its queue pair below that had left when it began.
    after: u64,
    /// What came with its last acknowledgement.
    answer: ChunkAnswer,
}

impl Chunks {
    /// Queue pair `id` of `host` begins, with a chunk or without; `has_left`: whether all of another one has.
    pub(super) fn open(
        &mut self,
        id: u32,
        host: OwnHost,
        chunk: Option<Chunk>,
        has_left: impl Fn(u32) -> bool,
    ) {
        if self.watched.is_empty() && chunk.is_none() {
            return;
        }
        let place = id as usize;
        if self.watched.len() <= place {
            self.watched.resize(place + 1, None);
        }
        let Some(chunk) = chunk else {
            self.watched[place] = None;
            return;
        };
        let (order, after) = self.put(id, host, chunk.queue_pair, has_left);
        let answer = ChunkAnswer::default();
        self.watched[place] = Some(Watched { chunk, timer: Time::MAX, order, after, answer });
    }

    /// Queue pair `id` is the last on what the planner calls its queue pair. The how manieth, and which ones below that
    /// have left.
    fn put(
        &mut self,
        id: u32,
        host: OwnHost,
        queue_pair: QueuePairId,
        has_left: impl Fn(u32) -> bool,
    ) -> (u64, u64) {
        self.begun += 1;
        let order = self.begun;
        let out = self.out.entry((host, queue_pair)).or_default();
        let here = out.iter().find(|id| !has_left(**id));
        let here = here.and_then(|id| self.watched[*id as usize]);
        out.push_back(id);
        (order, here.map_or(order, |other| other.order))
    }

    /// What is left of the chunk of queue pair `id` leaves again by the same path, after all that is out there.
    pub(super) fn put_again(&mut self, id: u32, host: OwnHost, has_left: impl Fn(u32) -> bool) {
        let Some(queue_pair) = self.queue_pair(id) else { return };
        let place = self.put(id, host, queue_pair, has_left);
        if let Some(Some(watched)) = self.watched.get_mut(id as usize) {
            (watched.order, watched.after) = place;
        }
    }

    /// Queue pair `id` of `host` is done. Those whose chunks it shows to be lost.
    pub(super) fn close(&mut self, id: u32, host: OwnHost) -> Vec<u32> {
        let Some(done) = self.watched(id).copied() else { return Vec::new() };
        let Some(at) = self.forget(id, host) else { return Vec::new() };
        let out = self.out.get_mut(&(host, done.chunk.queue_pair)).expect("it was there");
        let watched = &self.watched;
        let is_before =
            |id: &&u32| watched[**id as usize].is_some_and(|other| other.order < done.after);
        let lost = out.iter().take(at).take_while(is_before).count();
        out.drain(..lost).collect()
    }
    /// The chunk of queue pair `id` says nothing of others any more. Where it was among them.
    pub(super) fn forget(&mut self, id: u32, host: OwnHost) -> Option<usize> {
        let queue_pair = self.queue_pair(id)?;
        let out = self.out.get_mut(&(host, queue_pair))?;
        let at = out.iter().position(|other| *other == id)?;
        out.remove(at);
        Some(at)
    }

    #[inline(always)]
    fn watched(&self, id: u32) -> Option<&Watched> {
        self.watched.get(id as usize)?.as_ref()
    }
    /// The planner's number for what queue pair `id` carries.
    #[inline(always)]
    pub(super) fn number(&self, id: u32) -> Option<u32> {
        self.watched(id).map(|watched| watched.chunk.number)
    }
    /// What the planner calls the queue pair, of one with a chunk.
    #[inline(always)]
    pub(super) fn queue_pair(&self, id: u32) -> Option<QueuePairId> {
        self.watched(id).map(|watched| watched.chunk.queue_pair)
    }
    /// The last acknowledgement of what queue pair `id` carries is in. Whether that is a chunk.
    pub(super) fn note_answer(&mut self, id: u32, answer: ChunkAnswer) -> bool {
        let Some(Some(watched)) = self.watched.get_mut(id as usize) else { return false };
        watched.answer = answer;
        true
    }
    /// What came with that, of one with a chunk.
    pub(super) fn answer(&self, id: u32) -> Option<ChunkAnswer> {
        self.watched(id).map(|watched| watched.answer)
    }
    /// The time-out of queue pair `id`, where `usual` is that of the others.
    #[inline(always)]
    pub(super) fn time_out(&self, id: u32, usual: Time) -> Time {
        self.watched(id).map_or(usual, |watched| watched.chunk.time_out.min(usual))
    }
    /// The timer of queue pair `id` comes at `at`.
    #[inline(always)]
    pub(super) fn arm(&mut self, id: u32, at: Time) {
        if let Some(Some(watched)) = self.watched.get_mut(id as usize) {
            watched.timer = at;
        }
    }
    /// Whether a timer that comes now is not that of the chunk which queue pair `id` carries.
    #[inline(always)]
    pub(super) fn is_stale(&self, id: u32, now: Time) -> bool {
        self.watched(id).is_some_and(|watched| watched.timer != now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: OwnHost = OwnHost(0);

    /// So many chunks on one queue pair, all of which have left.
    fn out(count: u32) -> Chunks {
        let mut chunks = Chunks::default();
        let (queue_pair, time_out) = (QueuePairId(7), Time::us(50));
        for number in 0..count {
            let chunk = Chunk { number, queue_pair, port: None, time_out };
            chunks.open(number, HOST, Some(chunk), |_| true);
        }
        chunks
    }

    #[test]
    fn a_chunk_that_went_again_is_lost_once_what_left_after_that_is_here() {
        let mut chunks = out(4);
        assert_eq!(chunks.close(2, HOST), [0, 1]);
        for lost in [0, 1] {
            chunks.forget(lost, HOST);
            chunks.put_again(lost, HOST, |_| true);
        }
        // It had left before the two went again.
        assert_eq!(chunks.close(3, HOST), [0_u32; 0]);
        assert_eq!(chunks.close(1, HOST), [0]);
    }

    #[test]
    fn what_waits_in_the_nic_when_a_chunk_goes_again_is_not_lost_by_that() {
        let mut chunks = out(3);
        assert_eq!(chunks.close(1, HOST), [0]);
        chunks.forget(0, HOST);
        chunks.put_again(0, HOST, |id| id != 2);
        assert_eq!(chunks.close(0, HOST), [0_u32; 0]);
    }
}
