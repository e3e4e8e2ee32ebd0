//! Rings: every rank receives from the one before it and sends to the one after it.
//!
//! All-reduce is reduce-scatter and all-gather in a row; each of these takes `n - 1` steps of a
//! block. Broadcast and reduce go along the ring as a chain, in chunks; a send-recv is one step of
//! the whole buffer. Several channels share the buffer, each a ring of its own.
//!
//! Where servers have several NICs, a ring that goes through the ranks in their order enters every
//! server by its first NIC and leaves it by its last. Each channel therefore begins at the ranks of
//! another NIC, goes on to the last rank of the server and from there to its first ones, as rings of
//! NCCL do. In that order a rank has a place; blocks are numbered by rank.
//!
//! Source: Patarasuk and Yuan (2009); NCCL.

use super::{
    AlgorithmInfo, Around, Blocks, Call, MOST_CHUNKS, MOST_STRANDS, Operation, Payload, Phase,
    Schedule, Servers, Step,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// Rings side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// How many rings share the buffer; `None`: one for each NIC of a server.
    pub channels: Option<u32>,
    /// Into how many chunks a chain cuts a channel's share.
    pub chunks: u32,
}

impl Schedule for Ring {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "ring",
        summary: "every rank receives from the one before it and sends to the one after it",
        source: "Patarasuk and Yuan (2009); NCCL; ASTRA-sim",
        operations: &[
            Operation::AllReduce,
            Operation::AllGather,
            Operation::ReduceScatter,
            Operation::Broadcast,
            Operation::Reduce,
            Operation::SendReceive,
        ],
        options: &[
            OptionInfo {
                key: "channels",
                default: "one for each NIC of a server",
                kind: OptionKind::Whole(1, MOST_STRANDS),
                meaning: "rings that share the buffer; each enters servers by another NIC",
            },
            OptionInfo {
                key: "chunks",
                default: "1",
                kind: OptionKind::Whole(1, MOST_CHUNKS),
                meaning: "of a broadcast or a reduce: chunks that follow each other along the ring",
            },
        ],
    };

    fn read(options: &mut Options<'_>) -> Result<Ring, OptionError> {
        let channels = options.number_if_given("channels")?;
        Ok(Ring { channels, chunks: options.number("chunks")? })
    }
    fn has_use_for(key: &str, operation: Operation) -> bool {
        key != "chunks" || matches!(operation, Operation::Broadcast | Operation::Reduce)
    }
    fn sequences(&self, call: &Call) -> u32 {
        self.channels.unwrap_or(call.servers.nics)
    }
    #[inline(always)]
    fn step(&self, call: &Call, rank: u32, sequence: u32, at: u32) -> Option<Step<Payload>> {
        let share = Payload::share(sequence, self.sequences(call));
        match call.operation {
            Operation::Broadcast | Operation::Reduce => self.chain(call, rank, share, at),
            Operation::SendReceive => shift(call, rank, share, at),
            _ => around(call, rank, share, at),
        }
    }
    fn phase(&self, call: &Call, _: u32, phase: u32) -> Option<Phase> {
        let round = call.ranks - 1;
        let rounds = match call.operation {
            Operation::AllReduce => 2 * round,
            Operation::ReduceScatter | Operation::AllGather => round,
            _ => return None,
        };
        (phase == 0).then_some(Phase { first: 0, stride: 1, ranks: call.ranks, rounds })
    }
    fn around(&self, call: &Call, rank: u32, sequence: u32, phase: u32) -> Option<Around> {
        let rounds = self.phase(call, rank, phase)?.rounds;
        let order = Order::of(call, sequence);
        let share = Payload::share(sequence, self.sequences(call));
        let blocks = Blocks::new(share.bytes(call.bytes), call.ranks);
        let count = |lead: u32| {
            let is_long =
                |back: u32| blocks.len(u64::from(order.behind(rank, back))) > blocks.shortest();
            sizes(call.ranks, rounds, lead, (blocks.shortest(), blocks.longer()), is_long)
        };
        let lead = u32::from(call.operation != Operation::AllGather);
        let (to, from) = (order.ahead(rank, 1), order.behind(rank, 1));
        Some(Around { to, sends: count(lead), from, receives: count(lead + 1) })
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        receipt < call.ranks - 1
    }
}

/// Sizes of what passes a place of a ring of `ranks` ranks in `rounds` rounds, a whole number of times
/// all blocks but one, and how many there are of each. Of the blocks `longer` are a byte longer than the
/// shortest; the one that is `back` before the place, if `is_long` says so. The first to pass is `lead`
/// before it, each next one farther.
pub(super) fn sizes(
    ranks: u32,
    rounds: u32,
    lead: u32,
    (shortest, longer): (u64, u32),
    is_long: impl Fn(u32) -> bool,
) -> [(u64, u64); 2] {
    let round = ranks - 1;
    let mut times = [0, 0];
    for turn in (0..rounds).step_by(round as usize) {
        // What is left out is the block before the first of these.
        let long = longer - u32::from(is_long(lead + turn + round));
        times[0] += u64::from(round - long);
        times[1] += u64::from(long);
    }
    [(shortest, times[0]), (shortest + 1, times[1])]
}

/// A place among others in a circle.
#[derive(Clone, Copy)]
pub(super) struct Circle {
    /// How many places there are.
    pub(super) ranks: u32,
    pub(super) place: u32,
}

impl Circle {
    /// The place `distance` after it.
    pub(super) fn ahead(self, distance: u32) -> u32 {
        ((u64::from(self.place) + u64::from(distance)) % u64::from(self.ranks)) as u32
    }
    /// The place `distance` before it.
    pub(super) fn behind(self, distance: u32) -> u32 {
        self.ahead(self.ranks - distance % self.ranks)
    }
}

/// Step `at` of `rank` in one ring: a send and a receipt by turns.
fn around(call: &Call, rank: u32, share: Payload, at: u32) -> Option<Step<Payload>> {
    let round = call.ranks - 1;
    let (rounds, lead) = match call.operation {
        Operation::AllReduce => (2 * round, 1),
        Operation::ReduceScatter => (round, 1),
        _ => (round, 0),
    };
    let turn = at / 2;
    if turn >= rounds {
        return None;
    }
    // What is reduced last is the rank's own block: the first to leave is the one before it. An
    // all-gather begins with its own.
    let back = turn + lead;
    let sequence = share.share;
    let order = Order::of(call, sequence);
    let block = |back: u32| share.block(order.behind(rank, back), call.ranks);
    Some(match at % 2 {
        0 => {
            let to = order.ahead(rank, 1);
            Step::Send { to, payload: block(back), sequence, receipt: turn }
        }
        _ => Step::Receive { from: order.behind(rank, 1), payload: block(back + 1) },
    })
}

/// In which order a channel goes through the ranks.
struct Order<'a> {
    call: &'a Call,
    /// Which rank of each server is its first.
    first: u32,
}

impl Order<'_> {
    fn of(call: &Call, channel: u32) -> Order<'_> {
        let Servers { ranks, nics } = call.servers;
        Order { call, first: channel % nics * ranks / nics }
    }
    /// The place of `rank`, and at which place a rank is.
    fn place(&self, rank: u32) -> u32 {
        self.turned(rank, self.call.servers.ranks - self.first)
    }
    fn at(&self, place: u32) -> u32 {
        self.turned(place, self.first)
    }
    /// `number`, moved on by so many within its server.
    fn turned(&self, number: u32, by: u32) -> u32 {
        let ranks = self.call.servers.ranks;
        let within = number % ranks;
        number - within + (within + by) % ranks
    }
    /// The rank `distance` after `rank`.
    fn ahead(&self, rank: u32, distance: u32) -> u32 {
        self.at(self.call.ahead(self.place(rank), distance))
    }
    /// The rank `distance` before `rank`.
    fn behind(&self, rank: u32, distance: u32) -> u32 {
        self.at(self.call.behind(self.place(rank), distance))
    }
}

/// Step `at` of a rank that sends all that it has to the next one.
fn shift(call: &Call, rank: u32, share: Payload, at: u32) -> Option<Step<Payload>> {
    let (to, sequence) = (call.ahead(rank, 1), share.share);
    let payload = share;
    match at {
        0 => Some(Step::Send { to, payload, sequence, receipt: 0 }),
        1 => Some(Step::Receive { from: call.behind(rank, 1), payload }),
        _ => None,
    }
}

impl Ring {
    /// Step `at` of `rank` in a chain, from the root on or towards it: a receipt and a send for
    /// every chunk, without the one at its first and the other at its last rank.
    fn chain(&self, call: &Call, rank: u32, share: Payload, at: u32) -> Option<Step<Payload>> {
        let last = call.ranks - 1;
        let sequence = share.share;
        let order = Order::of(call, sequence);
        let from_root = call.behind(order.place(rank), order.place(call.root));
        // A broadcast begins at the root, a reduce at the one after it.
        let place = match call.operation {
            Operation::Broadcast => from_root,
            _ => (from_root + last) % call.ranks,
        };
        let (receives, sends) = (place > 0, place < last);
        let steps = u32::from(receives) + u32::from(sends);
        let chunk = at.checked_div(steps)?;
        if chunk >= self.chunks {
            return None;
        }
        let payload = share.block(chunk, self.chunks);
        Some(match receives && at.is_multiple_of(steps) {
            true => Step::Receive { from: order.behind(rank, 1), payload },
            false => Step::Send { to: order.ahead(rank, 1), payload, sequence, receipt: chunk },
        })
    }
}
