//! One simulation on several threads: the same results, the same ways to end early.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use weft_experiment::value::Value;
use weft_experiment::{
    Cell, Format, Request, Resolved, RunError, RunResult, Threads, expand, read_run, run,
};
use weft_fabric::Failures;
use weft_units::Time;

/// Twelve leaves: one, two and three threads run one, eight and twelve partitions.
fn experiment(switch: &str, workload: &str, scheme: &str) -> Resolved {
    let text = format!(
        r#"
        balance = {{ scheme = "{scheme}" }}
        workload = {{ {workload} }}
        [fabric]
        topology = "leaf-spine"
        leaves = 12
        spines = 3
        hosts_per_leaf = 2
        switch = {{ {switch} }}
        [probe]
        interval = "2us"
        ports = ["leaf-* -> spine-*", "spine-2 -> leaf-11", "leaf-0 -> host-0"]
        switches = ["leaf-0", "leaf-11", "spine-1"]
        "#
    );
    resolved(&text)
}

fn resolved(text: &str) -> Resolved {
    let (format, source) = (Format::Toml, "test.toml");
    let request = Request { text, format, source, overrides: &[], seeds: None };
    let all = expand(&request).unwrap_or_else(|error| panic!("{error}"));
    read_run(&Value::Table(all.runs[0].experiment.clone()).to_json()).expect("resolved")
}

const ALL_TO_ALL: &str = r#"pattern = "all-to-all", size = "16KB""#;
const INCAST: &str = r#"pattern = "incast", size = "400KB""#;
const LOSSLESS: &str = r#"buffer = "450KB", pfc = true"#;
const LOSSY: &str = r#"buffer_kind = "per-port", buffer = "13KB", pfc = false"#;

fn exactly(threads: u32) -> Threads {
    Threads::Exactly(NonZeroU32::new(threads).expect("some"))
}

fn on(threads: u32, experiment: &Resolved) -> Result<RunResult, RunError> {
    run(experiment, 7, exactly(threads), &AtomicBool::new(false))
}

fn count(result: &RunResult, name: &str) -> u64 {
    match result.row.iter().find(|(column, _)| *column == name) {
        Some((_, Cell::U64(number))) => *number,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn threads_change_nothing_but_the_timing() {
    // With the column that shows that the case is the one it is meant to be.
    let cases = [
        (LOSSLESS, INCAST, "ecmp", "pauses"),
        (LOSSLESS, ALL_TO_ALL, "ethereal", "packets"),
        (LOSSLESS, ALL_TO_ALL, "twill", "packets"),
        (LOSSY, ALL_TO_ALL, "ecmp", "drops"),
        (LOSSY, ALL_TO_ALL, "reps", "retransmits"),
    ];
    for (switch, workload, scheme, column) in cases {
        let experiment = experiment(switch, workload, scheme);
        let one = on(1, &experiment).expect("a result");
        assert!(count(&one, column) > 0, "{scheme}: {column}");
        assert!(one.series.bytes.iter().flatten().any(|bytes| *bytes > 0), "{scheme}");
        for threads in [2, 3] {
            let more = on(threads, &experiment).expect("a result");
            assert_eq!((one.timing.threads, more.timing.threads), (1, threads));
            assert_eq!(one.row, more.row, "{scheme}, {threads} threads");
            assert_eq!(one.flows, more.flows, "{scheme}, {threads} threads");
            assert_eq!(one.links, more.links, "{scheme}, {threads} threads");
            assert_eq!(one.series, more.series, "{scheme}, {threads} threads");
            assert_eq!(one.warnings, more.warnings, "{scheme}, {threads} threads");
        }
    }
}

#[test]
fn more_threads_than_leaves_are_no_harm() {
    let experiment = experiment(LOSSY, ALL_TO_ALL, "spray");
    let (one, many) = (on(1, &experiment), on(1 << 16, &experiment));
    assert_eq!(one.expect("a result").row, many.expect("a result").row);
}

#[test]
fn a_stall_is_told_in_the_same_words() {
    let mut impatient = experiment(LOSSY, INCAST, "ecmp");
    impatient.transport.rto = Some(Time::ms(100));
    impatient.stall_after = Some(Time::ms(1));
    impatient.probes.interval = None;
    let told = |threads| match on(threads, &impatient) {
        Err(RunError::Stalled(who)) => who,
        other => panic!("{:?}", other.map(|result| result.row)),
    };
    let one = told(1);
    assert!(one.contains("host"), "{one}");
    assert_eq!([told(2), told(3)], [one.clone(), one]);
}

#[test]
fn a_set_flag_cancels_all_threads() {
    // Long enough for the engines to look at the flag at all.
    let long = experiment(LOSSLESS, r#"pattern = "all-to-all", size = "1MB""#, "ecmp");
    for threads in [1, 2, 3] {
        let ended = run(&long, 1, exactly(threads), &AtomicBool::new(true));
        assert!(matches!(ended, Err(RunError::Cancelled)), "{threads} threads");
    }
}

/// 1024 hosts gain from threads, four do not.
#[test]
fn the_number_of_threads_suits_the_run_and_its_share() {
    let threads = |k: u32, share: Threads| {
        let experiment = resolved(&format!(
            "[fabric]\ntopology = \"fat-tree\"\nk = {k}\nswitch = {{ pfc = false }}\n\
             [workload]\npattern = \"permutation\"\nsize = \"2MB\"\n\
             [balance]\nscheme = \"ecmp\"\n"
        ));
        let traffic = experiment.traffic(1).expect("traffic");
        share.of(&experiment.run_config(&traffic, Failures::default(), 1))
    };
    let up_to = |share| Threads::UpTo(NonZeroU32::new(share).expect("some"));
    assert_eq!([1, 2].map(|share| threads(16, up_to(share))), [1, 2]);
    assert_eq!(threads(2, up_to(64)), 1);
    assert!(threads(16, up_to(1 << 20)) <= 16, "no more threads than pods");
    assert_eq!(threads(2, exactly(3)), 3);
}
