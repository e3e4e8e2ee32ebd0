//! A timing wheel of two levels, with a heap for what lies beyond.
//!
//! Time is cut into slots of a power of two picoseconds. The near level holds one bucket for
//! each of the next [`SLOTS`] slots, the far level one for each of the next [`SLOTS`] laps
//! of the near one; a lap's bucket is spread over the near level when its first slot comes.
//! Buckets are unsorted until their slot is due; then the bucket is sorted once and handed
//! out. Bitmaps find the next bucket that holds anything.
//!
//! Invariant: `due[taken..]` is sorted and holds every event of the slots up to `slot`.

use super::EventQueue;
use super::heap::Earliest;
use super::pool::{Bucket, Pool};
use crate::event::Event;
use std::collections::BinaryHeap;
use weft_units::Time;

/// Buckets in each level: a power of two, a multiple of 64.
const SLOTS: u64 = 2048;

/// Events in a two-level wheel.
#[derive(Debug)]
pub struct Wheel {
    /// A slot is `1 << shift` picoseconds.
    shift: u32,
    /// The slot whose events are in `due`.
    slot: u64,
    due: Vec<Event>,
    taken: usize,
    near: Level,
    far: Level,
    pool: Pool,
    /// Scratch to spread a lap.
    lap: Vec<Event>,
    beyond: BinaryHeap<Earliest>,
}

impl Wheel {
    /// A wheel whose slots are about as long as `slot`, at least: choose it so that a slot
    /// holds some ten events.
    pub fn new(slot: Time) -> Wheel {
        Wheel {
            shift: slot.0.max(2).ilog2(),
            slot: 0,
            due: Vec::new(),
            taken: 0,
            near: Level::new(),
            far: Level::new(),
            pool: Pool::new(),
            lap: Vec::new(),
            beyond: BinaryHeap::new(),
        }
    }

    #[inline(always)]
    fn slot_of(&self, event: &Event) -> u64 {
        event.time.0 >> self.shift
    }

    /// Puts an event that is not due into its level.
    #[inline(always)]
    fn place(&mut self, event: Event) {
        let slot = self.slot_of(&event);
        let ahead = slot - self.slot;
        if ahead < SLOTS {
            self.near.push(&mut self.pool, slot, event);
        } else {
            self.place_far(slot, event);
        }
    }

    #[cold]
    fn place_far(&mut self, slot: u64, event: Event) {
        let (lap, current) = (slot / SLOTS, self.slot / SLOTS);
        if lap - current < SLOTS {
            self.far.push(&mut self.pool, lap, event);
        } else {
            self.beyond.push(Earliest(event));
        }
    }

    /// An event for the slot that is being handed out: keeps `due` sorted.
    #[cold]
    fn place_due(&mut self, event: Event) {
        let rest = &self.due[self.taken..];
        let at = rest.partition_point(|other| other.key() < event.key());
        self.due.insert(self.taken + at, event);
    }

    /// Moves on to the next slot that holds anything, unless all of it is `end` or later, and
    /// sorts its events into `due`.
    fn advance(&mut self, end: Time) -> bool {
        self.due.clear();
        self.taken = 0;
        let last = (end.0 - 1) >> self.shift;
        loop {
            let lap_end = self.lap_end();
            if let Some(slot) = self.near.next(self.slot, lap_end.min(last + 1)) {
                self.slot = slot;
                self.near.drain(&mut self.pool, slot, &mut self.due);
                self.due.sort_unstable_by_key(Event::key);
                return true;
            }
            if last < lap_end || !self.enter_next_lap(last) {
                return false;
            }
        }
    }

    /// The first slot of the next lap.
    #[inline(always)]
    fn lap_end(&self) -> u64 {
        (self.slot / SLOTS + 1) * SLOTS
    }

    /// Moves to the first slot of the next lap that may hold anything, if that is not after
    /// slot `last`.
    fn enter_next_lap(&mut self, last: u64) -> bool {
        let next = self.slot / SLOTS + 1;
        let lap = if self.near.count > 0 { Some(next) } else { self.later_lap() };
        let Some(lap) = lap.filter(|lap| lap * SLOTS <= last) else { return false };
        self.slot = lap * SLOTS;
        self.spread(lap);
        true
    }

    /// The first lap after this one that has events in the far level or beyond.
    fn later_lap(&self) -> Option<u64> {
        let next = self.slot / SLOTS + 1;
        let far = self.far.next(next, next + SLOTS);
        let beyond = self.beyond.peek().map(|event| self.slot_of(&event.0) / SLOTS);
        far.into_iter().chain(beyond).min()
    }

    /// Moves the events of `lap` into the near level.
    fn spread(&mut self, lap: u64) {
        let mut events = std::mem::take(&mut self.lap);
        self.far.drain(&mut self.pool, lap, &mut events);
        for event in events.drain(..) {
            let slot = self.slot_of(&event);
            self.near.push(&mut self.pool, slot, event);
        }
        self.lap = events;
        while self.beyond.peek().is_some_and(|first| self.slot_of(&first.0) / SLOTS <= lap) {
            let Earliest(event) = self.beyond.pop().expect("just seen");
            let slot = self.slot_of(&event);
            self.near.push(&mut self.pool, slot, event);
        }
    }
}

impl EventQueue for Wheel {
    #[inline(always)]
    fn push(&mut self, event: Event) {
        if self.slot_of(&event) <= self.slot {
            self.place_due(event);
        } else {
            self.place(event);
        }
    }

    #[inline(always)]
    fn pop_before(&mut self, end: Time) -> Option<Event> {
        if self.taken == self.due.len() && !self.advance(end) {
            return None;
        }
        let event = self.due[self.taken];
        if event.time >= end {
            return None;
        }
        self.taken += 1;
        Some(event)
    }

    fn next(&self) -> Option<Time> {
        if let Some(event) = self.due.get(self.taken) {
            return Some(event.time);
        }
        let lap_end = self.lap_end();
        let here = self.near.next(self.slot, lap_end);
        let slot = here.or_else(|| {
            let near = self.near.next(lap_end, self.slot + SLOTS);
            let later = self.later_lap().map(|lap| lap * SLOTS);
            near.into_iter().chain(later).min()
        });
        slot.map(|slot| Time(slot << self.shift))
    }
}

/// One ring of buckets.
#[derive(Debug)]
struct Level {
    buckets: Vec<Bucket>,
    /// Which buckets hold anything.
    filled: Vec<u64>,
    /// How many buckets do.
    count: u32,
}

impl Level {
    fn new() -> Level {
        Level {
            buckets: vec![Bucket::EMPTY; SLOTS as usize],
            filled: vec![0; SLOTS as usize / 64],
            count: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, pool: &mut Pool, index: u64, event: Event) {
        let at = (index % SLOTS) as usize;
        pool.push(&mut self.buckets[at], event);
        let bit = 1 << (at % 64);
        let word = &mut self.filled[at / 64];
        self.count += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// The first filled index from `from` up to, not including, `end`; at most a lap ahead.
    #[inline(always)]
    fn next(&self, from: u64, end: u64) -> Option<u64> {
        let mut index = from;
        while index < end {
            let at = (index % SLOTS) as usize;
            let word = self.filled[at / 64] >> (at % 64);
            if word != 0 {
                let found = index + u64::from(word.trailing_zeros());
                return (found < end).then_some(found);
            }
            index += 64 - (at as u64 % 64);
        }
        None
    }

    /// Moves a bucket's events to the end of `events`.
    #[inline(always)]
    fn drain(&mut self, pool: &mut Pool, index: u64, events: &mut Vec<Event>) {
        let at = (index % SLOTS) as usize;
        let bit = 1 << (at % 64);
        self.count -= u32::from(self.filled[at / 64] & bit != 0);
        self.filled[at / 64] &= !bit;
        pool.drain(&mut self.buckets[at], events);
    }
}
