//! Trainings to test with, and what is in the traces of them.
#![allow(dead_code, reason = "no test uses all of it")]

use crate::ideal::{Ideal, run};
use std::collections::BTreeMap;
use weft_units::Time;
use weft_workload::job::{Algorithms, Job};
use weft_workload::model::{GPT2_SMALL, LLAMA2_7B, Training};
use weft_workload::trace::{Degrees, Peer, Trace, Work};

pub(crate) const FREE: Ideal = Ideal { latency: Time::ZERO, ps_per_byte: 0 };
pub(crate) const FAST: Ideal = Ideal { latency: Time::us(1), ps_per_byte: 20 };

pub(crate) fn degrees(tensor: u32, expert: u32, pipeline: u32) -> Degrees {
    Degrees { tensor, expert, pipeline, ..Degrees::NONE }
}
pub(crate) fn gpt2() -> Training {
    Training { global_batch: 64, micro_batch: 4, ..Training::of("gpt2", GPT2_SMALL) }
}
/// 64 ranks: 8 tensor-parallel, 2 stages, 4 data-parallel, 8 micro-batches.
pub(crate) fn llama() -> Training {
    let degrees = degrees(8, 1, 2);
    Training { global_batch: 32, degrees, ..Training::of("llama", LLAMA2_7B) }
}
pub(crate) fn generate(training: &Training, ranks: u32) -> Trace {
    training.generate(ranks).expect("a trace")
}

/// Collectives of a stage, by operation, group and size: how many.
pub(crate) fn calls(trace: &Trace, stage: usize) -> BTreeMap<(&'static str, &str, u64), u32> {
    let mut calls = BTreeMap::new();
    for node in trace.graphs[stage].nodes() {
        if let Work::Collective(one) = &node.work {
            let ranks = trace.group_size(one.group).expect("settled");
            let group = trace.groups[one.group as usize].name.as_str();
            *calls.entry((one.action.name(), group, one.bytes(ranks))).or_default() += 1;
        }
    }
    calls
}
/// Bytes of all collectives of an operation in a group.
pub(crate) fn volume(trace: &Trace, stage: usize, operation: &str, group: &str) -> u64 {
    let calls = calls(trace, stage);
    let mine = calls.iter().filter(|((what, who, _), _)| (*what, *who) == (operation, group));
    mine.map(|((_, _, bytes), count)| bytes * u64::from(*count)).sum()
}
/// Sends of a stage: how far, and how many bytes.
pub(crate) fn sends(trace: &Trace, stage: usize) -> Vec<(i64, u64)> {
    let nodes = trace.graphs[stage].nodes().iter();
    let mut sends: Vec<(i64, u64)> = nodes
        .filter_map(|node| match &node.work {
            Work::Send(one) => match one.peer {
                Peer::Away(distance) => Some((distance, one.bytes)),
                Peer::Rank(_) => panic!("stages share a graph"),
            },
            _ => None,
        })
        .collect();
    sends.sort_unstable();
    sends
}
/// How long a stage computes.
pub(crate) fn busy(trace: &Trace, stage: usize) -> Time {
    let time = |work: &Work| if let Work::Compute(one) = work { one.time.0 } else { 0 };
    Time(trace.graphs[stage].nodes().iter().map(|node| time(&node.work)).sum())
}
pub(crate) fn names(trace: &Trace, stage: usize) -> Vec<String> {
    trace.graphs[stage].nodes().iter().map(|node| node.name.to_string()).collect()
}
pub(crate) fn end(trace: Trace, ideal: Ideal) -> Time {
    run(&Job::new(trace, Algorithms::usual()).expect("a job"), ideal).end
}
