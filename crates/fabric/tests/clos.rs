//! Random fabrics of two and three tiers hold the invariants of the crate.

use std::collections::BTreeSet;
use weft_fabric::{Bundle, Clos, Fabric, Link, Node, PathId, Tiers};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

fn link(gbps: u64, ns: u64) -> Link {
    Link { rate: Rate::gbps(gbps), delay: Time::ns(ns) }
}

/// Two tiers with bundles of up to `members`.
fn two_tiers(members: u32) -> impl Strategy<Value = Clos> {
    (1u32..6, 1u32..6, 1u32..5, 1..=members, 1u64..4).prop_map(
        |(leaves, spines, hosts, members, rate)| {
            let mut clos = Clos::leaf_spine(leaves, spines, hosts, LINK);
            clos.leaf_bundle = Bundle { link: link(100 * rate, 500), members };
            clos.switch_latency = Time::ns(300);
            clos.nic_latency = Time::ns(70);
            clos
        },
    )
}

/// Three tiers with bundles of up to `members` at both levels.
fn three_tiers(members: u32) -> impl Strategy<Value = Clos> {
    ((1u32..5, 1u32..4, 1u32..4, 1u32..4), 1u32..4, 1..=members, 1..=members).prop_map(
        |((pods, leaves_per_pod, aggs_per_pod, per_plane), hosts, leaf_members, agg_members)| {
            let cores = aggs_per_pod * per_plane;
            let tiers = Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores };
            let mut clos = Clos::uniform(tiers, hosts, LINK);
            clos.leaf_bundle = Bundle { link: link(200, 700), members: leaf_members };
            clos.agg_bundle = Bundle { link: link(400, 900), members: agg_members };
            clos.switch_latency = Time::ns(300);
            clos
        },
    )
}

fn any_clos() -> impl Strategy<Value = Clos> {
    prop_oneof![two_tiers(4), three_tiers(3)]
}
/// Those whose paths all have ids.
fn with_path_ids() -> impl Strategy<Value = Clos> {
    prop_oneof![two_tiers(4), three_tiers(1)]
}
fn build(clos: &Clos) -> Fabric {
    Fabric::build(clos).unwrap()
}
fn hosts(fabric: &Fabric) -> impl Iterator<Item = HostId> + use<> {
    (0..fabric.hosts()).map(HostId)
}
fn group(fabric: &Fabric, switch: SwitchId, dst: HostId) -> impl Iterator<Item = PortId> + use<> {
    let group = fabric.next_hops(switch, dst);
    group.ids()
}
/// The longest way that random choices among the next hops can take to `dst`, and the
/// shortest, in links.
fn distances(fabric: &Fabric, from: Node, dst: HostId) -> (u32, u32) {
    match from {
        Node::Host(host) => {
            assert_eq!(host, dst, "delivered to the wrong host");
            (0, 0)
        }
        Node::Switch(switch) => group(fabric, switch, dst)
            .map(|port| {
                assert_eq!(fabric.ports()[port].owner, from, "next hops belong to the switch");
                distances(fabric, fabric.ports()[port].peer, dst)
            })
            .map(|(longest, shortest)| (longest + 1, shortest + 1))
            .reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
            .expect("every switch has a next hop"),
    }
}

trials! {
    #![cases(64)]

    fn every_port_and_its_reverse_are_one_link(clos in any_clos()) {
        let fabric = build(&clos);
        for (id, port) in fabric.ports().enumerate() {
            let reverse = &fabric.ports()[port.reverse];
            prop_assert_ne!(port.reverse, id);
            prop_assert_eq!(reverse.reverse, id);
            prop_assert_eq!((reverse.owner, reverse.peer), (port.peer, port.owner));
            prop_assert_eq!(reverse.rate, port.rate);
            let latency = |peer| match peer {
                Node::Host(_) => clos.nic_latency,
                Node::Switch(_) => clos.switch_latency,
            };
            prop_assert_eq!(
                port.delay.0 - latency(port.peer).0, reverse.delay.0 - latency(reverse.peer).0
            );
        }
    }

    fn ports_stand_under_their_owners(clos in any_clos()) {
        let fabric = build(&clos);
        let mut owners = BTreeSet::new();
        for host in hosts(&fabric) {
            prop_assert_eq!(fabric.ports()[fabric.nic(host)].owner, Node::Host(host));
            owners.insert(fabric.nic(host));
        }
        for switch in (0..fabric.switches()).map(SwitchId) {
            let ports = fabric.ports_of(switch);
            for port in ports.ids() {
                prop_assert_eq!(fabric.ports()[port].owner, Node::Switch(switch));
                prop_assert!(owners.insert(port));
            }
        }
        prop_assert_eq!(owners.len(), fabric.ports().len());
    }

    /// Whatever the choices, a packet arrives after exactly the links of a shortest path.
    fn next_hops_lead_to_the_host(clos in any_clos(), src in any::<u32>(), dst in any::<u32>()) {
        let fabric = build(&clos);
        let (src, dst) = (HostId(src % fabric.hosts()), HostId(dst % fabric.hosts()));
        let leaf = fabric.ports()[fabric.nic(src)].peer;
        let hops = if fabric.leaf_of(src) == fabric.leaf_of(dst) {
            2
        } else if src.0 / (clos.leaves_per_pod() * clos.hosts_per_leaf)
            == dst.0 / (clos.leaves_per_pod() * clos.hosts_per_leaf)
        {
            4
        } else {
            6
        };
        prop_assert_eq!(fabric.hops(src, dst), hops);
        prop_assert_eq!(distances(&fabric, leaf, dst), (hops - 1, hops - 1));
        prop_assert_eq!(fabric.sample_path(src, dst).len() as u32, hops);
        // From any switch, wherever a re-route may start.
        for switch in (0..fabric.switches()).map(SwitchId) {
            let (longest, shortest) = distances(&fabric, Node::Switch(switch), dst);
            prop_assert_eq!(longest, shortest);
            prop_assert!(longest <= 5);
        }
    }

    /// All ids of a path set name different paths. Within a pod they share no link between
    /// switches; across pods each has a core of its own.
    /// Down to the hosts below, up to all others.
    fn hosts_below_are_those_that_packets_go_down_to(clos in any_clos()) {
        let fabric = build(&clos);
        for switch in (0..fabric.switches()).map(SwitchId) {
            let below = fabric.hosts_below(switch);
            for dst in hosts(&fabric) {
                let hop = fabric.next_hops(switch, dst).first;
                let is_down = match fabric.ports()[hop].peer {
                    Node::Host(host) => host == dst,
                    Node::Switch(next) => fabric.tier(next) < fabric.tier(switch),
                };
                prop_assert_eq!(below.contains(&dst.0), is_down);
            }
        }
    }

    fn paths_of_a_set_are_disjoint(clos in with_path_ids(), src in any::<u32>(), dst in any::<u32>()) {
        let fabric = build(&clos);
        prop_assert!(fabric.check_path_ids().is_ok());
        let (src, dst) = (HostId(src % fabric.hosts()), HostId(dst % fabric.hosts()));
        let paths = fabric.path_set(src, dst);
        prop_assert!(!paths.is_empty());
        let expected = match fabric.hops(src, dst) {
            2 => 1,
            4 => clos.mids_per_pod() * clos.leaf_bundle.members,
            _ => clos.cores(),
        };
        prop_assert_eq!(paths.len(), expected);
        let (mut inner, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for path in (0..paths.len()).map(|index| paths.get(index)) {
            prop_assert!(ids.insert(path));
            let ports = fabric.trace(src, dst, path);
            prop_assert_eq!(ports.len() as u32, fabric.hops(src, dst));
            prop_assert_eq!(fabric.ports()[ports[ports.len() - 1]].peer, Node::Host(dst));
            for pair in ports.windows(2) {
                prop_assert_eq!(fabric.ports()[pair[0]].peer, fabric.ports()[pair[1]].owner);
            }
            // Across pods the leaf's links are shared by the cores of one plane.
            let own = if ports.len() == 6 { 2..4 } else { 1..ports.len() - 1 };
            for port in &ports[own] {
                prop_assert!(inner.insert(*port), "{path:?} shares {port:?}");
            }
        }
    }

    /// The receiver flips the id that arrives, and its acknowledgement retraces the packet.
    fn acknowledgements_retrace_the_path(clos in with_path_ids(), src in any::<u32>(), dst in any::<u32>()) {
        let fabric = build(&clos);
        let (src, dst) = (HostId(src % fabric.hosts()), HostId(dst % fabric.hosts()));
        let paths = fabric.path_set(src, dst);
        for path in (0..paths.len()).map(|index| paths.get(index)) {
            let forward = fabric.trace(src, dst, path);
            let switches = forward.len() - 1;
            prop_assert!(switches % 2 == 1 || src == dst);
            let arrived = (0..switches).fold(path, |path, _| path.swapped());
            let back = fabric.trace(dst, src, fabric.path_as_sent(arrived));
            let mut expected: Vec<PortId> =
                forward.iter().map(|port| fabric.ports()[*port].reverse).collect();
            expected.reverse();
            prop_assert_eq!(back, expected, "{:?}", path);
        }
    }

    fn names_are_unique_and_found_again(clos in any_clos()) {
        let fabric = build(&clos);
        let mut names = BTreeSet::new();
        for switch in (0..fabric.switches()).map(SwitchId) {
            let name = fabric.name(Node::Switch(switch));
            prop_assert_eq!(fabric.switch_named(&name), Some(switch));
            prop_assert!(names.insert(name));
        }
        for host in hosts(&fabric) {
            prop_assert!(names.insert(fabric.name(Node::Host(host))));
        }
        prop_assert_eq!(fabric.switch_named("leaf-99999"), None);
        prop_assert_eq!(fabric.switch_named("host-0"), None);
    }

    /// Every bundle is there with all its members, in both directions.
    fn links_are_as_many_as_the_description_says(clos in any_clos()) {
        let fabric = build(&clos);
        let leaves = fabric.leaves();
        let mids = clos.pods() * clos.mids_per_pod();
        let leaf_links = leaves * clos.mids_per_pod() * clos.leaf_bundle.members;
        let core_links = mids * clos.cores_per_plane() * clos.agg_bundle.members;
        prop_assert_eq!(fabric.switches(), leaves + mids + clos.cores());
        prop_assert_eq!(
            fabric.ports().len() as u32, 2 * (fabric.hosts() + leaf_links + core_links)
        );
        let between = |lower: u8, upper: u8, rate: Rate| {
            let tier = |node| match node {
                Node::Host(_) => None,
                Node::Switch(switch) => Some(fabric.tier(switch)),
            };
            fabric
                .ports()
                .iter()
                .filter(|port| (tier(port.owner), tier(port.peer)) == (Some(lower), Some(upper)))
                .inspect(|port| assert_eq!(port.rate, rate))
                .count() as u32
        };
        prop_assert_eq!(between(0, 1, clos.leaf_bundle.link.rate), leaf_links);
        prop_assert_eq!(between(1, 2, clos.agg_bundle.link.rate), core_links);
    }

    fn path_ids_swap_and_flip(first in any::<u8>(), second in any::<u8>()) {
        let path = PathId::new(first, second);
        prop_assert_eq!((path.first(), path.second()), (first, second));
        prop_assert_eq!(path.swapped(), PathId::new(second, first));
        prop_assert_eq!(path.swapped().swapped(), path);
    }
}
