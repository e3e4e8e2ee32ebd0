//! Generators: who sends to whom, in which order, and what they refuse.

use std::collections::BTreeSet;
use weft_trial::prelude::*;
use weft_units::Time;
use weft_workload::pattern::{AllToAll, Direction, Incast, Permutation, Ring, Tree};
use weft_workload::{Launch, PATTERNS, Pattern, Scope, Workload};

fn scope(hosts: u32) -> Scope {
    Scope { hosts, hosts_per_leaf: 4, bytes: 16_000, start: Time::us(3), seed: 1 }
}
/// Source and receiver of every message, in order, after checking what all have in common.
fn pairs(workload: &Workload) -> Vec<(u32, u32)> {
    workload.validate().unwrap();
    assert_eq!(workload.dependency_count(), 0);
    let messages = workload.messages().iter();
    messages
        .inspect(|message| assert_eq!((message.bytes, message.start), (16_000, Time::us(3))))
        .map(|message| (message.src.0, message.dst.0))
        .collect()
}
fn all_to_all(hosts: u32, launch: Launch) -> Vec<(u32, u32)> {
    pairs(&AllToAll { launch, skew: None }.generate(&scope(hosts)).unwrap())
}
fn refusal(pattern: impl Into<Pattern>, scope: &Scope) -> String {
    let line = pattern.into().generate(scope).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}
/// The receivers of `src` in its launch order.
fn receivers(pairs: &[(u32, u32)], src: u32) -> Vec<u32> {
    pairs.iter().filter(|(from, _)| *from == src).map(|(_, to)| *to).collect()
}

#[test]
fn launch_orders_are_those_of_the_paper() {
    let same = all_to_all(4, Launch::SameRank { start: 0 });
    assert_eq!(receivers(&same, 0), [1, 2, 3]);
    assert_eq!(receivers(&same, 2), [0, 1, 3]);
    let later = all_to_all(4, Launch::SameRank { start: 2 });
    assert_eq!(receivers(&later, 0), [2, 3, 1]);
    let successor = all_to_all(4, Launch::Successor);
    assert_eq!(receivers(&successor, 0), [1, 2, 3]);
    assert_eq!(receivers(&successor, 2), [3, 0, 1]);
}

#[test]
fn a_ring_stays_at_its_place_under_the_next_leaf() {
    let ring = Ring { channels: 2, cross_rack: true };
    let sent = pairs(&ring.generate(&scope(12)).unwrap());
    assert_eq!(sent.len(), 24);
    assert_eq!(sent[..4], [(0, 4), (0, 4), (1, 5), (1, 5)]);
    assert_eq!(sent[22..], [(11, 3), (11, 3)]);
    assert!(sent.iter().all(|(src, dst)| src / 4 != dst / 4 && src % 4 == dst % 4));
    let near = Ring { channels: 1, cross_rack: false };
    assert_eq!(pairs(&near.generate(&scope(3)).unwrap()), [(0, 1), (1, 2), (2, 0)]);
}

/// NCCL's two trees over 8 ranks: 0 over 4 over 2 and 6, which have the odd ones; and the mirror.
#[test]
fn a_tree_sends_to_two_parents_or_to_the_children() {
    let sent =
        |way, cross_rack, hosts| pairs(&Tree { way, cross_rack }.generate(&scope(hosts)).unwrap());
    let up = sent(Direction::Up, false, 8);
    assert_eq!(receivers(&up, 0), [1]); // the root of the first tree
    assert_eq!(receivers(&up, 1), [2, 3]);
    assert_eq!(receivers(&up, 2), [4, 1]);
    assert_eq!(receivers(&up, 4), [0, 5]);
    assert_eq!(receivers(&up, 7), [6]); // the root of the second one
    let sorted = |mut pairs: Vec<(u32, u32)>| {
        pairs.sort_unstable();
        pairs
    };
    let down = sent(Direction::Down, false, 8);
    let turned = down.iter().map(|(src, dst)| (*dst, *src)).collect();
    assert_eq!(sorted(up.clone()), sorted(turned), "down is up, turned round");
    assert_eq!(sorted(sent(Direction::Both, false, 8)), sorted([up, down].concat()));
    // Nobody but the roots and their children has more or less to do than others.
    for hosts in [8, 12, 128] {
        let up = sent(Direction::Up, false, hosts);
        let received = |host| up.iter().filter(|(_, dst)| *dst == host).count();
        let counts: Vec<_> = (0..hosts).map(received).collect();
        assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
        assert_eq!(up.len() as u32, 2 * hosts - 2);
    }
    // Two leaves of four: ranks 0 and 1 are hosts 0 and 4.
    let across = sent(Direction::Up, true, 8);
    assert_eq!(receivers(&across, 4), [1, 5]);
    assert!(
        refusal(Pattern::Tree(Tree { way: Direction::Up, cross_rack: true }), &scope(6))
            .starts_with("cross_rack")
    );
}

#[test]
fn an_incast_comes_from_those_after_the_receiver() {
    let incast = Incast { senders: Some(3), receiver: 6 };
    assert_eq!(pairs(&incast.generate(&scope(8)).unwrap()), [(7, 6), (0, 6), (1, 6)]);
    let all = Incast { senders: None, receiver: 2 };
    assert_eq!(pairs(&all.generate(&scope(4)).unwrap()), [(3, 2), (0, 2), (1, 2)]);
}

#[test]
fn permutations_depend_on_seed_and_index_alone() {
    let generate = |count, seed| {
        let scope = Scope { seed, ..scope(64) };
        pairs(&Permutation { count }.generate(&scope).unwrap())
    };
    let three = generate(3, 7);
    assert_eq!(three, generate(3, 7));
    assert_eq!(three[..128], generate(2, 7));
    assert_ne!(three[..64], three[64..128]);
    assert_ne!(three, generate(3, 8));
}

#[test]
fn all_derangements_are_equally_likely() {
    // Of 4 hosts there are 9. Expected 1000 each, standard deviation 30: 150 is five of them.
    let mut counts = std::collections::BTreeMap::new();
    for pair in pairs(&Permutation { count: 9000 }.generate(&scope(4)).unwrap()).chunks(4) {
        *counts.entry(pair.to_vec()).or_insert(0i32) += 1;
    }
    assert_eq!(counts.len(), 9);
    assert!(counts.values().all(|count| (count - 1000).abs() < 150), "{counts:?}");
}

#[test]
fn impossible_scopes_and_options_are_refused() {
    let ring = Ring { channels: 1, cross_rack: true };
    assert!(refusal(Pattern::Ring(ring), &scope(4)).starts_with("cross_rack: 4 hosts"));
    assert!(refusal(Pattern::Ring(ring), &scope(10)).starts_with("cross_rack: 10 hosts"));
    let unequal = Scope { hosts_per_leaf: 0, ..scope(8) };
    assert!(
        refusal(Pattern::Ring(ring), &unequal).starts_with("cross_rack: switches have unequal")
    );
    let none = Ring { channels: 0, ..ring };
    assert!(refusal(Pattern::Ring(none), &scope(8)).starts_with("channels: 0"));
    let incast = |senders, receiver| Pattern::Incast(Incast { senders, receiver });
    assert!(refusal(incast(Some(8), 0), &scope(8)).starts_with("senders: 8 is not between 1 and"));
    assert!(refusal(incast(Some(0), 0), &scope(8)).starts_with("senders: 0"));
    assert!(refusal(incast(None, 8), &scope(8)).starts_with("receiver: host 8"));
    let all = |launch| Pattern::AllToAll(AllToAll { launch, skew: None });
    let same = Launch::SameRank { start: 9 };
    assert!(refusal(all(same), &scope(8)).starts_with("start_rank: host 9"));
    for hosts in [0, 1] {
        assert!(refusal(all(Launch::Successor), &scope(hosts)).starts_with("hosts: "));
        assert!(refusal(incast(None, 0), &scope(hosts)).starts_with("hosts: "));
    }
    assert!(refusal(all(Launch::Successor), &scope(u32::MAX)).contains("too many"));
    let empty = Scope { bytes: 0, ..scope(8) };
    assert!(refusal(all(Launch::Successor), &empty).starts_with("size: 0 bytes"));
    let huge = Scope { bytes: u64::MAX / 2, ..scope(8) };
    assert!(refusal(all(Launch::Successor), &huge).contains("too many"));
    let zero = Pattern::Permutation(Permutation { count: 0 });
    assert!(refusal(zero, &scope(8)).starts_with("count: 0"));
}

#[test]
fn patterns_read_their_options_by_name() {
    let read = |name: &str, options: &[(&str, &str)]| Pattern::read(name, options);
    let same = Pattern::AllToAll(AllToAll { launch: Launch::SameRank { start: 5 }, skew: None });
    assert_eq!(read("all-to-all", &[("launch", "same-rank"), ("start_rank", "5")]), Ok(same));
    let ring = Pattern::Ring(Ring { channels: 4, cross_rack: false });
    assert_eq!(read("ring", &[("channels", "4"), ("cross_rack", "false")]), Ok(ring));
    let incast = Pattern::Incast(Incast { senders: Some(6), receiver: 0 });
    assert_eq!(read("incast", &[("senders", "6")]), Ok(incast));

    let names: Vec<_> = PATTERNS.iter().map(|info| info.name).collect();
    let error = |name, options: &[_]| read(name, options).unwrap_err().to_string();
    assert_eq!(
        error("alltoall", &[]),
        format!("pattern: unknown value \"alltoall\"; use one of {}", names.join(", "))
    );
    assert!(error("ring", &[("chanels", "4")]).starts_with("chanels: unknown option"));
    assert!(error("ring", &[("channels", "-4")]).starts_with("channels: \"-4\" is not a whole"));
    assert!(error("ring", &[("channels", "4"), ("channels", "5")]).contains("twice"));
    assert!(error("ring", &[("cross_rack", "yes")]).contains("true, false"));
    assert!(error("all-to-all", &[("launch", "random")]).contains("successor, same-rank"));
    assert!(error("all-to-all", &[("start_rank", "1")]).contains("needs launch"));
}

#[test]
fn every_pattern_runs_with_its_defaults_and_knows_its_line_of_the_catalogue() {
    for info in PATTERNS {
        let pattern = Pattern::read(info.name, &[]).unwrap();
        assert_eq!(pattern.info(), info);
        assert!(!pairs(&pattern.generate(&scope(8)).unwrap()).is_empty());
    }
}

trials! {
    fn all_to_all_holds_every_ordered_pair_once(hosts in 2u32..40, rank in 0u32..40) {
        for launch in [Launch::Successor, Launch::SameRank { start: rank % hosts }] {
            let sent = all_to_all(hosts, launch);
            prop_assert_eq!(sent.len() as u32, hosts * (hosts - 1));
            prop_assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len());
        }
    }

    /// No two hosts send to the same receiver at the same step.
    fn successor_launch_makes_no_incast(hosts in 2u32..40) {
        let sent = all_to_all(hosts, Launch::Successor);
        for step in 0..hosts as usize - 1 {
            let at_step = (0..hosts).map(|src| receivers(&sent, src)[step]);
            prop_assert_eq!(at_step.collect::<BTreeSet<_>>().len() as u32, hosts);
        }
    }

    fn derangements_are_permutations_without_fixed_point(
        hosts in 2u32..200, count in 1u32..5, seed in any::<u64>(),
    ) {
        let scope = Scope { seed, ..scope(hosts) };
        let sent = pairs(&Permutation { count }.generate(&scope).unwrap());
        prop_assert_eq!(sent.len() as u32, hosts * count);
        for permutation in sent.chunks(hosts as usize) {
            let to: BTreeSet<_> = permutation.iter().map(|(_, dst)| dst).collect();
            prop_assert_eq!(to.len() as u32, hosts);
            for ((src, dst), at) in permutation.iter().zip(0..) {
                prop_assert!(*src == at && src != dst);
            }
        }
    }
}

#[test]
fn a_skewed_all_to_all_has_popular_receivers() {
    let read = |skew| Pattern::read("all-to-all", &[("skew", skew)]).expect("a pattern");
    let scope = Scope { bytes: 10_000, ..scope(16) };
    let (even, skewed) = (read("0").generate(&scope).unwrap(), read("1").generate(&scope).unwrap());
    assert_eq!(read("0"), Pattern::read("all-to-all", &[]).unwrap());
    assert!(even.messages().iter().all(|message| message.bytes == 10_000));
    let sum = |workload: &Workload| workload.messages().iter().map(|m| m.bytes).sum::<u64>();
    assert_eq!(sum(&skewed), sum(&even));
    let of = |dst: u32| skewed.messages().iter().filter(move |m| m.dst.0 == dst).map(|m| m.bytes);
    // All send the same to one receiver; the most popular gets 1 / 3.38 of each buffer.
    let mut sizes: Vec<u64> = (0..16).map(|dst| of(dst).next().unwrap()).collect();
    assert!((0..16).all(|dst| of(dst).all(|bytes| bytes == sizes[dst as usize])));
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    assert_eq!((sizes[0], sizes[1]), (47_327, 23_663));
    let elsewhere = read("1").generate(&Scope { seed: scope.seed + 1, ..scope }).unwrap();
    let messages = |workload: &Workload| workload.messages().iter().copied().collect::<Vec<_>>();
    assert_ne!(messages(&elsewhere), messages(&skewed));
    assert_eq!(sum(&elsewhere), sum(&even));
}
