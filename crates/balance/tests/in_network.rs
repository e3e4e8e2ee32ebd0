//! The schemes in switches that CTCCL (2025) and ParaLet (2024) compare with, step by step.

use crate::common::switch::{
    LINK, Queues, counts, empty, is_even, named, packet, queues, switch, switch_of, take,
};
use weft_balance::Switching;
use weft_balance::forward::{Hops, Passing};
use weft_balance::scheme::SchemeConfig;
use weft_units::{HostId, PortId, Time};

mod drill {
    use super::*;

    /// So many hops, all with a queue of `other` bytes but for the first.
    fn one_differs(first: u64, other: u64) -> Queues {
        let mut list = vec![other; 8];
        list[0] = first;
        queues(&list)
    }
    fn drill(samples: &str, memory: &str) -> Switching {
        named("drill", &[("samples", samples), ("memory", memory)])
    }

    #[test]
    fn samples_are_different_hops() {
        // The best of eight is among two of them in a quarter of all cases; among two that may be
        // the same, in fifteen of 64.
        let taken = take(&mut drill("2", "0"), 100_000, &one_differs(0, 9));
        let counts = counts(&taken, 8);
        assert!(counts[0].abs_diff(25_000) < 4 * 137, "{counts:?}");
        assert!(is_even(&counts[1..]), "{counts:?}");
        // The worst is never chosen, nor any but the best of all.
        assert!(!take(&mut drill("2", "0"), 10_000, &one_differs(9, 0)).contains(&0));
        assert!(
            take(&mut drill("8", "0"), 1_000, &queues(&[3, 2, 1, 2, 3])).iter().all(|h| *h == 2)
        );
        assert!(take(&mut drill("64", "3"), 1_000, &queues(&[3, 2])).iter().all(|h| *h == 1));
    }

    #[test]
    fn of_equal_ones_the_remembered_is_taken() {
        assert!(is_even(&counts(&take(&mut drill("2", "0"), 80_000, &empty(8)), 8)));
        let first = |seed| {
            let scheme = SchemeConfig::read("drill", &[]).unwrap();
            let taken = take(&mut switch(&scheme, 3, seed), 50, &empty(8));
            assert!(taken.iter().all(|hop| *hop == taken[0]), "{taken:?}");
            taken[0]
        };
        assert!(is_even(&counts(&(0..4_000).map(first).collect::<Vec<_>>(), 8)));
    }

    #[test]
    fn the_winner_is_remembered() {
        let mut switching = drill("1", "1");
        let taken = take(&mut switching, 200, &one_differs(0, 9));
        // Found by chance once, and never left.
        let found = taken.iter().position(|hop| *hop == 0).expect("one of eight in 200");
        assert!(taken[found..].iter().all(|hop| *hop == 0), "{taken:?}");
        // Now it is the longest: another one, and that is kept.
        let mut next = 0;
        while next == 0 {
            next = take(&mut switching, 1, &one_differs(20, 9))[0];
        }
        assert_eq!(take(&mut switching, 50, &one_differs(20, 9)), [next; 50]);
    }

    #[test]
    fn several_are_remembered() {
        let mut switching = drill("1", "2");
        let taken = take(&mut switching, 500, &queues(&[5, 9, 9, 4, 9, 9, 9, 9]));
        assert_eq!(taken[499], 3);
        // The second best is known, too, and whatever is drawn beside it is worse.
        assert_eq!(take(&mut switching, 1, &queues(&[5, 9, 9, 8, 9, 9, 9, 9])), [0]);
    }

    /// The hop of the first packet to another host, another set of hops, or fewer of them, after
    /// one has been remembered; in many switches.
    fn others(options: &[(&str, &str)], then: fn() -> (HostId, Queues)) -> Vec<(u32, u32)> {
        let scheme = SchemeConfig::read("drill", options).unwrap();
        let of = |seed| {
            let mut switching = switch(&scheme, 3, seed);
            let first = take(&mut switching, 3, &empty(8))[2];
            let (dst, hops) = then();
            (first, switching.choose(&Passing { dst, ..packet(Time::ZERO, 0) }, &hops))
        };
        (0..4_000).map(of).collect()
    }
    fn is_new(list: &[(u32, u32)]) -> bool {
        let cells: Vec<u32> = list.iter().map(|(first, other)| first * 8 + other).collect();
        is_even(&counts(&cells, 64))
    }
    fn is_kept(list: &[(u32, u32)]) -> bool {
        list.iter().all(|(first, other)| first == other)
    }

    #[test]
    fn memory_belongs_to_hops_or_destinations() {
        let per_host = [("memory_per", "destination")];
        let other_host = || (HostId(6), empty(8));
        let other_hops = || (HostId(5), Queues { group: 1, ..empty(8) });
        assert!(is_kept(&others(&[], other_host)) && is_new(&others(&[], other_hops)));
        assert!(is_new(&others(&per_host, other_host)) && is_kept(&others(&per_host, other_hops)));
    }

    #[test]
    fn fewer_hops_are_others() {
        let list = others(&[], || (HostId(5), empty(7)));
        let hops: Vec<u32> = list.iter().map(|(_, hop)| *hop).collect();
        assert!(is_even(&counts(&hops, 7)));
    }
}

mod letflow {
    use super::*;

    /// The hops of packets of a flow that come so much after each other.
    fn every(after: Time, packets: u64, queued: &[u64]) -> Vec<u32> {
        let mut switching = named("letflow", &[("gap", "50us")]);
        let hop = |n| switching.choose(&packet(after * n, 1), &queues(queued));
        (0..packets).map(hop).collect()
    }

    #[test]
    fn within_the_gap_a_flow_stays_and_after_it_any_hop_will_do() {
        for queued in [[0; 8], [0, 9, 9, 9, 9, 9, 9, 9]] {
            let close = every(Time::us(50), 1_000, &queued);
            assert!(close.iter().all(|hop| *hop == close[0]), "a gap is longer than 50 us");
            // The same again, too, and whatever the queues are.
            let far = every(Time::us(50) + Time::ps(1), 64_001, &queued);
            assert!(is_even(&counts(&far, 8)));
            let pairs = far.windows(2).map(|pair| pair[0] * 8 + pair[1]).collect::<Vec<_>>();
            assert!(is_even(&counts(&pairs, 64)));
        }
    }

    #[test]
    fn flows_have_gaps_of_their_own() {
        let mut switching = named("letflow", &[]);
        let mut first = vec![];
        // A packet of each of 1000 flows every 100 us, the flows a nanosecond apart.
        for turn in 0..3 {
            for flow in 0..1_000 {
                let now = Time::us(100) * turn + Time::ns(flow);
                let hop = switching.choose(&packet(now, flow), &empty(4));
                match turn {
                    0 => first.push(hop),
                    _ => assert_eq!(hop, first[flow as usize], "flow {flow} in turn {turn}"),
                }
            }
        }
        assert!(is_even(&counts(&first, 4)));
        // Of fewer hops they are placed anew.
        let now = Time::us(201);
        let moved = (0..1_000).map(|flow| switching.choose(&packet(now, flow), &empty(3)));
        let moved: Vec<u32> = moved.collect();
        assert!(is_even(&counts(&moved, 3)));
    }
}

mod path_pinning {
    use super::*;
    use weft_fabric::{Bundle, Clos, Fabric, Node, PortGroup, Tiers};
    use weft_units::{PortId, SwitchId};

    fn scheme(failover: &str) -> SchemeConfig {
        SchemeConfig::read("path-pinning", &[("failover", failover)]).unwrap()
    }
    fn to(dst: u32, hashed: u32) -> Passing {
        Passing { dst: HostId(dst), hashed, ..packet(Time::ZERO, 0) }
    }

    /// Hops of which some have failed: the places of those that are left.
    struct Left(Vec<u32>, u32);

    impl Hops for Left {
        fn count(&self) -> u32 {
            self.0.len() as u32
        }
        fn queued(&self, _: u32) -> u64 {
            0
        }
        fn port(&self, hop: u32) -> PortId {
            PortId(self.group() + hop)
        }
        fn group(&self) -> u32 {
            self.0[0]
        }
        fn places(&self) -> u32 {
            self.1
        }
        fn place(&self, hop: u32) -> u32 {
            self.0[hop as usize]
        }
        fn weights(&self) -> Option<&[u32]> {
            None
        }
    }

    #[test]
    fn the_place_in_the_rack_says_which_uplink() {
        let fabric = Fabric::build(&Clos::leaf_spine(3, 4, 6, LINK)).unwrap();
        for failover in ["modulo", "hash"] {
            let mut leaf = switch_of(&fabric, &scheme(failover), 0, 1);
            let hops: Vec<u32> = (6..18).map(|dst| leaf.choose(&to(dst, 3), &empty(4))).collect();
            assert_eq!(hops, [0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0, 1]);
        }
    }

    #[test]
    fn failed_hops_are_replaced_as_told() {
        let fabric = Fabric::build(&Clos::leaf_spine(3, 4, 6, LINK)).unwrap();
        // The second of four uplinks is gone.
        let left = Left(vec![0, 2, 3], 4);
        let places = |failover: &str| {
            let mut leaf = switch_of(&fabric, &scheme(failover), 0, 1);
            let hop = |dst| left.place(leaf.choose(&to(dst, 2), &left));
            (6..12).map(hop).collect::<Vec<_>>()
        };
        assert_eq!(places("modulo"), [0, 2, 3, 0, 2, 3]);
        // Those of place 1 go where the hash says: by the third that is left.
        assert_eq!(places("hash"), [0, 3, 2, 3, 0, 3]);
    }

    /// The links of an all-to-all between racks, and how many pairs each carries.
    fn loads(fabric: &Fabric) -> Vec<u32> {
        let scheme = scheme("modulo");
        let mut switches: Vec<Switching> =
            (0..fabric.switches()).map(|id| switch_of(fabric, &scheme, id, 1)).collect();
        let mut loads = vec![0; fabric.ports().len()];
        let hosts = 0..fabric.hosts();
        for (src, dst) in hosts.clone().flat_map(|src| hosts.clone().map(move |dst| (src, dst))) {
            if fabric.leaf_of(HostId(src)) == fabric.leaf_of(HostId(dst)) {
                continue;
            }
            let mut port = fabric.nic(HostId(src));
            while let Node::Switch(SwitchId(id)) = fabric.ports()[port].peer {
                let PortGroup { first, count } = fabric.next_hops(SwitchId(id), HostId(dst));
                let hop = switches[id as usize].choose(&to(dst, 0), &empty(count as usize));
                port = PortId(first.0 + hop);
                loads[port.0 as usize] += 1;
            }
        }
        loads
    }

    /// Every link of a tier carries as many pairs as any other, if racks divide by uplinks.
    #[test]
    fn all_to_all_is_in_balance() {
        let bundles = Bundle { link: LINK, members: 2 };
        let two = Clos { leaf_bundle: bundles, ..Clos::leaf_spine(3, 2, 8, LINK) };
        let tiers = Tiers::Three { pods: 3, leaves_per_pod: 4, aggs_per_pod: 2, cores: 4 };
        let three = Clos { leaf_bundle: bundles, ..Clos::uniform(tiers, 4, LINK) };
        let wide = Clos { agg_bundle: bundles, ..Clos::uniform(tiers, 4, LINK) };
        for clos in [two, three, wide, Clos::fat_tree(4, LINK), Clos::fat_tree(6, LINK)] {
            let fabric = Fabric::build(&clos).unwrap();
            let loads = loads(&fabric);
            let tier = |node| match node {
                Node::Host(_) => 9,
                Node::Switch(id) => fabric.tier(id),
            };
            for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
                let of_tier = fabric
                    .ports()
                    .enumerate()
                    .filter(|(_, port)| (tier(port.owner), tier(port.peer)) == (from, to));
                let loads: Vec<u32> = of_tier.map(|(id, _)| loads[id.0 as usize]).collect();
                assert!(loads.iter().all(|load| *load == loads[0] && *load > 0), "{loads:?}");
            }
        }
    }
}

mod wcmp {
    use super::*;
    use weft_balance::hash;
    use weft_trial::prelude::*;

    /// Hops of these weights; `None`: four that are alike.
    struct Weighted(Option<Vec<u32>>);

    impl Hops for Weighted {
        fn count(&self) -> u32 {
            self.0.as_ref().map_or(4, |weights| weights.len() as u32)
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
            self.count()
        }
        fn place(&self, hop: u32) -> u32 {
            hop
        }
        fn weights(&self) -> Option<&[u32]> {
            self.0.as_deref()
        }
    }

    fn choose(hash: u32, hops: &Weighted) -> u32 {
        let hashed = hash::below(hash, hops.count());
        named("wcmp", &[]).choose(&Passing { hash, hashed, ..packet(Time::ZERO, 0) }, hops)
    }

    #[test]
    fn hops_get_their_share_of_all_hashes() {
        let hops = Weighted(Some(vec![16_384, 65_536, 1, 47_615]));
        let taken: Vec<u32> = (0..1 << 20).map(|n| choose(n << 12, &hops)).collect();
        let counts = counts(&taken, 4);
        // 2^20 hashes over weights of 2^17 - 1536 in all.
        let expected = [16_384u64, 65_536, 1, 47_615].map(|weight| (weight << 20) / 129_536);
        for (count, expected) in counts.iter().zip(expected) {
            assert!(count.abs_diff(expected) <= 1, "{counts:?}");
        }
        assert!(taken.is_sorted(), "hops have their hashes side by side");
    }

    #[test]
    fn without_weights_the_hash_stands() {
        let hops = Weighted(None);
        assert!((0..1 << 12).all(|n| choose(n << 20, &hops) == n >> 10));
    }

    /// As many hops as a table of weights may have, and the last hash.
    #[test]
    fn the_largest_set_of_hops() {
        let hops = Weighted(Some(vec![1 << 16; 1 << 16]));
        assert_eq!((choose(0, &hops), choose(u32::MAX, &hops)), (0, 65_535));
    }

    trials! {
        fn equal_weights_are_ecmp(hash in any::<u32>(), weight in 1u32..=65_536, count in 1usize..500) {
            let hops = Weighted(Some(vec![weight; count]));
            prop_assert_eq!(choose(hash, &hops), hash::below(hash, count as u32));
        }
    }
}
