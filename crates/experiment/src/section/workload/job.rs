//! Jobs: a collective, a trace, or a training iteration, by ranks that are somewhere.

use super::collective::{Again, read_again};
use super::experts::{self, Moe};
use super::fault::Fault;
use super::trace_files::{self, TraceFiles};
use crate::kind::{Integer, Kind, OneOf, Or, Size, Span};
use crate::memory::{self, Need};
use crate::reader::Reader;
use crate::section::options;
use std::collections::BTreeSet;
use std::path::Path;
use weft_config::value::{Item, Value};
use weft_config::{ExperimentError, Origin};
use weft_fabric::Fabric;
use weft_units::{HostId, OptionInfo, Time};
use weft_workload::Training;
use weft_workload::collective::{ALGORITHMS, Algorithm, AlgorithmInfo, Operation};
use weft_workload::job::{Algorithms, AwaitSends, Job, largest_switched_sequence};
use weft_workload::model::{Ground, MODELS, TRAINING_OPTIONS};
use weft_workload::trace::Trace;

type Result<T> = std::result::Result<T, ExperimentError>;

/// What says that `[workload]` is a job.
pub(super) const CHOOSERS: [&str; 3] = ["collective", "trace", "model"];

/// What stands for the usual algorithm of each collective.
const USUAL: &str = "usual";
/// Chunks of a collective, one after the other, at most.
const MOST_CHUNKS: u32 = 1 << 16;

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobSource {
    pub(crate) what: What,
    /// The section that it stands in: `workload`, or `workload.jobs.NAME`.
    section: String,
    /// How many ranks; `None`: as many as the trace has, or one for every GPU.
    pub(crate) ranks: Option<u32>,
    start: Time,
    algorithm: Option<Algorithm>,
    /// Chunks of every collective.
    splits: u32,
    /// More of them, so that no message is larger.
    message_limit: Option<u64>,
    /// Whether ranks wait for what they sent.
    await_sends: AwaitSends,
}

/// What the ranks do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A collective, over and over.
    Collective(Again),
    /// Tokens to experts, or back.
    Experts(Box<Moe>),
    /// What a trace says.
    Trace(Box<TraceFiles>),
    /// An iteration of a training.
    Model(Box<Training>),
}

/// The names of collectives and of models.
pub(super) fn names() -> [Vec<&'static str>; 2] {
    [collectives().collect(), MODELS.iter().map(|info| info.name).collect()]
}

/// The values of `collective`.
fn collectives() -> impl Iterator<Item = &'static str> {
    let moe = experts::NAMES.iter().map(|(name, _)| *name);
    Operation::ALL.into_iter().map(Operation::name).chain(moe)
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
            Ok(common(r)?.of(r, What::Trace(Box::new(files)), algorithm))
        }
        [_] => read_model(r),
        [one, other, ..] => Err(r.wrong(other, format!("stands beside {one}; remove one of them"))),
        [] if r.has("pattern") => {
            let what = "is no job: patterns have messages, but no ranks; give collective, trace or \
                        model instead";
            Err(r.wrong("pattern", what))
        }
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
    message_limit: Option<u64>,
    await_sends: AwaitSends,
}

impl Common {
    fn of(self, r: &Reader<'_>, what: What, algorithm: Option<Algorithm>) -> JobSource {
        let Common { ranks, start, splits, message_limit, await_sends } = self;
        let section = r.path().to_owned();
        JobSource { what, section, ranks, start, algorithm, splits, message_limit, await_sends }
    }
}

pub(super) fn common(r: &mut Reader<'_>) -> Result<Common> {
    let all = Or(Integer { min: 2, max: 1 << 20 }, "all");
    let ranks = r.get("ranks", all, Some(None), "how many ranks; all: as many as there can be")?;
    let start = r.get("start", Span::ANY, Some(Time::ZERO), "when the ranks begin")?;
    let splits = Integer { min: 1, max: MOST_CHUNKS };
    let meaning = "chunks of every collective, one after the other at each rank";
    let splits = r.get("splits", splits, Some(1), meaning)?;
    let meaning = "more chunks than splits says, so that no message is larger; of what ranks pass on, not of \
                   all-to-all and send-recv";
    let message_limit = r.get("message_limit", Or(Size::SOME, "none"), Some(None), meaning)?;
    let meaning = "when ranks wait for acknowledgements of what they sent in a collective: never, \
                   at its end, or at each step too";
    let waits = [AwaitSends::Never, AwaitSends::End, AwaitSends::Step];
    let await_sends =
        waits[r.get("await_sends", OneOf(&["never", "end", "step"]), Some(0), meaning)?];
    Ok(Common { ranks, start, splits, message_limit, await_sends })
}

fn read_collective(r: &mut Reader<'_>) -> Result<JobSource> {
    let names: Vec<&str> = collectives().collect();
    let taken = r.get("collective", OneOf(&names), None, "what the ranks do together")?;
    let Some(operation) = Operation::ALL.get(taken).copied() else {
        let moe = experts::read(r, taken > Operation::ALL.len())?;
        return Ok(common(r)?.of(r, What::Experts(Box::new(moe)), None));
    };
    let algorithm = read_algorithm(r, Some(operation))?;
    let again = read_again(r, operation)?;
    Ok(common(r)?.of(r, What::Collective(again), algorithm))
}

fn read_model(r: &mut Reader<'_>) -> Result<JobSource> {
    let training = options::read(r, TRAINING_OPTIONS, Training::resolve)?;
    let algorithm = read_algorithm(r, None)?;
    Ok(common(r)?.of(r, What::Model(Box::new(training)), algorithm))
}

/// The algorithm with its options; `None`: the usual ones.
fn read_algorithm(r: &mut Reader<'_>, operation: Option<Operation>) -> Result<Option<Algorithm>> {
    let taken = choose_algorithm(r, operation)?;
    let name = taken.map_or(USUAL, |taken| taken.name);
    for other in ALGORITHMS.iter().filter(|other| other.name != name) {
        // Who has a key that means nothing to the operation is not told of what switches do instead.
        let in_network = Algorithm::read(other.name, &[]).is_ok_and(|one| one.is_in_network());
        let has = |key: &str| taken.is_some_and(|own| own.options.iter().any(|one| one.key == key));
        let keys = other.options.iter().filter(|option| !(in_network && has(option.key)));
        let keys = keys.map(|option| option.key.to_owned());
        r.others("algorithm", name, other.name, keys);
    }
    taken.map(|taken| algorithm_options(r, taken, operation)).transpose()
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
    let able_to = AbleTo { operation, names: OneOf(&names) };
    let taken = r.get("algorithm", able_to, usual, "in which steps; below, each with its keys")?;
    Ok(Some(able[taken]))
}

/// The algorithms that can do an operation.
struct AbleTo<'a> {
    operation: Operation,
    names: OneOf<'a>,
}

impl Kind for AbleTo<'_> {
    type Out = usize;
    fn read(&self, item: &Item) -> std::result::Result<usize, String> {
        self.names.read(item).map_err(|what| match &item.value {
            Value::Text(text) if ALGORITHMS.iter().any(|info| info.name == text) => {
                let (operation, able) = (self.operation.name(), self.names.0.join(", "));
                format!("{text} cannot do {operation}; use one of {able}")
            }
            _ => what,
        })
    }
    fn write(&self, value: &usize) -> Value {
        self.names.write(value)
    }
    fn example(&self) -> Value {
        self.names.example()
    }
    fn describe(&self) -> String {
        self.names.describe()
    }
    fn words(&self) -> Vec<String> {
        self.names.words()
    }
}

/// Reads the keys of an algorithm; of one operation alone those that mean anything to it.
pub(super) fn algorithm_options(
    r: &mut Reader<'_>,
    info: &AlgorithmInfo,
    operation: Option<Operation>,
) -> Result<Algorithm> {
    let of_use = |option: &&OptionInfo| {
        operation.is_none_or(|one| Algorithm::has_use_for(info.name, option.key, one))
    };
    let (known, idle): (Vec<&OptionInfo>, Vec<&OptionInfo>) = info.options.iter().partition(of_use);
    let name = operation.map_or("", Operation::name);
    let refusal = format!("means nothing to the {name} of {:?}; remove it", info.name);
    r.beside("collective", &refusal, idle.into_iter().map(|option| option.key.to_owned()));
    options::read(r, known, |given| Algorithm::resolve(info.name, given))
}

impl JobSource {
    /// What tables call it.
    pub(crate) fn name(&self) -> String {
        match &self.what {
            What::Collective(again) => again.operation.name().to_owned(),
            What::Experts(moe) => moe.name().to_owned(),
            What::Trace(files) => files.name(),
            What::Model(training) => training.name.clone(),
        }
    }
    /// The algorithm that was asked for, or is used for want of another.
    pub(crate) fn algorithm(&self) -> &'static str {
        match &self.what {
            What::Experts(moe) => moe.mode(),
            _ => self.algorithm.map_or(USUAL, |algorithm| algorithm.info().name),
        }
    }

    /// The algorithm, if it has switches work for ranks.
    pub(crate) fn in_network(&self) -> Option<&'static str> {
        self.algorithm.filter(Algorithm::is_in_network).map(|algorithm| algorithm.info().name)
    }

    /// Whether switches can do what its ranks, on these hosts of these servers, have them do.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_in_network(
        &self,
        job: &Job,
        fabric: &Fabric,
        hosts: &[HostId],
        servers: &[u32],
    ) -> Result<()> {
        let wrong = |key: &str, what: String| {
            Err(ExperimentError::new(format!("{}.{key}", self.section), Origin::Unknown, what))
        };
        let Some(name) = self.in_network() else { return Ok(()) };
        let mut sets = BTreeSet::new();
        for rank in 0..job.ranks() {
            job.switched(rank, |set, _, _, _| {
                sets.insert(set);
            });
        }
        for set in sets {
            let ranks = job.switched_ranks(&set);
            let of = |rank: &u32| *rank as usize;
            if ranks.iter().all(|rank| servers[of(rank)] == servers[of(&ranks[0])]) {
                continue;
            }
            if ranks.len() > usize::from(u16::MAX) {
                let what = format!("{} are more than the 65535 of a tree; use fewer", ranks.len());
                return wrong("ranks", what);
            }
            let mut nics: Vec<HostId> = ranks.iter().map(|rank| hosts[of(rank)]).collect();
            nics.sort_unstable();
            if let Some(pair) = nics.windows(2).find(|pair| pair[0] == pair[1]) {
                let what = format!(
                    "{name:?} needs a NIC for each rank that a tree joins, but two are at host-{}; \
                     let groups fill whole servers, or use \"ring\"",
                    pair[0].0
                );
                return wrong("algorithm", what);
            }
            if let Some(far) = nics.iter().find(|nic| !fabric.reaches(nics[0], **nic)) {
                let what = format!(
                    "{name:?} needs a tree that joins host-{} and host-{}, but these are in rails that \
                     never meet; let groups fill whole servers, or use \"ring\"",
                    nics[0].0, far.0
                );
                return wrong("algorithm", what);
            }
        }
        let most = job.switched_sequences();
        if most > u64::from(largest_switched_sequence()) {
            let what = format!(
                "{most} chunks of a collective, one after the other, are more than the {} that \
                 {name:?} can number; use fewer splits or chunks",
                largest_switched_sequence()
            );
            return wrong("splits", what);
        }
        Ok(())
    }

    /// What it is called among several; empty for a job alone.
    pub(crate) fn label(&self) -> &str {
        self.section.rsplit_once('.').map_or("", |(_, name)| name)
    }

    /// The job, by at most as many ranks as GPUs are `free` on servers of `gpus`, with what it draws drawn
    /// from `seed`.
    pub(crate) fn build(&self, free: u32, gpus: u32, seed: u64) -> Result<Job> {
        self.try_build(free, gpus, seed).map_err(|Fault { key, what }| {
            let key = if key.is_empty() { self.chooser() } else { &*key };
            ExperimentError::new(format!("{}.{key}", self.section), Origin::Unknown, what)
        })
    }

    fn try_build(&self, free: u32, gpus: u32, seed: u64) -> std::result::Result<Job, Fault> {
        if let Some(ranks) = self.ranks.filter(|ranks| *ranks > free) {
            let what = format!("{ranks} are more than the {free} GPUs that are free; use fewer");
            return Err(Fault::at("ranks", what));
        }
        let trace = self.trace(free, gpus, seed)?.starting(self.start);
        if let Some(own) = trace.ranks.filter(|own| *own > free) {
            // A graph that all ranks run can be run by any number of them.
            let mend =
                if trace.shared { "a larger fabric or fewer ranks" } else { "a larger fabric" };
            let what = format!("has {own} ranks, more than the {free} GPUs that are free");
            return Err(Fault::at(self.chooser(), format!("{what}; use {mend}")));
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
        let job =
            Job::new(trace, algorithms).map_err(|error| self.explained(Fault::of_node(error)))?;
        let job = job.in_chunks(self.splits).limiting_messages(self.message_limit);
        if self.message_limit.is_some()
            && let most = job.most_chunks()
            && most > MOST_CHUNKS
        {
            let what = format!(
                "cuts a collective into {most} chunks, one after the other, which are more than {MOST_CHUNKS}; \
                 raise it"
            );
            return Err(Fault { key: "message_limit".into(), what });
        }
        Ok(job.awaiting_sends(self.await_sends))
    }

    /// Of a trace that waits for ever only because of control dependencies, says so.
    fn explained(&self, mut fault: Fault) -> Fault {
        if let What::Trace(files) = &self.what
            && files.runs_on_data()
        {
            fault.what += "; without control dependencies, which Chakra's feeder does not follow, \
                           it can run: dependencies = \"data\" (--dependencies data)";
        }
        fault
    }

    /// What to warn of where it is nearly too large for this machine.
    ///
    /// # Errors
    /// If it is.
    pub(super) fn needs(&self, job: &Job) -> Result<Vec<String>> {
        let (nodes, messages) = job.extent();
        let section = |key: &str| format!("{}.{key}", self.section);
        let (many, ways) = match &self.what {
            What::Collective(_) => ("times", "algorithm"),
            What::Experts(_) => ("times", "ranks"),
            What::Trace(_) => ("trace", "algorithm"),
            What::Model(_) => ("global_batch", "algorithm"),
        };
        let ranks = job.ranks();
        let held = format!("nodes of {ranks} ranks");
        let flying = format!("messages of {ranks} ranks at once");
        let needs = [
            Need::of(section(many), nodes, &held, memory::NODE),
            Need::of(section(ways), messages, &flying, memory::UNDER_WAY),
        ];
        needs.iter().filter_map(|need| need.check().transpose()).collect()
    }

    fn trace(&self, free: u32, gpus: u32, seed: u64) -> std::result::Result<Trace, Fault> {
        match &self.what {
            What::Collective(again) => {
                let usual = || Algorithms::usual().of(again.operation);
                again.trace(self.ranks_of(free)?, &self.algorithm.unwrap_or_else(usual))
            }
            What::Experts(moe) => moe.trace(self.ranks_of(free)?, gpus, seed),
            What::Model(training) => {
                let made = training.generate_on(self.ranks_of(free)?, Ground { gpus, seed });
                made.map_err(Fault::keyed)
            }
            What::Trace(files) => {
                let trace = files.load()?;
                // A trace that tells its ranks has no use for others.
                let ranks = match trace.ranks.filter(|_| self.ranks.is_none()) {
                    Some(own) => own,
                    None => self.ranks_of(free)?,
                };
                trace.for_ranks(ranks).map_err(Fault::whole)
            }
        }
    }

    /// As many as were asked for, or as there are GPUs `free`.
    fn ranks_of(&self, free: u32) -> std::result::Result<u32, Fault> {
        match self.ranks.unwrap_or(free) {
            ranks @ 2.. => Ok(ranks),
            few => {
                let left = if few == 1 { "1 GPU is" } else { "0 GPUs are" };
                let what = format!(
                    "{left} left for it, and a job takes 2; give the jobs before it fewer ranks, \
                     or use a larger fabric or placement_file"
                );
                Err(Fault::at("ranks", what))
            }
        }
    }

    /// The key that says what it is.
    fn chooser(&self) -> &'static str {
        match &self.what {
            What::Collective(_) | What::Experts(_) => "collective",
            What::Trace(_) => "trace",
            What::Model(_) => "model",
        }
    }
}
