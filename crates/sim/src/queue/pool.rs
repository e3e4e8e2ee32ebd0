//! The memory behind the buckets of the wheel: chunks of events, recycled.
//!
//! A bucket is a list of chunks that are full but for the newest. A chunk that is emptied is
//! the next to be used, so that the memory in use stays small, warm, and as large as the
//! events under way, however unevenly they fall into buckets.

use crate::event::Event;
use weft_units::prefetch::prefetch;

/// Events in a chunk.
const CHUNK: usize = 16;

/// A list of chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// The newest chunk.
    newest: u32,
    /// Events in all chunks.
    len: u32,
}

/// With more events than this, 1 MB, some are out of the caches near a core when they are due.
const LARGE: usize = 1 << 15;

const NONE: u32 = u32::MAX;

impl Bucket {
    pub(super) const EMPTY: Bucket = Bucket { newest: NONE, len: 0 };

    /// How many events are in the newest chunk, if there is one.
    #[inline(always)]
    fn in_newest(self) -> usize {
        (self.len as usize).wrapping_sub(1) % CHUNK + 1
    }
}

/// The chunks of all buckets.
#[derive(Debug)]
pub(super) struct Pool {
    /// Chunk `c` is `events[c * CHUNK ..][.. CHUNK]`.
    events: Vec<Event>,
    /// The chunk before, of the same bucket or of the free list.
    before: Vec<u32>,
    free: u32,
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool { events: Vec::new(), before: Vec::new(), free: NONE }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, bucket: &mut Bucket, event: Event) {
        let at = bucket.len as usize % CHUNK;
        if at == 0 {
            bucket.newest = self.take(bucket.newest);
        }
        self.events[bucket.newest as usize * CHUNK + at].set(event);
        bucket.len += 1;
    }

    /// Empties `bucket` to the end of `events`, in no particular order.
    #[inline(always)]
    pub(super) fn drain(&mut self, bucket: &mut Bucket, events: &mut Vec<Event>) {
        let mut fill = bucket.in_newest();
        let mut chunk = bucket.newest;
        while chunk != NONE {
            let start = chunk as usize * CHUNK;
            events.extend_from_slice(&self.events[start..start + fill]);
            fill = CHUNK;
            let before = self.before[chunk as usize];
            self.before[chunk as usize] = self.free;
            self.free = chunk;
            chunk = before;
        }
        *bucket = Bucket::EMPTY;
    }

    /// Whether there are so many events that a bucket is worth to be [fetched](Pool::fetch).
    #[inline(always)]
    pub(super) fn is_large(&self) -> bool {
        self.events.len() > LARGE
    }

    /// Has the cache fetch what is in `bucket`.
    #[cold]
    pub(super) fn fetch(&self, bucket: Bucket) {
        let mut fill = bucket.in_newest();
        let mut chunk = bucket.newest;
        while chunk != NONE {
            let start = chunk as usize * CHUNK;
            // Two of them are a cache line.
            self.events[start..start + fill].iter().step_by(2).for_each(prefetch);
            fill = CHUNK;
            chunk = self.before[chunk as usize];
        }
    }

    /// A chunk to follow `before`.
    #[inline(always)]
    fn take(&mut self, before: u32) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let chunk = self.free;
        self.free = self.before[chunk as usize];
        self.before[chunk as usize] = before;
        chunk
    }

    #[cold]
    fn grow(&mut self) {
        let chunk = self.before.len() as u32;
        self.events.resize(self.events.len() + CHUNK, Event::EMPTY);
        self.before.push(NONE);
        self.free = chunk;
    }
}
