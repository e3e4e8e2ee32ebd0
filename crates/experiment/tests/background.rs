//! Background traffic: that it is in the way, that results are of the workload alone, and what is wrong with it.

use crate::common::{find, mistake, settled};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use weft_experiment::{Cell, Column, Columns, Resolved, RunResult, Threads, run};

const JOB: &str = "collective = \"all-reduce\"\nsize = \"1MB\"\nranks = 8";
const PERMUTATION: &str = "pattern = \"permutation\"\nsize = \"100KB\"";

fn with(workload: &str) -> String {
    format!(
        "[fabric]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         [balance]\nscheme = \"spray\"\n[probe]\ntimeline = true\n[workload]\n{workload}\n"
    )
}

fn on(threads: u32, experiment: &Resolved) -> RunResult {
    let threads = Threads::Exactly(NonZeroU32::new(threads).expect("some"));
    run(experiment, 1, threads, &AtomicBool::new(false)).expect("a run")
}

fn result(workload: &str, overrides: &[(&str, &str)]) -> RunResult {
    on(1, &settled(&with(workload), overrides))
}

fn cell<'a>(result: &'a RunResult, column: &str) -> Option<&'a Cell> {
    result.row.iter().find(|(name, _)| *name == column).map(|(_, cell)| cell)
}

fn of(result: &RunResult, column: &str) -> f64 {
    match cell(result, column) {
        Some(Cell::F64(number)) => *number,
        Some(Cell::U64(number)) => *number as f64,
        other => panic!("{column}: {other:?}"),
    }
}

fn rows(table: &Columns) -> usize {
    match &table[0].1 {
        Column::U32(all) => all.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn results_are_of_the_workload_alone() {
    for workload in [JOB, PERMUTATION] {
        let alone = result(workload, &[]);
        let told = [("background.load", "0.4"), ("background.size", "20KB")];
        let both = result(workload, &told);
        for column in ["messages", "payload_bytes", "bound_s", "ranks", "collectives", "rto_s"] {
            assert_eq!(cell(&both, column), cell(&alone, column), "{column}");
        }
        assert_eq!(rows(&both.flows), rows(&alone.flows));
        assert_eq!(rows(&both.nodes), rows(&alone.nodes));
        assert_eq!(rows(&both.messages), rows(&alone.messages));
        assert!(of(&both, "cct_s") > 1.1 * of(&alone, "cct_s"));
        assert!(of(&both, "packets") > of(&alone, "packets"));
        // Sixteen links of 100 Gb/s for four times the bound.
        let bytes = 0.4 * 16.0 * 12.5e9 * 4.0 * of(&both, "bound_s");
        let sent = of(&both, "background_bytes");
        assert!((sent / bytes - 1.0).abs() < 0.15, "{sent} {bytes}");
        assert_eq!(sent, 20_000.0 * of(&both, "background_messages"));
        assert!(of(&both, "background_fct_p99_s") > of(&both, "background_fct_mean_s"));
        assert_eq!(cell(&alone, "background_messages"), None);
    }
}

#[test]
fn without_load_nothing_changes() {
    for workload in [JOB, PERMUTATION] {
        let (alone, idle) = (result(workload, &[]), result(workload, &[("background.load", "0")]));
        assert_eq!(of(&idle, "background_messages"), 0.0);
        assert_eq!(idle.row[..alone.row.len()], alone.row[..]);
        assert_eq!((idle.flows, idle.nodes, idle.links), (alone.flows, alone.nodes, alone.links));
    }
    let job = settled(&with(JOB), &[]);
    assert_eq!(find(job.table(), "background"), None);
}

#[test]
fn hosts_that_share_no_link_are_not_in_the_way() {
    // Eight ranks on two leaves; the others talk within the fourth one.
    let alone = result(JOB, &[]);
    let apart = [("background.hosts", "[12, 13, 14, 15]"), ("background.size", "20KB")];
    let apart = result(JOB, &apart);
    assert!(of(&apart, "background_messages") > 10.0);
    assert_eq!(of(&apart, "cct_s"), of(&alone, "cct_s"));
    // Those of other leaves share spines, but no link with ranks.
    let idle = result(JOB, &[("background.hosts", "idle"), ("background.size", "20KB")]);
    assert_eq!(of(&idle, "cct_s"), of(&alone, "cct_s"));
}

#[test]
fn threads_change_nothing() {
    for (workload, pattern) in [(JOB, "uniform"), (JOB, "incast"), (PERMUTATION, "permutation")] {
        let told = [("background.pattern", pattern), ("background.size", "storage")];
        let experiment = settled(&with(workload), &told);
        let (one, three) = (on(1, &experiment), on(3, &experiment));
        assert_eq!((one.row, one.flows, one.links), (three.row, three.flows, three.links));
    }
}

#[test]
fn an_end_too_early_is_told() {
    let early = result(JOB, &[("background.duration", "20us")]);
    let said = early.warnings.join("\n");
    assert!(said.contains("the background ends at 20us, before the workload does"), "{said}");
    let long = result(JOB, &[("background.duration", "10ms"), ("background.load", "0.05")]);
    assert!(!long.warnings.join("\n").contains("background"));
}

#[test]
fn mistakes_are_told() {
    let told =
        |key: &str, value: &str| mistake(&with(JOB), &[(&format!("background.{key}"), value)]);
    let line = |key, what: &str| format!("fig.toml: background.{key} (command line): {what}");
    assert_eq!(told("load", "1.5"), line("load", "1.5 is out of range; use 0 to 1"));
    assert_eq!(told("hosts", "[3, 16]"), line("hosts", "there is no host 16; use 0 to 15"));
    assert_eq!(told("hosts", "[3, 3]"), line("hosts", "lists 3 twice; list it once"));
    assert_eq!(told("senders", "4"), line("senders", "belongs to pattern = \"incast\"; remove it"));
    let size = told("size", "websearch");
    assert!(size.ends_with("or one of web-search, data-mining, storage"), "{size}");
    assert_eq!(told("lode", "1"), line("lode", "unknown key; did you mean \"load\"?"));
    let one = settled(&with(JOB), &[("background.hosts", "[3]")]);
    let error = run(&one, 1, Threads::ONE, &AtomicBool::new(false)).expect_err("too few");
    assert_eq!(error.to_string(), "background.hosts: 1 are too few; give 2 at least");
}
