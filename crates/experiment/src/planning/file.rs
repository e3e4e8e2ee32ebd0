//! A cluster and a job to the text of a plan file.

use super::{Result, found_ports, hosts, network, plan, subflows, wrong};
use crate::expand::{Request, expand};
use crate::experiment::Resolved;
use crate::overrides::{ShortKind, shorthand};
use serde_json::value::RawValue;
use std::path::{Path, absolute};
use weft_balance::enforce::{Enforce, PortRange};
use weft_balance::scheme::platform::SourcePorts;
use weft_balance::scheme::{SCHEMES, SchemeInfo};
use weft_config::cluster::{self, Cluster, PortSegments};
use weft_config::parse::parse;
use weft_config::paths_file::PathsFile;
use weft_config::plan_file::{self, HostTable, PlanFile};
use weft_config::section::folder_of;
use weft_config::value::{Item, Table, Value};
use weft_config::{ExperimentError, Format, Origin};

/// A text and where it is from.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// What it says.
    pub text: &'a str,
    /// How it is written; `None`: in short, as on a command line.
    pub format: Option<Format>,
    /// Its file, or another name for errors.
    pub source: &'a str,
}

/// What to plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// `[fabric]`, `[failures]`, `[cluster]`.
    pub cluster: Text<'a>,
    /// `[workload]` and what else a job says.
    pub job: Text<'a>,
    /// The scheme that plans.
    pub scheme: &'a str,
    /// Of all that is random.
    pub seed: u64,
    /// Dotted keys and values to write over both.
    pub overrides: &'a [(String, String)],
    /// Steps of more subflows keep none.
    pub most_subflows: u64,
    /// A table of discovered paths, from which source ports are taken.
    pub paths: Option<Text<'a>>,
}

/// What a job may say.
const JOB: [&str; 7] = ["title", "notes", "workload", "balance", "transport", "probe", "run"];

/// The plan that `request` asks for.
///
/// # Errors
/// The first mistake: file, key and mend; or why the scheme cannot be planned.
pub fn make(request: &PlanRequest<'_>) -> Result<PlanFile> {
    let enforce = if request.paths.is_some() { Enforce::Discovered } else { Enforce::Segments };
    let Resolve { title, table, experiment, cluster } = resolve(request, enforce)?;
    assemble(request, title, &table, &experiment, cluster)
}

/// What a request says.
pub(super) struct Resolve {
    title: String,
    table: Table,
    pub(super) experiment: Resolved,
    pub(super) cluster: Cluster,
}

/// Reads a request; paths are enforced so unless the job says otherwise.
pub(super) fn resolve(request: &PlanRequest<'_>, enforce: Enforce) -> Result<Resolve> {
    let place = cluster_table(&request.cluster)?;
    let composed =
        compose(&place, request, enforce).map_err(|error| error.in_source(request.job.source))?;
    let source = request.job.source;
    let runs = expand(&Request {
        text: &Value::Table(composed).to_json(),
        format: Format::Json,
        source,
        overrides: request.overrides,
        seeds: Some(1),
    })?;
    let [run] = &runs.runs[..] else {
        let what = format!("{} runs; a plan is of one", runs.runs.len());
        return Err(ExperimentError::new("sweep", Origin::Unknown, what).in_source(source));
    };
    let experiment = Resolved::read(&run.experiment, Path::new(""))?;
    // As changed, and with what the fabric's file says.
    let mut now = place;
    for key in ["fabric", "failures"] {
        now.set(key, run.experiment.get(key).cloned().unwrap_or_else(empty));
    }
    let (cluster, _) = cluster::of_table(&now, "cluster", request.seed)?;
    Ok(Resolve { title: runs.title, table: run.experiment.clone(), experiment, cluster })
}

fn assemble(
    request: &PlanRequest<'_>,
    title: String,
    table: &Table,
    experiment: &Resolved,
    cluster: Cluster,
) -> Result<PlanFile> {
    let enforce = enforced(experiment);
    if request.paths.is_none() && enforce == Enforce::Discovered.name() {
        let what = "is \"discovered\", and nothing says which source ports lead where; name a table of \
                    weft discover with --paths";
        return Err(wrong("balance.enforce", what.to_owned()).in_source(request.job.source));
    }
    // Ports of a table are nowhere but in the plan.
    let most = if request.paths.is_some() { u64::MAX } else { request.most_subflows };
    let mut planned = plan(experiment, request.seed, most)?;
    if let Some(paths) = &request.paths {
        let table = PathsFile::read(paths.text, paths.source)?;
        let wrong = |what| wrong("sources", what).in_source(paths.source);
        if enforce != Enforce::Discovered.name() {
            return Err(wrong(format!(
                "balance.enforce is {enforce}, which takes no discovered ports; leave it out, or use a \
                 scheme that has it"
            )));
        }
        let network = network(experiment, request.seed)?;
        found_ports::give(&mut planned.steps, &cluster, &table, &network).map_err(wrong)?;
    }
    let segments = match enforce {
        "segments" => port_segments(&cluster, experiment.balance.scheme.info())
            .map_err(|error| error.in_source(request.cluster.source))?,
        _ => PortSegments::default(),
    };
    let steps = planned.steps;
    let sum = |seconds: fn(&plan_file::Step) -> f64| {
        steps.iter().map(|step| step.times as f64 * seconds(step)).sum()
    };
    Ok(PlanFile {
        format: plan_file::FORMAT,
        version: plan_file::VERSION,
        title,
        scheme: experiment.balance.scheme.name().to_owned(),
        options: options(table),
        seed: request.seed,
        mtu: experiment.packet.mtu,
        experiment: raw(&Value::Table(table.clone())),
        enforce,
        segments,
        links: planned.links,
        seconds: sum(|step| step.congestion.seconds),
        steps_bound_s: sum(|step| step.bound_s),
        bound_s: planned.bound.as_secs_f64(),
        hosts: hosts::tables(&cluster, steps.iter().map(|step| step.placed.as_ref())),
        steps,
        cluster,
    })
}

/// The table of the host `number` of a plan, whose subflows are planned again; without the number of queue
/// pairs for NCCL, which follows from all hosts.
///
/// # Errors
/// As [`plan`].
pub fn host_table(
    experiment: &Resolved,
    seed: u64,
    cluster: &Cluster,
    number: u32,
    steps: usize,
) -> Result<HostTable> {
    let again = (0..steps).map(|step| subflows(experiment, seed, step, (number, number + 1)));
    let again = again.collect::<Result<Vec<_>>>()?;
    let mut tables = hosts::tables(cluster, again.iter().map(Some));
    let environment = hosts::environment(cluster, None);
    Ok(HostTable { environment, ..tables.swap_remove(number as usize) })
}

/// What makes packets take their paths; `none` where switches hash.
pub fn enforced(experiment: &Resolved) -> &'static str {
    let scheme = &experiment.balance.scheme;
    match scheme.enforce() {
        Some(enforce) => enforce.name(),
        None if scheme.info().port_policy => "segments",
        None => "none",
    }
}

/// The ports of every uplink, by switch.
fn port_segments(cluster: &Cluster, scheme: &SchemeInfo) -> Result<PortSegments> {
    let PortRange { first, last } = PortRange::ROCE;
    if (cluster.first_port, cluster.last_port) != (first, last) {
        let what = format!(
            "plans cut the ports of RoCE, {first} to {last}, not {} to {}; leave first_port and \
             last_port out",
            cluster.first_port, cluster.last_port
        );
        return Err(wrong("cluster.first_port", what));
    }
    cluster.segments(scheme.path_ids)
}

/// The segments of a cluster whose switches follow source ports as `scheme` wants it.
///
/// # Errors
/// If the scheme is unknown, leaves ports to hashing, or there are too few.
pub fn segments_for(cluster: &Cluster, scheme: &str) -> Result<PortSegments> {
    let follows = |info: &SchemeInfo| info.source_ports() == SourcePorts::Segments;
    let info = SchemeInfo::find(scheme).map_err(|error| wrong("scheme", error.what))?;
    if follows(info) {
        return cluster.segments(info.path_ids);
    }
    let names = SCHEMES.iter().filter(|info| follows(info)).map(SchemeInfo::spelling);
    let names = names.collect::<Vec<_>>().join(", ");
    Err(wrong("scheme", format!("{scheme} leaves source ports to hashing; use one of {names}")))
}

/// The parsed cluster file, its topology file named from everywhere.
fn cluster_table(from: &Text<'_>) -> Result<Table> {
    let format = from.format.unwrap_or(Format::Toml);
    let mut place = parse(from.text, format).map_err(|error| error.in_source(from.source))?;
    cluster::of_table(&place, from.source, 0)?;
    if let Some(Item { value: Value::Table(fabric), .. }) = place.get_mut("fabric")
        && let Some(Item { value: Value::Text(file), .. }) = fabric.get_mut("file")
    {
        let path = folder_of(from.source).join(&*file);
        *file = absolute(&path).unwrap_or(path).to_string_lossy().into_owned();
    }
    if place.get("title").is_none() {
        let stem = Path::new(from.source).file_stem().unwrap_or_default();
        place.put("title", stem.to_string_lossy().into_owned());
    }
    Ok(place)
}

/// The experiment that a cluster and a job are.
fn compose(place: &Table, request: &PlanRequest<'_>, enforce: Enforce) -> Result<Table> {
    let job = job_table(place, &request.job)?;
    let mut table = Table::new();
    for key in ["title", "workload", "transport"] {
        if let Some(item) = job.get(key) {
            table.set(key, item.clone());
        }
    }
    table.put("balance", balance(&job, request.scheme, enforce)?);
    for key in ["fabric", "failures"] {
        if let Some(item) = place.get(key) {
            table.set(key, item.clone());
        }
    }
    Ok(table)
}

fn job_table(place: &Table, from: &Text<'_>) -> Result<Table> {
    let on = place.get("title").and_then(|item| item.value.as_text()).unwrap_or("a cluster");
    let Some(format) = from.format else {
        let mut job = Table::new();
        job.put("title", format!("{} on {on}", from.text));
        job.put("workload", shorthand(ShortKind::Workload, from.text)?);
        return Ok(job);
    };
    let mut job = parse(from.text, format)?;
    if let Some((key, item)) = job.iter().find(|(key, _)| !JOB.contains(key)) {
        let mend = match place.get(key) {
            Some(_) => "it belongs to the cluster".to_owned(),
            None => format!("use {}", JOB.join(", ")),
        };
        let what = format!("does not belong to a job; {mend}");
        return Err(ExperimentError::new(key, item.origin, what));
    }
    if job.get("workload").is_none() {
        return Err(wrong("workload", "is missing; add [workload]".into()));
    }
    if job.get("title").is_none() {
        let stem = Path::new(from.source).file_stem().unwrap_or_default();
        job.put("title", format!("{} on {on}", stem.to_string_lossy()));
    }
    Ok(job)
}

/// `[balance]` of a job under `scheme`, whose paths are enforced so unless the job says otherwise.
fn balance(job: &Table, scheme: &str, usual: Enforce) -> Result<Table> {
    let mut options = match job.get("balance") {
        None => Table::new(),
        Some(Item { value: Value::Table(options), .. }) => options.clone(),
        Some(Item { origin, .. }) => {
            return Err(ExperimentError::new(
                "balance",
                *origin,
                "is not a table; write [balance]",
            ));
        }
    };
    if let Some(Item { value, origin }) = options.get("scheme")
        && value.as_text() != Some(scheme)
    {
        let what = format!("is {}, but --scheme {scheme}; leave it out here", value.to_label());
        return Err(ExperimentError::new("balance.scheme", *origin, what));
    }
    options.put("scheme", scheme.to_owned());
    let enforce = |info: &SchemeInfo| info.options.contains(&Enforce::OPTION);
    if SchemeInfo::find(scheme).is_ok_and(enforce) && options.get("enforce").is_none() {
        // Switches as they are.
        options.put("enforce", usual.name().to_owned());
    }
    Ok(options)
}

/// All keys of `[balance]` but the scheme, as they were resolved.
fn options(table: &Table) -> Box<RawValue> {
    let mut options = match table.get("balance") {
        Some(Item { value: Value::Table(options), .. }) => options.clone(),
        _ => Table::new(),
    };
    options.remove("scheme");
    raw(&Value::Table(options))
}

fn empty() -> Item {
    Item::new(Value::Table(Table::new()))
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_json()).expect("values are JSON")
}
