//! Schemes whose queue pairs stand: ParaLet's flowlets, connections of several queue pairs, DNLB's
//! source ports and segments.

use std::collections::{BTreeMap, BTreeSet};
use weft_balance::Planner;
use weft_balance::plan::{FlowInfo, LossSignal, Post, QueuePairId, Route, Subflow};
use weft_balance::scheme::dnlb::{Condition, FIRST_PORT, Formula, PORTS, segment};
use weft_balance::scheme::{BalanceConfig, Paralet, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link};
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Rate, Time};

const MTU: u32 = 1_000;
/// Bytes of a bandwidth-delay product.
const BDP: u64 = 100_000;

/// 4 leaves, 8 spines, 4 hosts a leaf.
fn fabric() -> Fabric {
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    Fabric::build(&Clos::leaf_spine(4, 8, 4, link)).unwrap()
}

/// The planner of `host`.
fn planner(scheme: &str, options: &[(&str, &str)], host: u32) -> Planner {
    let scheme = SchemeConfig::read(scheme, options).unwrap();
    let start_jitter = Time::ZERO;
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: BDP };
    Planner::new(&config, HostId(host), 1, MTU)
}

fn post(message: u32, dst: u32, bytes: u64) -> Post {
    Post { message: MessageId(message), dst: HostId(dst), bytes, job: 0, ranks: (0, 0), tag: 0 }
}

/// What leaves at once.
fn posted(planner: &mut Planner, post: Post) -> Vec<Subflow> {
    let mut out = Vec::new();
    planner.post(Time::ZERO, post, &fabric(), &mut out);
    out
}

fn queue_pair(subflow: &Subflow) -> QueuePairId {
    subflow.carrier.persistent().expect("it stands")
}

fn port(subflow: &Subflow) -> u16 {
    let Route::Hashed(port) = subflow.route else { panic!("{subflow:?}") };
    port
}

/// Everything that follows when queue pairs have room in turn.
fn drain(planner: &mut Planner, mut under_way: Vec<Subflow>) -> Vec<Subflow> {
    let (fabric, mut done) = (fabric(), 0);
    while let Some(subflow) = under_way.get(done) {
        let id = queue_pair(subflow);
        under_way.extend(planner.next(Time::ZERO, id, &fabric));
        done += 1;
    }
    under_way
}

#[test]
fn a_flowlet_is_four_bdp_over_the_queue_pairs_in_whole_packets() {
    let scheme = |options: &[(&str, &str)]| match SchemeConfig::read("paralet", options).unwrap() {
        SchemeConfig::Paralet(paralet) => paralet,
        other => panic!("{other:?}"),
    };
    let bytes = |paralet: Paralet| paralet.flowlet_bytes(BDP, MTU);
    assert_eq!(bytes(scheme(&[("queue_pairs", "8")])), 50_000);
    assert_eq!(bytes(scheme(&[("queue_pairs", "32")])), 13_000);
    assert_eq!(bytes(scheme(&[("queue_pairs", "4096")])), 1_000);
    assert_eq!(bytes(scheme(&[("flowlet", "2500B")])), 3_000);
    let error = SchemeConfig::read("paralet", &[("flowlet", "0B")]).unwrap_err();
    assert_eq!(error.to_string(), "flowlet: a flowlet has payload; write one such as 16KB");
}

#[test]
fn connections_share_the_queue_pairs_of_a_nic() {
    let mut planner = planner("paralet-4", &[("flowlet", "2KB")], 0);
    let first = posted(&mut planner, post(0, 4, 7_000));
    // Four flowlets at once, one on each queue pair and each with a port of its own.
    assert_eq!(
        first.iter().map(|subflow| subflow.bytes).collect::<Vec<_>>(),
        [2_000, 2_000, 2_000, 1_000]
    );
    assert_eq!(first.iter().map(port).collect::<BTreeSet<_>>().len(), 4);
    assert!(first.iter().all(|subflow| subflow.carrier.share() == 4));
    // All are busy: two more messages wait, and are then pulled in turn.
    assert!(posted(&mut planner, post(1, 8, 5_000)).is_empty());
    assert!(posted(&mut planner, post(2, 4, 4_000)).is_empty());
    let next: Vec<_> = first
        .iter()
        .filter_map(|subflow| planner.next(Time::ZERO, queue_pair(subflow), &fabric()))
        .collect();
    let pulled: Vec<_> = next.iter().map(|subflow| (subflow.message.0, subflow.bytes)).collect();
    assert_eq!(pulled, [(1, 2_000), (2, 2_000), (1, 2_000), (2, 2_000)]);
    // A queue pair keeps its port, whoever the flowlet is for.
    assert_eq!(
        next.iter().map(port).collect::<Vec<_>>(),
        first.iter().map(port).collect::<Vec<_>>()
    );
    let last = planner.next(Time::ZERO, queue_pair(&next[2]), &fabric()).unwrap();
    assert_eq!((last.message.0, last.bytes), (1, 1_000));
    assert_eq!(planner.next(Time::ZERO, queue_pair(&next[0]), &fabric()), None);
    // That one is free now, and takes the next message at once.
    let ids = posted(&mut planner, post(3, 12, 100)).iter().map(queue_pair).collect::<Vec<_>>();
    assert_eq!(ids, [queue_pair(&next[0])]);
}

#[test]
fn flowlets_may_have_ports_of_their_own() {
    let mut planner = planner("paralet-2", &[("flowlet", "1KB"), ("ports", "flowlet")], 0);
    let first = posted(&mut planner, post(0, 4, 50_000));
    let ports: BTreeSet<u16> = drain(&mut planner, first).iter().map(port).collect();
    assert!(ports.len() > 45, "{} of 50", ports.len());
}

#[test]
fn a_message_goes_over_all_queue_pairs_or_to_one_in_turn() {
    let mut even = planner("e-ecmp-4", &[], 0);
    let bytes =
        |subflows: &[Subflow]| subflows.iter().map(|subflow| subflow.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&posted(&mut even, post(0, 4, 10_002))), [2_501, 2_501, 2_500, 2_500]);
    // Another peer has queue pairs of its own; the same one waits.
    assert_eq!(posted(&mut even, post(1, 5, 8_000)).len(), 4);
    assert!(posted(&mut even, post(2, 4, 8_000)).is_empty());
    // No more parts than packets, in turn.
    let mut small = planner("e-ecmp-4", &[], 0);
    let ids = |subflows: Vec<Subflow>| {
        subflows.iter().map(|subflow| queue_pair(subflow).0).collect::<Vec<_>>()
    };
    assert_eq!(ids(posted(&mut small, post(0, 4, 1_500))), [0, 1]);
    assert_eq!(ids(posted(&mut small, post(1, 4, 1_500))), [2, 3]);
    let mut turns = planner("e-ecmp-4", &[("split", "round-robin"), ("chunk", "3KB")], 0);
    let subflows = posted(&mut turns, post(0, 4, 8_000));
    assert_eq!(bytes(&subflows), [3_000, 3_000, 2_000]);
    assert_eq!(ids(subflows), [0, 1, 2]);
    assert_eq!(ids(posted(&mut turns, post(1, 4, 500))), [3]);
}

/// Equations 1 to 3 with 8 uplinks: the paper's own ports, 49152 and so on in steps of 2048.
#[test]
fn printed_ports_are_those_of_the_paper() {
    let printed = |number| Formula::Printed.port(number, 8);
    assert_eq!([0, 1, 7].map(printed), [49_152, 51_200, 63_488]);
    // Queue pairs q and q + uplinks share a port, which the repair tells apart.
    assert_eq!(printed(8), printed(0));
    let repaired = |number| Formula::Repaired.port(number, 8);
    assert_eq!([0, 1, 7, 8, 9].map(repaired), [49_152, 51_200, 63_488, 49_153, 51_201]);
    // Six do not divide 16384: late ports of the formula as printed miss their segments.
    let missed =
        (0..100).filter(|number| segment(Formula::Printed.port(*number, 6), 6) != Some(number % 6));
    assert!(missed.count() > 0);
    assert_eq!(segment(0xBFFF, 8), None);
    assert_eq!(segment(0xFFFF, 6), None);
}

trials! {
    fn repaired_ports_stay_in_their_segments_and_differ(uplinks in 1u32..=256, first in 0u32..4_000) {
        let all: Vec<u16> =
            (first..first + uplinks).map(|number| Formula::Repaired.port(number, uplinks)).collect();
        for (number, port) in (first..).zip(&all) {
            prop_assert_eq!(segment(*port, uplinks), Some(number % uplinks));
            prop_assert!(u32::from(*port) >= FIRST_PORT && u32::from(*port) < FIRST_PORT + PORTS);
        }
        let turns = PORTS / uplinks;
        let many: BTreeSet<u16> =
            (0..turns * uplinks).map(|number| Formula::Repaired.port(number, uplinks)).collect();
        prop_assert_eq!(many.len() as u32, turns * uplinks);
    }

    /// Equation 4 and what it leaves out, against counting.
    fn the_condition_tells_whether_uplinks_have_equally_many(nics in 1u32..20, qps in 1u32..20, uplinks in 1u32..20) {
        let mut counts = vec![0; uplinks as usize];
        for number in 0..nics * qps {
            let port = Formula::Repaired.port(number, uplinks);
            counts[segment(port, uplinks).unwrap() as usize] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        let expected = match (least, most) {
            (0, _) => Condition::TooFew,
            (least, most) if least < most => Condition::Uneven,
            _ => Condition::Balanced,
        };
        prop_assert_eq!(Condition::of(nics, qps, uplinks), expected);
    }
}

#[test]
fn the_queue_pairs_of_a_leaf_go_round_its_uplinks() {
    let mut by_uplink = BTreeMap::<u32, u32>::new();
    for host in 4..8 {
        let mut planner = planner("dnlb-2", &[], host);
        for subflow in posted(&mut planner, post(0, 0, 4_000)) {
            *by_uplink.entry(segment(port(&subflow), 8).unwrap()).or_default() += 1;
        }
    }
    assert_eq!(by_uplink, (0..8).map(|uplink| (uplink, 1)).collect());
}

#[test]
fn jobs_without_the_dscp_are_left_to_the_hash() {
    let mut planner = planner("dnlb-4", &[("jobs", "1")], 0);
    let marked = posted(&mut planner, post(0, 4, 8_000));
    let other = posted(&mut planner, Post { job: 1, ..post(1, 4, 8_000) });
    assert!(marked.iter().all(|subflow| segment(port(subflow), 8).is_some()));
    assert!(other.iter().all(|subflow| segment(port(subflow), 8).is_none()));
    let ids: BTreeSet<_> = marked.iter().chain(&other).map(queue_pair).collect();
    assert_eq!(ids.len(), 8);
}

/// Ranks that share a NIC have connections of their own; under DNLB with the same ports, since
/// equation 3 knows NIC and queue pair only.
#[test]
fn ranks_share_no_queue_pairs() {
    let between = |from, to| Post { ranks: (from, to), ..post(0, 4, 8_000) };
    for (name, ports) in [("e-ecmp-4", 8), ("dnlb-4", 4)] {
        let mut planner = planner(name, &[], 0);
        let mut subflows = posted(&mut planner, between(0, 8));
        subflows.extend(posted(&mut planner, between(1, 9)));
        let ids: BTreeSet<_> = subflows.iter().map(queue_pair).collect();
        assert_eq!(ids.len(), 8, "{name}");
        assert_eq!(subflows.iter().map(port).collect::<BTreeSet<_>>().len(), ports, "{name}");
        // The same two again: their queue pairs are busy.
        assert!(posted(&mut planner, between(0, 8)).is_empty());
    }
}

/// A time-out on a queue pair: what waits on it goes to the others, ports unchanged, and so does
/// what is posted while it is left alone.
#[test]
fn a_dead_queue_pair_gives_its_data_to_the_live_ones() {
    let (fabric, now) = (fabric(), Time::ms(1));
    let mut planner = planner("dnlb-4", &[("dead_for", "10ms")], 0);
    let first = posted(&mut planner, post(0, 4, 4_000));
    let ports: Vec<u16> = first.iter().map(port).collect();
    assert!(posted(&mut planner, post(1, 4, 8_000)).is_empty());
    // The third queue pair has sent what it had, and goes on to its part of the second message.
    assert_eq!(planner.next(Time::ZERO, queue_pair(&first[2]), &fabric).unwrap().bytes, 2_000);
    let flow = |subflow: &Subflow| FlowInfo::from(subflow);
    assert_eq!(planner.on_loss(now, &flow(&first[1]), LossSignal::Nack, &fabric), None);
    let route = planner.on_loss(now, &flow(&first[1]), LossSignal::TimeOut, &fabric);
    let Some(Route::Hashed(elsewhere)) = route else { panic!("{route:?}") };
    assert!(ports.contains(&elsewhere) && elsewhere != ports[1]);
    // Its waiting part is one of those that the others carry.
    let mut out = Vec::new();
    while let Some(deadline) = planner.deadline() {
        planner.flush(deadline, &fabric, &mut out);
    }
    for id in [0, 2, 3].map(|place: usize| queue_pair(&first[place])) {
        out.extend(std::iter::from_fn(|| planner.next(now, id, &fabric)));
    }
    assert_eq!(out.iter().map(|subflow| subflow.bytes).sum::<u64>(), 6_000);
    assert!(out.iter().all(|subflow| port(subflow) != ports[1]));
    assert_eq!(planner.next(now, queue_pair(&first[1]), &fabric), None);
    // Later messages use the three that live, and all four again once the time is over.
    let mut later = Vec::new();
    planner.post(Time::ms(2), post(2, 4, 9_000), &fabric, &mut later);
    assert_eq!(later.iter().map(|subflow| subflow.bytes).collect::<Vec<_>>(), [3_000; 3]);
    assert!(later.iter().all(|subflow| port(subflow) != ports[1]));
    for subflow in &later {
        assert_eq!(planner.next(Time::ms(3), queue_pair(subflow), &fabric), None);
    }
    let mut again = Vec::new();
    planner.post(Time::ms(12), post(3, 4, 8_000), &fabric, &mut again);
    assert_eq!(again.iter().map(port).collect::<Vec<_>>(), ports);
}

#[test]
fn a_flow_that_moved_blames_the_queue_pair_that_it_moved_to() {
    let fabric = fabric();
    let mut planner = planner("dnlb-4", &[("dead_for", "10ms")], 0);
    let first = posted(&mut planner, post(0, 4, 4_000));
    let mut flow = FlowInfo::from(&first[1]);
    // Time-outs one after the other, on whatever port it is: each is new, until none is left.
    let mut seen = vec![port(&first[1])];
    for turn in 1..4u64 {
        let route = planner.on_loss(Time::us(turn), &flow, LossSignal::TimeOut, &fabric);
        let Some(Route::Hashed(elsewhere)) = route else { panic!("{route:?}") };
        assert!(!seen.contains(&elsewhere), "{elsewhere} again, after {seen:?}");
        seen.push(elsewhere);
        flow.route = Route::Hashed(elsewhere);
    }
}
