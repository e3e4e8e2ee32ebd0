//! Rings: every rank receives from the one before it and sends to the one after it.
//!
//! All-reduce is reduce-scatter and all-gather in a row; each of these takes `n - 1` steps of a
//! piece. Broadcast and reduce go along the ring as a chain, in chunks; a send-recv is one step of
//! the whole buffer. Several channels share the buffer, each a ring of its own. Source: Patarasuk and Yuan (2009); NCCL.

use super::{AlgorithmInfo, Call, MOST_CHUNKS, MOST_STRANDS, Operation, Pieces, Schedule, Step};
use weft_units::{OptionError, OptionInfo, Options};

/// Rings side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// How many rings share the buffer.
    pub channels: u32,
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
            OptionInfo { key: "channels", default: "1", meaning: "rings that share the buffer" },
            OptionInfo {
                key: "chunks",
                default: "1",
                meaning: "of a broadcast or a reduce: chunks that follow each other along the ring",
            },
        ],
    };

    fn read(options: &mut Options<'_>) -> Result<Ring, OptionError> {
        let channels = options.number("channels", 1..=MOST_STRANDS)?;
        Ok(Ring { channels, chunks: options.number("chunks", 1..=MOST_CHUNKS)? })
    }
    fn strands(&self, _: &Call) -> u32 {
        self.channels
    }
    fn step(&self, call: &Call, rank: u32, strand: u32, at: u32) -> Option<Step> {
        let bytes = Pieces::new(call.bytes, self.channels).len(u64::from(strand));
        let share = Call { bytes, ..*call };
        match call.operation {
            Operation::Broadcast | Operation::Reduce => self.chain(&share, rank, strand, at),
            Operation::SendReceive => shift(&share, rank, strand, at),
            _ => around(&share, rank, strand, at),
        }
    }
    fn adds(&self, call: &Call, _: u32, receipt: u32) -> bool {
        receipt < call.ranks - 1
    }
}

/// Step `at` of `rank` in one ring: a send and a receipt by turns.
fn around(call: &Call, rank: u32, strand: u32, at: u32) -> Option<Step> {
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
    // What is reduced last is the rank's own piece: the first to leave is the one before it. An
    // all-gather begins with its own.
    let back = u64::from(turn) + lead;
    let count = u64::from(call.ranks);
    let piece = |back: u64| call.pieces().len(u64::from(rank) + 2 * count - back);
    Some(match at % 2 {
        0 => {
            let to = call.ahead(rank, 1);
            Step::Send { to, bytes: piece(back), strand, receipt: turn }
        }
        _ => Step::Receive { from: call.behind(rank, 1), bytes: piece(back + 1) },
    })
}

/// Step `at` of a rank that sends all that it has to the next one.
fn shift(call: &Call, rank: u32, strand: u32, at: u32) -> Option<Step> {
    let bytes = call.bytes;
    match at {
        0 => Some(Step::Send { to: call.ahead(rank, 1), bytes, strand, receipt: 0 }),
        1 => Some(Step::Receive { from: call.behind(rank, 1), bytes }),
        _ => None,
    }
}

impl Ring {
    /// Step `at` of `rank` in a chain, from the root on or towards it: a receipt and a send for
    /// every chunk, without the one at its first and the other at its last rank.
    fn chain(&self, call: &Call, rank: u32, strand: u32, at: u32) -> Option<Step> {
        let last = call.ranks - 1;
        let from_root = call.behind(rank, call.root);
        let (place, ahead) = match call.operation {
            Operation::Broadcast => (from_root, 1),
            _ => (last - from_root, last),
        };
        let (receives, sends) = (place > 0, place < last);
        let steps = u32::from(receives) + u32::from(sends);
        let chunk = at.checked_div(steps)?;
        if chunk >= self.chunks {
            return None;
        }
        let bytes = Pieces::new(call.bytes, self.chunks).len(u64::from(chunk));
        Some(match receives && at.is_multiple_of(steps) {
            true => Step::Receive { from: call.behind(rank, ahead), bytes },
            false => Step::Send { to: call.ahead(rank, ahead), bytes, strand, receipt: chunk },
        })
    }
}
