//! Runs of 32 GPUs, and what they measured.

#![allow(dead_code)]

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use weft_experiment::value::Value;
use weft_experiment::{Cell, Format, Request, RunResult, Threads, expand, read_run, run};

/// 32 GPUs below four leaves with eight uplinks each.
pub(crate) fn run_of(scheme: &str, more: &str) -> RunResult {
    run_over(8, scheme, more, 3)
}
/// The same with so many uplinks a leaf, under a seed.
pub(crate) fn run_over(uplinks: u32, scheme: &str, more: &str, seed: u64) -> RunResult {
    let text = format!(
        r#"
        [fabric]
        topology = "leaf-spine"
        leaves = 4
        spines = {uplinks}
        hosts_per_leaf = 8
        link = "100Gbps"
        delay = "500ns"
        {more}
        "#
    );
    let text = match more.contains("[balance]\n") {
        true => text.replace("[balance]\n", &format!("[balance]\nscheme = \"{scheme}\"\n")),
        false => format!("{text}\n[balance]\nscheme = \"{scheme}\"\n"),
    };
    let (format, source) = (Format::Toml, "test.toml");
    let request = Request { text: &text, format, source, overrides: &[], seeds: None };
    let all = expand(&request).unwrap_or_else(|error| panic!("{error}"));
    let run_ = read_run(&Value::Table(all.runs[0].experiment.clone()).to_json()).expect("resolved");
    let one = Threads::Exactly(NonZeroU32::MIN);
    run(&run_, seed, one, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error:?}"))
}
pub(crate) fn column(result: &RunResult, name: &str) -> f64 {
    match result.row.iter().find(|(column, _)| *column == name) {
        Some((_, Cell::F64(number))) => *number,
        Some((_, Cell::U64(number))) => *number as f64,
        other => panic!("{name} is {other:?}"),
    }
}
pub(crate) fn slowdown(scheme: &str, more: &str) -> f64 {
    column(&run_of(scheme, more), "slowdown")
}

pub(crate) const PERMUTATION: &str = r#"workload = { pattern = "permutation", size = "4MB" }"#;
pub(crate) const ALL_TO_ALL: &str = r#"workload = { collective = "all-to-all", size = "8MB" }"#;
pub(crate) const DOUBLING: &str =
    r#"workload = { collective = "all-reduce", algorithm = "recursive-doubling", size = "8MB" }"#;

/// A line `name = { .. }` as a table of its own.
pub(crate) fn tables(line: &str) -> String {
    let (name, inner) = line.split_once(" = {").expect("a table");
    let inner = inner.trim_end().trim_end_matches('}');
    format!("[{name}]\n{}\n", inner.replace(", ", "\n"))
}
