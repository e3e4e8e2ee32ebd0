//! Detours against a search of all up-down paths, on random fabrics with random dead links.

use crate::common::{LINK, any_clos};
use weft_fabric::{Clos, Detours, Fabric, LinkChoice, Node, PathId};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, SwitchId};

/// Whether any path of next hops from `node` to `dst` has no dead link: every path is tried.
/// The link to the host itself is not looked at.
fn some_path_lives(fabric: &Fabric, dead: &[PortId], node: Node, dst: HostId) -> bool {
    let Node::Switch(switch) = node else { return true };
    fabric.next_hops(switch, dst).ids().any(|port| {
        let peer = fabric.ports()[port].peer;
        (matches!(peer, Node::Host(_)) || !dead.contains(&port))
            && some_path_lives(fabric, dead, peer, dst)
    })
}

fn check(fabric: &Fabric, dead: &[PortId]) -> Result<(), TestCaseError> {
    let detours = Detours::new(fabric, dead);
    let mut exceptions = false;
    for switch in (0..fabric.switches()).map(SwitchId) {
        for dst in (0..fabric.hosts()).map(HostId) {
            let all: Vec<PortId> = fabric.next_hops(switch, dst).ids().collect();
            let usable: Vec<PortId> = all
                .iter()
                .copied()
                .filter(|port| {
                    let peer = fabric.ports()[*port].peer;
                    matches!(peer, Node::Host(_))
                        || (!dead.contains(port) && some_path_lives(fabric, dead, peer, dst))
                })
                .collect();
            let told = detours.next_hops(switch, dst);
            exceptions |= told.is_some();
            for (member, own) in all.iter().enumerate() {
                let path = PathId::new(member as u8, 0);
                let (port, _) = fabric.pinned_hop(switch, dst, path, told).expect("a Clos has one");
                let peer = |port: PortId| fabric.ports()[port].peer;
                let beside = usable.iter().any(|other| peer(*other) == peer(*own));
                match beside && !usable.contains(own) {
                    true => prop_assert!(usable.contains(&port) && peer(port) == peer(*own)),
                    false => prop_assert_eq!(port, *own),
                }
            }
            if usable == all {
                prop_assert_eq!(told, None, "{:?} to {:?}", switch, dst);
            } else {
                prop_assert_eq!(told, Some(&usable[..]), "{:?} to {:?}", switch, dst);
            }
        }
    }
    prop_assert_eq!(detours.is_empty(), !exceptions);
    Ok(())
}

trials! {
    #![cases(256)]

    fn detours_are_the_paths_that_live(
        clos in any_clos(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        all_but in any::<bool>(),
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let picked: Vec<PortId> =
            picks.iter().map(|pick| PortId(pick.index(fabric.ports().len()) as u32)).collect();
        if all_but {
            let rest = fabric.ports().ids().filter(|port| !picked.contains(port)).collect::<Vec<_>>();
            check(&fabric, &rest)?;
        }
        check(&fabric, &picked)?;
    }
}

/// In a fat-tree with k = 4, core-0 loses its link into pod 3: it can reach no leaf there, so
/// the aggregation switches of its plane avoid it, in every other pod; leaves see nothing.
#[test]
fn a_core_without_a_way_down_is_avoided() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let dead = LinkChoice::Named(vec!["core-0 -> pod-3-agg-0".into()]).resolve(&fabric, 0).unwrap();
    let detours = Detours::new(&fabric, &dead);
    let names = |switch: &str, dst| {
        let switch = fabric.switch_named(switch).unwrap();
        let hops = detours.next_hops(switch, HostId(dst))?;
        Some(hops.iter().map(|port| fabric.port_name(*port)).collect::<Vec<_>>())
    };
    assert_eq!(names("core-0", 15), Some(vec![]));
    for pod in 0..3 {
        let agg = format!("pod-{pod}-agg-0");
        assert_eq!(names(&agg, 12), Some(vec![format!("{agg} -> core-1")]));
        assert_eq!(names(&agg, 11), None, "pod 2 is as usual");
        assert_eq!(names(&format!("pod-{pod}-agg-1"), 12), None);
    }
    assert_eq!(names("pod-3-agg-0", 0), None, "the way up is alive");
    assert_eq!(names("leaf-0", 15), None);
}

/// With both cores of a plane cut off from the pod, leaves avoid the plane.
#[test]
fn a_plane_without_a_way_down_is_avoided_by_leaves() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let cut = ["core-0 -> pod-3-agg-0", "core-1 -> pod-3-agg-0"].map(str::to_owned).to_vec();
    let dead = LinkChoice::Named(cut).resolve(&fabric, 0).unwrap();
    let detours = Detours::new(&fabric, &dead);
    let leaf = fabric.switch_named("leaf-0").unwrap();
    let hops = detours.next_hops(leaf, HostId(15)).unwrap();
    assert_eq!(hops.len(), 1);
    assert_eq!(fabric.port_name(hops[0]), "leaf-0 -> pod-0-agg-1");
    assert_eq!(detours.next_hops(leaf, HostId(3)), None);
}
