//! What ranks did and how long it took: collectives, nodes, messages.

use crate::columns::{Column, Columns};
use crate::traffic::{Ranks, Traffic};
use std::collections::BTreeMap;
use weft_sim::{NodeResult, Outcome};
use weft_units::Time;
use weft_workload::collective::Operation;
use weft_workload::job::Job;
use weft_workload::trace::{Action, Collective, Work};

/// A collective as its ranks saw it, from the first that began to the last that was done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Done {
    /// The job that it belongs to.
    job: u32,
    /// What its node is called.
    label: String,
    action: Action,
    algorithm: &'static str,
    group: String,
    ranks: u32,
    /// The larger buffer of a rank, as nccl-tests count it.
    bytes: u64,
    begun: Time,
    finished: Time,
}

impl Done {
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.until(self.finished).as_secs_f64()
    }
    /// Bytes that count for the bus bandwidth of nccl-tests.
    pub(crate) fn bus_bytes(&self) -> f64 {
        match self.action {
            Action::Operation(operation) => operation.bus_factor(self.ranks) * self.bytes as f64,
            Action::Barrier => 0.0,
            Action::Dispatch(_) | Action::Combine(_) => {
                Operation::AllToAll.bus_factor(self.ranks) * self.bytes as f64
            }
        }
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// All collectives, by the time at which they began.
pub(crate) fn done(traffic: &Traffic, outcome: &Outcome) -> Vec<Done> {
    let Some(ranks) = &traffic.ranks else { return Vec::new() };
    let mut all: BTreeMap<(u32, u32, u32, u32), Done> = BTreeMap::new();
    for (job, rank, node) in nodes_of(ranks, outcome) {
        let at = (job, &ranks.jobs[job as usize], rank);
        if let Work::Collective(one) = &at.1.trace().graph(rank).nodes()[node.node as usize].work
            && at.1.moves(rank, one)
        {
            add(&mut all, at, one, node);
        }
    }
    let mut all: Vec<Done> = all.into_values().collect();
    all.sort_by_key(|one| (one.begun, one.job, one.finished));
    all
}

/// All results of nodes, with the job and the rank within it.
fn nodes_of<'a>(
    ranks: &'a Ranks,
    outcome: &'a Outcome,
) -> impl Iterator<Item = (u32, u32, &'a NodeResult)> {
    let homes: Vec<(u32, u32)> = {
        let jobs = (0..).zip(&ranks.jobs);
        jobs.flat_map(|(job, of)| (0..of.ranks()).map(move |rank| (job, rank))).collect()
    };
    outcome.nodes.iter().map(move |node| {
        let (job, rank) = homes[node.rank as usize];
        (job, rank, node)
    })
}

fn add(
    all: &mut BTreeMap<(u32, u32, u32, u32), Done>,
    (number, job, rank): (u32, &Job, u32),
    one: &Collective,
    node: &NodeResult,
) {
    let trace = job.trace();
    let members = trace.members(one.group, rank).expect("it is a member");
    let key = (number, one.group, one.turn, members.rank(0));
    let NodeResult { begun, finished, .. } = *node;
    let done = all.entry(key).or_insert_with(|| Done {
        job: number,
        label: trace.graph(rank).nodes()[node.node as usize].name.to_string(),
        action: one.action,
        algorithm: job.algorithm(one.action),
        group: trace.groups[one.group as usize].name.clone(),
        ranks: members.len(),
        bytes: one.bytes(members.len()),
        begun,
        finished,
    });
    done.begun = done.begun.min(begun);
    done.finished = done.finished.max(finished);
}

/// One row for each of `all` collectives of a run of `traffic`.
pub(crate) fn collectives(traffic: &Traffic, all: &[Done]) -> Columns {
    let text = |of: &dyn Fn(&Done) -> String| Column::Text(all.iter().map(of).collect());
    let number = |of: &dyn Fn(&Done) -> f64| Column::F64(all.iter().map(of).collect());
    let rate = |bytes: f64, one: &Done| {
        let seconds = one.seconds();
        if seconds > 0.0 { bytes / seconds / 1e9 } else { 0.0 }
    };
    vec![
        ("job", Column::U32(all.iter().map(|one| one.job).collect())),
        ("job_name", text(&|one| name_of(traffic, one.job))),
        ("operation", text(&|one| one.action.name().to_owned())),
        ("algorithm", text(&|one| one.algorithm.to_owned())),
        ("name", text(&|one| one.label.clone())),
        ("group", text(&|one| one.group.clone())),
        ("ranks", Column::U32(all.iter().map(|one| one.ranks).collect())),
        ("bytes", Column::U64(all.iter().map(|one| one.bytes).collect())),
        ("start_s", number(&|one| one.begun.as_secs_f64())),
        ("finish_s", number(&|one| one.finished.as_secs_f64())),
        ("time_s", number(&Done::seconds)),
        ("algbw_gb_s", number(&|one| rate(one.bytes as f64, one))),
        ("busbw_gb_s", number(&|one| rate(one.bus_bytes(), one))),
    ]
}

/// What a job is called; empty for a job alone.
fn name_of(traffic: &Traffic, job: u32) -> String {
    traffic.ranks.as_ref().map(|ranks| ranks.names[job as usize].clone()).unwrap_or_default()
}

/// One row a node of a rank, if they are `wanted`. `rank` counts through all jobs, as in
/// [`messages`], `job_rank` within the job.
pub(crate) fn nodes(wanted: bool, traffic: &Traffic, outcome: &Outcome) -> Columns {
    let ranks = traffic.ranks.as_ref().filter(|_| wanted);
    let all: Vec<_> = ranks.map(|ranks| nodes_of(ranks, outcome).collect()).unwrap_or_default();
    let of = |job: u32, rank: u32, node: u32| {
        let ranks = traffic.ranks.as_ref().expect("somebody has nodes");
        let graph = ranks.jobs[job as usize].trace().graph(rank);
        &graph.nodes()[node as usize]
    };
    let seconds = |of: fn(&NodeResult) -> Time| {
        Column::F64(all.iter().map(|(_, _, node)| of(node).as_secs_f64()).collect())
    };
    let text = |what: &dyn Fn(&weft_workload::trace::Node) -> String| {
        let names = all.iter().map(|(job, rank, node)| what(of(*job, *rank, node.node)));
        Column::Text(names.collect())
    };
    vec![
        ("job", Column::U32(all.iter().map(|(job, ..)| *job).collect())),
        ("job_name", Column::Text(all.iter().map(|(job, ..)| name_of(traffic, *job)).collect())),
        ("rank", Column::U32(all.iter().map(|(.., node)| node.rank).collect())),
        ("job_rank", Column::U32(all.iter().map(|(_, rank, _)| *rank).collect())),
        ("node", Column::U32(all.iter().map(|(.., node)| node.node).collect())),
        ("name", text(&|node| node.name.to_string())),
        ("work", text(&|node| work(&node.work).to_owned())),
        ("start_s", seconds(|node| node.begun)),
        ("finish_s", seconds(|node| node.finished)),
    ]
}

/// What a node does, in a word.
fn work(work: &Work) -> &'static str {
    match work {
        Work::Collective(one) => one.action.name(),
        other => other.kind(),
    }
}

/// One row a message of a rank over the fabric, if they are `wanted`.
pub(crate) fn messages(wanted: bool, outcome: &Outcome) -> Columns {
    let all = if wanted { &outcome.rank_messages[..] } else { &[] };
    let counts = |of: fn(&weft_sim::RankMessage) -> u32| Column::U32(all.iter().map(of).collect());
    let seconds = |of: fn(&weft_sim::RankMessage) -> Time| {
        Column::F64(all.iter().map(|one| of(one).as_secs_f64()).collect())
    };
    vec![
        ("message", counts(|one| one.message.0)),
        ("src_rank", counts(|one| one.src)),
        ("dst_rank", counts(|one| one.dst)),
        ("node", counts(|one| one.node)),
        ("bytes", Column::U64(all.iter().map(|one| one.bytes).collect())),
        ("start_s", seconds(|one| one.result.posted)),
        ("finish_s", seconds(|one| one.result.received)),
    ]
}
