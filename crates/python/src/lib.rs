//! Python bindings: `weft._native`. Converts, and nothing else; what the functions do is
//! documented in `weft-experiment` and `weft-config`, what Python sees of them in
//! `python/weft/_native.pyi`.

mod bench;
mod convert;
mod discover;
mod group;
mod net;
mod panics;
mod planning;
mod quantity;

use convert::{columns, row};
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_experiment::value::Value;
use weft_experiment::{
    CODE_VERSION, Catalogue, ConvertRequest, Entry, Format, Request, RunError, ShortKind, Threads,
    Wanted, plan,
};

create_exception!(
    _native,
    ExperimentError,
    PyValueError,
    "A mistake in an experiment, in one line."
);
create_exception!(_native, StallError, PyRuntimeError, "A run in which nothing made progress.");
create_exception!(_native, Cancelled, PyRuntimeError, "A run that was cancelled.");

/// A flag that ends a run from another thread.
#[pyclass(frozen, module = "weft._native")]
#[derive(Default)]
struct Cancel(Arc<AtomicBool>);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Cancel {
        Cancel::default()
    }
    /// Ends the runs that were given this flag, soon.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is known of one run while it goes on.
#[pyclass(frozen, module = "weft._native")]
#[derive(Default)]
struct Progress(weft_experiment::Progress);

/// As [`weft_experiment::progress::State`], in the order of `_native.pyi`.
type State = (u64, f64, f64, (f64, f64), u64);

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Progress {
        Progress::default()
    }
    /// Packet-hops at least, the share of packets that have arrived, seconds since it began, seconds
    /// and share of the first look that found a packet, and payload in bytes; none before it began.
    fn state(&self) -> Option<State> {
        let state = self.0.state()?;
        Some((state.hops, state.share, state.seconds, state.first, state.bytes))
    }
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    ExperimentError::new_err(error.to_string())
}

fn not_one_of(what: &str, given: &str, names: &[&str]) -> PyErr {
    wrong(format!("{what}: {given:?} is not known; use one of {}", names.join(", ")))
}

fn positive(what: &str, number: u32) -> PyResult<NonZeroU32> {
    NonZeroU32::new(number)
        .ok_or_else(|| wrong(format!("{what}: 0 is out of range; use 1 or more")))
}

fn format_named(name: &str) -> PyResult<Format> {
    match name {
        "toml" => Ok(Format::Toml),
        "json" => Ok(Format::Json),
        other => Err(not_one_of("format", other, &["toml", "json"])),
    }
}

/// All runs of an experiment, as JSON.
#[pyfunction]
#[pyo3(signature = (text, format, source, overrides, seeds=None, quick=false))]
fn expand(
    py: Python<'_>,
    text: &str,
    format: &str,
    source: &str,
    overrides: Vec<(String, String)>,
    seeds: Option<u64>,
    quick: bool,
) -> PyResult<String> {
    let format = format_named(format)?;
    let request = Request { text, format, source, overrides: &overrides, seeds };
    let expand = if quick { weft_experiment::expand_quick } else { weft_experiment::expand };
    let expansion = py.detach(|| expand(&request)).map_err(wrong)?;
    Ok(expansion.to_json())
}

/// Runs one experiment of `expand` under one seed.
#[pyfunction]
#[pyo3(signature = (experiment_json, seed, cancel=None, *, threads=None, share=1, progress=None))]
fn run<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
    cancel: Option<&Cancel>,
    threads: Option<u32>,
    share: u32,
    progress: Option<&Progress>,
) -> PyResult<Bound<'py, PyDict>> {
    let progress = progress.map(|progress| &progress.0);
    let flag = cancel.map(|cancel| cancel.0.clone()).unwrap_or_default();
    let threads = match threads {
        Some(threads) => Threads::Exactly(positive("threads", threads)?),
        None => Threads::UpTo(positive("share", share)?),
    };
    let result = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        weft_experiment::run_watched(&experiment, seed, threads, &flag, progress)
    });
    let result = result.map_err(|error| match error {
        RunError::Experiment(error) => wrong(error),
        RunError::Stalled(_) => StallError::new_err(error.to_string()),
        RunError::Cancelled => Cancelled::new_err(error.to_string()),
    })?;
    let out = PyDict::new(py);
    out.set_item("row", row(py, result.row)?)?;
    let timing = PyDict::new(py);
    timing.set_item("wall_s", result.timing.wall_s)?;
    timing.set_item("build_s", result.timing.build_s)?;
    timing.set_item("events", result.timing.events)?;
    timing.set_item("threads", result.timing.threads)?;
    out.set_item("timing", timing)?;
    out.set_item("flows", columns(py, result.flows)?)?;
    out.set_item("links", columns(py, result.links)?)?;
    out.set_item("collectives", columns(py, result.collectives)?)?;
    out.set_item("nodes", columns(py, result.nodes)?)?;
    out.set_item("messages", columns(py, result.messages)?)?;
    out.set_item("series", convert::series(py, result.series)?)?;
    out.set_item("warnings", result.warnings)?;
    Ok(out)
}

/// Data packets and packet-hops that one experiment of `expand` takes at least under one seed.
#[pyfunction]
fn work(py: Python<'_>, experiment_json: &str, seed: u64) -> PyResult<(u64, u64)> {
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        weft_experiment::work(&experiment, seed)
    });
    found.map(|work| (work.packets, work.hops)).map_err(wrong)
}

/// Whether one experiment of `expand` has enough capacity under one seed.
#[pyfunction]
fn capacity<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        weft_experiment::capacity(&experiment, seed)
    });
    convert::capacity(py, &found.map_err(wrong)?)
}

/// Switches, links and failures of the fabric of one experiment of `expand`.
#[pyfunction]
fn fabric_tables<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        weft_experiment::fabric_tables(&experiment, seed)
    });
    let found = found.map_err(wrong)?;
    let out = PyDict::new(py);
    out.set_item("hosts", found.hosts)?;
    out.set_item("planes", found.planes)?;
    out.set_item("is_clos", found.is_clos)?;
    out.set_item("switches", columns(py, found.switches)?)?;
    out.set_item("links", columns(py, found.links)?)?;
    out.set_item("failures", columns(py, found.failures)?)?;
    Ok(out)
}

/// What is in a trace, and whether it can run, as JSON.
#[pyfunction]
#[pyo3(signature = (path, options, folder=None, ranks=None))]
fn trace_info(
    py: Python<'_>,
    path: PathBuf,
    options: Vec<(String, String)>,
    folder: Option<PathBuf>,
    ranks: Option<u32>,
) -> PyResult<String> {
    let folder = folder.unwrap_or_default();
    py.detach(|| weft_experiment::trace_info(&path, &options, &folder, ranks)).map_err(wrong)
}

/// What is written: ends of names with contents, and remarks, each with how often.
type Converted<'py> = (Vec<(String, Bound<'py, PyBytes>)>, Vec<(String, u64)>);

/// A workload in a format of other tools.
#[pyfunction]
#[pyo3(signature = (workload, options, to, *, ranks=None, unfold=false, no_compute=false))]
fn trace_convert<'py>(
    py: Python<'py>,
    workload: &str,
    options: Vec<(String, String)>,
    to: &str,
    ranks: Option<u32>,
    unfold: bool,
    no_compute: bool,
) -> PyResult<Converted<'py>> {
    let request = ConvertRequest { workload, options: &options, ranks, to, unfold, no_compute };
    let written = py.detach(|| weft_experiment::trace_convert(&request)).map_err(wrong)?;
    let files = written.files.into_iter().map(|(end, bytes)| (end, PyBytes::new(py, &bytes)));
    let remarks = written.remarks.into_iter().map(|one| (one.what, one.count));
    Ok((files.collect(), remarks.collect()))
}

/// Under which key of `[workload]` a file goes: `trace`, `file` or none.
#[pyfunction]
fn workload_key(path: &str) -> Option<&'static str> {
    weft_experiment::workload_key(path)
}

/// What is in a topology file, and whether it can be a fabric, as JSON.
#[pyfunction]
fn topology_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| weft_experiment::topology_info(&path)).map_err(wrong)
}

/// The cluster in a text, as JSON.
#[pyfunction]
#[pyo3(signature = (text, format, source, seed=1))]
fn cluster(py: Python<'_>, text: &str, format: &str, source: &str, seed: u64) -> PyResult<String> {
    let format = format_named(format)?;
    let found =
        py.detach(|| weft_config::cluster::read(text, format, source, seed)).map_err(wrong)?;
    Ok(found.0.to_json())
}

/// All keys of `[cluster]`.
#[pyfunction]
fn cluster_keys() -> Vec<&'static str> {
    weft_config::cluster::naming::keys()
}

/// How many destination ports a protocol has unless `[cluster]` says otherwise.
#[pyfunction]
fn cluster_ports(protocol: &str) -> PyResult<u16> {
    let all = weft_config::cluster::Protocol::ALL;
    let found = all.into_iter().find(|one| one.name() == protocol);
    let names = all.map(weft_config::cluster::Protocol::name);
    found.map(|one| one.ports()).ok_or_else(|| not_one_of("protocol", protocol, &names))
}

/// Equation 1 of ParaLet (2024).
#[pyfunction]
fn paralet_slowdown(queue_pairs: u32, ports: u64) -> PyResult<f64> {
    plan::paralet::slowdown(queue_pairs, ports).map_err(wrong)
}

/// The least m with which it promises a slowdown.
#[pyfunction]
fn paralet_queue_pairs(slowdown: f64, ports: u64) -> PyResult<u32> {
    plan::paralet::queue_pairs(slowdown, ports).map_err(wrong)
}

/// Table 3 of ParaLet (2024).
#[pyfunction]
fn paralet_ports(deviations: f64) -> f64 {
    plan::paralet::ports(deviations)
}

/// ParaLet's m and S for the fabric of one experiment of `expand`.
#[pyfunction]
#[pyo3(signature = (experiment_json, slowdown=None, queue_pairs=None, accelerators=None))]
fn paralet_tuning<'py>(
    py: Python<'py>,
    experiment_json: &str,
    slowdown: Option<f64>,
    queue_pairs: Option<u32>,
    accelerators: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted = match (slowdown, queue_pairs) {
        (Some(slowdown), None) => Wanted::Slowdown(slowdown),
        (None, Some(count)) => Wanted::QueuePairs(count),
        _ => return Err(wrong("paralet: a slowdown or a number of queue pairs; give one of them")),
    };
    let experiment = weft_experiment::read_run(experiment_json).map_err(wrong)?;
    let found = weft_experiment::tuning(&experiment, wanted, accelerators).map_err(wrong)?;
    let dict = PyDict::new(py);
    dict.set_item("queue_pairs", found.queue_pairs)?;
    dict.set_item("flowlet_bytes", found.flowlet)?;
    dict.set_item("slowdown", found.slowdown)?;
    dict.set_item("rate_bps", found.rate.as_bps())?;
    Ok(dict)
}

/// The cores that this process may use.
#[pyfunction]
fn cores() -> u32 {
    weft_experiment::cores()
}

/// The list that is `weft-deploy`'s; the others are `weft-experiment`'s.
const VARIABLES: &str = "variables";

/// What there is to choose from, as JSON.
#[pyfunction]
fn catalogue(kind: &str) -> PyResult<String> {
    if kind == VARIABLES {
        return Ok(Entry::list_to_json(&weft_deploy::catalogue()));
    }
    let found = Catalogue::NAMES.iter().find(|(name, _)| *name == kind);
    let (_, list) = found.ok_or_else(|| {
        let names = Catalogue::NAMES.iter().map(|(name, _)| *name);
        not_one_of("kind", kind, &names.chain([VARIABLES]).collect::<Vec<_>>())
    })?;
    Ok(list.to_json())
}

/// A short form of the command line as the table that it stands for, in JSON.
#[pyfunction]
fn shorthand(kind: &str, text: &str) -> PyResult<String> {
    let kind_of = match kind {
        "fabric" => ShortKind::Fabric,
        "workload" => ShortKind::Workload,
        other => return Err(not_one_of("kind", other, &["fabric", "workload"])),
    };
    let table = weft_experiment::shorthand(kind_of, text);
    let table = table.map_err(|error| wrong(error.in_source(&format!("--{kind}"))))?;
    Ok(Value::Table(table).to_json())
}

/// The native half of Weft.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ExperimentError", py.get_type::<ExperimentError>())?;
    module.add("StallError", py.get_type::<StallError>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())?;
    module.add("code_version", CODE_VERSION)?;
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add("commit", env!("WEFT_COMMIT"))?;
    module.add("target", env!("WEFT_TARGET"))?;
    module.add("has_assertions", cfg!(debug_assertions))?;
    module.add("GroupError", py.get_type::<group::GroupError>())?;
    module.add_class::<Cancel>()?;
    module.add_class::<Progress>()?;
    module.add_class::<group::Nic>()?;
    module.add_class::<group::Rank>()?;
    module.add_class::<group::Joined>()?;
    module.add_class::<group::Pending>()?;
    module.add_class::<group::Vigil>()?;
    module.add_function(wrap_pyfunction!(expand, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(work, module)?)?;
    module.add_function(wrap_pyfunction!(capacity, module)?)?;
    module.add_function(wrap_pyfunction!(fabric_tables, module)?)?;
    module.add_function(wrap_pyfunction!(trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(trace_convert, module)?)?;
    module.add_function(wrap_pyfunction!(workload_key, module)?)?;
    module.add_function(wrap_pyfunction!(topology_info, module)?)?;
    module.add_function(wrap_pyfunction!(cluster, module)?)?;
    module.add_function(wrap_pyfunction!(cluster_keys, module)?)?;
    module.add_function(wrap_pyfunction!(cluster_ports, module)?)?;
    module.add_function(wrap_pyfunction!(paralet_slowdown, module)?)?;
    module.add_function(wrap_pyfunction!(paralet_queue_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(paralet_ports, module)?)?;
    module.add_function(wrap_pyfunction!(paralet_tuning, module)?)?;
    module.add_function(wrap_pyfunction!(net::net_host, module)?)?;
    module.add_function(wrap_pyfunction!(discover::discover, module)?)?;
    module.add_function(wrap_pyfunction!(discover::simulate_discovery, module)?)?;
    module.add_function(wrap_pyfunction!(discover::check_paths, module)?)?;
    module.add_function(wrap_pyfunction!(discover::named_paths, module)?)?;
    module.add_function(wrap_pyfunction!(bench::bench_net, module)?)?;
    module.add_function(wrap_pyfunction!(bench::check_environment, module)?)?;
    module.add_function(wrap_pyfunction!(planning::make_plan, module)?)?;
    module.add_function(wrap_pyfunction!(planning::path_needs, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan_for_hosts, module)?)?;
    module.add_function(wrap_pyfunction!(planning::enforced, module)?)?;
    module.add_function(wrap_pyfunction!(planning::check_plan, module)?)?;
    module.add_function(wrap_pyfunction!(planning::check_cluster, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan_stays, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan_host, module)?)?;
    module.add_function(wrap_pyfunction!(planning::port_segments, module)?)?;
    module.add_function(wrap_pyfunction!(planning::path_addresses, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan_subflows, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan_given, module)?)?;
    module.add_function(wrap_pyfunction!(planning::port_loads, module)?)?;
    module.add_function(wrap_pyfunction!(quantity::quantity, module)?)?;
    module.add_function(wrap_pyfunction!(quantity::nccl_size, module)?)?;
    module.add_function(wrap_pyfunction!(panics::hold_panics, module)?)?;
    module.add_function(wrap_pyfunction!(panics::held_panics, module)?)?;
    module.add_function(wrap_pyfunction!(panics::panic_for_tests, module)?)?;
    module.add_function(wrap_pyfunction!(cores, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(shorthand, module)?)?;
    Ok(())
}
