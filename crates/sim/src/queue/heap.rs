//! A binary heap: slow and obviously right. The oracle for the wheel, in tests.

use super::interface::EventQueue;
use crate::event::Event;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use weft_units::Time;

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
    fn push(&mut self, event: Event, _: u16) {
        self.events.push(Earliest(event));
    }
    fn push_for_all(&mut self, event: Event, process: u16) {
        self.push(event, process);
    }
    fn pop_before(&mut self, end: Time) -> Option<Event> {
        let first = self.events.peek_mut().filter(|first| first.0.time < end)?;
        Some(PeekMut::pop(first).0)
    }
    fn next(&self) -> Option<Time> {
        self.events.peek().map(|first| first.0.time)
    }
}
