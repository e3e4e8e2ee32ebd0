//! Source ports that stand for paths: hash functions against their published values, and packets
//! that are followed from switch to switch by the port alone.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use weft_balance::enforce::label::{label_of_port, port_of_label};
use weft_balance::enforce::{
    Crossing, Ends, Enforce, FiveTuple, HashFunction, Hasher, Hashing, MICROSOFT_KEY, PathRoutes,
    PortRange, PortRules, Ports, Segments, crossings, links_from, uplink_of,
};
use weft_balance::forward::{Forward, Hops, Passing, SwitchContext};
use weft_balance::plan::Route;
use weft_balance::scheme::SchemeConfig;
use weft_balance::scheme::dnlb::segment;
use weft_fabric::hash_function::{CRC_16, CRC_16_CCITT, CRC_32, CRC_32C, toeplitz};
use weft_fabric::{Bundle, Clos, Fabric, Link, Node, PathId, Tiers};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

/// The catalogue of parametrised CRC algorithms: the check of "123456789".
#[test]
fn crcs_have_their_check_values() {
    let checked = [(CRC_16, 0xBB3D), (CRC_16_CCITT, 0x29B1), (CRC_32, 0xCBF4_3926)];
    for (crc, check) in checked.into_iter().chain([(CRC_32C, 0xE306_9283)]) {
        assert_eq!(crc.of(b"123456789"), check, "{check:#x}");
    }
}

/// "Verifying the RSS hash calculation" of Microsoft's documentation: addresses alone, and with
/// ports.
#[test]
fn toeplitz_passes_microsofts_suite() {
    let suite = [
        ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e_8fc2, 0x51cc_c178),
        ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718_262a, 0xc626_b0ea),
        ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0_a5de, 0x5c2b_394a),
        ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x8298_9176, 0xafc7_327f),
        ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d18_09c5, 0x10e8_28a2),
    ];
    for (dst, dst_port, src, src_port, addresses, all) in suite {
        let (src, dst): (Ipv4Addr, Ipv4Addr) = (src.parse().unwrap(), dst.parse().unwrap());
        let input: Vec<u8> = src.octets().into_iter().chain(dst.octets()).collect();
        assert_eq!(toeplitz(&MICROSOFT_KEY, &input), addresses);
        let tuple = FiveTuple { src, dst, protocol: 6, src_port, dst_port };
        assert_eq!(HashFunction::Toeplitz(MICROSOFT_KEY).value(&tuple), all);
    }
}

/// By hand: 0A00 ^ 0001 ^ 0A00 ^ 0002 ^ 0011 (UDP) ^ C000 ^ 12B7 (4791).
#[test]
fn folding_is_the_exclusive_or_of_all_words() {
    let tuple = FiveTuple::rocev2([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 0xC000);
    assert_eq!(HashFunction::Xor.value(&tuple), 0x0003 ^ 0x0011 ^ 0xC000 ^ 0x12B7);
}

#[test]
fn uplinks_are_remainders_of_turned_values() {
    let tuple = FiveTuple::rocev2([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 0xC000);
    let hasher = |seed, offset| Hasher { function: HashFunction::Xor, seed, offset };
    // 0xD2A5 as it stands, turned by eight bits, and with a seed.
    assert_eq!(HashFunction::Xor.value(&tuple), 0xD2A5);
    assert_eq!(uplink_of(&hasher(0, 0), &tuple, 16), 0x5);
    assert_eq!(uplink_of(&hasher(0, 8), &tuple, 16), 0x2);
    assert_eq!(uplink_of(&hasher(3, 0), &tuple, 16), 0x6);
    assert_eq!(uplink_of(&hasher(0, 0), &tuple, 7), 0xD2A5 % 7);
}

#[test]
fn labels_stand_for_their_ports() {
    let kernel = |label: u32| ((label & 0x3FFF) ^ (label >> 14)) as u16 | 0xC000;
    for port in 0xC000..=0xFFFF {
        let label = label_of_port(port).unwrap();
        assert!(label > 0 && label < 1 << 20);
        assert_eq!((port_of_label(label), kernel(label)), (port, port));
    }
    assert_eq!(label_of_port(0xC000), Some(0x4001));
    assert_eq!(label_of_port(0xC001), Some(1));
    assert_eq!(label_of_port(0xBFFF), None);
    assert!((0..1 << 20).all(|label| port_of_label(label) == kernel(label)));
}

/// All hops of a switch are alive.
struct All(u32);

impl Hops for All {
    fn count(&self) -> u32 {
        self.0
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
        self.0
    }
    fn place(&self, hop: u32) -> u32 {
        hop
    }
    fn weights(&self) -> Option<&[u32]> {
        None
    }
}

/// Follows a packet from host to host: `choose` says which of so many hops a switch takes.
fn walk(
    fabric: &Fabric,
    ends: &Ends,
    mut choose: impl FnMut(SwitchId, u32) -> u32,
) -> Vec<Crossing> {
    let mut taken = Vec::new();
    let mut at = fabric.ports()[fabric.nic(ends.src)].peer;
    while let Node::Switch(switch) = at {
        let group = fabric.next_hops(switch, ends.dst);
        let hop = if group.count == 1 { 0 } else { choose(switch, group.count) };
        if group.count > 1 {
            taken.push(Crossing { switch, hop, hops: group.count });
        }
        at = fabric.ports()[PortId(group.first.0 + hop)].peer;
    }
    assert_eq!(at, Node::Host(ends.dst));
    taken
}

fn by_rules(fabric: &Fabric, ends: &Ends, port: u16) -> Vec<Crossing> {
    walk(fabric, ends, |switch, hops| {
        let mut rules = PortRules::of(&SwitchContext { switch, fabric, seed: 1, buffer: 1 });
        // A hash that would be wrong everywhere.
        let (hash, hashed, flow, control) = (0, u32::MAX, 0, false);
        let (now, dst, entropy) = (Time::ZERO, ends.dst, port);
        rules.choose(
            &Passing { now, flow, dst, control, entropy, hashed, hash, bytes: 0 },
            &All(hops),
        )
    })
}

/// By what a switch would be configured with, looked up as it would.
fn by_table(fabric: &Fabric, segments: &Segments, ends: &Ends, port: u16) -> Vec<Crossing> {
    walk(fabric, ends, |switch, _| {
        let up = !fabric.hosts_below(switch).contains(&ends.dst.0);
        let table = segments.table(fabric, switch);
        let mut rules =
            table.iter().filter(|rule| rule.up == up && (rule.first..=rule.last).contains(&port));
        let rule = rules.next().unwrap_or_else(|| panic!("{switch:?} has no rule for {port}"));
        assert_eq!(rules.next(), None, "two rules for {port}");
        rule.hop
    })
}

/// By the ports that its path is known to cross.
fn by_trace(fabric: &Fabric, ends: &Ends, path: PathId) -> Vec<Crossing> {
    let ports = fabric.trace(ends.src, ends.dst, path);
    walk(fabric, ends, |switch, _| {
        let own = ports.iter().find(|port| fabric.ports()[**port].owner == Node::Switch(switch));
        own.expect("it is on the path").0 - fabric.next_hops(switch, ends.dst).first.0
    })
}

fn clos() -> impl Strategy<Value = Clos> {
    let two = (2u32..5, 1u32..6).prop_map(|(leaves, spines)| Tiers::Two { leaves, spines });
    let three = (1u32..4, 1u32..3, 1u32..4, 1u32..4).prop_map(
        |(pods, leaves_per_pod, aggs_per_pod, plane)| {
            let cores = aggs_per_pod * plane;
            Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores }
        },
    );
    (prop_oneof![two, three], 1u32..4, 1u32..4, 1u32..3).prop_map(|(tiers, hosts, leaf, agg)| {
        let mut clos = Clos::uniform(tiers, hosts, LINK);
        clos.leaf_bundle = Bundle { link: LINK, members: leaf };
        clos.agg_bundle = Bundle { link: LINK, members: agg };
        clos
    })
}

fn functions() -> impl Strategy<Value = HashFunction> {
    let named = HashFunction::NAMED.map(|(_, function)| function);
    let key = any::<u64>().prop_map(|seed| {
        let mut key = MICROSOFT_KEY;
        key[..8].copy_from_slice(&seed.to_be_bytes());
        HashFunction::Toeplitz(key)
    });
    prop_oneof![6 => prop::sample::select(named.to_vec()), 1 => key]
}

fn paths(fabric: &Fabric, ends: &Ends) -> Vec<PathId> {
    let set = fabric.path_set(ends.src, ends.dst);
    (0..set.len()).map(|index| set.get(index)).collect()
}

trials! {
    /// Rules, and the tables that configure them, lead the ports of a path along it and no other.
    fn segments_lead_along_their_path(clos in clos(), src in any::<u32>(), dst in any::<u32>(), number in 0u32..40) {
        let fabric = Fabric::build(&clos).unwrap();
        let ends = Ends::of(HostId(src % fabric.hosts()), HostId(dst % fabric.hosts()));
        prop_assume!(ends.src != ends.dst);
        let segments = Segments::new(&fabric, PortRange::ROCE).unwrap();
        let ports = Ports::Segments(segments);
        let mut ways = BTreeSet::new();
        for path in paths(&fabric, &ends) {
            let port = ports.port(&fabric, &ends, path, number).unwrap();
            let wanted = crossings(&fabric, ends.src, ends.dst, path).unwrap();
            prop_assert_eq!(&by_rules(&fabric, &ends, port), &wanted);
            prop_assert_eq!(&by_table(&fabric, &segments, &ends, port), &wanted);
            prop_assert_eq!(&by_trace(&fabric, &ends, path), &wanted);
            prop_assert_eq!(ports.path(&fabric, &ends, port), Some(path));
            prop_assert_ne!(port, ports.port(&fabric, &ends, path, number + 1).unwrap());
            let ups: Vec<_> = wanted.iter().map(|at| (at.switch, at.hop)).collect();
            prop_assert!(ways.insert(ups), "two paths are one");
        }
        ports.check(&fabric).unwrap();
    }

    /// The same by a hash, wherever a port is found.
    fn hashes_lead_along_the_path(
        clos in clos(), src in any::<u32>(), dst in any::<u32>(), function in functions(), seed in any::<u64>(), number in 0u32..5,
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let ends = Ends::of(HostId(src % fabric.hosts()), HostId(dst % fabric.hosts()));
        prop_assume!(ends.src != ends.dst);
        let hashing = Hashing { function, seed, same_salt: false };
        let ports = Ports::Hash(PortRange::ROCE, hashing);
        for path in paths(&fabric, &ends) {
            let Ok(port) = ports.port(&fabric, &ends, path, number) else {
                // Three choices at once: up, up, and down over a bundle on the same bits.
                prop_assert!(clos.leaf_bundle.members > 1 || clos.agg_bundle.members > 1);
                continue;
            };
            prop_assert!(PortRange::ROCE.has(port));
            let taken = walk(&fabric, &ends, |switch, hops| {
                let tuple = FiveTuple::rocev2(ends.from, ends.to, port);
                uplink_of(&hashing.at(&fabric, switch), &tuple, hops)
            });
            prop_assert_eq!(taken, crossings(&fabric, ends.src, ends.dst, path).unwrap());
            prop_assert_eq!(ports.path(&fabric, &ends, port), Some(path));
        }
    }

    /// The leaves' rule is that of DNLB.
    fn leaves_follow_the_rule_of_dnlb(spines in 1u32..300, port in any::<u16>()) {
        let fabric = Fabric::build(&Clos::leaf_spine(2, spines, 1, LINK)).unwrap();
        let segments = Segments::new(&fabric, PortRange::ROCE).unwrap();
        let table = segments.table(&fabric, SwitchId(1));
        prop_assert_eq!(table.len() as u32, spines);
        let rule = table.iter().position(|rule| (rule.first..=rule.last).contains(&port));
        prop_assert_eq!(rule.map(|at| at as u32), segment(port, spines));
        prop_assert!(table.iter().zip(0..).all(|(rule, at)| rule.hop == at && rule.up));
    }
}

/// The search finds what hashing every port finds, in the same order, and then says how many.
#[test]
fn the_search_misses_no_port() {
    let fabric = Fabric::build(&Clos::fat_tree(6, LINK)).unwrap();
    let (ends, path) = (Ends::of(HostId(1), HostId(50)), PathId::new(2, 1));
    let wanted = crossings(&fabric, ends.src, ends.dst, path).unwrap();
    for (name, function) in HashFunction::NAMED {
        let hashing = Hashing { function, seed: 3, same_salt: false };
        let leads = |port: &u16| {
            let tuple = FiveTuple::rocev2(ends.from, ends.to, *port);
            wanted
                .iter()
                .all(|at| uplink_of(&hashing.at(&fabric, at.switch), &tuple, at.hops) == at.hop)
        };
        let all: Vec<u16> = PortRange::ROCE.ports().filter(leads).collect();
        let ports = Ports::Hash(PortRange::ROCE, hashing);
        let port = |number| ports.port(&fabric, &ends, path, number);
        for (number, expected) in all.iter().enumerate().step_by(7) {
            assert_eq!(port(number as u32), Ok(*expected), "{name}");
        }
        let error = port(all.len() as u32).unwrap_err().to_string();
        assert!(error.contains(&format!("has {} of 16384 source ports", all.len())), "{error}");
    }
}

/// 2 spines with bundles of 2, and a fat-tree of k = 8: in order, one range an uplink, and masks.
#[test]
fn tables_by_hand() {
    let rows = |fabric: &Fabric, switch: u32| -> Vec<(u16, u16, bool, u32)> {
        let segments = Segments::new(fabric, PortRange::ROCE).unwrap();
        let table = segments.table(fabric, SwitchId(switch));
        table.iter().map(|rule| (rule.first, rule.last, rule.up, rule.hop)).collect()
    };
    let mut clos = Clos::leaf_spine(2, 2, 2, LINK);
    clos.leaf_bundle.members = 2;
    let bundles = Fabric::build(&clos).unwrap();
    let leaf = [(0xC000, 0xCFFF, 0), (0xD000, 0xDFFF, 1), (0xE000, 0xEFFF, 2), (0xF000, 0xFFFF, 3)];
    assert_eq!(rows(&bundles, 0), leaf.map(|(first, last, hop)| (first, last, true, hop)));
    // Spine 1 sends down by the member by which a packet came.
    assert_eq!(rows(&bundles, 3), [(0xE000, 0xEFFF, false, 0), (0xF000, 0xFFFF, false, 1)]);

    let tree = Fabric::build(&Clos::fat_tree(8, LINK)).unwrap();
    // The third aggregation switch of the second pod: the third quarter, cut into four.
    let agg: Vec<_> = (0..4).map(|up| (0xE000 + up * 0x400, 0xE3FF + up * 0x400)).collect();
    let expected: Vec<_> =
        agg.iter().zip(0..).map(|(&(first, last), hop)| (first, last, true, hop)).collect();
    assert_eq!(rows(&tree, 32 + 4 + 2), expected);
    assert_eq!(rows(&tree, 32 + 32), [], "a core has one way down");
    let segments = Segments::new(&tree, PortRange::ROCE).unwrap();
    let masks: Vec<_> =
        segments.table(&tree, SwitchId(38)).iter().map(|rule| rule.mask().unwrap()).collect();
    assert_eq!(masks, [(0xE000, 0xFC00), (0xE400, 0xFC00), (0xE800, 0xFC00), (0xEC00, 0xFC00)]);
    // Three uplinks are ranges, not masks.
    let three = Fabric::build(&Clos::leaf_spine(2, 3, 2, LINK)).unwrap();
    let table = Segments::new(&three, PortRange::ROCE).unwrap().table(&three, SwitchId(0));
    assert_eq!(table.iter().map(|rule| rule.mask()).collect::<Vec<_>>(), [None; 3]);
}

#[test]
fn what_cannot_be_is_said() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 4, 2, LINK)).unwrap();
    let segments = Segments::new(&fabric, PortRange { first: 0xC000, last: 0xC00E }).unwrap();
    let (ports, ends) = (Ports::Segments(segments), Ends::of(HostId(0), HostId(3)));
    let port = |number| ports.port(&fabric, &ends, PathId::new(2, 0), number);
    // 15 ports in four segments: three each, and one too many.
    assert_eq!(
        (0..3).map(|number| port(number).unwrap()).collect::<Vec<_>>(),
        [49158, 49159, 49160]
    );
    let error = port(3).unwrap_err().to_string();
    assert_eq!(
        error,
        "path 2.0 from host-0 to host-3 has 3 of 15 source ports, too few for 4 queue pairs with a \
         port each; use 3 or fewer"
    );
    let error = ports.port(&fabric, &ends, PathId::new(4, 0), 0).unwrap_err().to_string();
    assert_eq!(error, "there is no path 4.0: leaf-0 has 4 hops towards host-3");
    let error = Segments::new(&fabric, PortRange { first: 1, last: 3 }).unwrap_err().to_string();
    assert_eq!(error, "3 source ports cannot be cut into 4 segments, one for each way up");
    // Two tiers that look at the same bits choose hand in hand.
    let tree = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    for (name, function) in HashFunction::NAMED {
        let check = |same_salt| {
            Ports::Hash(PortRange::ROCE, Hashing { function, seed: 7, same_salt }).check(&tree)
        };
        assert_eq!(check(false), Ok(()), "{name}");
        let error = check(true).unwrap_err().to_string();
        assert_eq!(
            error,
            "no source port of 16384 leads from host-0 to host-15 by path 0.1 under this hash; use \
             segments, or another hash",
            "{name}"
        );
    }
}

#[test]
fn schemes_fit_where_their_ports_do() {
    let scheme = |enforce| SchemeConfig::read("ethereal", &[("enforce", enforce)]).unwrap();
    let fits = |enforce, clos: &Clos| scheme(enforce).fits(&Fabric::build(clos).unwrap());
    // Bundles under three tiers have no path ids, but ports.
    let mut clos = Clos::fat_tree(4, LINK);
    clos.leaf_bundle.members = 2;
    assert!(fits("path-id", &clos).is_err());
    assert_eq!((fits("segments", &clos), fits("hash", &clos)), (Ok(()), Ok(())));
    // 150 times 150 ways up are more than there are ports.
    let tiers = Tiers::Three { pods: 2, leaves_per_pod: 1, aggs_per_pod: 150, cores: 150 * 150 };
    let wide = Clos::uniform(tiers, 1, LINK);
    assert!(fits("path-id", &wide).is_ok());
    assert_eq!(
        fits("segments", &wide).unwrap_err().to_string(),
        "16384 source ports cannot be cut into 150 times 150 segments, one for each way up"
    );
    assert_eq!(
        ["path-id", "segments", "hash"].map(|enforce| scheme(enforce).switches()),
        ["route by path id", "policy of source ports", "a hash that hosts know"]
    );
}

#[test]
fn ports_that_a_host_finds_out_lead_where_it_says() {
    for (name, function) in HashFunction::NAMED {
        let hashing = Hashing { function, seed: 3, same_salt: false };
        let ports = Ports::Hash(PortRange::ROCE, hashing);
        for clos in [Clos::leaf_spine(4, 8, 2, LINK), Clos::fat_tree(4, LINK)] {
            let fabric = Fabric::build(&clos).unwrap();
            let (src, dst) = fabric.farthest();
            let mut routes = PathRoutes::new(Enforce::Discovered, src, Some(hashing));
            let set = fabric.path_set(src, dst);
            for path in (0..set.len()).map(|index| set.get(index)) {
                for _ in 0..3 {
                    let route = routes.route(&fabric, dst, path);
                    let Route::Hashed(port) = route else { panic!("{route:?}") };
                    let real = ports.path(&fabric, &Ends::of(src, dst), port);
                    assert_eq!(real, Some(path), "{name}: {port}");
                    assert_eq!(routes.path(&fabric, dst, route), Some(path), "{name}: {port}");
                }
            }
        }
    }
}

/// The same up to the highest switch where links come in bundles: down, a port may take any member.
#[test]
fn ports_that_a_host_finds_out_lead_up_where_it_says() {
    let tiers = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 2, cores: 2 };
    for (leaf, agg) in [(1, 2), (2, 1), (2, 2)] {
        let mut clos = Clos::uniform(tiers, 2, LINK);
        (clos.leaf_bundle.members, clos.agg_bundle.members) = (leaf, agg);
        let fabric = Fabric::build(&clos).unwrap();
        for (src, dst) in (0..8).map(|host| (HostId(host), HostId((host + 5) % 8))) {
            let function = HashFunction::Crc32;
            let hashing = Hashing { function, seed: u64::from(src.0), same_salt: false };
            let ends = Ends::of(src, dst);
            let mut routes = PathRoutes::new(Enforce::Discovered, src, Some(hashing));
            for path in paths(&fabric, &ends) {
                let route = routes.route(&fabric, dst, path);
                let Route::Hashed(port) = route else { panic!("{route:?}") };
                let taken = links_from(&fabric, &ends, port, |switch, tuple, hops| {
                    uplink_of(&hashing.at(&fabric, switch), tuple, hops)
                });
                if let Some(said) = routes.path(&fabric, dst, route) {
                    let (said, up) = (fabric.trace(src, dst, said), fabric.hops(src, dst) / 2);
                    assert_eq!(taken[..up as usize], said[..up as usize], "{ends:?} {port}");
                }
            }
        }
    }
}
