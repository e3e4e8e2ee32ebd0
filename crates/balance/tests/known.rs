//! What hosts know of dead links: no planner that pins paths takes one, unless there is no other.

use weft_balance::Planner;
use weft_balance::known::Known;
use weft_balance::plan::{FlowInfo, LossSignal, Post, Route, Subflow};
use weft_balance::scheme::{BalanceConfig, SchemeConfig, dnlb};
use weft_fabric::{Clos, Fabric, Link, PathId};
use weft_units::{HostId, MessageId, PortId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
/// Who has host 0 choose among paths.
const PINNING: [&str; 4] = ["ethereal", "ethereal-weighted", "hpn", "twill"];
const PLANES: u32 = 2;

/// 3 leaves, 4 spines, 2 hosts a leaf.
fn fabric() -> Fabric {
    Fabric::build(&Clos::leaf_spine(3, 4, 2, LINK)).unwrap()
}
fn scheme(name: &str) -> SchemeConfig {
    SchemeConfig::read(name, &[]).unwrap()
}
fn planner(scheme: &SchemeConfig) -> Planner {
    let (scheme, start_jitter) = (scheme.clone(), Time::ZERO);
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 << 20 };
    Planner::new(&config, HostId(0), 1, 1_000)
}
fn port(fabric: &Fabric, name: &str) -> PortId {
    fabric.ports().ids().find(|port| fabric.port_name(*port) == name).unwrap()
}
/// Tells `planner` that these links are dead, by the ports that feed them.
fn tell(planner: &mut Planner, scheme: &SchemeConfig, dead: &[&str], fabric: &Fabric) {
    let dead: Vec<PortId> = dead.iter().map(|name| port(fabric, name)).collect();
    let rate = |port: PortId| match dead.contains(&port) {
        true => 0,
        false => fabric.ports()[port].rate.as_bps(),
    };
    Known::new(fabric, scheme, rate).tell(Time::ZERO, planner, fabric);
}
/// Four messages to each host of another leaf, as far as they leave at once.
fn sent(planner: &mut Planner, fabric: &Fabric) -> Vec<Subflow> {
    let mut out = Vec::new();
    for number in 0..16 {
        let (message, dst) = (MessageId(number), HostId(2 + number % 4));
        let post = Post { message, dst, bytes: 1 << 20, job: 0, ranks: (0, 0), tag: number };
        planner.post(Time::ZERO, post, fabric, &mut out);
    }
    planner.flush(Time::us(1), fabric, &mut out);
    out
}
fn pinned(route: Route) -> PathId {
    let Route::Pinned(path) = route else { panic!("{route:?} is not pinned") };
    path
}
/// Whether data that takes `route` to `dst`, or answers to it, cross the link behind `port`.
fn crosses(route: Route, dst: HostId, port: PortId, fabric: &Fabric) -> bool {
    let ports = fabric.trace(HostId(0), dst, pinned(route));
    ports.iter().any(|one| [*one, fabric.ports()[*one].reverse].contains(&port))
}
/// How many of these take the link behind `port`.
fn on(subflows: &[Subflow], name: &str, fabric: &Fabric) -> usize {
    let port = port(fabric, name);
    subflows.iter().filter(|one| crosses(one.route, one.dst, port, fabric)).count()
}

#[test]
fn what_is_dead_is_not_taken_and_what_is_back_is() {
    let fabric = fabric();
    // An uplink of its own, one of another leaf, and one that only answers would cross.
    for link in ["leaf-0 -> spine-1", "spine-2 -> leaf-1", "spine-1 -> leaf-0"] {
        for name in PINNING {
            let scheme = scheme(name);
            let mut host = planner(&scheme);
            assert!(on(&sent(&mut host, &fabric), link, &fabric) > 0, "{name}: {link}");
            let mut host = planner(&scheme);
            tell(&mut host, &scheme, &[link], &fabric);
            let subflows = sent(&mut host, &fabric);
            assert!(!subflows.is_empty() && on(&subflows, link, &fabric) == 0, "{name}: {link}");
            tell(&mut host, &scheme, &[], &fabric);
            let mut out = Vec::new();
            for one in &subflows {
                host.sent(Time::us(9), &FlowInfo::from(one), &fabric, &mut out);
            }
            out.extend(sent(&mut host, &fabric));
            assert!(on(&out, link, &fabric) > 0, "{name}: {link} is back");
        }
    }
}

#[test]
fn who_times_out_does_not_move_to_a_dead_path() {
    let fabric = fabric();
    let dead = ["leaf-0 -> spine-1", "leaf-0 -> spine-2", "leaf-0 -> spine-3"];
    for name in PINNING {
        for count in 1..=3 {
            let scheme = scheme(name);
            let mut host = planner(&scheme);
            tell(&mut host, &scheme, &dead[..count], &fabric);
            for one in sent(&mut host, &fabric) {
                let flow = FlowInfo::from(&one);
                let signal = LossSignal::TimeOut;
                let route = host.on_loss(Time::us(500), &flow, signal, &fabric);
                let links = dead[..count].iter().map(|name| port(&fabric, name));
                let is_dead = |route| links.clone().any(|it| crosses(route, one.dst, it, &fabric));
                assert!(!is_dead(one.route), "{name}: {count} links");
                assert!(!route.is_some_and(is_dead), "{name}: {count} links");
            }
        }
    }
}

#[test]
fn where_all_is_dead_something_is_tried() {
    let fabric = fabric();
    let all: Vec<String> = (0..4).map(|spine| format!("leaf-0 -> spine-{spine}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for name in PINNING {
        let scheme = scheme(name);
        let mut host = planner(&scheme);
        tell(&mut host, &scheme, &all, &fabric);
        let subflows = sent(&mut host, &fabric);
        assert!(all.iter().all(|link| on(&subflows, link, &fabric) > 0), "{name}");
    }
}

/// A chunk has a port of its NIC, and so a plane: another plane may have what is dead in one.
#[test]
fn a_link_is_dead_in_its_plane() {
    let fabric = fabric().in_planes(PLANES).unwrap();
    let (scheme, link) = (scheme("twill"), "plane-1-leaf-0 -> plane-1-spine-1");
    let mut host = planner(&scheme);
    tell(&mut host, &scheme, &[link], &fabric);
    let subflows = sent(&mut host, &fabric);
    let same = PortId(port(&fabric, link).0 - fabric.ports_per_plane());
    let in_plane = |plane: u8| {
        let crossing = subflows.iter().filter(|one| crosses(one.route, one.dst, same, &fabric));
        let port = |one: &Subflow| one.carrier.chunk().and_then(|chunk| chunk.port);
        crossing.filter(|one| port(one) == Some(plane)).count()
    };
    assert!(in_plane(0) > 0 && in_plane(1) == 0, "{} and {}", in_plane(0), in_plane(1));
}

/// Leaves have rules for the ports, and know their own links only: hosts beside such rules are told, those of
/// a simulation, whose leaves hash what has lost its way, are not.
#[test]
fn ports_of_uplinks_that_lead_nowhere_are_not_given_beside_rules() {
    let fabric = fabric();
    let scheme = SchemeConfig::read("dnlb-8", &[]).unwrap();
    let ports = |known: &Known| {
        let mut host = planner(&scheme);
        known.tell(Time::ZERO, &mut host, &fabric);
        let out = sent(&mut host, &fabric).into_iter();
        out.map(|one| match one.route {
            Route::Hashed(port) => (one.dst.0, port),
            Route::Pinned(path) => panic!("{path:?} is pinned"),
        })
        .collect::<Vec<_>>()
    };
    let usual = ports(&Known::default());
    for dead in [&["spine-1 -> leaf-1"][..], &["spine-1 -> leaf-1", "leaf-1 -> spine-3"]] {
        let dead: Vec<PortId> = dead.iter().map(|name| port(&fabric, name)).collect();
        let rate = |port: PortId| match dead.contains(&port) {
            true => 0,
            false => fabric.ports()[port].rate.as_bps(),
        };
        assert_eq!(ports(&Known::new(&fabric, &scheme, rate)), usual);
        let told = ports(&Known::beside_rules(&fabric, &scheme, rate));
        let left = 4 - dead.len();
        let mut all = Vec::new();
        for ((dst, port), (_, before)) in told.iter().zip(&usual) {
            // Hosts 2 and 3 are below leaf 1.
            let near = *dst < 4;
            let uplink = dnlb::segment(*port, 4).expect("a segment has it");
            assert!(!near || uplink != 1 && (left == 3 || uplink != 3), "{dst}: {port}");
            assert!(near || port == before, "nothing is amiss there");
            all.push((*dst, *port));
        }
        all.sort_unstable();
        all.dedup();
        let mut before = usual.clone();
        before.sort_unstable();
        before.dedup();
        assert_eq!(all.len(), before.len(), "queue pairs of a connection have a port each");
        // Those that are left have equal shares, but for one.
        let counts = (0..4).map(|uplink| {
            let on =
                |&&(dst, port): &&(u32, u16)| dst == 2 && dnlb::segment(port, 4) == Some(uplink);
            all.iter().filter(on).count()
        });
        let used: Vec<usize> = counts.filter(|count| *count > 0).collect();
        let (least, most) = (used.iter().min(), used.iter().max());
        assert_eq!((used.len(), used.iter().sum()), (left, 8usize));
        assert!(most.unwrap() - least.unwrap() <= 1, "{used:?}");
    }
}
