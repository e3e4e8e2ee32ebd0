//! The events of the slot that is being handed out, in order.
//!
//! What is sorted is not the events but a word for each: its key, less what all of a slot have
//! in common, above its place among the events. Words sort without branches, and are a quarter
//! of the size.
//!
//! Invariant: `order[taken..]` has one word for each event not yet handed out, in the order of
//! their keys.

use crate::event::Event;
use weft_units::Time;

/// Sorted events, among which a few more may fall.
#[derive(Debug)]
pub(super) struct Due {
    /// In no particular order.
    events: Vec<Event>,
    order: Vec<u64>,
    scratch: Vec<u64>,
    taken: usize,
    /// The bits of a word that are the place; all, where there are too many events for a key
    /// beside it.
    places: u64,
}

impl Due {
    /// The longest slot is one shifted by this, in picoseconds.
    pub(super) const LONGEST_SHIFT: u32 = 64 - Due::TARGET - Due::PLACE;
    /// Bits of an event's target, and of a place.
    const TARGET: u32 = 32;
    const PLACE: u32 = 18;
    const PLACES: u64 = (1 << Due::PLACE) - 1;

    pub(super) fn new() -> Due {
        Due {
            events: Vec::new(),
            order: Vec::new(),
            scratch: Vec::new(),
            taken: 0,
            places: Due::PLACES,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.order.len()
    }

    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Event> {
        self.order.get(self.taken).map(|word| self.event(*word))
    }

    /// Takes the first event, if it is before `end`.
    #[inline(always)]
    pub(super) fn pop_before(&mut self, end: Time) -> Option<Event> {
        let event = *self.first()?;
        if event.time >= end {
            return None;
        }
        self.taken += 1;
        Some(event)
    }

    #[inline(always)]
    fn event(&self, word: u64) -> &Event {
        &self.events[(word & self.places) as usize]
    }

    /// The word of an event in the slot that begins at `start`.
    #[inline(always)]
    fn word(start: Time, event: &Event, place: usize) -> u64 {
        let key = (event.time - start).0 << Due::TARGET | u64::from(event.target().bits());
        key << Due::PLACE | place as u64
    }

    /// Starts over with the events that `drain` gives, all of the slot that begins at `start`.
    #[inline(always)]
    pub(super) fn fill(&mut self, start: Time, drain: impl FnOnce(&mut Vec<Event>)) {
        self.events.clear();
        self.order.clear();
        (self.taken, self.places) = (0, Due::PLACES);
        drain(&mut self.events);
        if self.events.len() > Due::PLACES as usize {
            return self.sort_many();
        }
        let words = self.events.iter().enumerate();
        self.order.extend(words.map(|(place, event)| Due::word(start, event, place)));
        sort(&mut self.order, &mut self.scratch);
    }

    /// The order of more events than have a place beside a key.
    #[cold]
    fn sort_many(&mut self) {
        self.places = u64::MAX;
        self.order.extend(0..self.events.len() as u64);
        self.order.sort_unstable_by_key(|place| self.events[*place as usize].key());
    }

    /// One more event, in the slot that begins at `start`.
    #[cold]
    pub(super) fn insert(&mut self, start: Time, event: Event) {
        let place = self.events.len();
        if place > Due::PLACES as usize && self.places == Due::PLACES {
            self.order.iter_mut().for_each(|word| *word &= Due::PLACES);
            self.places = u64::MAX;
        }
        let word = match self.places {
            Due::PLACES => Due::word(start, &event, place),
            _ => place as u64,
        };
        let rest = &self.order[self.taken..];
        let at = rest.partition_point(|other| self.event(*other).key() < event.key());
        self.order.insert(self.taken + at, word);
        self.events.push(event);
    }
}

/// Sorts words by their keys, which are all different. Slots hold few words in no predictable
/// order: where a comparison sort would guess wrong once a word, counting the smaller words
/// never does. Many words are sorted digit by digit.
#[inline(always)]
fn sort(words: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    match words.len() {
        0..=1 => {}
        2 => {
            let (one, other) = (words[0], words[1]);
            (words[0], words[1]) = (one.min(other), one.max(other));
        }
        3..=4 => rank::<4>(words),
        5..=8 => rank::<8>(words),
        9..=16 => rank::<16>(words),
        17..=24 => rank::<24>(words),
        25..=32 => rank::<32>(words),
        33..=FEW => words.sort_unstable(),
        _ => radix(words, scratch),
    }
}

/// From here on, digit by digit is faster.
const FEW: usize = 200;

/// Sorts from the lowest digit of eight bits to the highest, less the bits that all words have
/// in common: where many events share a slot, most share their time as well.
fn radix(words: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    let first = words[0];
    let mut differ = words.iter().fold(0, |bits, word| bits | (word ^ first));
    differ &= !Due::PLACES;
    scratch.resize(words.len(), 0);
    while differ != 0 {
        let shift = differ.trailing_zeros();
        let digit = |word: u64| usize::from((word >> shift) as u8);
        let mut starts = [0u32; 256];
        words.iter().for_each(|word| starts[digit(*word)] += 1);
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        for &word in words.iter() {
            let at = &mut starts[digit(word)];
            scratch[*at as usize] = word;
            *at += 1;
        }
        std::mem::swap(words, scratch);
        differ &= !(0xff << shift);
    }
}

/// Puts each of at most `MOST` words where the number of smaller ones says.
#[inline(always)]
fn rank<const MOST: usize>(words: &mut [u64]) {
    let mut all = [u64::MAX; MOST];
    all[..words.len()].copy_from_slice(words);
    for &word in &all[..words.len()] {
        words[all.iter().map(|other| usize::from(*other < word)).sum::<usize>()] = word;
    }
}
