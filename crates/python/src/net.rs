//! A host of the test bed, and its report as a dict.

use crate::wrong;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;
use weft_net::io::{self, HostConfig, HostReport};
use weft_net::ports::{LAST_PORT, Ports};
use weft_net::report::{Count, Received, Sent};
use weft_net::script::{Need, Task};
use weft_net::sender::Given;
use weft_net::{PathId, Route};
use weft_units::{HostId, MessageId, Time};

/// A message planned elsewhere: message, receiver, messages that must have been sent and received
/// before it, and subflows as payload, path id and source port.
type Planned = (u32, u32, Vec<u32>, Vec<u32>, Vec<(u64, Option<u16>, Option<u16>)>);

/// Sends and receives as one host of an experiment, in the network namespace of the caller, until
/// the control socket says stop.
#[pyfunction]
#[pyo3(signature = (experiment_json, seed, host, addresses, port, dscp, control, *, limit_s,
    tcp=false, planned=None, path_addresses=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub(crate) fn net_host<'py>(
    py: Python<'py>,
    experiment_json: &str,
    seed: u64,
    host: u32,
    addresses: Vec<String>,
    port: u16,
    dscp: u8,
    control: PathBuf,
    limit_s: f64,
    tcp: bool,
    planned: Option<(Vec<Planned>, u64)>,
    path_addresses: Option<Vec<Vec<String>>>,
) -> PyResult<Bound<'py, PyDict>> {
    let host = HostId(host);
    let addresses = read_all(&addresses)?;
    let by_path = path_addresses.unwrap_or_default();
    let path_addresses = by_path.iter().map(|of| read_all(of)).collect::<PyResult<Vec<_>>>()?;
    let report = py.detach(|| -> PyResult<(HostReport, Ports)> {
        let experiment = weft_experiment::read_run(experiment_json).map_err(wrong)?;
        let job = weft_net::host_job(&experiment, seed, host).map_err(wrong)?;
        let weft_net::HostJob { sender, tasks, expected } = job;
        let (tasks, expected) = match planned {
            Some((tasks, expected)) => (tasks.into_iter().map(task).collect(), expected),
            None => (tasks, expected),
        };
        let ports = Ports::new(sender.fabric.uplinks_of(host));
        let limit = Duration::from_secs_f64(limit_s);
        let config = HostConfig {
            sender,
            addresses,
            path_addresses,
            port,
            dscp,
            control,
            tasks,
            expected,
            limit,
        };
        let run = if tcp { io::tcp::run } else { io::udp::run };
        Ok((run(config)?, ports))
    });
    let (report, ports) = report?;
    as_dict(py, &report, ports)
}

fn read_all(texts: &[String]) -> PyResult<Vec<Ipv4Addr>> {
    let read = |text: &String| text.parse().map_err(|error| wrong(format!("{text}: {error}")));
    texts.iter().map(read).collect()
}

fn task((message, dst, sent, received, subflows): Planned) -> Task {
    let subflow = |(bytes, path, port): (u64, Option<u16>, Option<u16>)| Given {
        bytes,
        route: match path {
            Some(path) => Route::Pinned(PathId(path)),
            None => Route::Hashed(port.unwrap_or_default()),
        },
        // `ip rule` cannot match the very last port: another of its segment then.
        port: port.filter(|port| *port <= LAST_PORT),
    };
    let given: Vec<Given> = subflows.into_iter().map(subflow).collect();
    let sent = sent.into_iter().map(|one| Need::Sent(MessageId(one)));
    let received = received.into_iter().map(|one| Need::Received(MessageId(one)));
    Task {
        message: MessageId(message),
        dst: HostId(dst),
        bytes: given.iter().map(|subflow| subflow.bytes).sum(),
        start: Time::ZERO,
        after: sent.chain(received).collect(),
        given: Some(given),
    }
}

fn as_dict<'py>(
    py: Python<'py>,
    report: &HostReport,
    ports: Ports,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("host", report.host.0)?;
    dict.set_item("complete", report.complete)?;
    dict.set_item("unsent", report.remaining.0)?;
    dict.set_item("missing_bytes", report.remaining.1)?;
    dict.set_item("done_s", report.done.map(Time::as_secs_f64))?;
    dict.set_item("heard_s", report.heard.as_secs_f64())?;
    dict.set_item("wrong_bytes", report.wrong)?;
    dict.set_item("refused", report.refused)?;
    sent(&dict, &report.sent, ports)?;
    received(&dict, &report.received)?;
    Ok(dict)
}

fn sent(dict: &Bound<'_, PyDict>, sent: &Sent, ports: Ports) -> PyResult<()> {
    let py = dict.py();
    let by_port = PyList::empty(py);
    for (port, one) in &sent.by_port {
        let row = count(py, one)?;
        row.set_item("port", port)?;
        row.set_item("segment", ports.uplink(*port))?;
        by_port.append(row)?;
    }
    dict.set_item("ports", by_port)?;
    dict.set_item("local", count(py, &sent.local)?)?;
    dict.set_item("lost", sent.lost)?;
    dict.set_item("gaps", sent.gaps)?;
    dict.set_item("time_outs", sent.time_outs)?;
    let remaps: Vec<f64> = sent.remaps.iter().map(|at| at.as_secs_f64()).collect();
    dict.set_item("remaps_s", remaps)?;
    let recoveries = PyList::empty(py);
    for one in &sent.recoveries {
        let row = PyDict::new(py);
        row.set_item("message", one.message.0)?;
        row.set_item("part", one.part)?;
        row.set_item("since_s", one.since.as_secs_f64())?;
        row.set_item("until_s", one.until.as_secs_f64())?;
        row.set_item("time_outs", one.time_outs)?;
        recoveries.append(row)?;
    }
    dict.set_item("recoveries", recoveries)?;
    let messages = PyList::empty(py);
    for one in &sent.messages {
        let row = PyDict::new(py);
        row.set_item("message", one.message.0)?;
        row.set_item("dst", one.dst.0)?;
        row.set_item("bytes", one.bytes)?;
        row.set_item("pieces", one.subflows)?;
        row.set_item("posted_s", one.posted.as_secs_f64())?;
        row.set_item("answered_s", one.answered.as_secs_f64())?;
        messages.append(row)?;
    }
    dict.set_item("sent", messages)
}

fn received(dict: &Bound<'_, PyDict>, received: &Received) -> PyResult<()> {
    let py = dict.py();
    let messages = PyList::empty(py);
    for one in &received.messages {
        let row = PyDict::new(py);
        row.set_item("message", one.message.0)?;
        row.set_item("src", one.src.0)?;
        row.set_item("bytes", one.bytes)?;
        row.set_item("received_s", one.received.as_secs_f64())?;
        messages.append(row)?;
    }
    dict.set_item("received", messages)?;
    dict.set_item("received_bytes", received.bytes)?;
    dict.set_item("repeated", received.repeated)?;
    dict.set_item("damaged", received.damaged)?;
    dict.set_item("overlapping_bytes", received.overlapping)?;
    dict.set_item("answers", &received.answers)
}

fn count<'py>(py: Python<'py>, one: &Count) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("packets", one.packets)?;
    row.set_item("bytes", one.bytes)?;
    row.set_item("again_packets", one.again_packets)?;
    row.set_item("again_bytes", one.again_bytes)?;
    Ok(row)
}
