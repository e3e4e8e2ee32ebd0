//! Theorem 1 of Ethereal (2025): pinned and minimally split flows load every uplink and downlink as
//! ideal spraying does, for any demand of equal sizes per source and leaf.

use std::collections::BTreeMap;
use weft_balance::Planner;
use weft_balance::plan::{FlowInfo, LossSignal, Post, Route, Subflow};
use weft_balance::scheme::ethereal::{Group, Share, split_and_assign};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Bundle, Clos, Fabric, Link, Node, PathId, Tiers};
use weft_trial::prelude::*;
use weft_units::random::below;
use weft_units::{Draw, HostId, MessageId, PortId, Rate, Time};

/// Payload of a packet.
const MTU: u32 = 1_000;
const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

fn ethereal() -> BalanceConfig {
    BalanceConfig {
        scheme: SchemeConfig::read("ethereal", &[]).unwrap(),
        start_jitter: Time::ZERO,
        random_position: false,
        bdp: 0,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Fabrics of two tiers, with bundles, and of three, without.
fn fabrics() -> impl Strategy<Value = Fabric> {
    let two = (2u32..6, 1u32..17, 1u32..4, 1u32..4).prop_map(|(leaves, spines, hosts, members)| {
        let mut clos = Clos::leaf_spine(leaves, spines, hosts, LINK);
        clos.leaf_bundle = Bundle { link: LINK, members };
        clos
    });
    let three = (2u32..4, 1u32..4, 1u32..5, 1u32..5, 1u32..3).prop_map(
        |(pods, leaves_per_pod, aggs_per_pod, per_plane, hosts)| {
            let cores = aggs_per_pod * per_plane;
            let tiers = Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores };
            Clos::uniform(tiers, hosts, LINK)
        },
    );
    prop_oneof![3 => two, 1 => three].prop_map(|clos| Fabric::build(&clos).unwrap())
}

/// The batch of one source: for every other leaf a number of flows of one size.
struct Demand {
    posts: Vec<Post>,
    /// Per leaf: flows and their size.
    leaves: BTreeMap<u32, (u64, u64)>,
}

fn demand(fabric: &Fabric, src: HostId, most: u32, sizes: u64, seed: u64) -> Demand {
    let mut stream = Draw::new(seed, "demand").stream(u64::from(src.0));
    let per_leaf = fabric.hosts_per_leaf().expect("all alike");
    let mut demand = Demand { posts: Vec::new(), leaves: BTreeMap::new() };
    for leaf in (0..fabric.leaves()).filter(|leaf| *leaf != fabric.leaf_of(src)) {
        let (flows, bytes) = (stream.below(most + 1), 1 + below(stream.bits(), sizes));
        for _ in 0..flows {
            let dst = HostId(leaf * per_leaf + stream.below(per_leaf));
            demand.posts.push(Post {
                message: MessageId(0),
                dst,
                bytes,
                job: 0,
                ranks: (0, 0),
                tag: 0,
            });
        }
        demand.leaves.insert(leaf, (u64::from(flows), bytes));
    }
    stream.shuffle(&mut demand.posts);
    for (index, post) in demand.posts.iter_mut().enumerate() {
        post.message = MessageId(index as u32);
    }
    demand
}

fn plan(planner: &mut Planner, posts: &[Post], now: Time, fabric: &Fabric) -> Vec<Subflow> {
    let mut subflows = Vec::new();
    for post in posts {
        planner.post(now, *post, fabric, &mut subflows);
    }
    planner.flush(now + Time::ns(100), fabric, &mut subflows);
    subflows
}

fn path_of(subflow: &Subflow) -> PathId {
    match subflow.route {
        Route::Pinned(path) => path,
        Route::Hashed(_) => panic!("Ethereal pins every subflow"),
    }
}

/// Adds the payload of `subflows` to every port on their way.
fn load(fabric: &Fabric, src: HostId, subflows: &[Subflow], ports: &mut BTreeMap<PortId, u64>) {
    for subflow in subflows {
        for port in fabric.trace(src, subflow.dst, path_of(subflow)) {
            *ports.entry(port).or_default() += subflow.bytes;
        }
    }
}

/// The parts of every message add up to it, are numbered from zero and differ by one byte at
/// most.
fn check_parts(posts: &[Post], subflows: &[Subflow]) {
    let mut parts: BTreeMap<MessageId, Vec<&Subflow>> = BTreeMap::new();
    for subflow in subflows {
        parts.entry(subflow.message).or_default().push(subflow);
    }
    assert_eq!(parts.len(), posts.len());
    for post in posts {
        let parts = &parts[&post.message];
        assert_eq!(parts.iter().map(|subflow| subflow.bytes).sum::<u64>(), post.bytes);
        let numbers: Vec<u32> = parts.iter().map(|subflow| subflow.part).collect();
        assert_eq!(numbers, (0..parts.len() as u32).collect::<Vec<_>>());
        let sizes = || parts.iter().map(|subflow| subflow.bytes);
        assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
        assert!(sizes().min().unwrap() > 0);
        assert!(parts.iter().all(|subflow| subflow.dst == post.dst));
    }
}

fn between_switches(fabric: &Fabric, port: PortId) -> bool {
    let port = &fabric.ports()[port];
    matches!((port.owner, port.peer), (Node::Switch(_), Node::Switch(_)))
}

/// What a port carries under ideal spraying, and how far Ethereal may be from it.
#[derive(Default)]
struct Ideal {
    /// Payload, in units of 1/`lcm` bytes so that it is exact.
    payload: u64,
    /// Paths through the port of a source and leaf whose demand does not divide by its paths:
    /// each may differ from the mean by less than a byte.
    uneven_paths: u64,
}

/// Every byte of every demand, spread evenly over all paths of its pair. `lcm` is a multiple
/// of every number of paths.
fn sprayed(fabric: &Fabric, demands: &[Demand], lcm: u64) -> BTreeMap<PortId, Ideal> {
    let mut ports: BTreeMap<PortId, Ideal> = BTreeMap::new();
    for (src, demand) in demands.iter().enumerate() {
        let src = HostId(src as u32);
        for post in &demand.posts {
            let paths = fabric.path_set(src, post.dst);
            for index in 0..paths.len() {
                for port in fabric.trace(src, post.dst, paths.get(index)) {
                    ports.entry(port).or_default().payload +=
                        post.bytes * lcm / u64::from(paths.len());
                }
            }
        }
        for (leaf, (flows, _)) in &demand.leaves {
            let dst = fabric.first_host(*leaf);
            let paths = fabric.path_set(src, dst);
            if !flows.is_multiple_of(u64::from(paths.len())) {
                for index in 0..paths.len() {
                    for port in fabric.trace(src, dst, paths.get(index)) {
                        ports.entry(port).or_default().uneven_paths += 1;
                    }
                }
            }
        }
    }
    ports
}

trials! {
    #![cases(96)]

    /// The theorem: against ideal spraying, uplinks and downlinks, all sources together.
    fn loads_every_link_as_ideal_spraying(
        fabric in fabrics(), most in 1u32..40, sizes in 1u64..200_000, seed in any::<u64>(),
    ) {
        let hosts: Vec<HostId> = (0..fabric.hosts()).map(HostId).collect();
        let demands: Vec<Demand> =
            hosts.iter().map(|src| demand(&fabric, *src, most, sizes, seed)).collect();
        let mut got = BTreeMap::new();
        for (src, demand) in hosts.iter().zip(&demands) {
            let mut planner = Planner::new(&ethereal(), *src, seed, MTU);
            let subflows = plan(&mut planner, &demand.posts, Time::ZERO, &fabric);
            check_parts(&demand.posts, &subflows);
            load(&fabric, *src, &subflows, &mut got);
        }
        let clos = fabric.clos().expect("a Clos");
        let (within, across) =
            (clos.mids_per_pod() * clos.leaf_bundle.members, clos.cores().max(1));
        let lcm = u64::from(within) * u64::from(across);
        let ideal = sprayed(&fabric, &demands, lcm);
        prop_assert!(got.keys().all(|port| ideal.contains_key(port)));
        for (port, Ideal { payload, uneven_paths }) in ideal {
            let got = got.get(&port).copied().unwrap_or(0) * lcm;
            let slack = if between_switches(&fabric, port) { uneven_paths * lcm } else { 0 };
            prop_assert!(
                got == payload || got.abs_diff(payload) < slack,
                "{port:?}: {got} against {payload}, in 1/{lcm} bytes"
            );
        }
    }

    /// Per source and leaf: any two paths differ by one byte at most, where the bound that
    /// rotation must keep is r/g, and the number of extra flows is at most r (s - g) / g.
    fn is_exact_per_source_and_leaf(
        fabric in fabrics(), most in 1u32..80, sizes in 1u64..100_000, seed in any::<u64>(), host in any::<u32>(),
    ) {
        let src = HostId(host % fabric.hosts());
        let demand = demand(&fabric, src, most, sizes, seed);
        let mut planner = Planner::new(&ethereal(), src, seed, MTU);
        let subflows = plan(&mut planner, &demand.posts, Time::ZERO, &fabric);
        for (leaf, (flows, bytes)) in &demand.leaves {
            let dst = fabric.first_host(*leaf);
            let paths = fabric.path_set(src, dst);
            let s = u64::from(paths.len());
            let (r, g) = (flows % s, gcd(flows % s, s));
            let mut load: BTreeMap<PathId, u64> =
                (0..paths.len()).map(|index| (paths.get(index), 0)).collect();
            let mine: Vec<&Subflow> =
                subflows.iter().filter(|subflow| fabric.leaf_of(subflow.dst) == *leaf).collect();
            for subflow in &mine {
                *load.get_mut(&path_of(subflow)).unwrap() += subflow.bytes;
            }
            let (least, most) = (load.values().min().unwrap(), load.values().max().unwrap());
            prop_assert!(most - least <= (r / g).min(1), "{load:?}");
            let extra = mine.len() as u64 - flows;
            prop_assert!(extra <= r * (s - g) / g);
            if *bytes >= s / g {
                prop_assert_eq!(extra, r * (s - g) / g);
            }
        }
    }

    /// The same over the paths that are left when some are marked bad.
    fn balances_over_the_good_paths(
        spines in 2u32..17, bad in 1u32..16, flows in 1u32..60, bytes in 1u64..100_000, seed in any::<u64>(),
    ) {
        let fabric = Fabric::build(&Clos::leaf_spine(2, spines, 1, LINK)).unwrap();
        let (src, dst) = (HostId(0), HostId(1));
        let bad = bad.min(spines - 1);
        let mut planner = Planner::new(&ethereal(), src, seed, MTU);
        let paths = fabric.path_set(src, dst);
        for index in 0..bad {
            let route = Route::Pinned(paths.get(index));
            let flow = FlowInfo { dst, route, bytes, queue_pair: None, chunk: None };
            planner.on_loss(Time::ZERO, &flow, LossSignal::TimeOut, &fabric);
        }
        let posts: Vec<Post> =
            (0..flows).map(|id| Post { message: MessageId(id), dst, bytes, job: 0, ranks: (0, 0), tag: 0 }).collect();
        let subflows = plan(&mut planner, &posts, Time::us(1), &fabric);
        check_parts(&posts, &subflows);
        let mut load: BTreeMap<PathId, u64> =
            (bad..spines).map(|index| (paths.get(index), 0)).collect();
        for subflow in &subflows {
            *load.get_mut(&path_of(subflow)).expect("bad paths stay empty") += subflow.bytes;
        }
        let (least, most) = (load.values().min().unwrap(), load.values().max().unwrap());
        prop_assert!(most - least <= 1, "{load:?}");
    }

    /// Mixed sizes, which the theorem does not cover: every class of equal sizes is balanced
    /// by itself, and all together are.
    fn balances_every_size_by_itself(
        sizes in prop::collection::vec(prop_oneof![0u64..5, Just(1000), 1u64..50_000], 0..60),
        paths in 1u8..33, seed in any::<u64>(),
    ) {
        let (paths, shares) = split(&sizes, paths, Group::Size, seed);
        let spread = |shares: &[Share]| {
            let mut load: BTreeMap<PathId, u64> = paths.iter().map(|path| (*path, 0)).collect();
            for share in shares {
                *load.get_mut(&share.path).unwrap() += share.bytes;
            }
            load.values().max().unwrap() - load.values().min().unwrap()
        };
        prop_assert!(spread(&shares) <= 1);
        check_shares(&sizes, &shares);
        for bytes in &sizes {
            let class: Vec<Share> =
                shares.iter().filter(|share| sizes[share.message] == *bytes).copied().collect();
            prop_assert!(spread(&class) <= 1);
            let n = sizes.iter().filter(|other| *other == bytes).count();
            let (s, r) = (paths.len(), n % paths.len());
            let g = gcd(r as u64, s as u64) as usize;
            prop_assert!(class.len() - n <= r * (s - g) / g);
        }
    }

    /// As published, sizes do not matter to who is split: floor(n/s) whole messages a path, and
    /// r cut into s/g parts, r/g of them a path.
    fn cuts_only_the_rest_of_a_batch(
        sizes in prop::collection::vec(prop_oneof![0u64..5, Just(1000), 1u64..50_000], 0..90),
        paths in 1u8..33, seed in any::<u64>(),
    ) {
        let (paths, shares) = split(&sizes, paths, Group::Leaf, seed);
        check_shares(&sizes, &shares);
        let (n, s) = (sizes.len(), paths.len());
        let (r, g) = (n % s, gcd((n % s) as u64, s as u64) as usize);
        prop_assert!(shares.len() <= n + r * (s - g) / g);
        if sizes.iter().all(|bytes| *bytes >= (s / g) as u64) {
            prop_assert_eq!(shares.len(), n + r * (s - g) / g);
            for path in &paths {
                let here = shares.iter().filter(|share| share.path == *path).count();
                prop_assert_eq!(here, n / s + r / g);
            }
        }
    }

    /// In whole packets: no part is less, but for the end of a message, and paths have the same
    /// number of packets but for one.
    fn packets_stay_whole(n in 1usize..90, bytes in 1u64..40_000, paths in 1u8..33, seed in any::<u64>()) {
        const PACKET: u64 = 1_000;
        let sizes = vec![bytes; n];
        let (paths, shares) = split_in(PACKET, &sizes, paths, Group::Leaf, seed);
        let mut packets = vec![0u64; paths.len()];
        for message in 0..n {
            let parts: Vec<_> = shares.iter().filter(|share| share.message == message).collect();
            prop_assert_eq!(parts.iter().map(|share| share.bytes).sum::<u64>(), bytes);
            prop_assert!(parts.len() as u64 <= bytes.div_ceil(PACKET));
            let (_, whole) = parts.split_last().unwrap();
            prop_assert!(whole.iter().all(|share| share.bytes % PACKET == 0));
        }
        for share in &shares {
            let path = paths.iter().position(|path| *path == share.path).unwrap();
            packets[path] += share.bytes.div_ceil(PACKET);
        }
        let (least, most) = (packets.iter().min().unwrap(), packets.iter().max().unwrap());
        prop_assert!(most - least <= 1, "{packets:?}");
    }

    /// With one size in the batch, both groupings are the same.
    fn groupings_agree_on_equal_sizes(n in 0usize..90, bytes in 0u64..9_000, paths in 1u8..33, seed in any::<u64>()) {
        let sizes = vec![bytes; n];
        let leaf = split(&sizes, paths, Group::Leaf, seed);
        prop_assert_eq!(leaf, split(&sizes, paths, Group::Size, seed));
    }
}

fn split(sizes: &[u64], paths: u8, group: Group, seed: u64) -> (Vec<PathId>, Vec<Share>) {
    split_in(1, sizes, paths, group, seed)
}

/// In units of so many bytes.
fn split_in(
    unit: u64,
    sizes: &[u64],
    paths: u8,
    group: Group,
    seed: u64,
) -> (Vec<PathId>, Vec<Share>) {
    let paths: Vec<PathId> = (0..paths).map(|up| PathId::new(up, 0)).collect();
    let mut shares = Vec::new();
    let mut stream = Draw::new(seed, "test").stream(0);
    split_and_assign(sizes, &paths, group, unit, &mut stream, &mut shares);
    (paths, shares)
}

/// Every byte once, in order, in parts that differ by a byte at most and are empty only if the
/// message is.
fn check_shares(sizes: &[u64], shares: &[Share]) {
    for (message, bytes) in sizes.iter().enumerate() {
        let parts = || shares.iter().filter(|share| share.message == message);
        let part_sizes = || parts().map(|share| share.bytes);
        assert_eq!(part_sizes().sum::<u64>(), *bytes);
        let (least, most) = (part_sizes().min().unwrap(), part_sizes().max().unwrap());
        assert!(most - least <= 1 && (*bytes == 0 || least > 0));
        assert!(parts().map(|share| share.part).eq(0..parts().count() as u32));
    }
    assert!(shares.is_sorted_by_key(|share| (share.message, share.part)));
}

/// Slightly different sizes, whose number divides by the paths: as published none is cut; by
/// size each is, for every path.
#[test]
fn sixty_four_sizes_over_four_paths() {
    let sizes: Vec<u64> = (1_000_001..=1_000_064).collect();
    assert_eq!(split(&sizes, 4, Group::Leaf, 1).1.len(), 64);
    assert_eq!(split(&sizes, 4, Group::Size, 1).1.len(), 256);
    // Two more: each halved, one half a path.
    let sizes: Vec<u64> = (1_000_001..=1_000_066).collect();
    assert_eq!(split(&sizes, 4, Group::Leaf, 1).1.len(), 68);
}

/// By hand: 6 flows of 10 bytes over 4 paths. 4 stay whole; r = 2, g = 2: each of the other
/// two is halved, one half a path.
#[test]
fn six_flows_over_four_paths() {
    let (paths, shares) = split(&[10; 6], 4, Group::Leaf, 1);
    let mut sizes: Vec<u64> = shares.iter().map(|share| share.bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 5, 5, 5, 10, 10, 10, 10]);
    for path in paths {
        let load: u64 = shares.iter().filter(|s| s.path == path).map(|s| s.bytes).sum();
        assert_eq!(load, 15);
    }
}

/// By hand: 5 flows of 7 bytes over 4 paths. r = 1, g = 1: one flow in 4 parts of 2, 2, 2, 1.
#[test]
fn five_flows_over_four_paths() {
    let (_, shares) = split(&[7; 5], 4, Group::Leaf, 1);
    let mut sizes: Vec<u64> = shares.iter().map(|share| share.bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 2, 2, 7, 7, 7, 7]);
}
