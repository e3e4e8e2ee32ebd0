//! Chains along the ring, from the root on or towards it, chunk behind chunk.

use super::{Builder, Combine, chunks};

/// Broadcast, in place.
pub(super) fn broadcast(b: &mut Builder, root: u32) {
    let place = b.behind(root);
    let (next, last) = (b.ahead(1), b.behind(1));
    for part in chunks(b.output(0), b.chunk) {
        if place > 0 {
            b.receive(last, part);
        }
        if place + 1 < b.ranks {
            b.send(next, part);
        }
    }
}

/// Reduce, in place at the root. The others' buffers stay: what comes in is reduced where it came.
pub(super) fn reduce(b: &mut Builder, root: u32) {
    // The rank after the root begins.
    let place = b.ranks - 1 - b.behind(root);
    let after = b.behind(1);
    let before = b.ahead(1);
    for part in chunks(b.output(0), b.chunk) {
        let mut leaving = part;
        if place > 0 {
            let room = b.slot(part.len);
            let is_root = b.rank == root;
            let then = match is_root {
                true => Combine { from: room, into: part, is_last: true },
                false => Combine { from: part, into: room, is_last: false },
            };
            b.reduce(before, room, then);
            leaving = room;
        }
        if place + 1 < b.ranks {
            b.send(after, leaving);
        }
    }
}
