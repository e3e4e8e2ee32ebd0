//! Slots of a few events up to more than have a place beside their key: other ways to sort them,
//! the same order.

use crate::common::both::Both;
use weft_units::Time;

/// Events that still have a place in 18 bits.
const PLACES: u64 = (1 << 18) - 1;
const SLOT: u64 = 16_384;

/// `count` events of `slot`, at scrambled times that many of them share.
fn crowd(both: &mut Both, slot: u64, count: u64) {
    for at in 0..count {
        both.push_at(Time(slot * SLOT + at * 7919 % 4096));
    }
}

/// Pops `count` events and compares.
fn pops(both: &mut Both, count: u64) {
    for _ in 0..count {
        assert!(both.pop());
    }
}

#[test]
fn a_slot_is_filled_with_more_than_have_a_place() {
    for count in [PLACES - 1, PLACES, PLACES + 1, PLACES + 2, 300_000] {
        let mut both = Both::with_slots(SLOT, 64);
        crowd(&mut both, 3, count);
        // A few more once the slot is being handed out, at the seam of places.
        pops(&mut both, 3);
        (0..5).for_each(|distance| both.push(distance * 1000));
        pops(&mut both, count + 2);
        assert!(!both.pop());
    }
}

/// Every number of events for which there is another way to sort them, and its neighbours.
#[test]
fn slots_of_every_size() {
    for slot in [128, SLOT] {
        let mut both = Both::with_slots(slot, 64);
        let sizes = (0..40).chain(190..210).chain([1000, 5000, 70_000]);
        for (at, size) in (1..).zip(sizes) {
            for event in 0..size {
                both.push_at(Time(at * slot + event * 7919 % slot));
            }
            pops(&mut both, size);
        }
        assert!(!both.pop());
    }
}

/// Neighbours at few instants, of which each has its own number and comes in no order.
#[test]
fn neighbours_at_one_instant() {
    for (size, instants) in [(5, 1), (30, 1), (64, 1), (256, 1), (4096, 1), (4096, 3), (4096, 4096)]
    {
        let mut both = Both::with_slots(SLOT, 64);
        for event in 0..size {
            let id = event * 37 % size;
            both.push_numbered(Time(2 * SLOT + id % instants), id as u32);
        }
        while both.pop() {}
    }
}

/// The slot overflows while it is handed out, and what has been sorted must stay so.
#[test]
fn a_slot_outgrows_its_places_while_it_is_handed_out() {
    let mut both = Both::with_slots(SLOT, 64);
    crowd(&mut both, 2, PLACES - 50);
    pops(&mut both, 1000);
    for at in 0..200 {
        both.push(at * 37 % 4000);
        assert!(both.pop());
    }
    while both.pop() {}
    // The next slot has places again.
    crowd(&mut both, 4, 1000);
    both.push(10 * SLOT);
    while both.pop() {}
}

/// Everything at time zero, as the messages of a large job: all come one by one.
#[test]
fn a_crowd_at_the_very_beginning() {
    let mut both = Both::with_slots(SLOT, 2048);
    // In order, so that the test is quick.
    for _ in 0..PLACES + 1000 {
        both.push_in_order(Time::ZERO);
    }
    pops(&mut both, 500);
    for _ in 0..100 {
        both.push(3);
    }
    while both.pop() {}
}
