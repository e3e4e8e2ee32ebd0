//! Plans of jobs for Python.

use crate::convert::columns;
use crate::wrong;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weft_experiment::Resolved;
use weft_experiment::planning::{self, PlannedStep};

/// Plans the job of one experiment of `expand` under one seed.
#[pyfunction]
pub(crate) fn plan_job<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
    most_subflows: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (experiment, planned) = py
        .detach(|| {
            let experiment = weft_experiment::read_run(experiment_json)?;
            let planned = planning::plan(&experiment, seed, most_subflows)?;
            Ok((experiment, planned))
        })
        .map_err(|error: weft_experiment::ExperimentError| wrong(error))?;
    let steps = PyList::empty(py);
    for one in planned.steps {
        steps.append(step(py, &experiment, one)?)?;
    }
    let out = PyDict::new(py);
    out.set_item("mtu", experiment.packet.mtu)?;
    out.set_item("header", experiment.packet.header)?;
    out.set_item("scheme", experiment.balance.scheme.name())?;
    out.set_item("steps", steps)?;
    out.set_item("links", columns(py, planned.links)?)?;
    out.set_item("bound_s", planned.bound.as_secs_f64())?;
    Ok(out)
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
    columns(py, found.map_err(wrong)?)
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
    let found = found.map_err(wrong)?;
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
    let out = PyDict::new(py);
    out.set_item("links", columns(py, found.links)?)?;
    out.set_item("bound_s", found.bound.as_secs_f64())?;
    out.set_item("steps", steps)?;
    Ok(out)
}

fn step<'py>(
    py: Python<'py>,
    experiment: &Resolved,
    one: PlannedStep,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", one.name)?;
    dict.set_item("times", one.times)?;
    dict.set_item("messages", one.messages)?;
    dict.set_item("bytes", one.bytes)?;
    dict.set_item("piece_count", one.subflows)?;
    dict.set_item("split", one.split)?;
    dict.set_item("queue_pairs", one.queue_pairs)?;
    dict.set_item("loads", one.loads)?;
    let busiest = one.busiest.map(|busiest| {
        let dict = PyDict::new(py);
        dict.set_item("link", planning::link_name(experiment, busiest.port))?;
        dict.set_item("bytes", busiest.bytes)?;
        dict.set_item("seconds", busiest.seconds)?;
        PyResult::Ok(dict)
    });
    dict.set_item("busiest", busiest.transpose()?)?;
    dict.set_item("bound_s", one.bound.seconds)?;
    dict.set_item("reached_s", one.bound.reached)?;
    let certificate = one.bound.bottleneck.as_ref().map(planning::certificate);
    dict.set_item("certificate", certificate.map(|found| columns(py, found)).transpose()?)?;
    dict.set_item("pieces", one.placed.map(|found| columns(py, found)).transpose()?)?;
    Ok(dict)
}
