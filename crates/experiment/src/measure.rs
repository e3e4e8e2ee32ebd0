//! The result columns, computed from an outcome.

use crate::collectives::Done;
use crate::columns::{Column, Columns, Row};
use crate::completion::Completion;
use crate::experiment::Resolved;
use crate::fidelity::Source;
use crate::leaves;
use crate::traffic::{Traffic, Volume};
use crate::uplinks::Balance;
use weft_fabric::{Fabric, Node, Port};
use weft_sim::{DurationHistogram, MessageResult, Outcome, RunConfig};
use weft_units::{HostId, MessageId, Time};

/// The row of `runs.parquet`; `done` are all collectives of the run.
pub(crate) fn row(
    experiment: &Resolved,
    traffic: &Traffic,
    config: &RunConfig<'_>,
    (outcome, source): (&Outcome, Source),
    done: &[Done],
    bound: Time,
) -> Row {
    let totals = &outcome.totals;
    let times = Times::new(experiment.completion, traffic, outcome);
    let cct = times.last_end.as_secs_f64();
    let Volume { messages, bytes, .. } = traffic.volume();
    let payload = bytes.saturating_add(traffic.up_trees());
    let size = experiment.workload.size().unwrap_or(payload);
    let work = Work::new(traffic, done);
    let uplinks = Balance::of(&experiment.fabric, &config.failures, outcome);
    let peak = outcome.ports.iter().map(|port| port.peak_queue).max().unwrap_or(0);
    let mut row = vec![
        ("scheme", experiment.balance.scheme.name().into()),
        ("switch_changes", experiment.balance.scheme.switches().into()),
        ("nic_changes", nic_changes(experiment).into()),
        ("workload", experiment.workload.name().into()),
        ("algorithm", experiment.workload.algorithm().into()),
        ("ranks", work.ranks.into()),
        ("size_bytes", size.into()),
        ("hosts", experiment.fabric.hosts().into()),
        ("messages", messages.into()),
        ("payload_bytes", payload.into()),
        ("seed", config.seed.into()),
        ("fidelity", experiment.fidelity.name().into()),
        ("skipped_pct", source.skipped(experiment.fidelity)),
        ("cct_s", cct.into()),
        ("bound_s", bound.as_secs_f64().into()),
        ("slowdown", ratio(cct, bound.as_secs_f64()).into()),
        ("normalised", ratio(cct, busiest_host(experiment, traffic).as_secs_f64()).into()),
        ("packets", totals.packets.into()),
        ("control_packets", totals.control_packets.into()),
        ("acks", (totals.control_packets - totals.nacks - totals.pulls - totals.requests).into()),
        ("nacks", totals.nacks.into()),
        ("pulls", totals.pulls.into()),
        ("packet_hops", totals.packet_hops.into()),
        ("drops", totals.drops.into()),
        ("marks", totals.marks.into()),
        ("wire_drops", totals.wire_drops.into()),
        ("trims", totals.trims.into()),
        ("trimmed_bytes", totals.trimmed_bytes.into()),
        ("header_drops", totals.header_drops.into()),
        ("pauses", totals.pauses.into()),
        ("full_buffers", source.of_rates(totals.full_buffers.into())),
        ("retransmits", totals.retransmits.into()),
        ("spurious_retransmits", totals.spurious.into()),
        ("spurious_per_flow", ratio(totals.spurious as f64, messages as f64).into()),
        ("worst_flow_loss", most(traffic, outcome, |one| one.lost).into()),
        ("reordered", totals.reordered.into()),
        ("reorder_mean", ratio(totals.reorder_distance as f64, totals.reordered as f64).into()),
        ("reorder_max", most(traffic, outcome, |one| one.farthest).into()),
        ("rto_s", config.transport.rto.as_secs_f64().into()),
        ("subflows", config.pacing.subflows.into()),
        ("max_qps", totals.max_qps.into()),
        ("established_qps", totals.established_qps.into()),
        ("fct_min_s", times.percentile(0).into()),
        ("fct_mean_s", times.mean().into()),
        ("fct_p50_s", times.percentile(50).into()),
        ("fct_p99_s", times.percentile(99).into()),
        ("fct_max_s", times.percentile(100).into()),
        ("peak_queue_bytes", peak.into()),
        ("max_goodput_gb_s", max_goodput(config, outcome).into()),
        ("uplink_usage_pct", uplinks.usage.into()),
        ("uplink_variance_pct2", uplinks.variance.into()),
        ("uplink_spread_pct", uplinks.spread.into()),
        ("collectives", work.collectives.into()),
        ("algbw_gb_s", work.algbw.into()),
        ("busbw_gb_s", work.busbw.into()),
        ("compute_s", work.compute.into()),
        ("exposed_s", (cct - work.compute).max(0.0).into()),
    ];
    row.extend(leaves::columns(&totals.tor));
    source.blank(&mut row);
    row
}

/// What NICs must do beyond a RoCE NIC that goes back to a lost packet, in a few words.
fn nic_changes(experiment: &Resolved) -> String {
    let (scheme, recovery) = (&experiment.balance.scheme, &experiment.transport.recovery);
    let (info, of_recovery) = (scheme.info(), recovery.info());
    let several = scheme.is_multipath();
    let asked = [
        (several && !info.in_switch, "a path for each packet"),
        (info.watches, "time-outs of chunks"),
        (several && of_recovery.keeps_order, "packets out of order"),
        (recovery.reports(), "reports of Ultra Ethernet"),
        (of_recovery.rateless, "a rateless code"),
        (info.shares, "a rate for each queue pair"),
    ];
    let asked: Vec<&str> = asked.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
    if asked.is_empty() { "nothing".to_owned() } else { asked.join(", ") }
}

/// When all of a run's own traffic was complete, in seconds.
pub(crate) fn end(completion: Completion, traffic: &Traffic, outcome: &Outcome) -> f64 {
    Times::new(completion, traffic, outcome).last_end.as_secs_f64()
}

/// What ranks did; all zero without any.
#[derive(Default)]
struct Work {
    ranks: u32,
    collectives: u64,
    /// Bytes of all collectives over the sum of their times, in GB/s; as nccl-tests count them.
    algbw: f64,
    /// The same of what their buses carry.
    busbw: f64,
    /// Of the rank that computes longest, in seconds.
    compute: f64,
}

impl Work {
    fn new(traffic: &Traffic, done: &[Done]) -> Work {
        let Some(ranks) = &traffic.ranks else { return Work::default() };
        let sum = |of: &dyn Fn(&Done) -> f64| done.iter().map(of).sum::<f64>();
        let seconds = sum(&Done::seconds);
        let compute = ranks.jobs.iter().map(|job| job.computing()).max().unwrap_or(Time::ZERO);
        Work {
            ranks: ranks.hosts.len() as u32,
            collectives: done.len() as u64,
            algbw: ratio(sum(&|one| one.bytes() as f64), seconds) / 1e9,
            busbw: ratio(sum(&Done::bus_bytes), seconds) / 1e9,
            compute: compute.as_secs_f64(),
        }
    }
}

/// The largest goodput of all hosts together over an interval of the probe, in GB/s (ParaLet's (2024)
/// maximum total throughput); zero without the probe.
fn max_goodput(config: &RunConfig<'_>, outcome: &Outcome) -> f64 {
    let Some(interval) = config.probes.interval.filter(|_| config.probes.goodput) else {
        return 0.0;
    };
    let most = outcome.series.last().and_then(|goodput| goodput.bytes.iter().max());
    most.copied().unwrap_or(0) as f64 / interval.as_secs_f64() / 1e9
}

/// Of the message that has most of it.
fn most(traffic: &Traffic, outcome: &Outcome, of: fn(&MessageResult) -> u32) -> u32 {
    each(traffic, outcome).map(|flow| of(flow.result)).max().unwrap_or(0)
}

/// Zero where there is nothing to compare with (an empty workload).
fn ratio(value: f64, of: f64) -> f64 {
    if of > 0.0 { value / of } else { 0.0 }
}

/// When the messages of a run were complete.
struct Times<'a> {
    /// From post to completion, of all messages, sorted.
    sorted: Vec<Time>,
    /// The same where there are too many.
    spread: &'a DurationHistogram,
    last_end: Time,
}

impl<'a> Times<'a> {
    fn new(completion: Completion, traffic: &Traffic, outcome: &'a Outcome) -> Times<'a> {
        let results = || each(traffic, outcome).map(|flow| flow.result);
        let mut sorted: Vec<Time> = results().map(|m| m.posted.until(completion.of(m))).collect();
        sorted.sort_unstable();
        let messages = results().map(|message| completion.of(message));
        let nodes = outcome.nodes.iter().map(|node| node.finished);
        let last_end = messages.chain(nodes).max().unwrap_or(Time::ZERO);
        Times { sorted, spread: &outcome.durations, last_end }
    }
    /// In seconds.
    fn mean(&self) -> f64 {
        if self.sorted.is_empty() { self.spread.mean().as_secs_f64() } else { mean(&self.sorted) }
    }
    /// In seconds.
    fn percentile(&self, percent: u32) -> f64 {
        let time = match self.sorted.is_empty() {
            true => self.spread.percentile(percent),
            false => percentile(&self.sorted, percent as usize),
        };
        time.as_secs_f64()
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
fn busiest_host(experiment: &Resolved, traffic: &Traffic) -> Time {
    let (sent, received) = traffic.by_host(experiment.fabric.hosts());
    let most = sent.into_iter().chain(received).max().unwrap_or(0);
    experiment.fabric.line_rate().serialize(most)
}

/// A message and what became of it.
struct FlowResult<'a> {
    message: MessageId,
    hosts: (HostId, HostId),
    bytes: u64,
    result: &'a MessageResult,
}

/// All messages over the fabric.
fn each<'a>(traffic: &'a Traffic, outcome: &'a Outcome) -> impl Iterator<Item = FlowResult<'a>> {
    let known = traffic.workload.messages().enumerate().zip(outcome.messages.iter());
    let known = known.map(|((message, one), result)| FlowResult {
        message,
        hosts: (one.src, one.dst),
        bytes: one.bytes,
        result,
    });
    let posted = outcome.rank_messages.iter().map(|one| {
        let weft_sim::RankMessage { message, hosts, bytes, .. } = *one;
        FlowResult { message, hosts, bytes, result: &one.result }
    });
    known.chain(posted)
}

/// One row a message.
pub(crate) fn flows(completion: Completion, traffic: &Traffic, outcome: &Outcome) -> Columns {
    let all: Vec<FlowResult<'_>> = each(traffic, outcome).collect();
    let seconds = |of: &dyn Fn(&MessageResult) -> Time| {
        Column::F64(all.iter().map(|flow| of(flow.result).as_secs_f64()).collect())
    };
    let names = |of: fn(&FlowResult<'_>) -> u32| Column::U32(all.iter().map(of).collect());
    let counts = |of: fn(&MessageResult) -> u32| {
        Column::U32(all.iter().map(|flow| of(flow.result)).collect())
    };
    vec![
        ("message", names(|flow| flow.message.0)),
        ("src", names(|flow| flow.hosts.0.0)),
        ("dst", names(|flow| flow.hosts.1.0)),
        ("bytes", Column::U64(all.iter().map(|flow| flow.bytes).collect())),
        ("start_s", seconds(&|m| m.posted)),
        ("finish_s", seconds(&|m| completion.of(m))),
        ("fct_s", seconds(&|m| m.posted.until(completion.of(m)))),
        ("queue_pairs", counts(|m| m.subflows)),
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
