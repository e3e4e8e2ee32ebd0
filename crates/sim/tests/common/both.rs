//! A wheel and a heap that get the same events and must give the same.

use weft_sim::InLink;
use weft_sim::event::{Class, Event};
use weft_sim::packet::Packet;
use weft_sim::queue::{EventQueue, Heap, Wheel};
use weft_units::Time;

/// Pushes to and pops from both, and compares.
pub struct Both {
    wheel: Wheel,
    heap: Heap,
    /// The time of the last event.
    pub now: Time,
    next: u32,
}

impl Both {
    pub fn new(slot: u64) -> Both {
        Both::with_slots(slot, 2048)
    }
    pub fn with_slots(slot: u64, slots: u64) -> Both {
        let wheel = Wheel::new(Time(slot), slots);
        Both { wheel, heap: Heap::default(), now: Time::ZERO, next: 0 }
    }
    pub fn push(&mut self, distance: u64) {
        self.push_at(self.now.saturating_add(Time(distance)));
    }
    /// Ids are scrambled so that neither insertion nor time alone sorts them.
    pub fn push_at(&mut self, time: Time) {
        let id = self.number().wrapping_mul(0x9e37_79b1) & 0x0fff_ffff;
        self.push_both(match id % 3 {
            0 => Event::arrival(time, InLink(id), Packet::default().tagged(id)),
            1 => Event::new(time, Class::Transmitted, id),
            _ => Event::new(time, Class::Wake, id),
        });
    }
    /// Events of one time that come in their order, after all arrivals.
    pub fn push_in_order(&mut self, time: Time) {
        let id = self.number();
        self.push_both(Event::new(time, Class::Post, id));
    }
    /// As ports have their numbers: neighbours differ in their last bit only.
    pub fn push_numbered(&mut self, time: Time, id: u32) {
        self.push_both(Event::new(time, Class::Flush, id));
    }
    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }
    fn push_both(&mut self, event: Event) {
        self.wheel.push(event, 0);
        self.heap.push(event, 0);
    }
    /// Returns whether there was anything.
    pub fn pop(&mut self) -> bool {
        self.pop_before(Time::MAX)
    }
    /// Returns whether there was anything before `end`.
    pub fn pop_before(&mut self, end: Time) -> bool {
        let (one, other) = (self.wheel.pop_before(end), self.heap.pop_before(end));
        assert_eq!(one, other, "before {end:?}");
        if let Some(event) = one {
            assert!(event.time >= self.now && event.time < end);
            self.now = event.time;
        }
        one.is_some()
    }
    /// What the wheel says about its first event, which must not be too much.
    pub fn next(&self) -> Option<Time> {
        let (bound, first) = (self.wheel.next(), self.heap.next());
        assert_eq!(bound.is_some(), first.is_some());
        assert!(bound <= first, "{bound:?} is later than the first event, {first:?}");
        bound
    }
}
