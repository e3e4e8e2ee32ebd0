//! Jobs on an ideal network.
#![allow(clippy::disallowed_methods, reason = "tests read files")]

use crate::ideal::{Ideal, run};
use std::ops::ControlFlow;
use weft_trial::prelude::*;
use weft_units::{Rate, Time};
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{
    Action, Algorithms, AwaitSends, Endpoint, IdleNetwork, Job, Joined, Receipt, Runner, earliest,
};
use weft_workload::stragglers::{Delays, Slow, Speed, Stragglers};
use weft_workload::trace::{self, Gathered, TextOptions, Trace};

const IDEAL: Ideal = Ideal { latency: Time::us(1), ps_per_byte: 80 };

/// One collective of `bytes` over all of `ranks`, as a text workload has it.
fn one(ranks: u32, operation: &str, bytes: u64) -> Trace {
    in_turn(1, ranks, operation, bytes, Gathered::Shard)
}

/// So many of them, one after the other.
fn in_turn(times: u32, ranks: u32, operation: &str, bytes: u64, gathered: Gathered) -> Trace {
    let text = format!("MICRO\n1\nonly -1 0 NONE 0 0 NONE 0 1 {operation} {bytes} 1\n");
    let gathered = Some(gathered);
    let options = TextOptions { passes: times, serial: true, gathered, ..TextOptions::default() };
    let trace = trace::read_text("test.txt", &text, &options).expect("a trace");
    trace.for_ranks(ranks).expect("ranks")
}

fn job(trace: Trace, operation: Operation, name: &str, options: &[(&str, &str)]) -> Job {
    let algorithm = Algorithm::read(name, options).expect("an algorithm");
    Job::new(trace, Algorithms::usual().with(operation, algorithm)).expect("a job")
}

#[test]
fn a_ring_takes_its_steps_one_after_the_other() {
    let all_reduce = one(8, "ALLREDUCE", 8_000);
    let outcome = run(&job(all_reduce, Operation::AllReduce, "ring", &[]), IDEAL);
    assert_eq!(outcome.end, Time::ps(14 * (1_000_000 + 1_000 * 80)));
    assert_eq!((outcome.messages, outcome.bytes), (8 * 14, 14 * 8_000));
}

#[test]
fn halving_and_doubling_take_logarithmic_time() {
    let all_reduce = one(8, "ALLREDUCE", 8_000);
    let outcome = run(&job(all_reduce, Operation::AllReduce, "recursive-doubling", &[]), IDEAL);
    // 4000, 2000 and 1000 bytes, and back.
    assert_eq!(outcome.end, Time::ps(6 * 1_000_000 + 14_000 * 80));
}

#[test]
fn a_tree_goes_up_and_down() {
    let all_reduce = one(8, "ALLREDUCE", 1_000);
    let tree = job(all_reduce, Operation::AllReduce, "double-binary-tree", &[("trees", "1")]);
    // Three edges from a leaf up to the root, and as many down.
    assert_eq!(run(&tree, IDEAL).end, Time::ps(6 * (1_000_000 + 80_000)));
}

#[test]
fn a_window_waits_for_acknowledgements() {
    let exchange = one(5, "ALLTOALL", 5_000);
    let all = run(&job(exchange.clone(), Operation::AllToAll, "direct", &[]), IDEAL).end;
    assert_eq!(all, Time::ps(1_080_000));
    let windowed = job(exchange, Operation::AllToAll, "direct", &[("window", "1")]);
    // Each of the four waits for the acknowledgement of the one before it, a latency later.
    assert_eq!(run(&windowed, IDEAL).end, Time::ps(4 * 1_080_000 + 3 * 1_000_000));
}

/// What each rank posts as the job begins: to whom, with which receipt.
fn first_posts(runner: &mut Runner<'_>) -> Vec<(u32, Receipt)> {
    let mut out = Vec::new();
    runner.start(Time::ZERO, &mut out);
    let post = |action| match action {
        Action::Post { dst, receipt, .. } => Some((dst, receipt)),
        _ => None,
    };
    out.into_iter().filter_map(post).collect()
}

#[test]
fn what_a_rank_cannot_use_yet_it_does_not_expect() {
    let all_reduce = one(8, "ALLREDUCE", 8_000);
    let doubling = job(all_reduce, Operation::AllReduce, "recursive-doubling", &[]);
    let mut runner = Runner::new(&doubling, |_| true);
    let (_, first) = first_posts(&mut runner)[0];
    let step = |number| Receipt { number, ..first };
    let mut expected = |rank| [0, 1, 2].map(|number| runner.expects(rank, &step(number)));
    assert_eq!(expected(0), [true, false, false]);
    runner.received(Time::ZERO, 0, step(0), &mut Vec::new());
    let mut expected = |rank| [0, 1, 2].map(|number| runner.expects(rank, &step(number)));
    assert_eq!(expected(0), [true, true, false]);
    assert_eq!(expected(1), [true, false, false]);
    assert!(!Runner::new(&doubling, |_| true).expects(0, &first), "it has not begun");

    // All of an exchange is of use at once.
    let exchange = job(one(5, "ALLTOALL", 5_000), Operation::AllToAll, "direct", &[]);
    let mut runner = Runner::new(&exchange, |_| true);
    let posts = first_posts(&mut runner);
    assert_eq!(posts.len(), 5 * 4);
    assert!(posts.iter().all(|(to, receipt)| runner.expects(*to, receipt)));
}

#[test]
fn chunks_go_one_after_the_other() {
    let in_chunks = |chunks| {
        let all_reduce = one(8, "ALLREDUCE", 8_000);
        run(&job(all_reduce, Operation::AllReduce, "ring", &[]).in_chunks(chunks), IDEAL)
    };
    let four = in_chunks(4);
    assert_eq!(four.end, Time::ps(4 * 14 * (1_000_000 + 250 * 80)));
    assert_eq!((four.messages, four.bytes), (4 * 8 * 14, 14 * 8_000));
    assert_eq!(four.finished.len(), in_chunks(1).finished.len());
    // No chunk is empty, and those of a byte have mostly empty blocks.
    let tiny = job(one(8, "ALLREDUCE", 3), Operation::AllReduce, "ring", &[]).in_chunks(100);
    assert_eq!(run(&tiny, IDEAL).bytes, 14 * 3);
}

#[test]
fn gpus_take_their_time() {
    let endpoint =
        Endpoint { delay: Time::ns(10), memory: Some(Rate::gbps(400)), cycle: Time::ns(1) };
    assert_eq!(endpoint.takes(32_768, false), Time::ns(10));
    assert_eq!(endpoint.takes(32_768, true), Time::ns(10 + 3 * 655));
    let ends = |operation: &str, which, name, options: &[(&str, &str)]| {
        let job = job(one(8, operation, 8_000), which, name, options).handled_by(endpoint);
        run(&job, IDEAL).end.0 / 1_000
    };
    // Blocks take 1080 ns, and 60 ns to be added to what is there.
    let ring = ends("ALLREDUCE", Operation::AllReduce, "ring", &[]);
    assert_eq!(ring, 10 + 7 * (1_080 + 10 + 60) + 7 * (1_080 + 10));
    let gather = ends("ALLGATHER", Operation::AllGather, "ring", &[]);
    assert_eq!(gather, 10 + 7 * (1_000 + 8_000 * 80 / 1_000 + 10));
    // 4000, 2000 and 1000 bytes, then back.
    let doubling = ends("ALLREDUCE", Operation::AllReduce, "recursive-doubling", &[]);
    assert_eq!(doubling, 10 + 6 * 1_010 + 2 * 560 + 3 * (80 + 40 + 20));
    // All at once, each on its own.
    let direct = ends("ALLREDUCE", Operation::AllReduce, "direct", &[]);
    assert_eq!(direct, 10 + 2 * 1_090 + 60);
    let exchange = ends("ALLTOALL", Operation::AllToAll, "direct", &[]);
    assert_eq!(exchange, 10 + 1_090);
    // Three edges up, where all is added, and three down.
    let tree = ends("ALLREDUCE", Operation::AllReduce, "double-binary-tree", &[("trees", "1")]);
    assert_eq!(tree, 10 + 6 * (1_000 + 640 + 10) + 3 * 3 * 160);
}

#[test]
fn real_traces_run_to_their_end() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces/ethereal");
    let Ok(text) = std::fs::read_to_string(format!("{folder}/Gpt_117M.txt")) else {
        eprintln!("skipped: no shared/traces");
        return;
    };
    let trace = trace::read_text("Gpt_117M.txt", &text, &TextOptions::default()).expect("a trace");
    let trace = trace.for_ranks(16).expect("ranks");
    let job = job(trace, Operation::AllReduce, "ring", &[]);
    let outcome = run(&job, IDEAL);
    let nodes = job.trace().graph(0).nodes().len();
    assert_eq!(outcome.finished.len(), 16 * nodes);
    assert!(outcome.messages > 50 * 16 * 30);
}

trials! {
    fn chunked_jobs_send_what_they_said(
        ranks in 2u32..12,
        bytes in 1u64..400,
        chunks in 1u32..12,
        latency in 0u64..2_000,
        delay in 0u64..3,
        how in prop::sample::select(vec![
            ("ALLREDUCE", Operation::AllReduce, "ring", ("channels", "3")),
            ("ALLREDUCE", Operation::AllReduce, "direct", ("window", "2")),
            ("ALLREDUCE", Operation::AllReduce, "double-binary-tree", ("chunks", "2")),
            ("ALLTOALL", Operation::AllToAll, "direct", ("window", "1")),
            ("ALLTOALL", Operation::AllToAll, "direct", ("skew", "2")),
        ]),
    ) {
        let (operation, which, name, option) = how;
        let endpoint = Endpoint { delay: Time(delay), ..Endpoint::default() };
        let job = job(one(ranks, operation, bytes), which, name, &[option]);
        let job = job.in_chunks(chunks).handled_by(endpoint);
        let outcome = run(&job, Ideal { latency: Time(latency), ps_per_byte: 80 });
        let (mut messages, mut sum) = (0, 0);
        let _ = job.traffic(|traffic| {
            messages += traffic.times;
            sum += traffic.bytes * traffic.times;
            ControlFlow::Continue(())
        });
        prop_assert_eq!((outcome.messages, outcome.bytes), (messages, sum));
        let whole = if operation == "ALLTOALL" { 1 } else { 2 };
        // ASTRA-sim's ALLREDUCE and ALLTOALL count the whole buffer of a rank.
        prop_assert_eq!(sum, whole * u64::from(ranks - 1) * bytes);
    }
}

/// All that a job sends, step by step, as counts of messages.
fn levels(job: &Job) -> Vec<usize> {
    let mut counts = Vec::new();
    job.levels(|level| counts.push(level.len()));
    counts
}

#[test]
fn steps_are_what_ranks_in_lockstep_send_at_once() {
    let ring = job(one(8, "ALLREDUCE", 8_000), Operation::AllReduce, "ring", &[]);
    assert_eq!(levels(&ring), [8; 14]);
    let halving = job(one(8, "ALLREDUCE", 8_000), Operation::AllReduce, "recursive-doubling", &[]);
    assert_eq!(levels(&halving), [8; 6]);
    let direct = job(one(5, "ALLREDUCE", 5_000), Operation::AllReduce, "direct", &[]);
    assert_eq!(levels(&direct), [20, 20]);
    // The same, played through since there is a window of it.
    let windowed =
        job(one(5, "ALLTOALL", 5_000), Operation::AllToAll, "direct", &[("window", "1")]);
    assert_eq!(levels(&windowed), [5; 4]);
    let tree = [("trees", "1")];
    let tree = job(one(8, "ALLREDUCE", 1_000), Operation::AllReduce, "double-binary-tree", &tree);
    // One message an edge and direction, in three steps up and three down.
    assert_eq!((levels(&tree).len(), levels(&tree).iter().sum::<usize>()), (6, 14));
}

trials! {
    /// Whatever the algorithm: the steps hold every message once.
    fn steps_hold_all_messages(ranks in 2u32..12, bytes in 1u64..5_000, which in 0usize..4) {
        let name = ["ring", "recursive-doubling", "direct", "double-binary-tree"][which];
        let ranks = if which == 1 { ranks.next_power_of_two() } else { ranks };
        let job = job(one(ranks, "ALLREDUCE", bytes), Operation::AllReduce, name, &[]);
        let (mut all, mut told) = (Vec::new(), Vec::new());
        job.levels(|level| all.extend(level.iter().map(|one| (one.src, one.dst, one.bytes))));
        let _ = job.traffic(|one| {
            told.extend((0..one.times).map(|_| (one.src, one.dst, one.bytes)));
            ControlFlow::Continue(())
        });
        all.sort_unstable();
        told.sort_unstable();
        prop_assert_eq!(all, told);
    }
}

#[test]
fn ranks_may_wait_for_what_they_sent() {
    let awaiting = |operation, kind, name, sends| {
        run(&job(one(8, kind, 8_000), operation, name, &[]).awaiting_sends(sends), IDEAL)
    };
    let ring = |sends| awaiting(Operation::AllReduce, "ALLREDUCE", "ring", sends);
    let step = 1_000_000 + 1_000 * 80;
    // An acknowledgement takes a latency: at the end, or at each of the steps.
    assert_eq!(ring(AwaitSends::Never).end, Time::ps(14 * step));
    assert_eq!(ring(AwaitSends::End).end, Time::ps(14 * step + 1_000_000));
    assert_eq!(ring(AwaitSends::Step).end, Time::ps(14 * (step + 1_000_000)));
    assert_eq!(ring(AwaitSends::Step).messages, ring(AwaitSends::Never).messages);
    let exchange = |sends| awaiting(Operation::AllToAll, "ALLTOALL", "direct", sends);
    assert_eq!(exchange(AwaitSends::Never).end, Time::ps(step));
    assert_eq!(exchange(AwaitSends::Step).end, Time::ps(step + 1_000_000));
}

/// The ideal network, for who asks what is possible; some links are so much longer than others.
struct Idle(Ideal, Time);

impl IdleNetwork for Idle {
    fn alone(&self, src: u32, dst: u32, bytes: u64) -> (Time, Time) {
        let longer = Time(u64::from(src.min(dst) % 3) * self.1.0);
        let there = self.0.latency + longer + Time(self.0.ps_per_byte * bytes);
        (there, there + self.0.latency)
    }
    fn intake(&self, _: u32, _: u32, _: u64) -> Time {
        Time::ZERO
    }
    fn switched(&self, _: u32, joined: &Joined, _: u32, place: u32) -> Time {
        self.0.latency + Time(self.0.ps_per_byte * joined.part.volume(place).1)
    }
}

/// What switches do begins with the last rank: chunk after chunk.
#[test]
fn switches_begin_with_the_last_rank() {
    let sharp = || job(one(8, "ALLREDUCE", 8_000), Operation::AllReduce, "sharp", &[]);
    let idle = || Idle(Ideal { latency: Time::us(3), ..IDEAL }, Time::ZERO);
    assert_eq!(earliest(&sharp(), &idle()), Time::us(3) + Time::ps(8_000 * 80));
    let chunks = earliest(&sharp().in_chunks(4), &idle());
    assert_eq!(chunks, Time::us(3 * 4) + Time::ps(8_000 * 80));
}

/// Of ranks too many to go message by message, each takes its own delays at least.
#[test]
fn large_rings_with_empty_blocks_hold_up_nobody() {
    let endpoint = Endpoint { delay: Time::us(10), ..Endpoint::default() };
    for (name, options) in [("ring", &[][..]), ("hierarchical", &[("local_ranks", "2")])] {
        let trace = in_turn(2, 1_500, "ALLGATHER", 3, Gathered::Whole);
        let job = job(trace, Operation::AllGather, name, options).handled_by(endpoint);
        let bound = earliest(&job, &Idle(IDEAL, Time::ZERO));
        assert!(bound >= Time::us(20) && bound <= run(&job, IDEAL).end, "{name}: {bound}");
    }
}

trials! {
    #![cases(200)]

    /// Round by round for all ranks at once, rings are over when they are message by message: a rank that
    /// waits for its acknowledgements at the end has the latter, and here these come sooner than
    /// anything else.
    fn rings_are_over_when_their_messages_are(
        (ranks, bytes, channels, operation) in (2..12_u32, 0..300_u64, 1..4_u32, 0..3_usize),
        group in prop::option::of(1..5_u32),
    ) {
        let (word, operation) = [
            ("ALLREDUCE", Operation::AllReduce),
            ("ALLGATHER", Operation::AllGather),
            ("REDUCESCATTER", Operation::ReduceScatter),
        ][operation];
        let (channels, groups) = (channels.to_string(), group.map(|group| group.to_string()));
        let of = || match &groups {
            None => job(one(ranks, word, bytes), operation, "ring", &[("channels", &channels)]),
            Some(groups) => {
                let ranks = ranks * group.unwrap_or(1);
                let options = [("channels", &*channels), ("local_ranks", groups)];
                job(one(ranks, word, bytes), operation, "hierarchical", &options)
            }
        };
        let quick = Ideal { latency: Time::ZERO, ..IDEAL };
        let idle = Idle(quick, Time::ns(500));
        let at_once = earliest(&of(), &idle);
        let by_messages = earliest(&of().awaiting_sends(AwaitSends::End), &idle);
        prop_assert_eq!(at_once, by_messages);
    }

    /// Ranks that come late, take their time, or get nothing: none of it makes the bound longer than a run.
    fn nothing_is_over_before_it_can_be(
        (ranks, times, bytes) in (2..10_u32, 1..5_u32, prop_oneof![1..8_u64, 1..400_u64]),
        (delay, late, seed) in (0..3_000_u64, 0..9_000_u64, 0..1_000_u64),
        (word, operation, name) in any_of(vec![
            ("ALLREDUCE", Operation::AllReduce, "ring"),
            ("ALLREDUCE", Operation::AllReduce, "direct"),
            ("ALLREDUCE", Operation::AllReduce, "double-binary-tree"),
            ("ALLREDUCE", Operation::AllReduce, "hierarchical"),
            ("ALLGATHER", Operation::AllGather, "ring"),
            ("ALLGATHER", Operation::AllGather, "pat"),
            ("REDUCESCATTER", Operation::ReduceScatter, "ring"),
            ("REDUCESCATTER", Operation::ReduceScatter, "direct"),
            ("ALLTOALL", Operation::AllToAll, "direct"),
            ("BROADCAST", Operation::Broadcast, "ring"),
            ("BROADCAST", Operation::Broadcast, "double-binary-tree"),
            ("REDUCE", Operation::Reduce, "ring"),
        ]),
    ) {
        let stragglers = Stragglers {
            slow: Slow::Count(1),
            factor: 4.0,
            speed: Speed::Equal,
            jitter: 0.0,
            start_delay: Time::ns(late),
            delays: Delays::Exponential,
        };
        let hierarchical = name == "hierarchical";
        let ranks = if hierarchical { 2 * ranks } else { ranks };
        let options: &[_] = if hierarchical { &[("local_ranks", "2")] } else { &[] };
        let trace = in_turn(times, ranks, word, bytes, Gathered::Whole);
        let job = job(trace, operation, name, options)
            .handled_by(Endpoint { delay: Time::ns(delay), ..Endpoint::default() })
            .paced(stragglers.paces(ranks, seed).expect("paces"));
        let (bound, end) = (earliest(&job, &Idle(IDEAL, Time::ZERO)), run(&job, IDEAL).end);
        prop_assert!(bound <= end, "{bound} {end}");
    }
}
