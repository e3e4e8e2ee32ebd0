//! Connections whose queue pairs are told apart by more than a hash: CAST's weights, RLB's colours.

use std::collections::BTreeMap;
use weft_balance::plan::{FlowInfo, Post, Route, Subflow};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_balance::{Planner, hash};
use weft_balance::{Switching, forward};
use weft_fabric::{Clos, Fabric, Link};
use weft_units::{HostId, MessageId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

/// 4 leaves, 8 spines, 4 hosts a leaf, 100 Gb/s.
fn fabric() -> Fabric {
    Fabric::build(&Clos::leaf_spine(4, 8, 4, LINK)).unwrap()
}

fn config(scheme: &str, options: &[(&str, &str)]) -> BalanceConfig {
    let scheme = SchemeConfig::read(scheme, options).unwrap();
    BalanceConfig { scheme, start_jitter: Time::ZERO, random_position: false, bdp: 100_000 }
}

/// The planner of host 0 with its clock, and what it has under way.
struct Host {
    fabric: Fabric,
    planner: Planner,
    now: Time,
    out: Vec<Subflow>,
}

impl Host {
    fn new(scheme: &str, options: &[(&str, &str)]) -> Host {
        let planner = Planner::new(&config(scheme, options), HostId(0), 1, 1_000);
        Host { fabric: fabric(), planner, now: Time::ZERO, out: Vec::new() }
    }
    /// Sends a message to host 4; returns the bytes of its subflows that leave at once, by queue pair.
    fn post(&mut self, message: u32, bytes: u64) -> Vec<(u32, u64)> {
        let (dst, ranks) = (HostId(4), (0, 0));
        let post = Post { message: MessageId(message), dst, bytes, job: 0, ranks, tag: 0 };
        let before = self.out.len();
        self.planner.post(self.now, post, &self.fabric, &mut self.out);
        self.left(before)
    }
    /// What has left since there were `before` subflows.
    fn left(&self, before: usize) -> Vec<(u32, u64)> {
        let part = |it: &Subflow| (it.carrier.persistent().unwrap().0, it.bytes);
        self.out[before..].iter().map(part).collect()
    }
    /// The oldest subflow of queue pair `id` is done; returns what leaves then.
    fn done(&mut self, id: u32) -> Vec<(u32, u64)> {
        let is_own = |it: &Subflow| it.carrier.persistent().unwrap().0 == id;
        let at = self.out.iter().position(is_own).expect("it has one");
        let subflow = self.out.remove(at);
        let flow = FlowInfo::from(&subflow);
        let before = self.out.len();
        let queue_pair = subflow.carrier.persistent().unwrap();
        self.out.extend(self.planner.next(self.now, queue_pair, &self.fabric));
        self.planner.sent(self.now, &flow, &self.fabric, &mut self.out);
        self.left(before)
    }
}

#[test]
fn chunks_go_by_weights_once_all_queue_pairs_have_a_sample() {
    let options = [("queue_pairs", "2"), ("chunk", "1250B"), ("depth", "1"), ("update", "0us")];
    let mut host = Host::new("cast", &options);
    // 100 ns of wire a chunk. One under way, in turn; chunks take 1 us on the first and 3 us on the second.
    let mut next = host.post(0, 125_000_000);
    let mut counts = [0; 2];
    for _ in 0..1_002 {
        let [(id, 1_250)] = next[..] else { panic!("{next:?}") };
        counts[id as usize] += 1;
        host.now += if id == 0 { Time::ns(1_100) } else { Time::ns(3_100) };
        next = host.done(id);
    }
    // One each, and then 75 and 25 tokens again and again.
    assert_eq!(counts, [751, 251]);
}

#[test]
fn large_chunks_can_be_cut_by_weights() {
    let options = [
        ("queue_pairs", "2"),
        ("chunk", "100000B"),
        ("depth", "1"),
        ("split", "weighted"),
        ("split_from", "40000B"),
        ("update", "0us"),
    ];
    let mut host = Host::new("cast", &options);
    // Equal parts, rounded up to 128 bytes; the last takes the rest.
    assert_eq!(host.post(0, 250_000), [(0, 50_048), (1, 49_952)]);
    // 1 and 3 us, beside 4,003,840 ps and 3,996,160 ps of wire.
    host.now = Time::ps(1_000_000 + 4_003_840);
    assert_eq!(host.done(0), []);
    host.now = Time::ps(3_000_000 + 3_996_160);
    // Three quarters are 75,000, rounded down to 128 bytes.
    assert_eq!(host.done(1), [(0, 74_880), (1, 25_120)]);
    // The last chunk is too small to be cut, and there is room for it.
    host.now += Time::us(10);
    assert_eq!(host.done(0), [(0, 50_000)]);
    assert_eq!([host.done(1), host.done(0)], [[], []]);
}

#[test]
fn cast_sends_every_byte_of_every_message() {
    for split in ["round-robin", "weighted"] {
        let mut host = Host::new("cast-4", &[("split", split), ("chunk", "300000B")]);
        let (mut sent, mut queue) = (0, Vec::new());
        for (message, bytes) in [(0, 0), (1, 1), (2, 7_654_321), (3, 300_000), (4, 3_000_001)] {
            queue.extend(host.post(message, bytes));
        }
        while let Some((id, bytes)) = queue.pop() {
            sent += bytes;
            host.now += Time::us(1 + u64::from(id) * 7);
            queue.extend(host.done(id));
        }
        assert_eq!(sent, 1 + 7_654_321 + 300_000 + 3_000_001, "{split}");
        assert_eq!(host.out, []);
    }
}

/// The hops of a switch with eight of them, some gone.
struct Spines(Vec<u32>);

impl forward::Hops for Spines {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn queued(&self, _: u32) -> u64 {
        0
    }
    fn port(&self, hop: u32) -> PortId {
        PortId(self.group() + hop)
    }
    fn group(&self) -> u32 {
        0
    }
    fn places(&self) -> u32 {
        8
    }
    fn place(&self, hop: u32) -> u32 {
        self.0[hop as usize]
    }
    fn weights(&self) -> Option<&[u32]> {
        None
    }
}

/// Which spines the queue pairs of a connection take.
fn spines(options: &[(&str, &str)], left: &[u32]) -> Vec<u32> {
    uplinks(&fabric(), options, left)
}

/// Which uplinks of the first leaf.
fn uplinks(fabric: &Fabric, options: &[(&str, &str)], left: &[u32]) -> Vec<u32> {
    let mut host = Host::new("rlb", options);
    host.post(0, 8_000_000);
    let switch = SwitchId(0);
    let context = forward::SwitchContext { switch, fabric, seed: 1, buffer: 1 };
    let mut switching = Switching::new(&config("rlb", options), &context);
    let hops = Spines(left.to_vec());
    let mut spine = |it: &Subflow| {
        let Route::Hashed(entropy) = it.route else { panic!("{it:?}") };
        let hash = hash::bits(1, entropy, 5);
        let hashed = hash::below(hash, left.len() as u32);
        let (now, dst, control) = (Time::ZERO, it.dst, false);
        let packet =
            forward::Passing { now, flow: 1, dst, control, entropy, hashed, hash, bytes: 0 };
        left[switching.choose(&packet, &hops) as usize]
    };
    host.out.iter().map(&mut spine).collect()
}

#[test]
fn an_address_fixes_the_spine() {
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    assert_eq!(spines(&[], &all), all);
    assert_eq!(spines(&[("queue_pairs", "16")], &all), [all, all].concat());
    // A colour whose spine is gone falls back to others; the rest stays.
    let fewer = [0, 1, 2, 4, 5, 6, 7];
    let took = spines(&[], &fewer);
    assert_eq!(took.len(), 8);
    for (queue_pair, spine) in (0..).zip(&took).filter(|(it, _)| *it != 3) {
        assert_eq!(*spine, queue_pair);
    }
    assert_ne!(took[3], 3);
    // Four colours on eight spines: hashed among two.
    let took = spines(&[("queue_pairs", "64"), ("colours", "4")], &all);
    let mut counts = BTreeMap::new();
    for (queue_pair, spine) in (0..).zip(took) {
        assert_eq!(spine % 4, queue_pair % 4);
        *counts.entry(spine).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 8, "{counts:?}");
}

/// With several links to each spine a colour is still that of a spine, and of a link only where there are more.
#[test]
fn an_address_fixes_the_spine_of_a_bundle() {
    let mut clos = Clos::leaf_spine(2, 4, 2, LINK);
    clos.leaf_bundle.members = 2;
    let fabric = Fabric::build(&clos).unwrap();
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    let four = uplinks(&fabric, &[("queue_pairs", "4")], &all);
    assert_eq!(four.iter().map(|uplink| uplink / 2).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(uplinks(&fabric, &[("queue_pairs", "8")], &all), [0, 2, 4, 6, 1, 3, 5, 7]);
    // The other link of a bundle stands in for a dead one.
    let fewer = [0, 1, 2, 3, 5, 6, 7];
    let took = uplinks(&fabric, &[("queue_pairs", "4")], &fewer);
    assert_eq!(took.iter().map(|uplink| uplink / 2).collect::<Vec<_>>(), [0, 1, 2, 3]);
}
