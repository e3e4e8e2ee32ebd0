//! Rails that never meet: numbers, names, paths and who reaches whom.

use weft_fabric::{Clos, Fabric, Link, Node, Pxn, RelayAt, Relays, Tiers};
use weft_units::{HostId, Rate, SwitchId, Time};

const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };

fn rails(rails: u32, leaves: u32, spines: u32, hosts: u32) -> Result<Fabric, String> {
    let tiers = Tiers::Rails { rails, leaves, spines };
    Fabric::build(&Clos::uniform(tiers, hosts, LINK)).map_err(|error| error.0)
}

#[test]
fn a_rail_is_a_leaf_spine_of_its_own() {
    let fabric = rails(3, 2, 4, 5).unwrap();
    let alone = Fabric::build(&Clos::leaf_spine(2, 4, 5, LINK)).unwrap();
    assert_eq!((fabric.hosts(), fabric.leaves(), fabric.switches()), (30, 6, 18));
    assert_eq!(
        (fabric.rails(), alone.rails(), fabric.tiers(), fabric.pods()),
        (Some(3), None, 2, 3)
    );
    assert_eq!(fabric.links().count(), 3 * alone.links().count());
    let name = |switch| fabric.name(Node::Switch(SwitchId(switch)));
    assert_eq!(
        [3, 4, 6, 17].map(name),
        ["rail-1-leaf-1", "rail-2-leaf-0", "rail-0-spine-0", "rail-2-spine-3"]
    );
    for rail in 0..3 {
        for (src, dst) in (0..10).flat_map(|src| (0..10).map(move |dst| (src, dst))) {
            let here = [src, dst].map(|host| HostId(rail * 10 + host));
            let there = [src, dst].map(HostId);
            assert_eq!(fabric.hops(here[0], here[1]), alone.hops(there[0], there[1]));
            let paths = fabric.path_set(here[0], here[1]);
            let others = alone.path_set(there[0], there[1]);
            assert_eq!(paths.len(), others.len());
            for path in (0..paths.len()).filter(|_| src != dst) {
                assert_eq!(paths.get(path), others.get(path));
                let ways = fabric.trace(here[0], here[1], paths.get(path));
                let mut switches =
                    ways.iter().filter_map(|port| match fabric.ports()[*port].peer {
                        Node::Switch(switch) => Some(switch),
                        Node::Host(_) => None,
                    });
                assert!(switches.all(|switch| fabric.pod_of_switch(switch) == Some(rail)));
            }
        }
    }
    assert!(fabric.reaches(HostId(10), HostId(19)) && !fabric.reaches(HostId(9), HostId(10)));
    assert!(alone.reaches(HostId(0), HostId(9)));
    assert_eq!(fabric.base_rtt(1_000, 60), alone.base_rtt(1_000, 60));
}

#[test]
fn a_rail_may_be_one_leaf() {
    let fabric = rails(4, 1, 0, 8).unwrap();
    assert_eq!((fabric.hosts(), fabric.switches(), fabric.links().count()), (32, 4, 32));
    assert_eq!(fabric.hops(HostId(8), HostId(15)), 2);
    assert!(!fabric.is_oversubscribed() && !fabric.reaches(HostId(7), HostId(8)));
    assert!(rails(4, 2, 0, 8).unwrap_err().contains("spines"));
}

#[test]
fn relays_are_the_gpus_of_the_other_rail() {
    // Two servers of four GPUs, two on each NIC; ranks are on GPUs in reverse.
    let nics: Vec<HostId> = [0, 0, 2, 2, 1, 1, 3, 3].map(HostId).to_vec();
    let gpus: Vec<u32> = (0..8).rev().collect();
    let hosts: Vec<HostId> = gpus.iter().map(|gpu| nics[*gpu as usize]).collect();
    let relays = |at| {
        let pxn = Pxn { at, chunk: 1 };
        Relays { pxn, per_server: 4, per_nic: 2, nics: nics.clone(), gpus: gpus.clone() }
    };
    let (source, destination) = (relays(RelayAt::Source), relays(RelayAt::Destination));
    // Rank 7 is on GPU 0, rank 0 on GPU 7: GPU 3 is beside the one, GPU 4 beside the other.
    assert_eq!((source.between(7, 0), destination.between(7, 0)), (Some(3), Some(4)));
    assert_eq!((source.at_destination(7, 0), destination.at_source(7, 0)), (None, None));
    let ends = |relays| Relays::ends(relays, &hosts, 7, 0);
    assert_eq!(ends(Some(&source)), (HostId(2), HostId(3)));
    assert_eq!(ends(Some(&destination)), (HostId(0), HostId(1)));
    assert_eq!(ends(None), (HostId(0), HostId(3)));
    // GPU 1 and GPU 4 share a rail, though not a place.
    assert_eq!(source.between(6, 3), None);
}
