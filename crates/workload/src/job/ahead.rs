//! Numbers that come in nearly their order, each once: which of them is due, and which are here
//! ahead of it.

use std::collections::BTreeSet;

/// What has come of 0, 1, 2, ...
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// All below have come and are taken.
    next: u32,
    /// Bit `i` stands for `next + i`.
    near: u64,
    /// What lies beyond the bits; a sequence that waits for many ranks may have it.
    far: BTreeSet<u32>,
}

impl Ahead {
    /// `number` has come. What is below the next is known already.
    pub(super) fn put(&mut self, number: u32) {
        match number.checked_sub(self.next) {
            None => {}
            Some(ahead @ 0..64) => self.near |= 1 << ahead,
            Some(_) => drop(self.far.insert(number)),
        }
    }
    /// Whether `number` has come, be it taken or not.
    pub(super) fn has(&self, number: u32) -> bool {
        match number.checked_sub(self.next) {
            None => true,
            Some(ahead @ 0..64) => self.near >> ahead & 1 == 1,
            Some(_) => self.far.contains(&number),
        }
    }
    /// The number that is due.
    pub(super) fn next(&self) -> u32 {
        self.next
    }
    /// Takes the next number if it has come.
    pub(super) fn take(&mut self) -> bool {
        let is_here = self.near & 1 == 1;
        if is_here {
            self.skip();
        }
        is_here
    }
    /// Takes all numbers below `next`, which nobody sends.
    pub(super) fn skip_to(&mut self, next: u32) {
        if next.saturating_sub(self.next) < 64 {
            (self.next..next).for_each(|_| self.skip());
            return;
        }
        let (near, far) = (self.near, std::mem::take(&mut self.far));
        let here = (0..64).filter(|ahead| near >> ahead & 1 == 1).map(|ahead| self.next + ahead);
        let here: Vec<u32> = here.chain(far).collect();
        *self = Ahead { next, ..Ahead::default() };
        here.into_iter().for_each(|number| self.put(number));
    }
    /// Takes the next number, which nobody sends.
    pub(super) fn skip(&mut self) {
        self.next += 1;
        self.near >>= 1;
        if self.far.remove(&(self.next + 63)) {
            self.near |= 1 << 63;
        }
    }
}
