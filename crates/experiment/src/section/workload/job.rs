//! Jobs: a collective, a trace, or a training iteration, by ranks that are somewhere.

use super::trace_files::{self, TraceFiles};
use super::wrong;
use crate::error::ExperimentError;
use crate::kind::{OneOf, Or, Size, Span, Whole};
use crate::reader::Reader;
use crate::section::options;
use std::path::Path;
use weft_units::Time;
use weft_workload::collective::{ALGORITHMS, Algorithm, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::model::{MODELS, TRAINING_OPTIONS};
use weft_workload::trace::{Action, Collective, Degrees, Size as Bytes, Trace};
use weft_workload::{Training, WorkloadError};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What says that `[workload]` is a job.
pub(super) const CHOOSERS: [&str; 3] = ["collective", "trace", "model"];

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobSource {
    pub(crate) what: What,
    /// How many ranks; `None`: as many as the trace has, or one for every GPU.
    pub(crate) ranks: Option<u32>,
    start: Time,
    algorithm: Option<Algorithm>,
}

/// What the ranks do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A collective, over and over.
    Collective(Again),
    /// What a trace says.
    Trace(TraceFiles),
    /// An iteration of a training.
    Model(Box<Training>),
}

/// A collective, some times after each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Again {
    operation: Operation,
    pub(crate) bytes: u64,
    root: u32,
    /// Ranks of a group, all if `None`, and how far they are apart.
    group: Option<u32>,
    stride: u32,
    times: u32,
}

/// The names of collectives and of models.
pub(super) fn names() -> [Vec<&'static str>; 2] {
    [
        Operation::ALL.iter().map(|operation| operation.name()).collect(),
        MODELS.iter().map(|info| info.name).collect(),
    ]
}

/// Reads the keys of a job; files are looked for in `folder`.
pub(super) fn read(r: &mut Reader<'_>, folder: &Path) -> Result<JobSource> {
    if r.is_rehearsal() {
        read_collective(r)?;
        trace_files::read(r, folder)?;
        return read_model(r);
    }
    match CHOOSERS.iter().filter(|key| r.has(key)).collect::<Vec<_>>()[..] {
        [key] if *key == "collective" => read_collective(r),
        [key] if *key == "trace" => {
            let files = trace_files::read(r, folder)?;
            let algorithm = read_algorithm(r, None)?;
            common(r, What::Trace(files), algorithm)
        }
        [_] => read_model(r),
        [one, other, ..] => Err(r.wrong(other, format!("stands beside {one}; remove one of them"))),
        [] => {
            let what = "says nothing of a job; give collective, trace or model";
            Err(r.wrong_here(what))
        }
    }
}

fn common(r: &mut Reader<'_>, what: What, algorithm: Option<Algorithm>) -> Result<JobSource> {
    let all = Or(Whole { min: 2, max: 1 << 20 }, "all");
    let ranks = r.get("ranks", all, Some(None), "how many ranks; all: as many as there can be")?;
    let start = r.get("start", Span::ANY, Some(Time::ZERO), "when the ranks begin")?;
    Ok(JobSource { what, ranks, start, algorithm })
}

fn read_collective(r: &mut Reader<'_>) -> Result<JobSource> {
    let names = Operation::ALL.map(Operation::name);
    let operation = r.get("collective", OneOf(&names), None, "what the ranks do together")?;
    let operation = Operation::ALL[operation];
    let algorithm = read_algorithm(r, Some(operation))?;
    let meaning = "the larger buffer of a rank, as nccl-tests count it";
    let bytes = r.get("size", Size::SOME, None, meaning)?;
    let count = Whole { min: 1, max: 1 << 20 };
    let root = Whole { min: 0, max: 1 << 20 };
    let root =
        r.get("root", root, Some(0), "the root of a broadcast or reduce, within its group")?;
    let all = Or(Whole { min: 2, max: 1 << 20 }, "all");
    let group = r.get("group", all, Some(None), "ranks of a group; all groups go at once")?;
    let stride = r.get("stride", count, Some(1), "from one rank of a group to the next")?;
    let times = r.get("times", count, Some(1), "how often, one after the other")?;
    let again = Again { operation, bytes, root, group, stride, times };
    common(r, What::Collective(again), algorithm)
}

fn read_model(r: &mut Reader<'_>) -> Result<JobSource> {
    let training = options::read(r, TRAINING_OPTIONS, Training::settle)?;
    let algorithm = read_algorithm(r, None)?;
    common(r, What::Model(Box::new(training)), algorithm)
}

/// The algorithm with its options; `None`: the usual ones.
fn read_algorithm(r: &mut Reader<'_>, operation: Option<Operation>) -> Result<Option<Algorithm>> {
    let able = |info: &&weft_workload::collective::AlgorithmInfo| {
        operation.is_none_or(|operation| info.operations.contains(&operation))
    };
    let infos: Vec<_> = ALGORITHMS.iter().filter(able).collect();
    let names: Vec<&str> = infos.iter().map(|info| info.name).collect();
    let usual = operation.map(|operation| Algorithms::usual().of(operation).info().name);
    let default = usual.and_then(|usual| names.iter().position(|name| *name == usual));
    let meaning = "how; of a trace or model, wherever it can be used";
    let taken = match (default, r.has("algorithm")) {
        (None, false) if !r.is_rehearsal() => return Ok(None),
        (default, _) => infos[r.get("algorithm", OneOf(&names), default, meaning)?],
    };
    for other in ALGORITHMS.iter().filter(|other| other.name != taken.name) {
        let keys = other.options.iter().map(|option| option.key.to_owned());
        r.others("algorithm", taken.name, other.name, keys);
    }
    options::read(r, taken.options, |given| Algorithm::settle(taken.name, given)).map(Some)
}

impl JobSource {
    /// What tables call it.
    pub(crate) fn name(&self) -> String {
        match &self.what {
            What::Collective(again) => again.operation.name().to_owned(),
            What::Trace(files) => files.name(),
            What::Model(training) => training.name.clone(),
        }
    }
    /// The algorithm that was asked for, or is used for want of another.
    pub(crate) fn algorithm(&self) -> &'static str {
        self.algorithm.map_or("usual", |algorithm| algorithm.info().name)
    }

    /// The job, by at most `most` ranks.
    pub(crate) fn build(&self, most: u32) -> Result<Job> {
        let ranks = self.ranks.unwrap_or(most);
        if ranks > most {
            let what = format!("{ranks} are more than the {most} GPUs that are free; use fewer");
            return Err(wrong("workload.ranks", &what));
        }
        let trace = self.trace(ranks)?.starting(self.start);
        let algorithms = match self.algorithm {
            None => Algorithms::usual(),
            Some(algorithm) => algorithm
                .info()
                .operations
                .iter()
                .fold(Algorithms::usual(), |algorithms, operation| {
                    algorithms.with(*operation, algorithm)
                }),
        };
        Job::new(trace, algorithms).map_err(|error| self.at_fault(&error))
    }

    fn trace(&self, ranks: u32) -> Result<Trace> {
        let fault = |error: WorkloadError| self.at_fault(&error);
        match &self.what {
            What::Collective(again) => again.trace(ranks),
            What::Model(training) => training.generate(ranks).map_err(fault),
            What::Trace(files) => {
                let trace = files.load()?;
                // A trace that tells its ranks has no use for others.
                let ranks = trace.ranks.filter(|_| self.ranks.is_none()).unwrap_or(ranks);
                trace.for_ranks(ranks).map_err(fault)
            }
        }
    }

    /// An error of the workload crate, at the key that it is about.
    fn at_fault(&self, error: &WorkloadError) -> ExperimentError {
        match &self.what {
            What::Trace(_) => wrong("workload.trace", &error.0),
            What::Model(_) => wrong("workload.model", &error.0),
            What::Collective(_) => wrong("workload.collective", &error.0),
        }
    }
}

impl Again {
    fn trace(&self, ranks: u32) -> Result<Trace> {
        let group = self.group.unwrap_or(ranks / self.stride);
        let side = u64::from(group) * u64::from(self.stride);
        if side == 0 || !u64::from(ranks).is_multiple_of(side) {
            let what = format!(
                "{ranks} ranks cannot be cut into groups of {group}, {} apart; use a multiple of \
                 {side} ranks",
                self.stride
            );
            return Err(wrong("workload.group", &what));
        }
        if self.root >= group {
            let what = format!("there is no rank {} in a group of {group}; use less", self.root);
            return Err(wrong("workload.root", &what));
        }
        let one = Collective {
            action: Action::Operation(self.operation),
            size: Bytes::Whole(self.bytes),
            group: 0,
            root: self.root,
            turn: 0,
        };
        let degrees = Degrees { tensor: self.stride, expert: group, pipeline: 1 };
        Trace::of_collective(one, self.times, degrees, ranks)
            .map_err(|error| wrong("workload.group", &error.0))
    }
}
