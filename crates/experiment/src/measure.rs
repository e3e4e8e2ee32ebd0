//! The result columns, computed from an outcome.

use crate::columns::{Column, Columns, Row};
use crate::experiment::Resolved;
use crate::section::workload::WorkloadSource;
use weft_fabric::{Fabric, Node, Port};
use weft_sim::{MessageResult, Outcome, RunConfig};
use weft_units::Time;
use weft_units::id::Id;
use weft_workload::Workload;

/// The row of `runs.parquet`.
pub(crate) fn row(
    experiment: &Resolved,
    config: &RunConfig<'_>,
    outcome: &Outcome,
    bound: Time,
) -> Row {
    let RunConfig { workload, seed, .. } = *config;
    let totals = &outcome.totals;
    let times = Times::new(experiment.completion, outcome);
    let fct = &times.sorted;
    let cct = times.last_end.as_secs_f64();
    let payload = workload.total_bytes();
    let size = match &experiment.workload {
        WorkloadSource::Pattern { bytes, .. } => *bytes,
        WorkloadSource::File { .. } => payload,
    };
    let peak = outcome.ports.iter().map(|port| port.peak_queue).max().unwrap_or(0);
    vec![
        ("scheme", experiment.balance.scheme.name().into()),
        ("workload", experiment.workload.name().into()),
        ("algorithm", experiment.workload.algorithm().into()),
        ("size_bytes", size.into()),
        ("hosts", experiment.fabric.hosts().into()),
        ("messages", (workload.messages().len() as u64).into()),
        ("payload_bytes", payload.into()),
        ("seed", seed.into()),
        ("cct_s", cct.into()),
        ("bound_s", bound.as_secs_f64().into()),
        ("slowdown", ratio(cct, bound.as_secs_f64()).into()),
        ("normalised", ratio(cct, busiest_host(experiment, workload).as_secs_f64()).into()),
        ("packets", totals.packets.into()),
        ("control_packets", totals.control_packets.into()),
        ("packet_hops", totals.packet_hops.into()),
        ("drops", totals.drops.into()),
        ("marks", totals.marks.into()),
        ("wire_drops", totals.wire_drops.into()),
        ("trims", totals.trims.into()),
        ("trimmed_bytes", totals.trimmed_bytes.into()),
        ("header_drops", totals.header_drops.into()),
        ("pauses", totals.pauses.into()),
        ("retransmits", totals.retransmits.into()),
        ("spurious_retransmits", totals.spurious.into()),
        (
            "spurious_per_flow",
            ratio(totals.spurious as f64, workload.messages().len() as f64).into(),
        ),
        ("worst_flow_loss", worst_loss(outcome).into()),
        ("reordered", totals.reordered.into()),
        ("reorder_mean", ratio(totals.reorder_distance as f64, totals.reordered as f64).into()),
        ("reorder_max", farthest(outcome).into()),
        ("subflows", config.pacing.subflows.into()),
        ("max_qps", totals.max_qps.into()),
        ("established_qps", totals.established_qps.into()),
        ("fct_mean_s", mean(fct).into()),
        ("fct_p50_s", percentile(fct, 50).as_secs_f64().into()),
        ("fct_p99_s", percentile(fct, 99).as_secs_f64().into()),
        ("fct_max_s", percentile(fct, 100).as_secs_f64().into()),
        ("peak_queue_bytes", peak.into()),
    ]
}

/// Packets of the message that lost most.
fn worst_loss(outcome: &Outcome) -> u32 {
    outcome.messages.iter().map(|message| message.lost).max().unwrap_or(0)
}

/// How many packets the most reordered packet was behind.
fn farthest(outcome: &Outcome) -> u32 {
    outcome.messages.iter().map(|message| message.farthest).max().unwrap_or(0)
}

/// Zero where there is nothing to compare with (an empty workload).
fn ratio(value: f64, of: f64) -> f64 {
    if of > 0.0 { value / of } else { 0.0 }
}

/// When a message counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Its receiver has the last byte.
    Received,
    /// Its sender has the last acknowledgement.
    Acknowledged,
}

impl Completion {
    fn of(self, message: &MessageResult) -> Time {
        match self {
            Completion::Received => message.received,
            Completion::Acknowledged => message.sent,
        }
    }
}

/// When the messages of a run were complete.
struct Times {
    /// From post to completion, of all messages, sorted.
    sorted: Vec<Time>,
    last_end: Time,
}

impl Times {
    fn new(completion: Completion, outcome: &Outcome) -> Times {
        let messages = outcome.messages.iter();
        let mut sorted: Vec<Time> =
            messages.clone().map(|m| m.posted.until(completion.of(m))).collect();
        sorted.sort_unstable();
        Times { sorted, last_end: messages.map(|m| completion.of(m)).max().unwrap_or(Time::ZERO) }
    }
}

fn mean(times: &[Time]) -> f64 {
    let sum: u128 = times.iter().map(|time| u128::from(time.0)).sum();
    ratio(sum as f64 / 1e12, times.len() as f64)
}

/// Nearest rank: the smallest that at least `percent` of all do not exceed.
fn percentile(sorted: &[Time], percent: usize) -> Time {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(Time::ZERO)
}

/// The time that the payload of the busiest host, sent or received, takes at its link rate.
fn busiest_host(experiment: &Resolved, workload: &Workload) -> Time {
    let hosts = experiment.fabric.hosts() as usize;
    let (mut sent, mut received) = (vec![0u64; hosts], vec![0u64; hosts]);
    for message in workload.messages().iter() {
        sent[message.src.index()] += message.bytes;
        received[message.dst.index()] += message.bytes;
    }
    let most = sent.into_iter().chain(received).max().unwrap_or(0);
    experiment.fabric.clos().host_link.rate.serialize(most)
}

/// One row a message.
pub(crate) fn flows(completion: Completion, workload: &Workload, outcome: &Outcome) -> Columns {
    let messages = workload.messages();
    let results = &outcome.messages;
    let seconds = |of: &dyn Fn(&MessageResult) -> Time| {
        Column::F64(results.iter().map(|result| of(result).as_secs_f64()).collect())
    };
    let counts = |of: fn(&MessageResult) -> u32| Column::U32(results.iter().map(of).collect());
    vec![
        ("message", Column::U32((0..messages.len() as u32).collect())),
        ("src", Column::U32(messages.iter().map(|m| m.src.0).collect())),
        ("dst", Column::U32(messages.iter().map(|m| m.dst.0).collect())),
        ("bytes", Column::U64(messages.iter().map(|m| m.bytes).collect())),
        ("start_s", seconds(&|m| m.posted)),
        ("finish_s", seconds(&|m| completion.of(m))),
        ("fct_s", seconds(&|m| m.posted.until(completion.of(m)))),
        ("queue_pairs", counts(|m| m.pieces)),
        ("retransmits", counts(|m| m.retransmits)),
        ("spurious_retransmits", counts(|m| m.spurious)),
        ("lost", counts(|m| m.lost)),
        ("reordered", counts(|m| m.reordered)),
        ("reorder_max", counts(|m| m.farthest)),
    ]
}

/// One row a port. Utilisation is the share of its capacity used until the last packet.
pub(crate) fn links(fabric: &Fabric, outcome: &Outcome) -> Columns {
    let ports = fabric.ports();
    let results = &outcome.ports;
    let end = outcome.totals.end.as_secs_f64();
    let sums = |of: fn(&weft_sim::PortResult) -> u64| Column::U64(results.iter().map(of).collect());
    let names = |of: &dyn Fn(&Port) -> String| Column::Text(ports.iter().map(of).collect());
    let utilisation = ports
        .iter()
        .zip(results.iter())
        .map(|(port, result)| ratio(result.bytes as f64 * 8.0, port.rate.as_bps() as f64 * end));
    vec![
        ("port", Column::U32((0..ports.len() as u32).collect())),
        ("from", names(&|port| fabric.name(port.owner))),
        ("to", names(&|port| fabric.name(port.peer))),
        ("tier", names(&|port| tier(fabric, port).to_owned())),
        ("rate_bps", Column::U64(ports.iter().map(|port| port.rate.as_bps()).collect())),
        ("bytes", sums(|port| port.bytes)),
        ("packets", sums(|port| port.packets)),
        ("utilisation", Column::F64(utilisation.collect())),
        ("drops", sums(|port| port.drops)),
        ("trims", sums(|port| port.trims)),
        ("marks", sums(|port| port.marks)),
        ("pauses", sums(|port| port.pauses)),
        ("paused_s", Column::F64(results.iter().map(|p| p.paused.as_secs_f64()).collect())),
        ("peak_queue_bytes", sums(|port| port.peak_queue)),
    ]
}

/// Where a port stands and which way it leads.
fn tier(fabric: &Fabric, port: &Port) -> &'static str {
    let Node::Switch(owner) = port.owner else { return "nic" };
    let down = match port.peer {
        Node::Host(_) => true,
        Node::Switch(peer) => fabric.tier(peer) < fabric.tier(owner),
    };
    match (fabric.tier(owner), down) {
        (0, true) => "leaf-down",
        (0, false) => "leaf-up",
        (1, true) => "spine-down",
        (1, false) => "agg-up",
        _ => "core-down",
    }
}
