//! Recursive halving and doubling: partners at distances 1, 2, 4, ...
//!
//! With the first partner a rank exchanges half of the buffer and reduces it, with the next one a
//! quarter, until each has a part of its own; then the same backwards, with results. Parts lie in
//! the buffer in the order of their ranks' bits read backwards, so that what is exchanged lies
//! together. Source: Thakur, Rabenseifner and Gropp (2005).

use super::{Builder, Combine, chunks};
use crate::memory::Span;

/// All-reduce, in place, of a power of two of ranks.
pub(super) fn all_reduce(b: &mut Builder) {
    let levels = b.ranks.trailing_zeros();
    let lens = b.parts(b.output(0).len);
    // Where a part is, and where parts begin, by place.
    let place = |part: u32| part.reverse_bits().checked_shr(32 - levels).unwrap_or(0) as usize;
    let mut at = vec![0; lens.len() + 1];
    for (part, len) in lens.iter().enumerate() {
        at[place(part as u32) + 1] = *len;
    }
    for place in 1..at.len() {
        at[place] += at[place - 1];
    }
    let whole = b.output(0);
    // Parts of the ranks whose lowest bits, so many, are those of `rank`.
    let alike = |rank: u32, bits: u32| {
        let many = 1usize << (levels - bits);
        let first = place(rank) / many * many;
        Span { start: at[first], len: at[first + many] - at[first], ..whole }
    };
    for level in 0..levels {
        let partner = b.rank ^ (1 << level);
        for part in chunks(alike(partner, level + 1), b.chunk) {
            b.send(partner, part);
        }
        for part in chunks(alike(b.rank, level + 1), b.chunk) {
            let room = b.slot(part.len);
            let then = Combine { from: room, into: part, is_last: level + 1 == levels };
            b.reduce(partner, room, then);
        }
    }
    for level in (0..levels).rev() {
        let partner = b.rank ^ (1 << level);
        for part in chunks(alike(b.rank, level + 1), b.chunk) {
            b.send(partner, part);
        }
        for part in chunks(alike(partner, level + 1), b.chunk) {
            b.receive(partner, part);
        }
    }
}
