//! Path discovery for Python.

use crate::wrong;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::{Duration, Instant};
use weft_config::cluster::{self, Cluster, Protocol};
use weft_config::paths_file::{PathsFile, SourcePaths};
use weft_config::plan_file::to_json;
use weft_discover::simulated::Answers;
use weft_discover::{Need, Rules, Survey};
use weft_experiment::discovery::Trial;
use weft_probe::{Prober, Traffic};
use weft_units::{HostId, Time};

/// How often Python is told how far it is.
const TELL: Duration = Duration::from_secs(1);

/// How a survey asks, as a dictionary of Python's.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    unseen: f64,
    ports_per_path: u32,
    expected: u32,
    most_ports: u32,
    most_hops: u8,
    rate: f64,
    time_out_s: f64,
    tries: u8,
    sentinels: u32,
}

impl From<Asked> for Rules {
    fn from(asked: Asked) -> Rules {
        Rules {
            unseen: asked.unseen,
            ports_per_path: asked.ports_per_path,
            expected: asked.expected,
            most_ports: asked.most_ports,
            most_hops: asked.most_hops,
            interval: seconds(1.0 / asked.rate),
            time_out: seconds(asked.time_out_s),
            tries: asked.tries,
            sentinels: asked.sentinels,
        }
    }
}

/// Finds out which source ports of this host take which paths to `targets`, which are so many switches away,
/// if `hops` says so of them, and of which `needs` are needed, if it says so: addresses of switches, and how
/// many ports shall meet them. `known` is a table of before, as JSON: targets that were done are checked, others go on. `tell` gets the table so far, as JSON, once a
/// second, and says whether to go on.
#[pyfunction]
#[pyo3(signature = (source, targets, *, hops, needs, protocol, port, dscp, ports, seed, rules,
    known=None, tell=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub(crate) fn discover(
    py: Python<'_>,
    source: &str,
    targets: Vec<String>,
    hops: Vec<u8>,
    needs: Vec<Vec<(Vec<String>, u32)>>,
    protocol: &str,
    port: u16,
    dscp: u8,
    ports: (u16, u16),
    seed: u64,
    rules: Asked,
    known: Option<&str>,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    let source = address(source)?;
    let targets: Vec<Ipv4Addr> = targets.iter().map(|one| address(one)).collect::<PyResult<_>>()?;
    let is_tcp = protocol == Protocol::Tcp.name();
    let protocol = if is_tcp { weft_probe::Protocol::Tcp } else { weft_probe::Protocol::Udp };
    let traffic = Traffic { source, protocol, port, dscp };
    let all: Vec<u16> = (ports.0..=ports.1).collect();
    let mut survey = Survey::new(rules.into(), &all, seed, targets.len());
    (0..).zip(hops).for_each(|(target, hops)| survey.expect(target, hops));
    for (target, needs) in (0..).zip(needs) {
        let one = |(through, ports): (Vec<String>, u32)| {
            let through = through.iter().map(|one| address(one)).collect::<PyResult<_>>()?;
            Ok(Need { through, ports })
        };
        survey.need(target, needs.into_iter().map(one).collect::<PyResult<_>>()?);
    }
    if let Some(known) = known {
        let table = PathsFile::read(known, "known").map_err(wrong)?;
        restore(&mut survey, source, &targets, &table);
    }
    let mut prober = Prober::new(traffic, targets.clone());
    let (start, mut told) = (Instant::now(), Instant::now());
    let table = |survey: &Survey| {
        let states = targets.iter().zip(0..).map(|(one, number)| (*one, survey.state(number)));
        let seconds = start.elapsed().as_secs_f64();
        to_json(&SourcePaths::new(source, seconds, survey.count(), states))
    };
    let mut fault = None;
    let run = py.detach(|| {
        weft_probe::run(&mut survey, &mut prober, |survey| {
            if told.elapsed() < TELL {
                return true;
            }
            told = Instant::now();
            Python::attach(|py| {
                let said = py.check_signals().and_then(|()| match &tell {
                    Some(tell) => tell.call1(py, (table(survey),))?.is_truthy(py),
                    None => Ok(true),
                });
                said.unwrap_or_else(|error| {
                    fault = Some(error);
                    false
                })
            })
        })
    });
    if let Some(error) = fault {
        return Err(error);
    }
    run.map_err(|error| wrong(format!("discover: {error}; look at the address and ulimit -n")))?;
    Ok(table(&survey))
}

fn address(text: &str) -> PyResult<Ipv4Addr> {
    Ipv4Addr::from_str(text).map_err(|_| wrong(format!("discover: {text}: is no IPv4 address")))
}

fn restore(survey: &mut Survey, source: Ipv4Addr, targets: &[Ipv4Addr], table: &PathsFile) {
    let mine = table.sources.iter().filter(|one| one.address == source);
    for known in mine.flat_map(|one| &one.targets) {
        if let Some(target) = targets.iter().position(|one| *one == known.address) {
            survey.restore(target as u32, known.known());
        }
    }
}

/// Refuses a text that is no table of paths.
#[pyfunction]
pub(crate) fn check_paths(text: &str, source: &str) -> PyResult<()> {
    PathsFile::read(text, source).map(drop).map_err(wrong)
}

/// What a table of paths says of a cluster: rows of source host, target host, path id and ports; addresses that
/// are none of the cluster's; how many ports could not be named.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "named in Python")]
pub(crate) fn named_paths(
    cluster_json: &str,
    table: &str,
    source: &str,
) -> PyResult<(Vec<(u32, u32, u16, Vec<u16>)>, Vec<String>, u32)> {
    let cluster = Cluster::from_json(cluster_json, "plan").map_err(wrong)?;
    let table = PathsFile::read(table, source).map_err(wrong)?;
    let found = cluster::discovered(&cluster, &table);
    let mut rows = Vec::new();
    for (src, dst) in found.ports.ends() {
        for path in found.ports.paths(src, dst) {
            rows.push((src.0, dst.0, path.0, found.ports.ports(src, dst, path).to_vec()));
        }
    }
    Ok((rows, found.strangers.iter().map(ToString::to_string).collect(), found.unnamed))
}

/// What it would cost a host of a cluster to discover its paths over simulated switches; `needs` has for each
/// target path ids (none: any path) and how many ports are needed, if not all.
#[pyfunction]
#[pyo3(signature = (cluster_json, source, targets, *, needs, hash, seed, burst, per_second, silent, lost,
    target_answers, round_trip_s, rules))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub(crate) fn simulate_discovery<'py>(
    py: Python<'py>,
    cluster_json: &str,
    source: u32,
    targets: Vec<u32>,
    needs: Vec<Vec<(Option<u16>, u32)>>,
    hash: &str,
    seed: u64,
    burst: u64,
    per_second: f64,
    silent: u32,
    lost: f64,
    target_answers: bool,
    round_trip_s: f64,
    rules: Asked,
) -> PyResult<Bound<'py, PyDict>> {
    let cluster = Cluster::from_json(cluster_json, "plan").map_err(wrong)?;
    let links = cluster.fabric("cluster", seed).map_err(wrong)?;
    let targets: Vec<HostId> = targets.into_iter().map(HostId).collect();
    let answers = Answers {
        burst,
        refill: if per_second > 0.0 { seconds(1.0 / per_second) } else { Time::ZERO },
        lost: (lost * 1e6) as u64,
        targets: target_answers,
        round_trip: seconds(round_trip_s),
        ..Answers::all()
    };
    let fabric = &links.fabric;
    let source = HostId(source);
    let rules = rules.into();
    let trial =
        Trial { fabric, hash, seed, source, targets: &targets, needs, answers, silent, rules };
    let found = py.detach(|| trial.run()).map_err(wrong)?;
    let out = PyDict::new(py);
    out.set_item("seconds", found.time.map(Time::as_secs_f64))?;
    out.set_item("probes", found.count.probes)?;
    out.set_item("answers", found.count.answers)?;
    out.set_item("lost", found.count.lost)?;
    let rows = PyList::empty(py);
    for one in found.targets {
        let row = PyDict::new(py);
        row.set_item("host", one.dst.0)?;
        row.set_item("paths", one.paths)?;
        row.set_item("ports", one.ports)?;
        row.set_item("predicted", one.predicted)?;
        row.set_item("wrong", one.wrong)?;
        row.set_item("linear", one.linear)?;
        row.set_item("complete", one.complete)?;
        rows.append(row)?;
    }
    out.set_item("targets", rows)?;
    Ok(out)
}

fn seconds(value: f64) -> Time {
    Time((1e12 * value) as u64)
}
