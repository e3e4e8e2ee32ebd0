//! One rank of `weft bench-net`.

use crate::{not_one_of, wrong};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use weft_nccl_abi::{Level, Version};
use weft_net_bench::{BenchError, Benchmark, Config, Operation, Over, Row, log};

/// Measures collectives as one of `ranks`, over a plugin (a file, the version of its table, the number
/// of a NIC) or plain sockets. `begin` is told what is measured, `row` each size.
#[pyfunction]
#[pyo3(signature = (*, rank, ranks, meet, patience_s, operation, sizes, iterations, warm_up, checks,
    channels, chunk, plugin, connections, address, verbose, begin, row))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub(crate) fn bench_net(
    py: Python<'_>,
    rank: usize,
    ranks: usize,
    meet: String,
    patience_s: f64,
    operation: &str,
    sizes: Vec<usize>,
    iterations: usize,
    warm_up: usize,
    checks: usize,
    channels: usize,
    chunk: usize,
    plugin: Option<(PathBuf, String, Vec<i32>, Option<i32>)>,
    connections: usize,
    address: Option<String>,
    verbose: bool,
    begin: Py<PyAny>,
    row: Py<PyAny>,
) -> PyResult<()> {
    let operation = Operation::named(operation).ok_or_else(|| {
        let names: Vec<_> = Operation::ALL.iter().map(|(_, name)| *name).collect();
        not_one_of("--op", operation, &names)
    })?;
    let plan = Benchmark { operation, sizes, iterations, warm_up, checks, channels, chunk };
    let over = match plugin {
        Some((file, abi, devices, traffic_class)) => {
            Over::Plugin { file, version: version(&abi)?, devices, traffic_class }
        }
        None => {
            let parse = |text: String| {
                let address = text.parse::<IpAddr>();
                address.map_err(|_| wrong(format!("--address {text}: use an address as 10.0.0.1")))
            };
            Over::Sockets { connections, address: address.map(parse).transpose()? }
        }
    };
    let patience = Duration::from_secs_f64(patience_s);
    let config = Config { rank, ranks, meet, patience, over, plan };
    if verbose {
        log::show(Level::Info);
    }
    // What a call of ours into Python raised; the benchmark only knows that it is to end.
    let mut raised = None;
    let outcome = py.detach(|| {
        let raised = std::cell::RefCell::new(&mut raised);
        let keep = |error: PyErr| {
            **raised.borrow_mut() = Some(error);
            BenchError::Cancelled
        };
        let mut begin =
            |about: &str| Python::attach(|py| begin.call1(py, (about,)).map(drop)).map_err(keep);
        let mut row = |one: Row| Python::attach(|py| tell(py, &row, &one)).map_err(keep);
        let check = || Python::attach(|py| py.check_signals()).map_err(keep);
        weft_net_bench::run_rank(&config, &mut begin, &mut row, &check)
    });
    match (outcome, raised) {
        (Ok(()), None) => Ok(()),
        (_, Some(raised)) => Err(raised),
        (Err(BenchError::Input(text)), None) => Err(wrong(text)),
        (Err(error), None) => Err(PyRuntimeError::new_err(error.to_string())),
    }
}

/// Refuses what the variables of this process ask for, if it cannot be, as the plugin would; `outputs`: also what
/// could not be written or served here. What the plugin would warn of, a line each.
#[pyfunction]
#[pyo3(signature = (*, outputs = false))]
pub(crate) fn check_environment(outputs: bool) -> PyResult<Vec<String>> {
    let deployment = weft_deploy::of_this_process().map_err(wrong)?;
    if outputs {
        deployment.check_outputs().map_err(wrong)?;
    }
    Ok(deployment.warnings)
}

fn version(name: &str) -> PyResult<Version> {
    let found = Version::ALL.into_iter().find(|version| version.name() == name);
    found.ok_or_else(|| not_one_of("--abi", name, &Version::ALL.map(Version::name)))
}

fn tell(py: Python<'_>, to: &Py<PyAny>, row: &Row) -> PyResult<()> {
    let dict = PyDict::new(py);
    dict.set_item("size_bytes", row.size)?;
    dict.set_item("count", row.count)?;
    dict.set_item("time_s", row.seconds)?;
    dict.set_item("slowest_s", row.slowest)?;
    dict.set_item("algorithm_bytes_per_s", row.algorithm)?;
    dict.set_item("bus_bytes_per_s", row.bus)?;
    dict.set_item("wrong", row.wrong)?;
    to.call1(py, (dict,)).map(drop)
}
