//! What entropy each packet carries, step by step.

use crate::common::chi_square;
use std::collections::{BTreeMap, BTreeSet};
use weft_balance::Steering;
use weft_balance::plan::Route;
use weft_balance::scheme::reps::{CACHE, RepsFlow, StickyFlow};
use weft_balance::scheme::spray::{CounterSpray, RandomSpray};
use weft_balance::scheme::{BalanceConfig, Reps, SchemeConfig};
use weft_balance::steer::{Departure, Feedback, Steer, TimeOut};
use weft_fabric::PathId;
use weft_units::Time;

fn steering(scheme: impl Into<SchemeConfig>, flow: u64) -> Steering {
    let config = BalanceConfig {
        scheme: scheme.into(),
        start_jitter: Time::ZERO,
        random_position: false,
        bdp: 4_500,
    };
    crate::common::flow::steering(&config, flow)
}
const TIME_OUT: TimeOut = TimeOut { now: Time::ZERO, after: Time::ZERO };
const NOW: Departure = Departure { now: Time::ZERO, in_flight: 1 };
fn ack(entropy: u16, marked: bool) -> Feedback {
    Feedback { marked, room: 1, ..Feedback::good(Time::ZERO, entropy) }
}
fn named(scheme: &str) -> SchemeConfig {
    SchemeConfig::read(scheme, &[]).unwrap()
}
fn entropy(steering: &mut Steering) -> u16 {
    match steering.route(Route::Hashed(7), NOW) {
        Route::Hashed(entropy) => entropy,
        Route::Pinned(path) => panic!("{path:?} from a spraying scheme"),
    }
}

/// The chi-square statistic of `counts` against equal ones, in standard deviations from its
/// mean.
fn unevenness(counts: &[u64]) -> f64 {
    let cells = counts.len() as f64;
    (chi_square(counts) - (cells - 1.0)) / (2.0 * (cells - 1.0)).sqrt()
}

#[test]
fn stays_small() {
    assert!(size_of::<Steering>() <= 24, "{} bytes", size_of::<Steering>());
}

#[test]
fn fixed_schemes_keep_the_route() {
    for scheme in ["ecmp", "ethereal"] {
        let mut steering = steering(named(scheme), 1);
        assert!(steering.is_fixed());
        for route in [Route::Hashed(9), Route::Pinned(PathId(0x0102))] {
            assert_eq!(steering.route(route, NOW), route);
        }
    }
    for scheme in SchemeConfig::all() {
        let (name, multipath) = (scheme.name(), scheme.is_multipath());
        let in_switch = scheme.info().in_switch;
        let fixed = steering(scheme, 1).is_fixed();
        assert!(!multipath || !fixed || in_switch, "{name} says that it is multipath");
        assert!(multipath || fixed, "{name} says that it is not");
    }
}

#[test]
fn random_spray_is_uniform() {
    let mut spray = RandomSpray::new(3, 1);
    let mut counts = vec![0u64; 1 << 16];
    for _ in 0..1 << 21 {
        counts[usize::from(spray.next_entropy())] += 1;
    }
    assert!(unevenness(&counts).abs() < 4.0, "{}", unevenness(&counts));
    // Successive pairs too, by their top bits.
    let mut pairs = vec![0u64; 1 << 10];
    for _ in 0..1 << 18 {
        let (a, b) = (spray.next_entropy() >> 11, spray.next_entropy() >> 11);
        pairs[usize::from(a) << 5 | usize::from(b)] += 1;
    }
    assert!(unevenness(&pairs).abs() < 4.0, "{}", unevenness(&pairs));
}

#[test]
fn schemes_repeat_by_seed_and_sprays_differ_by_flow() {
    let take = |scheme: &SchemeConfig, flow| {
        let mut steering = steering(scheme.clone(), flow);
        let mut step = |packet: u16| {
            steering.on_ack(ack(packet, packet.is_multiple_of(7)));
            if packet == 50 {
                steering.on_time_out(TIME_OUT);
            }
            steering.route(Route::Hashed(7), NOW)
        };
        (0..100).map(&mut step).collect::<Vec<_>>()
    };
    for scheme in SchemeConfig::all() {
        assert_eq!(take(&scheme, 1), take(&scheme, 1), "{scheme:?}");
    }
    for scheme in ["spray", "spray-counter", "reps", "reps-sticky"] {
        assert_ne!(take(&named(scheme), 1), take(&named(scheme), 2), "{scheme}");
    }
}

#[test]
fn counter_spray_uses_every_entropy_once_a_round() {
    for entropies in [1u32, 2, 64, 1 << 16] {
        let mut spray = CounterSpray::new(entropies, 5, 1);
        let mut orders = BTreeSet::new();
        let mut blocks = BTreeSet::new();
        for _ in 0..8 {
            let round: Vec<u16> = (0..entropies).map(|_| spray.next_entropy()).collect();
            let distinct: BTreeSet<u16> = round.iter().copied().collect();
            assert_eq!(distinct.len() as u32, entropies);
            blocks.insert(distinct);
            orders.insert(round);
        }
        assert_eq!(blocks.len(), 1, "always the same entropies");
        assert!(entropies < 64 || orders.len() >= 6, "the order changes");
    }
}

#[test]
#[should_panic(expected = "power of two")]
fn counter_spray_needs_a_power_of_two() {
    CounterSpray::new(48, 1, 1);
}

#[test]
fn reps_walks_recycles_and_explores() {
    let mut reps = RepsFlow::new(256, 5, 1, 1);
    let first: Vec<u16> = (0..5).map(|_| reps.next_entropy()).collect();
    for pair in first.windows(2) {
        assert_eq!(pair[1], pair[0].wrapping_add(1), "the first window walks in order");
    }
    // Recycled in the order of the acknowledgements, marked ones left out, each used once.
    reps.on_ack(ack(first[3], false));
    reps.on_ack(ack(first[1], true));
    reps.on_ack(ack(first[0], false));
    reps.on_ack(ack(first[3], false));
    assert_eq!(reps.next_entropy(), first[3]);
    assert_eq!(reps.next_entropy(), first[0]);
    assert_eq!(reps.next_entropy(), first[3]);
    // Empty: any of the flow's entropies.
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for _ in 0..25_600 {
        *counts.entry(reps.next_entropy().wrapping_sub(first[0])).or_default() += 1;
    }
    assert_eq!(counts.len(), 256);
    assert!(*counts.last_key_value().unwrap().0 < 256);
    let counts: Vec<u64> = counts.into_values().collect();
    assert!(unevenness(&counts).abs() < 4.0);
}

#[test]
fn reps_walks_on_through_its_first_window_whatever_returns() {
    let mut reps = RepsFlow::new(4, 6, 1, 1);
    let first = reps.next_entropy();
    reps.on_ack(ack(first, false));
    let rest: Vec<u16> = (0..5).map(|_| reps.next_entropy().wrapping_sub(first)).collect();
    assert_eq!(rest, [1, 2, 3, 0, 1], "wrapping after 4 entropies");
    assert_eq!(reps.next_entropy(), first);
}

#[test]
fn reps_counts_its_first_window_in_packets() {
    // 4,500 bytes in packets of 1000: five.
    let mut flow = steering(Reps { entropies: 65_536 }, 1);
    let first = entropy(&mut flow);
    for step in 1..5 {
        assert_eq!(entropy(&mut flow), first.wrapping_add(step));
    }
    flow.on_ack(ack(first, false));
    flow.on_time_out(TIME_OUT);
    assert_eq!(entropy(&mut flow), first, "a time-out does not touch the cache");
}

#[test]
fn sticky_reps_stays_until_a_mark_or_time_out() {
    let mut reps = StickyFlow::new(256, 3, 1, 1);
    let first: Vec<u16> = (0..3).map(|_| reps.next_entropy()).collect();
    // Nothing back yet: the walk goes on.
    assert_eq!(reps.next_entropy(), first[2].wrapping_add(1));
    reps.on_ack(ack(first[1], false));
    reps.on_ack(ack(first[0], false));
    reps.on_ack(ack(first[2], false));
    // The front serves every packet, and its own acknowledgements do not add it again.
    for _ in 0..10 {
        assert_eq!(reps.next_entropy(), first[1]);
        reps.on_ack(ack(first[1], false));
        reps.on_ack(ack(first[0], false));
    }
    // A mark drops the front, even one that came by another entropy.
    reps.on_ack(ack(first[2], true));
    assert_eq!(reps.next_entropy(), first[0]);
    reps.on_time_out(TIME_OUT);
    assert_eq!(reps.next_entropy(), first[2]);
    reps.on_ack(ack(first[2], true));
    // Empty: the walk goes on where it stopped.
    assert_eq!(reps.next_entropy(), first[2].wrapping_add(2));
    // Marks on an empty cache do nothing.
    reps.on_ack(ack(first[2], true));
    reps.on_time_out(TIME_OUT);
    reps.on_ack(ack(first[1], false));
    assert_eq!(reps.next_entropy(), first[1], "a dropped one may come back");
}

#[test]
fn sticky_reps_walks_its_first_window_even_with_a_full_cache() {
    let mut reps = StickyFlow::new(256, 4, 1, 1);
    let first = reps.next_entropy();
    reps.on_ack(ack(first, false));
    for step in 1..4 {
        assert_eq!(reps.next_entropy(), first.wrapping_add(step));
    }
    assert_eq!(reps.next_entropy(), first);
}

#[test]
fn caches_are_bounded_and_keep_the_latest() {
    let mut reps = RepsFlow::new(65_536, 0, 1, 1);
    let mut sticky = StickyFlow::new(65_536, 0, 1, 1);
    let acks = CACHE as u16 + 10;
    for entropy in 0..acks {
        reps.on_ack(ack(entropy, false));
        sticky.on_ack(ack(entropy, false));
    }
    assert_eq!(sticky.next_entropy(), 10);
    for entropy in 10..acks {
        assert_eq!(reps.next_entropy(), entropy);
    }
}
