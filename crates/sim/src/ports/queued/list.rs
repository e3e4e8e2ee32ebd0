//! The packets that wait in the queues of a partition: lists in one pool.
//!
//! A place that is given back is the next to be used, so that all queues together need as much
//! memory as packets wait at once, and the part in use stays in the cache.

use crate::packet::{Packed, Packet};
use crate::partition::OutPort;

/// A packet that waits, beside the port that it came in by (the NIC itself at a host, or a
/// number that stands for none).
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry(Packed);

impl Entry {
    #[inline(always)]
    pub(super) fn new(packet: Packet, ingress: OutPort) -> Entry {
        Entry(Packed::new(packet, ingress.0))
    }
    #[inline(always)]
    pub(super) fn packet(self) -> Packet {
        self.0.packet()
    }
    #[inline(always)]
    pub(super) fn ingress(self) -> OutPort {
        OutPort(self.0.beside())
    }
}

/// A first-in first-out queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl Fifo {
    pub(super) const EMPTY: Fifo = Fifo { first: NONE, last: NONE };

    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }
}

/// The entries of all lanes.
#[derive(Debug)]
pub(super) struct Waiting {
    entries: Vec<Entry>,
    /// The entry behind each, in the same lane or among the free. Apart, since a lane grows at
    /// an entry that has long left the cache.
    next: Vec<u32>,
    free: u32,
}

impl Waiting {
    pub(super) fn new() -> Waiting {
        Waiting { entries: Vec::new(), next: Vec::new(), free: NONE }
    }

    /// Adds `entry` at the end of `lane`.
    #[inline(always)]
    pub(super) fn push(&mut self, lane: &mut Fifo, entry: Entry) {
        let at = self.take(entry);
        match lane.is_empty() {
            true => lane.first = at,
            false => self.next[lane.last as usize] = at,
        }
        lane.last = at;
    }

    /// The entries of `lane`, the first one first.
    pub(super) fn iter(&self, lane: Fifo) -> impl Iterator<Item = Entry> {
        let mut at = lane.first;
        std::iter::from_fn(move || {
            let entry = self.entries.get(at as usize)?;
            at = self.next[at as usize];
            Some(*entry)
        })
    }
    /// The last entry of `lane`.
    pub(super) fn last(&self, lane: Fifo) -> Option<Entry> {
        (!lane.is_empty()).then(|| self.entries[lane.last as usize])
    }
    /// Puts `entry` into the place of the last of `lane`, which is not empty.
    pub(super) fn replace_last(&mut self, lane: Fifo, entry: Entry) {
        self.entries[lane.last as usize] = entry;
    }

    /// Takes the first entry of `lane`.
    #[inline(always)]
    pub(super) fn pop(&mut self, lane: &mut Fifo) -> Option<Entry> {
        if lane.is_empty() {
            return None;
        }
        let at = lane.first as usize;
        lane.first = std::mem::replace(&mut self.next[at], self.free);
        self.free = at as u32;
        Some(self.entries[at])
    }

    /// A place with `entry` and nothing behind it.
    #[inline(always)]
    fn take(&mut self, entry: Entry) -> u32 {
        let at = self.free;
        if at == NONE {
            self.entries.push(entry);
            self.next.push(NONE);
            return self.next.len() as u32 - 1;
        }
        self.free = std::mem::replace(&mut self.next[at as usize], NONE);
        self.entries[at as usize] = entry;
        at
    }
}
