//! Collectives: what each rank sends and receives, in which order, and what comes out.
//!
//! The step rules are those of `weft_workload::collective`, a ring or direct; here is what only
//! buffers and channels need: which elements a block is, how they are cut into chunks, and which
//! message of a channel waits for which.

use std::ops::Range;
use weft_workload::collective::{self, Algorithm, Call, Direct, Payload, Ring, Servers, Step};

/// A collective of nccl-tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Everybody gets the sum: a ring, reduce-scatter then all-gather.
    AllReduce,
    /// Everybody gets everybody's part: a ring.
    AllGather,
    /// Everybody gets its part of the sum: a ring.
    ReduceScatter,
    /// Everybody sends each other rank a part of its own, all at once.
    AllToAll,
    /// Everybody sends all to the next and receives from the one before.
    SendRecv,
}

/// Sends of a channel, in order: elements of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The elements that are sent.
    pub from: Range<usize>,
    /// The receive of this channel that must be done before.
    pub after: Option<usize>,
}

/// Receives of a channel, in order: elements of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The elements that are received into.
    pub into: Range<usize>,
    /// Whether it is added to what is there.
    pub add: bool,
    /// The send of this channel that must be done before: it sends what is written over.
    pub after: Option<usize>,
}

/// One channel: to one peer, and from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Who is sent to.
    pub to: usize,
    /// The sending rank.
    pub from: usize,
    /// In order.
    pub sends: Vec<Send>,
    /// In order.
    pub receives: Vec<Receive>,
}

impl Operation {
    /// All, with their names.
    pub const ALL: [(Operation, &'static str); 5] = [
        (Operation::AllReduce, "all-reduce"),
        (Operation::AllGather, "all-gather"),
        (Operation::ReduceScatter, "reduce-scatter"),
        (Operation::AllToAll, "all-to-all"),
        (Operation::SendRecv, "sendrecv"),
    ];

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Operation> {
        Operation::ALL.iter().find(|(_, its)| *its == name).map(|(operation, _)| *operation)
    }

    /// Its name.
    ///
    /// # Panics
    /// Never: all have one.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Operation::ALL.iter().find(|(its, _)| *its == self);
        named.map(|(_, name)| *name).expect("all have a name")
    }

    /// Whether it works in place, on the result: rings do. Others send from the source.
    #[must_use]
    pub fn in_place(self) -> bool {
        !matches!(self, Operation::AllToAll | Operation::SendRecv)
    }

    /// Whether every rank has a part of the elements of its own: their number is then cut to a
    /// multiple of the ranks.
    #[must_use]
    pub fn by_rank(self) -> bool {
        matches!(self, Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll)
    }

    /// Peers that a rank sends to at a time.
    #[must_use]
    pub fn peers(self, ranks: usize) -> usize {
        if self == Operation::AllToAll { ranks - 1 } else { 1 }
    }

    /// The same in `weft_workload`.
    fn kind(self) -> collective::Operation {
        match self {
            Operation::AllReduce => collective::Operation::AllReduce,
            Operation::AllGather => collective::Operation::AllGather,
            Operation::ReduceScatter => collective::Operation::ReduceScatter,
            Operation::AllToAll => collective::Operation::AllToAll,
            Operation::SendRecv => collective::Operation::SendReceive,
        }
    }

    /// What nccl-tests multiplies the algorithm's bandwidth with, to tell the busiest link's.
    #[must_use]
    pub fn bus_factor(self, ranks: usize) -> f64 {
        self.kind().bus_factor(number(ranks))
    }

    /// Channels of `rank`: `width` of them to each peer, messages of at most `chunk` elements.
    #[must_use]
    pub fn channels(
        self,
        rank: usize,
        ranks: usize,
        count: usize,
        width: usize,
        chunk: usize,
    ) -> Vec<Channel> {
        let (operation, servers) = (self.kind(), Servers::EACH);
        let call = Call { operation, ranks: number(ranks), bytes: 0, root: 0, servers };
        let own = if self.by_rank() { count / ranks } else { count };
        // NCCL cuts blocks of one chunk a rank, and sums go around block by block.
        let block = chunk.saturating_mul(if self == Operation::AllReduce { ranks } else { 1 });
        let lists = (0..width).flat_map(|at| {
            let mut lists = Lists { operation: self, own, sends: Vec::new(), receives: Vec::new() };
            for block in pieces(part(0..own, at, width), block) {
                lists.add(&call, number(rank), &block);
            }
            lists.channels()
        });
        let mut channels: Vec<Channel> = lists.collect();
        channels.sort_by_key(|channel| (channel.to + ranks - rank) % ranks);
        channels
    }
}

fn number(rank: usize) -> u32 {
    u32::try_from(rank).expect("ranks are 32-bit numbers")
}

/// Part `index` of `count` of a range, as equal as can be.
fn part(range: Range<usize>, index: usize, count: usize) -> Range<usize> {
    let len = range.len();
    range.start + len * index / count..range.start + len * (index + 1) / count
}

/// Pieces of at most `chunk`; an empty range is one empty piece.
fn pieces(range: Range<usize>, chunk: usize) -> impl Iterator<Item = Range<usize>> {
    let count = range.len().div_ceil(chunk).max(1);
    (0..count).map(move |index| {
        let from = range.start + index * chunk;
        from..range.end.min(from + chunk)
    })
}

/// Messages by peer, in the order in which algorithms come to them.
struct Lists {
    operation: Operation,
    /// Elements of a rank's part; of operations without parts, all.
    own: usize,
    sends: Vec<(u32, Vec<Send>)>,
    receives: Vec<(u32, Vec<Receive>)>,
}

impl Lists {
    /// Adds all that a rank does with `block` of the elements of each part.
    fn add(&mut self, call: &Call, rank: u32, block: &Range<usize>) {
        let own = self.own;
        let elements = |index: u32| match call.operation {
            collective::Operation::AllReduce => {
                part(block.clone(), index as usize, call.ranks as usize)
            }
            _ => block.start + index as usize * own..block.end + index as usize * own,
        };
        let algorithm = match self.operation {
            Operation::AllToAll => Algorithm::Direct(Direct { window: None, skew: None }),
            _ => Algorithm::Ring(Ring { channels: Some(1), chunks: 1 }),
        };
        // Which message was the last that read or wrote each block, where it is written in place.
        let mut sent = vec![None; call.ranks as usize];
        let mut received = sent.clone();
        let last = |number: usize| self.operation.in_place().then_some(number);
        let mut receipts = 0..;
        for at in 0.. {
            let Some(step) = algorithm.step_in_blocks(call, rank, 0, at) else { break };
            match step {
                Step::Send { to, payload: Payload { first, .. }, .. } => {
                    let sends = of_peer(&mut self.sends, to);
                    sent[first as usize] = last(sends.len());
                    let after = received[first as usize];
                    sends.push(Send { from: elements(first), after });
                }
                Step::Receive { from, payload: Payload { first, .. } } => {
                    // An all-to-all sorts by the sender what it has cut by the receiver.
                    let is_exchange = self.operation == Operation::AllToAll;
                    let into = elements(if is_exchange { from } else { first });
                    let add = algorithm.reduces(call, 0, receipts.next().expect("a number"));
                    let receives = of_peer(&mut self.receives, from);
                    received[first as usize] = last(receives.len());
                    let after = sent[first as usize];
                    receives.push(Receive { into, add, after });
                }
                Step::Sent(_) | Step::Switched { .. } => {
                    unreachable!("neither algorithm has a window, nor switches that add up")
                }
            }
        }
    }

    /// A channel to each peer and from as many.
    fn channels(self) -> impl Iterator<Item = Channel> {
        self.sends.into_iter().zip(self.receives).map(|((to, sends), (from, receives))| Channel {
            to: to as usize,
            from: from as usize,
            sends,
            receives,
        })
    }
}

/// The messages of a peer.
fn of_peer<T>(lists: &mut Vec<(u32, Vec<T>)>, peer: u32) -> &mut Vec<T> {
    let at = lists.iter().position(|(one, _)| *one == peer).unwrap_or_else(|| {
        lists.push((peer, Vec::new()));
        lists.len() - 1
    });
    &mut lists[at].1
}
