//! What a host does with its messages: batches, rack-local messages, trouble, random starts.

use std::collections::BTreeSet;
use weft_balance::Planner;
use weft_balance::enforce::Enforce;
use weft_balance::plan::{Carrier, FlowInfo, LossSignal, Post, Route, Subflow};
use weft_balance::scheme::ethereal::{Group, Nack, Unit};
use weft_balance::scheme::platform::Platform;
use weft_balance::scheme::{BalanceConfig, Ecmp, Ethereal, SCHEMES, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link, PathId};
use weft_trial::prelude::*;
use weft_units::options::ResolvedOption;
use weft_units::{HostId, MessageId, Rate, Time};

/// Payload of a packet.
const MTU: u32 = 1_000;
const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
const BATCH: Time = Time::ns(100);
const BAD_FOR: Time = Time::ms(100);

fn config(scheme: SchemeConfig, start_jitter: Time) -> BalanceConfig {
    BalanceConfig { scheme, start_jitter, random_position: false, bdp: 100_000 }
}
fn ethereal() -> SchemeConfig {
    let (group, nack, unit) = (Group::Leaf, Nack::Reroute, Unit::Byte);
    let enforce = Enforce::PathId;
    Ethereal { batch: BATCH, bad_for: BAD_FOR, group, nack, unit, enforce }.into()
}
fn to(dst: HostId, route: Route) -> FlowInfo {
    FlowInfo { dst, route, bytes: 8_000, queue_pair: None, chunk: None }
}
/// All that a planner gives out for `posts` at time zero, batches included.
fn plan(planner: &mut Planner, posts: &[Post], fabric: &Fabric) -> Vec<Subflow> {
    let mut out = Vec::new();
    for post in posts {
        planner.post(Time::ZERO, *post, fabric, &mut out);
    }
    while let Some(deadline) = planner.deadline() {
        planner.flush(deadline, fabric, &mut out);
    }
    // Persistent queue pairs take what waits for them.
    let mut subflow = 0;
    while subflow < out.len() {
        if let Some(queue_pair) = out[subflow].carrier.persistent() {
            out.extend(planner.next(Time::ZERO, queue_pair, fabric));
        }
        subflow += 1;
    }
    out
}
/// 4 leaves, 8 spines, 4 hosts a leaf.
fn fabric() -> Fabric {
    Fabric::build(&Clos::leaf_spine(4, 8, 4, LINK)).unwrap()
}
fn post(message: u32, dst: u32, bytes: u64) -> Post {
    Post { message: MessageId(message), dst: HostId(dst), bytes, job: 0, ranks: (0, 0), tag: 0 }
}
fn pinned(subflow: &Subflow) -> PathId {
    let Route::Pinned(path) = subflow.route else { panic!("{subflow:?} is not pinned") };
    path
}

#[test]
fn rack_local_messages_leave_at_once() {
    let fabric = fabric();
    let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 1, MTU);
    let mut out = Vec::new();
    planner.post(Time::us(3), post(0, 2, 1_000_000), &fabric, &mut out);
    assert_eq!(planner.deadline(), None);
    let expected = Subflow {
        message: MessageId(0),
        dst: HostId(2),
        bytes: 1_000_000,
        part: 0,
        route: Route::Pinned(PathId::new(0, 0)),
        delay: Time::ZERO,
        tag: 0,
        carrier: Carrier::Own,
    };
    assert_eq!(out, [expected]);
    // Nor do they wait for a batch that is open, or end it.
    planner.post(Time::us(4), post(1, 4, 8), &fabric, &mut out);
    planner.post(Time::us(4), post(2, 3, 8), &fabric, &mut out);
    assert_eq!(out.len(), 2);
    assert_eq!(planner.deadline(), Some(Time::us(4) + BATCH));
}

#[test]
fn the_first_post_of_a_batch_arms_the_timer() {
    let fabric = fabric();
    let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 1, MTU);
    let mut out = Vec::new();
    // Leaves 1 and 2 in turns.
    let dsts = [4, 8, 5, 9, 6, 10, 7, 11];
    for (step, dst) in dsts.into_iter().enumerate() {
        let now = Time::us(1) + Time::ns(10) * step as u64;
        planner.post(now, post(dst, dst, 4096), &fabric, &mut out);
        assert_eq!(planner.deadline(), Some(Time::us(1) + BATCH));
    }
    assert!(out.is_empty());
    planner.flush(Time::us(1) + BATCH, &fabric, &mut out);
    assert_eq!(planner.deadline(), None);
    // 4 flows to each of 2 leaves over 8 spines: each in 2 parts, in the order of posting.
    let order: Vec<(u32, u32)> =
        out.iter().map(|subflow| (subflow.message.0, subflow.part)).collect();
    assert_eq!(order, dsts.into_iter().flat_map(|m| [(m, 0), (m, 1)]).collect::<Vec<_>>());
    for leaf in 1..3 {
        let paths: BTreeSet<PathId> =
            out.iter().filter(|subflow| subflow.dst.0 / 4 == leaf).map(pinned).collect();
        assert_eq!(paths.len(), 8);
    }
    // A new batch.
    planner.post(Time::us(5), post(20, 8, 8), &fabric, &mut out);
    assert_eq!(planner.deadline(), Some(Time::us(5) + BATCH));
    let before = out.len();
    planner.flush(Time::us(5) + BATCH, &fabric, &mut out);
    assert_eq!(out.len() - before, 8);
    planner.flush(Time::us(9), &fabric, &mut out);
    assert_eq!(out.len() - before, 8, "nothing waits, nothing leaves");
}

#[test]
fn small_and_empty_messages_have_no_empty_parts() {
    let fabric = fabric();
    let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 1, MTU);
    let mut out = Vec::new();
    planner.post(Time::ZERO, post(0, 4, 3), &fabric, &mut out);
    planner.post(Time::ZERO, post(1, 8, 0), &fabric, &mut out);
    planner.flush(BATCH, &fabric, &mut out);
    let sizes: Vec<(u32, u64)> =
        out.iter().map(|subflow| (subflow.message.0, subflow.bytes)).collect();
    assert_eq!(sizes, [(0, 1), (0, 1), (0, 1), (1, 0)]);
}

#[test]
fn trouble_moves_the_flow_and_marks_the_path_for_a_while() {
    let fabric = fabric();
    let (dst, old) = (HostId(4), PathId::new(5, 0));
    let uses = |planner: &mut Planner, now: Time, dst: u32| {
        let mut out = Vec::new();
        planner.post(now, post(0, dst, 8_000), &fabric, &mut out);
        planner.flush(now, &fabric, &mut out);
        out.iter().map(pinned).collect::<BTreeSet<_>>()
    };
    for signal in [LossSignal::Nack, LossSignal::TimeOut] {
        let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 7, MTU);
        assert!(uses(&mut planner, Time::ZERO, 4).contains(&old));
        let now = Time::us(10);
        let new = planner.on_loss(now, &to(dst, Route::Pinned(old)), signal, &fabric);
        let Some(Route::Pinned(new)) = new else { panic!("{new:?}") };
        assert_ne!(new, old);
        let later = now + BAD_FOR - Time::ps(1);
        assert!(!uses(&mut planner, later, 4).contains(&old), "{signal:?}");
        assert_eq!(uses(&mut planner, later, 5).len(), 7, "one state a leaf");
        assert_eq!(uses(&mut planner, later, 8).len(), 8, "other leaves are unaffected");
        assert!(uses(&mut planner, now + BAD_FOR, 4).contains(&old), "for a while only");
    }
}

#[test]
fn trouble_avoids_bad_paths_until_all_are_bad() {
    let fabric = fabric();
    let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 7, MTU);
    let mut path = PathId::new(0, 0);
    let mut visited = BTreeSet::from([path]);
    for _ in 1..8 {
        let route = Route::Pinned(path);
        let new = planner.on_loss(Time::us(1), &to(HostId(4), route), LossSignal::TimeOut, &fabric);
        let Some(Route::Pinned(new)) = new else { panic!("{new:?}") };
        assert!(visited.insert(new), "{new:?} is marked bad");
        path = new;
    }
    // All eight were visited and seven are bad. Now the eighth is too: any other one.
    let route = Route::Pinned(path);
    let new = planner.on_loss(Time::us(1), &to(HostId(4), route), LossSignal::TimeOut, &fabric);
    assert!(new.is_some() && new != Some(route));
    // And batches use all.
    let mut out = Vec::new();
    planner.post(Time::us(2), post(0, 4, 8_000), &fabric, &mut out);
    planner.flush(Time::us(2), &fabric, &mut out);
    assert_eq!(out.iter().map(pinned).collect::<BTreeSet<_>>().len(), 8);
}

#[test]
fn trouble_spreads_over_the_other_paths() {
    let fabric = fabric();
    let old = Route::Pinned(PathId::new(3, 0));
    let new: BTreeSet<PathId> = (0..200)
        .map(|seed| {
            let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), seed, MTU);
            match planner.on_loss(Time::ZERO, &to(HostId(4), old), LossSignal::Nack, &fabric) {
                Some(Route::Pinned(path)) => path,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(new.len(), 7);
}

#[test]
fn nobody_moves_without_another_path() {
    let single = Fabric::build(&Clos::leaf_spine(2, 1, 2, LINK)).unwrap();
    let route = Route::Pinned(PathId::new(0, 0));
    let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 1, MTU);
    assert_eq!(planner.on_loss(Time::ZERO, &to(HostId(2), route), LossSignal::Nack, &single), None);
    assert_eq!(
        planner.on_loss(Time::ZERO, &to(HostId(1), route), LossSignal::Nack, &fabric()),
        None
    );
    for scheme in [ethereal(), Ecmp.into()] {
        let mut planner = Planner::new(&config(scheme, Time::ZERO), HostId(0), 1, MTU);
        let route = Route::Hashed(9);
        let moved =
            planner.on_loss(Time::ZERO, &to(HostId(4), route), LossSignal::TimeOut, &fabric());
        assert_eq!(moved, None);
    }
}

#[test]
fn hashed_schemes_send_whole_messages_at_once_with_random_entropy() {
    let fabric = fabric();
    for scheme in ["ecmp", "spray", "spray-counter", "reps", "reps-sticky"] {
        let scheme = SchemeConfig::read(scheme, &[]).unwrap();
        let mut planner = Planner::new(&config(scheme, Time::ZERO), HostId(0), 1, MTU);
        let mut out = Vec::new();
        for message in 0..1000 {
            planner.post(Time::us(1), post(message, 1 + message % 15, 5_000), &fabric, &mut out);
        }
        assert_eq!(planner.deadline(), None);
        assert_eq!(out.len(), 1000);
        let entropies: BTreeSet<u16> = out
            .iter()
            .map(|subflow| match subflow.route {
                Route::Hashed(entropy) => entropy,
                Route::Pinned(_) => panic!("{subflow:?} is pinned"),
            })
            .collect();
        // 1000 draws of 65,536 collide about 8 times.
        assert!(entropies.len() > 970, "{}", entropies.len());
        assert!(out.iter().all(|subflow| subflow.bytes == 5_000 && subflow.delay == Time::ZERO));
    }
}

#[test]
fn starts_are_spread_and_the_same_for_all_schemes() {
    let fabric = fabric();
    let jitter = Time::us(1);
    let posts: Vec<Post> = (0..400).map(|m| post(m, 1 + m % 15, 4096)).collect();
    let starts = |scheme: SchemeConfig, seed: u64| {
        let mut planner = Planner::new(&config(scheme, jitter), HostId(0), seed, MTU);
        let out = plan(&mut planner, &posts, &fabric);
        let mut first: Vec<(u32, Time)> = out
            .iter()
            .filter(|subflow| subflow.part == 0)
            .map(|subflow| (subflow.message.0, subflow.delay))
            .collect();
        first.sort_unstable();
        first
    };
    let of_ecmp = starts(Ecmp.into(), 3);
    assert_eq!(of_ecmp.len(), 400);
    assert!(of_ecmp.iter().all(|(_, delay)| *delay < jitter));
    let mean = of_ecmp.iter().map(|(_, delay)| delay.0).sum::<u64>() / 400;
    // Standard deviation of the mean: 1 us / sqrt(12 * 400) = 14 ns.
    assert!(mean.abs_diff(jitter.0 / 2) < 60_000, "{mean} ps");
    for scheme in SchemeConfig::all() {
        let found = starts(scheme.clone(), 3);
        // Twill has no more than 256 chunks out.
        assert!(found.len() == 400 || scheme.info().watches && found.len() > 200, "{scheme:?}");
        assert!(found.iter().all(|start| of_ecmp.contains(start)), "{scheme:?}");
    }
    assert_ne!(starts(Ecmp.into(), 4), of_ecmp);
}

#[test]
fn hosts_and_batches_begin_on_different_paths() {
    let fabric = fabric();
    let mut first: BTreeSet<PathId> = BTreeSet::new();
    let mut changes = 0;
    for host in 0..4 {
        let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(host), 1, MTU);
        let mut assignments = BTreeSet::new();
        for batch in 0..8u32 {
            let mut out = Vec::new();
            let now = Time::us(u64::from(batch));
            (0..8).for_each(|m| planner.post(now, post(m, 4, 100), &fabric, &mut out));
            planner.flush(now + BATCH, &fabric, &mut out);
            first.insert(pinned(&out[0]));
            assignments.insert(out.iter().map(pinned).collect::<Vec<_>>());
        }
        changes += assignments.len();
    }
    assert!(first.len() >= 6, "{first:?}");
    assert!(changes >= 30, "{changes} of 32 batches are assigned differently");
}

/// A message that is cut for all paths: its parts leave in an order of paths that differs from
/// batch to batch, or all hosts would open on the same uplink.
#[test]
fn parts_begin_on_different_paths() {
    let fabric = fabric();
    let mut planner = Planner::new(&config(ethereal(), Time::ZERO), HostId(0), 1, MTU);
    let mut first = BTreeSet::new();
    for batch in 0..32 {
        let mut out = Vec::new();
        planner.post(Time::us(batch), post(0, 4, 8_000), &fabric, &mut out);
        planner.flush(Time::us(batch), &fabric, &mut out);
        assert_eq!(out.len(), 8);
        first.insert(pinned(&out[0]));
    }
    assert!(first.len() >= 6, "{first:?}");
}

/// 16 sizes that differ by a byte each, over 8 paths: two whole messages a path as published;
/// each in 8 parts if only equal sizes are spread together.
#[test]
fn batches_are_grouped_as_told() {
    let fabric = fabric();
    let posts: Vec<Post> = (0..16).map(|m| post(m, 4, 9_000 + u64::from(m))).collect();
    let subflows = |given: &[(&str, &str)]| {
        let scheme = SchemeConfig::read("ethereal", given).unwrap();
        let mut planner = Planner::new(&config(scheme, Time::ZERO), HostId(0), 1, MTU);
        plan(&mut planner, &posts, &fabric)
    };
    let on_path = |subflows: &[Subflow]| {
        let mut load = [0u64; 8];
        subflows
            .iter()
            .for_each(|subflow| load[usize::from(pinned(subflow).first())] += subflow.bytes);
        load
    };
    let leaf = subflows(&[]);
    assert_eq!(leaf, subflows(&[("group", "leaf")]));
    assert_eq!(leaf.len(), 16);
    assert!(on_path(&leaf).iter().all(|bytes| (18_001..=18_029).contains(bytes)));
    let size = subflows(&[("group", "size")]);
    assert_eq!(size.len(), 128);
    // 144,120 bytes over 8 paths.
    assert_eq!(on_path(&size), [18_015; 8]);
}

#[test]
fn the_registry_says_what_each_scheme_reads() {
    let names: BTreeSet<&str> = SCHEMES.iter().map(|info| info.name).collect();
    assert_eq!(names.len(), SCHEMES.len(), "every name once: {names:?}");
    for info in SCHEMES {
        assert!(![info.name, info.summary, info.source].contains(&""), "{info:?}");
        let (scheme, settled) = SchemeConfig::resolve(info.name, &[]).unwrap();
        assert_eq!(scheme.info(), info);
        // What holds without being told is what is listed, in the same words.
        for ResolvedOption { key, text, .. } in &settled {
            let listed = info.options.iter().find(|option| option.key == *key).unwrap();
            assert_eq!(listed.default, text, "{} {key}", info.name);
        }
        // And told the same, it is the same.
        let told: Vec<_> = settled.iter().map(|one| (one.key, one.text.as_str())).collect();
        assert_eq!(SchemeConfig::resolve(info.name, &told), Ok((scheme, settled.clone())));
        for option in info.options {
            let wrong = SchemeConfig::read(info.name, &[(option.key, "\u{1}")]).unwrap_err();
            assert_eq!(wrong.key, option.key, "{}: {wrong}", info.name);
        }
    }
}

#[test]
fn wrong_options_are_refused_with_the_mend() {
    let wrong = |name, options: &[_]| SchemeConfig::read(name, options).unwrap_err().to_string();
    let cases = [
        (
            wrong("spray-counter", &[("entropies", "48")]),
            "entropies: 48 is out of range; use a power of two up to 65536",
        ),
        (
            wrong("reps-sticky", &[("entropies", "0")]),
            "entropies: 0 is out of range; use 1 to 65536",
        ),
        (
            wrong("reps", &[("entropies", "65537")]),
            "entropies: 65537 is out of range; use 1 to 65536",
        ),
        (
            wrong("reps", &[("entropies", "many")]),
            "entropies: \"many\" is not a whole number; write one such as 256",
        ),
        (
            wrong("ethereal", &[("batch", "100")]),
            "batch: time \"100\" has no unit; write \"100ns\"",
        ),
        (
            wrong("ethereal", &[("group", "host")]),
            "group: unknown value \"host\"; use one of leaf, size",
        ),
        (
            wrong("ethereal", &[("batsh", "1us")]),
            "batsh: unknown option of scheme \"ethereal\"; it has batch, bad_for, group, nack, unit, enforce",
        ),
        (
            wrong("ecmp", &[("batch", "1us")]),
            "batch: unknown option of scheme \"ecmp\"; it has none",
        ),
    ];
    for (got, expected) in cases {
        assert_eq!(got, expected);
    }
    assert!(wrong("ecpm", &[]).starts_with("scheme: unknown value \"ecpm\"; use one of ecmp, "));
}

trials! {
    /// The same calls under the same seed give the same subflows; another host's planner,
    /// running in between, changes nothing.
    fn is_deterministic(
        seed in any::<u64>(), dsts in prop::collection::vec((1u32..16, 1u64..9_000), 1..50),
        scheme in any_of(SchemeConfig::all()),
    ) {
        let fabric = fabric();
        let config = config(scheme, Time::ns(50));
        let run = |disturbed: bool| {
            let mut planner = Planner::new(&config, HostId(0), seed, MTU);
            let mut other = Planner::new(&config, HostId(3), seed, MTU);
            let mut out = Vec::new();
            for (index, (dst, bytes)) in dsts.iter().enumerate() {
                planner.post(Time::ZERO, post(index as u32, *dst, *bytes), &fabric, &mut out);
                if disturbed {
                    other.post(Time::ZERO, post(index as u32, 5, 1), &fabric, &mut Vec::new());
                    other.flush(Time::ZERO, &fabric, &mut Vec::new());
                }
            }
            planner.flush(BATCH, &fabric, &mut out);
            out
        };
        prop_assert_eq!(run(false), run(true));
    }

    /// Whatever the scheme: the subflows of a message add up to it, are numbered from zero, go
    /// where it goes, and are empty only if it is.
    fn cuts_messages_exactly(
        seed in any::<u64>(), dsts in prop::collection::vec((1u32..16, 0u64..9_000), 1..50),
        scheme in any_of(SchemeConfig::all()),
    ) {
        let fabric = fabric();
        let config = config(scheme, Time::ns(50));
        let mut planner = Planner::new(&config, HostId(0), seed, MTU);
        let posts: Vec<Post> =
            (0..).zip(&dsts).map(|(id, (dst, bytes))| post(id, *dst, *bytes)).collect();
        let subflows = plan(&mut planner, &posts, &fabric);
        for post in posts {
            let mine = || subflows.iter().filter(|subflow| subflow.message == post.message);
            prop_assert_eq!(mine().map(|subflow| subflow.bytes).sum::<u64>(), post.bytes);
            let parts: BTreeSet<u32> = mine().map(|subflow| subflow.part).collect();
            prop_assert_eq!(parts, (0..mine().count() as u32).collect::<BTreeSet<_>>());
            prop_assert!(mine().all(|subflow| subflow.dst == post.dst));
            prop_assert!(mine().count() == 1 || mine().all(|subflow| subflow.bytes > 0));
        }
    }
}

/// Connections have one route and take their source port from it: what hosts do, and switches that
/// hash or map ports.
#[test]
fn schemes_run_where_they_say() {
    let queue_pairs =
        "ecmp, ethereal, ethereal-weighted, hpn, e-ecmp-N, cast-N, dnlb-N, paralet-N, subflows-N";
    assert_eq!(Platform::Sockets.schemes(), format!("{queue_pairs}, twill"));
    assert_eq!(Platform::Verbs.schemes(), queue_pairs);
    assert_eq!(Platform::Simulator.schemes().split(", ").count(), SCHEMES.len());
    for info in SCHEMES {
        // A planner knows the weights that switches hash by; hosts that steer packets can do so anywhere.
        let planned = info.needs_beyond(Platform::Planner).is_none();
        let connected = info.needs_beyond(Platform::Sockets).is_none();
        assert_eq!(planned, connected && !info.watches || info.weighted, "{}", info.name);
        let on_bed = info.needs_beyond(Platform::TestBed).is_none();
        let steers = info.multipath && !info.in_switch;
        assert!(!info.watches || on_bed && connected, "{}", info.name);
        assert_eq!(on_bed, (connected || steers) && !info.shares, "{}", info.name);
    }
}
