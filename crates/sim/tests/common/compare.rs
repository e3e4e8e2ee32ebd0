//! Two runs side by side.

use super::Setup;
use weft_sim::{Halt, Outcome};

/// All but the one number that tells how the engine works.
pub fn but_events(mut outcome: Outcome) -> Outcome {
    outcome.totals.events = 0;
    outcome
}

/// The first thing in which two runs differ; whole outcomes are too long to read.
pub fn difference(one: &Result<Outcome, Halt>, other: &Result<Outcome, Halt>) -> Option<String> {
    let (Ok(one), Ok(other)) = (one, other) else {
        return (one != other).then(|| format!("{:?} / {:?}", one.is_ok(), other.is_ok()));
    };
    fn first<T: PartialEq + std::fmt::Debug>(what: &str, a: &[T], b: &[T]) -> Option<String> {
        let at = a.iter().zip(b).position(|(a, b)| a != b)?;
        Some(format!("{what} {at}: {:?} / {:?}", a[at], b[at]))
    }
    first("message", one.messages.as_slice(), other.messages.as_slice())
        .or_else(|| first("port", one.ports.as_slice(), other.ports.as_slice()))
        .or_else(|| first("series", &one.series, &other.series))
        .or_else(|| first("totals", &[one.totals], &[other.totals]))
        .or_else(|| (one != other).then(|| "something else".into()))
}

/// The run of `setup` in one partition, if it is that of a plain heap and real queues.
///
/// # Panics
/// If it is another.
pub fn confirmed(setup: &Setup) -> Result<Outcome, Halt> {
    let (one, oracle) = (setup.run_in(1, 1), setup.run_oracle());
    let differ = difference(&one.clone().map(but_events), &oracle.map(but_events));
    assert_eq!(differ, None, "one partition against the oracle");
    let differ = difference(&one, &setup.run_by_time());
    assert_eq!(differ, None, "windows against the order of time");
    one
}

/// Runs `setup` in `partitions` partitions on `threads` threads and compares it with the run in `one`,
/// the number of events included.
///
/// # Errors
/// With the first difference.
pub fn equals(
    one: &Result<Outcome, Halt>,
    setup: &Setup,
    partitions: u32,
    threads: u32,
) -> Result<(), String> {
    match difference(one, &setup.run_in(partitions, threads)) {
        None => Ok(()),
        Some(what) => Err(format!("{partitions} partitions on {threads} threads: {what}")),
    }
}
