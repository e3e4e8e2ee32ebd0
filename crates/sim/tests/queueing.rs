//! An M/D/1 queue inside the simulator has its known mean wait.
//!
//! Hosts at 400 Gb/s send single packets at Poisson times through one uplink of 100 Gb/s: the
//! server, whose service time is that of a packet. Behind it packets come a service time apart
//! and never wait again. Before it a packet waits for its own NIC with a chance below 1/250
//! for a part of a quarter of a service time: less than 0.1 % of the mean wait.

use crate::common::{Setup, message};
use weft_fabric::{Bundle, Clos, Link};
use weft_units::{Draw, Rate, Stream, Time};
use weft_workload::{Message, Workload};

const SOURCES: u32 = 64;
/// A packet of 1000 bytes at 100 Gb/s.
const SERVICE: Time = Time::ns(80);

fn clos() -> Clos {
    let host = Link { rate: Rate::gbps(400), delay: Time::ns(500) };
    let uplink = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    Clos {
        leaf_bundle: Bundle { link: uplink, members: 1 },
        ..Clos::leaf_spine(2, 1, SOURCES, host)
    }
}

/// An exponential variate of mean one, by comparisons only (von Neumann 1951): exact, and the
/// same on every machine.
fn exponential(stream: &mut Stream) -> f64 {
    let mut whole = 0.0;
    loop {
        let first = stream.unit();
        let (mut last, mut run) = (first, 1);
        loop {
            let next = stream.unit();
            if next >= last {
                break;
            }
            (last, run) = (next, run + 1);
        }
        if run % 2 == 1 {
            return whole + first;
        }
        whole += 1.0;
    }
}

/// The mean wait in service times under load `rho`, over `count` packets.
fn mean_wait(rho: f64, count: u32) -> f64 {
    let mut stream = Draw::new(7, "poisson").stream(0);
    let mut workload = Workload::new(2 * SOURCES);
    let mut at = 0.0;
    for _ in 0..count {
        at += exponential(&mut stream) / rho * SERVICE.0 as f64;
        let (src, dst) = (stream.below(SOURCES), SOURCES + stream.below(SOURCES));
        workload.push(Message { start: Time(at as u64), ..message(src, dst, 960) }, &[]);
    }
    let setup = Setup::new(clos(), workload);
    let outcome = setup.run();
    // Idle: 20 ns on the two host links, 80 ns on the two between switches.
    let idle = Time::ns(2 * 20 + 2 * 80 + 4 * 500);
    let waits = outcome.messages.iter().map(|message| (message.received - message.posted) - idle);
    waits.map(|wait| wait.0 as f64 / SERVICE.0 as f64).sum::<f64>() / f64::from(count)
}

/// The standard error of the mean wait over `count` packets in service times, from the
/// heavy-traffic limit (reflected Brownian motion with drift rho - 1 and variance rho per
/// service time, whose time averages over T have variance rho^3 / (2 (1 - rho)^4 T)), with
/// T = count / rho.
fn standard_error(rho: f64, count: u32) -> f64 {
    let square = (rho / (1.0 - rho)) * (rho / (1.0 - rho));
    square / (2.0 * f64::from(count)).sqrt()
}

fn check(rho: f64, count: u32, tolerance: f64) {
    let (wait, expected) = (mean_wait(rho, count), rho / (2.0 * (1.0 - rho)));
    assert!(4.0 * standard_error(rho, count) < tolerance * expected, "too few packets");
    let off = wait / expected - 1.0;
    assert!(off.abs() < tolerance, "mean wait {wait}, expected {expected}: {off:+.4}");
}

/// Expected 0.5; standard error 0.0018 (0.4 %).
#[test]
fn half_loaded() {
    check(0.5, 150_000, 0.02);
}

/// Expected 2; standard error 0.018 (0.9 %).
#[test]
fn heavily_loaded() {
    check(0.8, 400_000, 0.04);
}

#[test]
fn the_variates_are_exponential() {
    let mut stream = Draw::new(1, "test").stream(0);
    let count = 200_000;
    let draws: Vec<f64> = (0..count).map(|_| exponential(&mut stream)).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(count);
    let square = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(count);
    let beyond = draws.iter().filter(|x| **x > 1.0).count() as f64 / f64::from(count);
    assert!((mean - 1.0).abs() < 0.01 && (square - 2.0).abs() < 0.06, "{mean} {square}");
    const ONE_IN_E: f64 = 0.367_879;
    assert!((beyond - ONE_IN_E).abs() < 0.005, "{beyond}");
}
