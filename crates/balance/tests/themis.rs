//! Themis's leaves, packet by packet.

use crate::common::paths::Paths;
use std::collections::BTreeSet;
use weft_balance::tor::FlowId;
use weft_balance::tor::themis::Leaf;
use weft_units::{HostId, Time};

const FLOW: FlowId = FlowId { key: 3, control: false, src: HostId(0), dst: HostId(9) };

/// A leaf that packets of [`FLOW`] have passed, sent over four paths.
fn passed() -> Leaf {
    let mut leaf = Leaf::default();
    leaf.receive(Time::ZERO, FLOW, 4);
    leaf
}

#[test]
fn packets_go_round_the_paths() {
    let leaf = Leaf::default();
    let path = |key: u32, seq: u32| leaf.send(key, seq, &Paths(4)).unwrap();
    let first: Vec<u16> = (0..8).map(|seq| path(7, seq).path.0).collect();
    assert_eq!(first[..4], first[4..]);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 4);
    assert_eq!(path(7, 0).paths, 4);
    // Flows begin with different ones.
    let starts: BTreeSet<u16> = (0..50).map(|key| path(key, 0).path.0).collect();
    assert_eq!(starts.len(), 4);
    assert_eq!(leaf.send(7, 0, &Paths(0)), None);
}

#[test]
fn what_is_overtaken_on_other_paths_is_not_lost() {
    // Packet 1 is missing when 2 comes, which took another path.
    let mut leaf = passed();
    assert!(!leaf.answer(Time::ZERO, FLOW, true, (2, 1)));
    assert_eq!((leaf.counts().blocked_nacks, leaf.counts().late_nacks), (1, 0));
    // It comes, and with it all up to 4. A later packet of its path is no reason to report it now.
    assert!(!leaf.answer(Time::ZERO, FLOW, false, (1, 5)));
    assert!(!leaf.answer(Time::ZERO, FLOW, false, (5, 6)));
    assert_eq!(leaf.counts().late_nacks, 0);
}

#[test]
fn what_is_overtaken_on_its_own_path_is_lost() {
    let mut leaf = passed();
    assert!(leaf.answer(Time::ZERO, FLOW, true, (5, 1)));
    assert!(leaf.answer(Time::ZERO, FLOW, true, (13, 9)));
    assert_eq!(leaf.counts().blocked_nacks, 0);
}

#[test]
fn a_loss_that_shows_later_is_reported_then_and_once() {
    let mut leaf = passed();
    assert!(!leaf.answer(Time::ZERO, FLOW, true, (2, 1)));
    let mut sees = |seq| leaf.answer(Time::ZERO, FLOW, false, (seq, 1));
    assert_eq!([3, 4, 5, 6, 9].map(&mut sees), [false, false, true, false, false]);
    assert_eq!((leaf.counts().blocked_nacks, leaf.counts().late_nacks), (1, 1));
}

#[test]
fn other_flows_and_new_paths_say_nothing() {
    let mut leaf = passed();
    let other = FlowId { key: 4, ..FLOW };
    // Nothing is known of it: the NACK stays one.
    assert!(leaf.answer(Time::ZERO, other, true, (2, 1)));
    leaf.receive(Time::ZERO, other, 4);
    assert!(!leaf.answer(Time::ZERO, other, true, (2, 1)));
    // With three paths left, 7 and 1 share one, and what was stopped before is forgotten.
    leaf.receive(Time::ZERO, other, 3);
    assert!(!leaf.answer(Time::ZERO, other, false, (7, 1)));
    assert!(leaf.answer(Time::ZERO, other, true, (7, 1)));
    assert_eq!(leaf.counts().flows, 2);
}
