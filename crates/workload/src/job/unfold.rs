//! A job whose collectives are written out as what their algorithms make of them: sends, receives, and what
//! each waits for. Formats that know no collectives take this.
//!
//! Invariant: the trace that comes of it sends the messages of the job, and each after the same ones.
//! What it does not do: what switches do for ranks.

use super::meeting::Meeting;
use super::role::Role;
use super::{AwaitSends, Job};
use crate::WorkloadError;
use crate::collective::Step;
use crate::trace::{
    Collective, Degrees, Group, Members, Membership, Node, Peer, RankGraph, Trace, Transfer, Work,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use weft_units::Time;

/// More messages than that make files that nothing reads.
const MOST: u64 = 1 << 23;

/// What a node waits for.
#[derive(Clone, Copy)]
enum Wait {
    /// All that the node waits for that is written out.
    Outside,
    /// Another part of the same node.
    Part(u32),
}

/// A part of a node.
struct Piece {
    work: Work,
    waits: Vec<Wait>,
    /// Which receipt of a collective it waits for: its tag is that of the message.
    receipt: Option<Receipt>,
}

/// A receipt: receiver, collective, sequence and number.
type Receipt = (u32, Meeting, u32, u32);

/// The tags that messages of collectives get: the next one of their pair of ranks.
struct Tags {
    first: u64,
    of_pair: BTreeMap<(u32, u32), u64>,
    of_receipt: BTreeMap<Receipt, u64>,
}

impl Job {
    /// The same job without collectives: what ranks send each other, message by message.
    ///
    /// # Errors
    /// If switches do a part of it, ranks wait for what they sent in collectives, or there are more than 2^23
    /// messages.
    pub fn unfolded(&self) -> Result<Trace, WorkloadError> {
        let error = |what: &str| Err(WorkloadError(format!("{}: {what}", self.trace.name)));
        if self.await_sends != AwaitSends::Never {
            return error("await_sends is not written; leave it out");
        }
        let mut messages = 0u64;
        let too_many = self.traffic(|one| {
            messages = messages.saturating_add(one.times);
            if messages > MOST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if too_many.is_break() {
            return error(
                "has more than 8388608 messages; write fewer ranks or a larger part as one",
            );
        }
        let mut tags = self.tags();
        let mut all: Vec<Vec<Vec<Piece>>> = Vec::new();
        for rank in 0..self.ranks() {
            let nodes = self.trace.graph(rank).nodes().iter();
            let pieces = nodes.map(|node| self.pieces(rank, node, &mut tags));
            all.push(pieces.collect::<Result<_, _>>()?);
        }
        let graphs = (0..).zip(all).map(|(rank, pieces)| self.written_out(rank, pieces, &tags));
        let graphs: Vec<RankGraph> = graphs.collect();
        Ok(Trace {
            name: self.trace.name.clone(),
            ranks: Some(self.ranks()),
            graphs,
            shared: false,
            groups: vec![Group::of(Membership::World)],
            degrees: Degrees::NONE,
            exchanges: Vec::new(),
            carried: Vec::new(),
            remarks: self.trace.remarks.clone(),
        })
    }

    /// None given yet, all above those that the trace has.
    fn tags(&self) -> Tags {
        let nodes = self.trace.graphs.iter().flat_map(RankGraph::nodes);
        let tags = nodes.filter_map(|node| match &node.work {
            Work::Send(one) | Work::Receive(one) => Some(one.tag.saturating_add(1)),
            _ => None,
        });
        let first = tags.max().unwrap_or(0);
        Tags { first, of_pair: BTreeMap::new(), of_receipt: BTreeMap::new() }
    }

    /// The parts of a node, the last of which is its end; tags of receives are still to come.
    fn pieces(&self, rank: u32, node: &Node, tags: &mut Tags) -> Result<Vec<Piece>, WorkloadError> {
        let alone = |work| Ok(vec![Piece { work, waits: vec![Wait::Outside], receipt: None }]);
        match &node.work {
            Work::Send(one) => alone(Work::Send(settled(rank, one))),
            Work::Receive(one) => alone(Work::Receive(settled(rank, one))),
            Work::Collective(one) => match self.role(rank, one) {
                None => alone(Work::Nothing),
                Some(role) => {
                    let members = self.trace.members(one.group, rank).expect("it is a member");
                    let mut part = Part { rank, one, role, members, tags, pieces: Vec::new() };
                    part.write_out().map_err(|what| {
                        WorkloadError(format!("{}: {}: {what}", self.trace.name, one.action.name()))
                    })?;
                    Ok(part.pieces)
                }
            },
            other => alone(other.clone()),
        }
    }

    fn written_out(&self, rank: u32, all: Vec<Vec<Piece>>, tags: &Tags) -> RankGraph {
        let from = self.trace.graph(rank);
        let mut firsts = Vec::with_capacity(all.len());
        let mut next = 0u32;
        for pieces in &all {
            firsts.push(next);
            next += pieces.len() as u32;
        }
        let end = |node: u32| firsts[node as usize] + all[node as usize].len() as u32 - 1;
        let mut graph = RankGraph::new(&from.source);
        for (node, pieces) in (0u32..).zip(&all) {
            let outside: Vec<u32> = from.waits(node).iter().map(|wait| end(*wait)).collect();
            let Node { name, start, .. } = &from.nodes()[node as usize];
            for piece in pieces {
                let mut waits = Vec::new();
                let mut begins = false;
                for wait in &piece.waits {
                    match wait {
                        Wait::Outside => {
                            waits.extend(&outside);
                            begins = true;
                        }
                        Wait::Part(part) => waits.push(firsts[node as usize] + part),
                    }
                }
                let start = if begins { *start } else { Time::ZERO };
                let mut work = piece.work.clone();
                if let (Some(receipt), Work::Receive(one)) = (&piece.receipt, &mut work) {
                    one.tag = tags.of_receipt[receipt];
                }
                let id = graph.nodes().len() as u64;
                graph.push(Node { id, name: name.clone(), work, start }, &waits);
            }
        }
        graph.number_turns();
        graph
    }
}

/// A collective of a rank that is being written out.
struct Part<'a, 't> {
    rank: u32,
    one: &'a Collective,
    role: Role<'a>,
    members: Members<'a>,
    tags: &'t mut Tags,
    pieces: Vec<Piece>,
}

impl Part<'_, '_> {
    fn push(&mut self, work: Work, waits: Vec<Wait>, receipt: Option<Receipt>) -> Wait {
        self.pieces.push(Piece { work, waits, receipt });
        Wait::Part(self.pieces.len() as u32 - 1)
    }

    /// Chunk after chunk; what is last waits for all of it.
    fn write_out(&mut self) -> Result<(), &'static str> {
        let mut begin = self.push(Work::Nothing, vec![Wait::Outside], None);
        for chunk in 0..self.role.chunks {
            let sequences = self.role.steps.sequences(&self.role.chunk(chunk));
            let mut ends = Vec::new();
            for sequence in 0..sequences {
                ends.extend(self.sequence(chunk, sequences, sequence, begin)?);
            }
            begin = self.push(Work::Nothing, ends, None);
        }
        Ok(())
    }

    /// One sequence of a chunk; returns what has to be over for it to be.
    fn sequence(
        &mut self,
        chunk: u32,
        sequences: u32,
        sequence: u32,
        begin: Wait,
    ) -> Result<Vec<Wait>, &'static str> {
        let (role, call) = (self.role, self.role.chunk(chunk));
        let meeting = Meeting::Group { group: self.one.group, turn: self.one.turn };
        let first = chunk * sequences;
        let (mut after, mut sends, mut receipts) = (vec![begin], Vec::new(), 0);
        for step in (0..).map_while(|at| role.steps.step(&call, role.place, sequence, at)) {
            match step {
                Step::Send { payload: 0, .. } => sends.push(None),
                Step::Send { to, payload: bytes, sequence: target, receipt } => {
                    let peer = self.members.rank(to);
                    let tag = self.tags.next(self.rank, (peer, meeting, first + target, receipt));
                    let one = Transfer { peer: Peer::Rank(peer), bytes, tag, turn: 0 };
                    sends.push(Some(self.push(Work::Send(one), after.clone(), None)));
                }
                Step::Receive { payload: 0, .. } | Step::Switched { payload: 0 } => receipts += 1,
                Step::Receive { from, payload: bytes } => {
                    let peer = Peer::Rank(self.members.rank(from));
                    let receipt = (self.rank, meeting, first + sequence, receipts);
                    let one = Transfer { peer, bytes, tag: 0, turn: 0 };
                    after = vec![self.push(Work::Receive(one), after, Some(receipt))];
                    receipts += 1;
                }
                Step::Sent(send) => after.extend(sends[send as usize]),
                Step::Switched { .. } => {
                    return Err(
                        "switches do a part of it, which is not written; choose an algorithm \
                                of ranks alone",
                    );
                }
            }
        }
        Ok(after)
    }
}

impl Tags {
    /// The tag of a message of `src` for this receipt.
    fn next(&mut self, src: u32, receipt: Receipt) -> u64 {
        let count = self.of_pair.entry((src, receipt.0)).or_insert(self.first);
        let tag = *count;
        *count += 1;
        self.of_receipt.insert(receipt, tag);
        tag
    }
}

/// The same with the other rank by its number.
fn settled(rank: u32, one: &Transfer) -> Transfer {
    Transfer { peer: Peer::Rank(one.peer.of(rank)), ..*one }
}
