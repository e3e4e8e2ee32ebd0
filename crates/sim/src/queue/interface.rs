//! What every event queue does.

use crate::event::Event;
use weft_units::Time;

/// Hands out events in the order of their keys. Keys are unique, so that every
/// implementation gives the same run. [`Time::MAX`] is never.
pub trait EventQueue {
    /// Adds an event, not earlier than the last one taken, nor than the `end` before which
    /// nothing was found.
    fn push(&mut self, event: Event);
    /// Takes the first event, if it is before `end`, which is later than time zero.
    fn pop_before(&mut self, end: Time) -> Option<Event>;
    /// A time that no event is before, and that comes closer to the first one whenever nothing
    /// is found before a later time. `None`: there is no event.
    fn next(&self) -> Option<Time>;
    /// Takes the first event.
    fn pop(&mut self) -> Option<Event> {
        self.pop_before(Time::MAX)
    }
}
