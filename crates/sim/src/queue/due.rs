//! The events of the bucket that is being handed out, in order.
//!
//! What is sorted is not the events but a word for each: its key, less what all of a bucket have
//! in common, above its place among the events. Words sort without branches, and are a quarter
//! of the size. What comes while the bucket is handed out stands in rows of its own: the ends of
//! packets of one size come in their order, and so do those of others.
//!
//! Invariant: `order[taken..]` and the rows of `late` have one word for each event not yet handed
//! out, each in the order of the keys; behind those of `order` stands [`NONE`].

use super::sort::Sorter;
use crate::event::Event;
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
    late: [Late; 2],
    /// The first of these, or [`NONE`].
    next_late: u64,
    /// How many bits of a word are the place.
    place: u32,
    /// How many of the bits above are the time that an event has in its bucket.
    time: u32,
    /// The bits of a word that are the place: all, where there are too many events for a key beside
    /// them.
    places: u64,
}

/// A row of words in their order, of which the first ones are taken.
#[derive(Debug, Default)]
struct Late {
    words: Vec<u64>,
    taken: usize,
}

impl Late {
    #[inline(always)]
    fn first(&self) -> u64 {
        self.words.get(self.taken).copied().unwrap_or(NONE)
    }
    #[inline(always)]
    fn left(&self) -> &[u64] {
        &self.words[self.taken..]
    }
    #[inline(always)]
    fn clear(&mut self) {
        self.words.clear();
        self.taken = 0;
    }
    /// Whether `word` goes to the end.
    #[inline(always)]
    fn goes_last(&self, word: u64) -> bool {
        self.words.last().is_none_or(|last| *last < word)
    }
    /// Puts `word` where its place is, mostly near the end.
    #[cold]
    fn insert(&mut self, word: u64) {
        let mut place = self.words.len();
        self.words.push(word);
        while place > self.taken && self.words[place - 1] > word {
            self.words[place] = self.words[place - 1];
            place -= 1;
        }
        self.words[place] = word;
    }
}

/// Behind all words.
const NONE: u64 = u64::MAX;
/// Of words that are places and nothing else.
const CROWDED: u64 = u64::MAX;

/// Bits of an event's target.
const TARGET: u32 = 32;
/// The most bits of a time within a window: some are left for a place.
pub(crate) const WINDOW_BITS: u32 = 22;
/// The longest window, in picoseconds.
pub(crate) const LONGEST_WINDOW: u64 = (1 << WINDOW_BITS) - 1;
/// The most bits of a place.
const MOST_PLACE: u32 = 18;

impl Due {
    /// For buckets of `length` picoseconds.
    pub(super) fn new(length: u64) -> Due {
        let time = u64::BITS - (length - 1).leading_zeros();
        Due {
            events: Vec::new(),
            order: vec![NONE],
            sorter: Sorter::default(),
            taken: 0,
            late: Default::default(),
            next_late: NONE,
            place: (64 - TARGET - time).min(MOST_PLACE),
            time,
            places: CROWDED,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.first_word() == NONE
    }

    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Event> {
        let word = self.first_word();
        (word != NONE).then(|| self.event(word))
    }

    /// Whether there is an event before `end`.
    pub(super) fn has_any_before(&self, end: Time) -> bool {
        self.first().is_some_and(|event| event.time < end)
    }

    #[inline(always)]
    fn first_word(&self) -> u64 {
        self.order[self.taken].min(self.next_late)
    }

    /// Takes the first event, if it is before `end`.
    #[inline(always)]
    pub(super) fn pop_before(&mut self, end: Time) -> Option<Event> {
        let word = self.order[self.taken];
        if word >= self.next_late {
            return self.pop_late_before(end);
        }
        let event = *self.event(word);
        if event.time >= end {
            return None;
        }
        self.taken += 1;
        Some(event)
    }

    /// The same, if it is a late one, or there is none.
    fn pop_late_before(&mut self, end: Time) -> Option<Event> {
        if self.next_late == NONE {
            return None;
        }
        let event = *self.event(self.next_late);
        if event.time >= end {
            return None;
        }
        let [one, other] = &mut self.late;
        let row = if one.first() == self.next_late { one } else { other };
        row.taken += 1;
        self.next_late = self.late[0].first().min(self.late[1].first());
        Some(event)
    }

    /// All that was there at first.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Gives away all that is left, in no particular order.
    pub(super) fn drain_rest(&mut self, mut put: impl FnMut(Event)) {
        let end = self.order.len() - 1;
        let late = self.late.iter().flat_map(Late::left);
        let left = self.order[self.taken..end].iter().chain(late);
        left.for_each(|word| put(*self.event(*word)));
        (self.taken, self.next_late) = (end, NONE);
        self.late.iter_mut().for_each(Late::clear);
    }

    #[inline(always)]
    fn event(&self, word: u64) -> &Event {
        &self.events[(word & self.places) as usize]
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
        self.late.iter_mut().for_each(Late::clear);
        (self.taken, self.places) = (0, (1 << self.place) - 1);
        drain(&mut self.events);
        if self.events.len() >> self.place != 0 {
            return self.sort_many();
        }
        let mut order = std::mem::take(&mut self.order);
        let words = self.events.iter().enumerate();
        order.extend(words.map(|(place, event)| self.word(start, event, place)));
        self.order = order;
        self.sorter.sort(&mut self.order, self.time + TARGET + self.place);
        self.order.push(NONE);
    }

    /// The order of more events than have a place beside a key.
    #[cold]
    fn sort_many(&mut self) {
        self.places = CROWDED;
        self.order.extend(0..self.events.len() as u64);
        self.order.sort_unstable_by_key(|place| self.events[*place as usize].key());
        self.order.push(NONE);
    }

    /// One more event, in the bucket that begins at `start`.
    #[inline(always)]
    pub(super) fn insert(&mut self, start: Time, event: Event) {
        let [first, second, third] = event.words();
        self.insert_words(start, event.time, first, second, third);
    }

    /// The same, word by word: in memory an event would be read in larger pieces than it was written, which has to wait
    /// until the cache has what was written.
    #[inline(never)]
    fn insert_words(&mut self, start: Time, time: Time, first: u64, second: u64, third: u64) {
        let event = Event::of_words(time, [first, second, third]);
        let place = self.events.len();
        self.events.push(Event::EMPTY);
        self.events[place].set(event);
        if self.places == CROWDED || place >> self.place != 0 {
            return self.insert_among_many(place);
        }
        let word = self.word(start, &event, place);
        match self.late.iter_mut().find(|row| row.goes_last(word)) {
            Some(row) => row.words.push(word),
            // What ends the second row is before what ends the first.
            None => self.late[1].insert(word),
        }
        self.next_late = self.next_late.min(word);
    }

    /// The same, where a word has no room for a key.
    #[cold]
    fn insert_among_many(&mut self, place: usize) {
        if self.places != CROWDED {
            self.order.extend(self.late.iter().flat_map(Late::left));
            self.late.iter_mut().for_each(Late::clear);
            self.next_late = NONE;
            self.order[self.taken..].sort_unstable();
            let end = self.order.len() - 1;
            self.order[..end].iter_mut().for_each(|word| *word &= self.places);
            self.places = CROWDED;
        }
        let key = self.events[place].key();
        let rest = &self.order[self.taken..self.order.len() - 1];
        let at = rest.partition_point(|other| self.events[*other as usize].key() < key);
        self.order.insert(self.taken + at, place as u64);
    }
}
