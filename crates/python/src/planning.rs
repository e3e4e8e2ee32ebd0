//! Plans of jobs for Python.

use crate::convert::columns;
use crate::{format_named, wrong};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weft_config::cluster::Cluster;
use weft_config::plan_file::{self, Links, PlanForHosts, Subflows};
use weft_experiment::planning::{self, PlanRequest, QueuePairs, Text};
use weft_experiment::{Column, Columns, ExperimentError};

/// The plan file of a cluster and a job, each a text, how it is written (`toml`, `json`; a job also
/// `short`) and its source; `paths`: a table of discovered paths and its source.
#[pyfunction]
#[pyo3(signature = (cluster, job, scheme, seed, overrides, most_subflows, paths=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub(crate) fn make_plan(
    py: Python<'_>,
    cluster: (String, String, String),
    job: (String, String, String),
    scheme: &str,
    seed: u64,
    overrides: Vec<(String, String)>,
    most_subflows: u64,
    paths: Option<(String, String)>,
) -> PyResult<String> {
    let paths = paths.as_ref().map(|(text, source)| Text { text, format: None, source });
    let request = PlanRequest {
        cluster: text(&cluster)?,
        job: text(&job)?,
        scheme,
        seed,
        overrides: &overrides,
        most_subflows,
        paths,
    };
    py.detach(|| planning::make(&request).map(|plan| plan_file::to_json(&plan))).map_err(wrong)
}

/// The paths that a job takes between hosts in different racks, by column: what it needs of discovered ports.
#[pyfunction]
pub(crate) fn path_needs<'py>(
    py: Python<'py>,
    cluster: (String, String, String),
    job: (String, String, String),
    scheme: &str,
    seed: u64,
    overrides: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let (cluster, job) = (text(&cluster)?, text(&job)?);
    let overrides = &overrides;
    let (most_subflows, paths) = (0, None);
    let request = PlanRequest { cluster, job, scheme, seed, overrides, most_subflows, paths };
    let found = py.detach(|| planning::path_needs(&request)).map_err(wrong)?;
    let rows = vec![
        ("src", Column::U32(found.src)),
        ("dst", Column::U32(found.dst)),
        ("path", Column::U32(found.path)),
        ("subflows", Column::U32(found.subflows)),
    ];
    columns(py, rows)
}

fn text((text, format, source): &(String, String, String)) -> PyResult<Text<'_>> {
    let format = if format == "short" { None } else { Some(format_named(format)?) };
    Ok(Text { text, format, source })
}

/// What to say of a job under whose plan every scheme comes out alike.
#[pyfunction]
pub(crate) fn plan_stays(
    py: Python<'_>,
    experiment_json: &str,
    seed: u64,
) -> PyResult<Option<String>> {
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        planning::stays(&experiment, seed)
    });
    found.map_err(|error: ExperimentError| wrong(error))
}

/// Refuses a text that is no plan file, or lacks one of `keys`.
#[pyfunction]
pub(crate) fn check_plan(text: &str, source: &str, keys: Vec<String>) -> PyResult<()> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    plan_file::check(text, source, &keys).map_err(wrong)
}

/// Refuses what no cluster file gives, in the `cluster` of a plan (`source`).
#[pyfunction]
pub(crate) fn check_cluster(cluster_json: &str, source: &str) -> PyResult<()> {
    Cluster::from_json(cluster_json, source).map(drop).map_err(wrong)
}

/// A plan file that says only what hosts read.
#[pyfunction]
pub(crate) fn plan_for_hosts(scheme: String, seed: u64, cluster_json: &str) -> PyResult<String> {
    let cluster = Cluster::from_json(cluster_json, "plan").map_err(wrong)?;
    Ok(plan_file::to_json(&PlanForHosts::new(scheme, seed, cluster)))
}

/// The table of one host of a plan of so many steps, whose subflows are planned again, as JSON.
#[pyfunction]
pub(crate) fn plan_host(
    py: Python<'_>,
    experiment_json: &str,
    seed: u64,
    cluster_json: &str,
    host: u32,
    steps: usize,
) -> PyResult<String> {
    let cluster = Cluster::from_json(cluster_json, "plan").map_err(wrong)?;
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        planning::host_table(&experiment, seed, &cluster, host, steps)
    });
    found.map(|table| plan_file::to_json(&table)).map_err(wrong)
}

/// The source ports of every uplink of a cluster, by switch, as `scheme` wants them, as JSON.
#[pyfunction]
pub(crate) fn port_segments(cluster_json: &str, scheme: &str) -> PyResult<String> {
    let cluster = Cluster::from_json(cluster_json, "plan").map_err(wrong)?;
    let found = planning::segments_for(&cluster, scheme).map_err(wrong)?;
    Ok(plan_file::to_json(&found))
}

/// The addresses and prefixes of the paths of a cluster, as JSON: `null` if its hosts have none.
#[pyfunction]
pub(crate) fn path_addresses(cluster_json: &str) -> PyResult<String> {
    let cluster = Cluster::from_json(cluster_json, "plan").map_err(wrong)?;
    let found = cluster.path_addresses().map_err(wrong)?;
    Ok(plan_file::to_json(&found))
}

/// What makes the packets of an experiment take their paths.
#[pyfunction]
pub(crate) fn enforced(experiment_json: &str) -> PyResult<&'static str> {
    weft_experiment::read_run(experiment_json)
        .map(|found| planning::enforced(&found))
        .map_err(wrong)
}

/// The subflows of one step that hosts from `first` to before `end` send.
#[pyfunction]
pub(crate) fn plan_subflows<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
    step: usize,
    first: u32,
    end: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        planning::subflows(&experiment, seed, step, (first, end))
    });
    columns(py, by_column(found.map_err(wrong)?))
}

fn by_column(all: Subflows) -> Columns {
    vec![
        ("src", Column::U32(all.src)),
        ("dst", Column::U32(all.dst)),
        ("message", Column::U32(all.message)),
        ("part", Column::U32(all.part)),
        ("bytes", Column::U64(all.bytes)),
        ("path", Column::U32(all.path)),
        ("source_port", Column::U32(all.source_port)),
        ("queue_pair", Column::U32(all.queue_pair)),
    ]
}

/// What every link carries where queue pairs have these source ports: `(src, dst, bytes, port)`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "a column each")]
pub(crate) fn port_loads<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seeds: (u64, u64),
    steered: bool,
    src: PyReadonlyArray1<'_, u32>,
    dst: PyReadonlyArray1<'_, u32>,
    bytes: PyReadonlyArray1<'_, u64>,
    source_port: PyReadonlyArray1<'_, u16>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let pairs = QueuePairs {
        src: src.as_slice()?,
        dst: dst.as_slice()?,
        bytes: bytes.as_slice()?,
        source_port: source_port.as_slice()?,
    };
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        planning::port_loads(&experiment, seeds, steered, &pairs)
    });
    Ok(found.map_err(|error: ExperimentError| wrong(error))?.into_pyarray(py))
}

/// What a plan is made of: links now, and the messages of every step.
#[pyfunction]
pub(crate) fn plan_given<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
    most_messages: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| {
        let experiment = weft_experiment::read_run(experiment_json)?;
        planning::given(&experiment, seed, most_messages)
    });
    let found = found.map_err(|error: ExperimentError| wrong(error))?;
    let steps = PyList::empty(py);
    for one in found.steps {
        let dict = PyDict::new(py);
        dict.set_item("name", one.name)?;
        dict.set_item("times", one.times)?;
        dict.set_item("messages", one.messages)?;
        dict.set_item("bytes", one.bytes)?;
        dict.set_item("each", one.each.map(|each| columns(py, each)).transpose()?)?;
        steps.append(dict)?;
    }
    let Links { link, rate_bps, capacity_bps } = found.links;
    let links = vec![
        ("link", Column::Text(link)),
        ("rate_bps", Column::U64(rate_bps)),
        ("capacity_bps", Column::U64(capacity_bps)),
    ];
    let out = PyDict::new(py);
    out.set_item("links", columns(py, links)?)?;
    out.set_item("enforce", found.enforce)?;
    out.set_item("bound_s", found.bound.as_secs_f64())?;
    out.set_item("steps", steps)?;
    Ok(out)
}
