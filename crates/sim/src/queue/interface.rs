//! What every event queue does.

use crate::event::Event;
use std::ops::Range;
use weft_units::Time;

/// Events of one process in one window.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    /// The process.
    pub process: u16,
    /// When the window begins.
    pub start: Time,
    /// Where it ends.
    pub end: Time,
}

/// Where the last of several events went that follow each other, and until when events go there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    pub(super) end: Time,
    pub(super) bucket: u64,
}

/// Hands out the events of each logical process in the order of their keys. Keys are unique, so
/// that every implementation gives the same run. [`Time::MAX`] is never.
pub trait EventQueue {
    /// Adds an event of a logical process: not earlier than the last one taken of it, nor than the
    /// `end` before which nothing was found.
    fn push(&mut self, event: Event, process: u16);
    /// Adds the next of several events of a process of another window than the one that is being
    /// handed out: each is as late as the one before it, or later.
    #[inline(always)]
    fn push_in_row(&mut self, _row: &mut Row, event: Event, process: u16) {
        self.push(event, process);
    }
    /// Adds an event that concerns all logical processes, and has the number behind theirs: all of
    /// them have handled what is before it when it is taken, and nothing that is after it.
    fn push_for_all(&mut self, event: Event, process: u16);
    /// Takes the first event, if it is before `end`, which is later than time zero.
    fn pop_before(&mut self, end: Time) -> Option<Event>;
    /// From now on hands out all events of a window of any process with a number from `first` up to,
    /// not including, `end` at once, where no limit cuts that window ([`EventQueue::take_whole`]).
    fn hand_out_whole(&mut self, _processes: Range<u16>) {}
    /// After [`EventQueue::pop_before`] has found nothing: a window's events of one process, if that
    /// was why. They go into `events`, in no particular order.
    fn take_whole(&mut self, _events: &mut Vec<Event>) -> Option<Whole> {
        None
    }
    /// From now on [`EventQueue::pop_before`] also finds nothing when a window's events of another
    /// process have been put into order, so that somebody may look at them
    /// ([`EventQueue::next_ones`]) before they are taken.
    fn announce(&mut self) {}
    /// After [`EventQueue::pop_before`] has found nothing: if that was why, the events that it will
    /// take from now on, in no particular order.
    fn next_ones(&mut self) -> Option<&[Event]> {
        None
    }
    /// A time that no event is before, and that comes closer to the first one whenever nothing
    /// is found before a later time. `None`: there is no event.
    fn next(&self) -> Option<Time>;
    /// Takes the first event.
    fn pop(&mut self) -> Option<Event> {
        self.pop_before(Time::MAX)
    }
}
