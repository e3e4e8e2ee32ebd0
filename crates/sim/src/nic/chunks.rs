//! Which queue pairs carry a chunk that a planner watches over: apart from the others, since few schemes have such.

use weft_balance::plan::{Chunk, QueuePairId};
use weft_units::Time;

/// The chunks of a partition, by the number of their queue pair; empty where no scheme has any.
#[derive(Debug, Default)]
pub(crate) struct Chunks(Vec<Option<Watched>>);

#[derive(Clone, Copy, Debug)]
struct Watched {
    chunk: Chunk,
    /// When its `Timer` event comes; another one that comes is of whoever had the place before. [`Time::MAX`]: none
    /// does.
    timer: Time,
}

impl Chunks {
    /// Queue pair `id` begins, with a chunk or without.
    pub(super) fn open(&mut self, id: u32, chunk: Option<Chunk>) {
        if self.0.is_empty() && chunk.is_none() {
            return;
        }
        let id = id as usize;
        if self.0.len() <= id {
            self.0.resize(id + 1, None);
        }
        self.0[id] = chunk.map(|chunk| Watched { chunk, timer: Time::MAX });
    }

    #[inline(always)]
    fn watched(&self, id: u32) -> Option<&Watched> {
        self.0.get(id as usize)?.as_ref()
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
    /// The time-out of queue pair `id`, where `usual` is that of the others.
    #[inline(always)]
    pub(super) fn time_out(&self, id: u32, usual: Time) -> Time {
        self.watched(id).map_or(usual, |watched| watched.chunk.time_out.min(usual))
    }
    /// The timer of queue pair `id` comes at `at`.
    #[inline(always)]
    pub(super) fn arm(&mut self, id: u32, at: Time) {
        if let Some(Some(watched)) = self.0.get_mut(id as usize) {
            watched.timer = at;
        }
    }
    /// Whether a timer that comes now is not that of the chunk which queue pair `id` carries.
    #[inline(always)]
    pub(super) fn is_stale(&self, id: u32, now: Time) -> bool {
        self.watched(id).is_some_and(|watched| watched.timer != now)
    }
}
