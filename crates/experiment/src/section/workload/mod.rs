//! `[workload]`: a pattern of the workload crate's registry, a file of messages, or jobs.
//!
//! The options of patterns, algorithms and trainings stay with these: this reads whatever their
//! registries list.

mod collective;
mod experts;
mod fault;
mod job;
mod listed;
mod placement;
mod trace_files;

pub(crate) use job::{JobSource, What};
pub(crate) use listed::{keys, listed};
pub(crate) use trace_files::{TraceFiles, is_path_key};

use super::{options, read_text};
use crate::digest::digest;
use crate::kind::{OneOf, Size, Span, Text};
use crate::memory::{self, Need};
use crate::reader::{Asked, Reader, keys_asked_by};
use crate::section::server::Servers;
use crate::traffic::{Ranks, Traffic};
use crate::value::{Item, Table, Value};
use placement::Placement;
use std::path::{Path, PathBuf};
use weft_config::{ExperimentError, Origin};
use weft_fabric::Fabric;
use weft_units::Time;
use weft_workload::collective::Servers as Block;
use weft_workload::job::{Endpoint, Job};
use weft_workload::{PATTERNS, Pattern, PatternInfo, Scope, Stragglers, Workload, WorkloadError};

type Result<T> = std::result::Result<T, ExperimentError>;

/// Where the messages come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkloadSource {
    /// A generator.
    Pattern {
        /// Which, with its options.
        pattern: Pattern,
        /// Payload of a message.
        bytes: u64,
        /// When messages are posted.
        start: Time,
    },
    /// A connection matrix (`.cm`) or a table of flows (`.csv`).
    File {
        /// Where it is.
        path: PathBuf,
        /// Stands for its content.
        digest: String,
    },
    /// Ranks at work.
    Jobs {
        /// What they do; several jobs go side by side.
        jobs: Vec<JobSource>,
        /// Where they are: first the ranks of the first job.
        placement: Placement,
    },
}

/// Whether `text` names a workload file rather than a pattern.
pub(crate) fn is_file(text: &str) -> bool {
    [".cm", ".csv"].iter().any(|end| text.ends_with(end))
}

/// The key that a file goes under, if `text` names one.
pub(crate) fn file_key(text: &str) -> Option<&'static str> {
    match trace_files::is_named(text) {
        true => Some("trace"),
        false => is_file(text).then_some("file"),
    }
}

/// The names of all patterns.
fn names() -> Vec<&'static str> {
    PATTERNS.iter().map(|info| info.name).collect()
}

/// The keys that choose a workload by a name, and the names of each.
pub(crate) fn choosers() -> Vec<(&'static str, Vec<&'static str>)> {
    let [collectives, models] = job::names();
    vec![("pattern", names()), ("collective", collectives), ("model", models)]
}

/// Reads `[workload]`; files are looked for in `folder`.
pub(crate) fn read(r: &mut Reader<'_>, folder: &Path) -> Result<WorkloadSource> {
    if r.has("file") && !r.is_rehearsal() {
        return read_file(r, folder);
    }
    if r.is_rehearsal() {
        r.get("file", Text, None, "a file with the messages")?;
        read_jobs(r, folder)?;
    } else if job::CHOOSERS.iter().chain(&[JOBS]).any(|key| r.has(key)) {
        return read_jobs(r, folder);
    }
    let names = names();
    let taken = r.get("pattern", OneOf(&names), None, "which traffic; or give a file instead")?;
    let info = &PATTERNS[taken];
    for other in PATTERNS.iter().filter(|other| other.name != info.name) {
        let keys = other.options.iter().map(|option| option.key.to_owned());
        r.others("pattern", info.name, other.name, keys);
    }
    read_pattern(r, info)
}

/// The keys of `[workload]`, with those of its first job and its first pattern.
pub(crate) fn section_keys() -> Vec<Asked> {
    keys_asked_by("workload", |r| read(r, Path::new("")))
}

/// Reads the keys of a pattern.
fn read_pattern(r: &mut Reader<'_>, info: &PatternInfo) -> Result<WorkloadSource> {
    let bytes = r.get("size", Size::SOME, None, "payload of every message")?;
    let start = r.get("start", Span::ANY, Some(Time::ZERO), "when every message is posted")?;
    let pattern = options::read(r, info.options, |given| Pattern::resolve(info.name, given))?;
    Ok(WorkloadSource::Pattern { pattern, bytes, start })
}

/// The key of several jobs side by side.
const JOBS: &str = "jobs";
const SIDE_BY_SIDE: &str = "jobs side by side, each a table [workload.jobs.NAME]";

fn read_jobs(r: &mut Reader<'_>, folder: &Path) -> Result<WorkloadSource> {
    if r.has("pattern") && !r.is_rehearsal() {
        return Err(r.wrong("pattern", "stands beside a job; remove one of them"));
    }
    let placement = placement::read(r, folder)?;
    if r.is_rehearsal() {
        r.section(JOBS, SIDE_BY_SIDE, |_| Ok(()))?;
    }
    if !r.has(JOBS) || r.is_rehearsal() {
        return Ok(WorkloadSource::Jobs { jobs: vec![job::read(r, folder)?], placement });
    }
    let jobs = r.section(JOBS, SIDE_BY_SIDE, |r| {
        let jobs =
            r.keys().into_iter().map(|name| r.section(&name, "a job", |r| job::read(r, folder)));
        jobs.collect::<Result<Vec<_>>>()
    })?;
    match jobs.is_empty() {
        true => Err(r.wrong(JOBS, "has no job; add one, for example [workload.jobs.a]")),
        false => Ok(WorkloadSource::Jobs { jobs, placement }),
    }
}

fn read_file(r: &mut Reader<'_>, folder: &Path) -> Result<WorkloadSource> {
    let name = r.get("file", Text, None, "a connection matrix (.cm) or a table of flows (.csv)")?;
    if r.has("pattern") {
        return Err(r.wrong("pattern", "stands beside file; remove one of them"));
    }
    if !is_file(&name) {
        let what = format!("{name:?} ends neither in .cm nor in .csv; rename it to what it is");
        return Err(r.wrong("file", what));
    }
    let path = folder.join(&name);
    let text = read_text(&path).map_err(|what| r.wrong("file", what))?;
    if let Some(format) = trace_files::format_of_messages(&name, &text) {
        let what = format!("{name:?} is a {format}, which ranks run; write trace");
        return Err(r.wrong("file", format!("{what} = {name:?} instead")));
    }
    r.record("file", path.to_string_lossy().into_owned());
    Ok(WorkloadSource::File { path, digest: digest(text.as_bytes()) })
}

impl WorkloadSource {
    /// Puts into `section` what files contain in place of where they lie.
    pub(crate) fn name_contents(&self, section: &mut Table) {
        match self {
            WorkloadSource::Pattern { .. } => {}
            WorkloadSource::File { digest, .. } => {
                section.put("file", self.name());
                section.put("content", digest.as_str());
            }
            WorkloadSource::Jobs { jobs, placement } => {
                if let Placement::Listed { gpus, .. } = placement {
                    section.put("placement_file", format!("{gpus:?}"));
                }
                let traces = jobs.iter().filter_map(|job| match &job.what {
                    What::Trace(files) => Some(files.digest.as_str()),
                    _ => None,
                });
                let contents = traces.collect::<Vec<_>>().join(" ");
                if !contents.is_empty() {
                    forget_paths(section);
                    section.put("content", contents);
                }
            }
        }
    }

    /// What tables call it.
    pub(crate) fn name(&self) -> String {
        match self {
            WorkloadSource::Pattern { pattern, .. } => pattern.info().name.to_owned(),
            WorkloadSource::File { path, .. } => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            WorkloadSource::Jobs { jobs, .. } => {
                jobs.iter().map(JobSource::name).collect::<Vec<_>>().join(" + ")
            }
        }
    }

    /// Whether hosts send messages, and no ranks are at work.
    pub(crate) fn is_of_messages(&self) -> bool {
        !matches!(self, WorkloadSource::Jobs { .. })
    }

    /// The size that was asked for, if there is one: of a message, or of a buffer.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            WorkloadSource::Pattern { bytes, .. } => Some(*bytes),
            WorkloadSource::File { .. } => None,
            WorkloadSource::Jobs { jobs, .. } => match &jobs[..] {
                [JobSource { what: What::Collective(again), .. }] => Some(again.bytes),
                _ => None,
            },
        }
    }

    /// The schedule that collectives follow; `file` for files.
    pub(crate) fn algorithm(&self) -> String {
        let name = match self {
            WorkloadSource::Pattern { pattern: Pattern::AllToAll(_), .. } => "direct",
            WorkloadSource::Pattern { pattern, .. } => pattern.info().name,
            WorkloadSource::File { .. } => "file",
            WorkloadSource::Jobs { jobs, .. } => {
                return jobs.iter().map(JobSource::algorithm).collect::<Vec<_>>().join(" + ");
            }
        };
        name.to_owned()
    }

    /// The algorithm that has switches work for ranks, if there is one.
    pub(crate) fn in_network(&self) -> Option<&'static str> {
        let WorkloadSource::Jobs { jobs, .. } = self else { return None };
        jobs.iter().find_map(JobSource::in_network)
    }

    /// What is sent under `seed` on `fabric` with its `servers`, on GPUs as fast as `stragglers` says.
    pub(crate) fn build(
        &self,
        fabric: &Fabric,
        servers: &Servers,
        stragglers: Option<&Stragglers>,
        seed: u64,
    ) -> Result<Traffic> {
        match self {
            WorkloadSource::Jobs { jobs, placement } => {
                let (mut ranks, mut warnings) = place(jobs, placement, fabric, servers, seed)?;
                if let Some(stragglers) = stragglers {
                    warnings.extend(slow_down(&mut ranks, stragglers, seed)?);
                }
                Ok(Traffic::of_ranks(ranks, fabric.hosts()).warning_of(warnings))
            }
            _ => {
                let (mut workload, near) = self.messages(fabric, seed)?;
                let mut warnings = Vec::from_iter(near);
                if let Some(stragglers) = stragglers {
                    let paces = stragglers.paces(fabric.hosts(), seed).map_err(of_stragglers)?;
                    match paces.delays() {
                        true => workload = workload.delayed(|host| paces.delay(host.0, 0)),
                        false => warnings.push(idle(&self.name())),
                    }
                }
                Ok(Traffic::from(workload).warning_of(warnings))
            }
        }
    }

    /// The messages without a fabric: of a file on as many hosts as it names, of a pattern on `hosts` under one
    /// leaf. `None`: ranks are at work.
    pub(crate) fn messages_alone(&self, hosts: Option<u32>) -> Option<Result<Workload>> {
        Some(match self {
            WorkloadSource::Jobs { .. } => return None,
            WorkloadSource::File { path, .. } => {
                read_text(path).map_err(|what| wrong("workload.file", &what)).and_then(|text| {
                    self.parsed(&text).map_err(|error| wrong("workload.file", &error.0))
                })
            }
            WorkloadSource::Pattern { pattern, bytes, start } => match hosts {
                None => Err(wrong(
                    "ranks",
                    "a pattern can have any number of hosts; say how many (--ranks)",
                )),
                Some(hosts) => {
                    let (bytes, start) = (*bytes, *start);
                    let scope = Scope { hosts, hosts_per_leaf: hosts, bytes, start, seed: 1 };
                    pattern.generate(&scope).map_err(|error| wrong("workload", &error.0))
                }
            },
        })
    }

    fn parsed(&self, text: &str) -> std::result::Result<Workload, WorkloadError> {
        let name = self.name();
        match name.ends_with(".cm") {
            true => weft_workload::read_cm(&name, text),
            false => weft_workload::read_csv(&name, text),
        }
    }

    /// The messages, and what to warn of.
    fn messages(&self, fabric: &Fabric, seed: u64) -> Result<(Workload, Option<String>)> {
        let room = |count: u64, key: &str| {
            Need::of(format!("workload.{key}"), count, "messages", memory::MESSAGE).check()
        };
        let hosts = fabric.hosts();
        match self {
            WorkloadSource::Jobs { .. } => unreachable!("jobs make their messages as they go"),
            WorkloadSource::Pattern { pattern, bytes, start } => {
                // None is full where they differ.
                let hosts_per_leaf = fabric.hosts_per_leaf().unwrap_or(0);
                let scope = Scope { hosts, hosts_per_leaf, bytes: *bytes, start: *start, seed };
                let (count, key) = pattern.messages(&scope);
                let near = room(count, key)?;
                let made =
                    pattern.generate(&scope).map_err(|error| match error.0.split_once(": ") {
                        Some((key, what)) => wrong(&format!("workload.{key}"), what),
                        None => wrong("workload", &error.0),
                    });
                Ok((made?, near))
            }
            WorkloadSource::File { path, .. } => {
                let text = read_text(path).map_err(|what| wrong("workload.file", &what))?;
                let near = room(text.lines().count() as u64, "file")?;
                let read = self.parsed(&text).and_then(|workload| workload.on_fabric_of(hosts));
                let read = read.map_err(|error| wrong("workload.file", &error.0))?;
                Ok((read, near))
            }
        }
    }
}

/// Takes out where traces lie.
fn forget_paths(section: &mut Table) {
    let keys: Vec<String> = section.iter().map(|(key, _)| key.to_owned()).collect();
    for key in keys.iter().filter(|key| is_path_key(key)) {
        section.remove(key);
    }
    if let Some(Item { value: Value::Table(jobs), .. }) = section.get_mut(JOBS) {
        let names: Vec<String> = jobs.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            if let Some(Item { value: Value::Table(job), .. }) = jobs.get_mut(&name) {
                forget_paths(job);
            }
        }
    }
}

/// The jobs, one after the other on the GPUs in the order of their placement.
fn place(
    sources: &[JobSource],
    placement: &Placement,
    fabric: &Fabric,
    servers: &Servers,
    seed: u64,
) -> Result<(Ranks, Vec<String>)> {
    let order = placement.order(fabric, servers, seed)?;
    let Servers { endpoint_delay: delay, memory, scale_up, .. } = *servers;
    let endpoint = Endpoint { delay, memory, cycle: scale_up.cycle };
    let (mut jobs, mut taken, mut warnings) = (Vec::new(), 0, Vec::new());
    for source in sources {
        let free = order.len() as u32 - taken;
        let job = source.build(free, servers.gpus, seed)?.handled_by(endpoint);
        // Ranks on GPUs that a file names, or that begin within a server, fill no servers.
        let is_plain = !matches!(placement, Placement::Listed { .. });
        let job = match is_plain && taken.is_multiple_of(servers.gpus) {
            true => job.on_servers(Block { ranks: servers.gpus, nics: servers.nics }),
            false => job,
        };
        warnings.extend(source.needs(&job)?);
        taken += job.ranks();
        jobs.push(job);
    }
    let (hosts, servers_of) = placement::homes(fabric, servers, &order[..taken as usize]);
    let mut first = 0;
    for (source, job) in sources.iter().zip(&jobs) {
        let own = first as usize..(first + job.ranks()) as usize;
        source.check_in_network(job, fabric, &hosts[own.clone()], &servers_of[own])?;
        first += job.ranks();
    }
    let names = sources.iter().map(|source| source.label().to_owned()).collect();
    let Servers { scale_up, pcie, .. } = *servers;
    let relays = servers.relays(fabric, &order[..taken as usize]);
    Ok((Ranks { jobs, names, hosts, servers: servers_of, scale_up, pcie, relays }, warnings))
}

/// Puts the ranks of all jobs on GPUs as fast as `stragglers` says; what to warn of.
fn slow_down(ranks: &mut Ranks, stragglers: &Stragglers, seed: u64) -> Result<Vec<String>> {
    let all = ranks.jobs.iter().map(Job::ranks).sum();
    let paces = stragglers.paces(all, seed).map_err(of_stragglers)?;
    let (mut first, mut warnings) = (0, Vec::new());
    for job in &mut ranks.jobs {
        match (job.computes(), paces.delays()) {
            (true, true) => warnings.push(format!(
                "stragglers.start_delay has no effect on {}, which computes: what is late there follows \
                 from how long that takes",
                job.trace().name
            )),
            (false, false) => warnings.push(idle(&job.trace().name)),
            _ => {}
        }
        let count = job.ranks();
        *job = job.clone().paced(paces.of(first, count));
        first += count;
    }
    Ok(warnings)
}

/// Why slow GPUs make no difference to `name`.
fn idle(name: &str) -> String {
    format!(
        "stragglers has no effect on {name}, which computes nothing; give stragglers.start_delay"
    )
}

fn of_stragglers(error: WorkloadError) -> ExperimentError {
    let (key, what) = error.0.split_once(": ").unwrap_or(("", &error.0));
    wrong(&format!("stragglers.{key}"), what)
}

fn wrong(key: &str, what: &str) -> ExperimentError {
    ExperimentError::new(key, Origin::Unknown, what)
}
