//! Jobs: a collective, a trace, or a training iteration, by ranks that are somewhere.

use super::trace_files::{self, TraceFiles};
use super::wrong;
use crate::error::ExperimentError;
use crate::kind::{OneOf, Or, Size, Span, Whole};
use crate::reader::Reader;
use crate::section::options;
use std::path::Path;
use weft_units::Time;
use weft_workload::collective::{ALGORITHMS, Algorithm, AlgorithmInfo, Operation};
use weft_workload::job::{Algorithms, Job};
use weft_workload::model::{MODELS, TRAINING_OPTIONS};
use weft_workload::trace::{Action, Collective, Degrees, Size as Bytes, Trace};
use weft_workload::{Training, WorkloadError};

type Result<T> = std::result::Result<T, ExperimentError>;

/// What says that `[workload]` is a job.
pub(super) const CHOOSERS: [&str; 3] = ["collective", "trace", "model"];

/// What stands for the usual algorithm of each collective.
const USUAL: &str = "usual";

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobSource {
    pub(crate) what: What,
    /// How many ranks; `None`: as many as the trace has, or one for every GPU.
    pub(crate) ranks: Option<u32>,
    start: Time,
    algorithm: Option<Algorithm>,
    /// Chunks of every collective.
    splits: u32,
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
            Ok(common(r)?.of(What::Trace(files), algorithm))
        }
        [_] => read_model(r),
        [one, other, ..] => Err(r.wrong(other, format!("stands beside {one}; remove one of them"))),
        [] => {
            let what = "says nothing of a job; give collective, trace or model";
            Err(r.wrong_here(what))
        }
    }
}

/// What any job may be told.
pub(super) struct Common {
    ranks: Option<u32>,
    start: Time,
    splits: u32,
}

impl Common {
    fn of(self, what: What, algorithm: Option<Algorithm>) -> JobSource {
        let Common { ranks, start, splits } = self;
        JobSource { what, ranks, start, algorithm, splits }
    }
}

pub(super) fn common(r: &mut Reader<'_>) -> Result<Common> {
    let all = Or(Whole { min: 2, max: 1 << 20 }, "all");
    let ranks = r.get("ranks", all, Some(None), "how many ranks; all: as many as there can be")?;
    let start = r.get("start", Span::ANY, Some(Time::ZERO), "when the ranks begin")?;
    let splits = Whole { min: 1, max: 1 << 16 };
    let meaning = "chunks of every collective, one after the other at each rank";
    let splits = r.get("splits", splits, Some(1), meaning)?;
    Ok(Common { ranks, start, splits })
}

fn read_collective(r: &mut Reader<'_>) -> Result<JobSource> {
    let names = Operation::ALL.map(Operation::name);
    let operation = r.get("collective", OneOf(&names), None, "what the ranks do together")?;
    let operation = Operation::ALL[operation];
    let algorithm = read_algorithm(r, Some(operation))?;
    let again = read_again(r, operation)?;
    Ok(common(r)?.of(What::Collective(again), algorithm))
}

/// Reads the keys of a collective.
pub(super) fn read_again(r: &mut Reader<'_>, operation: Operation) -> Result<Again> {
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
    Ok(Again { operation, bytes, root, group, stride, times })
}

fn read_model(r: &mut Reader<'_>) -> Result<JobSource> {
    let training = options::read(r, TRAINING_OPTIONS, Training::settle)?;
    let algorithm = read_algorithm(r, None)?;
    Ok(common(r)?.of(What::Model(Box::new(training)), algorithm))
}

/// The algorithm with its options; `None`: the usual ones.
fn read_algorithm(r: &mut Reader<'_>, operation: Option<Operation>) -> Result<Option<Algorithm>> {
    let taken = choose_algorithm(r, operation)?;
    let name = taken.map_or(USUAL, |taken| taken.name);
    for other in ALGORITHMS.iter().filter(|other| other.name != name) {
        let keys = other.options.iter().map(|option| option.key.to_owned());
        r.others("algorithm", name, other.name, keys);
    }
    taken.map(|taken| algorithm_options(r, taken)).transpose()
}

/// Of those that can do `operation`; of a trace or a model, `None` is the usual one of each.
pub(super) fn choose_algorithm(
    r: &mut Reader<'_>,
    operation: Option<Operation>,
) -> Result<Option<&'static AlgorithmInfo>> {
    let Some(operation) = operation else {
        let names: Vec<&str> = ALGORITHMS.iter().map(|info| info.name).collect();
        let meaning = "of all collectives that it can do; usual: of each its own";
        let taken = r.get("algorithm", Or(OneOf(&names), USUAL), Some(None), meaning)?;
        return Ok(taken.map(|taken| &ALGORITHMS[taken]));
    };
    let able = ALGORITHMS.iter().filter(|info| info.operations.contains(&operation));
    let able: Vec<&AlgorithmInfo> = able.collect();
    let names: Vec<&str> = able.iter().map(|info| info.name).collect();
    let usual = Algorithms::usual().of(operation).info().name;
    let usual = names.iter().position(|name| *name == usual);
    let taken =
        r.get("algorithm", OneOf(&names), usual, "in which steps; below, each with its keys")?;
    Ok(Some(able[taken]))
}

/// Reads the keys of an algorithm.
pub(super) fn algorithm_options(r: &mut Reader<'_>, info: &AlgorithmInfo) -> Result<Algorithm> {
    options::read(r, info.options, |given| Algorithm::settle(info.name, given))
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
        self.algorithm.map_or(USUAL, |algorithm| algorithm.info().name)
    }

    /// The job, by at most `most` ranks, with what it draws drawn from `seed`.
    pub(crate) fn build(&self, most: u32, seed: u64) -> Result<Job> {
        let ranks = self.ranks.unwrap_or(most);
        if ranks > most {
            let what = format!("{ranks} are more than the {most} GPUs that are free; use fewer");
            return Err(wrong("workload.ranks", &what));
        }
        let trace = self.trace(ranks)?.starting(self.start);
        if let Some(own) = trace.ranks.filter(|own| *own > most) {
            // A programme that all ranks run can be run by any number of them.
            let mend =
                if trace.shared { "a larger fabric or fewer ranks" } else { "a larger fabric" };
            let what = format!("has {own} ranks, more than the {most} GPUs that are free");
            return Err(wrong("workload.trace", &format!("{what}; use {mend}")));
        }
        let mut algorithms = Algorithms::usual();
        if let Some(algorithm) = self.algorithm {
            let algorithm = algorithm.under(seed);
            let own = |operation: &Operation| match &self.what {
                // That it cannot do what was asked for is to be said.
                What::Collective(again) => again.operation == *operation,
                _ => algorithm.does(*operation),
            };
            for operation in Operation::ALL.into_iter().filter(own) {
                algorithms = algorithms.with(operation, algorithm);
            }
        }
        let job = Job::new(trace, algorithms).map_err(|error| self.at_fault(&error))?;
        Ok(job.in_chunks(self.splits))
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
