//! Dispatch and combine, step by step: who sends how many tokens to whom, and what it waits for.
//!
//! Nodes have equally many ranks, in order; rank `(node, place)` is `node * per_node + place`. In normal
//! mode a rank has for each node and chunk a sequence: the first chunk of its own node, of the node after it, and
//! so on, then the second, so that no node is everybody's first. What a sequence does:
//!
//! | of the node | dispatch | combine |
//! |---|---|---|
//! | its own | to all other nodes, to the same place there; within the node to whose experts are taken | within the node, to whose tokens they are |
//! | another | waits for its peer there, passes on to the others of its node; waits for what they pass on | to the peers of whose tokens they are; waits for what its own peer is to have, sends it; waits for its own |
//!
//! Low-latency mode has one sequence: to all others, then from all others.

use super::Way;
use super::routing::Tokens;
use crate::collective::{Blocks, Step};
use std::sync::Arc;

/// What ranks exchange with the experts of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub(super) ranks: u32,
    pub(super) per_node: u32,
    pub(crate) way: Way,
    pub(super) chunks: u32,
    /// Of a token that is dispatched, and combined.
    pub(super) bytes: [u64; 2],
    /// Choices of experts by the tokens of a rank.
    pub(super) taken: u64,
    pub(super) tokens: Arc<Tokens>,
}

impl Exchange {
    /// What the tokens of a rank come to, one for each choice of an expert, in bytes.
    pub fn buffer(&self, is_combine: bool) -> u64 {
        self.taken * self.bytes[usize::from(is_combine)]
    }
    /// The mode's name.
    pub fn name(&self) -> &'static str {
        self.way.name()
    }
    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }
    /// How many sequences a rank has.
    pub fn sequences(&self) -> u32 {
        match self.way {
            Way::LowLatency => 1,
            Way::Normal => self.nodes() * self.chunks,
        }
    }
    /// Step `at` of a sequence of `rank`; `None`: it is over.
    pub fn step(&self, is_combine: bool, rank: u32, sequence: u32, at: u32) -> Option<Step> {
        match (self.way, is_combine) {
            (Way::LowLatency, _) => self.straight(is_combine, rank, at),
            (Way::Normal, false) => self.dispatch(rank, sequence, at),
            (Way::Normal, true) => self.combine(rank, sequence, at),
        }
    }

    fn nodes(&self) -> u32 {
        self.ranks / self.per_node
    }
    /// Of so many tokens those of a chunk, in bytes.
    fn part(&self, is_combine: bool, tokens: u32, chunk: u32) -> u64 {
        let own = Blocks::new(tokens.into(), self.chunks).len(chunk.into());
        own * self.bytes[usize::from(is_combine)]
    }

    fn straight(&self, is_combine: bool, rank: u32, at: u32) -> Option<Step> {
        let others = self.ranks - 1;
        // Whoever has tokens sends them; combine is the other way round.
        let tokens = |from: u32, to: u32| match is_combine {
            false => self.part(false, self.tokens.pair(from, to), 0),
            true => self.part(true, self.tokens.pair(to, from), 0),
        };
        let ahead = |distance: u32| (rank + distance) % self.ranks;
        if at < others {
            let to = ahead(at + 1);
            return Some(Step::Send { to, payload: tokens(rank, to), sequence: 0, receipt: at });
        }
        let from = ahead(self.ranks - (at - others + 1).min(self.ranks));
        (at < 2 * others).then(|| Step::Receive { from, payload: tokens(from, rank) })
    }

    fn dispatch(&self, rank: u32, sequence: u32, at: u32) -> Option<Step> {
        let Places { own, place, node, chunk, others, .. } = self.places(rank, sequence);
        let part = |tokens| self.part(false, tokens, chunk);
        let within = |distance: u32| own * self.per_node + (place + distance) % self.per_node;
        // Before what goes to the others of the node, and comes from them.
        let before = if node == own { self.nodes() - 1 } else { 1 };
        if at < before {
            if node != own {
                let from = node * self.per_node + place;
                let payload = part(self.tokens.to_node(from, own));
                return Some(Step::Receive { from, payload });
            }
            let far = (own + at + 1) % self.nodes();
            let to = far * self.per_node + place;
            let payload = part(self.tokens.to_node(rank, far));
            let sequence = self.number(far, own, chunk);
            return Some(Step::Send { to, payload, sequence, receipt: 0 });
        }
        let at = at - before;
        // Whose tokens pass through rank `by` of this node.
        let source = |by: u32| node * self.per_node + by % self.per_node;
        let first = u32::from(node != own);
        if at < others {
            let to = within(at + 1);
            let payload = part(self.tokens.pair(source(rank), to));
            return Some(Step::Send { to, payload, sequence, receipt: first + at });
        }
        (at < 2 * others).then(|| {
            let from = within(self.per_node - (at - others + 1));
            Step::Receive { from, payload: part(self.tokens.pair(source(from), rank)) }
        })
    }

    fn combine(&self, rank: u32, sequence: u32, at: u32) -> Option<Step> {
        let Places { own, place, node, chunk, others, .. } = self.places(rank, sequence);
        let part = |tokens| self.part(true, tokens, chunk);
        let within = |distance: u32| own * self.per_node + (place + distance) % self.per_node;
        let source = |by: u32| node * self.per_node + by % self.per_node;
        if at < others {
            let to = within(at + 1);
            let payload = part(self.tokens.pair(source(to), rank));
            return Some(Step::Send { to, payload, sequence, receipt: at });
        }
        if at < 2 * others {
            let from = within(self.per_node - (at - others + 1));
            return Some(Step::Receive {
                from,
                payload: part(self.tokens.pair(source(rank), from)),
            });
        }
        let peer = node * self.per_node + place;
        match at - 2 * others {
            _ if node == own => None,
            0 => {
                let payload = part(self.tokens.to_node(peer, own));
                // Its own sequence about this node, behind what comes within its node.
                let sequence = self.number(node, own, chunk);
                Some(Step::Send { to: peer, payload, sequence, receipt: others })
            }
            1 => Some(Step::Receive { from: peer, payload: part(self.tokens.to_node(rank, node)) }),
            _ => None,
        }
    }

    /// The number of the sequence that a rank of node `of` has about `node`.
    fn number(&self, of: u32, node: u32, chunk: u32) -> u32 {
        chunk * self.nodes() + (node + self.nodes() - of) % self.nodes()
    }
    fn places(&self, rank: u32, sequence: u32) -> Places {
        Places {
            own: rank / self.per_node,
            place: rank % self.per_node,
            node: (rank / self.per_node + sequence % self.nodes()) % self.nodes(),
            chunk: sequence / self.nodes(),
            others: self.per_node - 1,
        }
    }
}

/// Where a rank is, and what a sequence of it is about.
struct Places {
    /// Its node, and its place there.
    own: u32,
    place: u32,
    /// The node and the chunk that the sequence is about.
    node: u32,
    chunk: u32,
    /// Others in the rank's node.
    others: u32,
}
