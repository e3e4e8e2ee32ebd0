//! Where logical processes take turns, each gets its events in their order, and what concerns all
//! comes when all have handled what is before it and nothing that is after it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_sim::event::{Class, Event};
use weft_sim::queue::{EventQueue, Wheel};
use weft_trial::prelude::*;
use weft_units::Time;

const PROCESSES: u16 = 5;
/// The number behind theirs: what concerns all.
const ALL: u16 = PROCESSES;
const WINDOW: u64 = 1000;

/// What an event causes: at which process, and how much later. Within one process, or from what
/// concerns all, that may be at once; elsewhere it takes a window.
type Caused = (u16, u64);

/// A wheel, and what each process has yet to get.
struct Turns {
    wheel: Wheel,
    left: Vec<BinaryHeap<Reverse<(Time, u32)>>>,
    /// When each process got its last event.
    last: Vec<Time>,
    next: u32,
    taken: u32,
}

impl Turns {
    fn push(&mut self, time: Time, process: u16) {
        // Not in the order in which they come.
        self.next += 1;
        let id = (self.next.wrapping_mul(0x9e37_79b1) & 0x0fff_ffff) / 16 * 16 + u32::from(process);
        self.left[usize::from(process)].push(Reverse((time, id)));
        match process {
            ALL => self.wheel.push_for_all(Event::new(time, Class::Fault, id), process),
            _ => self.wheel.push(Event::new(time, Class::Wake, id), process),
        }
    }

    /// Takes all events before `end`, each of which causes another as long as there are some in
    /// `caused`.
    fn take_before(&mut self, end: Time, caused: &mut impl Iterator<Item = Caused>) {
        while let Some(event) = self.wheel.pop_before(end) {
            self.taken += 1;
            let process = (event.target().id() % 16) as u16;
            let own = self.left[usize::from(process)].pop();
            assert_eq!(own, Some(Reverse((event.time, event.target().id()))), "its first");
            assert!(event.time < end);
            self.last[usize::from(process)] = event.time;
            if process == ALL {
                let done = |left: &BinaryHeap<Reverse<(Time, u32)>>| {
                    left.peek().is_none_or(|first| first.0.0 > event.time)
                };
                assert!(self.left[..usize::from(ALL)].iter().all(done), "too soon");
                assert!(self.last.iter().all(|last| *last <= event.time), "too late");
            }
            if let Some((to, later)) = caused.next() {
                let least = if to == process || process == ALL { 0 } else { WINDOW };
                // Nobody but what concerns all says when all are to be asked.
                let to = if to == ALL && process != ALL { process } else { to };
                self.push(event.time + Time(least + later), to);
            }
        }
        let late = self.left.iter().filter_map(|left| left.peek());
        assert!(late.into_iter().all(|first| first.0.0 >= end), "something before {end:?} is left");
    }
}

fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        4 => 0..WINDOW,
        4 => 0..20 * WINDOW,
        1 => 0..100 * WINDOW,
        // Beyond the near level.
        1 => 0..1000 * WINDOW,
        1 => 0..1_000_000 * WINDOW,
    ]
}

trials! {
    fn each_gets_its_events_in_order(
        (starts, caused, ends) in (
            prop::collection::vec((0..=ALL, distance()), 1..60),
            prop::collection::vec((0..=ALL, distance()), 0..300),
            prop::collection::vec(distance(), 0..20),
        )
    ) {
        let mut turns = Turns {
            wheel: Wheel::taking_turns(Time(WINDOW), 64, PROCESSES),
            left: (0..=ALL).map(|_| BinaryHeap::new()).collect(),
            last: vec![Time::ZERO; usize::from(ALL) + 1],
            next: 0,
            taken: 0,
        };
        starts.iter().for_each(|(process, at)| turns.push(Time(*at), *process));
        let mut caused = caused.into_iter();
        let mut end = Time::ZERO;
        for later in ends {
            // Often right behind what concerns all.
            let cut = turns.left[usize::from(ALL)].peek().filter(|_| later % 2 == 0);
            end = cut.map_or(end + Time(later), |first| end.max(first.0.0)) + Time(1);
            turns.take_before(end, &mut caused);
            // Mail for the next epoch.
            if let Some((process, later)) = caused.next() {
                turns.push(end + Time(later), process);
            }
        }
        turns.take_before(Time::MAX, &mut caused);
        prop_assert_eq!(turns.taken, turns.next);
    }
}
