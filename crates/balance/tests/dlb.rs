//! Dynamic load balancing, port by port, and global load balancing, path by path.

use crate::common::switch::{LINK, counts, is_even, packet, switch_of};
use std::collections::BTreeSet;
use weft_balance::Switching;
use weft_balance::forward::{Hops, Passing};
use weft_balance::scheme::SchemeConfig;
use weft_balance::tor::{Tor, TorContext, glb};
use weft_fabric::{Clos, Fabric};
use weft_units::{HostId, PortId, SwitchId, Time};

const UPLINKS: u32 = 4;

/// The uplinks of a leaf, of which some are left, with so many bytes in each queue.
struct Uplinks<'a> {
    first: PortId,
    left: &'a [u32],
    queued: u64,
}

impl Hops for Uplinks<'_> {
    fn count(&self) -> u32 {
        self.left.len() as u32
    }
    fn queued(&self, hop: u32) -> u64 {
        if self.left[hop as usize] == 0 { self.queued } else { 0 }
    }
    fn port(&self, hop: u32) -> PortId {
        PortId(self.first.0 + self.left[hop as usize])
    }
    fn group(&self) -> u32 {
        self.port(0).0
    }
    fn places(&self) -> u32 {
        UPLINKS
    }
    fn place(&self, hop: u32) -> u32 {
        self.left[hop as usize]
    }
    fn weights(&self) -> Option<&[u32]> {
        None
    }
}

const ALL: &[u32] = &[0, 1, 2, 3];

/// A leaf with four uplinks of 100 Gb/s, which send 200,000 bytes in a sample of 16 us.
struct Leaf {
    switching: Switching,
    first: PortId,
}

impl Leaf {
    fn new(options: &[(&str, &str)]) -> Leaf {
        let fabric = Fabric::build(&Clos::leaf_spine(2, UPLINKS, 2, LINK)).unwrap();
        let first = fabric.next_hops(weft_units::SwitchId(0), weft_units::HostId(3)).first;
        let scheme = SchemeConfig::read("dlb", options).unwrap();
        Leaf { switching: switch_of(&fabric, &scheme, 0, 1), first }
    }
    /// Which uplink a packet of `flow` takes at `us`.
    fn send(&mut self, us: u64, flow: u64, bytes: u32, left: &[u32], queued: u64) -> u32 {
        let hops = Uplinks { first: self.first, left, queued };
        let packet = Passing { bytes, ..packet(Time::us(us), flow) };
        left[self.switching.choose(&packet, &hops) as usize]
    }
}

#[test]
fn all_ports_are_alike_at_first() {
    for mode in ["packet-quality", "packet-random"] {
        let mut leaf = Leaf::new(&[("mode", mode)]);
        let taken: Vec<u32> = (0..4_000).map(|flow| leaf.send(1, flow, 1_000, ALL, 0)).collect();
        assert!(is_even(&counts(&taken, 4)), "{mode}");
    }
}

#[test]
fn a_port_that_has_sent_much_is_in_a_worse_band() {
    let mut leaf = Leaf::new(&[("mode", "packet-quality"), ("exponent", "0")]);
    // Half of what it can send in a sample: a load of one quarter, the third band of eight.
    let busy = leaf.send(1, 0, 100_000, ALL, 0);
    // Nothing is known of it before the sample is over.
    let before: BTreeSet<u32> = (0..100).map(|flow| leaf.send(15, flow, 0, ALL, 0)).collect();
    assert_eq!(before.len(), 4);
    let after: BTreeSet<u32> = (0..100).map(|flow| leaf.send(17, flow, 0, ALL, 0)).collect();
    assert!(!after.contains(&busy) && after.len() == 3, "{busy} in {after:?}");
    // A sample later it has sent nothing.
    let later: BTreeSet<u32> = (0..100).map(|flow| leaf.send(33, flow, 0, ALL, 0)).collect();
    assert_eq!(later.len(), 4);
}

/// Flows that keep their ports ask nobody how these are; what they send counts all the same.
#[test]
fn a_port_that_a_flow_fills_is_left_to_it() {
    let mut leaf = Leaf::new(&[]);
    let busy = leaf.send(0, 7, 12_500, ALL, 0);
    assert!((1..1_000).all(|us| leaf.send(us, 7, 12_500, ALL, 0) == busy));
    let others: BTreeSet<u32> = (8..40).map(|flow| leaf.send(1_000, flow, 0, ALL, 0)).collect();
    assert!(!others.contains(&busy) && others.len() == 3, "{busy} in {others:?}");
}

#[test]
fn small_differences_do_not_count() {
    let mut leaf = Leaf::new(&[("mode", "packet-quality"), ("exponent", "0")]);
    // A band is an eighth of the load, a quarter of the bytes: of 200,000 less than 50,000.
    for (queued, seen) in [(49_999, true), (50_000, false)] {
        let mut us = 20;
        let mut taken = BTreeSet::new();
        for flow in 0..100 {
            us += 16;
            taken.insert(leaf.send(us, flow, 0, ALL, queued));
        }
        assert_eq!(taken.contains(&0), seen, "{queued}");
    }
}

#[test]
fn averages_move_by_a_quarter() {
    let mut leaf = Leaf::new(&[("mode", "packet-quality")]);
    // A queue of two samples' time: its average is 2 * (1 - 0.75^n), of which half counts, so that one sample
    // puts it two bands down.
    let mut after =
        |us| (0..50).map(|flow| leaf.send(us, flow, 0, ALL, 400_000)).collect::<BTreeSet<u32>>();
    assert_eq!(after(15).len(), 4);
    assert_eq!(after(16), BTreeSet::from([1, 2, 3]));
}

#[test]
fn a_flow_keeps_its_port_until_it_pauses() {
    let mut leaf = Leaf::new(&[("mode", "flowlet-random"), ("idle", "10us")]);
    let first = leaf.send(0, 7, 1_000, ALL, 0);
    assert!((1..50).all(|step| leaf.send(10 * step, 7, 1_000, ALL, 0) == first));
    let taken: BTreeSet<u32> =
        (0..50).map(|step| leaf.send(600 + 11 * step, 7, 0, ALL, 0)).collect();
    assert_eq!(taken.len(), 4);
    // A fixed flow keeps it whatever happens, but for the death of its port.
    let mut leaf = Leaf::new(&[("mode", "fixed"), ("idle", "10us")]);
    let first = leaf.send(0, 7, 1_000, ALL, 0);
    assert!((1..50).all(|step| leaf.send(1_000 * step, 7, 1_000, ALL, 0) == first));
    let others: Vec<u32> = ALL.iter().copied().filter(|it| *it != first).collect();
    let second = leaf.send(60_000, 7, 0, &others, 0);
    assert_ne!(second, first);
    assert_eq!(leaf.send(70_000, 7, 0, ALL, 0), second);
}

#[test]
fn flows_of_one_entry_go_together() {
    let mut leaf = Leaf::new(&[("flows", "1"), ("mode", "flowlet-random")]);
    let taken: BTreeSet<u32> = (0..100).map(|flow| leaf.send(1, flow, 1_000, ALL, 0)).collect();
    assert_eq!(taken.len(), 1);
    let mut leaf = Leaf::new(&[("flows", "512"), ("mode", "flowlet-random")]);
    let taken: Vec<u32> = (0..4_000).map(|flow| leaf.send(1, flow * 97, 0, ALL, 0)).collect();
    // 512 entries draw a port each.
    assert!(
        counts(&taken, 4).iter().all(|count| (800..1_200).contains(count)),
        "{:?}",
        counts(&taken, 4)
    );
}

/// A switch of three leaves and four spines under global load balancing.
fn glb(number: u32) -> (glb::Switch, Fabric) {
    glb_of(Clos::leaf_spine(3, UPLINKS, 2, LINK), number, &[])
}

fn glb_of(clos: Clos, number: u32, more: &[(&str, &str)]) -> (glb::Switch, Fabric) {
    let fabric = Fabric::build(&clos).unwrap();
    let options = [&[("mode", "packet-quality"), ("exponent", "0")], more].concat();
    let scheme = SchemeConfig::read("glb", &options).unwrap();
    let context = TorContext { switch: SwitchId(number), fabric: &fabric, seed: 1, packet: 1_000 };
    let Some(Tor::<()>::Glb(state)) = scheme.tor(&context) else { panic!("{scheme:?}") };
    (*state, fabric)
}

/// Leaves keep off a spine whose link to the other leaf is busy, for that leaf only.
#[test]
fn leaves_know_what_is_behind_their_uplinks() {
    let (glb::Switch::Leaf(mut leaf), fabric) = glb(0) else { panic!("it is a leaf") };
    let first = fabric.next_hops(SwitchId(0), HostId(2)).first;
    let hops = Uplinks { first, left: ALL, queued: 0 };
    let said = |bands: &[u8]| {
        let mut all = [0; glb::GROUP];
        all[..bands.len()].copy_from_slice(bands);
        glb::Qualities { group: 0, bands: all }
    };
    let taken = |leaf: &mut glb::Leaf, to| -> BTreeSet<u32> {
        (0..100).map(|flow| leaf.choose(&packet(Time::us(1), flow), to, &hops)).collect()
    };
    assert_eq!(taken(&mut leaf, 1).len(), 4);
    leaf.hear(PortId(first.0 + 2), &said(&[0, 3, 0]));
    assert_eq!(taken(&mut leaf, 1), BTreeSet::from([0, 1, 3]));
    assert_eq!(taken(&mut leaf, 2).len(), 4);
    // Where all are bad, the least bad one is best.
    for uplink in [0, 1, 3] {
        leaf.hear(PortId(first.0 + uplink), &said(&[0, 5, 0]));
    }
    assert_eq!(taken(&mut leaf, 1), BTreeSet::from([2]));
}

/// Spines tell what has changed after a sample, and no more when all is quiet.
#[test]
fn spines_flood_what_has_changed() {
    let (glb::Switch::Spine(spine), fabric) = glb(3) else { panic!("it is a spine") };
    let mut state = glb::Switch::Spine(spine);
    let due = |state: &glb::Switch| state.deadline();
    let at = |state: &mut glb::Switch, us: u64, queued: [u64; 3]| {
        let glb::Switch::Spine(spine) = state else { unreachable!() };
        let mut out = Vec::new();
        spine.time(Time::us(us), |port| Some(queued[port as usize]), &mut out);
        out.iter().map(|said: &glb::Qualities| said.bands[..3].to_vec()).collect::<Vec<_>>()
    };
    let send = |state: &mut glb::Switch, us: u64, port: u32, bytes: u32| {
        let glb::Switch::Spine(spine) = state else { unreachable!() };
        let first = PortId(fabric.ports_of(SwitchId(3)).first.0 + port);
        let hops = Uplinks { first, left: &[0], queued: 0 };
        spine.choose(&Passing { bytes, ..packet(Time::us(us), 0) }, &hops);
    };
    assert_eq!(due(&state), None);
    // Half of what a port sends in a sample: a quarter of the load, the third band.
    send(&mut state, 5, 1, 100_000);
    assert_eq!(due(&state), Some(Time::us(16)));
    assert_eq!(at(&mut state, 16, [0; 3]), [[0, 2, 0]]);
    send(&mut state, 17, 1, 100_000);
    assert_eq!(at(&mut state, 32, [0; 3]).len(), 0, "nothing has changed");
    assert_eq!(at(&mut state, 48, [0, 0, 200_000]), [[0, 0, 4]]);
    assert_eq!(at(&mut state, 64, [0; 3]), [[0, 0, 0]]);
    assert_eq!(due(&state), None);
    // What came in between was nothing.
    send(&mut state, 1_000, 0, 1_000);
    assert_eq!(due(&state), Some(Time::us(1_008)));
    assert_eq!((at(&mut state, 1_008, [0; 3]).len(), due(&state)), (0, None));
    assert_eq!(state.counts().control_packets, 9);
    // Nor at a port that is used after another one has ended the quiet.
    send(&mut state, 2_000, 0, 1_000);
    send(&mut state, 2_001, 1, 100_000);
    assert_eq!(at(&mut state, 2_016, [0; 3]), [[0, 2, 0]]);
}

/// Three leaves with two links to each of two spines.
fn bundled() -> Clos {
    let mut clos = Clos::leaf_spine(3, 2, 2, LINK);
    clos.leaf_bundle.members = 2;
    clos
}

/// What a spine says comes by one of its links to a leaf, and is about all of them.
#[test]
fn what_a_spine_says_counts_for_all_links_to_it() {
    let (glb::Switch::Leaf(mut leaf), fabric) = glb_of(bundled(), 0, &[]) else {
        panic!("it is a leaf")
    };
    let first = fabric.next_hops(SwitchId(0), HostId(2)).first;
    let hops = Uplinks { first, left: ALL, queued: 0 };
    let said = |bands| glb::Qualities { group: 0, bands };
    let taken = |leaf: &mut glb::Leaf, to| -> BTreeSet<u32> {
        (0..100).map(|flow| leaf.choose(&packet(Time::us(1), flow), to, &hops)).collect()
    };
    for uplink in [0, 1] {
        leaf.hear(PortId(first.0 + uplink), &said([0, 0, 3, 3, 0, 0, 0, 0]));
        assert_eq!(taken(&mut leaf, 1), BTreeSet::from([2, 3]), "by {uplink}");
        assert_eq!(taken(&mut leaf, 2).len(), 4, "by {uplink}");
        leaf.hear(PortId(first.0 + uplink), &said([0; 8]));
        assert_eq!(taken(&mut leaf, 1).len(), 4, "by {uplink}");
    }
}

/// Of several links to a leaf a spine takes the best, and a dead one is none of them.
#[test]
fn spines_choose_among_links_to_a_leaf() {
    let (glb::Switch::Spine(mut spine), fabric) = glb_of(bundled(), 3, &[]) else {
        panic!("it is a spine")
    };
    let first = fabric.next_hops(SwitchId(3), HostId(0)).first;
    let mut send = |us, flow, bytes| {
        let hops = Uplinks { first, left: &[0, 1], queued: 0 };
        spine.choose(&Passing { bytes, ..packet(Time::us(us), flow) }, &hops)
    };
    let busy = send(1, 0, 100_000);
    let after: BTreeSet<u32> = (0..100).map(|flow| send(17, flow, 0)).collect();
    assert_eq!(after, BTreeSet::from([1 - busy]));
    let mut out = Vec::new();
    spine.time(Time::us(32), |port| (port != 1).then_some(0), &mut out);
    let bands: Vec<_> = out.iter().map(|said| said.bands).collect();
    assert_eq!(bands, [[0, 7, 0, 0, 0, 0, 0, 0]]);
}

/// What tells of links leaves seven eighths of them to others, however short samples are.
#[test]
fn spines_do_not_fill_their_links_with_what_they_tell() {
    let clos = Clos::leaf_spine(3, UPLINKS, 2, LINK);
    let (glb::Switch::Spine(mut spine), fabric) = glb_of(clos, 3, &[("sample", "1ns")]) else {
        panic!("it is a spine")
    };
    let first = fabric.next_hops(SwitchId(3), HostId(0)).first;
    spine.choose(&packet(Time::ZERO, 0), &Uplinks { first, left: &[0], queued: 0 });
    let (mut out, mut told) = (Vec::new(), 0);
    for ns in 1..=10_000 {
        // Another band each time.
        let queued = if ns % 2 == 0 { 3 } else { 1_000 };
        spine.time(Time::ns(ns), |_| Some(queued), &mut out);
        told += out.drain(..).count() as u64;
    }
    let share = LINK.rate.serialize(64 * told).0 as f64 / Time::us(10).0 as f64;
    assert!((0.1..=0.125).contains(&share), "{share}");
}

#[test]
fn three_tiers_are_refused() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let error = SchemeConfig::read("glb", &[]).unwrap().fits(&fabric).unwrap_err();
    assert!(error.0.starts_with("it needs a fabric of leaves and spines only"), "{error}");
}
