//! Event queues as partitions use them: asked for what is before the end of an epoch, given mail
//! for later ones, and asked when the next event may be.

use crate::common::both::Both;
use weft_trial::prelude::*;
use weft_units::Time;

/// Slot lengths (the last one is cut to the longest there is) and numbers of slots.
const SLOTS: &[u64] = &[2, 100, 128, 4096, 16_384, 1 << 20];
const COUNTS: &[u64] = &[1, 64, 1000, 2048, 32_768];

/// Distances of every kind, as powers of two and a bit: within a slot up to beyond all laps.
fn distance() -> impl Strategy<Value = u64> {
    let spread = (0u32..46, 0u64..64).prop_map(|(power, more)| (1 << power) + more);
    prop_oneof![2 => Just(0), 4 => 0u64..3000, 4 => 0u64..2_000_000, 3 => spread]
}

/// An epoch: how much later than possible it begins (seldom), how long it is, mail that comes in
/// before it (from its beginning), and what each of its events causes.
#[derive(Clone, Debug)]
struct Epoch {
    gap: u64,
    length: u64,
    mail: Vec<u64>,
    caused: Vec<u64>,
}

fn epoch() -> impl Strategy<Value = Epoch> {
    let gap = prop_oneof![6 => Just(0), 1 => distance()];
    let length = prop_oneof![1 => Just(1), 1 => 1u64..200, 4 => 1u64..600_000, 1 => distance()];
    let mail = prop::collection::vec(distance(), 0..12);
    let caused = prop::collection::vec(distance(), 0..6);
    (gap, length, mail, caused).prop_map(|(gap, length, mail, caused)| Epoch {
        gap,
        length: length.max(1),
        mail,
        caused,
    })
}

fn queues() -> impl Strategy<Value = (u64, u64)> {
    (prop::sample::select(SLOTS), prop::sample::select(COUNTS))
}

/// Pops all that is before `end`, and pushes the first few `caused` by what comes.
fn handle(both: &mut Both, end: Time, caused: &[u64]) {
    let mut caused = caused.iter();
    while both.pop_before(end) {
        caused.by_ref().take(2).for_each(|distance| both.push(*distance));
    }
}

trials! {
    /// Windows begin where the queues say, as they do in a run, or later.
    fn windows_equal_the_heap(
        (slot, slots) in queues(), epochs in prop::collection::vec(epoch(), 1..60)
    ) {
        let mut both = Both::with_slots(slot, slots);
        let mut end = Time::ZERO;
        for Epoch { gap, length, mail, caused } in epochs {
            mail.iter().for_each(|later| both.push_at(end.saturating_add(Time(*later))));
            let start = both.next().unwrap_or(end).max(end);
            end = start.saturating_add(Time(gap)).saturating_add(Time(length));
            handle(&mut both, end, &caused);
            // An epoch that ended early for somebody else is begun again.
            prop_assert!(!both.pop_before(start.max(Time(1))));
        }
        while both.pop() {}
    }

    /// However short the lookahead and however far the next event, a few epochs get there: one
    /// to enter a lap, one to find the slot, and one for the event.
    fn a_few_empty_windows_lead_to_the_next_event(
        (slot, slots) in queues(),
        lookahead in prop::sample::select(&[1u64, 10, 5000, 500_000]),
        events in prop::collection::vec(distance(), 1..40),
        chained in any::<bool>(),
    ) {
        let mut both = Both::with_slots(slot, slots);
        let mut events = events.into_iter();
        if !chained {
            events.by_ref().for_each(|distance| both.push(distance));
        }
        both.push(7);
        let mut empty = 0;
        while let Some(bound) = both.next() {
            let end = bound.saturating_add(Time(lookahead));
            if both.pop_before(end) {
                empty = 0;
                while both.pop_before(end) {}
                events.next().into_iter().for_each(|distance| both.push_at(end + Time(distance)));
            } else {
                empty += 1;
                prop_assert!(empty <= 2, "{empty} windows without an event");
                prop_assert!(both.next() > Some(bound), "nothing learnt from an empty window");
            }
        }
        prop_assert!(!both.pop() && events.next().is_none());
    }
}

/// The last time that there is can be had, and [`Time::MAX`] stays for ever.
#[test]
fn the_end_of_time() {
    let mut both = Both::with_slots(16_384, 32_768);
    for time in [u64::MAX, u64::MAX - 1, u64::MAX - 20_000, 1 << 63] {
        both.push_at(Time(time));
    }
    let mut epochs = 0;
    while let Some(bound) = both.next().filter(|bound| *bound < Time::MAX) {
        handle(&mut both, bound.saturating_add(Time(1)), &[]);
        epochs += 1;
        assert!(epochs < 10, "no end");
    }
    assert_eq!(both.now, Time(u64::MAX - 1));
    assert!(!both.pop());
    assert_eq!(both.next(), Some(Time::MAX));
}
