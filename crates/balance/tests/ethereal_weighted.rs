//! Weighted Ethereal: shares to the unit, few parts, what hosts learn, and flows spread anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weft_balance::Planner;
use weft_balance::plan::{ActiveFlow, FlowInfo, LossSignal, Post, Route, Subflow};
use weft_balance::scheme::ethereal::{Group, Share, split_and_assign};
use weft_balance::scheme::ethereal_weighted::split_by_weight;
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link, LinkShares, PathId, PathView, PathWeights};
use weft_trial::prelude::*;
use weft_units::{Draw, HostId, MessageId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

fn path(index: usize) -> PathId {
    PathId(index as u16)
}
fn weigh(weights: &[u64]) -> PathWeights {
    PathWeights::new(weights.iter().enumerate().map(|(index, weight)| (path(index), *weight)))
}
fn split(sizes: &[u64], weights: &[u64], unit: u64, seed: u64) -> Vec<Share> {
    let mut shares = Vec::new();
    let mut stream = Draw::new(seed, "test").stream(0);
    split_by_weight(sizes, &weigh(weights), unit, &mut stream, &mut shares);
    shares
}
/// Units on each of `paths` paths.
fn loads(shares: &[Share], paths: usize, unit: u64) -> Vec<u64> {
    let on = |index| shares.iter().filter(move |share| share.path == path(index));
    (0..paths).map(|index| on(index).map(|share| share.bytes.div_ceil(unit)).sum()).collect()
}
fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

trials! {
    /// Every message whole, shares to the unit, one extra part less than there are paths.
    fn shares_are_kept_to_the_unit(
        sizes in prop::collection::vec(prop_oneof![Just(0u64), 1u64..20, 1u64..1_000_000], 0..20),
        weights in prop::collection::vec(prop_oneof![Just(0u64), 1u64..5, 1u64..1 << 40], 1..20),
        unit in prop_oneof![Just(1u64), 2u64..5_000],
        seed in any::<u64>(),
    ) {
        let shares = split(&sizes, &weights, unit, seed);
        let mut of: BTreeMap<usize, Vec<Share>> = BTreeMap::new();
        shares.iter().for_each(|share| of.entry(share.message).or_default().push(*share));
        prop_assert_eq!(of.len(), sizes.len());
        for (message, parts) in &of {
            prop_assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), sizes[*message]);
            let (last, others) = parts.split_last().unwrap();
            prop_assert!(others.iter().all(|part| part.bytes > 0 && part.bytes % unit == 0));
            prop_assert!(last.bytes > 0 || sizes[*message] == 0);
            let numbers: Vec<u32> = parts.iter().map(|part| part.part).collect();
            prop_assert_eq!(numbers, (0..parts.len() as u32).collect::<Vec<_>>());
            let paths: BTreeSet<PathId> = parts.iter().map(|part| part.path).collect();
            prop_assert_eq!(paths.len(), parts.len(), "two parts on one path");
        }
        let known = weigh(&weights);
        let in_use = known.iter().filter(|(_, weight)| *weight > 0).count();
        prop_assert!(shares.len() < sizes.len() + in_use);
        let total: u64 = sizes.iter().map(|bytes| bytes.div_ceil(unit)).sum();
        for (load, (_, weight)) in loads(&shares, weights.len(), unit).iter().zip(known.iter()) {
            let (sum, weight) = (u128::from(known.sum()), u128::from(weight));
            let (load, exact) = (u128::from(*load) * sum, u128::from(total) * weight);
            prop_assert!(load.abs_diff(exact) < sum, "{load} for {exact} of {sum}");
            prop_assert!(weight > 0 || load == 0);
        }
    }

    /// Equal sizes and weights: as even as theorem 1, with no more parts than it.
    fn equal_weights_are_theorem_one(
        (messages, paths) in (1usize..40, 1usize..40),
        bytes in 1u64..100_000,
        seed in any::<u64>(),
    ) {
        let sizes = vec![bytes; messages];
        let shares = split(&sizes, &vec![7; paths], 1, seed);
        let carried = loads(&shares, paths, 1);
        prop_assert!(carried.iter().max().unwrap() - carried.iter().min().unwrap() <= 1);
        if bytes >= paths as u64 {
            // A share of a message at least: cuts coincide with ends of messages g - 1 times.
            let extra = paths - gcd(messages, paths);
            prop_assert_eq!(shares.len(), messages + extra);
        }
        let ids: Vec<PathId> = (0..paths).map(path).collect();
        let (mut stream, mut published) = (Draw::new(seed, "test").stream(0), Vec::new());
        split_and_assign(&sizes, &ids, Group::Leaf, 1, &mut stream, &mut published);
        prop_assert!(shares.len() <= published.len(), "{} {}", shares.len(), published.len());
    }
}

/// One packet at a time finds each path as often as its weight says.
#[test]
fn single_packets_are_shared_out_by_chance() {
    let mut counts = [0u64; 3];
    for seed in 0..4_000 {
        counts[usize::from(split(&[100], &[4, 1, 3], 4_096, seed)[0].path.0)] += 1;
    }
    // Standard deviations of 32, 21 and 31.
    for (count, expected) in counts.iter().zip([2_000, 500, 1_500]) {
        assert!(count.abs_diff(expected) < 130, "{counts:?}");
    }
}

/// 3 leaves of 2 hosts, 4 spines.
fn fabric() -> Fabric {
    Fabric::build(&Clos::leaf_spine(3, 4, 2, LINK)).unwrap()
}
fn planner(options: &[(&str, &str)], seed: u64) -> Planner {
    let scheme = SchemeConfig::read("ethereal-weighted", options).unwrap();
    let start_jitter = Time::ZERO;
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 0 };
    Planner::new(&config, HostId(0), seed, 1_000)
}
/// Uplink `spine` of the first leaf has `percent` left.
fn uplink(fabric: &Fabric, spine: u32, percent: u64) -> Arc<PathView> {
    let first = fabric.next_hops(SwitchId(0), HostId(2)).first;
    let slow = PortId(first.0 + spine);
    let left = |id| if id == slow { percent * 1_000_000_000 } else { 100_000_000_000 };
    Arc::new(PathView::new(LinkShares::new(fabric, left)))
}
fn post(message: u32, dst: u32, bytes: u64) -> Post {
    Post { message: MessageId(message), dst: HostId(dst), bytes, job: 0, ranks: (0, 0), tag: 0 }
}
fn plan(planner: &mut Planner, now: Time, posts: &[Post], fabric: &Fabric) -> Vec<Subflow> {
    let mut out = Vec::new();
    posts.iter().for_each(|post| planner.post(now, *post, fabric, &mut out));
    planner.flush(now, fabric, &mut out);
    out
}
/// Bytes by uplink.
fn by_uplink(subflows: &[Subflow]) -> [u64; 4] {
    let mut bytes = [0; 4];
    for subflow in subflows {
        let Route::Pinned(path) = subflow.route else { panic!("{subflow:?} is not pinned") };
        bytes[usize::from(path.first())] += subflow.bytes;
    }
    bytes
}
fn active(dst: u32, uplink: u8, left: u64) -> ActiveFlow {
    let route = Route::Pinned(PathId::new(uplink, 0));
    ActiveFlow {
        flow: FlowInfo { dst: HostId(dst), route, bytes: left, queue_pair: None, chunk: None },
        left,
    }
}

#[test]
fn hosts_weigh_what_they_have_learnt() {
    let fabric = fabric();
    let mut planner = planner(&[("unit", "byte")], 1);
    let posts = [post(0, 2, 13_000), post(1, 3, 13_000), post(2, 4, 13_000)];
    let subflows = plan(&mut planner, Time::ZERO, &posts[..2], &fabric);
    assert_eq!(by_uplink(&subflows), [6_500; 4]);
    planner.learn(Time::us(1), &uplink(&fabric, 1, 25), &fabric);
    let subflows = plan(&mut planner, Time::us(1), &posts[..2], &fabric);
    assert_eq!(by_uplink(&subflows), [8_000, 2_000, 8_000, 8_000]);
    planner.learn(Time::us(2), &uplink(&fabric, 2, 0), &fabric);
    let bytes = by_uplink(&plan(&mut planner, Time::us(2), &posts, &fabric));
    assert_eq!((bytes[2], bytes.iter().sum::<u64>()), (0, 39_000));
    planner.learn(Time::us(3), &uplink(&fabric, 2, 100), &fabric);
    let subflows = plan(&mut planner, Time::us(3), &posts[..2], &fabric);
    assert_eq!(by_uplink(&subflows), [6_500; 4]);
    assert!(!planner.wants_rebalance(), "redistribution is off");
}

/// What this host found out by itself, and what routing told it, count both.
#[test]
fn bad_paths_have_no_share() {
    let fabric = fabric();
    let mut planner = planner(&[("unit", "byte")], 1);
    planner.learn(Time::ZERO, &uplink(&fabric, 1, 50), &fabric);
    let flow = active(2, 3, 1_000).flow;
    let mut counts = [0u32; 4];
    for seed in 0..600 {
        let mut planner = self::planner(&[], seed);
        planner.learn(Time::ZERO, &uplink(&fabric, 1, 50), &fabric);
        let route = planner.on_loss(Time::us(1), &flow, LossSignal::TimeOut, &fabric);
        let Some(Route::Pinned(path)) = route else { panic!("{route:?}") };
        counts[usize::from(path.first())] += 1;
    }
    // A new path by weight: two fifths, one, two.
    assert_eq!(counts[3], 0);
    assert!([240, 120, 240].iter().zip(counts).all(|(e, n)| n.abs_diff(*e) < 50), "{counts:?}");
    planner.on_loss(Time::us(1), &flow, LossSignal::TimeOut, &fabric);
    let subflows = plan(&mut planner, Time::us(2), &[post(0, 2, 10_000)], &fabric);
    assert_eq!(by_uplink(&subflows), [4_000, 2_000, 4_000, 0]);
    let subflows = plan(&mut planner, Time::us(2), &[post(0, 4, 14_000)], &fabric);
    assert_eq!(by_uplink(&subflows), [4_000, 2_000, 4_000, 4_000], "another leaf");
}

#[test]
fn flows_are_spread_anew_where_something_has_changed() {
    let fabric = fabric();
    let mut planner = planner(&[("redistribute", "true")], 1);
    let rebalance = |planner: &mut Planner, flows: &[ActiveFlow]| {
        let mut out = Vec::new();
        planner.rebalance(Time::us(2), flows, &fabric, &mut out);
        out.sort_unstable_by_key(|(index, _)| *index);
        out
    };
    // To leaf 1 four flows on each of four paths, to leaf 2 one on each.
    let mut flows: Vec<ActiveFlow> =
        (0..16).map(|n| active(2 + n / 8, (n % 4) as u8, 1_000)).collect();
    flows.extend((0..4).map(|n| active(4, n, 1_000)));
    planner.learn(Time::us(1), &uplink(&fabric, 1, 100), &fabric);
    assert!(!planner.wants_rebalance(), "nothing is amiss");
    planner.learn(Time::us(1), &uplink(&fabric, 1, 25), &fabric);
    assert!(planner.wants_rebalance());
    let moved = rebalance(&mut planner, &flows);
    assert!(!planner.wants_rebalance());
    // 16 flows in proportion 4 : 1 : 4 : 4 are 4.9 and 1.2: three leave the slow path. To the other
    // leaf 4 flows are 1.2 and 0.3: one leaves.
    assert_eq!(moved.len(), 4, "{moved:?}");
    assert!(moved.iter().all(|(index, _)| flows[*index].flow.route == active(0, 1, 0).flow.route));
    let to: BTreeSet<u16> = moved[..3].iter().map(|(_, route)| uplink_of(*route)).collect();
    assert_eq!(to, [0, 2, 3].into(), "one to each");
    // By a time-out of its own, to one leaf only.
    let mut planner = self::planner(&[("redistribute", "true")], 1);
    assert_eq!(planner.on_loss(Time::us(1), &flows[0].flow, LossSignal::Nack, &fabric), None);
    assert!(!planner.wants_rebalance(), "NACKs come of moving");
    planner.on_loss(Time::us(1), &flows[0].flow, LossSignal::TimeOut, &fabric);
    let moved = rebalance(&mut planner, &flows);
    let indices: Vec<usize> = moved.iter().map(|(index, _)| *index).collect();
    assert_eq!(indices, [0, 4, 8, 12], "all on the path, and no other");
    assert!(moved.iter().all(|(_, route)| uplink_of(*route) != 0));
}
fn uplink_of(route: Route) -> u16 {
    let Route::Pinned(path) = route else { panic!("{route:?}") };
    u16::from(path.first())
}

#[test]
fn weights_from_elsewhere_are_obeyed() {
    let fabric = fabric();
    let mut planner = planner(&[("unit", "byte")], 1);
    let mut view = PathView::new(LinkShares::new(&fabric, |id| fabric.ports()[id].rate.as_bps()));
    let given = [5, 0, 3, 2].into_iter().enumerate();
    let given = given.map(|(index, weight)| (PathId::new(index as u8, 0), weight));
    view.give((0, 1), PathWeights::new(given));
    planner.learn(Time::ZERO, &Arc::new(view), &fabric);
    let subflows = plan(&mut planner, Time::ZERO, &[post(0, 2, 600), post(1, 2, 400)], &fabric);
    assert_eq!(by_uplink(&subflows), [500, 0, 300, 200]);
    let subflows = plan(&mut planner, Time::ZERO, &[post(0, 4, 1_000)], &fabric);
    assert_eq!(by_uplink(&subflows), [250; 4]);
}
