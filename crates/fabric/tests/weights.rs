//! Weights of next hops, by hand, and beside the detours of random failures.

use crate::common::{LINK, any_clos};
use weft_fabric::{Bundle, Clos, Detours, Fabric, LinkChoice, Node, Weights};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, SwitchId};

/// The weights where these links, by name, have so many Gb/s left.
struct Weighing(Fabric, Weights);

impl Weighing {
    fn new(clos: &Clos, links: &[(&str, u64)]) -> Weighing {
        let fabric = Fabric::build(clos).unwrap();
        let named = |(name, gbps): &(&str, u64)| {
            let port = LinkChoice::Named(vec![(*name).to_owned()]).resolve(&fabric, 0).unwrap();
            (port[0], gbps * 1_000_000_000)
        };
        let left: Vec<(PortId, u64)> = links.iter().map(named).collect();
        let weights = Weights::new(&fabric, |id| {
            let known = left.iter().find(|(port, _)| *port == id);
            known.map_or(fabric.ports()[id].rate.as_bps(), |(_, rate)| *rate)
        });
        Weighing(fabric, weights)
    }
    fn of(&self, switch: &str, dst: u32) -> Option<&[u32]> {
        self.1.of(self.0.switch_named(switch).unwrap(), HostId(dst))
    }
}

#[test]
fn links_up_and_down_count_in_a_leaf_spine() {
    // Three leaves of two hosts, four spines.
    let clos = Clos::leaf_spine(3, 4, 2, LINK);
    let left = [("leaf-0 -> spine-1", 50), ("spine-2 -> leaf-1", 25), ("spine-1 -> leaf-1", 75)];
    let weighing = Weighing::new(&clos, &left);
    // To leaf 1 the half up is less than the three quarters down, and then there is the quarter.
    assert_eq!(weighing.of("leaf-0", 2), Some(&[65_536, 32_768, 16_384, 65_536][..]));
    assert_eq!(weighing.of("leaf-0", 4), Some(&[65_536, 32_768, 65_536, 65_536][..]));
    assert_eq!(weighing.of("leaf-2", 3), Some(&[65_536, 49_152, 16_384, 65_536][..]));
    assert_eq!(weighing.of("leaf-2", 0), None, "the way back is as it was");
    assert_eq!(weighing.of("leaf-1", 0), None);
    assert_eq!(weighing.of("spine-2", 2), None, "a single link");
}

#[test]
fn weights_are_relative_and_only_of_what_is_left() {
    let clos = Clos::leaf_spine(2, 3, 1, LINK);
    let names = ["leaf-0 -> spine-0", "leaf-0 -> spine-1", "leaf-0 -> spine-2"];
    let of = |left: [u64; 3]| {
        let left: Vec<_> = names.into_iter().zip(left).collect();
        Weighing::new(&clos, &left).of("leaf-0", 1).map(<[u32]>::to_vec)
    };
    assert_eq!(of([100, 100, 100]), None);
    assert_eq!(of([30, 30, 30]), None);
    assert_eq!(of([0, 30, 30]), None);
    assert_eq!(of([0, 0, 7]), None);
    assert_eq!(of([0, 0, 0]), None);
    assert_eq!(of([30, 0, 60]), Some(vec![32_768, 65_536]));
    assert_eq!(of([30, 90, 60]), Some(vec![21_845, 65_536, 43_691]));
}

/// Every weight is one at least.
#[test]
fn next_to_nothing_is_a_way() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 2, 1, LINK)).unwrap();
    let slow = fabric.next_hops(SwitchId(0), HostId(1)).first;
    let rate = |port| if port == slow { 1 } else { 100_000_000_000 };
    let weights = Weights::new(&fabric, rate);
    assert_eq!(weights.of(SwitchId(0), HostId(1)), Some(&[1, 65_536][..]));
}

#[test]
fn a_spine_without_one_link_of_its_bundle_down_has_half() {
    let clos =
        Clos { leaf_bundle: Bundle { link: LINK, members: 2 }, ..Clos::leaf_spine(2, 2, 4, LINK) };
    let weighing = Weighing::new(&clos, &[("spine-1 -> leaf-1#1", 0)]);
    assert_eq!(weighing.of("leaf-0", 4), Some(&[65_536, 65_536, 32_768, 32_768][..]));
}

/// One of two cores of a plane has lost its link into pod 3, and the other plane is well: a half
/// of what passes through an aggregation switch there is all that it can take.
#[test]
fn planes_with_fewer_cores_carry_less() {
    let clos = Clos::fat_tree(4, LINK);
    let weighing = Weighing::new(&clos, &[("core-0 -> pod-3-agg-0", 0)]);
    for leaf in 0..6 {
        let leaf = format!("leaf-{leaf}");
        assert_eq!(weighing.of(&leaf, 12), Some(&[32_768, 65_536][..]), "{leaf}");
        assert_eq!(weighing.of(&leaf, 15), Some(&[32_768, 65_536][..]), "{leaf}");
        assert_eq!(weighing.of(&leaf, 11), None, "{leaf}: pod 2");
    }
    assert_eq!(weighing.of("leaf-6", 15), None, "within the pod");
    assert_eq!(weighing.of("pod-0-agg-0", 12), None, "there is only one way");
    // It is there, with a quarter.
    let weighing = Weighing::new(&clos, &[("core-0 -> pod-3-agg-0", 25)]);
    assert_eq!(weighing.of("pod-0-agg-0", 12), Some(&[16_384, 65_536][..]));
    assert_eq!(weighing.of("leaf-0", 12), Some(&[40_960, 65_536][..]));
    // A leaf's own link may be less than that.
    let left = [("core-0 -> pod-3-agg-0", 0), ("leaf-1 -> pod-0-agg-0", 20)];
    let weighing = Weighing::new(&clos, &left);
    assert_eq!(weighing.of("leaf-1", 12), Some(&[13_107, 65_536][..]));
    assert_eq!(weighing.of("leaf-1", 2), None, "in its rack there is nothing to choose");
    assert_eq!(weighing.of("leaf-1", 0), Some(&[13_107, 65_536][..]));
}

trials! {
    /// As many weights as there are usable hops, none of them zero, the largest 65536.
    fn weights_fit_the_hops_that_are_left(
        clos in any_clos(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u64..120), 0..12),
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        let mut rates: Vec<u64> = fabric.ports().iter().map(|port| port.rate.as_bps()).collect();
        for (pick, gbps) in &picks {
            rates[pick.index(fabric.ports().len())] = gbps.saturating_sub(20) * 1_000_000_000;
        }
        let dead: Vec<PortId> = fabric.ports().ids().filter(|id| rates[id.0 as usize] == 0).collect();
        let detours = Detours::new(&fabric, &dead);
        let weights = Weights::new(&fabric, |id| rates[id.0 as usize]);
        let mut any = false;
        for switch in (0..fabric.switches()).map(SwitchId) {
            for dst in (0..fabric.hosts()).map(HostId) {
                let Some(list) = weights.of(switch, dst) else { continue };
                any = true;
                let group = fabric.next_hops(switch, dst);
                let left = detours.next_hops(switch, dst).map_or(group.count as usize, <[_]>::len);
                prop_assert_eq!(list.len(), left);
                let (least, most) = (list.iter().min().unwrap(), list.iter().max().unwrap());
                prop_assert!(*least >= 1 && *most == 65_536 && left > 1, "{:?}", list);
                let towards_hosts =
                    group.ids().any(|id| matches!(fabric.ports()[id].peer, Node::Host(_)));
                prop_assert!(!towards_hosts);
            }
        }
        prop_assert_eq!(weights.is_empty(), !any);
    }
}
