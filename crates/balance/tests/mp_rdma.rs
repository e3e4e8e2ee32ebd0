//! Packets that take the paths of acknowledgements, step by step.

use crate::common::flow::Flow;
use std::collections::{BTreeSet, VecDeque};
use weft_balance::plan::Route;
use weft_balance::scheme::SchemeInfo;
use weft_balance::steer::{Departure, Feedback, TimeOut};
use weft_fabric::PathId;
use weft_trial::prelude::*;
use weft_units::Time;

fn never_probing() -> Flow {
    Flow::new("mp-rdma", &[("probe", "0")])
}
/// An acknowledgement by `path`, after which the window lets `room` packets out.
fn ack(flow: &mut Flow, path: u16, room: u32) {
    flow.steering.on_ack(Feedback { room, ..flow.feedback(path, false) });
}

#[test]
fn the_first_window_takes_new_paths() {
    let mut flow = never_probing();
    let paths: BTreeSet<u16> = flow.sends(1_000).into_iter().collect();
    // 1000 draws of 65,536 collide about 8 times.
    assert!(paths.len() > 970, "{}", paths.len());
}

#[test]
fn a_packet_takes_the_path_of_the_acknowledgement_that_lets_it_out() {
    let mut flow = never_probing();
    ack(&mut flow, 5, 1);
    assert_eq!(flow.send(), 5);
    // The window has grown by one: two packets. Never more than two.
    ack(&mut flow, 6, 2);
    assert_eq!(flow.sends(2), [6, 6]);
    ack(&mut flow, 7, 9);
    assert_eq!(flow.sends(2), [7, 7]);
    // The window has shrunk, or the path was too slow: nothing.
    ack(&mut flow, 8, 0);
    ack(&mut flow, 9, 1);
    assert_eq!(flow.send(), 9);
    // The NIC serves others meanwhile: room for each, in the order in which they came.
    ack(&mut flow, 1, 1);
    ack(&mut flow, 2, 2);
    ack(&mut flow, 3, 2);
    ack(&mut flow, 4, 4);
    assert_eq!(flow.sends(4), [1, 2, 4, 4]);
}

#[test]
fn probes_leave_once_a_round_trip() {
    let mut flow = Flow::new("mp-rdma", &[("probe", "1")]);
    flow.in_flight = 3;
    for _ in 0..5 {
        ack(&mut flow, 5, 1);
        assert_ne!(flow.send(), 5, "a new path");
        for _ in 0..3 {
            ack(&mut flow, 5, 1);
            assert_eq!(flow.send(), 5, "one of the three that were out");
        }
    }
    // One of a hundred round trips by default.
    let mut flow = Flow::new("mp-rdma", &[]);
    let mut probes = 0;
    for _ in 0..100_000 {
        ack(&mut flow, 5, 1);
        probes += u32::from(flow.send() != 5);
    }
    // Mean 1000, standard deviation 31.5.
    assert!((870..1130).contains(&probes), "{probes}");
}

#[test]
fn pinned_flows_stay_and_time_outs_ask_for_nothing() {
    let mut flow = never_probing();
    ack(&mut flow, 5, 1);
    let at = Departure { now: Time::ZERO, in_flight: 0 };
    let pinned = Route::Pinned(PathId(0x0102));
    assert_eq!(flow.steering.route(pinned, at), pinned);
    ack(&mut flow, 6, 1);
    flow.steering.on_time_out(TimeOut { now: flow.now, after: Time::us(1) });
    assert_eq!(flow.send(), 6);
}

#[test]
fn it_comes_with_its_own_congestion_control() {
    assert_eq!(SchemeInfo::find("mp-rdma").unwrap().congestion, "mp-rdma");
    assert_eq!(SchemeInfo::find("subflows-4").unwrap().congestion, "dctcp");
}

trials! {
    /// A window that is neither exceeded nor left open, whatever it does: packets and
    /// acknowledgements are paired in their order, and only what no acknowledgement accounts for
    /// takes a new path.
    fn paths_pass_from_acknowledgements_to_packets(
        steps in prop::collection::vec((0u32..4, 0u32..3), 1..300),
    ) {
        let mut flow = never_probing();
        let mut due = VecDeque::new();
        for (path, (sends, room)) in (0u16..).zip(steps) {
            let room = room + due.len() as u32;
            ack(&mut flow, path, room);
            due.extend(std::iter::repeat_n(path, room as usize - due.len()));
            for _ in 0..sends {
                let sent = flow.send();
                if let Some(expected) = due.pop_front() {
                    prop_assert_eq!(sent, expected);
                }
            }
        }
    }
}
