//! The round of a NIC's port: who wants to send, the next one first.
//!
//! The next one stands apart: often there is no other, and it need not go through a ring.

use std::collections::VecDeque;

/// Queue pairs, or operations of switches, in the order of their turns.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    /// The next one; [`NOBODY`]: there are no others either.
    next: u32,
    others: VecDeque<u32>,
}

const NOBODY: u32 = u32::MAX;

impl Default for Turns {
    fn default() -> Turns {
        Turns { next: NOBODY, others: VecDeque::new() }
    }
}

impl Turns {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == NOBODY
    }
    pub(super) fn len(&self) -> usize {
        usize::from(!self.is_empty()) + self.others.len()
    }
    /// Whose turn it is.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.next)
    }
    /// The same, who leaves.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<u32> {
        let next = self.next();
        self.next = self.others.pop_front().unwrap_or(NOBODY);
        next
    }
    /// `id` has no turn any more, if it had one.
    pub(crate) fn remove(&mut self, id: u32) {
        match self.next == id {
            true => _ = self.pop(),
            false => self.others.retain(|other| *other != id),
        }
    }
    /// The last turn is that of `id`.
    #[inline(always)]
    pub(super) fn push(&mut self, id: u32) {
        match self.is_empty() {
            true => self.next = id,
            false => self.others.push_back(id),
        }
    }
    /// So many have their turn before `id`.
    pub(super) fn insert(&mut self, before: usize, id: u32) {
        match before {
            0 if self.is_empty() => self.next = id,
            0 => self.others.push_front(std::mem::replace(&mut self.next, id)),
            _ => self.others.insert(before - 1, id),
        }
    }
    /// Those who have their turn before `id`, all of them first, are `older`.
    pub(super) fn insert_after(&mut self, older: impl Fn(u32) -> bool, id: u32) {
        let before = match self.next() {
            Some(next) if older(next) => 1 + self.others.partition_point(|other| older(*other)),
            _ => 0,
        };
        self.insert(before, id);
    }
}
