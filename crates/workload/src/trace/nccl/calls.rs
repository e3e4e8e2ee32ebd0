//! Calls of NCCL by process and communicator, and the job that they are.

use crate::WorkloadError;
use crate::collective::Operation;
use crate::trace::groups::listed;
use crate::trace::{
    Action, Collective, Compute, Degrees, Group, Membership, Node, Peer, RankGraph, Size, Trace,
    Transfer, Work,
};
use std::collections::{BTreeMap, BTreeSet};
use weft_units::Time;
use weft_units::options::quoted;

/// A call of a process.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// `AllReduce` and so on.
    pub(super) name: String,
    /// The communicator, as all its ranks call it.
    pub(super) communicator: String,
    /// How many ranks that has; 0 if it is not told.
    pub(super) ranks: u32,
    /// Bytes as NCCL counts them: of one rank's part where it does so.
    pub(super) bytes: u64,
    /// The root, or the other rank of a send or receive, within the communicator.
    pub(super) root: u32,
    /// Calls on one stream follow each other.
    pub(super) stream: String,
    /// Sends and receives with the same number are one group.
    pub(super) group: Option<u64>,
    /// What errors call its place.
    pub(super) place: String,
}

/// All calls that are known.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By process, in their order.
    pub(super) processes: BTreeMap<String, Vec<Call>>,
    /// The rank of each process in each communicator.
    pub(super) ranks: BTreeMap<(String, String), u32>,
    /// How many ranks each communicator has.
    pub(super) sizes: BTreeMap<String, u32>,
}

/// Bytes of an element by NCCL's number of its type, from `ncclInt8` to `ncclFloat8e5m2`.
const WIDTHS: [u64; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];

/// Bytes of so many elements of a type.
pub(super) fn bytes(count: u64, kind: u64) -> Result<u64, String> {
    let width = usize::try_from(kind).ok().and_then(|kind| WIDTHS.get(kind));
    let width = width.ok_or_else(|| format!("{kind} is no type of NCCL's; write the log again"))?;
    count.checked_mul(*width).ok_or_else(|| "it moves more than 2^64 bytes; correct it".into())
}

impl Calls {
    /// The job; every rank computes for `compute` before each call.
    ///
    /// # Errors
    /// If it cannot be told which process is which rank, or who is in a communicator.
    pub(super) fn job(self, name: &str, compute: Time) -> Result<Trace, WorkloadError> {
        let error = |what: &str| Err(WorkloadError(format!("{name}: {what}")));
        let Some((first, calls)) = self.processes.first_key_value() else {
            return error("has no call; set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL");
        };
        let used: BTreeSet<&str> = self.communicators().collect();
        let Some(world) = self.world(&used) else {
            return error(
                "a call does not tell how many ranks its communicator has; log INIT, too",
            );
        };
        let size = self.sizes[world];
        if self.processes.len() == 1 && used.len() == 1 {
            let world = BTreeMap::from([(world, 0)]);
            let graph = graph(name, calls, compute, None, &world)?;
            let groups = vec![Group::of(Membership::World)];
            return trace(name, vec![graph], groups, true).for_ranks(size);
        }
        let mut processes = BTreeMap::new();
        for process in self.processes.keys() {
            let Some(rank) = self.ranks.get(&(process.clone(), world.to_owned())) else {
                return Err(WorkloadError(format!(
                    "{name}: process {process} is no rank of the largest communicator ({size} ranks), as far as \
                     is told; log INIT, too (NCCL_DEBUG_SUBSYS=INIT,COLL)"
                )));
            };
            if let Some(other) = processes.insert(*rank, process) {
                let what = format!(
                    "processes {other} and {process} are both rank {rank}; give one job alone"
                );
                return error(&what);
            }
        }
        if let Some(missing) = (0..size).find(|rank| !processes.contains_key(rank)) {
            let what = format!(
                "there are calls of {} processes ({first}, ...), but none of rank {missing} of {size}; give the \
                 logs of all processes",
                processes.len()
            );
            return error(&what);
        }
        let (groups, numbers) = self.groups(name, world, &used, &processes)?;
        let graphs = processes.iter().map(|(rank, process)| {
            let source = format!("{name}: rank {rank}");
            graph(&source, &self.processes[*process], compute, Some((*rank, &groups)), &numbers)
        });
        let graphs = graphs.collect::<Result<Vec<_>, _>>()?;
        Ok(Trace { ranks: Some(size), ..trace(name, graphs, groups, false) })
    }

    fn communicators(&self) -> impl Iterator<Item = &str> {
        self.processes.values().flatten().map(|call| call.communicator.as_str())
    }

    /// The communicator with most ranks, of those that are used or were made.
    fn world<'c>(&'c self, used: &BTreeSet<&'c str>) -> Option<&'c str> {
        if !used.iter().all(|one| self.sizes.get(*one).is_some_and(|size| *size > 0)) {
            return None;
        }
        let all = self.sizes.iter().rev();
        all.max_by_key(|(name, size)| (**size, used.contains(name.as_str())))
            .map(|(name, _)| name.as_str())
    }

    /// The groups of all communicators that are used, and their numbers.
    fn groups<'c>(
        &self,
        name: &str,
        world: &str,
        used: &BTreeSet<&'c str>,
        processes: &BTreeMap<u32, &String>,
    ) -> Result<(Vec<Group>, BTreeMap<&'c str, u32>), WorkloadError> {
        let mut groups = Vec::new();
        let mut numbers = BTreeMap::new();
        for one in used {
            let mut members: BTreeMap<u32, u32> = BTreeMap::new();
            for (rank, process) in processes {
                if let Some(place) = self.ranks.get(&((*process).clone(), (*one).to_owned())) {
                    members.insert(*place, *rank);
                }
            }
            let size = self.sizes[*one];
            if members.len() as u32 != size {
                return Err(WorkloadError(format!(
                    "{name}: communicator {one} has {size} ranks, of which {} are told; log INIT, too \
                     (NCCL_DEBUG_SUBSYS=INIT,COLL), at all processes",
                    members.len()
                )));
            }
            let ranks: Vec<u32> = members.into_values().collect();
            let members = match *one == world || ranks.iter().copied().eq(0..processes.len() as u32)
            {
                true => Membership::World,
                false => listed(&format!("{name}: communicator {one}"), ranks)?,
            };
            numbers.insert(*one, groups.len() as u32);
            groups.push(Group { name: (*one).to_owned(), members });
        }
        Ok((groups, numbers))
    }
}

fn trace(name: &str, graphs: Vec<RankGraph>, groups: Vec<Group>, shared: bool) -> Trace {
    Trace {
        name: name.into(),
        ranks: None,
        graphs,
        shared,
        groups,
        degrees: Degrees::NONE,
        exchanges: Vec::new(),
        carried: Vec::new(),
        remarks: Vec::new(),
    }
}

/// What a process does; `own` is its rank with the groups, `None` where it stands for all.
fn graph(
    source: &str,
    calls: &[Call],
    compute: Time,
    own: Option<(u32, &[Group])>,
    numbers: &BTreeMap<&str, u32>,
) -> Result<RankGraph, WorkloadError> {
    let mut graph = RankGraph::new(source);
    let mut last: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut at = 0;
    let push = |graph: &mut RankGraph, name: &str, work: Work, waits: &[u32]| {
        let id = graph.nodes().len() as u64;
        graph.push(Node { id, name: name.into(), work, start: Time::ZERO }, waits)
    };
    while let Some(first) = calls.get(at) {
        let together =
            calls[at..].iter().take_while(|call| is_together(first, call)).count().max(1);
        let mut waits = last.remove(first.stream.as_str()).unwrap_or_default();
        if compute > Time::ZERO {
            let work = Work::Compute(Compute { time: compute, ..Compute::default() });
            waits = vec![push(&mut graph, "computation", work, &waits)];
        }
        let mut ends = Vec::new();
        for call in &calls[at..at + together] {
            let work = work(call, numbers[call.communicator.as_str()], own)
                .map_err(|what| WorkloadError(format!("{}: {what}", call.place)))?;
            ends.push(push(&mut graph, &call.name, work, &waits));
        }
        last.insert(&first.stream, ends);
        at += together;
    }
    graph.number_turns();
    Ok(graph)
}

/// Whether a call belongs to the group that `first` begins.
fn is_together(first: &Call, call: &Call) -> bool {
    let is_message = |call: &Call| matches!(call.name.as_str(), "Send" | "Recv");
    is_message(first)
        && is_message(call)
        && first.group.is_some()
        && (first.group, &first.communicator, &first.stream)
            == (call.group, &call.communicator, &call.stream)
}

fn work(call: &Call, group: u32, own: Option<(u32, &[Group])>) -> Result<Work, String> {
    let (operation, size) = match call.name.as_str() {
        "AllReduce" => (Operation::AllReduce, Size::Whole(call.bytes)),
        "Broadcast" | "Bcast" => (Operation::Broadcast, Size::Whole(call.bytes)),
        "Reduce" => (Operation::Reduce, Size::Whole(call.bytes)),
        // NCCL counts one rank's part of these.
        "AllGather" => (Operation::AllGather, Size::Shard(call.bytes)),
        "ReduceScatter" => (Operation::ReduceScatter, Size::Shard(call.bytes)),
        "AllToAll" | "AlltoAll" => (Operation::AllToAll, Size::Shard(call.bytes)),
        "Send" | "Recv" => return transfer(call, group, own),
        other => return Ok(Work::Unsupported(format!("call {}", quoted(other)).into())),
    };
    let action = Action::Operation(operation);
    let is_rooted = matches!(operation, Operation::Broadcast | Operation::Reduce);
    let root = if is_rooted { call.root } else { 0 };
    Ok(Work::Collective(Collective { action, size, group, root, turn: 0 }))
}

fn transfer(call: &Call, group: u32, own: Option<(u32, &[Group])>) -> Result<Work, String> {
    let Some((rank, groups)) = own else {
        return Err(
            "sends and receives need the logs of all processes, with INIT; give them".into()
        );
    };
    let peer = match &groups[group as usize].members {
        Membership::Listed(ranks) => ranks.get(call.root as usize).copied(),
        _ => Some(call.root),
    };
    let peer =
        peer.ok_or_else(|| format!("its communicator has no rank {}; correct it", call.root))?;
    if peer == rank {
        // To itself nothing crosses the network.
        return Ok(Work::Nothing);
    }
    let one = Transfer { peer: Peer::Rank(peer), bytes: call.bytes, tag: group.into(), turn: 0 };
    Ok(if call.name == "Send" { Work::Send(one) } else { Work::Receive(one) })
}
