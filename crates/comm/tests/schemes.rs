//! Planners over loopback: subflows, ports and paths as the scheme says.

mod common;

use common::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use weft_balance::enforce::PortTable;
use weft_balance::known::Known;
use weft_comm::statistics::PathStatistics;
use weft_comm::{
    CommError, Endpoint, EndpointConfig, Hint, Notes, PathPlan, SharedPorts, Statistics,
};
use weft_fabric::PathId;
use weft_units::{HostId, PortId};

/// Bytes by path to 127.0.0.3, which is below the other leaf.
fn by_path(statistics: &Statistics) -> BTreeMap<Option<u8>, u64> {
    let mut out = BTreeMap::new();
    for one in &statistics.paths {
        assert_eq!(one.peer.octets(), [127, 0, 0, 3]);
        assert!(one.port >= 49_152, "{one:?}");
        *out.entry(one.path.map(|path| path.first())).or_default() += one.counts.bytes;
    }
    out
}

/// Sends 4 messages of 4 MiB and some others under a scheme; what was counted.
fn run(scheme: &str, options: &[(&str, &str)]) -> Statistics {
    let a = Endpoint::open(planned(1, scheme, options)).expect("opens");
    let b = Endpoint::open(planned(3, scheme, options)).expect("opens");
    let (sending, receiving) = channel(&a, &b);
    for len in [4 << 20, 0, 1, 16 << 10, 100_000, 4 << 20, 4 << 20, 4 << 20] {
        exchange(&sending, &receiving, &pattern(len as u64, len), len + 1);
    }
    a.statistics()
}

const LARGE: u64 = 16 << 20;
const SMALL: u64 = 1 + (16 << 10) + 100_000;

#[test]
fn ethereal_loads_paths_alike_whatever_enforces_them() {
    for enforce in ["path-id", "segments"] {
        let statistics = run("ethereal", &[("unit", "packet"), ("enforce", enforce)]);
        let paths = by_path(&statistics);
        assert_eq!(paths.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(Some), "{enforce}");
        for bytes in paths.values() {
            assert!((LARGE / 4..=LARGE / 4 + SMALL).contains(bytes), "{paths:?}");
        }
        assert_eq!(paths.values().sum::<u64>(), LARGE + SMALL);
        for one in &statistics.paths {
            let segment = (one.port - 49_152) / 4_096;
            assert_eq!(Some(segment as u8), one.path.map(|path| path.first()), "{one:?}");
        }
    }
}

/// Nor do channels begin there, where a connection would wait for its time-out.
#[test]
fn dead_paths_are_left_alone() {
    let (fabric, options) = (fabric(), [("enforce", "segments")]);
    let planned = |last| {
        let config = planned(last, "ethereal", &options);
        let plan = config.plan.map(|plan| {
            let dead = ["leaf-0 -> spine-1", "spine-2 -> leaf-1"];
            let rate = |port: PortId| match dead.contains(&&*fabric.port_name(port)) {
                true => 0,
                false => fabric.ports()[port].rate.as_bps(),
            };
            let known = Known::new(&fabric, &plan.balance.scheme, rate);
            PathPlan { known: Arc::new(known), ..plan }
        });
        EndpointConfig { plan, ..config }
    };
    let a = Endpoint::open(planned(1)).expect("opens");
    let b = Endpoint::open(planned(3)).expect("opens");
    let channels: Vec<_> = (0..16).map(|_| channel(&a, &b)).collect();
    for (sending, receiving) in &channels {
        exchange(sending, receiving, &pattern(1, 1 << 20), 1 << 20);
    }
    let used = by_path(&a.statistics());
    assert_eq!(used.keys().copied().collect::<Vec<_>>(), [Some(0), Some(3)]);
}

/// Four ports a path, as they may have been found; of one path none.
fn found(first: u16, without: Option<u8>) -> PortTable {
    let mut table = PortTable::default();
    for path in (0..4).filter(|path| Some(*path) != without) {
        let ports: Vec<u16> = (0..4).map(|one| first + 100 * one + u16::from(path)).collect();
        for dst in [2, 3] {
            table.add((HostId(0), HostId(dst)), PathId::new(path, 0), &ports);
        }
    }
    table
}

/// Sends 4 MiB twice, with a new table between; what was counted after each.
fn over_found(scheme: &str, options: &[(&str, &str)], tables: [PortTable; 2]) -> [Statistics; 2] {
    let [first, second] = tables;
    let ports = SharedPorts::new(first);
    let with = |config: EndpointConfig| EndpointConfig {
        plan: config.plan.map(|plan| PathPlan { ports: Some(ports.clone()), ..plan }),
        ..config
    };
    let a = Endpoint::open(with(planned(1, scheme, options))).expect("opens");
    let b = Endpoint::open(with(planned(3, scheme, options))).expect("opens");
    let (sending, receiving) = channel(&a, &b);
    let sent = |seed| {
        exchange(&sending, &receiving, &pattern(seed, 4 << 20), 4 << 20);
        a.statistics()
    };
    let before = sent(1);
    ports.replace(second);
    [before, sent(2)]
}

/// Pieces of a message say which path had which bytes, where somebody has asked.
#[test]
fn messages_know_their_pieces() {
    for (scheme, options) in
        [("ethereal", &[("unit", "packet"), ("enforce", "segments")][..]), ("ecmp", &[])]
    {
        let a = Endpoint::open(planned(1, scheme, options)).expect("opens");
        let b = Endpoint::open(planned(3, scheme, options)).expect("opens");
        let bytes = pattern(3, 4 << 20);
        let (sending, receiving) = channel(&a, &b);
        assert_eq!(exchange(&sending, &receiving, &bytes, bytes.len()), Notes::default());
        a.keep_notes();
        let (sending, receiving) = channel(&a, &b);
        for bytes in [&bytes[..], &[]] {
            let notes = exchange(&sending, &receiving, bytes, bytes.len());
            assert_eq!((notes.peer, notes.host), (Some(Ipv4Addr::new(127, 0, 0, 3)), Some(2)));
            assert!(notes.time_outs.is_empty() && notes.left_out_bytes == 0);
            let told = notes.pieces.iter().map(|piece| piece.bytes).sum::<u64>();
            assert_eq!(told, bytes.len() as u64, "{scheme}: {notes:?}");
            let matched = notes.matched.expect("its buffer was known");
            for piece in &notes.pieces {
                assert_eq!(piece.bytes, piece.end - piece.start, "nobody took over");
                assert!(matched <= piece.given && piece.given <= piece.done.expect("it came"));
                let segment = piece.path.map(|path| 49_152 + 4_096 * u16::from(path.first()));
                assert!(segment.is_none_or(|first| (first..=first + 4_095).contains(&piece.port)));
            }
        }
    }
}

#[test]
fn lanes_begin_from_ports_that_were_found_and_move_to_newer_ones() {
    let options = [("unit", "packet"), ("enforce", "discovered")];
    for (scheme, options) in [("ethereal", &options[..]), ("dnlb-4", &[][..])] {
        let tables = [found(50_000, None), found(60_000, None)];
        let [before, after] = over_found(scheme, options, tables);
        for (statistics, first) in [(before, 50_000), (after, 60_000)] {
            let used = |one: &&PathStatistics| one.port >= first && one.counts.bytes > 0;
            let used: Vec<_> = statistics.paths.iter().filter(used).collect();
            assert_eq!(used.len(), 4, "{scheme}: {statistics:?}");
            for one in used {
                assert_eq!(one.path, Some(PathId::new(((one.port - first) % 100) as u8, 0)));
            }
        }
    }
}

#[test]
fn a_path_without_a_port_is_left() {
    let options = [("unit", "packet"), ("enforce", "discovered"), ("bad_for", "30s")];
    let tables = [found(50_000, Some(2)), found(60_000, Some(1))];
    let [before, after] = over_found("ethereal", &options, tables);
    let paths = |statistics: &Statistics, first: u16| -> Vec<_> {
        let mine = statistics.paths.iter().filter(|one| one.port >= first && one.counts.bytes > 0);
        let mut paths: Vec<u8> = mine.filter_map(|one| Some(one.path?.first())).collect();
        paths.sort_unstable();
        paths
    };
    assert_eq!(paths(&before, 50_000), [0, 1, 3]);
    // What it knows of a path that was missing before it forgets after `bad_for`.
    assert_eq!(paths(&after, 60_000), [0, 3]);
}

/// Each path has a lane that stays. Nothing is late here, whoever has to wait for a core.
#[test]
fn twill_takes_paths_in_turn() {
    let options = [("chunk", "32KiB"), ("late", "0"), ("time_out", "0"), ("enforce", "segments")];
    let statistics = run("twill", &options);
    let paths = by_path(&statistics);
    assert_eq!(paths.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
    assert_eq!(paths.values().sum::<u64>(), LARGE + SMALL);
    let in_turn = LARGE / 4..=LARGE / 4 + SMALL;
    assert!(paths.values().all(|bytes| in_turn.contains(bytes)), "{paths:?}");
    assert!(statistics.paths.iter().all(|path| path.counts.reconnects == 0), "{statistics:?}");
}

#[test]
fn dnlb_has_a_queue_pair_in_each_segment() {
    let statistics = run("dnlb", &[("queue_pairs", "4")]);
    let mut by_segment = [0; 4];
    for one in &statistics.paths {
        by_segment[usize::from((one.port - 49_152) / 4_096)] += one.counts.bytes;
    }
    assert_eq!(by_segment.iter().sum::<u64>(), LARGE + SMALL);
    for bytes in by_segment {
        assert!((LARGE / 4..=LARGE / 4 + SMALL).contains(&bytes), "{by_segment:?}");
    }
}

#[test]
fn others_deliver_too() {
    for (scheme, options) in [
        ("ethereal-weighted", &[][..]),
        ("hpn", &[]),
        ("hpn", &[("paths", "hashed")]),
        ("ecmp", &[]),
        ("e-ecmp", &[]),
        ("subflows-4", &[]),
        ("paralet-8", &[("flowlet", "256KiB")]),
        ("paralet-8", &[("flowlet", "256KiB"), ("ports", "flowlet")]),
    ] {
        let statistics = run(scheme, options);
        let bytes: u64 = statistics.paths.iter().map(|one| one.counts.bytes).sum();
        assert_eq!(bytes, LARGE + SMALL, "{scheme}");
    }
}

#[test]
fn sub_flows_use_as_many_connections_as_there_are() {
    let statistics = run("subflows-4", &[]);
    let busy = statistics.paths.iter().filter(|one| one.counts.bytes > LARGE / 8);
    assert_eq!(busy.count(), 4, "{statistics:?}");
}

#[test]
fn below_one_leaf_nobody_plans() {
    let options = [("unit", "packet"), ("enforce", "segments")];
    let a = Endpoint::open(planned(1, "ethereal", &options)).unwrap();
    let b = Endpoint::open(planned(2, "ethereal", &options)).unwrap();
    let (sending, receiving) = channel(&a, &b);
    exchange(&sending, &receiving, &pattern(1, 1 << 20), 1 << 20);
    let statistics = a.statistics();
    assert!(statistics.paths.iter().all(|one| one.path.is_none() && one.counts.bytes == 1 << 18));
    assert_eq!(statistics.paths.len(), 4);
}

/// A batch of four equal messages needs no splitting: one on each path.
#[test]
fn a_hint_makes_a_batch_of_what_is_posted_together() {
    let options = [("batch", "200ms"), ("unit", "packet"), ("enforce", "segments")];
    let a = Endpoint::open(planned(1, "ethereal", &options)).unwrap();
    let b = Endpoint::open(planned(3, "ethereal", &options)).unwrap();
    a.hint(Hint { peers: (1, 1), flows_per_peer: (4, 4) });
    let (sending, receiving) = channel(&a, &b);
    let bytes = pattern(1, 1 << 20);
    let mut buffers = vec![vec![0; 1 << 20]; 4];
    let received: Vec<_> =
        buffers.iter_mut().map(|buffer| take(|| receive(&receiving, &mut [(buffer, 0)]))).collect();
    let start = std::time::Instant::now();
    let sent: Vec<_> = (0..4).map(|_| take(|| send(&sending, &bytes, 0))).collect();
    for request in received.iter().chain(&sent) {
        wait(request).unwrap();
    }
    let took = start.elapsed().as_millis();
    assert!(took < 200, "it waited for more: {took} ms");
    let paths = by_path(&a.statistics());
    assert_eq!(paths, (0..4).map(|path| (Some(path), 1 << 20)).collect());
    let subflows: u64 = a.statistics().paths.iter().map(|one| one.counts.subflows).sum();
    assert_eq!(subflows, 4);
}

#[test]
fn what_cannot_be_is_refused() {
    let refuse = |config| match Endpoint::open(config) {
        Err(CommError::Invalid(what)) => what,
        other => panic!("{other:?}"),
    };
    let what = refuse(planned(1, "reps", &[]));
    assert!(what.contains("reps") && what.contains("ethereal"), "{what}");
    refuse(planned(1, "ethereal", &[("enforce", "hash")]));
    let what = refuse(planned(1, "ethereal", &[("enforce", "discovered")]));
    assert!(what.contains("without a table"), "{what}");
    let mut config = planned(1, "ecmp", &[]);
    config.connections = 0;
    refuse(config.clone());
    config.connections = 4;
    config.plan = config.plan.map(|plan| PathPlan { source_ports: 50_000..=50_002, ..plan });
    refuse(config);
}

/// Channels that are closed in mid-flight leave nothing behind that holds others up.
#[test]
fn queue_pairs_of_closed_channels_are_free_again() {
    for scheme in ["paralet-2", "dnlb-2", "hpn"] {
        let a = Endpoint::open(planned(1, scheme, &[])).unwrap();
        let b = Endpoint::open(planned(3, scheme, &[])).unwrap();
        let bytes = pattern(3, 8 << 20);
        for _ in 0..5 {
            let (sending, receiving) = channel(&a, &b);
            let mut buffer = vec![0; 8 << 20];
            let _received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
            let _sent = take(|| send(&sending, &bytes, 0));
            std::thread::sleep(std::time::Duration::from_micros(300));
            drop(sending);
            drop(receiving);
        }
        let (sending, receiving) = channel(&a, &b);
        exchange(&sending, &receiving, &bytes, 8 << 20);
    }
}
