//! The events of the bucket that is being handed out, in order.
//!
//! What is sorted is not the events but a word for each: its key, less what all of a bucket have
//! in common, above its place among the events. Words sort without branches, and are a quarter
//! of the size. What comes while the bucket is handed out stands in a row of its own, since most
//! of it is later than all that came like this before.
//!
//! Invariant: `order[taken..]` and `late` have one word for each event not yet handed out, both
//! in the order of the keys.

use super::sort::Sorter;
use crate::event::Event;
use std::collections::VecDeque;
use weft_units::Time;

/// Sorted events, among which some more may fall.
#[derive(Debug)]
pub(super) struct Due {
    /// In no particular order.
    events: Vec<Event>,
    order: Vec<u64>,
    sorter: Sorter,
    taken: usize,
    /// Of what came since the order was made.
    late: VecDeque<u64>,
    /// How many bits of a word are the place.
    place: u32,
    /// How many of the bits above are the time that an event has in its bucket.
    time: u32,
    /// Words are places and nothing else: there are too many events for a key beside them.
    crowded: bool,
}

/// Bits of an event's target.
const TARGET: u32 = 32;
/// Fewer bits for a place are too few.
const LEAST_PLACE: u32 = 10;
/// The most.
const MOST_PLACE: u32 = 18;

impl Due {
    /// The longest bucket, in picoseconds.
    pub(super) const LONGEST: u64 = (1 << (64 - TARGET - LEAST_PLACE)) - 1;

    /// For buckets of `length` picoseconds.
    pub(super) fn new(length: u64) -> Due {
        let time = length.ilog2() + 1;
        Due {
            events: Vec::new(),
            order: Vec::new(),
            sorter: Sorter::default(),
            taken: 0,
            late: VecDeque::new(),
            place: (64 - TARGET - time).min(MOST_PLACE),
            time,
            crowded: false,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.order.len() && self.late.is_empty()
    }

    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Event> {
        self.first_word().map(|(word, _)| self.event(word))
    }

    /// The first word, and whether it is a late one.
    #[inline(always)]
    fn first_word(&self) -> Option<(u64, bool)> {
        match (self.order.get(self.taken), self.late.front()) {
            (Some(&word), None) => Some((word, false)),
            (Some(&word), Some(&late)) => Some((word.min(late), late < word)),
            (None, Some(&late)) => Some((late, true)),
            (None, None) => None,
        }
    }

    /// Takes the first event, if it is before `end`.
    #[inline(always)]
    pub(super) fn pop_before(&mut self, end: Time) -> Option<Event> {
        let (word, is_late) = self.first_word()?;
        let event = *self.event(word);
        if event.time >= end {
            return None;
        }
        match is_late {
            false => self.taken += 1,
            true => _ = self.late.pop_front(),
        }
        Some(event)
    }

    /// All that was there at first.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Gives away all that is left, in no particular order.
    pub(super) fn drain_rest(&mut self, mut put: impl FnMut(Event)) {
        let left = self.order[self.taken..].iter().chain(&self.late);
        left.for_each(|word| put(*self.event(*word)));
        self.taken = self.order.len();
        self.late.clear();
    }

    #[inline(always)]
    fn event(&self, word: u64) -> &Event {
        &self.events[(word & self.places()) as usize]
    }

    /// The bits of a word that are a place.
    #[inline(always)]
    fn places(&self) -> u64 {
        if self.crowded { u64::MAX } else { (1 << self.place) - 1 }
    }

    /// The word of an event in the bucket that begins at `start`.
    #[inline(always)]
    fn word(&self, start: Time, event: &Event, place: usize) -> u64 {
        let key = (event.time - start).0 << TARGET | u64::from(event.target().bits());
        key << self.place | place as u64
    }

    /// Starts over with the events that `drain` gives, all of the bucket that begins at `start`.
    #[inline(always)]
    pub(super) fn fill(&mut self, start: Time, drain: impl FnOnce(&mut Vec<Event>)) {
        self.events.clear();
        self.order.clear();
        (self.taken, self.crowded) = (0, false);
        drain(&mut self.events);
        if self.events.len() >> self.place != 0 {
            return self.sort_many();
        }
        let mut order = std::mem::take(&mut self.order);
        let words = self.events.iter().enumerate();
        order.extend(words.map(|(place, event)| self.word(start, event, place)));
        self.order = order;
        self.sorter.sort(&mut self.order, self.time + TARGET + self.place);
    }

    /// The order of more events than have a place beside a key.
    #[cold]
    fn sort_many(&mut self) {
        self.crowded = true;
        self.order.extend(0..self.events.len() as u64);
        self.order.sort_unstable_by_key(|place| self.events[*place as usize].key());
    }

    /// One more event, in the bucket that begins at `start`.
    #[inline]
    pub(super) fn insert(&mut self, start: Time, event: Event) {
        let place = self.events.len();
        self.events.push(event);
        if self.crowded || place >> self.place != 0 {
            return self.insert_among_many(place);
        }
        let word = self.word(start, &event, place);
        let mut at = self.late.len();
        while at > 0 && self.late[at - 1] > word {
            at -= 1;
        }
        self.late.insert(at, word);
    }

    /// The same, where a word has no room for a key.
    #[cold]
    fn insert_among_many(&mut self, place: usize) {
        if !self.crowded {
            let places = self.places();
            let late = self.late.drain(..);
            self.order.extend(late);
            self.order[self.taken..].sort_unstable();
            self.order.iter_mut().for_each(|word| *word &= places);
            self.crowded = true;
        }
        let key = self.events[place].key();
        let rest = &self.order[self.taken..];
        let at = rest.partition_point(|other| self.events[*other as usize].key() < key);
        self.order.insert(self.taken + at, place as u64);
    }
}
