//! A set of packet numbers within a window that moves up: one bit each, in a ring.
//!
//! The first 64 bits lie in the value itself; memory is allocated only for a wider window,
//! by doubling, so that it follows the reordering that really happens. The set does not know
//! where its window starts: its owner passes `first` with every call, never a smaller one than
//! before, and takes out what it leaves behind.

use std::slice;

/// Numbers from `first` on, each at its number modulo the bits of the ring.
///
/// The owner may keep something `Beside` them that it seldom needs, in the same few bytes.
#[derive(Clone, Debug)]
pub(in crate::recovery) struct Marks<Beside = ()> {
    /// A ring of one word, while there is no larger one.
    word: u64,
    rest: Option<Box<Rest<Beside>>>,
}

#[derive(Clone, Debug)]
struct Rest<Beside> {
    /// A ring of 2, 4, 8.. words; none while one word is enough.
    words: Box<[u64]>,
    beside: Option<Beside>,
}

impl<Beside> Default for Rest<Beside> {
    fn default() -> Rest<Beside> {
        Rest { words: Box::default(), beside: None }
    }
}

/// The word of `number` in a ring of `words`.
#[inline(always)]
fn index(words: &[u64], number: u32) -> usize {
    (number as usize / 64) & (words.len() - 1)
}

impl<Beside> Marks<Beside> {
    pub(in crate::recovery) const EMPTY: Marks<Beside> = Marks { word: 0, rest: None };

    fn words(&self) -> &[u64] {
        match &self.rest {
            Some(rest) if !rest.words.is_empty() => &rest.words,
            _ => slice::from_ref(&self.word),
        }
    }
    fn words_mut(&mut self) -> &mut [u64] {
        match &mut self.rest {
            Some(rest) if !rest.words.is_empty() => &mut rest.words,
            _ => slice::from_mut(&mut self.word),
        }
    }
    /// What the owner keeps beside the set, if it keeps anything.
    #[inline(always)]
    pub(super) fn beside(&self) -> Option<&Beside> {
        self.rest.as_ref()?.beside.as_ref()
    }
    #[inline(always)]
    pub(super) fn beside_mut(&mut self) -> Option<&mut Beside> {
        self.rest.as_mut()?.beside.as_mut()
    }
    pub(super) fn beside_or_default(&mut self) -> &mut Beside
    where
        Beside: Default,
    {
        self.rest.get_or_insert_default().beside.get_or_insert_default()
    }
    /// What was kept beside the set, with its memory.
    pub(super) fn take_beside(&mut self) -> Option<Beside> {
        let beside = self.rest.as_mut()?.beside.take();
        self.rest.take_if(|rest| rest.words.is_empty());
        beside
    }
    /// How many numbers from `first` on have a bit of their own.
    fn span(&self) -> u32 {
        self.words().len() as u32 * 64
    }
    pub(in crate::recovery) fn contains(&self, first: u32, number: u32) -> bool {
        let words = self.words();
        number - first < self.span() && words[index(words, number)] >> (number % 64) & 1 == 1
    }
    /// Which of the 64 numbers from `from` on are in, the first at the lowest bit.
    pub(in crate::recovery) fn bits(&self, first: u32, from: u32) -> u64 {
        let words = self.words();
        let known = first.saturating_add(self.span()).saturating_sub(from).min(u64::BITS);
        if known == 0 {
            return 0;
        }
        // The ring holds the numbers of a whole span, so that what is beyond wraps to what is before.
        let (low, high) = (words[index(words, from)], words[index(words, from.wrapping_add(63))]);
        let at = from % u64::BITS;
        let bits = low >> at | if at == 0 { 0 } else { high << (u64::BITS - at) };
        bits & u64::MAX >> (u64::BITS - known)
    }
    /// How many follow one another from `from` on, itself included.
    pub(in crate::recovery) fn run(&self, first: u32, from: u32) -> u32 {
        let words = self.words();
        let end = first.saturating_add(self.span()).max(from);
        let mut at = from;
        while at < end {
            let ones = (words[index(words, at)] >> (at % 64)).trailing_ones();
            at += ones;
            if ones == 0 || !at.is_multiple_of(64) {
                break;
            }
        }
        at.min(end) - from
    }

    /// Puts `number` in; returns whether it was not there.
    #[inline(always)]
    pub(in crate::recovery) fn insert(&mut self, first: u32, number: u32) -> bool {
        if self.rest.is_some() || number - first >= u64::BITS {
            return self.insert_far(first, number);
        }
        let is_new = self.word >> (number % 64) & 1 == 0;
        self.word |= 1 << (number % 64);
        is_new
    }
    fn insert_far(&mut self, first: u32, number: u32) -> bool {
        if number - first >= self.span() {
            self.grow(first, number);
        }
        let words = self.words_mut();
        let word = &mut words[index(words, number)];
        let is_new = *word >> (number % 64) & 1 == 0;
        *word |= 1 << (number % 64);
        is_new
    }
    /// Takes `number` out; returns whether it was there.
    pub(in crate::recovery) fn take(&mut self, first: u32, number: u32) -> bool {
        let was_there = self.contains(first, number);
        if was_there {
            let words = self.words_mut();
            words[index(words, number)] &= !(1 << (number % 64));
        }
        was_there
    }
    /// Widens the ring until `number` has a bit.
    #[cold]
    fn grow(&mut self, first: u32, number: u32) {
        let words = ((number - first) / 64 + 1).next_power_of_two() as usize;
        let mut wider = vec![0u64; words].into_boxed_slice();
        for old in first..first + self.span() {
            if self.contains(first, old) {
                wider[index(&wider, old)] |= 1 << (old % 64);
            }
        }
        self.rest.get_or_insert_default().words = wider;
    }

    /// Takes out `first` and what follows it without a gap; returns how many those were.
    #[inline(always)]
    pub(in crate::recovery) fn take_run(&mut self, first: u32) -> u32 {
        if self.rest.is_some() {
            return take_run_far(self.words_mut(), first);
        }
        // `first` at the lowest bit: adding one carries through the run.
        let turned = self.word.rotate_right(first % 64);
        self.word = (turned & turned.wrapping_add(1)).rotate_left(first % 64);
        turned.trailing_ones()
    }
}

fn take_run_far(words: &mut [u64], first: u32) -> u32 {
    let mut at = first;
    loop {
        let word = &mut words[index(words, at)];
        let shifted = *word >> (at % 64);
        let ones = shifted.trailing_ones();
        *word ^= (shifted ^ (shifted & shifted.wrapping_add(1))) << (at % 64);
        at += ones;
        if ones == 0 || !at.is_multiple_of(64) {
            return at - first;
        }
    }
}
