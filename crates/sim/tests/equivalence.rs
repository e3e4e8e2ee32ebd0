//! Random runs: the timing wheel gives the run of a plain heap, FIFO ports give the run of real
//! queues, the same run twice is the same, and no byte is lost on the way.

use crate::common::compare::{but_events, difference};
use crate::common::random::{Kind, must_finish, setup};
use crate::common::{LINK, Setup, messages};
use weft_fabric::{Clos, FailureKind, Link};
use weft_sim::{Outcome, PortResult};
use weft_transport::RecoveryConfig;
use weft_trial::prelude::*;
use weft_units::{PortId, Rate, Time};

const CASES: u32 = 256;
const ANY: &[Kind] = Kind::ALL;
/// What must hold for every run that comes to its end. The audit inside the run has compared
/// bytes at both ends of every link and at every switch, and the order on every path.
fn check_conservation(setup: &Setup, outcome: &Outcome) {
    let totals = &outcome.totals;
    let sum = |of: fn(&PortResult) -> u64| outcome.ports.iter().map(of).sum::<u64>();
    assert_eq!(totals.packet_hops, sum(|port| port.packets));
    assert_eq!(totals.drops, sum(|port| port.drops));
    assert_eq!(totals.header_drops, sum(|port| port.header_drops));
    assert_eq!(totals.trims, sum(|port| port.trims));
    assert_eq!(totals.trimmed_bytes, sum(|port| port.trimmed_bytes));
    assert_eq!(totals.marks, sum(|port| port.marks));
    // What leaves hosts arrives at hosts, is dropped, or is lost on a link.
    let hosts = setup.fabric.hosts() as usize;
    let (nics, switches) = outcome.ports.as_slice().split_at(hosts);
    let left: u64 = nics.iter().map(|port| port.packets).sum();
    assert_eq!(left, totals.packets + totals.control_packets);
    let arrived: u64 = (setup.fabric.ports().iter().skip(hosts).zip(switches))
        .filter(|(port, _)| matches!(port.peer, weft_fabric::Node::Host(_)))
        .map(|(_, result)| result.packets)
        .sum();
    // Control packets between leaves may be dropped, too, and come down to none.
    let control_packets = totals.tor.control_packets;
    let gone = left + control_packets - totals.drops - arrived;
    assert!(gone <= totals.wire_drops + control_packets, "{gone} did not come down to a host");
    check_packets(setup, outcome);
    check_messages(outcome);
    check_switches(setup, outcome);
}

/// Every packet of every subflow is needed once; all others are retransmissions. Symbols are
/// never sent again.
fn check_packets(setup: &Setup, outcome: &Outcome) {
    let totals = &outcome.totals;
    let fresh = totals.packets - totals.retransmits;
    let subflows: u64 = outcome.messages.iter().map(|message| u64::from(message.subflows)).sum();
    let extra = subflows - outcome.messages.len() as u64;
    let least = setup.least_packets();
    if let RecoveryConfig::Coding(_) = setup.transport.recovery {
        assert!(fresh >= least && totals.retransmits == 0, "{least} {totals:?}");
    } else {
        assert!((least..=least + extra).contains(&fresh), "{least} {fresh} {extra}");
    }
    let answers = totals.control_packets - totals.pulls - totals.requests;
    assert!(answers <= totals.packets + totals.requests);
    assert!(totals.spurious <= totals.retransmits);
}

fn check_messages(outcome: &Outcome) {
    let (mut retransmits, mut spurious, mut lost, mut reordered) = (0, 0, 0, 0);
    for message in outcome.messages.iter() {
        assert!(message.posted < message.received && message.received < message.sent);
        assert!(message.spurious <= message.retransmits);
        assert_eq!(message.farthest > 0, message.reordered > 0);
        retransmits += u64::from(message.retransmits);
        spurious += u64::from(message.spurious);
        lost += u64::from(message.lost);
        reordered += u64::from(message.reordered);
    }
    let totals = &outcome.totals;
    assert_eq!((retransmits, spurious), (totals.retransmits, totals.spurious));
    assert_eq!(reordered, totals.reordered);
    assert!(totals.reorder_distance >= reordered);
    // Acknowledgements are lost too.
    assert!(lost <= totals.drops + totals.wire_drops);
    let last = outcome.messages.iter().map(|message| message.received).max();
    assert_eq!(Some(totals.cct), last);
}

fn check_switches(setup: &Setup, outcome: &Outcome) {
    let totals = &outcome.totals;
    if setup.failures.is_empty() {
        assert_eq!((totals.wire_drops, totals.wire_dropped_bytes), (0, 0));
    }
    if setup.switch.trim.is_none() {
        assert_eq!((totals.trims, totals.trimmed_bytes, totals.header_drops), (0, 0, 0));
    }
    if setup.switch.pfc.is_some() {
        // Headroom is worked out for links as they should be.
        let is_slow = |kind| matches!(kind, FailureKind::Degraded { .. });
        if !setup.failures.iter().any(|failure| is_slow(failure.kind)) {
            let dead = setup.config().failures.flushes(&setup.fabric);
            let is_live = |id: PortId| dead.iter().all(|flush| flush.port != id);
            let live = outcome.ports.enumerate().filter(|(id, _)| is_live(*id));
            let drops: u64 = live.map(|(_, port)| port.drops).sum();
            assert_eq!(drops, 0, "PFC loses nothing but what dead links throw away");
        }
        let back = |sent: u64, port: &PortResult| sent - port.pauses;
        assert_eq!(outcome.ports.iter().fold(totals.pauses, back), 0);
    } else {
        assert_eq!(totals.pauses, 0);
        assert!(outcome.ports.iter().all(|port| port.paused == Time::ZERO));
    }
}

/// Words of a switch's window have no places for so many links: it goes on in the order of time.
#[test]
fn a_switch_with_very_many_links() {
    let far: Vec<_> = (0..8).map(|host| (host, 8192 + host, 4_000)).collect();
    let setup = Setup::new(Clos::leaf_spine(2, 1, 8192, LINK), messages(16_384, &far));
    assert_eq!(difference(&setup.try_run(), &setup.run_by_time()), None);
}

/// Words of a switch's window have numbers for 32,768 events: 32 hosts send and acknowledge more in 4 us.
#[test]
fn a_window_with_very_many_events() {
    let fast = Link { rate: Rate::gbps(8000), delay: Time::us(4) };
    let ring: Vec<_> = (0..32).map(|host| (host, (host + 1) % 32, 12_000_000)).collect();
    let setup = Setup::new(Clos::leaf_spine(2, 1, 32, fast), messages(64, &ring));
    assert_eq!(difference(&setup.try_run(), &setup.run_by_time()), None);
}

trials! {
    #![cases(CASES)]

    fn wheel_equals_heap(setup in setup(ANY)) {
        let (wheel, heap) = (setup.run_queued(), setup.run_oracle());
        prop_assert_eq!(difference(&wheel, &heap), None);
    }

    fn windows_equal_the_order_of_time(setup in setup(ANY)) {
        let (windows, by_time) = (setup.try_run(), setup.run_by_time());
        prop_assert_eq!(difference(&windows, &by_time), None);
    }

    fn partitions_and_threads_equal_one(
        (setup, partitions, threads) in (setup(ANY), 2..9u32, 1..4u32)
    ) {
        let one = setup.run_in(1, 1);
        let many = setup.run_in(partitions, threads);
        prop_assert_eq!(difference(&one, &many), None);
    }

    fn fifo_ports_equal_queues(setup in setup(ANY)) {
        let (fifo, queues) = (setup.try_run().map(but_events), setup.run_queued().map(but_events));
        prop_assert_eq!(difference(&fifo, &queues), None);
    }

    fn everything_is_conserved_and_repeatable(setup in setup(ANY)) {
        let outcome = setup.try_run();
        match &outcome {
            Ok(outcome) => check_conservation(&setup, outcome),
            Err(halt) => prop_assert!(!must_finish(&setup), "{halt}"),
        }
        prop_assert_eq!(difference(&outcome, &setup.try_run()), None);
    }
}
