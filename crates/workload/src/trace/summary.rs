//! What is in a trace, counted.
//!
//! Invariant: a graph that all ranks share counts once, except where a field says otherwise.
//! What it does not do: judge ([`check`](super::check::check) does).

use super::{Carried, RankGraph, Remark, Size, Trace, Work};
use std::collections::BTreeMap;
use weft_units::Time;

/// What `summarise` finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many ranks there are; `None` if the trace serves any number.
    pub ranks: Option<u32>,
    /// How many graphs they run: one for all, one for each stage, or one each.
    pub graphs: u32,
    /// Nodes in the graphs, not multiplied by ranks.
    pub nodes: u64,
    /// The same by kind, those that occur, most frequent first.
    pub kinds: Vec<(&'static str, u64)>,
    /// Collectives by operation, group and size; with bytes first, largest total first.
    pub collectives: Vec<CollectiveRow>,
    /// Sends: how many and how many bytes, all ranks together.
    pub sends: (u64, u64),
    /// Receives: how many and how many bytes, all ranks together.
    pub receives: (u64, u64),
    /// Dependencies in the graphs.
    pub dependencies: u64,
    /// The most nodes that follow each other at one rank.
    pub depth: u32,
    /// Time to compute on accelerators: of the rank with the most.
    pub compute: Time,
    /// Time to compute on CPUs: of the rank with the most.
    pub host_compute: Time,
    /// Floating-point operations: of the rank with the most.
    pub operations: u64,
    /// What NICs sent, where the trace tells.
    pub carried: Vec<Carried>,
    /// What cannot be run, with how often it occurs in the graphs.
    pub unsupported: Vec<Remark>,
    /// What was left out or taken otherwise while reading.
    pub remarks: Vec<Remark>,
}

/// Collectives that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveRow {
    /// What is done: `all-reduce` and so on, or `barrier`.
    pub operation: &'static str,
    /// The name of the group.
    pub group: String,
    /// How many ranks an instance of the group has, if that is known.
    pub ranks: Option<u32>,
    /// The size as the file counts it.
    pub size: Size,
    /// The larger buffer of a rank, if it is known.
    pub bytes: Option<u64>,
    /// How many such nodes the graphs have.
    pub nodes: u64,
    /// How many collectives these are in all, each counted once and not once a rank; `None`
    /// while the number of ranks is open.
    pub calls: Option<u64>,
    /// `bytes` times `calls`, or times `nodes` while the number of ranks is open.
    pub total: u64,
}

/// Counts what is in `trace`.
pub fn summarise(trace: &Trace) -> Summary {
    let mut summary = Summary {
        ranks: trace.ranks,
        graphs: trace.graphs.len() as u32,
        carried: trace.carried.clone(),
        remarks: trace.remarks.clone(),
        ..Summary::default()
    };
    let mut kinds = BTreeMap::new();
    let mut unsupported: BTreeMap<&str, u64> = BTreeMap::new();
    for graph in &trace.graphs {
        summary.nodes += graph.nodes().len() as u64;
        summary.dependencies += graph.dependency_count();
        summary.depth = summary.depth.max(graph.depths().into_iter().max().unwrap_or(0));
        for node in graph.nodes() {
            *kinds.entry(node.work.kind()).or_insert(0u64) += 1;
            if let Work::Unsupported(what) = &node.work {
                *unsupported.entry(what).or_default() += 1;
            }
        }
        summary.add_work(trace, graph);
    }
    summary.kinds = kinds.into_iter().collect();
    summary.kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    summary.unsupported =
        unsupported.into_iter().map(|(what, count)| Remark { what: what.into(), count }).collect();
    summary.collectives = rows(trace);
    summary
}

impl Summary {
    /// Times, operations and messages of one graph.
    fn add_work(&mut self, trace: &Trace, graph: &RankGraph) {
        let ranks = u64::from(trace.block().max(1));
        let (mut compute, mut host, mut operations) = (Time::ZERO, Time::ZERO, 0u64);
        for node in graph.nodes() {
            let (tally, bytes) = match &node.work {
                Work::Compute(one) => {
                    let clock = if one.on_host { &mut host } else { &mut compute };
                    *clock = clock.saturating_add(one.time);
                    operations = operations.saturating_add(one.operations);
                    continue;
                }
                Work::Send(one) => (&mut self.sends, one.bytes),
                Work::Receive(one) => (&mut self.receives, one.bytes),
                _ => continue,
            };
            tally.0 = tally.0.saturating_add(ranks);
            tally.1 = tally.1.saturating_add(bytes.saturating_mul(ranks));
        }
        self.compute = self.compute.max(compute);
        self.host_compute = self.host_compute.max(host);
        self.operations = self.operations.max(operations);
    }
}

/// Collectives that are alike, as they are found.
#[derive(Default)]
struct Tally {
    nodes: u64,
    /// Those of the first rank of each instance that has any.
    calls: u64,
}

fn rows(trace: &Trace) -> Vec<CollectiveRow> {
    let mut tallies: BTreeMap<(&'static str, u32, Size), Tally> = BTreeMap::new();
    for (place, graph) in (0u32..).zip(&trace.graphs) {
        let mut instances = BTreeMap::new();
        for node in graph.nodes() {
            let Work::Collective(one) = &node.work else { continue };
            let tally = tallies.entry((one.action.name(), one.group, one.size)).or_default();
            tally.nodes += 1;
            tally.calls +=
                *instances.entry(one.group).or_insert_with(|| calls(trace, place, one.group));
        }
    }
    let mut rows: Vec<CollectiveRow> = tallies
        .into_iter()
        .map(|((operation, group, size), tally)| {
            let ranks = trace.group_size(group);
            let bytes = match size {
                Size::Whole(bytes) => Some(bytes),
                Size::Shard(_) => ranks.map(|ranks| size.bytes(ranks)),
            };
            let calls = trace.ranks.map(|_| tally.calls);
            let total = bytes.unwrap_or(0).saturating_mul(calls.unwrap_or(tally.nodes));
            let group = trace.groups[group as usize].name.clone();
            let nodes = tally.nodes;
            CollectiveRow { operation, group, ranks, size, bytes, nodes, calls, total }
        })
        .collect();
    rows.sort_by_key(|row| (row.size.is_zero(), std::cmp::Reverse(row.total)));
    rows
}

/// How many collectives of a group a node of the graph at `place` stands for: one for each
/// instance whose first rank runs it.
fn calls(trace: &Trace, place: u32, group: u32) -> u64 {
    let block = u64::from(trace.block());
    if trace.shared {
        // All instances are alike, and ranks may be many.
        let size = trace.members(group, 0).map_or(1, |members| u64::from(members.len()));
        return block.checked_div(size).unwrap_or(0);
    }
    let from = block * u64::from(place);
    let first = |rank: &u64| {
        let rank = u32::try_from(*rank).unwrap_or(u32::MAX);
        trace.members(group, rank).is_some_and(|members| members.rank(0) == rank)
    };
    (from..from + block).filter(first).count() as u64
}
