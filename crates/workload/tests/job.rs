//! Jobs on an ideal network: every message takes a latency and its bytes at a rate, whatever else
//! is under way.

use std::collections::BTreeMap;
use weft_units::Time;
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Action, Algorithms, Job, Runner};
use weft_workload::trace::{self, TextOptions, Trace};

/// A network without a network.
#[derive(Clone, Copy)]
struct Ideal {
    latency: Time,
    ps_per_byte: u64,
}

#[derive(Clone, Copy)]
enum Event {
    Received(u32, weft_workload::job::Receipt),
    Sent(u32, weft_workload::job::Sent),
    Wake(u32, u32),
}

/// What a run came to.
struct Outcome {
    end: Time,
    messages: u64,
    bytes: u64,
    /// When each node of each rank was done.
    finished: BTreeMap<(u32, u32), Time>,
}

fn run(job: &Job, ideal: Ideal) -> Outcome {
    let mut runner = Runner::new(job, |_| true);
    let mut agenda: BTreeMap<(Time, u64), Event> = BTreeMap::new();
    let mut outcome = Outcome { end: Time::ZERO, messages: 0, bytes: 0, finished: BTreeMap::new() };
    let (mut count, mut now, mut out) = (0, Time::ZERO, Vec::new());
    runner.start(now, &mut out);
    loop {
        for action in out.drain(..) {
            let mut at = |time: Time, event: Event| {
                count += 1;
                agenda.insert((time, count), event);
            };
            match action {
                Action::Post { src, dst, bytes, sent, receipt } => {
                    let there = now + ideal.latency + Time(ideal.ps_per_byte * bytes);
                    at(there, Event::Received(dst, receipt));
                    at(there + ideal.latency, Event::Sent(src, sent));
                    outcome.messages += 1;
                    outcome.bytes += bytes;
                }
                Action::Wake { rank, node, at: time } => at(time, Event::Wake(rank, node)),
                Action::Begun { .. } => {}
                Action::Finished { rank, node } => {
                    assert_eq!(outcome.finished.insert((rank, node), now), None);
                    outcome.end = now;
                }
            }
        }
        let Some(((time, _), event)) = agenda.pop_first() else { break };
        now = time;
        match event {
            Event::Received(rank, receipt) => runner.received(now, rank, receipt, &mut out),
            Event::Sent(rank, sent) => runner.sent(now, rank, sent, &mut out),
            Event::Wake(rank, node) => runner.woken(now, rank, node, &mut out),
        }
    }
    assert_eq!(
        runner.unfinished(),
        0,
        "{:?}",
        (0..job.ranks()).map(|r| runner.waits(r)).collect::<Vec<_>>()
    );
    outcome
}

const IDEAL: Ideal = Ideal { latency: Time::us(1), ps_per_byte: 80 };

/// One collective of `bytes` over all of `ranks`, as a text workload has it.
fn one(ranks: u32, operation: &str, bytes: u64) -> Trace {
    let text = format!("MICRO\n1\nonly -1 0 NONE 0 0 NONE 0 1 {operation} {bytes} 1\n");
    let trace = trace::read_text("test.txt", &text, &TextOptions::default()).expect("a trace");
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
    let nodes = job.trace().programme(0).nodes().len();
    assert_eq!(outcome.finished.len(), 16 * nodes);
    assert!(outcome.messages > 50 * 16 * 30);
}
