//! An operation at one host: which segment leaves next, and which results are here.

use super::segments::Segments;
use weft_units::Time;

/// What a host has sent and got.
#[derive(Debug)]
pub(super) struct Contribution {
    pub(super) segments: Segments,
    /// How many segments may be out without a result.
    window: u32,
    /// The next one to leave.
    next: u32,
    /// None below has left.
    highest: u32,
    /// Those below leave again even if their result is here.
    again_below: u32,
    /// All below have a result.
    base: u32,
    /// By segment modulo the window: whether its result is here, from `base` on.
    has: Vec<bool>,
    /// For so long without a new result it waits before it sends again; doubles each time.
    pub(super) patience: Time,
    /// When that is over; [`Time::MAX`]: nothing is out, or nothing gets lost.
    pub(super) deadline: Time,
}

impl Contribution {
    /// Nothing has left; it sends again after `patience`, if ever.
    pub(super) fn new(segments: Segments, window: u32, patience: Time) -> Contribution {
        let window = window.min(segments.count());
        Contribution {
            segments,
            window,
            next: 0,
            highest: 0,
            again_below: 0,
            base: 0,
            has: vec![false; window as usize],
            patience,
            deadline: Time::MAX,
        }
    }
    /// One that is through, and contributes its last window again for others.
    pub(super) fn of_finished(segments: Segments, window: u32) -> Contribution {
        let count = segments.count();
        let mut own = Contribution::new(segments, window, Time::MAX);
        (own.base, own.highest, own.again_below) = (count, count, count);
        own.next = count.saturating_sub(own.window);
        own
    }
    fn has(&self, segment: u32) -> bool {
        segment < self.base
            || segment - self.base < self.window && self.has[(segment % self.window) as usize]
    }
    /// The segment that may leave now.
    pub(super) fn ready(&mut self) -> Option<u32> {
        while self.next >= self.again_below && self.next < self.highest && self.has(self.next) {
            self.next += 1;
        }
        let end = self.base.saturating_add(self.window).min(self.segments.count());
        (self.next < end).then_some(self.next)
    }
    /// That one leaves. Returns whether it has before.
    pub(super) fn send(&mut self) -> bool {
        let is_again = self.next < self.highest;
        self.next += 1;
        self.highest = self.highest.max(self.next);
        is_again
    }
    /// A result is here. Returns whether it is new.
    pub(super) fn receive(&mut self, segment: u32) -> bool {
        if self.has(segment) || segment - self.base >= self.window {
            return false;
        }
        self.has[(segment % self.window) as usize] = true;
        while self.base < self.segments.count() && self.has[(self.base % self.window) as usize] {
            self.has[(self.base % self.window) as usize] = false;
            self.base += 1;
        }
        true
    }
    /// Whether all results are here.
    pub(super) fn is_complete(&self) -> bool {
        self.base == self.segments.count()
    }
    /// Whether all has left that is to leave.
    pub(super) fn has_left(&self) -> bool {
        self.next == self.segments.count()
    }
    /// Sends all again that has no result.
    pub(super) fn resend(&mut self) {
        self.next = self.next.min(self.base);
    }
    /// Sends again as if all since a window before its first segment without a result were lost: on another
    /// tree.
    pub(super) fn rewind(&mut self) {
        self.again_below = self.again_below.max(self.highest);
        self.next = self.next.min(self.base.saturating_sub(self.window));
    }
}
