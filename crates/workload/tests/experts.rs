//! Dispatch and combine: what goes from whom to whom, by hand and by the tokens' choices; and that it ends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use weft_trial::prelude::*;
use weft_units::Time;
use weft_workload::collective::Step;
use weft_workload::experts::{Exchange, Numbers};
use weft_workload::job::{Algorithms, IdleNetwork, Job, Joined, earliest};
use weft_workload::trace::{Action, Collective, Degrees, Size, Trace};
use weft_workload::{Experts, WorkloadError};

fn experts(given: &[(&str, &str)]) -> Experts {
    Experts::resolve(given).expect("options").0
}

fn exchange(given: &[(&str, &str)], ranks: u32, per_node: u32) -> Exchange {
    experts(given).exchange(ranks, per_node, (1, 0)).expect("possible")
}

/// Bytes from each rank to each.
fn sent(exchange: &Exchange, is_combine: bool) -> BTreeMap<(u32, u32), u64> {
    let mut all = BTreeMap::new();
    for rank in 0..exchange.ranks() {
        for sequence in 0..exchange.sequences() {
            let steps = (0..).map_while(|at| exchange.step(is_combine, rank, sequence, at));
            for step in steps {
                if let Step::Send { to, payload: payload @ 1.., .. } = step {
                    *all.entry((rank, to)).or_insert(0) += payload;
                }
            }
        }
    }
    all
}

fn job(exchange: Exchange, is_combine: bool) -> Job {
    let action = if is_combine { Action::Combine(0) } else { Action::Dispatch(0) };
    let size = Size::Whole(exchange.buffer(is_combine));
    let one = Collective { action, size, group: 0, root: 0, turn: 0 };
    let ranks = exchange.ranks();
    let degrees = Degrees { expert: ranks, ..Degrees::NONE };
    let trace = Trace::of_collective(one, 2, degrees, ranks).expect("a trace");
    Job::new(Trace { exchanges: vec![exchange], ..trace }, Algorithms::usual()).expect("a job")
}

#[test]
fn a_token_weighs_what_deepep_sends() {
    // 7168 bytes and 56 scales of four.
    assert_eq!(Numbers::Fp8.bytes(7168), 7392);
    assert_eq!(Numbers::Bf16.bytes(7168), 14336);
    let usual = experts(&[]);
    assert_eq!((usual.tokens, usual.count, usual.top_k, usual.node_limit), (4096, 256, 8, Some(4)));
}

#[test]
fn every_token_to_every_expert() {
    // Two nodes of two ranks with an expert each, and ten tokens of 100 numbers that take all four.
    let given = [("tokens", "10"), ("hidden", "128"), ("experts", "4"), ("top_k", "4")];
    let (fp8, bf16) = (10 * (128 + 4), 10 * 256);
    let all = exchange(&given, 4, 2);
    // To the other one of the node: its own tokens and those of its peer that come through here. To the
    // same place of the other node: once, for both experts there.
    let expected = |bytes: u64| -> BTreeMap<(u32, u32), u64> {
        let pair = |a: u32, b: u32| if a / 2 == b / 2 { 2 * bytes } else { bytes };
        [(0, 1), (0, 2), (1, 0), (1, 3), (2, 3), (2, 0), (3, 2), (3, 1)]
            .map(|(a, b)| ((a, b), pair(a, b)))
            .into()
    };
    assert_eq!(sent(&all, false), expected(fp8));
    assert_eq!(sent(&all, true), expected(bf16));
    // Straight: everybody to everybody, once for each expert.
    let straight = [&given[..], &[("mode", "low-latency")]].concat();
    let straight = exchange(&straight, 4, 2);
    let pairs = (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b);
    assert_eq!(sent(&straight, false), pairs.clone().map(|pair| (pair, fp8)).collect());
    assert_eq!(sent(&straight, true), pairs.map(|pair| (pair, bf16)).collect());
    assert_eq!((all.buffer(false), all.buffer(true)), (4 * fp8, 4 * bf16));
}

#[test]
fn all_take_the_two_experts_of_one_rank() {
    // Four nodes of two ranks, two experts each: all take experts 10 and 11, of rank 5, on node 2.
    let shares: Vec<&str> = (0..16).map(|e| if e / 2 == 5 { "1" } else { "0" }).collect();
    let shares = shares.join(" ");
    let given = [
        ("tokens", "10"),
        ("hidden", "128"),
        ("experts", "16"),
        ("top_k", "2"),
        ("node_limit", "2"),
        ("shares", &shares),
    ];
    let token = 132;
    let to_one = exchange(&given, 8, 2);
    // Odd ranks reach it at the same place, even ones by rank 4, which passes on its own and theirs. A token
    // goes once, though it takes two experts there; the node that is drawn beside takes nothing of it.
    let expected = [(0, 4), (1, 5), (2, 4), (3, 5), (6, 4), (7, 5)].map(|pair| (pair, 10 * token));
    let mut expected: BTreeMap<_, _> = expected.into();
    expected.insert((4, 5), 4 * 10 * token);
    assert_eq!(sent(&to_one, false), expected);
    let back = sent(&to_one, true);
    let reversed = expected.iter().map(|((a, b), bytes)| ((*b, *a), bytes / token * 256));
    assert_eq!(back, reversed.collect());
    // Straight there, a token goes twice, once for each expert.
    let straight = [&given[..], &[("mode", "low-latency")]].concat();
    let straight = sent(&exchange(&straight, 8, 2), false);
    assert_eq!(straight, (0..8).filter(|a| *a != 5).map(|a| ((a, 5), 2 * 10 * token)).collect());
}

#[test]
fn nodes_are_limited_and_the_popular_get_more() {
    // 64 ranks, of which a token reaches four nodes of eight at most: in the mean 3.5 others.
    let usual = [("tokens", "256")];
    let of = |given: &[(&str, &str)]| {
        let all = sent(&exchange(&[&usual[..], given].concat(), 64, 8), false);
        let far = all.iter().filter(|((a, b), _)| a / 8 != b / 8);
        let most =
            (0..64).map(|to| all.iter().filter(|((_, b), _)| *b == to).map(|(_, n)| n).sum());
        (far.map(|(_, bytes)| bytes).sum::<u64>() as f64 / (64.0 * 256.0 * 7392.0), most.max())
    };
    let (copies, even): (f64, Option<u64>) = of(&[]);
    // A node that is drawn is missed if all eight experts are among the 96 of the other three.
    let missed = (0..8).map(|taken| (96.0 - f64::from(taken)) / (128.0 - f64::from(taken)));
    let expected = 3.5 * (1.0 - missed.product::<f64>());
    assert!((copies / expected - 1.0).abs() < 0.01, "{copies} {expected}");
    let (free, _) = of(&[("node_limit", "8")]);
    assert!(free > 1.3 * copies, "{free}");
    let (_, skewed) = of(&[("skew", "1")]);
    assert!(skewed > even.map(|even| 3 * even / 2), "{skewed:?} {even:?}");
}

#[test]
fn what_cannot_be_is_told() {
    let told = |given: &[(&str, &str)], ranks, per_node| {
        let made = experts(given).exchange(ranks, per_node, (1, 0));
        let WorkloadError(what) = made.expect_err("wrong");
        what
    };
    assert_eq!(told(&[], 12, 8), "gpus_per_node: 12 ranks do not fill nodes of 8; use a divisor");
    assert_eq!(
        told(&[], 24, 8),
        "experts: 256 cannot lie equally many on 24 ranks; use a multiple of 24"
    );
    assert_eq!(
        told(&[("experts", "64"), ("node_limit", "1"), ("top_k", "9")], 64, 8),
        "top_k: a token cannot take 9 of the 8 experts that it may; use fewer, or more nodes \
         (node_limit)"
    );
    assert_eq!(
        told(&[("experts", "4"), ("top_k", "1"), ("shares", "1 2 3")], 4, 2),
        "shares: 3 numbers for 4 experts; give one for each"
    );
    let both = Experts::resolve(&[("shares", "1 2"), ("skew", "1")]).expect_err("both");
    assert_eq!((&*both.key, &*both.what), ("shares", "stands beside skew; remove one of them"));
    let chunks = Experts::resolve(&[("mode", "low-latency"), ("chunks", "2")]).expect_err("none");
    assert_eq!((&*chunks.key, &*chunks.what), ("chunks", "does nothing here; remove it"));
}

/// A network on which a byte takes a nanosecond.
struct Plain;

impl IdleNetwork for Plain {
    fn alone(&self, _: u32, _: u32, bytes: u64) -> (Time, Time) {
        (Time::ns(bytes), Time::ns(bytes + 1))
    }
    fn intake(&self, _: u32, _: u32, bytes: u64) -> Time {
        Time::ns(bytes)
    }
    fn switched(&self, _: u32, _: &Joined, _: u32, _: u32) -> Time {
        unreachable!("no switch does anything for experts")
    }
}

trials! {
    #![cases(64)]
    /// Every receipt has its one send of as many bytes, in the order in which it is waited for; the job ends,
    /// and sends what its steps say.
    fn receipts_meet_sends(
        (nodes, per_node, each, top_k) in (1..5_u32, 1..5_u32, 1..4_u32, 1..9_u32),
        (chunks, limit, skew, straight, seed) in (1..4_u32, 1..5_u32, 0..3_u32, any::<bool>(), any::<u64>())
    ) {
        let ranks = nodes * per_node;
        let count = ranks * each;
        let within = limit.min(nodes) * per_node * each;
        if ranks < 2 {
            return Ok(());
        }
        let texts = [7, 128, count, top_k.min(within), limit, skew, chunks].map(|n| n.to_string());
        let keys = ["tokens", "hidden", "experts", "top_k", "node_limit", "skew", "chunks"];
        let mut given: Vec<(&str, &str)> =
            keys.into_iter().zip(texts.iter().map(String::as_str)).collect();
        if straight {
            given.pop();
            given.push(("mode", "low-latency"));
        }
        let exchange = experts(&given).exchange(ranks, per_node, (seed, 3)).expect("possible");
        for is_combine in [false, true] {
            let (mut sends, mut receives) = (BTreeMap::new(), BTreeMap::new());
            for rank in 0..ranks {
                for own in 0..exchange.sequences() {
                    let mut receipts = 0;
                    for step in (0..).map_while(|at| exchange.step(is_combine, rank, own, at)) {
                        match step {
                            Step::Send { to, payload, sequence, receipt } => {
                                let before = sends.insert((to, sequence, receipt), (rank, payload));
                                prop_assert!(before.is_none() && to != rank);
                            }
                            Step::Receive { from, payload } => {
                                receives.insert((rank, own, receipts), (from, payload));
                                receipts += 1;
                            }
                            Step::Sent(_) | Step::Switched { .. } => prop_assert!(false),
                        }
                    }
                }
            }
            prop_assert_eq!(sends, receives);
            let bytes: u64 = sent(&exchange, is_combine).values().sum();
            let job = job(exchange.clone(), is_combine);
            let mut told = 0;
            let _ = job.traffic(|one| {
                told += one.bytes * one.times;
                ControlFlow::Continue(())
            });
            prop_assert_eq!(told, 2 * bytes);
            let mut levelled = 0;
            job.levels(|level| levelled += level.iter().map(|one| one.bytes).sum::<u64>());
            prop_assert_eq!(levelled, 2 * bytes);
            prop_assert!(bytes == 0 || earliest(&job, &Plain) > Time::ZERO);
        }
    }
}
