//! The ring of departure times against a map.

use std::collections::BTreeMap;
use weft_transport::SendTimes;
use weft_trial::prelude::*;
use weft_units::Time;

#[test]
fn a_resent_packet_counts_from_its_last_departure() {
    let mut times = SendTimes::default();
    assert_eq!((times.get(0), times.capacity()), (None, 0));
    times.put(0, Time::ns(1));
    assert_eq!(times.capacity(), 16);
    times.put(1, Time::ns(2));
    times.put(0, Time::ns(3));
    assert_eq!((times.get(0), times.get(1)), (Some(Time::ns(3)), Some(Time::ns(2))));
    assert_eq!(times.get(2), None);
}

/// An answer to a copy tells a round trip only where it can be of no other copy.
#[test]
fn copies_are_told_apart() {
    let mut times = SendTimes::default();
    times.put(5, Time::us(1));
    assert_eq!((times.of_copy(5, false), times.of_copy(5, true)), (Some(Time::us(1)), None));
    times.put(5, Time::us(3));
    assert_eq!((times.of_copy(5, false), times.of_copy(5, true)), (None, Some(Time::us(3))));
    for again in 4..6 {
        times.put(5, Time::us(again));
        assert_eq!((times.of_copy(5, false), times.of_copy(5, true)), (None, None));
        assert_eq!(times.get(5), Some(Time::us(again)));
    }
}

#[test]
fn what_is_forgotten_stays_so() {
    let mut times = SendTimes::default();
    times.put(0, Time::ns(1));
    times.put(1, Time::ns(2));
    times.forget_below(1);
    assert_eq!((times.get(0), times.get(1)), (None, Some(Time::ns(2))));
    times.put(0, Time::ns(3));
    times.forget_below(0);
    assert_eq!((times.get(0), times.get(1)), (None, Some(Time::ns(2))));
    // Beyond what ever left: the next one starts afresh.
    times.forget_below(100);
    assert_eq!((times.get(1), times.get(100)), (None, None));
    times.put(100, Time::ZERO);
    assert_eq!(times.get(100), Some(Time::ZERO));
}

/// Skipped numbers have no time, even where their slots had held one.
#[test]
fn a_slot_does_not_remember_its_last_number() {
    let mut times = SendTimes::default();
    for seq in 0..16 {
        times.put(seq, Time::ns(1));
    }
    times.forget_below(16);
    times.put(20, Time::ns(2));
    assert_eq!(times.capacity(), 16);
    assert!((16..20).all(|seq| times.get(seq).is_none()));
    assert_eq!(times.get(20), Some(Time::ns(2)));
}

/// A million packets through a window of 100: 128 slots.
#[test]
fn memory_follows_the_window() {
    let mut times = SendTimes::default();
    for seq in 0..1_000_000u32 {
        times.put(seq, Time::ns(u64::from(seq)));
        times.forget_below(seq.saturating_sub(99));
        assert_eq!(
            times.get(seq.saturating_sub(99)),
            Some(Time::ns(seq.saturating_sub(99).into()))
        );
    }
    assert_eq!(times.capacity(), 128);
    times.put(1_000_099, Time::ZERO);
    assert_eq!(times.capacity(), 256, "99 still held and 100 more");
    assert_eq!(times.get(999_950), Some(Time::ns(999_950)), "growing keeps what is held");
}

#[derive(Clone, Debug)]
enum Step {
    /// So far beyond the first number held.
    Put(u32),
    /// So many more.
    Forget(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u32..40).prop_map(Step::Put),
        1 => (0u32..600).prop_map(Step::Put),
        3 => (0u32..30).prop_map(Step::Forget),
        1 => (0u32..300).prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 1..300)
}

trials! {
    fn the_ring_equals_a_map(steps in steps(), start in prop::sample::select(vec![0u32, 4_000_000_000])) {
        let mut times = SendTimes::default();
        times.forget_below(start);
        let mut map = BTreeMap::new();
        let (mut first, mut widest) = (start, 0);
        for (now, step) in steps.into_iter().enumerate() {
            let now = Time::ns(now as u64);
            match step {
                Step::Put(beyond) => {
                    times.put(first + beyond, now);
                    map.insert(first + beyond, now);
                    widest = widest.max(beyond + 1);
                }
                Step::Forget(more) => {
                    first += more;
                    times.forget_below(first);
                    map = map.split_off(&first);
                }
            }
            for seq in first.saturating_sub(20)..first + 640 {
                prop_assert_eq!(times.get(seq), map.get(&seq).copied(), "packet {}", seq);
            }
            prop_assert!(times.capacity() <= widest.next_power_of_two().max(16) as usize);
        }
    }
}
