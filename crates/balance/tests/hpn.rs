//! Least outstanding bytes: which connection a message is posted to, and where connections lie.

use std::collections::{BTreeMap, BTreeSet};
use weft_balance::Planner;
use weft_balance::plan::{FlowInfo, LossSignal, Post, Route, Subflow};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Bundle, Clos, Fabric, Link, PathId};
use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, PortId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

fn planner(options: &[(&str, &str)], host: u32, seed: u64) -> Planner {
    let scheme = SchemeConfig::read("hpn", options).unwrap();
    let start_jitter = Time::ZERO;
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 };
    Planner::new(&config, HostId(host), seed, 1_000)
}
/// 4 leaves, 8 spines, 4 hosts a leaf.
fn fabric() -> Fabric {
    Fabric::build(&Clos::leaf_spine(4, 8, 4, LINK)).unwrap()
}
fn post(planner: &mut Planner, dst: u32, bytes: u64, fabric: &Fabric) -> Route {
    let mut out = Vec::new();
    let post =
        Post { message: MessageId(3), dst: HostId(dst), bytes, job: 0, ranks: (0, 0), tag: 8 };
    planner.post(Time::ZERO, post, fabric, &mut out);
    let [Subflow { part: 0, tag: 8, route, .. }] = out[..] else { panic!("{out:?}") };
    assert_eq!((out[0].bytes, out[0].dst, out[0].message), (bytes, post.dst, post.message));
    assert_eq!(planner.deadline(), None);
    route
}
/// The ways of all connections to `dst`: one large message each.
fn connections(planner: &mut Planner, dst: u32, count: usize, fabric: &Fabric) -> Vec<Route> {
    let routes: Vec<Route> = (0..count).map(|_| post(planner, dst, 1 << 30, fabric)).collect();
    routes.iter().for_each(|route| sent(planner, &to(dst, *route, 1 << 30), fabric));
    routes
}
/// A flow is acknowledged to the end, and nothing was held back for that.
fn sent(planner: &mut Planner, flow: &FlowInfo, fabric: &Fabric) {
    let mut out = Vec::new();
    planner.sent(Time::ZERO, flow, fabric, &mut out);
    assert_eq!(out, []);
}
fn to(dst: u32, route: Route, bytes: u64) -> FlowInfo {
    FlowInfo { dst: HostId(dst), route, bytes, queue_pair: None, chunk: None }
}
fn path(route: Route) -> PathId {
    let Route::Pinned(path) = route else { panic!("{route:?}") };
    path
}
fn port(route: Route) -> u16 {
    let Route::Hashed(port) = route else { panic!("{route:?}") };
    port
}

#[test]
fn messages_go_where_the_least_is_outstanding() {
    let fabric = fabric();
    for paths in ["pinned", "hashed"] {
        let mut planner = planner(&[("connections", "3"), ("paths", paths)], 0, 1);
        let [a, b, c] = connections(&mut planner, 5, 3, &fabric)[..] else { unreachable!() };
        assert!(a != b && b != c && c != a);
        let mut next = |bytes| post(&mut planner, 5, bytes, &fabric);
        // a 10, b 4, c 5; b 8, c 9; then b, for being the least: 15; c 11, a.
        let routes = [10, 4, 5, 4, 4, 7, 2, 1].map(&mut next);
        assert_eq!(routes, [a, b, c, b, c, b, c, a]);
        // What is acknowledged to the end counts no more: a 11, b 15, c 2.
        sent(&mut planner, &to(5, c, 5), &fabric);
        sent(&mut planner, &to(5, c, 4), &fabric);
        assert_eq!([1, 8, 1].map(|bytes| post(&mut planner, 5, bytes, &fabric)), [c, c, a]);
    }
}

#[test]
fn peers_know_nothing_of_each_other() {
    let fabric = fabric();
    let mut planner = planner(&[], 0, 1);
    let one = connections(&mut planner, 5, 4, &fabric);
    let other = connections(&mut planner, 6, 4, &fabric);
    for turn in 0..4 {
        assert_eq!(post(&mut planner, 5, 1_000, &fabric), one[turn]);
        assert_eq!(post(&mut planner, 6, 10, &fabric), other[turn]);
    }
    // Nothing is outstanding: as if it were new.
    one.iter().for_each(|route| sent(&mut planner, &to(5, *route, 1_000), &fabric));
    assert_eq!(post(&mut planner, 5, 10, &fabric), one[0]);
}

#[test]
fn empty_messages_pass() {
    let fabric = fabric();
    let mut planner = planner(&[], 0, 1);
    let route = post(&mut planner, 5, 0, &fabric);
    assert_eq!(post(&mut planner, 5, 0, &fabric), route);
    sent(&mut planner, &to(5, route, 0), &fabric);
    sent(&mut planner, &to(5, route, 0), &fabric);
}

#[test]
fn a_time_out_leaves_a_pinned_connection() {
    let fabric = fabric();
    let mut planner = planner(&[("connections", "3")], 0, 1);
    let [a, b, c] = connections(&mut planner, 5, 3, &fabric)[..] else { unreachable!() };
    let trouble = |planner: &mut Planner, route, signal| {
        planner.on_loss(Time::ZERO, &to(5, route, 100), signal, &fabric)
    };
    // 100 bytes each, and 40 more on the first.
    assert_eq!(
        [100, 100, 100, 40].map(|bytes| post(&mut planner, 5, bytes, &fabric)),
        [a, b, c, a]
    );
    assert_eq!(trouble(&mut planner, a, LossSignal::Nack), None);
    assert_eq!(trouble(&mut planner, a, LossSignal::TimeOut), Some(b));
    // 140, of which 100 have left; 200; 100.
    assert_eq!([30, 20].map(|bytes| post(&mut planner, 5, bytes, &fabric)), [c, c]);
    // 140, 100, 0.
    sent(&mut planner, &to(5, b, 100), &fabric);
    for bytes in [100, 30, 20] {
        sent(&mut planner, &to(5, c, bytes), &fabric);
    }
    assert_eq!([110, 10, 30].map(|bytes| post(&mut planner, 5, bytes, &fabric)), [c, b, b]);
    // 140, 140, 110. Something gets through on the first after all: 0.
    sent(&mut planner, &to(5, a, 40), &fabric);
    assert_eq!([100, 10].map(|bytes| post(&mut planner, 5, bytes, &fabric)), [a, a]);
}

#[test]
fn nobody_leaves_without_another_connection() {
    let fabric = fabric();
    for options in [("paths", "hashed"), ("connections", "1")] {
        let mut planner = planner(&[options], 0, 1);
        let flow = to(5, post(&mut planner, 5, 10, &fabric), 10);
        assert_eq!(planner.on_loss(Time::ZERO, &flow, LossSignal::TimeOut, &fabric), None);
        // Nor does it count twice.
        sent(&mut planner, &flow, &fabric);
        assert_eq!(post(&mut planner, 5, 10, &fabric), flow.route);
    }
}

/// The ports that a path crosses beside the hosts' own links.
fn between(fabric: &Fabric, src: u32, dst: u32, path: PathId) -> BTreeSet<PortId> {
    let ports = fabric.trace(HostId(src), HostId(dst), path);
    ports[1..ports.len() - 1].iter().copied().collect()
}
fn are_disjoint(fabric: &Fabric, dst: u32, routes: &[Route]) -> bool {
    let all: Vec<_> = routes.iter().map(|route| between(fabric, 0, dst, path(*route))).collect();
    let links: BTreeSet<PortId> = all.iter().flatten().copied().collect();
    links.len() == all.iter().map(BTreeSet::len).sum::<usize>()
}

#[test]
fn pinned_connections_are_as_disjoint_as_can_be() {
    let mut bundled = Clos::leaf_spine(2, 3, 2, LINK);
    bundled.leaf_bundle = Bundle { link: LINK, members: 2 };
    for seed in 0..20 {
        // Eight spines; six links in bundles; in a fat-tree of 8 ports four aggregation switches
        // with four cores each.
        for (clos, dst, most) in [
            (Clos::leaf_spine(4, 8, 4, LINK), 5, 8),
            (bundled, 3, 6),
            (Clos::fat_tree(8, LINK), 100, 4),
            (Clos::fat_tree(8, LINK), 5, 4),
        ] {
            let fabric = Fabric::build(&clos).unwrap();
            for count in 1..=most {
                let mut planner = planner(&[("connections", &count.to_string())], 0, seed);
                let routes = connections(&mut planner, dst, count, &fabric);
                assert!(are_disjoint(&fabric, dst, &routes), "{clos:?} {routes:?}");
            }
        }
    }
    // Sixteen connections to another pod: a core each; sixty-four are no more.
    let fabric = Fabric::build(&Clos::fat_tree(8, LINK)).unwrap();
    let mut planner = planner(&[("connections", "64")], 0, 1);
    let routes = connections(&mut planner, 100, 17, &fabric);
    assert_eq!(routes[..16].iter().map(|route| path(*route)).collect::<BTreeSet<_>>().len(), 16);
    assert_eq!(routes[16], routes[0]);
    // A neighbour in the rack: one.
    assert_eq!(connections(&mut planner, 1, 2, &fabric), [Route::Pinned(PathId::new(0, 0)); 2]);
}

#[test]
fn pairs_of_hosts_begin_on_different_paths() {
    let fabric = fabric();
    let first: BTreeSet<PathId> = (0..4)
        .flat_map(|host| (4..16).map(move |dst| (host, dst)))
        .map(|(host, dst)| path(post(&mut planner(&[], host, 1), dst, 1, &fabric)))
        .collect();
    assert_eq!(first.len(), 8);
}

#[test]
fn hashed_connections_differ_in_their_ports() {
    let fabric = fabric();
    let mut planner = planner(&[("paths", "hashed"), ("connections", "256")], 0, 3);
    let routes = connections(&mut planner, 1, 257, &fabric);
    let ports: BTreeSet<u16> = routes.iter().map(|route| port(*route)).collect();
    assert_eq!(ports.len(), 256);
    assert_eq!(routes[256], routes[0]);
}

#[test]
fn only_pinned_paths_need_ids() {
    let needs = |options: &[_]| SchemeConfig::read("hpn", options).unwrap().needs_path_ids();
    assert!(needs(&[]) && needs(&[("paths", "pinned")]) && !needs(&[("paths", "hashed")]));
}

trials! {
    /// Against counters kept by hand: every message to the least, for any order of posts and
    /// completions, and connections to one peer never differ by more than the largest message.
    fn connections_are_the_least_loaded(
        steps in prop::collection::vec((any::<bool>(), 0u64..5_000, any::<usize>()), 1..100),
        count in 1usize..9, seed in any::<u64>(),
    ) {
        let fabric = fabric();
        let mut planner = planner(&[("connections", &count.to_string())], 0, seed);
        let routes = connections(&mut planner, 9, count, &fabric);
        let mut outstanding: BTreeMap<usize, u64> = (0..count).map(|it| (it, 0)).collect();
        let mut open: Vec<(usize, u64)> = Vec::new();
        for (completes, bytes, which) in steps {
            if completes && !open.is_empty() {
                let (connection, bytes) = open.swap_remove(which % open.len());
                *outstanding.get_mut(&connection).unwrap() -= bytes;
                sent(&mut planner, &to(9, routes[connection], bytes), &fabric);
                continue;
            }
            let route = post(&mut planner, 9, bytes, &fabric);
            let connection = routes.iter().position(|known| *known == route).unwrap();
            let least = outstanding.values().min().unwrap();
            prop_assert_eq!(outstanding[&connection], *least);
            *outstanding.get_mut(&connection).unwrap() += bytes;
            open.push((connection, bytes));
        }
    }
}
