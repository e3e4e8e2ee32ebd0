//! Every key of an experiment, set to absurdly small and large values one by one: the message names
//! that key, or the run works.

use crate::common::GOOD;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_experiment::value::{Table, Value};
use weft_experiment::{Format, Request, RunError, Threads, expand, read_run, run, work};

/// Sizes, rates and times at the ends of what can be written, and numbers for all other keys.
const VALUES: &[&str] = &[
    "1B",
    "1000TB",
    "1Mbps",
    "8000Gbps",
    "1ps",
    "1000s",
    "0",
    "1",
    "2147483647",
    "0.001",
    "1e300",
];

/// Runs that need more packet-hops than this are large because somebody asked for it.
const SHORT: u64 = 200_000;
/// No run of so little work takes longer, whatever else goes on on this machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A job instead of the pattern.
const JOB: &str = r#"[fabric]
topology = "clos"
tiers = 3
pods = 2
leaves = 2
aggs = 2
cores = 2
hosts_per_leaf = 2
[fabric.server]
gpus = 2
[workload]
collective = "all-reduce"
size = "64KB"
[balance]
scheme = "ecmp"
"#;

/// Experiments that between them have all keys that experiments can have.
fn bases() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let small = ("workload.size", "4KB");
    let with = |key, value| (GOOD, vec![small, (key, value)]);
    let mut all = vec![(GOOD, vec![small]), (JOB, vec![])];
    for congestion in ["dctcp-rate", "dcqcn", "fixed-rate", "swift", "mp-rdma"] {
        all.push(with("transport.congestion", congestion));
    }
    for recovery in ["selective-repeat", "tcp", "coding"] {
        all.push(with("transport.recovery", recovery));
    }
    for scheme in
        ["reps", "plb", "letflow", "conga", "conweave", "ethereal", "dnlb-4", "subflows-4"]
    {
        all.push(with("balance.scheme", scheme));
    }
    let per_port = ("fabric.switch.buffer_kind", "per-port");
    all.push((GOOD, vec![small, per_port]));
    all.push((GOOD, vec![small, per_port, ("transport.recovery", "trim")]));
    let failures = [
        ("failures.links.tier", "leaf-up"),
        ("failures.links.count", "1"),
        ("failures.links.kind", "flaky"),
        ("failures.links.every", "10us"),
        ("failures.links.length", "1us"),
    ];
    all.push((GOOD, [small].into_iter().chain(failures).collect()));
    all.push((GOOD, vec![small, ("probe.goodput", "true")]));
    all
}

/// The dotted keys of all values that are no tables.
fn leaves(table: &Table, path: &str, all: &mut Vec<String>) {
    for (key, item) in table.iter() {
        let dotted = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match &item.value {
            Value::Table(inner) => leaves(inner, &dotted, all),
            _ => all.push(dotted),
        }
    }
}

/// What is said of `base` with `key` at `value`, if that is not the key; `None`: it works.
fn complaint(base: &str, set: &[(&str, &str)], key: &str, value: &str) -> Option<String> {
    let last = (key, value);
    let set = set.iter().chain([&last]);
    let overrides: Vec<_> = set.map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let (format, source) = (Format::Toml, "fig.toml");
    let expansion =
        expand(&Request { text: base, format, source, overrides: &overrides, seeds: None });
    let expansion = match expansion {
        Err(error) if error.key() == key => return None,
        Err(error) => return Some(error.to_string()),
        Ok(expansion) => expansion,
    };
    let json = Value::Table(expansion.runs[0].experiment.clone()).to_json();
    let resolved = read_run(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    if work(&resolved, 1).is_ok_and(|work| work.hops > SHORT) {
        return None;
    }
    let cancel = Arc::new(AtomicBool::new(false));
    let (over, flag) = (Arc::new(AtomicBool::new(false)), Arc::clone(&cancel));
    let watched = Arc::clone(&over);
    let watchdog = std::thread::spawn(move || {
        std::thread::park_timeout(PATIENCE);
        flag.store(!watched.load(Ordering::Relaxed), Ordering::Relaxed);
    });
    let done = run(&resolved, 1, Threads::ONE, &cancel);
    over.store(true, Ordering::Relaxed);
    watchdog.thread().unpark();
    match done {
        Ok(_) => None,
        Err(RunError::Experiment(error)) if error.key() == key => None,
        // Whoever asks for little patience gets it.
        Err(RunError::Stalled(_)) if key.starts_with("run.stall_") => None,
        Err(RunError::Stalled(what)) => Some(format!("stalled: {what}")),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn each_key_at_its_extremes_works_or_is_named() {
    let mut wrong = Vec::new();
    let (mut asked, mut known) = (0, BTreeSet::new());
    for (base, set) in bases() {
        let overrides: Vec<_> = set.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let (format, source) = (Format::Toml, "fig.toml");
        let request = Request { text: base, format, source, overrides: &overrides, seeds: None };
        let expansion = match expand(&request) {
            Ok(expansion) => expansion,
            Err(error) => {
                wrong.push(format!("{set:?} itself: {error}"));
                continue;
            }
        };
        let mut keys = Vec::new();
        leaves(&expansion.runs[0].experiment, "", &mut keys);
        // Each with the first experiment that has it.
        for key in keys.into_iter().filter(|key| known.insert(key.clone())) {
            for value in VALUES {
                asked += 1;
                if let Some(said) = complaint(base, &set, &key, value) {
                    wrong.push(format!("{set:?} {key}={value}: {said}"));
                }
            }
        }
    }
    assert!(asked > 1_000, "only {asked} were tried");
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}
