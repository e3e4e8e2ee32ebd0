//! Small random fabrics against exhaustive search: all cuts for one pair of leaves, all whole
//! assignments to paths and all small lengths for several.

use weft_capacity::flow::UNLIMITED;
use weft_capacity::{Answer, Demands, FlowNetwork, SparseCut, carries, sparsest_cuts};
use weft_fabric::{Clos, Fabric, Link, Node, Tiers};
use weft_trial::prelude::*;
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId, Rate, Time};

const LINK: Link = Link { rate: Rate::gbps(1), delay: Time::us(1) };
/// Rates and capacities are small multiples of this.
const UNIT: u64 = 1_000_000;

fn leaf_spine() -> impl Strategy<Value = Clos> {
    (2u32..4, 1u32..3).prop_map(|(leaves, spines)| Clos::leaf_spine(leaves, spines, 1, LINK))
}
/// With no more than `cores` cores.
fn three_tiers(cores: u32) -> impl Strategy<Value = Clos> {
    let counts = (1u32..3, 1u32..3)
        .prop_filter("too many links to search", move |counts| counts.0 * counts.1 <= cores);
    counts.prop_map(|(aggs_per_pod, per_plane)| {
        let cores = aggs_per_pod * per_plane;
        Clos::uniform(Tiers::Three { pods: 2, leaves_per_pod: 1, aggs_per_pod, cores }, 1, LINK)
    })
}

/// Capacities drawn for the links between switches; hosts have plenty.
fn draw(fabric: &Fabric, units: &[u64]) -> IdVec<PortId, u64> {
    let ports = fabric.ports().enumerate();
    let capacity = |(id, port): (PortId, &weft_fabric::Port)| match (port.owner, port.peer) {
        (Node::Switch(_), Node::Switch(_)) => units[id.index() % units.len()] * UNIT,
        _ => 1_000_000 * UNIT,
    };
    ports.map(capacity).collect()
}

/// All shortest paths, as links between switches.
fn paths(fabric: &Fabric, src: HostId, dst: HostId) -> Vec<Vec<PortId>> {
    let mut done = Vec::new();
    let mut open = vec![vec![fabric.nic(src)]];
    while let Some(path) = open.pop() {
        match fabric.ports()[path[path.len() - 1]].peer {
            Node::Host(_) => done.push(path[1..path.len() - 1].to_vec()),
            Node::Switch(switch) => {
                open.extend(fabric.next_hops(switch, dst).ids().map(|port| {
                    let mut longer = path.clone();
                    longer.push(port);
                    longer
                }));
            }
        }
    }
    done
}

/// Links between switches that any of the paths use.
fn used(paths: &[Vec<Vec<PortId>>]) -> Vec<PortId> {
    let mut links: Vec<PortId> = paths.iter().flatten().flatten().copied().collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// The least, over all lengths from 0 to `longest` of all links, of capacity over demand.
fn least_limit(
    paths: &[Vec<Vec<PortId>>],
    rates: &[u64],
    capacities: &IdVec<PortId, u64>,
    longest: u64,
) -> f64 {
    let links = used(paths);
    let mut lengths = vec![0u64; capacities.len()];
    let mut least = f64::INFINITY;
    for number in 0..(longest + 1).pow(links.len() as u32) {
        let mut rest = number;
        for link in &links {
            lengths[link.index()] = rest % (longest + 1);
            rest /= longest + 1;
        }
        let capacity: u64 = links.iter().map(|l| capacities[*l] * lengths[l.index()]).sum();
        let distance = |ways: &Vec<Vec<PortId>>| {
            ways.iter().map(|way| way.iter().map(|l| lengths[l.index()]).sum::<u64>()).min()
        };
        let demand: u64 =
            paths.iter().zip(rates).map(|(ways, rate)| rate * distance(ways).unwrap()).sum();
        if demand > 0 {
            least = least.min(capacity as f64 / demand as f64);
        }
    }
    least
}

/// The largest share, over all ways to put whole units of each demand on paths: depth first.
fn best_whole(
    paths: &[Vec<Vec<PortId>>],
    units: &[u64],
    capacities: &IdVec<PortId, u64>,
    load: &mut Vec<u64>,
    at: (usize, usize),
) -> f64 {
    let (demand, path) = at;
    let Some(ways) = paths.get(demand) else {
        let loaded = load.iter().enumerate().filter(|(_, load)| **load > 0);
        let shares = loaded
            .map(|(port, load)| capacities[PortId(port as u32)] as f64 / (load * UNIT) as f64);
        return shares.fold(f64::INFINITY, f64::min);
    };
    let mut best: f64 = 0.0;
    let left = units[demand];
    let range = if path + 1 == ways.len() { left..=left } else { 0..=left };
    for here in range {
        ways[path].iter().for_each(|link| load[link.index()] += here);
        let mut rest = units.to_vec();
        rest[demand] -= here;
        let next = if path + 1 == ways.len() { (demand + 1, 0) } else { (demand, path + 1) };
        best = best.max(best_whole(paths, &rest, capacities, load, next));
        ways[path].iter().for_each(|link| load[link.index()] -= here);
    }
    best
}

trials! {
    #![cases(128)]

    /// For one demand the answer is the smallest of all cuts.
    fn one_demand_is_limited_by_the_smallest_of_all_cuts(
        clos in prop_oneof![leaf_spine(), three_tiers(4)],
        units in prop::collection::vec(0u64..5, 37),
        rate in 1u64..7,
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let capacities = draw(&fabric, &units);
        let (src, dst) = (HostId(0), HostId(fabric.hosts() - 1));
        let mut demands = Demands::none(&fabric);
        demands.add(&fabric, src, dst, rate * UNIT);
        let verdict = carries(&fabric, &capacities, &demands);
        let paths = [paths(&fabric, src, dst)];
        let least = least_limit(&paths, &[rate * UNIT], &capacities, 1);
        prop_assert!((verdict.limit - least).abs() < 1e-9, "{:?} {} {:?}", verdict, least, capacities);
        prop_assert!((verdict.factor - least).abs() < 1e-6, "{} {}", verdict.factor, least);
        let bottleneck = verdict.bottleneck.unwrap();
        prop_assert!(bottleneck.is_cut());
    }

    /// Several demands: no whole assignment carries more than the limit, no lengths prove less
    /// than the factor. Where the two searches meet, the answer is known, and is theirs.
    fn several_demands_lie_between_all_assignments_and_all_lengths(
        clos in prop_oneof![leaf_spine(), three_tiers(2)],
        units in prop::collection::vec(0u64..4, 37),
        rates in prop::collection::vec(0u64..4, 5),
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let capacities = draw(&fabric, &units);
        let mut demands = Demands::none(&fabric);
        let (mut ways, mut wanted) = (Vec::new(), Vec::new());
        let hosts = fabric.hosts();
        let pairs = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (HostId(a), HostId(b))));
        for ((src, dst), rate) in pairs.filter(|(a, b)| a != b).zip(rates) {
            if rate > 0 {
                demands.add(&fabric, src, dst, rate * UNIT);
                ways.push(paths(&fabric, src, dst));
                wanted.push(rate);
            }
        }
        prop_assume!(!wanted.is_empty());
        let verdict = carries(&fabric, &capacities, &demands);
        let mut load = vec![0; fabric.ports().len()];
        let whole = best_whole(&ways, &wanted, &capacities, &mut load, (0, 0));
        let rates: Vec<u64> = wanted.iter().map(|rate| rate * UNIT).collect();
        let longest = if used(&ways).len() > 8 { 1 } else { 2 };
        let limit = least_limit(&ways, &rates, &capacities, longest);
        prop_assert!(verdict.limit - verdict.factor < 1e-6 * verdict.limit.max(1.0));
        prop_assert!(whole <= verdict.limit + 1e-9, "{} {}", whole, verdict.limit);
        prop_assert!(limit >= verdict.factor - 1e-9, "{} {}", limit, verdict.factor);
        if limit - whole < 1e-9 {
            prop_assert!((verdict.limit - limit).abs() < 1e-6 * limit.max(1.0));
        }
        match verdict.answer {
            Answer::Yes => prop_assert!(limit >= 1.0),
            Answer::No => prop_assert!(whole < 1.0),
            Answer::Borderline => prop_assert!((limit - 1.0).abs() < 1e-6),
        }
    }

    /// What one leaf alone sends, or receives, is limited by its own links or its sparsest cut, and no cut
    /// of all is sparser.
    fn no_cut_is_sparser_than_the_sparsest(
        clos in prop_oneof![leaf_spine(), three_tiers(4)],
        units in prop::collection::vec(0u64..5, 37),
        rates in prop::collection::vec(1u64..7, 2),
        sends in any::<bool>(),
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let capacities = draw(&fabric, &units);
        let mut demands = Demands::none(&fabric);
        let others = (1..fabric.hosts()).map(HostId).zip(rates);
        let ends = |other| if sends { (HostId(0), other) } else { (other, HostId(0)) };
        let (mut ways, mut wanted) = (Vec::new(), Vec::new());
        for (other, rate) in others {
            let (src, dst) = ends(other);
            demands.add(&fabric, src, dst, rate * UNIT);
            ways.push(paths(&fabric, src, dst));
            wanted.push(rate * UNIT);
        }
        let least = least_limit(&ways, &wanted, &capacities, 1);
        let links_of_leaf = fabric.ports().enumerate().filter(|(_, port)| {
            let (near, far) = if sends { (port.owner, port.peer) } else { (port.peer, port.owner) };
            near == Node::Switch(fabric.leaf_in_plane(0, 0)) && matches!(far, Node::Switch(_))
        });
        let own = SparseCut {
            from: (0..fabric.leaves()).filter(|leaf| sends == (*leaf == 0)).collect(),
            to: (0..fabric.leaves()).filter(|leaf| sends != (*leaf == 0)).collect(),
            ports: links_of_leaf.map(|(id, _)| id).collect(),
        };
        // By leaf, of which each has one host.
        let limit = |cut: &SparseCut| {
            let capacity: u64 = cut.ports.iter().map(|port| capacities[*port]).sum();
            let far = if sends { &cut.to } else { &cut.from };
            let demand: u64 = far.iter().map(|leaf| wanted[*leaf as usize - 1]).sum();
            capacity as f64 / demand as f64
        };
        let found = sparsest_cuts(&fabric, &capacities, &demands);
        let of_leaf = found.iter().filter(|cut| if sends { &cut.from } else { &cut.to } == &[0]);
        let sparsest = of_leaf.chain([&own]).map(limit).fold(f64::INFINITY, f64::min);
        prop_assert!((sparsest - least).abs() < 1e-9, "{} {} {:?}", sparsest, least, found);
    }

    /// More capacity never carries less.
    fn more_capacity_never_carries_less(
        units in prop::collection::vec(1u64..9, 67),
        more in any::<prop::sample::Index>(),
        rates in prop::collection::vec(0u64..4, 30),
    ) {
        let tiers = Tiers::Three { pods: 3, leaves_per_pod: 2, aggs_per_pod: 2, cores: 4 };
        let fabric = Fabric::build(&Clos::uniform(tiers, 1, LINK)).unwrap();
        let mut demands = Demands::none(&fabric);
        for (number, rate) in rates.iter().enumerate() {
            let (src, dst) = (number as u32 / 5, number as u32 % 5);
            let dst = if dst < src { dst } else { dst + 1 };
            demands.add(&fabric, HostId(src), HostId(dst), rate * UNIT);
        }
        let capacities = draw(&fabric, &units);
        let before = carries(&fabric, &capacities, &demands);
        let mut larger = capacities.clone();
        let wider = PortId(more.index(larger.len()) as u32);
        larger[wider] += 3 * UNIT;
        let after = carries(&fabric, &larger, &demands);
        prop_assert!(after.limit >= before.factor, "{} {}", after.limit, before.factor);
        prop_assert!(after.factor >= before.factor - 1e-6, "{} {}", after.factor, before.factor);
    }

    /// The maximum flow is the smallest of all cuts, and the cut told is one of them.
    fn maximum_flow_is_minimum_cut(
        links in prop::collection::vec((0usize..6, 0usize..6, 0u64..9), 0..16),
    ) {
        let mut network = FlowNetwork::new(6);
        for (from, to, capacity) in &links {
            network.link(*from, *to, *capacity);
        }
        let flow = network.max_flow(0, 5);
        let cut = |side: &dyn Fn(usize) -> bool| -> u64 {
            links.iter().filter(|l| side(l.0) && !side(l.1)).map(|l| l.2).sum()
        };
        // Bit n says whether node n is on the side of node 0.
        let all = (0..16u32).map(|set| {
            let set = set << 1 | 1;
            cut(&|node| set >> node & 1 == 1)
        });
        prop_assert_eq!(flow, all.min().unwrap());
        let side = network.source_side();
        prop_assert!(side[0] && !side[5]);
        prop_assert_eq!(cut(&|node| side[node]), flow);
    }
}

/// Two planes are as good as one with twice as many switches above the leaves.
#[test]
fn planes_are_more_switches() {
    let tiers =
        |aggs_per_pod, cores| Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod, cores };
    let one = Fabric::build(&Clos::uniform(tiers(4, 8), 2, LINK)).unwrap();
    let two = Fabric::build(&Clos::uniform(tiers(2, 4), 2, LINK)).unwrap().in_planes(2).unwrap();
    // The same links, by what they join: slower, one by one.
    let place = |fabric: &Fabric, node: Node| {
        let Node::Switch(switch) = node else { return None };
        let (plane, first) = (fabric.plane_of(switch), fabric.in_first_plane(switch).0);
        let clos = fabric.clos().unwrap();
        let (mids, cores) = (clos.mids_per_pod(), clos.cores());
        Some(match first.checked_sub(fabric.leaves()) {
            None => (0, 0, first),
            Some(mid) if mid < 2 * mids => (1, mid / mids, plane * mids + mid % mids),
            Some(core) => (2, 0, plane * cores + core - 2 * mids),
        })
    };
    let capacities = |fabric: &Fabric| -> IdVec<PortId, u64> {
        let ports = fabric.ports().iter();
        let capacity = |port: &weft_fabric::Port| match [port.owner, port.peer]
            .map(|node| place(fabric, node))
        {
            [Some(from), Some(to)] => {
                (1 + (3 * from.2 + 5 * to.2 + from.1 + to.1) as u64 % 4) * UNIT
            }
            _ => 100 * UNIT,
        };
        ports.map(capacity).collect()
    };
    let verdict =
        |fabric: &Fabric| carries(fabric, &capacities(fabric), &Demands::all_to_all(fabric));
    let (one, two) = (verdict(&one), verdict(&two));
    assert!((one.limit - two.limit).abs() < 1e-6 * one.limit, "{one:?} {two:?}");
    assert!((one.factor - two.factor).abs() < 1e-6 * one.limit, "{one:?} {two:?}");
}

#[test]
fn an_unlimited_link_is_wider_than_any() {
    let mut network = FlowNetwork::new(3);
    network.link(0, 1, UNLIMITED);
    network.link(1, 2, 1_000_000_000_000_000);
    assert_eq!(network.max_flow(0, 2), 1_000_000_000_000_000);
}

/// Each leaf sends four units to the next, with two links of one unit up and down.
#[test]
fn rates_of_pairs_of_leaves_ask_no_host() {
    let fabric = Fabric::build(&Clos::leaf_spine(3, 2, 1, LINK)).unwrap();
    let mut capacities: IdVec<PortId, u64> = fabric.ports().ids().map(|_| UNIT).collect();
    for host in 0..3 {
        capacities[PortId(host)] = 0;
    }
    let mut demands = Demands::none(&fabric);
    for leaf in 0..3 {
        demands.add_between(leaf, (leaf + 1) % 3, 4 * UNIT);
    }
    let verdict = carries(&fabric, &capacities, &demands);
    assert_eq!((verdict.answer, verdict.factor, verdict.limit), (Answer::No, 0.5, 0.5));
}
