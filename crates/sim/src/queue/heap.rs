//! A binary heap: slow and obviously right. The oracle for the wheel, in tests.

use super::EventQueue;
use crate::event::Event;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events in a binary heap.
#[derive(Debug, Default)]
pub struct Heap {
    events: BinaryHeap<Earliest>,
}

/// Reverses the order, because the standard heap yields its greatest element.
#[derive(Debug)]
pub(super) struct Earliest(pub(super) Event);

impl Ord for Earliest {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}
impl PartialOrd for Earliest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Earliest {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}
impl Eq for Earliest {}

impl EventQueue for Heap {
    fn push(&mut self, event: Event) {
        self.events.push(Earliest(event));
    }
    fn pop(&mut self) -> Option<Event> {
        self.events.pop().map(|Earliest(event)| event)
    }
}
