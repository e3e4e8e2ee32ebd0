//! Paths that die without a word: packets from their source ports are lost, in a network name space of
//! its own. Needs root and nftables: `cargo test -p weft-comm --test dead_paths -- --ignored`.

mod common;

use common::*;
use std::process::Command;
use std::time::{Duration, Instant};
use weft_comm::{Endpoint, EndpointConfig, Statistics};

fn run_command(line: &str) {
    let (program, arguments) = line.split_once(' ').expect("a command with arguments");
    let status = Command::new(program).args(arguments.split(' ')).status().expect(program);
    assert!(status.success(), "{line}");
}

/// Runs `name` again, in a name space of its own. Whether this is it.
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

/// From now on nothing gets through that leaves from these ports.
fn kill(ports: &str) {
    run_command(&format!("nft add rule ip weft in tcp sport {ports} drop"));
}

fn time_outs(statistics: &Statistics) -> u64 {
    statistics.paths.iter().map(|path| path.counts.time_outs).sum()
}

/// 2 s of messages of 8 MiB; after 0.5 s some ports die. The longest message, and what
/// was counted at the end.
fn run(scheme: &str, options: &[(&str, &str)], ports: &str) -> (Duration, Statistics) {
    let short = |last| EndpointConfig {
        path_time_out: Duration::from_millis(200),
        ..planned(last, scheme, options)
    };
    let (a, b) = (Endpoint::open(short(1)).unwrap(), Endpoint::open(short(3)).unwrap());
    let (sending, receiving) = channel(&a, &b);
    let bytes = pattern(5, 8 << 20);
    let start = Instant::now();
    let mut dead = false;
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(2) {
        if !dead && start.elapsed() > Duration::from_millis(500) {
            kill(ports);
            dead = true;
        }
        let before = Instant::now();
        exchange(&sending, &receiving, &bytes, 8 << 20);
        longest = longest.max(before.elapsed());
    }
    (longest, a.statistics())
}

#[test]
#[ignore = "needs root, for a network name space"]
fn ethereal_goes_around_a_dead_path() {
    if !alone("ethereal_goes_around_a_dead_path") {
        return;
    }
    let options = [("unit", "packet"), ("enforce", "segments"), ("bad_for", "30s")];
    let (longest, statistics) = run("ethereal", &options, "49152-53247");
    println!("longest {longest:?}, {} time-outs", time_outs(&statistics));
    assert!((1..10).contains(&time_outs(&statistics)), "{statistics:?}");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    let moved: u64 = statistics.paths.iter().map(|path| path.counts.re_routes).sum();
    assert!(moved >= 1);
    let open = |path: &&weft_comm::statistics::PathStatistics| path.counts.open > 0;
    for path in statistics.paths.iter().filter(open) {
        assert!(path.port > 53_247, "{path:?}");
    }
}

#[test]
#[ignore = "needs root, for a network name space"]
fn dnlb_leaves_a_dead_queue_pair_alone() {
    if !alone("dnlb_leaves_a_dead_queue_pair_alone") {
        return;
    }
    let options = [("queue_pairs", "4"), ("dead_for", "30s")];
    let (longest, statistics) = run("dnlb", &options, "49152-53247");
    println!("longest {longest:?}, {} time-outs", time_outs(&statistics));
    assert!((1..10).contains(&time_outs(&statistics)), "{statistics:?}");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[test]
#[ignore = "needs root, for a network name space"]
fn hashed_connections_find_another_port() {
    if !alone("hashed_connections_find_another_port") {
        return;
    }
    for scheme in ["ecmp", "subflows-4", "paralet-4"] {
        let (longest, statistics) = run(scheme, &[], "49152-61439");
        println!("{scheme}: longest {longest:?}, {} time-outs", time_outs(&statistics));
        assert!(time_outs(&statistics) > 0, "{statistics:?}");
        assert!(longest < Duration::from_secs(4), "{longest:?}");
        run_command("nft flush chain ip weft in");
    }
}

/// No path is left at all.
#[test]
#[ignore = "needs root, for a network name space"]
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
    kill("0-65535");
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
