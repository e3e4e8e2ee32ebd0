//! A timing wheel of two levels, with a heap for what lies beyond.
//!
//! Time is cut into slots of a power of two picoseconds. The near level holds one bucket for
//! each of the next so many slots, the far level one for each of the next [`LAPS`] laps
//! of the near one; a lap's bucket is spread over the near level when its first slot comes.
//! Buckets are unsorted until their slot is due; then the bucket is sorted once and handed
//! out. Bitmaps find the next bucket that holds anything.

use super::due::Due;
use super::heap::Earliest;
use super::interface::EventQueue;
use super::pool::{Bucket, Pool};
use crate::event::Event;
use std::collections::BinaryHeap;
use weft_units::Time;

/// Buckets in the far level: a power of two, a multiple of 64.
const LAPS: u64 = 2048;

/// Events in a two-level wheel.
#[derive(Debug)]
pub struct Wheel {
    /// A slot is `1 << shift` picoseconds.
    shift: u32,
    /// A lap is `1 << slots` slots.
    slots: u32,
    /// The slot whose events are in `due`.
    slot: u64,
    due: Due,
    near: Level,
    far: Level,
    pool: Pool,
    /// Scratch to spread a lap.
    lap: Vec<Event>,
    beyond: BinaryHeap<Earliest>,
}

impl Wheel {
    /// A wheel of about `slots` slots that are about as long as `slot`: choose it so that a slot
    /// holds some tens of events, and most events are at most so many slots ahead.
    pub fn new(slot: Time, slots: u64) -> Wheel {
        let slots = slots.next_power_of_two().max(64);
        Wheel {
            shift: slot.0.max(2).ilog2().min(Due::LONGEST_SHIFT),
            slots: slots.ilog2(),
            slot: 0,
            due: Due::new(),
            near: Level::new(slots),
            far: Level::new(LAPS),
            pool: Pool::new(),
            lap: Vec::new(),
            beyond: BinaryHeap::new(),
        }
    }

    #[inline(always)]
    fn slot_of(&self, event: &Event) -> u64 {
        event.time.0 >> self.shift
    }

    #[inline(always)]
    fn lap_of(&self, slot: u64) -> u64 {
        slot >> self.slots
    }

    /// Puts an event that is not due into its level.
    #[inline(always)]
    fn place(&mut self, event: Event) {
        let slot = self.slot_of(&event);
        let ahead = slot - self.slot;
        if ahead >> self.slots == 0 {
            self.near.push(&mut self.pool, slot, event);
        } else {
            self.place_far(slot, event);
        }
    }

    #[cold]
    fn place_far(&mut self, slot: u64, event: Event) {
        let (lap, current) = (self.lap_of(slot), self.lap_of(self.slot));
        if lap - current < LAPS {
            self.far.push(&mut self.pool, lap, event);
        } else {
            self.beyond.push(Earliest(event));
        }
    }

    /// Moves on to the next slot that holds anything, unless all of it is `end` or later, and
    /// sorts its events into `due`.
    fn advance(&mut self, end: Time) -> bool {
        let last = (end.0 - 1) >> self.shift;
        loop {
            let lap_end = self.lap_end();
            if let Some(slot) = self.near.next(self.slot, lap_end.min(last + 1)) {
                self.slot = slot;
                let start = Time(slot << self.shift);
                self.due.fill(start, |events| self.near.drain(&mut self.pool, slot, events));
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
        (self.lap_of(self.slot) + 1) << self.slots
    }

    /// Moves to the first slot of the next lap that may hold anything, if that is not after
    /// slot `last`.
    fn enter_next_lap(&mut self, last: u64) -> bool {
        let next = self.lap_of(self.slot) + 1;
        let lap = if self.near.count > 0 { Some(next) } else { self.later_lap() };
        let Some(lap) = lap.filter(|lap| lap << self.slots <= last) else { return false };
        self.slot = lap << self.slots;
        self.spread(lap);
        true
    }

    /// The first lap after this one that has events in the far level or beyond.
    fn later_lap(&self) -> Option<u64> {
        let next = self.lap_of(self.slot) + 1;
        let far = self.far.next(next, next + LAPS);
        let beyond = self.beyond.peek().map(|event| self.lap_of(self.slot_of(&event.0)));
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
        while self.beyond.peek().is_some_and(|first| self.lap_of(self.slot_of(&first.0)) <= lap) {
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
            self.due.insert(Time(self.slot << self.shift), event);
        } else {
            self.place(event);
        }
    }

    #[inline(always)]
    fn pop_before(&mut self, end: Time) -> Option<Event> {
        if self.due.is_empty() && !self.advance(end) {
            return None;
        }
        self.due.pop_before(end)
    }

    fn next(&self) -> Option<Time> {
        if let Some(event) = self.due.first() {
            return Some(event.time);
        }
        let lap_end = self.lap_end();
        let here = self.near.next(self.slot, lap_end);
        let slot = here.or_else(|| {
            let near = self.near.next(lap_end, self.slot + (1 << self.slots));
            let later = self.later_lap().map(|lap| lap << self.slots);
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
    /// How many buckets there are, less one.
    mask: u64,
}

impl Level {
    fn new(buckets: u64) -> Level {
        Level {
            buckets: vec![Bucket::EMPTY; buckets as usize],
            filled: vec![0; buckets as usize / 64],
            count: 0,
            mask: buckets - 1,
        }
    }

    #[inline(always)]
    fn push(&mut self, pool: &mut Pool, index: u64, event: Event) {
        let at = (index & self.mask) as usize;
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
            let at = (index & self.mask) as usize;
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
        let at = (index & self.mask) as usize;
        let bit = 1 << (at % 64);
        self.count -= u32::from(self.filled[at / 64] & bit != 0);
        self.filled[at / 64] &= !bit;
        pool.drain(&mut self.buckets[at], events);
    }
}
