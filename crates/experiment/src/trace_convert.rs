//! `weft trace convert`: a workload in a format of other tools.

use crate::overrides::{ShortKind, shorthand};
use crate::parse::parse_bare;
use crate::reader::Reader;
use crate::section::workload::{self, JobSource, What, WorkloadSource};
use crate::value::{Item, Table, Value};
use std::path::Path;
use weft_config::{ExperimentError, Origin};
use weft_workload::WorkloadError;
use weft_workload::collective::ALGORITHMS;
use weft_workload::job::{Algorithms, Job};
use weft_workload::trace::{EXPORTS, Export, Remark, Trace, Written};

/// What to convert, and into what.
#[derive(Clone, Copy, Debug)]
pub struct ConvertRequest<'a> {
    /// A workload as `weft compare --workload` takes it.
    pub workload: &'a str,
    /// Keys of `[workload]`, with values in TOML or bare words.
    pub options: &'a [(String, String)],
    /// How many ranks, where the workload leaves it open.
    pub ranks: Option<u32>,
    /// The name of the format, or how the name of the file ends that is to be written.
    pub to: &'a str,
    /// Whether collectives become sends and receives in any format.
    pub unfold: bool,
    /// Whether computations take no time.
    pub no_compute: bool,
}

/// Converts a workload; what is written has ends of names in place of names. What was left out or written
/// otherwise while reading and writing is among the remarks.
///
/// # Errors
/// If there is no such format, the workload is none, leaves the number of ranks open, or cannot be said in
/// the format.
pub fn trace_convert(request: &ConvertRequest<'_>) -> Result<Written, ExperimentError> {
    let export = export(request.to)?;
    let mut trace = trace(request, !export.collectives || request.unfold)?;
    if request.no_compute {
        trace = trace.without_computing();
    }
    let mut written = export.write(&trace).map_err(of_format)?;
    written.remarks.splice(0..0, trace.remarks);
    Ok(written)
}

/// The format of this name, or of files whose names end so.
fn export(to: &str) -> Result<&'static Export, ExperimentError> {
    let of_end = || EXPORTS.iter().find(|export| to.ends_with(export.end));
    Export::named(to).or_else(of_end).ok_or_else(|| {
        let one = |export: &Export| format!("{} ({})", export.name, export.end);
        let known = EXPORTS.iter().map(one).collect::<Vec<_>>().join(", ");
        wrong("--to", &format!("{to:?} is no format that is written; use one of {known}"))
    })
}

fn trace(request: &ConvertRequest<'_>, unfolds: bool) -> Result<Trace, ExperimentError> {
    let section = section(request)?;
    let source = source(&section)?;
    if let Some(messages) = source.messages_alone(request.ranks) {
        let trace = weft_workload::trace::of_messages(&source.name(), &messages?);
        let trace = trace.map_err(of_format)?;
        // The same checks as of any other job.
        Job::new(trace.clone(), Algorithms::usual()).map_err(of_format)?;
        return Ok(trace);
    }
    match source {
        WorkloadSource::Jobs { jobs, .. } if jobs.len() == 1 => {
            let job = job(jobs.into_iter().next().expect("there is one"), request.ranks)?;
            if unfolds { job.unfolded().map_err(of_format) } else { collectives(&job, &section) }
        }
        _ => Err(wrong("workload.jobs", "several jobs are no trace; convert one of them")),
    }
}

/// The trace of a job whose collectives stay what they are: a format says which ones, and its reader how they
/// are done.
fn collectives(job: &Job, section: &Table) -> Result<Trace, ExperimentError> {
    if job.is_skewed() {
        let what = "unequal shares of an all-to-all are in no trace of collectives; write its messages (--unfold)";
        return Err(wrong("workload.skew", what));
    }
    let mut trace = job.trace().clone();
    let count = job.told_otherwise();
    if count > 0 {
        let what = format!(
            "the files name collectives and not how they are done; give {} again where they are read, or \
             write their messages (--unfold)",
            ways(section).join(",")
        );
        trace.remarks.push(Remark { what, count });
    }
    Ok(trace)
}

/// What `section` says of how collectives are done, as it says it.
fn ways(section: &Table) -> Vec<String> {
    let options = ALGORITHMS.iter().flat_map(|info| info.options).map(|option| option.key);
    let mut keys = vec!["algorithm", "splits", "message_limit", "await_sends"];
    keys.extend(options);
    let own = section.iter().filter(|(key, _)| keys.contains(key));
    let told = own.map(|(key, item)| format!("{key}={}", item.value.to_label()));
    let nested = section.iter().filter_map(|(_, item)| match &item.value {
        Value::Table(table) => Some(ways(table)),
        _ => None,
    });
    told.chain(nested.flatten()).collect()
}

/// The keys of `[workload]`.
fn section(request: &ConvertRequest<'_>) -> Result<Table, ExperimentError> {
    let mut section = shorthand(ShortKind::Workload, request.workload)?;
    for (key, text) in request.options {
        section.set(key, Item::new(parse_bare(text)));
    }
    Ok(section)
}

fn source(section: &Table) -> Result<WorkloadSource, ExperimentError> {
    let mut reader = Reader::root(section);
    let found = workload::read(&mut reader, Path::new(""))?;
    reader.finish()?;
    Ok(found)
}

/// The job of so many ranks, or of as many as it has.
fn job(mut source: JobSource, ranks: Option<u32>) -> Result<Job, ExperimentError> {
    source.ranks = ranks.or(source.ranks);
    let own = match (source.ranks, &source.what) {
        (None, What::Trace(files)) => {
            let trace = files.load().map_err(|fault| wrong("", &fault.what))?;
            trace.ranks
        }
        (given, _) => given,
    };
    let ranks = own.ok_or_else(|| {
        wrong("ranks", "the workload can have any number of them; say how many (--ranks)")
    })?;
    source.build(ranks, 1, 1)
}

fn of_format(error: WorkloadError) -> ExperimentError {
    wrong("", &error.0)
}

fn wrong(key: &str, what: &str) -> ExperimentError {
    ExperimentError::new(key, Origin::Unknown, what)
}
