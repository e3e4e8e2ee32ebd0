//! Networks routed by tables: a Clos written as a wiring against the same by arithmetic, random networks
//! against a search of all paths, and dragonflies and tori against their closed forms.

use crate::common::{LINK, any_clos};
use std::collections::BTreeSet;
use weft_fabric::topology::{Dragonfly, Group, Torus};
use weft_fabric::{
    Cable, Detours, Fabric, Failure, FailureKind, Failures, Link, LinkChoice, Node, PathId, Wiring,
};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

fn wiring(hosts: Vec<u32>, switches: u32, cables: Vec<Cable>) -> Wiring {
    Wiring {
        hosts,
        homes: Vec::new(),
        host_link: LINK,
        cables,
        names: (0..switches).map(|id| format!("switch-{id}")).collect(),
        groups: vec![0; switches as usize],
        grid: None,
        switch_latency: Time::ZERO,
        nic_latency: Time::ZERO,
    }
}

fn cable(a: u32, b: u32) -> Cable {
    Cable { ends: [a, b], link: LINK, cost: 1, dimension: 0 }
}

/// All switches that a way by next hops leads over, one way after the other.
fn ways(fabric: &Fabric, switch: SwitchId, dst: HostId) -> Vec<Vec<PortId>> {
    let mut all = Vec::new();
    for port in fabric.equal_hops(switch, dst) {
        match fabric.ports()[port].peer {
            Node::Host(host) => {
                assert_eq!(host, dst);
                all.push(vec![port]);
            }
            Node::Switch(next) => all.extend(ways(fabric, next, dst).into_iter().map(|mut way| {
                way.insert(0, port);
                way
            })),
        }
    }
    all
}

/// The length of the shortest way between any two switches without the links of `dead` ports (Floyd and Warshall).
fn lengths(fabric: &Fabric, cables: &[Cable], dead: &[PortId]) -> Vec<Vec<u32>> {
    const FAR: u32 = u32::MAX / 4;
    let count = fabric.switches() as usize;
    let mut lengths = vec![vec![FAR; count]; count];
    (0..count).for_each(|id| lengths[id][id] = 0);
    for id in fabric.ports().ids().filter(|id| !dead.contains(id)) {
        let port = &fabric.ports()[id];
        if let (Node::Switch(a), Node::Switch(b)) = (port.owner, port.peer) {
            let cost = |one: &&Cable| BTreeSet::from(one.ends) == BTreeSet::from([a.0, b.0]);
            let cost = cables.iter().find(cost).expect("it is a cable").cost;
            let known = &mut lengths[a.0 as usize][b.0 as usize];
            *known = cost.min(*known);
        }
    }
    for over in 0..count {
        for from in 0..count {
            for to in 0..count {
                let way = lengths[from][over] + lengths[over][to];
                lengths[from][to] = lengths[from][to].min(way);
            }
        }
    }
    lengths
}

/// A network in which every switch is linked to one before it, and some more to each other.
fn any_network() -> impl Strategy<Value = Wiring> {
    let sizes = (1u32..4, 2u32..9);
    (
        sizes,
        prop::collection::vec(any::<u32>(), 8),
        prop::collection::vec((any::<u32>(), any::<u32>(), 1u32..3), 0..10),
    )
        .prop_map(|((leaves, switches), parents, more)| {
            let parents = (1..switches).zip(parents).map(|(id, parent)| cable(parent % id, id));
            let more = more.into_iter().map(|(a, b, cost)| (a % switches, b % switches, cost));
            let more = more.filter(|(a, b, _)| a < b);
            let mut cables: Vec<Cable> = parents.collect();
            for (a, b, cost) in more {
                // Parallel links are alike.
                let cost =
                    cables.iter().find(|one| one.ends == [a, b]).map_or(cost, |one| one.cost);
                cables.push(Cable { cost, ..cable(a, b) });
            }
            let leaves = leaves.min(switches);
            let hosts = (0..leaves).flat_map(|leaf| vec![leaf; 1 + leaf as usize % 2]).collect();
            wiring(hosts, switches, cables)
        })
}

trials! {
    #![cases(128)]

    fn a_clos_by_tables_is_the_clos_by_arithmetic(clos in any_clos()) {
        let (plain, tables) = (Fabric::build(&clos).unwrap(), Fabric::of_wiring(Wiring::from(&clos)));
        let tables = tables.unwrap();
        prop_assert_eq!(plain.ports(), tables.ports());
        for switch in (0..plain.switches()).map(SwitchId) {
            prop_assert_eq!(plain.tier(switch), tables.tier(switch));
        }
        for dst in (0..plain.hosts()).map(HostId) {
            prop_assert_eq!(plain.leaf_of(dst), tables.leaf_of(dst));
            prop_assert_eq!(plain.place_below_leaf(dst), tables.place_below_leaf(dst));
            let leaves = (0..plain.leaves()).map(SwitchId);
            // Ways up that lead nowhere near are no next hops of tables, but no packet comes by there.
            for switch in leaves {
                prop_assert_eq!(plain.equal_hops(switch, dst), tables.equal_hops(switch, dst));
            }
            for src in (0..plain.hosts()).map(HostId).filter(|src| *src != dst) {
                prop_assert_eq!(plain.hops(src, dst), tables.hops(src, dst));
                prop_assert_eq!(plain.one_way(src, dst, 1000), tables.one_way(src, dst, 1000));
                let leaf = SwitchId(plain.leaf_of(src));
                prop_assert_eq!(ways(&plain, leaf, dst), ways(&tables, leaf, dst));
            }
        }
    }

    fn tables_lead_along_all_shortest_ways_and_no_others(
        network in any_network(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        names in prop::collection::vec(0u16..1 << 15, 8),
    ) {
        let cables = network.cables.clone();
        let fabric = Fabric::of_wiring(network).unwrap();
        let links: Vec<PortId> = fabric.links().filter(|id| id.0 >= fabric.hosts()).collect();
        let mut dead: Vec<PortId> = Vec::new();
        for pick in picks.iter().filter(|_| !links.is_empty()) {
            let port = links[pick.index(links.len())];
            dead.extend([port, fabric.ports()[port].reverse]);
        }
        let detours = Detours::new(&fabric, &dead);
        let (whole, left) = (lengths(&fabric, &cables, &[]), lengths(&fabric, &cables, &dead));
        for switch in (0..fabric.switches()).map(SwitchId) {
            for dst in (0..fabric.hosts()).map(HostId) {
                let leaf = fabric.leaf_of(dst) as usize;
                if leaf == switch.0 as usize {
                    prop_assert_eq!(fabric.equal_hops(switch, dst).len(), 1);
                    continue;
                }
                let shortest = |lengths: &[Vec<u32>], dead: &[PortId]| -> Vec<PortId> {
                    let leads = |id: &PortId| match fabric.ports()[*id].peer {
                        Node::Host(_) => false,
                        Node::Switch(next) => {
                            let ends = BTreeSet::from([switch.0, next.0]);
                            let own = cables.iter().find(|one| BTreeSet::from(one.ends) == ends);
                            let cost = own.expect("it is a cable").cost;
                            let reaches = lengths[switch.0 as usize][leaf] < u32::MAX / 4;
                            reaches && !dead.contains(id)
                                && cost + lengths[next.0 as usize][leaf] == lengths[switch.0 as usize][leaf]
                        }
                    };
                    fabric.ports_of(switch).ids().filter(leads).collect()
                };
                let (usual, now) = (shortest(&whole, &[]), shortest(&left, &dead));
                prop_assert_eq!(fabric.equal_hops(switch, dst), usual.clone());
                let told = detours.next_hops(switch, dst).map(<[PortId]>::to_vec);
                prop_assert_eq!(told.unwrap_or(usual), now);
            }
        }
        for src in (0..fabric.hosts()).map(HostId) {
            for dst in (0..fabric.hosts()).map(HostId).filter(|dst| *dst != src) {
                let leaf = SwitchId(fabric.leaf_of(src));
                let all: BTreeSet<Vec<PortId>> = ways(&fabric, leaf, dst).into_iter().collect();
                let set = fabric.path_set(src, dst);
                let named = (0..set.len()).map(|index| fabric.trace(src, dst, set.get(index))[1..].to_vec());
                let named: Vec<Vec<PortId>> = named.collect();
                prop_assert_eq!(named.len(), all.len());
                prop_assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), all.clone());
                for name in &names {
                    let way = fabric.trace(src, dst, PathId(*name));
                    prop_assert!(all.contains(&way[1..]), "{name} leads elsewhere");
                }
            }
        }
    }
}

#[test]
fn a_balanced_dragonfly_has_a_link_between_any_two_groups() {
    // Kim et al. (2008), section 3: a = 2p = 2h, g = a h + 1.
    let (p, a, h) = (2, 4, 2);
    let groups = a * h + 1;
    let group = Group::Routers(a);
    let it = Dragonfly {
        groups,
        group,
        hosts: p,
        global_ports: h,
        host_link: LINK,
        local: LINK,
        global: LINK,
    };
    assert_eq!(it.links_between_groups(), Ok(1));
    let network = it.wiring().unwrap();
    assert_eq!(it.links(), (network.hosts.len() + network.cables.len()) as u64);
    let between: BTreeSet<_> = network
        .cables
        .iter()
        .map(|cable| cable.ends.map(|end| network.groups[end as usize]))
        .filter(|[low, high]| low != high)
        .collect();
    assert_eq!(between.len() as u32, groups * (groups - 1) / 2);
    let fabric = Fabric::of_wiring(network).unwrap();
    assert_eq!((fabric.hosts(), fabric.switches(), fabric.pods()), (72, 36, 9));
    for src in (0..72).map(HostId) {
        for dst in (0..72).map(HostId).filter(|dst| *dst != src) {
            let same = fabric.pod_of(src) == fabric.pod_of(dst);
            // At most a local link, a global one and a local one, and those of the hosts.
            assert!(fabric.hops(src, dst) <= if same { 3 } else { 5 });
            assert_eq!(fabric.path_set(src, dst).len(), 1);
            let global = fabric.sample_path(src, dst).into_iter().filter(|id| {
                let port = &fabric.ports()[*id];
                matches!((port.owner, port.peer), (Node::Switch(a), Node::Switch(b))
                    if fabric.pod_of_switch(a) != fabric.pod_of_switch(b))
            });
            assert_eq!(global.count(), usize::from(!same));
        }
    }
}

#[test]
fn a_dragonfly_plus_has_a_path_for_each_link_between_two_groups() {
    // Shpiner et al. (2017): leaves and spines of k/2 links down and up.
    let group = Group::LeavesAndSpines(4, 4);
    let it = Dragonfly {
        groups: 5,
        group,
        hosts: 4,
        global_ports: 4,
        host_link: LINK,
        local: LINK,
        global: LINK,
    };
    assert_eq!(it.links_between_groups(), Ok(4));
    let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
    assert_eq!((fabric.hosts(), fabric.leaves(), fabric.switches()), (80, 20, 40));
    assert_eq!(fabric.name(Node::Switch(SwitchId(39))), "group-4-spine-3");
    for dst in (1..80).map(HostId) {
        let (hops, paths) = (fabric.hops(HostId(0), dst), fabric.path_set(HostId(0), dst).len());
        match (fabric.leaf_of(dst), fabric.pod_of(dst)) {
            (0, _) => assert_eq!((hops, paths), (2, 1)),
            (_, 0) => assert_eq!((hops, paths), (4, 4)),
            _ => assert_eq!((hops, paths), (5, 4)),
        }
    }
}

#[test]
fn a_path_over_a_group_goes_there_and_on() {
    let (hosts, global_ports) = (2, 2);
    let [host_link, local, global] = [LINK; 3];
    for group in [Group::Routers(4), Group::LeavesAndSpines(4, 4)] {
        let it = Dragonfly { groups: 9, group, hosts, global_ports, host_link, local, global };
        let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
        assert!(fabric.has_detours());
        for (src, dst) in (0..72).flat_map(|src| (0..72).map(move |dst| (HostId(src), HostId(dst))))
        {
            let ends = [fabric.pod_of(src), fabric.pod_of(dst)];
            for over in (0..9).filter(|over| ends[0] != ends[1] && !ends.contains(over)) {
                let path = fabric.trace(src, dst, PathId::over(over as u16, 5));
                let mut groups: Vec<u32> = path
                    .iter()
                    .filter_map(|id| match fabric.ports()[*id].owner {
                        Node::Switch(switch) => fabric.pod_of_switch(switch),
                        Node::Host(_) => None,
                    })
                    .collect();
                groups.dedup();
                assert_eq!(groups, [ends[0], over, ends[1]]);
                // Local, global, local, global, local (Kim et al. 2008, section 4), and two more where only
                // spines have global links.
                let most = if let Group::Routers(_) = group { 7 } else { 8 };
                assert!(path.len() <= most, "{}", path.len());
                assert_eq!(fabric.ports()[path[path.len() - 1]].peer, Node::Host(dst));
            }
        }
    }
}

/// The longest round trip is that over the slowest shortest path, wherever that is.
#[test]
fn a_round_trip_of_unlike_links_is_the_longest() {
    let slow = Link { rate: Rate::gbps(10), delay: Time::us(100) };
    // From 0 to 2 over 1, or over 3; 4 is farther away by the number of links.
    let ends = [([0, 1], LINK), ([1, 2], LINK), ([0, 3], slow), ([3, 2], LINK), ([2, 4], LINK)];
    let cable = |(ends, link)| Cable { ends, link, cost: 1, dimension: 0 };
    for order in [[0, 1, 2, 3, 4], [0, 1, 2, 4, 3]] {
        let place = |one: u32| order.iter().position(|other| *other == one).unwrap() as u32;
        let cables = ends.map(|(ends, link)| cable((ends.map(place), link))).to_vec();
        let fabric = Fabric::of_wiring(wiring(vec![0, 1, 2, 3, 4], 5, cables)).unwrap();
        let one = |link: Link, bytes| link.rate.serialize(bytes) + link.delay;
        // To and from hosts, the slow link, and two more to 4.
        let way =
            |bytes| one(slow, bytes) + (0..4).fold(Time::ZERO, |sum, _| sum + one(LINK, bytes));
        assert_eq!(fabric.base_rtt(4144, 60), way(4144) + way(60));
    }
}

/// A group that one link leads to, which is dead, is reached over a third one, and one that nothing leads to any more is
/// taken for passed.
#[test]
fn a_path_over_a_group_leads_around_dead_links() {
    let (hosts, global_ports) = (2, 2);
    let [host_link, local, global] = [LINK; 3];
    let group = Group::Routers(4);
    let it = Dragonfly { groups: 9, group, hosts, global_ports, host_link, local, global };
    let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
    let named = |name: &str| {
        let found = fabric.links().find(|id| fabric.port_name(*id) == name);
        let port = found.expect("there is such a link");
        [port, fabric.ports()[port].reverse]
    };
    let one = named("group-0-router-0 -> group-1-router-0").to_vec();
    let is_of_group_1 = |node: Node| match node {
        Node::Switch(switch) => fabric.pod_of_switch(switch) == Some(1),
        Node::Host(_) => false,
    };
    let leads_in = |id: &PortId| {
        let port = &fabric.ports()[*id];
        is_of_group_1(port.owner) != is_of_group_1(port.peer)
    };
    let all: Vec<PortId> = fabric.ports().ids().filter(leads_in).collect();
    for dead in [one, all] {
        let detours = Detours::new(&fabric, &dead);
        let mut over = 0;
        for (src, dst) in (0..8).flat_map(|src| (16..72).map(move |dst| (src, HostId(dst)))) {
            let mut path = PathId::over(1, 5);
            let mut ports = vec![fabric.nic(HostId(src))];
            while let Node::Switch(switch) = fabric.ports()[ports[ports.len() - 1]].peer {
                let hop = detours.pinned_hop(&fabric, switch, dst, path);
                let (port, next) = hop.expect("all but group 1 are linked");
                assert!(!dead.contains(&port), "from {src} to {dst:?}");
                ports.push(port);
                path = next;
                assert!(ports.len() < 12, "from {src} to {dst:?}: {ports:?}");
            }
            assert_eq!(fabric.ports()[ports[ports.len() - 1]].peer, Node::Host(dst));
            let goes_over = ports.iter().any(|port| is_of_group_1(fabric.ports()[*port].owner));
            over += u32::from(goes_over);
        }
        // All but those whose destination is at the way to the third group.
        let is_linked = dead.len() == 2;
        assert_eq!(over > 8 * 56 / 2, is_linked, "{over}");
        assert!(is_linked || over == 0, "{over}");
    }
}

#[test]
fn global_links_that_cannot_be_shared_are_refused() {
    let group = Group::Routers(4);
    let it = Dragonfly {
        groups: 8,
        group,
        hosts: 2,
        global_ports: 2,
        host_link: LINK,
        local: LINK,
        global: LINK,
    };
    let error = it.wiring().unwrap_err().0;
    assert!(
        error.contains("8 global links, which 7 other groups cannot share equally; use groups = 9"),
        "{error}"
    );
}

#[test]
fn a_torus_crosses_its_dimensions_in_their_order() {
    let sizes = vec![4, 3, 2];
    let it = Torus { sizes: sizes.clone(), wraps: true, hosts: 1, host_link: LINK, link: LINK };
    let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
    let place = |id: u32| [id % 4, id / 4 % 3, id / 12];
    for src in 0..24 {
        for dst in (0..24).filter(|dst| *dst != src) {
            let apart = |dim: usize| {
                let apart = place(src)[dim].abs_diff(place(dst)[dim]);
                apart.min(sizes[dim] - apart)
            };
            let distance: u32 = (0..3).map(apart).sum();
            assert_eq!(fabric.hops(HostId(src), HostId(dst)), distance + 2);
            // Half way round a ring of four there are two ways.
            let ways = if apart(0) == 2 { 2 } else { 1 };
            assert_eq!(fabric.path_set(HostId(src), HostId(dst)).len(), ways);
            let path = fabric.sample_path(HostId(src), HostId(dst));
            let switches = path.iter().filter_map(|id| match fabric.ports()[*id].owner {
                Node::Switch(switch) => Some(place(switch.0)),
                Node::Host(_) => None,
            });
            let switches: Vec<[u32; 3]> = switches.collect();
            let moved = |pair: &[[u32; 3]]| (0..3).find(|dim| pair[0][*dim] != pair[1][*dim]);
            let order: Vec<usize> = switches.windows(2).filter_map(moved).collect();
            assert!(order.is_sorted(), "{order:?}");
        }
    }
}

#[test]
fn a_mesh_ends_at_its_edges() {
    let it = Torus { sizes: vec![5], wraps: false, hosts: 1, host_link: LINK, link: LINK };
    let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
    assert_eq!(fabric.hops(HostId(0), HostId(4)), 6);
    assert_eq!(fabric.name(Node::Switch(SwitchId(4))), "switch-4");
}

#[test]
fn packets_may_wait_in_circles_where_ways_are_not_up_and_down() {
    let dragonfly = |group| {
        let (hosts, global_ports) = (1, 2);
        let [host_link, local, global] = [LINK; 3];
        Dragonfly { groups: 5, group, hosts, global_ports, host_link, local, global }.wiring()
    };
    let torus =
        |wraps| Torus { sizes: vec![4, 4], wraps, hosts: 1, host_link: LINK, link: LINK }.wiring();
    let circular = |wiring: Result<Wiring, _>| {
        Fabric::of_wiring(wiring.unwrap()).unwrap().has_circular_routes()
    };
    // Local links before and after a global one: that takes two virtual channels (Kim et al. 2008, section 4.1).
    assert!(circular(dragonfly(Group::Routers(4))));
    assert!(!circular(dragonfly(Group::LeavesAndSpines(2, 4))));
    // Rings do, and dimension order does not without them (Dally and Seitz 1987).
    assert!(circular(torus(true)));
    assert!(!circular(torus(false)));
}

#[test]
fn a_network_in_two_parts_is_refused() {
    let error = Fabric::of_wiring(wiring(vec![0, 1], 2, Vec::new())).unwrap_err().0;
    assert_eq!(error, "no path leads from switch-0 to switch-1; add a link");
}

#[test]
fn no_path_over_a_group_has_fewer_links_than_the_least() {
    let (groups, group, hosts, global_ports) = (9, Group::Routers(4), 2, 2);
    let [host_link, local, global] = [LINK; 3];
    let it = Dragonfly { groups, group, hosts, global_ports, host_link, local, global };
    let fabric = Fabric::of_wiring(it.wiring().unwrap()).unwrap();
    let mut shorter = 0;
    for (src, dst) in (0..72).flat_map(|src| (0..72).map(move |dst| (HostId(src), HostId(dst)))) {
        let (ends, least) =
            ([fabric.pod_of(src), fabric.pod_of(dst)], fabric.least_links(src, dst));
        assert!(src == dst || least <= fabric.hops(src, dst));
        for over in (0..9).filter(|over| ends[0] != ends[1] && !ends.contains(over)) {
            let links = fabric.trace(src, dst, PathId::over(over as u16, 0)).len() as u32;
            assert!(links >= least, "{links} links, not {least}");
            shorter += u32::from(links < fabric.hops(src, dst));
        }
    }
    // Two global links may be fewer than a local, a global and a local one.
    assert!(shorter > 0);
}

trials! {
    #![cases(6)]

    /// By arithmetic a large torus or mesh has the hops, lengths, names of paths and circles that tables give it.
    fn a_grid_by_arithmetic_is_the_grid_by_tables(
        sizes in prop_oneof![
            Just(vec![8, 9, 8]), Just(vec![600]), Just(vec![2, 17, 1, 16]), Just(vec![24, 3, 2, 4]), Just(vec![5, 4, 4, 2, 4]),
        ],
        wraps in any::<bool>(), first in 0u32..7,
    ) {
        let torus = Torus { sizes, wraps, hosts: 1, host_link: LINK, link: LINK };
        let wiring = torus.wiring().unwrap();
        let tables = Fabric::of_wiring(Wiring { grid: None, ..wiring.clone() }).unwrap();
        let grid = Fabric::of_wiring(wiring).unwrap();
        prop_assert_eq!(grid.has_circular_routes(), tables.has_circular_routes());
        prop_assert_eq!(grid.most_hops(), tables.most_hops());
        for src in (first..grid.hosts()).step_by(7).map(HostId) {
            for dst in (0..grid.hosts()).map(HostId) {
                let switch = SwitchId(grid.leaf_of(src));
                prop_assert_eq!(grid.equal_hops(switch, dst), tables.equal_hops(switch, dst));
                prop_assert_eq!(grid.least_links(src, dst), tables.least_links(src, dst));
                let (own, other) = (grid.path_set(src, dst), tables.path_set(src, dst));
                prop_assert_eq!(own.len(), other.len());
                for index in 0..own.len().min(3) {
                    let path = own.get(index);
                    prop_assert_eq!(path, other.get(index));
                    let hop = |fabric: &Fabric| fabric.pinned_hop(switch, dst, path, None);
                    prop_assert_eq!(hop(&grid), hop(&tables));
                }
            }
        }
        // Without a link both are tables.
        let dead = grid.links().find(|id| grid.ports()[*id].owner == Node::Switch(SwitchId(first))).unwrap();
        let ends = [dead, grid.ports()[dead].reverse];
        let detours = [&grid, &tables].map(|fabric| Detours::new(fabric, &ends));
        for host in (0..grid.hosts()).map(HostId) {
            let [own, other] = detours.each_ref().map(|one| one.next_hops(SwitchId(first), host));
            prop_assert_eq!(own, other);
        }
    }

    /// Small ones, which are tables either way, go in circles or not by a rule.
    fn circles_of_small_grids(sizes in prop::collection::vec(1u32..7, 1..4), wraps in any::<bool>()) {
        let torus = Torus { sizes, wraps, hosts: 1, host_link: LINK, link: LINK };
        let wiring = torus.wiring().unwrap();
        let tables = Fabric::of_wiring(Wiring { grid: None, ..wiring.clone() }).unwrap();
        let grid = Fabric::of_wiring(wiring).unwrap();
        prop_assert_eq!(grid.has_circular_routes(), tables.has_circular_routes());
    }
}

/// What no table holds: a grid of more switches, unless routing has to go around dead links.
#[test]
fn a_large_grid_takes_no_tables() {
    let it = Torus { sizes: vec![24, 24, 16], wraps: true, hosts: 1, host_link: LINK, link: LINK };
    let wiring = it.wiring().unwrap();
    let error = Fabric::of_wiring(Wiring { grid: None, ..wiring.clone() }).unwrap_err();
    assert!(error.to_string().contains("routes from 9216 switches"), "{error}");
    let fabric = Fabric::of_wiring(wiring).unwrap();
    assert_eq!(fabric.hops(HostId(0), HostId(9215)), 3 + 2);
    let dead = |detect| Failure {
        links: LinkChoice::Named(vec!["switch-0-0-0 -> switch-1-0-0".into()]),
        kind: FailureKind::down(detect),
        start: Time::ZERO,
        end: Time::MAX,
    };
    assert!(Failures::new(&fabric, &[dead(None)], 1).is_ok());
    let error = Failures::new(&fabric, &[dead(Some(Time::us(1)))], 1).unwrap_err();
    assert!(error.to_string().starts_with("ways around dead links of 9216 switches are too many"));
}
