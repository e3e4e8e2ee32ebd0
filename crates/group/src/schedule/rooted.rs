//! Gather, scatter and barrier.
//!
//! They share no steps with the simulator, which has none of the three: a gather and a scatter are one
//! message for each rank, and a barrier moves no data.
//!
//! All messages of a rank are under way at once, whole, so that a load balancer sees all of them
//! when it spreads them.

use super::{Action, Builder};
use crate::memory::Span;

/// Gather.
pub(super) fn gather(b: &mut Builder, root: u32) {
    if b.rank != root {
        return b.send(root, b.input(0));
    }
    b.copy(b.input(0), b.output(root));
    for distance in 1..b.ranks {
        let from = b.ahead(distance);
        b.receive(from, b.output(from));
    }
}

/// Scatter.
pub(super) fn scatter(b: &mut Builder, root: u32) {
    if b.rank != root {
        return b.receive(root, b.output(0));
    }
    b.copy(b.input(root), b.output(0));
    for distance in 1..b.ranks {
        let to = b.ahead(distance);
        b.send(to, b.input(to));
    }
}

/// Barrier: word to the rank 1, 2, 4, ... ahead, each time after the word from as far behind.
/// Source: Hensgen, Finkel and Manber (1988), dissemination.
pub(super) fn barrier(b: &mut Builder) {
    let words = b.slot(32);
    let first = Span { len: 1, ..words };
    let (mut round, mut distance) = (0, 1);
    while distance < b.ranks {
        // It waits for all words that have come so far.
        let seen = Span { len: 1 + round, ..words };
        let to = b.ahead(distance);
        b.add(Action::Send { to, from: first }, &[seen], &[]);
        b.receive(b.behind(distance), Span { start: words.start + 1 + round, ..first });
        round += 1;
        distance = distance.saturating_mul(2);
    }
}
