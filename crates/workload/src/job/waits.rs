//! What a rank that does not get on waits for.

use super::Job;
use super::meeting::Meeting;
use super::sequence::Part;
use crate::collective::Step;
use crate::trace::Work;
use std::collections::BTreeMap;
use weft_units::options::quoted;

/// Something that a rank waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// What it is a part of: a collective, or `a message`, with the name of the node.
    pub within: String,
    /// The rank that has to act.
    pub peer: u32,
    /// What it has to do.
    pub what: Awaited,
}

/// What another rank has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// To send so many bytes.
    Message(u64),
    /// To acknowledge so many bytes.
    Acknowledgement(u64),
    /// To take part, as all others, in what switches do with a buffer of so many bytes.
    Switches(u64),
}

/// What the collectives under way and the receives of a rank wait for, each once.
pub(super) fn of(
    job: &Job,
    rank: u32,
    parts: &BTreeMap<u32, Part<'_>>,
    awaited: &BTreeMap<Meeting, u32>,
) -> Vec<Wait> {
    let nodes = job.trace.graph(rank).nodes();
    let in_parts = parts.iter().flat_map(|(node, part)| {
        let Work::Collective(one) = &nodes[*node as usize].work else {
            unreachable!("a collective")
        };
        let members = job.trace.members(one.group, rank).expect("it is a member");
        part.waits_for().filter_map(move |step| {
            let (place, what) = match step {
                Step::Receive { from, payload: bytes } => (from, Awaited::Message(bytes)),
                Step::Send { to, payload: bytes, .. } => (to, Awaited::Acknowledgement(bytes)),
                Step::Switched { payload: bytes } => (part.place(), Awaited::Switches(bytes)),
                Step::Sent(_) => return None,
            };
            Some(Wait { within: within(job, rank, *node), peer: members.rank(place), what })
        })
    });
    let receives = awaited.values().filter_map(|node| {
        let Work::Receive(one) = &nodes[*node as usize].work else { return None };
        let what = Awaited::Message(one.bytes);
        Some(Wait { within: within(job, rank, *node), peer: one.peer.of(rank), what })
    });
    let mut all: Vec<Wait> = in_parts.chain(receives).collect();
    // Strands of one collective may wait for the same.
    all.dedup();
    all
}

/// The node in words, which one only where there are several.
fn within(job: &Job, rank: u32, node: u32) -> String {
    let graph = job.trace.graph(rank);
    let one = &graph.nodes()[node as usize];
    let work = match &one.work {
        Work::Collective(one) => one.action.name(),
        _ => "a message",
    };
    match (&*one.name, graph.nodes().len()) {
        ("", 1) => work.to_owned(),
        ("", _) => format!("{work} (node {})", one.id),
        (name, _) => format!("{work} {}", quoted(name)),
    }
}
