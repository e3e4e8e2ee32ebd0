//! `weft trace info`: what is in a trace, and whether it can run.

use crate::experiment::most_payload;
use crate::parse::parse_bare;
use crate::reader::Reader;
use crate::section::fabric::USUAL_MTU;
use crate::section::workload::{self, JobSource, TraceFiles, What, WorkloadSource};
use crate::value::{Item, Table, Value};
use std::ops::ControlFlow;
use std::path::Path;
use weft_config::{ExperimentError, Origin};
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{
    Carried, Carrier, CollectiveRow, Remark, Size, Trace, Work, check, summarise,
};

/// Describes the trace at `path` in `folder`, read as the keys of `[workload]` in `options` say, each
/// with a value in TOML or a bare word. In JSON: `name`, `ranks`, `programmes`, `nodes`, `kinds`,
/// `dependencies`, `depth`, `compute_s`, `host_compute_s`, `operations`, `collectives`, `sends`,
/// `receives`, `carried`, `process_groups`, `unsupported`, `remarks`, `problems`, `more_problems`, `stuck`,
/// `runs_on_data`. A trace that leaves the number of ranks open is settled on `ranks`, or on those
/// that the options say.
///
/// # Errors
/// If a key is not known, a file cannot be read or understood, or does not fit so many ranks.
pub fn trace_info(
    path: &Path,
    options: &[(String, String)],
    folder: &Path,
    ranks: Option<u32>,
) -> Result<String, ExperimentError> {
    let job = source(path, options, folder).map_err(|error| match error.key() {
        // Their errors name the file.
        key if workload::is_path_key(key) => {
            ExperimentError::new("", Origin::Unknown, error.what())
        }
        _ => error,
    })?;
    let What::Trace(files) = &job.what else { unreachable!("it has the key of a trace") };
    let trace =
        files.load().map_err(|fault| ExperimentError::new("", Origin::Unknown, fault.what))?;
    let trace = match ranks.or(job.ranks) {
        None => trace,
        Some(ranks) => trace
            .for_ranks(ranks)
            .map_err(|error| ExperimentError::new("ranks", Origin::Unknown, error.0))?,
    };
    Ok(described(files, trace).to_json())
}

/// The job whose section has these keys.
fn source(
    path: &Path,
    options: &[(String, String)],
    folder: &Path,
) -> Result<JobSource, ExperimentError> {
    let mut section = Table::new();
    section.put("trace", path.to_string_lossy().into_owned());
    for (key, text) in options {
        section.set(key, Item::new(parse_bare(text)));
    }
    let mut reader = Reader::root(&section);
    let found = workload::read(&mut reader, folder)?;
    reader.finish()?;
    match found {
        WorkloadSource::Jobs { jobs, .. } => Ok(jobs.into_iter().next().expect("one was given")),
        _ => unreachable!("a trace is a job"),
    }
}

fn described(files: &TraceFiles, trace: Trace) -> Value {
    let summary = summarise(&trace);
    let mut findings = check(&trace);
    let mut table = Table::new();
    table.put("name", trace.name.as_str());
    table.put("ranks", or_false(summary.ranks));
    table.put("programmes", count(summary.graphs));
    table.put("nodes", count(summary.nodes));
    let mut kinds = Table::new();
    for (kind, nodes) in &summary.kinds {
        kinds.put(kind, count(*nodes));
    }
    table.put("kinds", kinds);
    table.put("dependencies", count(summary.dependencies));
    table.put("depth", count(summary.depth));
    table.put("compute_s", Value::Float(summary.compute.as_secs_f64()));
    table.put("host_compute_s", Value::Float(summary.host_compute.as_secs_f64()));
    table.put("operations", count(summary.operations));
    table.put("collectives", summary.collectives.iter().map(collective).collect::<Vec<_>>());
    for (key, (messages, bytes)) in [("sends", summary.sends), ("receives", summary.receives)] {
        let mut pair = Table::new();
        pair.put("count", count(messages));
        pair.put("bytes", count(bytes));
        table.put(key, pair);
    }
    table.put("carried", summary.carried.iter().map(carried).collect::<Vec<_>>());
    let groups = files.side_file().filter(|(key, _)| *key == "process_groups");
    let groups = groups.map(|(_, path)| path.to_string_lossy().into_owned());
    table.put("process_groups", groups.map_or(Value::Bool(false), Value::from));
    table.put("unsupported", remarks(&summary.unsupported));
    table.put("remarks", remarks(&summary.remarks));
    if findings.is_clean() && trace.ranks.is_some() {
        findings.problems.extend(refusal(trace));
    }
    let runs_on_data = !findings.is_clean() && files.runs_on_data();
    let problems = findings.problems.iter().map(|problem| Value::from(problem.as_str()));
    table.put("problems", problems.collect::<Vec<_>>());
    table.put("more_problems", count(findings.more));
    table.put("stuck", count(findings.stuck));
    table.put("runs_on_data", Value::Bool(runs_on_data));
    Value::Table(table)
}

/// What a run with usual algorithms and packets would say of a trace that can finish.
fn refusal(trace: Trace) -> Option<String> {
    let largest = largest_payload(&trace);
    let name = trace.name.clone();
    let job = match Job::new(trace, Algorithms::usual()) {
        Ok(job) => job,
        Err(error) => return Some(error.0),
    };
    let most = most_payload(USUAL_MTU);
    // Who sends what takes long to count, and most buffers are smaller than any message may be.
    let too_large = (largest > most).then(|| {
        job.traffic(|one| match one.bytes > most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    })?;
    too_large.is_break().then(|| {
        format!("{name}: sends a message of more than {most} B, the most there can be; correct it")
    })
}

/// The largest buffer of a collective or payload of a message.
fn largest_payload(trace: &Trace) -> u64 {
    let nodes = trace.graphs.iter().flat_map(|graph| graph.nodes());
    let payloads = nodes.map(|node| match &node.work {
        Work::Collective(one) => trace.group_size(one.group).map_or(0, |ranks| one.bytes(ranks)),
        Work::Send(one) => one.bytes,
        _ => 0,
    });
    payloads.max().unwrap_or(0)
}

fn collective(row: &CollectiveRow) -> Value {
    let mut table = Table::new();
    table.put("operation", row.operation);
    table.put("group", row.group.as_str());
    table.put("ranks", or_false(row.ranks));
    let (bytes, counts) = match row.size {
        Size::Whole(bytes) => (bytes, "whole"),
        Size::Shard(bytes) => (bytes, "shard"),
    };
    table.put("size", count(bytes));
    table.put("counts", counts);
    table.put("bytes", or_false(row.bytes));
    table.put("nodes", count(row.nodes));
    table.put("calls", or_false(row.calls));
    table.put("total", count(row.total));
    Value::Table(table)
}

fn carried(one: &Carried) -> Value {
    let mut table = Table::new();
    match &one.by {
        Carrier::Plane(number) => table.put("plane", count(*number)),
        Carrier::Device(name) => table.put("device", name.as_str()),
    }
    table.put("pieces", count(one.pieces));
    table.put("bytes", count(one.bytes));
    Value::Table(table)
}

fn remarks(all: &[Remark]) -> Vec<Value> {
    let one = |remark: &Remark| {
        let mut table = Table::new();
        table.put("what", remark.what.as_str());
        table.put("count", count(remark.count));
        Value::Table(table)
    };
    all.iter().map(one).collect()
}

/// Counts beyond what JSON readers can hold are as large as they can be.
fn count(number: impl Into<u64>) -> Value {
    Value::Int(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// A count that may not be known.
fn or_false(number: Option<impl Into<u64>>) -> Value {
    number.map_or(Value::Bool(false), count)
}
