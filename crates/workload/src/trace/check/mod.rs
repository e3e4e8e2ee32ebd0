//! What keeps a trace from ever finishing, with the nodes that wait and what they wait for.
//!
//! Found are dependencies on nodes that are not there, collectives that not all of their ranks
//! take part in or that differ between them, sends without receives and receives without
//! sends, and circles of nodes that wait for each other, within a rank or across ranks. A send
//! waits for nobody; a receive for its send; a collective with bytes, or a barrier, for all its
//! ranks. What is not understood is found once for each kind, and counts as done for whoever waits
//! for it. A trace without nodes has nothing to run.
//!
//! Invariant: a trace without findings runs to its end, whatever anything takes.

mod looks;
mod meetings;
mod stuck;

use super::{Trace, Work};
use crate::WorkloadError;
use looks::Looks;
use meetings::Meetings;
use std::collections::BTreeMap;

/// What was found, each in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first few, each one line with file, node and what it waits for.
    pub problems: Vec<String>,
    /// How many more there are.
    pub more: u64,
    /// How many nodes can never start or finish, all ranks together that were looked at.
    pub stuck: u64,
    /// How many nodes there are, in the same way.
    pub nodes: u64,
}

impl Findings {
    /// Enough to see a pattern.
    const SHOWN: usize = 8;

    fn add(&mut self, problem: impl FnOnce() -> String) {
        match self.problems.len() < Findings::SHOWN {
            true => self.problems.push(problem()),
            false => self.more += 1,
        }
    }

    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// The first finding as an error that says how many others there are.
    ///
    /// # Errors
    /// If there is one.
    pub fn into_result(self) -> Result<(), WorkloadError> {
        let others = self.more + self.problems.len().saturating_sub(1) as u64;
        match (self.problems.into_iter().next(), others) {
            (None, _) => Ok(()),
            (Some(first), 0) => Err(WorkloadError(first)),
            (Some(first), more) => Err(WorkloadError(format!("{first} (and {more} more)"))),
        }
    }
}

/// Looks for whatever keeps `trace` from finishing.
///
/// Where all ranks, or all ranks of a stage, run one graph, in groups that partition them,
/// they cannot differ, and one speaks for all, in what is counted, too.
pub fn check(trace: &Trace) -> Findings {
    let mut findings = Findings::default();
    unsupported(trace, &mut findings);
    if trace.graphs.iter().all(|graph| graph.nodes().is_empty()) {
        findings.add(|| {
            format!(
                "{}: no rank has a node, so that nothing runs; copy or write it again",
                trace.name
            )
        });
    }
    for graph in &trace.graphs {
        for (node, id) in graph.missing() {
            findings.add(|| {
                format!(
                    "{}: {}: waits for node {id}, which the file does not have; it is cut off or \
                     incomplete: write it again, or remove the dependency",
                    graph.source,
                    graph.label(*node)
                )
            });
        }
    }
    let looks = Looks::new(trace);
    let meetings = Meetings::collect(trace, &looks, &mut findings);
    stuck::look(trace, &looks, &meetings, &mut findings);
    findings
}

/// What is not understood: the first node of each kind, and how many others there are.
fn unsupported(trace: &Trace, findings: &mut Findings) {
    let mut kinds: BTreeMap<&str, (String, u64)> = BTreeMap::new();
    for graph in &trace.graphs {
        for (index, node) in (0..).zip(graph.nodes()) {
            if let Work::Unsupported(what) = &node.work {
                let first = || format!("{}: {}", graph.source, graph.label(index));
                kinds.entry(what).or_insert_with(|| (first(), 0)).1 += 1;
            }
        }
    }
    for (what, (first, count)) in kinds {
        findings.add(|| match count {
            1 => format!("{first}: {what} is not supported; remove it"),
            _ => {
                let others = count - 1;
                format!("{first}: {what} is not supported, nor in {others} other nodes; remove it")
            }
        });
    }
}
