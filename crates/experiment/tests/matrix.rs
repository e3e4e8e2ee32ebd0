//! Every scheme with every recovery, with and without failures, on a small fabric: all bytes
//! arrive, and no run beats its bound. A quarter of all combinations, and all in `make soak`.

use std::sync::atomic::AtomicBool;
use weft_balance::scheme::{SCHEMES, SchemeInfo};
use weft_experiment::value::Value;
use weft_experiment::{Cell, Column, Format, Request, Threads, expand, read_run, run};
use weft_transport::RECOVERIES;
use weft_trial::is_drawn;

/// Buffers that overflow, half of each pod's links slow, and time-outs that are soon over.
const BASE: &str = r#"
[fabric]
topology = "fat-tree"
k = 4
switch = { buffer_kind = "per-port", buffer = "40KB" }
[workload]
pattern = "permutation"
count = 2
size = "120KB"
[transport]
rto = "200us"
[balance]
scheme = "ecmp"
"#;

/// Each kind of failure under way, starting in the middle of things, and none.
const FAILURES: [&str; 4] = [
    "",
    "[failures.slow]\ntier = \"pod-up\"\ncount = 2\nkind = \"degraded\"\nlost = 0.9\n\
     start = \"10us\"\nduration = \"300us\"\n",
    "[failures.flaky]\ntier = \"pod-up\"\nkind = \"flaky\"\nevery = \"50us\"\nlength = \"10us\"\n",
    "[failures.dead]\ntier = \"leaf-up\"\ngroups = [0, 3]\nkind = \"down\"\nstart = \"5us\"\n\
     detect = \"100us\"\nduration = \"400us\"\n",
];

/// Who sends how, into which memory: buffers that overflow, and some that pause.
const SENDING: [&[(&str, &str)]; 6] = [
    &[],
    &[("transport.congestion", "swift"), ("transport.subflows", "3")],
    &[("transport.congestion", "nscc")],
    &[("transport.congestion", "fixed-rate"), ("transport.rate", "fair")],
    &[("fabric.switch.pfc", "true")],
    &[
        ("transport.congestion", "fixed-rate"),
        ("fabric.switch.buffer_kind", "shared"),
        ("fabric.switch.buffer", "400KB"),
    ],
];

/// Persistent queue pairs are cut into no others, and those with shares of the line need a rate.
fn can_do(scheme: &SchemeInfo, (key, value): &(&str, &str)) -> bool {
    match *key {
        "transport.subflows" => !scheme.persistent,
        "transport.congestion" => !scheme.shares || !["swift", "nscc"].contains(value),
        _ => true,
    }
}

/// The same with two tiers, for schemes that know no more.
fn in_two_tiers(text: &str) -> String {
    text.replace(
        "topology = \"fat-tree\"\nk = 4",
        "topology = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4",
    )
    .replace("pod-up", "leaf-up")
}

fn check(text: &str, scheme: &str, recovery: &str, sending: &[(&str, &str)]) {
    let names = [("balance.scheme", scheme), ("transport.recovery", recovery)];
    let overrides: Vec<_> = names
        .iter()
        .chain(sending)
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let told = format!("{overrides:?} with {text}");
    let (format, source) = (Format::Toml, "matrix.toml");
    let request = Request { text, format, source, overrides: &overrides, seeds: None };
    let pauses = sending.iter().any(|(key, _)| key.starts_with("fabric"));
    let all = match expand(&request) {
        Ok(all) => all,
        Err(error) if error.to_string().contains(" leaves and spines only, ") => {
            return check(&in_two_tiers(text), scheme, recovery, sending);
        }
        Err(error) => {
            let is_known = pauses && error.to_string().contains(" has switches trim, which ");
            assert!(is_known, "{told}: {error}");
            return;
        }
    };
    let experiment = read_run(&Value::Table(all.runs[0].experiment.clone()).to_json()).unwrap();
    let ended = run(&experiment, 1, Threads::ONE, &AtomicBool::new(false));
    let result = ended.unwrap_or_else(|error| panic!("{told}: {error}"));
    let number = |name| match result.row.iter().find(|(column, _)| *column == name) {
        Some((_, Cell::F64(number))) => *number,
        Some((_, Cell::U64(number))) => *number as f64,
        other => panic!("{name} is {other:?}"),
    };
    assert!(number("slowdown") >= 1.0, "{told}");
    // Thirty packets a message; symbols, and all that is sent again, come on top.
    assert!(number("packets") >= 32.0 * 30.0, "{told}");
    assert!(!pauses || number("drops") == 0.0, "{told}");
    let times = result.flows.iter().find(|(name, _)| *name == "fct_s").map(|(_, times)| times);
    let Some(Column::F64(times)) = times else { panic!("{times:?}") };
    assert!(times.len() == 32 && times.iter().all(|time| *time > 0.0), "{told}");
}

#[test]
fn whatever_is_accepted_delivers() {
    for (failure, sending) in FAILURES.iter().flat_map(|f| SENDING.iter().map(move |s| (f, s))) {
        for scheme in SCHEMES {
            for recovery in RECOVERIES {
                if !is_drawn(&format!("{failure:?} {sending:?} {} {}", scheme.name, recovery.name))
                {
                    continue;
                }
                let sending: Vec<_> =
                    sending.iter().filter(|one| can_do(scheme, one)).copied().collect();
                check(&format!("{BASE}{failure}"), scheme.name, recovery.name, &sending);
            }
        }
    }
}
