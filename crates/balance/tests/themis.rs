//! Themis's leaves, packet by packet.

use std::collections::BTreeSet;
use weft_balance::tor::themis::Leaf;
use weft_balance::tor::{FlowId, Ways};
use weft_fabric::PathId;
use weft_units::{HostId, Time};

/// So many paths.
struct Paths(u32);

impl Ways for Paths {
    fn count(&self) -> u32 {
        self.0
    }
    fn get(&self, index: u32) -> PathId {
        PathId(index as u16)
    }
    fn has(&self, path: PathId) -> bool {
        u32::from(path.0) < self.0
    }
}

const FLOW: FlowId = FlowId { key: 3, control: false, src: HostId(0), dst: HostId(9) };

/// A leaf that packets of [`FLOW`] have passed, sent over four paths.
fn passed(packets: &[u32]) -> Leaf {
    let mut leaf = Leaf::default();
    packets.iter().for_each(|seq| leaf.receive(Time::ZERO, FLOW, *seq, 4));
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
    // Packet 1 is missing; 2, 3 and 4 took other paths.
    let mut leaf = passed(&[0, 2, 3, 4]);
    assert!(!leaf.answer(Time::ZERO, FLOW, true, 1));
    assert_eq!((leaf.counts().blocked_nacks, leaf.counts().late_nacks), (1, 0));
    // It comes.
    leaf.receive(Time::ZERO, FLOW, 1, 4);
    assert!(!leaf.answer(Time::ZERO, FLOW, false, 5));
    // A later packet of its path is no reason to report it now.
    leaf.receive(Time::ZERO, FLOW, 5, 4);
    assert!(!leaf.answer(Time::ZERO, FLOW, false, 6));
    assert_eq!(leaf.counts().late_nacks, 0);
}

#[test]
fn what_is_overtaken_on_its_own_path_is_lost() {
    let mut leaf = passed(&[0, 2, 5]);
    assert!(leaf.answer(Time::ZERO, FLOW, true, 1));
    assert_eq!(leaf.counts().blocked_nacks, 0);
}

#[test]
fn a_loss_that_shows_later_is_reported_then_and_once() {
    let mut leaf = passed(&[0, 2]);
    assert!(!leaf.answer(Time::ZERO, FLOW, true, 1));
    let mut sees = |seq| {
        leaf.receive(Time::ZERO, FLOW, seq, 4);
        leaf.answer(Time::ZERO, FLOW, false, 1)
    };
    assert_eq!([3, 4, 5, 6, 9].map(&mut sees), [false, false, true, false, false]);
    assert_eq!((leaf.counts().blocked_nacks, leaf.counts().late_nacks), (1, 1));
}

#[test]
fn other_flows_and_new_paths_say_nothing() {
    let mut leaf = passed(&[0, 2, 5]);
    let other = FlowId { key: 4, ..FLOW };
    // Nothing is known of it: the NACK stays one.
    assert!(leaf.answer(Time::ZERO, other, true, 1));
    leaf.receive(Time::ZERO, other, 2, 4);
    assert!(!leaf.answer(Time::ZERO, other, true, 1));
    // With three paths left, what passed before counts no more.
    leaf.receive(Time::ZERO, FLOW, 6, 3);
    assert!(!leaf.answer(Time::ZERO, FLOW, true, 1));
    leaf.receive(Time::ZERO, FLOW, 7, 3);
    assert!(leaf.answer(Time::ZERO, FLOW, false, 1), "7 and 1 share a path of three");
    assert_eq!(leaf.counts().flows, 2);
}
