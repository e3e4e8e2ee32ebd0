//! All that `[workload]` can be, for `weft list` and for short forms.
//!
//! Names come from the registries that the decoders choose from, keys from rehearsing these
//! decoders: nothing is listed that is not read, and tests hold that nothing else is.

use super::{JOBS, collective, experts, job, placement, read_pattern, trace_files};
use crate::error::ExperimentError;
use crate::reader::{Asked, Reader, keys_asked_by};
use crate::section::options;
use std::path::Path;
use weft_workload::collective::{ALGORITHMS, AlgorithmInfo, Operation};
use weft_workload::model::{MODELS, TRAINING_OPTIONS};
use weft_workload::trace::{TRACE_FORMATS, TraceFormatInfo};
use weft_workload::{PATTERNS, Training};

type Result<T> = std::result::Result<T, ExperimentError>;

/// One thing to choose.
pub(crate) struct Listed {
    /// The key of `[workload]` that chooses it.
    pub(crate) key: &'static str,
    /// What to write there; of a file, how its name ends.
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) source: &'static str,
    /// Its keys; of jobs without those of algorithms, which are listed by themselves.
    pub(crate) asked: Vec<Asked>,
}

/// Everything.
pub(crate) fn listed() -> Vec<Listed> {
    let patterns = PATTERNS.iter().map(|info| {
        let asked = asked(|r| read_pattern(r, info));
        entry("pattern", info.name, info.summary, info.source, asked)
    });
    let [matrix, flows] = [
        ("*.cm", "a connection matrix, triggers included", "htsim"),
        ("*.csv", "a table of flows: src, dst, size, start, id, after", "Weft"),
    ]
    .map(|(name, summary, source)| entry("file", name, summary, source, Vec::new()));
    let all = patterns.chain([matrix, flows]).chain(collectives()).chain(moe()).chain(algorithms());
    all.chain(traces()).chain(models()).chain([jobs()]).collect()
}

/// The keys that may follow `name` in a short form, where it is what `chooser` chooses: a pattern, a
/// collective, a model or a file.
pub(crate) fn keys(chooser: &str, name: &str) -> Vec<String> {
    let all = listed();
    let ends = |one: &&Listed| name.ends_with(one.name.trim_start_matches('*'));
    let of_key = || all.iter().filter(|one| one.key == chooser);
    let mut meant: Vec<&Listed> = match super::file_key(name) {
        Some("trace") => {
            let formats = trace_files::formats_of(Path::new(name));
            let is_one = |info: &&TraceFormatInfo| formats.iter().any(|own| own.name == info.name);
            of_key()
                .zip(TRACE_FORMATS)
                .filter(|(_, info)| is_one(info))
                .map(|(one, _)| one)
                .collect()
        }
        Some(_) => of_key().filter(ends).collect(),
        None => of_key().filter(|one| one.name == name).take(1).collect(),
    };
    if meant.is_empty() && super::file_key(name).is_some() {
        // What stands before `.0.et` has no end; Chakra traces come first.
        meant.extend(of_key().next());
    }
    let is_job = meant.iter().any(|one| one.asked.iter().any(|asked| asked.key == "algorithm"));
    let algorithms = all.iter().filter(|one| is_job && one.key == "algorithm");
    let asked = meant.into_iter().chain(algorithms).flat_map(|one| &one.asked);
    asked.map(|asked| asked.key.clone()).collect()
}

fn collectives() -> impl Iterator<Item = Listed> {
    Operation::ALL.into_iter().map(|operation| {
        let asked = asked(|r| {
            job::choose_algorithm(r, Some(operation))?;
            collective::read_again(r, operation)?;
            of_any_job(r)
        });
        let source = "MPI; NCCL, and sizes as nccl-tests count them";
        entry("collective", operation.name(), operation.summary(), source, asked)
    })
}

fn moe() -> impl Iterator<Item = Listed> {
    (0..).zip(experts::NAMES).map(|(number, (name, summary))| {
        let asked = asked(|r| {
            experts::read(r, number == 1)?;
            of_any_job(r)
        });
        entry("collective", name, summary, experts::SOURCE, asked)
    })
}

fn algorithms() -> impl Iterator<Item = Listed> {
    let able = |info: &AlgorithmInfo| {
        info.operations.iter().map(|operation| operation.name()).collect::<Vec<_>>().join(", ")
    };
    ALGORITHMS.iter().map(move |info| {
        let asked = asked(|r| job::algorithm_options(r, info, None));
        let summary = format!("{}; can do {}", info.summary, able(info));
        entry("algorithm", info.name, &summary, info.source, asked)
    })
}

fn traces() -> impl Iterator<Item = Listed> {
    TRACE_FORMATS.iter().map(|info| {
        let asked = asked(|r| {
            trace_files::read_options(r, std::slice::from_ref(info), Path::new(""))?;
            of_trace_or_model(r)
        });
        entry("trace", &format!("*{}", info.ends[0]), info.summary, info.source, asked)
    })
}

fn models() -> impl Iterator<Item = Listed> {
    MODELS.iter().map(|info| {
        let all = asked(|r| {
            options::read(r, TRAINING_OPTIONS, Training::resolve)?;
            of_trace_or_model(r)
        });
        let own = info.defaults();
        let told = |mut asked: Asked| {
            if let Some((_, text)) = own.iter().find(|(key, _)| *key == asked.key) {
                asked.default = Some(text.as_str().into());
            }
            asked
        };
        let asked = all.into_iter().filter(|asked| asked.key != "model").map(told).collect();
        let summary = format!("a training iteration of {}", info.summary);
        entry("model", info.name, &summary, info.source, asked)
    })
}

fn jobs() -> Listed {
    let summary = "several jobs side by side: [workload.jobs.NAME] has the keys of a collective, \
                   a trace or a model, in that order on the GPUs";
    entry(JOBS, "NAME", summary, "Weft", asked(|r| placement::read(r, Path::new(""))))
}

/// What traces and models have in common.
fn of_trace_or_model(r: &mut Reader<'_>) -> Result<()> {
    job::choose_algorithm(r, None)?;
    of_any_job(r)
}

fn of_any_job(r: &mut Reader<'_>) -> Result<()> {
    job::common(r)?;
    placement::read(r, Path::new("")).map(|_| ())
}

fn asked<T>(decode: impl FnOnce(&mut Reader<'_>) -> Result<T>) -> Vec<Asked> {
    keys_asked_by("workload", decode)
}

fn entry(
    key: &'static str,
    name: &str,
    summary: &str,
    source: &'static str,
    asked: Vec<Asked>,
) -> Listed {
    let (name, summary) = (name.to_owned(), summary.to_owned());
    Listed { key, name, summary, source, asked }
}
