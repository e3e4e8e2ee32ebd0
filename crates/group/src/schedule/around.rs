//! Rings: every rank receives from the one before it and sends to the one after it.
//!
//! Reduce-scatter takes n - 1 steps of a part, so does all-gather, and all-reduce is one after the
//! other. Every step is cut into chunks, and a chunk goes on as soon as it has been reduced.
//! Source: Patarasuk and Yuan (2009); NCCL.

use super::{Builder, Combine, SLOTS, chunks};
use crate::memory::Span;

/// All-reduce, in place.
pub(super) fn all_reduce(b: &mut Builder) {
    let whole = b.output(0);
    let mut start = 0;
    let parts: Vec<Span> = b
        .parts(whole.len)
        .into_iter()
        .map(|len| {
            start += len;
            Span { start: start - len, len, ..whole }
        })
        .collect();
    let turns = b.ranks - 1;
    let (next, last) = (b.ahead(1), b.behind(1));
    // What is reduced last is the rank's own part: the first to leave is the one before it.
    for turn in 0..2 * turns {
        for part in chunks(parts[b.behind(turn + 1) as usize], b.chunk) {
            b.send(next, part);
        }
        for part in chunks(parts[b.behind(turn + 2) as usize], b.chunk) {
            if turn < turns {
                let room = b.slot(part.len);
                let then = Combine { from: room, into: part, is_last: turn + 1 == turns };
                b.reduce(last, room, then);
            } else {
                b.receive(last, part);
            }
        }
    }
}

/// All-gather. A rank's input is copied to its output first, and goes out from there.
pub(super) fn all_gather(b: &mut Builder) {
    b.copy(b.input(0), b.output(b.rank));
    let (next, last) = (b.ahead(1), b.behind(1));
    for turn in 0..b.ranks - 1 {
        for part in chunks(b.output(b.behind(turn)), b.chunk) {
            b.send(next, part);
        }
        for part in chunks(b.output(b.behind(turn + 1)), b.chunk) {
            b.receive(last, part);
        }
    }
}

/// Chunks of a part that go round the ring before the next ones: two turns of them have room.
const BLOCK: usize = SLOTS / 2;

/// Reduce-scatter. Inputs stay as they are: what comes in is reduced where it came, and goes on
/// from there.
pub(super) fn reduce_scatter(b: &mut Builder) {
    b.copy(b.input(b.rank), b.output(0));
    let turns = b.ranks - 1;
    let (next, last) = (b.ahead(1), b.behind(1));
    let of = |b: &Builder, part: u32| chunks(b.input(part), b.chunk).collect::<Vec<_>>();
    let longest = (0..b.ranks).map(|part| b.input(part).len.div_ceil(b.chunk)).max().unwrap_or(0);
    for block in (0..longest).step_by(BLOCK) {
        let within = |all: Vec<Span>| all.into_iter().skip(block).take(BLOCK).collect::<Vec<_>>();
        let mut leaving = within(of(b, b.behind(1)));
        for turn in 0..turns {
            for part in leaving {
                b.send(next, part);
            }
            let is_last = turn + 1 == turns;
            let own = match is_last {
                true => chunks(b.output(0), b.chunk).collect(),
                false => of(b, b.behind(turn + 2)),
            };
            leaving = Vec::new();
            for own in within(own) {
                let room = b.slot(own.len);
                let then = match is_last {
                    true => Combine { from: room, into: own, is_last },
                    false => Combine { from: own, into: room, is_last },
                };
                b.reduce(last, room, then);
                leaving.push(room);
            }
        }
    }
}
