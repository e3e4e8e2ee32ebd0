//! Weights of paths, by hand, and beside those of next hops.

use crate::common::{LINK, any_clos};
use weft_fabric::{
    Bundle, Clos, Fabric, LinkChoice, LinkShares, PathId, PathView, PathWeights, Weights,
};
use weft_trial::prelude::*;
use weft_units::{HostId, PortId, SwitchId};

const ALL: u64 = LinkShares::WHOLE;

/// What is known where these links, by name, have so many of 100 Gb/s left.
fn view(fabric: &Fabric, links: &[(&str, u64)]) -> PathView {
    let named = |(name, gbps): &(&str, u64)| {
        let port = LinkChoice::Named(vec![(*name).to_owned()]).resolve(fabric, 0).unwrap();
        (port[0], gbps * 1_000_000_000)
    };
    let left: Vec<(PortId, u64)> = links.iter().map(named).collect();
    PathView::new(LinkShares::new(fabric, |id| {
        let known = left.iter().find(|(port, _)| *port == id);
        known.map_or(fabric.ports()[id].rate.as_bps(), |(_, rate)| *rate)
    }))
}
/// The weights of all paths from host to host.
fn list(view: &PathView, fabric: &Fabric, src: u32, dst: u32) -> Vec<u64> {
    view.weights(fabric, HostId(src), HostId(dst)).iter().map(|(_, weight)| weight).collect()
}

#[test]
fn the_worse_of_the_links_up_and_down() {
    let fabric = Fabric::build(&Clos::leaf_spine(3, 4, 2, LINK)).unwrap();
    let left = [("leaf-0 -> spine-1", 50), ("spine-2 -> leaf-1", 25), ("spine-1 -> leaf-1", 75)];
    let view = view(&fabric, &left);
    assert_eq!(list(&view, &fabric, 0, 2), [ALL, ALL / 2, ALL / 4, ALL]);
    assert_eq!(list(&view, &fabric, 1, 4), [ALL, ALL / 2, ALL, ALL]);
    assert_eq!(list(&view, &fabric, 4, 3), [ALL, ALL / 4 * 3, ALL / 4, ALL]);
    assert_eq!(list(&view, &fabric, 4, 0), [ALL; 4], "the way back is as it was");
    assert_eq!(list(&view, &fabric, 0, 1), [1], "within the rack");
    assert!(!view.is_plain());
}

#[test]
fn dead_paths_have_none_and_the_least_is_something() {
    let fabric = Fabric::build(&Clos::leaf_spine(2, 3, 1, LINK)).unwrap();
    let dead = ["leaf-0 -> spine-0", "leaf-0 -> spine-1", "leaf-0 -> spine-2"];
    let known = view(&fabric, &[(dead[0], 0), (dead[1], 30)]);
    let weights = list(&known, &fabric, 0, 1);
    assert_eq!((weights[0], weights[2]), (0, ALL));
    assert!(weights[1].abs_diff(ALL / 10 * 3) < 8);
    let all = view(&fabric, &dead.map(|name| (name, 0)));
    assert_eq!(list(&all, &fabric, 0, 1), [1; 3], "there has to be a way");
    let slow = fabric.next_hops(SwitchId(0), HostId(1)).first;
    let rate = |port| if port == slow { 1 } else { 100_000_000_000 };
    let view = PathView::new(LinkShares::new(&fabric, rate));
    assert_eq!(list(&view, &fabric, 0, 1), [1, ALL, ALL]);
}

#[test]
fn members_of_a_bundle_count_by_themselves() {
    let clos =
        Clos { leaf_bundle: Bundle { link: LINK, members: 2 }, ..Clos::leaf_spine(2, 2, 4, LINK) };
    let fabric = Fabric::build(&clos).unwrap();
    // A path id names the member down too: unlike a hop, the path by the other one is whole.
    let view = view(&fabric, &[("spine-1 -> leaf-1#1", 0), ("leaf-0 -> spine-0#1", 40)]);
    let weights = list(&view, &fabric, 0, 4);
    assert_eq!((weights[0], weights[2], weights[3]), (ALL, ALL, 0));
    assert!(weights[1].abs_diff(ALL / 10 * 4) < 8);
}

/// A plane has no more than its links at both leaves, and shares that by what its cores have.
#[test]
fn planes_share_their_ends() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    // Host 0 is below leaf 0 of pod 0, host 12 below leaf 6 of pod 3; two planes of two cores.
    let core = view(&fabric, &[("core-0 -> pod-3-agg-0", 50)]);
    assert_eq!(list(&core, &fabric, 0, 12), [ALL / 2, ALL, ALL, ALL]);
    let plane = view(&fabric, &[("core-0 -> pod-3-agg-0", 50), ("leaf-0 -> pod-0-agg-0", 50)]);
    // 1.5 of 2 between, 1 of 2 at the end: two thirds of either.
    assert_eq!(list(&plane, &fabric, 0, 12), [ALL / 3, ALL / 3 * 2, ALL, ALL]);
    let last = view(&fabric, &[("pod-3-agg-1 -> leaf-6", 25)]);
    assert_eq!(list(&last, &fabric, 0, 12), [ALL, ALL, ALL / 4, ALL / 4]);
    assert_eq!(list(&last, &fabric, 0, 14), [ALL; 4], "another leaf");
    assert_eq!(list(&last, &fabric, 14, 12), [ALL, ALL / 4], "within the pod");
}

#[test]
fn weights_may_be_given() {
    let fabric = Fabric::build(&Clos::leaf_spine(3, 2, 2, LINK)).unwrap();
    let mut view = view(&fabric, &[]);
    assert!(view.is_plain());
    let paths = [PathId::new(0, 0), PathId::new(1, 0)];
    view.give((0, 1), PathWeights::new([(paths[0], 3), (paths[1], 1)]));
    assert!(!view.is_plain());
    assert_eq!(list(&view, &fabric, 1, 3), [3, 1]);
    assert_eq!(list(&view, &fabric, 1, 4), [1, 1]);
    assert_eq!(list(&view, &fabric, 3, 1), [1, 1]);
    let weights = view.weights(&fabric, HostId(0), HostId(2));
    assert_eq!(weights.among(&paths[1..]).iter().collect::<Vec<_>>(), [(paths[1], 1)]);
    // Huge ones are scaled, and nothing is lost of what is not zero.
    let huge = PathWeights::new([(paths[0], u64::MAX), (paths[1], 1)]);
    assert_eq!(huge.iter().map(|(_, weight)| weight).collect::<Vec<_>>(), [ALL * 2 - 1, 1]);
    assert_eq!(huge.pick(0), Some(paths[0]));
    assert_eq!(huge.pick(u64::MAX), Some(paths[1]));
    assert_eq!(PathWeights::new([]).pick(5), None);
    assert_eq!(PathWeights::new([(paths[0], 0), (paths[1], 7)]).pick(0), Some(paths[1]));
}

/// The fullest link between switches, over the least that any way to spread can have: each leaf
/// sends one of its traffic to each other leaf, over what it and they have left.
fn fullest(view: &PathView, fabric: &Fabric) -> f64 {
    let left = |id: PortId| view.links().of(id) as f64 / ALL as f64;
    let hosts = fabric.hosts_per_leaf().expect("all alike");
    let mut loads = vec![0.0; fabric.ports().len()];
    for (src, dst) in (0..fabric.leaves()).flat_map(|s| (0..fabric.leaves()).map(move |d| (s, d))) {
        let (src, dst) = (HostId(src * hosts), HostId(dst * hosts));
        let weights = view.weights(fabric, src, dst);
        for (path, weight) in weights.iter().filter(|_| src != dst) {
            let ports = fabric.trace(src, dst, path);
            for port in &ports[1..ports.len() - 1] {
                loads[port.0 as usize] += weight as f64 / weights.sum() as f64;
            }
        }
    }
    let fill = |(id, load): (usize, &f64)| load / left(PortId(id as u32));
    let fullest = loads.iter().enumerate().map(fill).fold(0.0, f64::max);
    // All that a leaf sends must go up its links.
    let up = |leaf: u32| {
        let ups = fabric.next_hops(SwitchId(leaf), HostId((leaf + 1) % fabric.leaves() * hosts));
        f64::from(fabric.leaves() - 1) / ups.ids().map(left).sum::<f64>()
    };
    fullest / (0..fabric.leaves()).map(up).fold(0.0, f64::max)
}

/// One to three slow links a leaf, both directions: paths by themselves leave a link up to a fifth
/// too full, all together a hundredth.
#[test]
fn evened_weights_fill_links_alike() {
    let clos = Clos::leaf_spine(8, 16, 1, LINK);
    let fabric = Fabric::build(&clos).unwrap();
    for (count, gbps) in [(1, 25), (2, 10), (3, 10)] {
        let slow: Vec<String> = (0..8u32)
            .flat_map(|leaf| (0..count).map(move |n| (leaf, (leaf * 5 + n * 3) % 16)))
            .flat_map(|(leaf, spine)| {
                [format!("leaf-{leaf} -> spine-{spine}"), format!("spine-{spine} -> leaf-{leaf}")]
            })
            .collect();
        let slow: Vec<(&str, u64)> = slow.iter().map(|name| (name.as_str(), gbps)).collect();
        let alone = view(&fabric, &slow);
        let even = alone.clone().evened(&fabric);
        let (alone, even) = (fullest(&alone, &fabric), fullest(&even, &fabric));
        assert!(alone > 1.04 && even < 1.01, "{count}: {alone} {even}");
    }
    // Nothing to even out; and dead links stay dead.
    let whole = view(&fabric, &[]);
    assert_eq!(whole.clone().evened(&fabric), whole);
    let dead = view(&fabric, &[("leaf-0 -> spine-3", 0)]).evened(&fabric);
    assert_eq!(list(&dead, &fabric, 0, 1).iter().filter(|weight| **weight == 0).count(), 1);
}

#[test]
fn evened_weights_in_three_tiers() {
    let fabric = Fabric::build(&Clos::fat_tree(4, LINK)).unwrap();
    let slow: Vec<String> = (0..4)
        .flat_map(|pod| {
            let core = [0, 1, 3, 2][pod];
            let agg = core / 2;
            [
                format!("core-{core} -> pod-{pod}-agg-{agg}"),
                format!("pod-{pod}-agg-{agg} -> core-{core}"),
            ]
        })
        .collect();
    let slow: Vec<(&str, u64)> = slow.iter().map(|name| (name.as_str(), 50)).collect();
    let view = view(&fabric, &slow);
    let even = view.clone().evened(&fabric);
    assert!(fullest(&even, &fabric) < fullest(&view, &fabric));
}

trials! {
    /// A path has a weight if all its links are alive, whichever way it is weighed.
    fn dead_and_alive(
        clos in any_clos(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u64..3), 1..12),
    ) {
        let fabric = Fabric::build(&clos).unwrap();
        prop_assume!(fabric.check_path_ids().is_ok());
        let mut rates: Vec<u64> = fabric.ports().iter().map(|port| port.rate.as_bps()).collect();
        for (pick, gbps) in &picks {
            rates[pick.index(fabric.ports().len())] = gbps * 1_000_000_000;
        }
        let view = PathView::new(LinkShares::new(&fabric, |id| rates[id.0 as usize]));
        let even = view.clone().evened(&fabric);
        for (src, dst) in (0..fabric.hosts()).flat_map(|s| (0..fabric.hosts()).map(move |d| (s, d))) {
            let (src, dst) = (HostId(src), HostId(dst));
            if fabric.leaf_of(src) == fabric.leaf_of(dst) {
                continue;
            }
            let lives = |path| {
                let ports = fabric.trace(src, dst, path);
                ports[1..ports.len() - 1].iter().all(|port| rates[port.0 as usize] > 0)
            };
            for weights in [view.weights(&fabric, src, dst), even.weights(&fabric, src, dst)] {
                let is_cut = !weights.iter().any(|(path, _)| lives(path));
                for (path, weight) in weights.iter() {
                    prop_assert_eq!(weight > 0, lives(path) || is_cut, "{:?}", weights);
                }
                prop_assert_eq!(weights.iter().len(), fabric.path_set(src, dst).len() as usize);
            }
        }
    }

    /// In two tiers without bundles a path is a next hop, and has its weight.
    fn in_two_tiers_they_are_those_of_next_hops(
        (leaves, spines) in (2u32..5, 1u32..6),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u64..101), 0..8),
    ) {
        let fabric = Fabric::build(&Clos::leaf_spine(leaves, spines, 1, LINK)).unwrap();
        let mut rates: Vec<u64> = fabric.ports().iter().map(|port| port.rate.as_bps()).collect();
        for (pick, gbps) in &picks {
            rates[pick.index(fabric.ports().len())] = gbps * 1_000_000_000;
        }
        let shares = LinkShares::new(&fabric, |id| rates[id.0 as usize]);
        let hops = Weights::by_shares(&fabric, &shares);
        let view = PathView::new(shares);
        for (src, dst) in (0..leaves).flat_map(|src| (0..leaves).map(move |dst| (src, dst))) {
            if src == dst {
                continue;
            }
            let mut paths = list(&view, &fabric, src, dst);
            paths.retain(|weight| *weight > 0);
            match hops.of(SwitchId(src), HostId(dst)) {
                None => prop_assert!(paths.iter().all(|weight| *weight == paths[0])),
                Some(hops) => {
                    let most = *paths.iter().max().unwrap();
                    let scaled = paths.iter().map(|w| ((w * 65_536 + most / 2) / most).max(1) as u32);
                    prop_assert_eq!(scaled.collect::<Vec<_>>(), hops);
                }
            }
        }
    }
}
