//! Jobs on an ideal network.
#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod ideal;

use ideal::{Ideal, run};
use weft_units::Time;
use weft_workload::collective::{Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{self, TextOptions, Trace};

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
