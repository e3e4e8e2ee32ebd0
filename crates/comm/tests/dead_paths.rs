//! Paths that die: packets from their source ports are lost, or answered with a reset, in a network
//! namespace of its own. Needs root and nftables: `cargo test -p weft-comm --test dead_paths -- --ignored`.

mod common;

use common::*;
use std::ops::RangeInclusive;
use std::process::Command;
use std::time::{Duration, Instant};
use weft_comm::statistics::{PathCounts, PathStatistics};
use weft_comm::{Endpoint, EndpointConfig, RecvChannel, SendChannel, Statistics};

fn run_command(line: &str) {
    let (program, arguments) = line.split_once(' ').expect("a command with arguments");
    let status = Command::new(program).args(arguments.split(' ')).status().expect(program);
    assert!(status.success(), "{line}");
}

/// Runs `name` again, in a namespace of its own. Whether this is it.
fn alone(name: &str) -> bool {
    const INSIDE: &str = "WEFT_TEST_INSIDE";
    if std::env::var(INSIDE).is_ok() {
        run_command("ip link set lo up");
        run_command("nft add table ip weft");
        run_command("nft add chain ip weft in { type filter hook input priority 0 ; }");
        return true;
    }
    let status = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().expect("a test"))
        .args([name, "--exact", "--ignored", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare");
    assert!(status.success());
    false
}

/// Nothing is said to who sends, or all that is sent is reset.
const SILENT: &str = "drop";
const REFUSES: &str = "reject with tcp reset";

/// From now on nothing gets through that leaves from these ports.
fn kill(ports: &RangeInclusive<u16>, how: &str) {
    let (first, last) = (ports.start(), ports.end());
    run_command(&format!("nft add rule ip weft in tcp sport {first}-{last} {how}"));
}

/// The ports of one uplink of four: that of the lane which has sent most.
fn busiest_segment(statistics: &Statistics) -> RangeInclusive<u16> {
    let open = statistics.paths.iter().filter(|path| path.counts.open > 0);
    let most = open.max_by_key(|path| path.counts.bytes).expect("a lane is open");
    most.port & 0xF000..=most.port | 0x0FFF
}

/// What came of it.
struct Outcome {
    /// The message that took longest.
    longest: Duration,
    time_outs: u64,
    re_routes: u64,
    /// Time-outs that messages know of.
    noted: usize,
}

/// 2 s of messages of 8 MiB; after 0.5 s the ports of an uplink die. In the end no lane has one of them.
fn run(scheme: &str, options: &[(&str, &str)], how: &str) -> Outcome {
    let short = |last| EndpointConfig {
        path_time_out: Duration::from_millis(200),
        ..planned(last, scheme, options)
    };
    let (a, b) = (Endpoint::open(short(1)).unwrap(), Endpoint::open(short(3)).unwrap());
    a.keep_notes();
    let (sending, receiving) = channel(&a, &b);
    let bytes = pattern(5, 8 << 20);
    let mut noted = 0;
    let start = Instant::now();
    let mut dead = None;
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(2) {
        if dead.is_none() && start.elapsed() > Duration::from_millis(500) {
            let ports = busiest_segment(&a.statistics());
            kill(&ports, how);
            dead = Some(ports);
        }
        let before = Instant::now();
        let notes = exchange(&sending, &receiving, &bytes, 8 << 20);
        let told = notes.pieces.iter().map(|piece| piece.bytes).sum::<u64>();
        assert_eq!(told + notes.left_out_bytes, 8 << 20, "every byte, once: {notes:?}");
        noted += notes.time_outs.len();
        longest = longest.max(before.elapsed());
    }
    let (statistics, dead) = (a.statistics(), dead.expect("it took longer"));
    // Lanes that stand for a path try again whether it is there, with nothing to carry.
    let stays = |path: &&PathStatistics| {
        path.counts.open > 0
            && dead.contains(&path.port)
            && (path.counts.bytes > 0 || scheme != "twill")
    };
    let staying = statistics.paths.iter().find(stays);
    assert!(staying.is_none(), "{dead:?}: {staying:?}");
    let sum = |count: fn(&PathCounts) -> u64| {
        statistics.paths.iter().map(|path| count(&path.counts)).sum::<u64>()
    };
    let (time_outs, re_routes) = (sum(|it| it.time_outs), sum(|it| it.re_routes));
    println!("{scheme}: longest {longest:?}, {time_outs} time-outs, {re_routes} re-routes");
    assert!(sum(|it| it.reconnects) > 0, "nothing has happened");
    Outcome { longest, time_outs, re_routes, noted }
}

/// Ethereal as hosts run it.
const ETHEREAL: [(&str, &str); 3] =
    [("unit", "packet"), ("enforce", "segments"), ("bad_for", "30s")];

#[test]
#[ignore = "needs root, for a network namespace"]
fn ethereal_goes_around_a_dead_path() {
    if !alone("ethereal_goes_around_a_dead_path") {
        return;
    }
    let Outcome { longest, time_outs, re_routes, noted } = run("ethereal", &ETHEREAL, SILENT);
    assert!((1..10).contains(&time_outs) && re_routes > 0);
    assert!((1..=time_outs as usize).contains(&noted), "one message is under way: {noted}");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

/// As where a firewall, or the last router of a path, answers: connecting fails at once, not late.
#[test]
#[ignore = "needs root, for a network namespace"]
fn ethereal_goes_around_a_path_that_refuses() {
    if !alone("ethereal_goes_around_a_path_that_refuses") {
        return;
    }
    let Outcome { longest, re_routes, .. } = run("ethereal", &ETHEREAL, REFUSES);
    assert!(re_routes > 0);
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

/// Its chunks do not wait until the connection is taken for dead.
#[test]
#[ignore = "needs root, for a network namespace"]
fn twill_sends_chunks_again_by_other_paths() {
    if !alone("twill_sends_chunks_again_by_other_paths") {
        return;
    }
    let options = [("chunk", "32KiB"), ("enforce", "segments")];
    let Outcome { longest, time_outs, re_routes, noted } = run("twill", &options, SILENT);
    assert!(noted > 0, "messages know of chunks that were late");
    assert!(time_outs > 0 && re_routes > 0);
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn dnlb_leaves_a_dead_queue_pair_alone() {
    if !alone("dnlb_leaves_a_dead_queue_pair_alone") {
        return;
    }
    let options = [("queue_pairs", "4"), ("dead_for", "30s")];
    let Outcome { longest, time_outs, .. } = run("dnlb", &options, SILENT);
    assert!((1..10).contains(&time_outs));
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[test]
#[ignore = "needs root, for a network namespace"]
fn hashed_connections_find_another_port() {
    if !alone("hashed_connections_find_another_port") {
        return;
    }
    for scheme in ["ecmp", "subflows-4", "paralet-4"] {
        let Outcome { longest, .. } = run(scheme, &[], SILENT);
        assert!(longest < Duration::from_secs(2), "{longest:?}");
        run_command("nft flush chain ip weft in");
    }
}

/// Data takes a path, and what is said to it another one. Nothing is said any more to who sends from some ports.
fn silence(which: &str) {
    run_command(&format!("nft add rule ip weft in tcp dport 49152-65535 {which} drop"));
}

/// A channel under Twill, and the ports of a path that has carried much.
fn with_time_out(
    path_time_out: Duration,
) -> (Endpoint, Endpoint, SendChannel, RecvChannel, RangeInclusive<u16>) {
    let options = [("chunk", "32KiB"), ("enforce", "segments")];
    let long = |last| EndpointConfig {
        path_time_out,
        give_up: path_time_out * 8,
        ..planned(last, "twill", &options)
    };
    let (a, b) = (Endpoint::open(long(1)).unwrap(), Endpoint::open(long(3)).unwrap());
    let (sending, receiving) = channel(&a, &b);
    let bytes = pattern(5, 8 << 20);
    (0..8).for_each(|_| drop(exchange(&sending, &receiving, &bytes, 8 << 20)));
    let ports = busiest_segment(&a.statistics());
    (a, b, sending, receiving, ports)
}

/// Buffers are announced over a lane that works, once it shows that what was said over another one is lost.
#[test]
#[ignore = "needs root, for a network namespace"]
fn buffers_are_announced_again_where_nobody_has_heard_of_them() {
    if !alone("buffers_are_announced_again_where_nobody_has_heard_of_them") {
        return;
    }
    let (_a, _b, sending, receiving, works) = with_time_out(Duration::from_secs(8));
    silence(&format!("tcp dport != {}-{}", works.start(), works.end()));
    let bytes = pattern(5, 8 << 20);
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < Duration::from_secs(2) {
        let before = Instant::now();
        exchange(&sending, &receiving, &bytes, 8 << 20);
        longest = longest.max(before.elapsed());
    }
    println!("longest {longest:?}");
    // Connections without an answer are given up after a second.
    assert!(longest < Duration::from_millis(900), "{longest:?}");
}

/// A path whose port does not answer is tried from others, each for a part of the time that a path has.
#[test]
#[ignore = "needs root, for a network namespace"]
fn ports_that_are_not_answered_are_left_soon() {
    if !alone("ports_that_are_not_answered_are_left_soon") {
        return;
    }
    let (a, _b, sending, receiving, ports) = with_time_out(Duration::from_secs(1));
    let on_it = || {
        let paths = a.statistics().paths.into_iter();
        paths.filter(|path| ports.contains(&path.port)).map(|path| path.port).collect::<Vec<_>>()
    };
    let [first] = on_it()[..] else { panic!("a lane for each path: {:?}", on_it()) };
    let segment = format!("tcp dport {}-{}", ports.start(), ports.end());
    (0..3)
        .for_each(|next| silence(&format!("{segment} tcp dport and 3 == {}", (first + next) & 3)));
    let bytes = pattern(5, 8 << 20);
    let start = Instant::now();
    let carries = |path: &PathStatistics| {
        ports.contains(&path.port) && path.port & 3 == (first + 3) & 3 && path.counts.bytes > 0
    };
    while !a.statistics().paths.iter().any(carries) {
        exchange(&sending, &receiving, &bytes, 8 << 20);
        let seen = on_it();
        assert!(start.elapsed() < Duration::from_secs(10), "{first}: {seen:?}");
    }
    println!("after {:?}: {:?}", start.elapsed(), on_it());
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
}

/// No path is left at all.
#[test]
#[ignore = "needs root, for a network namespace"]
fn with_no_path_left_there_is_an_error_in_time() {
    if !alone("with_no_path_left_there_is_an_error_in_time") {
        return;
    }
    let short = |last| EndpointConfig {
        path_time_out: Duration::from_millis(200),
        give_up: Duration::from_secs(2),
        ..config(last)
    };
    let (a, b) = (Endpoint::open(short(1)).unwrap(), Endpoint::open(short(2)).unwrap());
    let (sending, receiving) = channel(&a, &b);
    let bytes = pattern(5, 1 << 20);
    exchange(&sending, &receiving, &bytes, 1 << 20);
    kill(&(0..=u16::MAX), SILENT);
    let mut buffer = vec![0; 1 << 20];
    let start = Instant::now();
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    let sent = take(|| send(&sending, &bytes, 0));
    for (what, request) in [("sent", sent), ("received", received)] {
        let error = wait(&request).unwrap_err();
        println!("{what} after {:?}: {error}", start.elapsed());
        assert!(matches!(error, weft_comm::CommError::Remote(_)), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// Frames take longer than a peer may be silent, and their bytes come all the while.
#[test]
#[ignore = "needs root, for a network namespace"]
fn a_link_that_is_slow_is_waited_for() {
    if !alone("a_link_that_is_slow_is_waited_for") {
        return;
    }
    run_command("ip link set lo mtu 1500");
    run_command("tc qdisc add dev lo root tbf rate 1mbit burst 10k latency 200ms");
    let short = |last| EndpointConfig {
        give_up: Duration::from_millis(1_500),
        connections: 1,
        ..config(last)
    };
    let (a, b) = (Endpoint::open(short(1)).unwrap(), Endpoint::open(short(2)).unwrap());
    let (sending, receiving) = channel(&a, &b);
    let (bytes, mut buffer) = (pattern(5, 300 << 10), vec![0; 300 << 10]);
    let start = Instant::now();
    let received = take(|| receive(&receiving, &mut [(&mut buffer, 0)]));
    let sent = take(|| send(&sending, &bytes, 0));
    let (sent, received) = (wait(&sent), wait(&received));
    println!("after {:?}: {sent:?}, {received:?}", start.elapsed());
    assert!(sent.is_ok() && received.is_ok() && buffer == bytes);
    assert!(start.elapsed() > Duration::from_secs(2), "the link is not slow");
    let time_outs = a.statistics().paths.iter().map(|path| path.counts.time_outs).sum::<u64>();
    assert_eq!(time_outs, 0, "its only path was taken for dead");
}
