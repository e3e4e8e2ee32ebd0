//! `weft trace info`: what is in a trace, and whether it can run.

use crate::error::{ExperimentError, Origin};
use crate::section::workload::TraceFiles;
use crate::value::{Table, Value};
use std::path::Path;
use weft_workload::trace::{CollectiveRow, Remark, Size, check, summarise};

/// Describes the trace at `path` in JSON: `name`, `ranks`, `programmes`, `nodes`, `kinds`,
/// `dependencies`, `depth`, `compute_s`, `host_compute_s`, `operations`, `collectives`, `sends`,
/// `receives`, `unsupported`, `remarks`, `problems`, `more_problems`, `stuck`. A trace that
/// leaves the number of ranks open is settled on `ranks`, if that is given.
///
/// # Errors
/// If a file cannot be read or understood, or does not fit so many ranks.
pub fn trace_info(
    path: &Path,
    process_groups: Option<&Path>,
    ranks: Option<u32>,
) -> Result<String, ExperimentError> {
    let plain = |error: &ExperimentError| ExperimentError::new("", Origin::Unknown, error.what());
    let trace = TraceFiles::at(path, process_groups).load().map_err(|error| plain(&error))?;
    let trace = match ranks {
        None => trace,
        Some(ranks) => trace
            .for_ranks(ranks)
            .map_err(|error| ExperimentError::new("ranks", Origin::Unknown, error.0))?,
    };
    let summary = summarise(&trace);
    let findings = check(&trace);
    let mut table = Table::new();
    table.put("name", trace.name.as_str());
    table.put("ranks", or_false(summary.ranks));
    table.put("programmes", count(summary.programmes));
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
    table.put("unsupported", remarks(&summary.unsupported));
    table.put("remarks", remarks(&summary.remarks));
    let problems = findings.problems.iter().map(|problem| Value::from(problem.as_str()));
    table.put("problems", problems.collect::<Vec<_>>());
    table.put("more_problems", count(findings.more));
    table.put("stuck", count(findings.stuck));
    Ok(Value::Table(table).to_json())
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
