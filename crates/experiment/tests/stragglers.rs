//! Stragglers: what they do to jobs and patterns, that the bound knows them, and what is wrong with them.

use crate::common::{find, mistake, settled};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use weft_experiment::{Cell, Column, Resolved, RunResult, Threads, run};
use weft_trial::prelude::*;

/// A model that computes and exchanges, and room for another workload.
const MODEL: &str = "model = \"gpt2-small\"\nlayers = 2\nglobal_batch = 16\nhidden = 192\nsequence = 128\n\
                     forward = \"1ms\"\nbackward = \"2ms\"\noverlap = false";
const ALL_REDUCE: &str = "collective = \"all-reduce\"\nsize = \"1MB\"\ntimes = 3";
const PERMUTATION: &str = "pattern = \"permutation\"\nsize = \"100KB\"";

fn with(workload: &str) -> String {
    format!(
        "[fabric]\ntopology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         [balance]\nscheme = \"spray\"\n[probe]\ntimeline = true\n[workload]\n{workload}\n"
    )
}

fn on(threads: u32, experiment: &Resolved, seed: u64) -> RunResult {
    let threads = Threads::Exactly(NonZeroU32::new(threads).expect("some"));
    run(experiment, seed, threads, &AtomicBool::new(false)).expect("a run")
}

fn result(workload: &str, overrides: &[(&str, &str)]) -> RunResult {
    on(1, &settled(&with(workload), overrides), 1)
}

fn of(result: &RunResult, column: &str) -> f64 {
    match result.row.iter().find(|(name, _)| *name == column) {
        Some((_, Cell::F64(number))) => *number,
        other => panic!("{column}: {other:?}"),
    }
}

fn seconds(result: &RunResult, column: &str) -> Vec<f64> {
    match result.flows.iter().find(|(name, _)| *name == column) {
        Some((_, Column::F64(all))) => all.clone(),
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn nothing_is_written_out_where_nobody_is_slow() {
    assert_eq!(find(settled(&with(MODEL), &[]).table(), "stragglers"), None);
    let slow = settled(&with(MODEL), &[("stragglers.share", "0.1")]);
    assert_eq!(find(slow.table(), "stragglers.factor").as_deref(), Some("1.1"));
    assert_eq!(find(slow.table(), "stragglers.start_distribution").as_deref(), Some("exponential"));
}

#[test]
fn a_slow_rank_takes_longer_and_holds_up_all_others() {
    let usual = result(MODEL, &[]);
    // Two layers, forward and backward.
    assert_eq!(of(&usual, "compute_s"), 6e-3);
    for (ranks, factor) in [("[5]", 1.5), ("[0, 15]", 1.25)] {
        let factor_text = factor.to_string();
        let told = [("stragglers.ranks", ranks), ("stragglers.factor", &factor_text)];
        let slow = result(MODEL, &told);
        assert!((of(&slow, "compute_s") - 6e-3 * factor).abs() < 1e-12);
        // Gradients are reduced when all have theirs: what it takes longer, all take longer.
        let longer = of(&slow, "cct_s") - of(&usual, "cct_s") - 6e-3 * (factor - 1.0);
        assert!(longer.abs() < 2e-5, "{longer}");
    }
}

#[test]
fn a_faster_gpu_makes_the_bound_smaller() {
    let told = [("stragglers.share", "1.0"), ("stragglers.factor", "0.5")];
    let (usual, fast) = (result(MODEL, &[]), result(MODEL, &told));
    assert_eq!(of(&fast, "compute_s"), 3e-3);
    assert!(of(&fast, "bound_s") < of(&usual, "bound_s"));
    assert!(of(&fast, "slowdown") >= 1.0);
}

#[test]
fn hosts_of_a_pattern_are_late() {
    let told = [
        ("stragglers.ranks", "[3]"),
        ("stragglers.factor", "4"),
        ("stragglers.start_delay", "10us"),
        ("stragglers.start_distribution", "fixed"),
    ];
    let late = result(PERMUTATION, &told);
    let starts = seconds(&late, "start_s");
    let expected: Vec<f64> = (0..16).map(|host| if host == 3 { 4e-5 } else { 1e-5 }).collect();
    assert_eq!(starts, expected);
}

#[test]
fn ranks_come_late_to_collectives() {
    let fixed = ("stragglers.start_distribution", "fixed");
    let usual = of(&result(ALL_REDUCE, &[]), "cct_s");
    let late = of(&result(ALL_REDUCE, &[("stragglers.start_delay", "1ms"), fixed]), "cct_s");
    // Three collectives, each of which begins a millisecond after the one before.
    assert!((late - usual - 3e-3).abs() < 1e-6, "{late} {usual}");
    let one = [("stragglers.start_delay", "1ms"), fixed, ("stragglers.count", "1")];
    let slower =
        of(&result(ALL_REDUCE, &[one[0], one[1], one[2], ("stragglers.factor", "2")]), "cct_s");
    assert!(slower > late + 2.9e-3, "{slower} {late}");
}

#[test]
fn what_changes_nothing_is_told() {
    let said = |workload, told: &[_]| {
        let traffic = settled(&with(workload), told).traffic(1).expect("traffic");
        traffic.warnings.join("\n")
    };
    let share = ("stragglers.share", "0.5");
    let nothing = "stragglers has no effect on all-reduce, which computes nothing; give \
                   stragglers.start_delay";
    assert!(said(ALL_REDUCE, &[share]).contains(nothing));
    assert!(said(PERMUTATION, &[share]).contains("no effect on permutation"));
    let delayed = said(MODEL, &[share, ("stragglers.start_delay", "1us")]);
    assert!(delayed.contains("stragglers.start_delay has no effect on gpt2-small"), "{delayed}");
    assert_eq!(said(MODEL, &[share]), "");
}

#[test]
fn mistakes_are_told() {
    let told = |overrides: &[(&str, &str)]| mistake(&with(MODEL), overrides);
    let line = |key, what: &str| format!("fig.toml: stragglers.{key} (command line): {what}");
    assert_eq!(
        told(&[("stragglers.share", "0.1"), ("stragglers.count", "2")]),
        line("count", "stands beside share; remove one of them")
    );
    assert_eq!(
        told(&[("stragglers.count", "17")]),
        line("count", "17 are more than the 16 GPUs; use fewer")
    );
    assert_eq!(
        told(&[("stragglers.ranks", "[2, 16]")]),
        line("ranks", "there is no rank 16; use 0 to 15")
    );
    assert_eq!(
        told(&[("stragglers.ranks", "[2, 2]")]),
        line("ranks", "lists 2 twice; list it once")
    );
    assert_eq!(
        told(&[("stragglers.spread", "0.1")]),
        line("spread", "needs a distribution; set speed = \"normal\", or remove it")
    );
    assert_eq!(
        told(&[("stragglers.speed", "normal"), ("stragglers.spread", "0.5")]),
        line("spread", "0.5 is out of range; use 0 to 0.3")
    );
    assert_eq!(
        told(&[("stragglers.factor", "2")]),
        line(
            "factor",
            "is that of slow GPUs, and there are none; set share, count or ranks, or remove it"
        )
    );
    assert_eq!(
        told(&[("stragglers.factro", "2")]),
        line("factro", "unknown key; did you mean \"factor\"?")
    );
}

trials! {
    #![cases(12)]
    /// No run beats its bound, and threads change nothing.
    fn the_bound_stays_a_bound(
        (workload, speed, delays, seed) in (0..3_usize, 0..4_usize, 0..3_usize, 1..1_000_u64)
    ) {
        let workload = [MODEL, ALL_REDUCE, PERMUTATION][workload];
        let speed = ["equal", "normal", "lognormal", "uniform"][speed];
        let delays = ["fixed", "uniform", "exponential"][delays];
        let mut told = vec![
            ("stragglers.share", "0.2"),
            ("stragglers.factor", "1.7"),
            ("stragglers.speed", speed),
            ("stragglers.jitter", "0.3"),
            ("stragglers.start_delay", "20us"),
            ("stragglers.start_distribution", delays),
        ];
        if speed != "equal" {
            told.push(("stragglers.spread", "0.2"));
        }
        let experiment = settled(&with(workload), &told);
        let (one, two) = (on(1, &experiment, seed), on(2, &experiment, seed));
        prop_assert!(of(&one, "slowdown") >= 1.0, "{}", of(&one, "slowdown"));
        prop_assert_eq!(&one.row, &two.row);
        prop_assert_eq!(&one.nodes, &two.nodes);
    }
}
