//! The lower bound that plans print: that of the job's runs, which no run beats; and shares of links
//! that no run exceeds.

use crate::common::settled;
use std::sync::atomic::AtomicBool;
use weft_experiment::{Cell, Column, Resolved, RunResult, Threads, planning, run};
use weft_trial::prelude::*;

fn fabric() -> impl Strategy<Value = String> {
    let shape = prop_oneof![
        Just("topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4"),
        Just(
            "topology = \"leaf-spine\"\nleaves = 2\nspines = 3\nhosts_per_leaf = 8\n\
             uplink = \"40Gbps\""
        ),
        Just("topology = \"fat-tree\"\nk = 4\ncore_delay = \"2us\""),
    ];
    let link = prop::sample::select(vec!["10Gbps", "100Gbps", "400Gbps"]);
    let delay = prop_oneof![Just(0), 1u32..50_000];
    (shape, link, any::<bool>(), delay).prop_map(|(shape, link, servers, delay)| {
        let servers = if servers { "\nserver.gpus = 2\nserver.nics = 2" } else { "" };
        format!(
            "[fabric]\n{shape}\nlink = \"{link}\"{servers}\nserver.endpoint_delay = \"{delay}ns\"\n"
        )
    })
}

fn pattern() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        Just("pattern = \"all-to-all\""),
        Just("pattern = \"permutation\"\ncount = 2"),
        Just("pattern = \"incast\"\nsenders = 5"),
        Just("pattern = \"ring\"\nchannels = 3"),
    ];
    (one, 1u32..60_000).prop_map(|(one, bytes)| format!("[workload]\n{one}\nsize = \"{bytes}B\"\n"))
}

fn collective() -> impl Strategy<Value = String> {
    let one = prop::sample::select(vec![
        ("all-reduce", "ring"),
        ("all-reduce", "direct"),
        ("all-reduce", "recursive-doubling"),
        ("all-reduce", "double-binary-tree"),
        ("all-gather", "pat"),
        ("reduce-scatter", "ring"),
        ("all-to-all", "direct"),
        ("broadcast", "ring"),
    ]);
    (one, 1_000u32..400_000, 1u32..3).prop_map(|((collective, algorithm), bytes, times)| {
        format!(
            "[workload]\ncollective = \"{collective}\"\nalgorithm = \"{algorithm}\"\n\
             size = \"{bytes}B\"\ntimes = {times}\n"
        )
    })
}

/// Small trainings, whose stages, groups and steps overlap.
fn model() -> impl Strategy<Value = String> {
    let degrees = prop::sample::select(vec![(1, 4), (2, 2), (2, 4), (4, 4), (1, 1), (4, 1)]);
    let schedule = prop::sample::select(vec!["gpipe", "1f1b"]);
    let zero = prop::sample::select(vec![0, 2, 3]);
    let batch = prop::sample::select(vec![16, 32]);
    (degrees, schedule, zero, any::<bool>(), 0u64..50, batch).prop_map(
        |((tensor, pipeline), schedule, zero, overlap, forward, batch)| {
            let overlap = overlap && zero < 3;
            format!(
                "[workload]\nmodel = \"gpt2-small\"\nlayers = 4\nhidden = 64\nheads = 4\n\
                 kv_heads = 4\nfeed_forward = 128\nsequence = 32\nvocabulary = 512\n\
                 positions = 0\ntensor = {tensor}\npipeline = {pipeline}\n\
                 schedule = \"{schedule}\"\nzero = {zero}\noverlap = {overlap}\n\
                 forward = \"{forward}us\"\nbackward = \"{}us\"\nglobal_batch = {batch}\n",
                2 * forward
            )
        },
    )
}

fn failure() -> impl Strategy<Value = String> {
    let links = "tier = \"leaf-up\"\ncount = 1\n";
    prop_oneof![
        2 => Just(String::new()),
        1 => Just(format!("[failures.slow]\n{links}kind = \"degraded\"\nlost = 0.9\n")),
        1 => Just(format!(
            "[failures.dead]\n{links}kind = \"down\"\ndetect = \"1us\"\nstart = \"3us\"\n\
             duration = \"40us\"\n"
        )),
    ]
}

fn job() -> impl Strategy<Value = String> {
    let workload = prop_oneof![pattern(), collective(), model()];
    let scheme = prop::sample::select(vec!["ecmp", "wcmp", "ethereal", "ethereal-weighted"]);
    (fabric(), workload, scheme, failure()).prop_map(|(fabric, workload, scheme, failure)| {
        format!(
            "{fabric}{workload}[balance]\nscheme = \"{scheme}\"\n[transport]\nrto = \"20ms\"\n\
             {failure}"
        )
    })
}

fn result(experiment: &Resolved, seed: u64, text: &str) -> RunResult {
    run(experiment, seed, Threads::ONE, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"))
}

fn value(result: &RunResult, name: &str) -> f64 {
    match result.row.iter().find(|(column, _)| *column == name) {
        Some((_, Cell::F64(value))) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

/// The largest share of its capacity that any link used.
fn fullest(result: &RunResult) -> f64 {
    match result.links.iter().find(|(column, _)| *column == "utilisation") {
        Some((_, Column::F64(shares))) => shares.iter().copied().fold(0.0, f64::max),
        other => panic!("utilisation is {other:?}"),
    }
}

trials! {
    #![cases(60)]

    fn no_run_beats_the_bound_of_its_plan(text in job(), seed in 1u64..1000) {
        let experiment = settled(&text, &[]);
        let planned = planning::plan(&experiment, seed, 0)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let given = planning::given(&experiment, seed, 0).expect("what is planned is given");
        let result = result(&experiment, seed, &text);
        let bound = planned.bound.as_secs_f64();
        prop_assert_eq!(bound, value(&result, "bound_s"), "{}", text);
        prop_assert_eq!(planned.bound, given.bound);
        prop_assert!(bound <= value(&result, "cct_s"), "{} > {}\n{}", bound, value(&result, "cct_s"), text);
        prop_assert!(fullest(&result) <= 1.0, "{}\n{}", fullest(&result), text);
    }
}

/// Two stages that work at the same time: the sum over steps counts what they do one after the other.
const PIPELINE: &str = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 2\n\
    hosts_per_leaf = 4\nlink = \"100Gbps\"\n[workload]\nmodel = \"gpt2-small\"\nlayers = 4\n\
    hidden = 256\nheads = 4\nkv_heads = 4\nfeed_forward = 1024\nsequence = 128\n\
    vocabulary = 512\npositions = 0\ntensor = 2\npipeline = 4\nglobal_batch = 32\n\
    forward = \"0ns\"\nbackward = \"0ns\"\n[balance]\nscheme = \"ethereal\"\n";

#[test]
fn steps_overlap_so_that_their_sum_is_no_bound() {
    let experiment = settled(PIPELINE, &[]);
    let planned = planning::plan(&experiment, 1, 0).expect("a plan");
    let sum: f64 = planned.steps.iter().map(|step| step.times as f64 * step.bound_s).sum();
    let cct = value(&result(&experiment, 1, PIPELINE), "cct_s");
    assert!(cct < sum, "{cct} and {sum}");
    assert!(planned.bound.as_secs_f64() <= cct);
}

/// A queue that still drains into a dead link when what was in it has come over the others.
const DRAINING: &str = "[fabric]\ntopology = \"leaf-spine\"\nleaves = 2\nspines = 4\n\
    hosts_per_leaf = 4\nlink = \"1Gbps\"\nuplink = \"100Mbps\"\nswitch.buffer = \"16MB\"\n\
    [workload]\npattern = \"permutation\"\nsize = \"100KB\"\n[balance]\nscheme = \"ethereal\"\n\
    [transport]\nrto = \"3ms\"\n[failures.dead]\nlinks = [\"leaf-0 <-> spine-0\"]\n\
    kind = \"down\"\nstart = \"1ms\"\ndetect = \"1us\"\n";

#[test]
fn what_a_dead_link_swallows_at_the_end_takes_its_time() {
    let experiment = settled(DRAINING, &[]);
    for seed in 1..20 {
        let found = result(&experiment, seed, DRAINING);
        assert!(fullest(&found) <= 1.0, "seed {seed}: {}", fullest(&found));
    }
}
