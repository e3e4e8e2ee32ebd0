//! Fabrics checked by hand, and descriptions that are refused.

use weft_fabric::{Bundle, Clos, Fabric, Link, Node, PathId, Tiers};
use weft_units::{HostId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

/// Al-Fares et al. (2008): k^3/4 hosts, 5k^2/4 switches of k ports each, 3k^3/4 links.
#[test]
fn fat_trees_are_the_textbooks() {
    for (k, hosts, switches, links) in [(4, 16, 20, 48), (8, 128, 80, 384)] {
        let fabric = Fabric::build(&Clos::fat_tree(k, LINK)).unwrap();
        assert_eq!(fabric.hosts(), hosts);
        assert_eq!(fabric.switches(), switches);
        assert_eq!(fabric.ports().len() as u32, 2 * links);
        for switch in (0..switches).map(SwitchId) {
            assert_eq!(fabric.ports_of(switch).count, k, "{}", fabric.name(Node::Switch(switch)));
        }
        let across = fabric.path_set(HostId(0), HostId(hosts - 1));
        assert_eq!(across.len(), k * k / 4);
        let in_pod = fabric.path_set(HostId(0), HostId(k / 2));
        assert_eq!(in_pod.len(), k / 2);
    }
}

/// In the fat-tree with k = 4, the path id's bytes name the aggregation switch and the core
/// of its plane.
#[test]
fn a_path_through_a_fat_tree() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let names: Vec<String> = fabric
        .trace(HostId(1), HostId(15), PathId::new(1, 0))
        .into_iter()
        .map(|port| fabric.name(fabric.ports()[port].peer))
        .collect();
    assert_eq!(names, ["leaf-0", "pod-0-agg-1", "core-2", "pod-3-agg-1", "leaf-7", "host-15"]);
}

/// With bundles in two tiers the first byte names spine and member up, the second the member
/// down.
#[test]
fn a_path_through_bundles() {
    let mut clos = Clos::leaf_spine(3, 2, 1, LINK);
    clos.leaf_bundle.members = 4;
    let fabric = Fabric::build(&clos).unwrap();
    let ports = fabric.trace(HostId(0), HostId(2), PathId::new(6, 3));
    let leaf = fabric.ports_of(SwitchId(0)).first.0;
    let spine = fabric.ports_of(SwitchId(4)).first.0;
    assert_eq!(ports[1].0, leaf + 1 + 6, "after one host, uplink 6: spine 1, member 2");
    assert_eq!(ports[2].0, spine + 2 * 4 + 3, "down to leaf 2, member 3");
}

/// The examples beside the picture of a path's two bytes.
#[test]
fn paths_by_number() {
    let mut clos = Clos::leaf_spine(2, 2, 1, LINK);
    clos.leaf_bundle.members = 3;
    let fabric = Fabric::build(&clos).unwrap();
    let set = fabric.path_set(HostId(0), HostId(1));
    assert_eq!((set.len(), set.get(4)), (6, PathId::new(4, 1)));
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let set = fabric.path_set(HostId(0), HostId(15));
    assert_eq!((set.len(), set.get(3)), (4, PathId::new(1, 1)));
    let core = fabric.ports()[fabric.trace(HostId(0), HostId(15), set.get(3))[2]].peer;
    assert_eq!(fabric.name(core), "core-3");
    assert_eq!(fabric.path_set(HostId(0), HostId(1)).get(0), PathId::new(0, 0));
}

/// 1000 bytes at 100 Gb/s take 80 ns, at 400 Gb/s 20 ns; 100 bytes 8 and 2 ns. Four links of
/// 1 us, switches of 300 ns, NICs of 50 ns: 80 + 20 + 20 + 80 + 4000 + 3 * 300 + 50 = 5150 ns
/// there, 8 + 2 + 2 + 8 + 4950 = 4970 ns back.
#[test]
fn the_base_round_trip_by_hand() {
    let mut clos = Clos::leaf_spine(2, 2, 2, LINK);
    clos.leaf_bundle.link.rate = Rate::gbps(400);
    clos.switch_latency = Time::ns(300);
    clos.nic_latency = Time::ns(50);
    let fabric = Fabric::build(&clos).unwrap();
    assert_eq!(fabric.one_way(HostId(0), HostId(3), 1000), Time::ns(5150));
    assert_eq!(fabric.one_way(HostId(3), HostId(0), 100), Time::ns(4970));
    assert_eq!(fabric.base_rtt(1000, 100), Time::ns(10_120));
    assert_eq!(fabric.one_way(HostId(0), HostId(1), 1000), Time::ns(2 * 80 + 2000 + 350));
    assert_eq!(fabric.min_delay(), Time::ns(1050));
}

#[test]
fn bundles_under_three_tiers_have_no_path_ids() {
    for (leaf, agg) in [(2, 1), (1, 2), (4, 4)] {
        let mut clos = Clos::fat_tree(4, LINK);
        clos.leaf_bundle.members = leaf;
        clos.agg_bundle.members = agg;
        let why = Fabric::build(&clos).unwrap().check_path_ids().unwrap_err().to_string();
        assert!(why.contains("bundle") && why.contains("one link of the summed rate"), "{why}");
    }
}

#[test]
fn more_than_256_uplinks_have_no_path_ids() {
    let check = |clos: &Clos| Fabric::build(clos).unwrap().check_path_ids();
    let mut clos = Clos::leaf_spine(2, 64, 1, LINK);
    clos.leaf_bundle.members = 4;
    assert!(check(&clos).is_ok(), "256 fit");
    let fabric = Fabric::build(&clos).unwrap();
    let paths = fabric.path_set(HostId(0), HostId(1));
    assert_eq!(paths.get(255), PathId::new(255, 3));
    clos.leaf_bundle.members = 5;
    let why = check(&clos).unwrap_err().to_string();
    assert!(why.contains("320") && why.contains("256"), "{why}");
    let tiers = Tiers::Three { pods: 2, leaves_per_pod: 1, aggs_per_pod: 1, cores: 257 };
    let why = check(&Clos::uniform(tiers, 1, LINK)).unwrap_err().to_string();
    assert!(why.contains("257"), "{why}");
}

#[test]
fn impossible_fabrics_are_refused_with_the_count() {
    let refused = |clos: Clos| Fabric::build(&clos).unwrap_err().to_string();
    assert!(refused(Clos::leaf_spine(0, 2, 2, LINK)).contains("leaves"));
    assert!(refused(Clos::leaf_spine(2, 0, 2, LINK)).contains("spines"));
    assert!(refused(Clos::leaf_spine(2, 2, 0, LINK)).contains("hosts per leaf"));
    let mut clos = Clos::leaf_spine(2, 2, 2, LINK);
    clos.leaf_bundle = Bundle { link: LINK, members: 0 };
    assert!(refused(clos).contains("members of a leaf bundle"));
    let three = |cores| {
        let tiers = Tiers::Three { pods: 2, leaves_per_pod: 2, aggs_per_pod: 2, cores };
        Clos::uniform(tiers, 2, LINK)
    };
    assert!(refused(three(3)).contains("multiple"));
    assert!(refused(three(0)).contains("multiple"));
    assert!(refused(Clos::leaf_spine(1 << 13, 2, 1 << 13, LINK)).contains("hosts"));
    assert!(refused(Clos::fat_tree(0, LINK)).contains("pods"));
    assert!(refused(Clos::leaf_spine(70_000, 70_000, 1, LINK)).contains("links"));
    let mut clos = Clos::fat_tree(4, LINK);
    clos.agg_bundle.members = u32::MAX;
    assert!(refused(clos).contains("links"));
}
