//! What one rank does: nodes, what each waits for, and who meets whom.
//!
//! Invariant: a node's dependencies are indices of this graph's nodes, each once. Whether it
//! can all happen (no cycle, nothing missing) is [`check`](super::check::check)'s question.

use crate::collective::Operation;
use std::collections::BTreeMap;
use weft_units::Time;
use weft_units::options::quoted;

/// One step of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its number in the file.
    pub id: u64,
    /// Its name in the file.
    pub name: Box<str>,
    /// What it does.
    pub work: Work,
    /// Not before this instant of the run.
    pub start: Time,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Nothing that takes time: metadata, the CPU's side of a communication.
    Nothing,
    /// Computes.
    Compute(Compute),
    /// Loads from or stores to memory.
    Memory(Memory),
    /// Takes part in a collective.
    Collective(Collective),
    /// Sends to a rank; done when the message has left.
    Send(Transfer),
    /// Waits for a message from a rank.
    Receive(Transfer),
    /// Something that is not understood, in words. It cannot be run.
    Unsupported(Box<str>),
}

/// A computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// How long it takes; zero where the trace only counts operations.
    pub time: Time,
    /// Floating-point operations, if they are given, else 0.
    pub operations: u64,
    /// Bytes that it touches, if they are given, else 0.
    pub bytes: u64,
    /// On the CPU rather than on the accelerator.
    pub on_host: bool,
    /// On which of the accelerator's streams: one computation at a time goes on in each.
    pub stream: u32,
}

/// A transfer from or to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// How much is moved, in bytes.
    pub bytes: u64,
    /// How long it took, if the trace says so.
    pub time: Time,
    /// To memory rather than from it.
    pub store: bool,
}

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An operation that moves data.
    Operation(Operation),
    /// Only waits for everyone.
    Barrier,
    /// Brings tokens to their experts: an index into [`Trace::exchanges`](super::Trace::exchanges).
    Dispatch(u32),
    /// Brings them back: the same.
    Combine(u32),
}

/// How many bytes a collective moves, as the file counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// The larger buffer of a rank.
    Whole(u64),
    /// One rank's part of it.
    Shard(u64),
}

/// A rank's part in a collective.
///
/// Of no bytes, it moves nothing and takes no time; such nodes are kept because converters
/// write them, and some simulators send a byte for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// What is done.
    pub action: Action,
    /// How much; [`Collective::bytes`] counts as [`Call`](crate::collective::Call) does.
    pub size: Size,
    /// Who takes part: an index into [`Trace::groups`](super::Trace::groups).
    pub group: u32,
    /// The root within the group, of a broadcast or a reduce.
    pub root: u32,
    /// Which of this rank's collectives of the group it is, from 0, by ascending ids: the nodes
    /// of all members with the same turn are one collective.
    pub turn: u32,
}

/// The other rank of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The one with this number.
    Rank(u32),
    /// The one that is so many after the own rank, or before it if negative: what lets ranks of
    /// a pipeline stage share a graph.
    Away(i64),
}

/// A rank's half of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The other rank.
    pub peer: Peer,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Tells messages of one pair of ranks apart.
    pub tag: u64,
    /// Which of this rank's sends to (receives from) that rank with that tag it is, from 0, by
    /// ascending ids: a send meets the receive of the same turn.
    pub turn: u32,
}

impl Action {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Action::Operation(operation) => operation.name(),
            Action::Barrier => "barrier",
            Action::Dispatch(_) => "moe-dispatch",
            Action::Combine(_) => "moe-combine",
        }
    }
}

impl Size {
    /// The larger buffer of a rank among `ranks`; beyond 2^64 bytes, 2^64 - 1.
    pub fn bytes(self, ranks: u32) -> u64 {
        match self {
            Size::Whole(bytes) => bytes,
            Size::Shard(bytes) => bytes.saturating_mul(u64::from(ranks)),
        }
    }
    /// Whether nothing is moved.
    pub fn is_zero(self) -> bool {
        matches!(self, Size::Whole(0) | Size::Shard(0))
    }
}

impl Peer {
    /// Which rank that is for `rank`; 2^32 - 1, which no job has, if there is none.
    pub fn of(self, rank: u32) -> u32 {
        match self {
            Peer::Rank(peer) => peer,
            Peer::Away(distance) => {
                let peer = i64::from(rank).saturating_add(distance);
                u32::try_from(peer).unwrap_or(u32::MAX)
            }
        }
    }
}

impl Collective {
    /// The larger buffer of a rank, the group having `ranks` of them.
    pub fn bytes(&self, ranks: u32) -> u64 {
        self.size.bytes(ranks)
    }
}

impl Work {
    /// What kind of node it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Work::Nothing => "nothing",
            Work::Compute(_) => "compute",
            Work::Memory(_) => "memory",
            Work::Collective(_) => "collective",
            Work::Send(_) => "send",
            Work::Receive(_) => "receive",
            Work::Unsupported(_) => "unsupported",
        }
    }
}

/// The nodes of one rank, or of all ranks that do the same, and what they wait for.
#[derive(Clone, Debug, Default)]
pub struct RankGraph {
    /// The file that it was read from, for errors.
    pub source: String,
    nodes: Vec<Node>,
    waits: Vec<u32>,
    /// Where the dependencies of each node end, those of the next one begin.
    ends: Vec<u32>,
    missing: Vec<(u32, u64)>,
}

impl RankGraph {
    /// An empty graph; `source` is what errors call its file.
    pub fn new(source: &str) -> RankGraph {
        RankGraph { source: source.into(), ..RankGraph::default() }
    }

    /// Appends a node that waits for the nodes of these indices (added before or later).
    ///
    /// # Panics
    /// Beyond 2^32 nodes or dependencies.
    pub fn push(&mut self, node: Node, waits: &[u32]) -> u32 {
        let from = self.waits.len();
        self.waits.extend_from_slice(waits);
        self.waits[from..].sort_unstable();
        let mut kept = from;
        for at in from..self.waits.len() {
            if at == from || self.waits[at] != self.waits[at - 1] {
                self.waits[kept] = self.waits[at];
                kept += 1;
            }
        }
        self.waits.truncate(kept);
        self.ends.push(u32::try_from(kept).expect("dependencies fit in 32 bits"));
        let index = u32::try_from(self.nodes.len()).expect("nodes fit in 32 bits");
        self.nodes.push(node);
        index
    }

    /// Notes that a node waits for an id that no node has.
    pub fn note_missing(&mut self, node: u32, id: u64) {
        self.missing.push((node, id));
    }

    /// All nodes, in the order of the file.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// The indices that a node waits for, ascending.
    pub fn waits(&self, node: u32) -> &[u32] {
        let at = node as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.waits[from as usize..self.ends[at] as usize]
    }

    /// Dependencies on ids that no node has: who waits, for which id.
    pub fn missing(&self) -> &[(u32, u64)] {
        &self.missing
    }

    /// How many dependencies there are.
    pub fn dependency_count(&self) -> u64 {
        (self.waits.len() + self.missing.len()) as u64
    }

    /// A node as errors call it: `node 17 ("name")`.
    pub fn label(&self, node: u32) -> String {
        let Node { id, name, .. } = &self.nodes[node as usize];
        match name.is_empty() {
            true => format!("node {id}"),
            false => format!("node {id} ({})", quoted(name)),
        }
    }

    /// Who waits for whom, read from the other end.
    pub fn followers(&self) -> Followers {
        Followers::new(self)
    }

    /// How long the chain of nodes is that ends with each node, itself included; 0 for those
    /// that can never start for a cycle or a missing node.
    pub fn depths(&self) -> Vec<u32> {
        let followers = self.followers();
        let mut unmet: Vec<u32> =
            (0..self.nodes.len() as u32).map(|node| self.waits(node).len() as u32).collect();
        for (node, _) in &self.missing {
            unmet[*node as usize] += 1;
        }
        let mut depths = vec![0; self.nodes.len()];
        let mut ready: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|node| unmet[*node as usize] == 0).collect();
        while let Some(node) = ready.pop() {
            // All that it waits for has its depth by now.
            let before = self.waits(node).iter().map(|wait| depths[*wait as usize]).max();
            depths[node as usize] = before.unwrap_or(0) + 1;
            for next in followers.of(node) {
                unmet[*next as usize] -= 1;
                if unmet[*next as usize] == 0 {
                    ready.push(*next);
                }
            }
        }
        depths
    }

    /// Gives collectives and transfers their turns, by ascending ids: the last step of building a
    /// graph.
    pub fn number_turns(&mut self) {
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        order.sort_by_key(|node| self.nodes[*node as usize].id);
        let mut calls: BTreeMap<u32, u32> = BTreeMap::new();
        let mut messages: BTreeMap<(bool, Peer, u64), u32> = BTreeMap::new();
        for node in order {
            let (turn, next) = match &mut self.nodes[node as usize].work {
                Work::Collective(one) => (&mut one.turn, calls.entry(one.group).or_default()),
                Work::Send(one) => {
                    let key = (true, one.peer, one.tag);
                    (&mut one.turn, messages.entry(key).or_default())
                }
                Work::Receive(one) => {
                    let key = (false, one.peer, one.tag);
                    (&mut one.turn, messages.entry(key).or_default())
                }
                _ => continue,
            };
            *turn = *next;
            *next += 1;
        }
    }
}

/// Dependencies read backwards.
#[derive(Clone, Debug)]
pub struct Followers {
    /// Who waits for node `n`: `nodes[starts[n] .. starts[n + 1]]`.
    nodes: Vec<u32>,
    starts: Vec<u32>,
}

impl Followers {
    fn new(graph: &RankGraph) -> Followers {
        let count = graph.nodes.len();
        let mut starts = vec![0u32; count + 1];
        for wait in &graph.waits {
            starts[*wait as usize + 1] += 1;
        }
        for at in 1..=count {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut nodes = vec![0; graph.waits.len()];
        for node in 0..count as u32 {
            for wait in graph.waits(node) {
                let place = &mut next[*wait as usize];
                nodes[*place as usize] = node;
                *place += 1;
            }
        }
        Followers { nodes, starts }
    }

    /// The nodes that wait for `node`, ascending.
    pub fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.nodes[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
