//! A timing wheel of two levels for each logical process, with a heap for what lies beyond.
//!
//! Time is cut into windows of equal length. The near level holds a bucket for every process in
//! each of the next so many windows, the far level one for all of them in each of the next
//! [`LAPS`] laps of the near one; a lap's bucket is spread over the near level when its first window
//! comes. Buckets are unsorted until they are due; then a bucket is sorted once and handed out.
//! Bitmaps find the next bucket that holds anything.
//!
//! In a window one process comes after the other: its events up to the limit of this pass. That is
//! the end of the window, or the time behind an event that concerns all processes, or as far as the
//! caller wants to go; what is after the limit waits for the next pass through the window.

use super::due::{Due, LONGEST_WINDOW};
use super::heap::Earliest;
use super::interface::{EventQueue, Row, Whole};
use super::pool::{Bucket, Pool};
use crate::event::{Class, Event};
use crate::partition::InLink;
use crate::processes::Processes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use weft_units::Time;

/// Buckets in the far level: a power of two, a multiple of 64.
const LAPS: u64 = 2048;
/// Instead of the number of a bucket.
const NO_BUCKET: u64 = u64::MAX;

/// Events in a two-level wheel.
#[derive(Debug)]
pub struct Wheel {
    windows: Windows,
    /// There is room for `1 << shift` processes.
    shift: u32,
    /// A lap is `1 << lap` windows.
    lap: u32,
    /// The present window.
    window: u64,
    /// The bucket whose events are in `due`.
    current: u64,
    /// Where this pass goes on, if one is under way.
    pass: Option<u64>,
    /// Events before it are handed out, in this pass or earlier.
    limit: Time,
    due: Due,
    /// Processes whose buckets are handed out whole.
    whole: Range<u16>,
    /// The bucket that is ready to be handed out whole.
    ready: u64,
    /// Whether to announce what is in `due`, and whether that is to be done now.
    announces: bool,
    announced: bool,
    near: Level,
    far: Level,
    pool: Pool,
    /// Scratch to spread a lap.
    scratch: Vec<Event>,
    beyond: BinaryHeap<Earliest>,
    /// The times of what concerns all processes, where there are several.
    cuts: BinaryHeap<Reverse<Time>>,
    /// Where the links of arrivals end.
    processes: Arc<Processes>,
}

/// Time in windows of equal length.
#[derive(Clone, Copy, Debug)]
struct Windows {
    length: u64,
    /// `2^64 / length`, rounded down.
    reciprocal: u64,
}

impl Windows {
    fn new(length: u64) -> Windows {
        Windows { length, reciprocal: (u128::from(u64::MAX) / u128::from(length)) as u64 }
    }
    /// The window of `time`: the product is at most one too small.
    #[inline(always)]
    fn of(self, time: Time) -> u64 {
        let window = ((u128::from(time.0) * u128::from(self.reciprocal)) >> 64) as u64;
        window + u64::from(time.0 - window * self.length >= self.length)
    }
    /// When `window` begins.
    #[inline(always)]
    fn start(self, window: u64) -> Time {
        Time(window.saturating_mul(self.length))
    }
}

impl Wheel {
    /// A wheel of about `windows` windows that are as long as `length`: choose it so that a bucket
    /// holds some tens of events, and most events are at most so many windows ahead.
    pub fn new(length: Time, windows: u64) -> Wheel {
        Wheel::of_processes(length, windows, Arc::default())
    }

    /// The same, for so many processes, which take turns and have no links.
    pub fn taking_turns(length: Time, windows: u64, processes: u16) -> Wheel {
        Wheel::of_processes(length, windows, Arc::new(Processes::without_links(processes, length)))
    }

    /// The same, where `processes` take turns.
    pub(crate) fn of_processes(length: Time, windows: u64, processes: Arc<Processes>) -> Wheel {
        // One more, for what concerns all.
        let room = u64::from(processes.of_all()) + 1;
        let shift = room.next_power_of_two().ilog2();
        let windows = windows.next_power_of_two().max(64 >> shift.min(6));
        let length = length.0.clamp(2, LONGEST_WINDOW);
        Wheel {
            windows: Windows::new(length),
            shift,
            lap: windows.ilog2(),
            window: 0,
            current: NO_BUCKET,
            pass: None,
            limit: Time::ZERO,
            due: Due::new(length),
            whole: 0..0,
            ready: NO_BUCKET,
            announces: false,
            announced: false,
            near: Level::new(windows << shift),
            far: Level::new(LAPS),
            pool: Pool::new(),
            scratch: Vec::new(),
            beyond: BinaryHeap::new(),
            cuts: BinaryHeap::new(),
            processes,
        }
    }

    /// The bucket of the first process in `window`.
    #[inline(always)]
    fn first(&self, window: u64) -> u64 {
        window << self.shift
    }

    #[inline(always)]
    fn lap_of(&self, window: u64) -> u64 {
        window >> self.lap
    }

    #[cold]
    fn place_far(&mut self, window: u64, event: Event, process: u16) {
        let is_known = process == 0 || event.target().is(Class::Arrive);
        let event = if is_known { event } else { event.of_process(process) };
        let (lap, current) = (self.lap_of(window), self.lap_of(self.window));
        if lap - current < LAPS {
            self.far.push(&mut self.pool, lap, event);
        } else {
            self.beyond.push(Earliest(event));
        }
    }

    /// Goes on with the next process, pass or window, as far as `end`. Returns false if there is none, or somebody is
    /// to look at what it has.
    #[inline(never)]
    fn go_on(&mut self, end: Time) -> bool {
        self.announced = false;
        if self.shift == 0 && !self.due.is_empty() {
            // Nobody else takes a turn: the bucket stays open.
            self.limit = end.min(self.windows.start(self.window + 1));
            return self.due.has_any_before(self.limit);
        }
        self.put_back();
        loop {
            if let Some(from) = self.pass {
                let next = self.first(self.window + 1);
                if let Some(bucket) = self.near.next(from, next) {
                    self.pass = Some(bucket + 1);
                    if self.is_whole(bucket) {
                        self.ready = bucket;
                        return false;
                    }
                    self.take(bucket);
                    if self.is_of_all(bucket) {
                        // One at a time: it may cause something at any process, which it takes
                        // another pass to find, before the next one.
                        let event = self.due.pop_before(self.limit);
                        self.put_back();
                        if let Some(event) = event {
                            self.pass = Some(self.first(self.window));
                            let start = self.windows.start(self.window);
                            self.due.fill(start, |events| events.push(event));
                            return true;
                        }
                        continue;
                    }
                    if self.announces {
                        self.announced = true;
                        return false;
                    }
                    let has_any = self.due.has_any_before(self.limit);
                    if has_any || self.shift == 0 {
                        return has_any;
                    }
                    self.put_back();
                    continue;
                }
                self.pass = None;
            }
            if !self.start_pass(end) {
                return false;
            }
        }
    }

    /// Has the cache fetch the bucket that comes after `bucket`, if it may have lost that one.
    #[inline(always)]
    fn fetch_after(&self, bucket: u64) {
        if self.pool.is_large()
            && let Some(next) = self.near.next(bucket + 1, self.first(self.window + 2))
        {
            self.pool.fetch(self.near.buckets[(next & self.near.mask) as usize]);
        }
    }

    /// The process of `bucket`, which is one of the present window.
    #[inline(always)]
    fn process_of(&self, bucket: u64) -> u16 {
        (bucket - self.first(self.window)) as u16
    }

    /// Whether `bucket` is to be handed out whole.
    #[inline(always)]
    fn is_whole(&self, bucket: u64) -> bool {
        self.whole.contains(&self.process_of(bucket))
            && self.limit >= self.windows.start(self.window + 1)
    }

    /// Sorts the events of `bucket` into `due`.
    #[inline(always)]
    fn take(&mut self, bucket: u64) {
        self.current = bucket;
        let start = self.windows.start(self.window);
        self.due.fill(start, |events| self.near.drain(&mut self.pool, bucket, events));
    }

    /// Whether what is in `bucket` concerns all processes.
    #[inline(always)]
    fn is_of_all(&self, bucket: u64) -> bool {
        self.shift > 0 && self.process_of(bucket) == self.processes.of_all()
    }

    /// Puts what is left of the bucket that was handed out, all of it after the limit, back.
    #[inline(always)]
    fn put_back(&mut self) {
        if !self.due.is_empty() {
            let Wheel { due, near, pool, current, .. } = self;
            due.drain_rest(|event| near.push(pool, *current, event));
        }
        self.current = NO_BUCKET;
    }

    /// Starts the next pass, unless nothing is left before `end`.
    fn start_pass(&mut self, end: Time) -> bool {
        if self.limit >= end {
            return false;
        }
        while self.cuts.peek().is_some_and(|cut| cut.0 < self.limit) {
            self.cuts.pop();
        }
        let cut = self.cuts.peek().map_or(Time::MAX, |cut| Time(cut.0.0 + 1));
        let until = end.min(cut);
        if !self.open_window(self.windows.of(Time(until.0 - 1))) {
            if self.is_empty() {
                self.limit = Time::ZERO;
            }
            return false;
        }
        self.pass = Some(self.first(self.window));
        self.limit = until.min(self.windows.start(self.window + 1));
        true
    }

    /// Whether there is no event, but for those in `due`.
    fn is_empty(&self) -> bool {
        self.near.count == 0 && self.far.count == 0 && self.beyond.is_empty()
    }

    /// Moves on to the next window that holds anything, up to window `last`.
    fn open_window(&mut self, last: u64) -> bool {
        loop {
            let lap_end = self.lap_end();
            let end = self.first(lap_end.min(last + 1));
            if let Some(bucket) = self.near.next(self.first(self.window), end) {
                self.window = bucket >> self.shift;
                return true;
            }
            if last < lap_end || !self.enter_next_lap(last) {
                return false;
            }
        }
    }

    /// The first window of the next lap.
    #[inline(always)]
    fn lap_end(&self) -> u64 {
        (self.lap_of(self.window) + 1) << self.lap
    }

    /// Moves to the first window of the next lap that may hold anything, if that is not after
    /// window `last`.
    fn enter_next_lap(&mut self, last: u64) -> bool {
        let next = self.lap_of(self.window) + 1;
        let lap = if self.near.count > 0 { Some(next) } else { self.later_lap() };
        let Some(lap) = lap.filter(|lap| lap << self.lap <= last) else { return false };
        self.window = lap << self.lap;
        self.spread(lap);
        true
    }

    /// The first lap after this one that has events in the far level or beyond.
    fn later_lap(&self) -> Option<u64> {
        let next = self.lap_of(self.window) + 1;
        let far = self.far.next(next, next + LAPS);
        let beyond = self.beyond.peek().map(|event| self.lap_of(self.windows.of(event.0.time)));
        far.into_iter().chain(beyond).min()
    }

    /// Moves the events of `lap` into the near level.
    fn spread(&mut self, lap: u64) {
        let mut events = std::mem::take(&mut self.scratch);
        self.far.drain(&mut self.pool, lap, &mut events);
        while self
            .beyond
            .peek()
            .is_some_and(|first| self.lap_of(self.windows.of(first.0.time)) <= lap)
        {
            let Earliest(event) = self.beyond.pop().expect("just seen");
            events.push(event);
        }
        for event in events.drain(..) {
            let target = event.target();
            let process = match target.is(Class::Arrive) {
                true if self.shift > 0 => self.processes.of_link(InLink(target.id())),
                true => 0,
                false => event.process(),
            };
            let bucket = self.first(self.windows.of(event.time)) + u64::from(process);
            self.near.push(&mut self.pool, bucket, event);
        }
        self.scratch = events;
    }
}

impl EventQueue for Wheel {
    #[inline(always)]
    fn push(&mut self, event: Event, process: u16) {
        let window = self.windows.of(event.time);
        let bucket = self.first(window) + u64::from(process);
        debug_assert!(
            window > self.window
                || bucket == self.current
                || event.time >= self.limit
                || self.current == NO_BUCKET,
            "{event:?} of process {process} is not a window later",
        );
        if bucket == self.current {
            self.due.insert(self.windows.start(self.window), event);
        } else if (window - self.window) >> self.lap == 0 {
            self.near.push(&mut self.pool, bucket, event);
        } else {
            self.place_far(window, event, process);
        }
    }

    #[inline(always)]
    fn push_in_row(&mut self, row: &mut Row, event: Event, process: u16) {
        if event.time < row.end {
            let at = (row.bucket & self.near.mask) as usize;
            return self.pool.push(&mut self.near.buckets[at], event);
        }
        let window = self.windows.of(event.time);
        if (window - self.window) >> self.lap == 0 {
            let end = self.windows.start(window + 1);
            *row = Row { end, bucket: self.first(window) + u64::from(process) };
        }
        self.push(event, process);
    }

    fn push_for_all(&mut self, event: Event, process: u16) {
        if self.shift > 0 {
            self.cuts.push(Reverse(event.time));
        }
        self.push(event, process);
    }

    #[inline(always)]
    fn pop_before(&mut self, end: Time) -> Option<Event> {
        loop {
            let event = self.due.pop_before(self.limit);
            if event.is_some() || !self.go_on(end) {
                return event;
            }
        }
    }

    fn hand_out_whole(&mut self, processes: Range<u16>) {
        if self.shift > 0 {
            self.whole = processes;
        }
    }

    fn announce(&mut self) {
        self.announces = self.shift > 0;
    }

    fn next_ones(&mut self) -> Option<&[Event]> {
        if !std::mem::take(&mut self.announced) {
            return None;
        }
        self.fetch_after(self.current);
        Some(self.due.events())
    }

    #[inline]
    fn take_whole(&mut self, events: &mut Vec<Event>) -> Option<Whole> {
        let bucket = std::mem::replace(&mut self.ready, NO_BUCKET);
        if bucket == NO_BUCKET {
            return None;
        }
        events.clear();
        self.near.drain(&mut self.pool, bucket, events);
        self.fetch_after(bucket);
        let (start, end) = (self.windows.start(self.window), self.windows.start(self.window + 1));
        Some(Whole { process: self.process_of(bucket), start, end })
    }

    fn next(&self) -> Option<Time> {
        if let Some(event) = self.due.first() {
            return Some(event.time);
        }
        let lap_end = self.lap_end();
        let here = self.near.next(self.first(self.window), self.first(lap_end));
        let window = here.map(|bucket| bucket >> self.shift).or_else(|| {
            let all = self.first(self.window + (1 << self.lap));
            let near = self.near.next(self.first(lap_end), all).map(|bucket| bucket >> self.shift);
            let later = self.later_lap().map(|lap| lap << self.lap);
            near.into_iter().chain(later).min()
        });
        window.map(|window| self.windows.start(window).max(self.limit))
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
