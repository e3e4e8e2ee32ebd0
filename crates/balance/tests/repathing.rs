//! When hosts move a flow, step by step.

use crate::common::flow::steering;
use std::collections::BTreeSet;
use weft_balance::Steering;
use weft_balance::plan::Route;
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_balance::steer::{Departure, Feedback, TimeOut};
use weft_fabric::PathId;
use weft_units::Time;

/// The entropy of the flow's own route.
const FIRST: u16 = 65_534;
const RTT: Time = Time::us(10);

/// A flow, its clock and its present entropy.
struct Flow {
    steering: Steering,
    now: Time,
    in_flight: u32,
}

impl Flow {
    fn of(scheme: &str, options: &[(&str, &str)], flow: u64) -> Flow {
        let scheme = SchemeConfig::read(scheme, options).unwrap();
        let start_jitter = Time::ZERO;
        let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 };
        let steering = steering(&config, flow);
        Flow { steering, now: Time::ms(1), in_flight: 1 }
    }
    fn new(scheme: &str, options: &[(&str, &str)]) -> Flow {
        Flow::of(scheme, options, 1)
    }
    /// What the next packet carries.
    fn send(&mut self) -> u16 {
        let at = Departure { now: self.now, in_flight: self.in_flight };
        match self.steering.route(Route::Hashed(FIRST), at) {
            Route::Hashed(entropy) => entropy,
            Route::Pinned(path) => panic!("{path:?}"),
        }
    }
    /// An acknowledgement of a packet that left under `entropy` a round trip ago.
    fn ack(&mut self, entropy: u16, marked: bool) {
        let (now, rtt) = (self.now, RTT);
        let answer_marked = !marked;
        let good = Feedback::good(now, entropy);
        let feedback = Feedback { marked, answer_marked, room: 1, rtt, ..good };
        self.steering.on_ack(feedback);
    }
    /// `total` acknowledgements of the present entropy, the last `marked` of them marked, none
    /// of which begins or ends a round trip but the first and the last.
    fn acks(&mut self, marked: u32, total: u32) {
        let entropy = self.send();
        for step in 0..total {
            self.now += if step + 1 == total { RTT } else { Time::ZERO };
            self.ack(entropy, step + marked >= total);
        }
    }
    fn time_out(&mut self) {
        self.steering.on_time_out(TimeOut { now: self.now, after: RTT });
    }
}

#[test]
fn labels_count_up() {
    let mut flow = Flow::new("spray-label", &[]);
    let first = flow.send();
    for label in (1..=u16::MAX).chain([0, 1]) {
        assert_eq!(flow.send(), first.wrapping_add(label));
        flow.ack(first, true);
        flow.time_out();
    }
    // Queue pairs on one route begin elsewhere, the same under every run of a seed.
    let firsts: Vec<u16> = (1..9).map(|key| Flow::of("spray-label", &[], key).send()).collect();
    assert_eq!(firsts[0], first);
    assert!(firsts.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 8), "{firsts:?}");
}

#[test]
fn round_trips_are_asked_for_where_they_are_used() {
    for scheme in SchemeConfig::all() {
        let timed = ["plb", "flowbender", "reps-2026"].contains(&scheme.info().name);
        let flow = Flow::new(scheme.info().name, &[]);
        assert_eq!(flow.steering.is_timed(), timed, "{scheme:?}");
    }
}

#[test]
fn pinned_flows_stay_where_they_are() {
    for scheme in ["spray-label", "host-flowlets", "plb", "flowbender"] {
        let mut flow = Flow::new(scheme, &[]);
        flow.time_out();
        let pinned = Route::Pinned(PathId(0x0102));
        let at = Departure { now: Time::ZERO, in_flight: 0 };
        assert_eq!(flow.steering.route(pinned, at), pinned, "{scheme}");
    }
}

#[test]
fn flowlets_leave_a_path_of_many_marks() {
    let mut flow = Flow::new("host-flowlets", &[]);
    assert_eq!(flow.send(), FIRST);
    // Four of ten are not too many, and are forgotten then.
    flow.acks(4, 10);
    flow.acks(4, 10);
    assert_eq!(flow.send(), FIRST);
    // Ten are looked at, even if nine say enough.
    flow.acks(9, 9);
    assert_eq!(flow.send(), FIRST);
    flow.ack(FIRST, false);
    let second = flow.send();
    assert_ne!(second, FIRST);
    // What returns from the old path does not count.
    (0..20).for_each(|_| flow.ack(FIRST, true));
    flow.acks(9, 9);
    assert_eq!(flow.send(), second, "at most every ten packets");
    flow.acks(1, 1);
    assert_ne!(flow.send(), second);
    let mut flow = Flow::new("host-flowlets", &[]);
    flow.acks(5, 10);
    assert_ne!(flow.send(), FIRST, "five of ten");
}

#[test]
fn flowlets_do_as_told() {
    // 0.29 * 100 is less than 29 in floating point.
    let mut flow = Flow::new("host-flowlets", &[("packets", "100"), ("bad", "0.29")]);
    flow.acks(29, 100);
    assert_eq!(flow.send(), FIRST);
    flow.acks(30, 100);
    assert_ne!(flow.send(), FIRST);
    // Answers are marked where data is not, in this test.
    let mut flow = Flow::new("host-flowlets", &[("marks", "answers")]);
    flow.acks(10, 10);
    assert_eq!(flow.send(), FIRST);
    flow.acks(0, 10);
    assert_ne!(flow.send(), FIRST);
    for (time_outs, moves) in [("true", true), ("false", false)] {
        let mut flow = Flow::new("host-flowlets", &[("time_outs", time_outs)]);
        flow.acks(9, 9);
        flow.time_out();
        let entropy = flow.send();
        assert_eq!(entropy != FIRST, moves);
        flow.acks(1, 1);
        assert_eq!(flow.send() != entropy, !moves, "a move begins the count anew, nothing else");
    }
}

#[test]
fn moves_are_drawn_by_the_flow() {
    for scheme in ["host-flowlets", "plb", "flowbender"] {
        let moved: BTreeSet<u16> = (0..1_000)
            .map(|flow| {
                let mut flow = Flow::of(scheme, &[], flow);
                flow.time_out();
                flow.send()
            })
            .collect();
        // 1000 draws of 65,536 collide about 8 times.
        assert!(moved.len() > 970, "{scheme}: {}", moved.len());
        let mut flow = Flow::new(scheme, &[]);
        let again: BTreeSet<u16> = (0..20)
            .map(|_| {
                flow.time_out();
                let moved = flow.send();
                flow.now += RTT;
                moved
            })
            .collect();
        assert!(again.len() > 18, "{scheme}: {again:?}");
    }
}

/// What was lost on the path before times out packet by packet, and says nothing of the new one.
#[test]
fn packets_lost_together_move_a_flow_once() {
    for scheme in ["host-flowlets", "plb", "flowbender"] {
        let mut flow = Flow::new(scheme, &[]);
        flow.time_out();
        let moved = flow.send();
        for _ in 1..RTT.0 / Time::ns(1).0 {
            flow.now += Time::ns(1);
            flow.time_out();
            assert_eq!(flow.send(), moved, "{scheme}");
        }
        flow.now += Time::ns(1);
        flow.time_out();
        assert_ne!(flow.send(), moved, "{scheme}: what left by the new path");
    }
}

/// FlowBender after one marked acknowledgement shows where round trips end.
#[test]
fn a_round_trip_ends_with_what_left_after_it_began() {
    let mut flow = Flow::new("flowbender", &[]);
    let mut at = |now: u64, rtt: u64, marked: bool| {
        let (now, rtt, entropy) = (Time::ns(now), Time::ns(rtt), 0);
        flow.now = now;
        let feedback = Feedback { marked, room: 1, rtt, ..Feedback::good(now, entropy) };
        flow.steering.on_ack(feedback);
        flow.send()
    };
    assert_eq!(at(100, 50, true), FIRST, "the first begins");
    assert_eq!(at(149, 50, false), FIRST, "left at 99");
    let moved = at(150, 50, false);
    assert_ne!(moved, FIRST, "left at 100, and one of three was marked");
    // The next began at 150, with nothing marked so far.
    assert_eq!(at(198, 50, false), moved);
    assert_eq!(at(205, 50, false), moved);
    // The next began at 205: whoever ends it counts.
    assert_eq!(at(254, 50, false), moved);
    assert_ne!(at(255, 50, true), moved);
}

#[test]
fn flowbender_bends_above_five_percent() {
    let mut flow = Flow::new("flowbender", &[]);
    flow.acks(0, 1);
    flow.acks(1, 19);
    assert_eq!(flow.send(), FIRST, "one of twenty, the first included, is not above");
    flow.acks(1, 19);
    let moved = flow.send();
    assert_ne!(moved, FIRST);
    flow.acks(0, 19);
    assert_eq!(flow.send(), moved);
    flow.time_out();
    assert_ne!(flow.send(), moved);
}

#[test]
fn flowbender_waits_for_rounds_in_a_row_if_told() {
    let mut flow = Flow::new("flowbender", &[("rounds", "2"), ("threshold", "0.5")]);
    flow.acks(0, 1);
    for marked in [2, 1, 2, 1, 1] {
        flow.acks(marked, 2);
        assert_eq!(flow.send(), FIRST);
    }
    flow.acks(2, 2);
    flow.time_out();
    let moved = flow.send();
    flow.acks(2, 2);
    assert_eq!(flow.send(), moved, "a time-out starts the count anew");
    flow.acks(2, 2);
    assert_ne!(flow.send(), moved);
}

#[test]
fn plb_moves_after_twelve_congested_rounds() {
    let mut flow = Flow::new("plb", &[]);
    flow.acks(1, 1);
    // Half of the packets are enough, less are not and end the row.
    (0..11).for_each(|_| flow.acks(5, 10));
    flow.acks(4, 10);
    (0..11).for_each(|_| flow.acks(5, 10));
    assert_eq!(flow.send(), FIRST);
    flow.acks(5, 10);
    let moved = flow.send();
    assert_ne!(moved, FIRST);
    (0..11).for_each(|_| flow.acks(10, 10));
    assert_eq!(flow.send(), moved, "twelve more");
    flow.acks(10, 10);
    assert_ne!(flow.send(), moved);
}

#[test]
fn plb_moves_after_three_congested_rounds_when_idle() {
    let told = |idle_rounds| vec![("idle_rounds", idle_rounds)];
    for (options, needed) in [(vec![], Some(3)), (told("1"), Some(1)), (told("0"), None)] {
        let mut flow = Flow::new("plb", &options);
        flow.acks(1, 1);
        for round in 1..=needed.unwrap_or(11) {
            flow.acks(5, 10);
            assert_eq!(flow.send(), FIRST, "not while packets are out");
            if needed.is_none_or(|needed| round < needed) {
                flow.in_flight = 0;
                assert_eq!(flow.send(), FIRST, "{round} rounds");
                flow.in_flight = 1;
            }
        }
        flow.in_flight = 0;
        assert_eq!(flow.send() == FIRST, needed.is_none());
    }
}

#[test]
fn plb_stays_after_a_time_out() {
    let suspended = |id: u64| {
        let mut flow = Flow::of("plb", &[("suspend", "1ms"), ("rounds", "2")], id);
        flow.acks(0, 1);
        flow.acks(1, 1);
        flow.time_out();
        let (begin, moved) = (flow.now, flow.send());
        assert_ne!(moved, FIRST, "it moves at once");
        flow.acks(1, 1);
        assert_eq!(flow.send(), moved, "and counts anew");
        while flow.send() == moved {
            assert!(flow.now <= begin + Time::ms(2) + RTT * 2);
            flow.in_flight = 0;
            assert_eq!(flow.send(), moved, "nor when idle");
            flow.in_flight = 1;
            flow.acks(1, 1);
        }
        begin.until(flow.now)
    };
    let spans: Vec<Time> = (0..200).map(suspended).collect();
    let (least, most) = (spans.iter().min().unwrap(), spans.iter().max().unwrap());
    // Uniform from 1 to 2 ms, found out a round trip later at most.
    assert!(*least >= Time::ms(1) && *least < Time::us(1_050), "{least}");
    assert!(*most > Time::us(1_950) && *most <= Time::ms(2) + RTT, "{most}");
    let mean = spans.iter().map(|span| span.0).sum::<u64>() / 200;
    // A standard deviation of 0.29 ms / sqrt(200) = 20 us.
    assert!(mean.abs_diff(Time::us(1_505).0) < Time::us(90).0, "{mean} ps");
    // Not suspended at all, it still counts anew, and may move at the same time.
    let mut flow = Flow::new("plb", &[("suspend", "0ns"), ("rounds", "2")]);
    flow.acks(0, 1);
    flow.acks(1, 1);
    flow.time_out();
    let moved = flow.send();
    flow.acks(1, 1);
    assert_eq!(flow.send(), moved);
    flow.acks(1, 1);
    assert_ne!(flow.send(), moved);
    let mut flow = Flow::new("plb", &[("suspend", "0ns"), ("rounds", "1")]);
    flow.acks(0, 1);
    flow.now += RTT;
    flow.time_out();
    let moved = flow.send();
    flow.ack(moved, true);
    assert_ne!(flow.send(), moved);
    // A minute as a rule: far beyond twelve rounds.
    let mut flow = Flow::new("plb", &[]);
    flow.time_out();
    let moved = flow.send();
    flow.now += Time::secs(60) - RTT * 14;
    (0..13).for_each(|_| flow.acks(1, 1));
    assert_eq!(flow.send(), moved);
    flow.now += Time::secs(60);
    flow.acks(1, 1);
    assert_ne!(flow.send(), moved, "what it counted in between still holds");
}

#[test]
fn plb_moves_by_delay_where_it_is_told_to() {
    let late = |signal: &str, late: bool, marked: bool| {
        let mut flow = Flow::new("plb", &[("signal", signal), ("rounds", "1")]);
        let good = Feedback { marked, late, rtt: RTT, ..Feedback::good(Time::ZERO, FIRST) };
        for step in 0..4 {
            flow.now += RTT * step;
            flow.steering.on_ack(Feedback { now: flow.now, ..good });
        }
        flow.send() != FIRST
    };
    assert_eq!([late("delay", true, false), late("delay", false, true)], [true, false]);
    assert_eq!([late("ecn", true, false), late("ecn", false, true)], [false, true]);
}
