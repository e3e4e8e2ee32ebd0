//! Collectives: what each rank sends and receives, in which order, and what comes out.

use std::ops::Range;

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
    /// Which elements.
    pub from: Range<usize>,
    /// The receive of this channel that must be done before.
    pub after: Option<usize>,
}

/// Receives of a channel, in order: elements of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Which elements.
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

    /// What nccl-tests multiplies the algorithm's bandwidth with, to tell the busiest link's.
    #[must_use]
    pub fn bus_factor(self, ranks: usize) -> f64 {
        let ranks = ranks as f64;
        match self {
            Operation::AllReduce => 2.0 * (ranks - 1.0) / ranks,
            Operation::SendRecv => 1.0,
            _ => (ranks - 1.0) / ranks,
        }
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
        let ring = Ring { rank, ranks };
        let each = |channel: usize, count: usize| part(0..count, channel, width);
        match self {
            Operation::AllReduce => {
                (0..width).map(|at| ring.all_reduce(each(at, count), chunk)).collect()
            }
            Operation::AllGather => (0..width)
                .map(|at| ring.all_gather(each(at, count / ranks), count / ranks, chunk))
                .collect(),
            Operation::ReduceScatter => (0..width)
                .map(|at| ring.reduce_scatter(each(at, count / ranks), count / ranks, chunk))
                .collect(),
            Operation::SendRecv => {
                (0..width).map(|at| ring.pair(1, each(at, count), 0, 0, chunk)).collect()
            }
            Operation::AllToAll => {
                let own = count / ranks;
                let pair = |distance: usize, at: usize| {
                    let (to, from) = ring.pair_of(distance);
                    ring.pair(distance, each(at, own), own * to, own * from, chunk)
                };
                (1..ranks).flat_map(|far| (0..width).map(move |at| pair(far, at))).collect()
            }
        }
    }
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

#[derive(Clone, Copy)]
struct Ring {
    rank: usize,
    ranks: usize,
}

impl Ring {
    /// The rank `steps` before this one.
    fn back(self, steps: usize) -> usize {
        (self.rank + 2 * self.ranks - steps % self.ranks) % self.ranks
    }

    fn pair_of(self, distance: usize) -> (usize, usize) {
        ((self.rank + distance) % self.ranks, self.back(distance))
    }

    fn channel(self) -> Channel {
        let (to, from) = self.pair_of(1);
        Channel { to, from, sends: Vec::new(), receives: Vec::new() }
    }

    fn pair(
        self,
        distance: usize,
        range: Range<usize>,
        out: usize,
        into: usize,
        chunk: usize,
    ) -> Channel {
        let (to, from) = self.pair_of(distance);
        let shift = |piece: Range<usize>, by: usize| piece.start + by..piece.end + by;
        let sends = pieces(range.clone(), chunk)
            .map(|piece| Send { from: shift(piece, out), after: None })
            .collect();
        let receives = pieces(range, chunk)
            .map(|piece| Receive { into: shift(piece, into), add: false, after: None })
            .collect();
        Channel { to, from, sends, receives }
    }

    /// Blocks of one chunk a rank, as NCCL cuts them: in each, the sum of a chunk comes together
    /// going around, and goes around once more.
    fn all_reduce(self, range: Range<usize>, chunk: usize) -> Channel {
        let mut channel = self.channel();
        for block in pieces(range, chunk.saturating_mul(self.ranks)) {
            let segment = |owner: usize| part(block.clone(), owner, self.ranks);
            let first = channel.receives.len();
            for step in 0..2 * (self.ranks - 1) {
                let adding = step < self.ranks - 1;
                channel.sends.push(Send {
                    from: segment(self.back(step)),
                    after: (step > 0).then(|| first + step - 1),
                });
                channel.receives.push(Receive {
                    into: segment(self.back(step + 1)),
                    add: adding,
                    // It comes over the partial sum that was sent once around before.
                    after: (!adding).then(|| first + step + 1 - self.ranks),
                });
            }
        }
        channel
    }

    fn all_gather(self, range: Range<usize>, own: usize, chunk: usize) -> Channel {
        let mut channel = self.channel();
        for block in pieces(range, chunk) {
            let segment = |owner: usize| block.start + owner * own..block.end + owner * own;
            let first = channel.receives.len();
            for step in 0..self.ranks - 1 {
                let after = (step > 0).then(|| first + step - 1);
                channel.sends.push(Send { from: segment(self.back(step)), after });
                let into = segment(self.back(step + 1));
                channel.receives.push(Receive { into, add: false, after: None });
            }
        }
        channel
    }

    fn reduce_scatter(self, range: Range<usize>, own: usize, chunk: usize) -> Channel {
        let mut channel = self.channel();
        for block in pieces(range, chunk) {
            let segment = |owner: usize| block.start + owner * own..block.end + owner * own;
            let first = channel.receives.len();
            for step in 0..self.ranks - 1 {
                let after = (step > 0).then(|| first + step - 1);
                channel.sends.push(Send { from: segment(self.back(step + 1)), after });
                let into = segment(self.back(step + 2));
                channel.receives.push(Receive { into, add: true, after: None });
            }
        }
        channel
    }
}
