//! Aggregation trees: whole, over live links, spread.

use std::collections::BTreeSet;
use weft_fabric::topology::{Dragonfly, Group, Torus};
use weft_fabric::{AggregationTree, Clos, Fabric, Link, Node, Tiers, Wiring};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

fn fabric(which: usize) -> Fabric {
    let [host_link, local, global, link] = [LINK; 4];
    let three = Tiers::Three { pods: 3, leaves_per_pod: 2, aggs_per_pod: 2, cores: 4 };
    match which {
        0 => Fabric::build(&Clos::leaf_spine(4, 3, 3, LINK)).unwrap(),
        1 => Fabric::build(&Clos::uniform(three, 2, LINK)).unwrap(),
        2 => Fabric::build(&Clos::leaf_spine(4, 3, 3, LINK)).unwrap().in_planes(2).unwrap(),
        3 => {
            let group = Group::Routers(3);
            let shape =
                Dragonfly { groups: 4, group, hosts: 1, global_ports: 1, host_link, local, global };
            Fabric::of_wiring(shape.wiring().unwrap()).unwrap()
        }
        4 => dual(6),
        _ => {
            let torus = Torus { sizes: vec![3, 4], wraps: true, hosts: 1, host_link, link };
            Fabric::of_wiring(torus.wiring().unwrap()).unwrap()
        }
    }
}

/// Two leaves for each four hosts, and three spines.
fn dual(leaves: u32) -> Fabric {
    let clos = Clos::leaf_spine(leaves, 3, 4, LINK);
    Fabric::of_wiring(Wiring::homed(&clos, 2).unwrap()).unwrap()
}

fn root(tree: &AggregationTree) -> SwitchId {
    let roots: Vec<SwitchId> =
        tree.switches().filter(|(_, branch)| branch.up.is_none()).map(|(root, _)| root).collect();
    assert_eq!(roots.len(), 1, "a tree has one root");
    roots[0]
}

fn tree(fabric: &Fabric, hosts: &[u32], spread: u32) -> AggregationTree {
    let hosts: Vec<HostId> = hosts.iter().map(|host| HostId(*host)).collect();
    AggregationTree::new(fabric, &hosts, spread, &[]).expect("all are linked")
}

#[test]
fn roots_are_as_low_as_they_can_be() {
    let fabric = fabric(1);
    let tier = |hosts: &[u32]| fabric.tier(root(&tree(&fabric, hosts, 0)));
    assert_eq!([tier(&[0, 1]), tier(&[0, 2, 3]), tier(&[0, 4])], [0, 1, 2]);
}

#[test]
fn one_pod_of_three_tiers_needs_no_core() {
    let tiers = Tiers::Three { pods: 1, leaves_per_pod: 2, aggs_per_pod: 2, cores: 2 };
    let fabric = Fabric::build(&Clos::uniform(tiers, 1, LINK)).unwrap();
    assert_eq!([0, 1].map(|spread| fabric.tier(root(&tree(&fabric, &[0, 1], spread)))), [1; 2]);
}

/// Which home's leaf each host of a tree is at.
fn homes(fabric: &Fabric, hosts: &[u32], spread: u32, dead: &[PortId]) -> Option<Vec<u32>> {
    let ids: Vec<HostId> = hosts.iter().map(|host| HostId(*host)).collect();
    let tree = AggregationTree::new(fabric, &ids, spread, dead)?;
    let nics = (0..hosts.len() as u32).map(|place| tree.nic(place).0 / fabric.hosts());
    Some(nics.collect())
}

#[test]
fn trees_take_homes_in_turn_and_leave_dead_ones() {
    let fabric = dual(4);
    let all = [0, 1, 4, 5];
    for spread in 0..4 {
        assert_eq!(homes(&fabric, &all, spread, &[]), Some(vec![spread % 2; 4]));
        let lone = tree(&fabric, &[2, 3], spread);
        assert_eq!(lone.switches().count(), 1, "a leaf adds up for its own hosts");
    }
    // The hosts of a leaf go together, as long as they can.
    let nic = |host, home| fabric.nic_in_plane(HostId(host), home);
    assert_eq!(homes(&fabric, &all, 0, &[nic(1, 0)]), Some(vec![1, 1, 0, 0]));
    assert_eq!(homes(&fabric, &all, 0, &[nic(1, 0), nic(0, 1)]), Some(vec![0, 1, 0, 0]));
    assert_eq!(homes(&fabric, &all, 0, &[nic(1, 0), nic(1, 1)]), None);
    // A leaf without uplinks, whose hosts' links are whole.
    let leaf = fabric.switch_named("leaf-0").unwrap();
    let is_up = |port: &PortId| matches!(fabric.ports()[*port].peer, Node::Switch(_));
    let dead: Vec<PortId> = fabric.ports_of(leaf).ids().filter(is_up).collect();
    assert_eq!(homes(&fabric, &all, 0, &dead), Some(vec![1, 1, 0, 0]));
}

/// Eight rails of servers under one leaf: trees leave it by all its uplinks before they share one.
#[test]
fn trees_take_other_uplinks_in_turn() {
    let fabric = Fabric::build(&Clos::fat_tree(8, LINK)).unwrap();
    let up = |spread| {
        let tree = tree(&fabric, &[0, 64], spread);
        tree.at(SwitchId(0)).and_then(|leaf| leaf.up).expect("the leaf is not the root")
    };
    let ups: BTreeSet<PortId> = (0..4).map(up).collect();
    assert_eq!(ups.len(), 4);
    let roots: BTreeSet<SwitchId> =
        (0..16).map(|spread| root(&tree(&fabric, &[0, 64], spread))).collect();
    assert_eq!(roots.len(), 16);
}

trials! {
    #![cases(300)]

    fn trees_are_whole_and_alive(
        (which, spread, count) in (0..6_usize, any::<u32>(), 2..12_usize),
        order in Just((0..12).collect::<Vec<u32>>()).prop_shuffle(),
        dead in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let fabric = fabric(which);
        let spread = spread / 2;
        let hosts: Vec<HostId> = order[..count].iter().map(|host| HostId(*host)).collect();
        let all: Vec<PortId> = fabric.ports().ids().collect();
        let mut dead: Vec<PortId> = dead.iter().map(|at| all[at.index(all.len())]).collect();
        dead.sort_unstable();
        dead.dedup();
        let Some(tree) = AggregationTree::new(&fabric, &hosts, spread, &dead) else {
            // With all links there is one.
            prop_assert!(!dead.is_empty());
            return Ok(());
        };
        prop_assert!(!tree.uses(&fabric, &dead));
        let root = root(&tree);
        for (place, host) in (0..).zip(&hosts) {
            // From the host up to the root, each switch knows by which port it is below.
            let mut port = tree.nic(place);
            prop_assert_eq!(fabric.ports()[port].owner, Node::Host(*host));
            loop {
                let reverse = fabric.ports()[port].reverse;
                prop_assert!(!dead.contains(&port) && !dead.contains(&reverse));
                let Node::Switch(switch) = fabric.ports()[port].peer else { unreachable!() };
                let branch = tree.at(switch).expect("it is of the tree");
                let child = branch.child_of(place).expect("it is below");
                prop_assert_eq!(branch.down[child as usize], reverse);
                match branch.up {
                    Some(up) => port = up,
                    None => {
                        prop_assert_eq!(switch, root);
                        break;
                    }
                }
            }
        }
        // And nothing else is in it.
        for (_, branch) in tree.switches() {
            prop_assert!(!branch.below.is_empty());
            let places: BTreeSet<u32> = branch.below.iter().map(|(place, _)| *place).collect();
            prop_assert_eq!(places.len(), branch.below.len());
            let mut sizes = vec![0; branch.down.len()];
            branch.below.iter().for_each(|(_, child)| sizes[*child as usize] += 1);
            prop_assert_eq!(&sizes, &branch.sizes);
            prop_assert!(sizes.iter().all(|size| *size > 0));
        }
        prop_assert_eq!(tree.at(root).map(|branch| branch.below.len()), Some(count));
    }
}
