//! Which hop each packet takes in a switch, step by step.

use crate::common::switch::{
    Queues, counts, empty, is_even, named, packet, queues, sorted, switch, take,
};
use std::collections::BTreeSet;
use weft_balance::forward::flows::{FlowTable, IDLE};
use weft_balance::forward::loads::{Gauge, Levels, Loads, least};
use weft_balance::forward::{Hops, Passing};
use weft_balance::scheme::{SCHEMES, SchemeConfig};
use weft_trial::prelude::*;
use weft_units::{Draw, HostId, Time};

#[test]
fn schemes_act_in_switches_as_they_say() {
    for (info, scheme) in SCHEMES.iter().zip(SchemeConfig::all()) {
        let chooses = info.in_switch && info.tor.is_none() && !info.weighs_detours;
        assert_eq!(switch(&scheme, 0, 1).is_hashed(), !chooses, "{}", info.name);
        let asks = info.in_switch || info.path_ids;
        assert!(!asks || info.switches != "nothing", "{} asks for something", info.name);
    }
    let mut hashed = named("spray", &[]);
    let hops = empty(9);
    let passing = Passing { hashed: 7, ..packet(Time::ZERO, 1) };
    assert_eq!(hashed.choose(&passing, &hops), 7);
}

#[test]
fn turns_keep_their_order_for_some_rounds() {
    let hops = empty(8);
    let mut switching = named("switch-spray", &[]);
    let mut orders = BTreeSet::new();
    for _ in 0..10 {
        let order = take(&mut switching, 8, &hops);
        assert_eq!(sorted(&order), [0, 1, 2, 3, 4, 5, 6, 7]);
        for round in 1..5 {
            assert_eq!(take(&mut switching, 8, &hops), order, "round {round}");
        }
        assert!(orders.insert(order), "drawn anew after five rounds");
    }
    let mut always = named("switch-spray", &[("rounds", "0")]);
    let order = take(&mut always, 8, &hops);
    assert!((0..100).all(|_| take(&mut always, 8, &hops) == order));
    let mut each = named("switch-spray", &[("rounds", "1")]);
    let orders: BTreeSet<_> = (0..5_000).map(|_| take(&mut each, 4, &empty(4))).collect();
    assert_eq!(orders.len(), 24, "every order");
}

#[test]
fn turns_are_shared_by_destinations_and_acknowledgements() {
    let (mut one, mut other) = (named("switch-spray", &[]), named("switch-spray", &[]));
    for step in 0..100u32 {
        let (dst, control) = (HostId(step % 7), step.is_multiple_of(3));
        let (now, flow) = (Time::us(u64::from(step)), u64::from(step));
        let mixed =
            Passing { dst, control, flow, now, entropy: 9, hashed: step % 5, hash: 0, bytes: 0 };
        // Other sets of as many hops too.
        let hops = Queues { group: step % 2, queued: vec![u64::from(step); 5] };
        let expected = one.choose(&packet(Time::ZERO, 0), &empty(5));
        assert_eq!(other.choose(&mixed, &hops), expected);
    }
}

#[test]
fn turns_are_apart_by_number_of_hops() {
    let mut mixed = named("switch-spray", &[]);
    let (mut three, mut four) = (named("switch-spray", &[]), named("switch-spray", &[]));
    for _ in 0..60 {
        assert_eq!(take(&mut mixed, 1, &empty(3)), take(&mut three, 1, &empty(3)));
        assert_eq!(take(&mut mixed, 2, &empty(4)), take(&mut four, 2, &empty(4)));
    }
}

#[test]
fn switches_and_seeds_begin_differently() {
    for scheme in ["switch-spray", "switch-rotation"] {
        let scheme = SchemeConfig::read(scheme, &[]).unwrap();
        let first = |id, seed| take(&mut switch(&scheme, id, seed), 1, &empty(8))[0];
        let by_switch: Vec<u32> = (0..4_000).map(|id| first(id, 1)).collect();
        let by_seed: Vec<u32> = (0..4_000).map(|seed| first(3, seed)).collect();
        assert!(is_even(&counts(&by_switch, 8)) && is_even(&counts(&by_seed, 8)), "{scheme:?}");
        assert_ne!(by_switch, by_seed);
    }
}

#[test]
fn rotation_takes_the_hops_in_order_for_each_destination() {
    let mut switching = named("switch-rotation", &[]);
    let hops = empty(5);
    let to = |dst| Passing { dst: HostId(dst), ..packet(Time::ZERO, 0) };
    let mut first = vec![];
    let mut last = vec![0; 1_000];
    for dst in (0..1_000).rev() {
        let hop = switching.choose(&to(dst), &hops);
        first.push(hop);
        last[dst as usize] = hop;
    }
    assert!(is_even(&counts(&first, 5)), "first hops are random");
    // Whoever else sends in between, and however often.
    for step in 1..4_000u32 {
        let dst = step * step % 1_000;
        let control = step.is_multiple_of(2);
        let hop = switching.choose(&Passing { control, ..to(dst) }, &hops);
        assert_eq!(hop, (last[dst as usize] + 1) % 5);
        last[dst as usize] = hop;
    }
}

#[test]
fn rotation_goes_on_when_the_hops_change() {
    let mut switching = named("switch-rotation", &[]);
    let mut next = |count| take(&mut switching, 1, &empty(count))[0];
    while next(8) != 5 {}
    assert_eq!(next(9), 6);
    let anew = next(4);
    assert!(anew < 4);
    assert_eq!(next(4), (anew + 1) % 4);
    let wrapped = [next(2), next(2), next(2)];
    assert_eq!((wrapped[0], wrapped[1]), (wrapped[2], 1 - wrapped[0]));
    // The last of two is followed by the first, then there are three again.
    while next(2) != 0 {}
    assert_eq!([next(3), next(3), next(3)], [1, 2, 0]);
}

#[test]
fn the_least_load_wins_and_ties_are_drawn() {
    let mut stream = Draw::new(1, "test").stream(0);
    for at in 0..5 {
        let mut loads = [9, 9, 9, 9, 9];
        loads[at] = 8;
        assert_eq!(least(&loads, &mut stream), at as u32);
    }
    let taken: Vec<u32> = (0..30_000).map(|_| least(&[7, 3, 3, 4, 3], &mut stream)).collect();
    let counts = counts(&taken, 5);
    assert_eq!((counts[0], counts[3]), (0, 0));
    assert!(is_even(&[counts[1], counts[2], counts[4]]), "{counts:?}");
}

#[test]
fn adaptive_spraying_takes_the_shortest_queue() {
    let mut switching = named("switch-spray-adaptive", &[]);
    assert_eq!(take(&mut switching, 3, &queues(&[501, 500, 501, 502])), [1, 1, 1]);
    assert_eq!(take(&mut switching, 1, &queues(&[5, 4, 4, 3])), [3], "each packet looks anew");
    let taken = take(&mut switching, 20_000, &queues(&[2, 0, 1, 0]));
    let counts = counts(&taken, 4);
    assert_eq!((counts[0], counts[2]), (0, 0));
    assert!(is_even(&[counts[1], counts[3]]), "{counts:?}");
    // Quantised, what differs within a level is equal.
    let mut coarse = named("switch-spray-adaptive", &[("levels", "quantised")]);
    let taken = take(&mut coarse, 20_000, &queues(&[199, 50, 99, 49, 0]));
    let counts = self::counts(&taken, 5);
    assert_eq!(counts[..3], [0, 0, 0]);
    assert!(is_even(&counts[3..]), "{counts:?}");
}

#[test]
fn levels_begin_at_5_10_and_20_percent() {
    let levels = |buffer, queued: &[u64]| {
        let gauge = Gauge { levels: Levels::Quantised, refresh: Time::ZERO };
        Loads::new(gauge, buffer).look(Time::ZERO, &queues(queued)).to_vec()
    };
    let steps = [0, 49, 50, 99, 100, 199, 200, 5_000];
    assert_eq!(levels(1_000, &steps), [0, 0, 1, 1, 2, 2, 3, 3]);
    // 50.05, 100.1 and 200.2 bytes.
    let steps = [50, 51, 100, 101, 200, 201];
    assert_eq!(levels(1_001, &steps), [0, 1, 1, 2, 2, 3]);
    let gauge = Gauge { levels: Levels::Exact, refresh: Time::ZERO };
    assert_eq!(Loads::new(gauge, 1_000).look(Time::ZERO, &queues(&[7, 900])), [7, 900]);
}

#[test]
fn what_was_seen_is_used_until_it_is_refreshed() {
    let gauge = Gauge { levels: Levels::Exact, refresh: Time::ns(100) };
    let mut loads = Loads::new(gauge, 1_000);
    let of = |group, queued: &[u64]| Queues { group, queued: queued.to_vec() };
    let first = Time::ns(30);
    assert_eq!(loads.look(first, &of(0, &[1, 2])), [1, 2]);
    let before = first + Time::ns(100) - Time::ps(1);
    assert_eq!(loads.look(before, &of(0, &[3, 4])), [1, 2]);
    assert_eq!(loads.look(before, &of(1, &[5, 6])), [5, 6], "other hops were not looked at");
    assert_eq!(loads.look(first + Time::ns(100), &of(0, &[7, 8])), [7, 8]);
    assert_eq!(loads.look(first + Time::ns(100), &of(1, &[9, 9])), [5, 6]);
    // Counted from the last look.
    assert_eq!(loads.look(first + Time::ns(199), &of(0, &[9, 9])), [7, 8]);
    assert_eq!(loads.look(first + Time::ns(199), &of(0, &[9, 9, 9])), [9, 9, 9], "a new hop");
    // By default every packet looks, even at the same time.
    let mut anew = Loads::new(Gauge { refresh: Time::ZERO, ..gauge }, 1_000);
    assert_eq!(anew.look(first, &of(0, &[1, 2])), [1, 2]);
    assert_eq!(anew.look(first, &of(0, &[3, 4])), [3, 4]);
}

#[test]
fn new_flows_leave_long_queues_only() {
    let mut switching = named("ecmp-adaptive", &[]);
    let mut place =
        |flow, queued: &[u64]| switching.choose(&packet(Time::ZERO, flow), &queues(queued));
    // A fifth of the buffer is not too long.
    assert_eq!(place(1, &[0, 200, 0, 0]), 1);
    assert_eq!(place(2, &[5, 201, 4, 5]), 2);
    assert_eq!(place(3, &[300, 201, 201, 300]), 1 + place(4, &[300, 202, 201, 300]) % 2);
    // Placed once, they stay, however long the queue gets.
    for _ in 0..3 {
        assert_eq!(place(1, &[0, 900, 0, 0]), 1);
        assert_eq!(place(2, &[0, 0, 900, 0]), 2);
    }
    let taken: Vec<u32> = (10..20_010).map(|flow| place(flow, &[9, 900, 9, 10])).collect();
    let counts = counts(&taken, 4);
    assert_eq!((counts[1], counts[3]), (0, 0));
    assert!(is_even(&[counts[0], counts[2]]), "{counts:?}");
}

#[test]
fn thresholds_are_as_told() {
    let mut switching = named("ecmp-adaptive", &[("threshold", "0.5")]);
    let flow = |flow| packet(Time::ZERO, flow);
    assert_eq!(switching.choose(&flow(1), &queues(&[0, 500])), 1);
    assert_eq!(switching.choose(&flow(2), &queues(&[0, 501])), 0);
    let mut parts = named("subflows-adaptive-2", &[("threshold", "0.1")]);
    assert_eq!(parts.choose(&flow(1), &queues(&[0, 100])), 1);
    assert_eq!(parts.choose(&flow(2), &queues(&[0, 101])), 0);
    assert_eq!(parts.choose(&flow(2), &queues(&[900, 0])), 0, "it stays");
}

#[test]
fn placed_flows_are_forgotten_when_silent_or_when_hops_change() {
    let mut switching = named("ecmp-adaptive", &[]);
    let mut at = |now, queued: &[u64]| switching.choose(&packet(now, 1), &queues(queued));
    assert_eq!(at(Time::ZERO, &[0, 900, 900]), 0);
    assert_eq!(at(IDLE, &[900, 0, 900]), 0, "each packet keeps it alive");
    assert_eq!(at(IDLE + IDLE, &[900, 0, 900]), 0);
    assert_eq!(at(IDLE * 3 + Time::ps(1), &[900, 900, 0]), 2);
    assert_eq!(at(IDLE * 3 + Time::ps(1), &[0, 900]), 0, "a hop fewer: placed anew");
    assert_eq!(at(IDLE * 3 + Time::ps(1), &[900, 0, 900]), 1, "and one more again");
}

/// As the study's code has it: every other packet looks, and moves if nothing is worse.
#[test]
fn packets_are_moved_from_the_worst_queue_at_times() {
    let mut switching = named("ecmp-adaptive", &[("per", "packet")]);
    // Level 2 against one of level 3.
    let taken = take(&mut switching, 1_000, &queues(&[0, 199, 0, 200]));
    assert_eq!(counts(&taken, 4), [0, 1_000, 0, 0]);
    // 210 and 900 bytes are the same level, the worst: half of the packets move to the best.
    let taken = counts(&take(&mut switching, 40_000, &queues(&[0, 210, 49, 900])), 4);
    assert_eq!(taken[3], 0);
    // Binomial: standard deviations of 100 and 87.
    assert!(taken[1].abs_diff(20_000) < 450 && taken[0].abs_diff(10_000) < 390, "{taken:?}");
    // All alike: an eighth each moves anywhere, the rest stays.
    let taken = counts(&take(&mut switching, 40_000, &empty(4)), 4);
    assert!(taken[1].abs_diff(25_000) < 440, "{taken:?}");
    assert!([0, 2, 3].iter().all(|hop| taken[*hop].abs_diff(5_000) < 300), "{taken:?}");
    // Exact levels tell 210 from 900.
    let mut exact = named("ecmp-adaptive", &[("per", "packet"), ("levels", "exact")]);
    let taken = take(&mut exact, 1_000, &queues(&[0, 210, 49, 900]));
    assert_eq!(counts(&taken, 4), [0, 1_000, 0, 0]);
    let (flow, packet) = ("ecmp-adaptive", &[("per", "packet")][..]);
    assert!(!SchemeConfig::read(flow, &[]).unwrap().is_multipath());
    assert!(SchemeConfig::read(flow, packet).unwrap().is_multipath());
    let idle = SchemeConfig::read(flow, &[("per", "packet"), ("threshold", "0.2")]).unwrap_err();
    assert_eq!(idle.to_string(), "threshold: does nothing here; remove it");
}

#[test]
fn flowlets_move_after_a_gap() {
    let mut switching = named("flowlet-adaptive", &[]);
    let gap = Time::us(10);
    let mut at = |now, queued: &[u64]| switching.choose(&packet(now, 1), &queues(queued));
    assert_eq!(at(Time::ZERO, &[5, 5, 4]), 2, "begins at the shortest, whatever the hash says");
    assert_eq!(at(gap, &[0, 0, 900]), 2, "a gap of the limit is none");
    assert_eq!(at(gap * 2, &[0, 0, 900]), 2, "counted from the last packet");
    assert_eq!(at(gap * 3 + Time::ps(1), &[5, 4, 900]), 1);
    assert_eq!(at(gap * 3 + Time::ps(1), &[0, 900, 900]), 1);
    assert_eq!(at(gap * 3 + Time::ps(2), &[0, 900]), 0, "a hop fewer: placed anew");
}

#[test]
fn flowlets_move_among_the_shortest_too() {
    let mut switching = named("flowlet-adaptive", &[]);
    let packets = (0..20_000).map(|gap| Time::us(11) * gap);
    let taken: Vec<u32> =
        packets.map(|now| switching.choose(&packet(now, 1), &queues(&[7, 7, 8, 7]))).collect();
    let counts = counts(&taken, 4);
    assert_eq!(counts[2], 0);
    assert!(is_even(&[counts[0], counts[1], counts[3]]), "{counts:?}");
}

#[test]
fn flowlets_move_strictly_if_told() {
    let gap = Time::us(3);
    let mut strict = named("flowlet-adaptive", &[("gap", "3us"), ("strictly", "true")]);
    let mut now = Time::ZERO;
    let mut next = |queued: &[u64]| {
        now = now + gap + Time::ps(1);
        strict.choose(&packet(now, 1), &queues(queued))
    };
    assert_eq!(next(&[100, 49, 100]), 1);
    assert_eq!(next(&[100, 49, 0]), 1, "the same level");
    assert_eq!(next(&[50, 99, 99]), 1);
    assert_eq!(next(&[49, 50, 50]), 0, "a better one");
    let mut exact =
        named("flowlet-adaptive", &[("strictly", "true"), ("levels", "exact"), ("gap", "3us")]);
    assert_eq!(exact.choose(&packet(Time::ZERO, 1), &queues(&[1, 0])), 1);
    assert_eq!(exact.choose(&packet(Time::us(4), 1), &queues(&[48, 49])), 0);
    assert_eq!(exact.choose(&packet(Time::us(8), 1), &queues(&[49, 49])), 0);
}

#[test]
fn flowlets_toss_a_coin_if_told() {
    let mut switching = named("flowlet-adaptive", &[("coin", "true")]);
    let (mut moves, mut now, mut last) = (0u64, Time::ZERO, 0);
    assert_eq!(switching.choose(&packet(now, 1), &queues(&[0, 1])), 0);
    for _ in 0..10_000 {
        now = now + Time::us(10) + Time::ps(1);
        let mut queued = [0, 0];
        queued[last as usize] = 1;
        let hop = switching.choose(&packet(now, 1), &queues(&queued));
        moves += u64::from(hop != last);
        last = hop;
        // A toss that failed is not made up for without another gap.
        assert_eq!(switching.choose(&packet(now + Time::us(10), 1), &queues(&[0, 0])), hop);
        now += Time::us(10);
    }
    // A standard deviation of 50.
    assert!(moves.abs_diff(5_000) < 225, "{moves}");
    // Unless strictly, one that is as good will do: half of the coins that fall move there.
    let mut equal = |now| switching.choose(&packet(now, 2), &queues(&[7, 7]));
    let taken: Vec<u32> = (0..10_000).map(|gap| equal(now + Time::us(11) * gap)).collect();
    let moves = taken.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // A standard deviation of 43.
    assert!(moves.abs_diff(2_500) < 195, "{moves}");
}

#[test]
fn flow_tables_hold_the_living() {
    let (idle, step) = (Time::us(10), Time::ns(10));
    let mut table = FlowTable::new(idle);
    assert!(table.is_empty());
    (0..500).for_each(|flow| table.place(flow, Time::ZERO, 4, (flow % 4) as u32));
    let mut now = Time::ZERO;
    for flow in 500..100_000 {
        now += step;
        table.place(flow, now, 4, (flow % 4) as u32);
        // The first 500 flows never fall silent: each has a packet every 5 us.
        let old = table.find(flow % 500, now, 4).expect("alive");
        assert_eq!(old.hop, (flow % 4) as u32);
        old.last = now;
        // 500 flows, 1,000 of the last 10 us, and no more than these that wait for their turn.
        assert!(table.len() <= 3_000, "{} flows after {flow}", table.len());
    }
    // The last but 1,000 of them is silent for exactly as long as is remembered.
    assert_eq!(table.find(98_999, now, 4).map(|place| place.hop), Some(3));
    assert!(table.find(98_998, now, 4).is_none());
    assert!(table.find(99_999, now, 3).is_none(), "of other hops");
    let len = table.len();
    (0..1_000).for_each(|_| table.place(99_999, now, 4, 1));
    assert_eq!(table.len(), len, "one entry a flow");
}

#[test]
fn eviction_changes_no_answers() {
    let idle = Time::us(10);
    let mut table = FlowTable::new(idle);
    (0..10).for_each(|flow| table.place(flow, Time::ZERO, 4, 2));
    (10..50).for_each(|flow| table.place(flow, idle, 4, 1));
    assert_eq!(table.len(), 50, "none is silent for longer than remembered");
    assert!((0..10).all(|flow| table.find(flow, idle, 4).is_some_and(|place| place.hop == 2)));
    (50..100).for_each(|flow| table.place(flow, idle + Time::ps(1), 4, 1));
    assert_eq!(table.len(), 90, "the first ten are gone");
}

/// Every scheme with its defaults, and the variants of the study's code.
fn schemes() -> Vec<SchemeConfig> {
    let coded = [("levels", "quantised"), ("refresh", "100ns")];
    let mut per_packet = vec![("per", "packet")];
    per_packet.extend(coded);
    let mut strict = vec![("coin", "true"), ("strictly", "true")];
    strict.extend(coded);
    let variants: [(&str, &[(&str, &str)]); 5] = [
        ("switch-spray", &[("rounds", "0")]),
        ("switch-spray-adaptive", &coded),
        ("ecmp-adaptive", &per_packet),
        ("flowlet-adaptive", &strict),
        ("drill", &[("samples", "3"), ("memory", "2"), ("memory_per", "destination")]),
    ];
    let read = |(name, options)| SchemeConfig::read(name, options).unwrap();
    SchemeConfig::all().into_iter().chain(variants.map(read)).collect()
}

/// A packet and its hops: (gap in ns, flow, destination, hash, group, queues).
type Step = (u64, u64, u32, u32, u32, Vec<u64>);

fn step() -> impl Strategy<Value = Step> {
    let queued = prop::collection::vec(0u64..400, 1..9);
    (0u64..20_000, 0u64..4, 0u32..5, any::<u32>(), 0u32..3, queued)
}

trials! {
    /// Whatever comes, and however the hops change: a choice is a hop, the same calls give the
    /// same choices, and packets with a single hop change nothing.
    fn choices_are_hops_and_repeat(
        steps in prop::collection::vec(step(), 1..200), seed in any::<u64>(),
        scheme in 0..schemes().len(),
    ) {
        let scheme = &schemes()[scheme];
        let run = |singles: bool| {
            let (mut switching, mut now) = (switch(scheme, 1, seed), Time::ZERO);
            let mut taken = vec![];
            for (gap, flow, dst, hash, group, queued) in steps.clone() {
                now += Time::ns(gap);
                let hops = Queues { group, queued };
                let (count, dst, control) = (hops.count(), HostId(dst), flow == 3);
                let hashed = hash % count;
                if count > 1 || singles {
                    let hop =
                        switching.choose(&Passing { now, flow, dst, control, entropy: 9, hashed, hash, bytes: 0 }, &hops);
                    assert!(hop < count, "{hop} of {count}");
                    taken.push((count, hop));
                }
            }
            taken.retain(|(count, _)| *count > 1);
            taken
        };
        prop_assert_eq!(run(true), run(true));
        prop_assert_eq!(run(true), run(false));
    }
}
