//! The time-out that suits a run, where the experiment leaves it open: longer than an answer can be
//! late, for what is only late is no loss.
//!
//! NICs have fixed timers, set by whoever knows the fabric. What one would set follows from the
//! longest that a packet and its answer may have to queue: behind all that may be under way over
//! the same link at once, or a full buffer where switches drop what does not fit. Who has to wait
//! twice in a row without progress waits twice as long ([`weft_transport::TransportConfig::backs_off`]). TCP measures
//! round trips (RFC 6298), and begins with this.

use crate::cuts::{CUTS, Cut, crossing};
use crate::experiment::{Resolved, round_trip};
use crate::section::transport::LONGEST_RTO;
use crate::traffic::{Stream, Traffic};
use weft_fabric::Failures;
use weft_sim::Buffer;
use weft_units::{Rate, Time};

/// No time-out is shorter: what hosts themselves take is not simulated.
const LEAST: Time = Time::us(100);
/// Round trips of an idle path, beside all queues.
const ROUND_TRIPS: u64 = 4;
/// Windows of a message that may be under way at once: a window doubles before marks come back, and
/// a message may be on several queue pairs.
const WINDOWS: u64 = 4;
/// Messages between the same two ranks, of a job, that may be under way at once.
const AT_ONCE: u64 = 4;
/// How much more than its share a link gets where switches hash: flows that collide.
const COLLIDING: u64 = 4;

/// The time-out for `traffic` on the experiment's fabric with `failures`.
pub(crate) fn suited(experiment: &Resolved, traffic: &Traffic, failures: &Failures) -> Time {
    let under_way = under_way(experiment, traffic);
    let slowest = slowest_links(experiment, failures);
    let queued = CUTS.iter().zip(under_way).zip(slowest).map(|((cut, bytes), slowest)| {
        // The first one stands for all of its kind.
        let links = cut.links(&experiment.fabric, 0);
        let on_one = (bytes / links.max(1)).saturating_mul(links.min(COLLIDING));
        let waiting = largest_queue(experiment).unwrap_or(u64::MAX).min(on_one);
        Rate::bps(slowest.max(1)).serialize(waiting)
    });
    let queued = queued.fold(Time::ZERO, Time::saturating_add);
    // What goes up trees of switches waits for others at each of their links.
    let window = match experiment.workload.in_network() {
        Some(_) => experiment.switch.reduction.window.saturating_mul(WINDOWS),
        None => 0,
    };
    let slowest = slowest.into_iter().min().unwrap_or(u64::MAX);
    let queued = queued.saturating_add(Rate::bps(slowest.max(1)).serialize(window));
    let idle = round_trip(&experiment.fabric, &experiment.packet) * ROUND_TRIPS;
    let longest = idle.saturating_add(queued).saturating_add(queued);
    let microseconds = longest.0.div_ceil(Time::us(1).0);
    Time::us(microseconds).clamp(LEAST, LONGEST_RTO)
}

/// The most bytes on the wire that may be under way at once over a cut of each kind.
fn under_way(experiment: &Resolved, traffic: &Traffic) -> [u64; CUTS.len()] {
    let packet = &experiment.packet;
    let window = experiment.transport.congestion.initial_window().unwrap_or(u64::MAX);
    let window = window.saturating_mul(WINDOWS);
    let most_at_once = if traffic.ranks.is_some() { AT_ONCE } else { u64::MAX };
    let of = |&Stream { bytes, times, .. }: &Stream| {
        let headers = bytes.div_ceil(u64::from(packet.mtu)) * u64::from(packet.header);
        (bytes + headers).min(window).saturating_mul(times.min(most_at_once))
    };
    let add = |sum: &mut u64, bytes: &u64, _| *sum = sum.saturating_add(*bytes);
    let sums = crossing(&experiment.fabric, traffic, 0, of, add);
    sums.map(|sums| sums.into_iter().max().unwrap_or(0))
}

/// The rate, in bits per second, of the slowest link of the cuts of each kind, at its slowest.
fn slowest_links(experiment: &Resolved, failures: &Failures) -> [u64; CUTS.len()] {
    let fabric = &experiment.fabric;
    let mut slowest = CUTS.map(|_| u64::MAX);
    for port in fabric.ports().ids() {
        let rate = failures.lowest_rate(fabric, port).as_bps();
        for (cut, _) in Cut::of_link(fabric, port) {
            let kind = CUTS.iter().position(|kind| *kind == cut).expect("all kinds are listed");
            slowest[kind] = slowest[kind].min(rate);
        }
    }
    slowest
}

/// The most bytes that a queue holds, where switches drop what does not fit.
fn largest_queue(experiment: &Resolved) -> Option<u64> {
    let switch = &experiment.switch;
    match switch.buffer {
        _ if switch.pfc.is_some() => None,
        Buffer::PerPort { bytes } => Some(bytes),
        // A lone queue that takes `alpha` times what it leaves.
        Buffer::Shared { bytes, alpha } => Some((bytes as f64 * alpha / (1.0 + alpha)) as u64),
    }
}
