//! The queue of future events.

mod heap;
mod pool;
mod wheel;

pub use heap::Heap;
pub use wheel::Wheel;

use crate::event::Event;

/// Hands out events in the order of their keys. Keys are unique, so that every
/// implementation gives the same run.
pub trait EventQueue {
    /// Adds an event, not earlier than the last one taken.
    fn push(&mut self, event: Event);
    /// Takes the first event.
    fn pop(&mut self) -> Option<Event>;
}
