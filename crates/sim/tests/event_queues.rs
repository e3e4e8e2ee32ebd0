//! The timing wheel hands out what a plain heap hands out, whatever is pushed when.

use crate::common::both::Both;
use weft_trial::prelude::*;
use weft_units::Time;

/// One step of a test: pushes at these distances from now, then this many pops.
type Step = (Vec<u64>, usize);

/// Distances in picoseconds of every kind: now, within a slot, within the near level (2048
/// slots), the far one (2048 laps), at the seams, and beyond.
fn distance(slot: u64) -> impl Strategy<Value = u64> {
    let (near, far) = (slot * 2048, slot * 2048 * 2048);
    prop_oneof![
        2 => Just(0),
        3 => 0..slot,
        5 => 0..near,
        1 => near - slot..=near + slot,
        3 => 0..4 * near,
        2 => 0..far,
        1 => far - near..=far + near,
        1 => 0..5 * far,
        1 => Just(1u64 << 55),
    ]
}

fn steps(slot: u64) -> impl Strategy<Value = Vec<Step>> {
    let step = (prop::collection::vec(distance(slot), 0..20), 0usize..25);
    prop::collection::vec(step, 1..80)
}

trials! {
    fn wheel_equals_heap((slot, steps) in prop::sample::select(&[2u64, 128, 4096, 16_384])
        .prop_flat_map(|slot| (Just(slot), steps(slot))))
    {
        let mut both = Both::new(slot);
        for (pushes, pops) in steps {
            pushes.into_iter().for_each(|distance| both.push(distance));
            for _ in 0..pops {
                both.pop();
            }
        }
        while both.pop() {}
    }
}

/// An event that causes others at the same instant, again and again.
#[test]
fn pushes_for_the_slot_that_is_handed_out() {
    let mut both = Both::new(1024);
    for distance in [0, 5, 5, 1000, 1023] {
        both.push(distance);
    }
    for round in 0..1000 {
        assert!(both.pop());
        both.push(round % 7);
        both.push(round % 1500);
        assert!(both.pop());
    }
    while both.pop() {}
}

/// One lonely timer far away, time and again: nothing near, nothing far.
#[test]
fn jumps_over_empty_laps() {
    let mut both = Both::new(128);
    for jump in 1..60u32 {
        both.push(1 << (jump % 50));
        both.push(3 << (jump % 45));
        assert!(both.pop());
    }
    while both.pop() {}
    let last = u64::MAX - 1 - both.now.0;
    both.push(last);
    both.push(1);
    while both.pop() {}
    assert_eq!(both.now, Time(u64::MAX - 1));
}
