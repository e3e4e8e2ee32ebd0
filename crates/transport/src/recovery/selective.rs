//! Selective repeat for multipath transports (papers 000 and 001): the receiver keeps packets
//! in any order and acknowledges each; the sender runs a timer for every packet and resends
//! only what timed out. There are no NACKs: under spraying a gap says nothing about a loss.
//!
//! Both halves keep a ring over the packets between the first missing one and the newest.
//! Rings grow by doubling, so their memory follows the reordering that really happens.

use super::{Acknowledged, Arrival, Reply, Sent};
use weft_units::Time;

/// In the ring of send times: acknowledged, and waiting to be sent again.
const ACKED: u64 = u64::MAX;
const LOST: u64 = u64::MAX - 1;

/// Remembers when each outstanding packet left.
#[derive(Clone, Debug)]
pub struct SelectiveSender {
    /// All below are acknowledged.
    acked: u32,
    /// The next to send for the first time.
    next: u32,
    packets: u32,
    /// Out: neither acknowledged nor lost.
    in_flight: u32,
    /// Taken for lost and not yet sent again, none of them below `first_lost`.
    lost: u32,
    first_lost: u32,
    /// Send time in picoseconds, [`ACKED`] or [`LOST`] for the packets from `acked` to
    /// `next`, at their number modulo the ring's length (a power of two).
    ring: Box<[u64]>,
}

impl SelectiveSender {
    pub(super) fn new(packets: u32) -> SelectiveSender {
        let ring = vec![0; first_ring(packets)].into();
        SelectiveSender { acked: 0, next: 0, packets, in_flight: 0, lost: 0, first_lost: 0, ring }
    }
    #[inline(always)]
    fn slot(&self, seq: u32) -> usize {
        seq as usize & (self.ring.len() - 1)
    }
    #[inline(always)]
    pub(super) fn has_work(&self) -> bool {
        self.next < self.packets || self.lost > 0
    }
    #[inline(always)]
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }
    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.acked == self.packets
    }
    #[inline(always)]
    pub(super) fn send(&mut self, now: Time) -> Sent {
        self.in_flight += 1;
        if self.lost > 0 {
            return self.resend(now);
        }
        let seq = self.next;
        if (seq - self.acked) as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot(seq);
        self.ring[slot] = now.0;
        self.next += 1;
        Sent { seq, retransmission: false }
    }
    fn resend(&mut self, now: Time) -> Sent {
        let seq = (self.acked.max(self.first_lost)..self.next)
            .find(|seq| self.ring[self.slot(*seq)] == LOST)
            .expect("a lost packet is in the ring");
        self.lost -= 1;
        self.first_lost = seq + 1;
        let slot = self.slot(seq);
        self.ring[slot] = now.0;
        Sent { seq, retransmission: true }
    }
    fn grow(&mut self) {
        let mut larger = vec![0; self.ring.len() * 2].into_boxed_slice();
        for seq in self.acked..self.next {
            larger[seq as usize & (larger.len() - 1)] = self.ring[self.slot(seq)];
        }
        self.ring = larger;
    }
    #[inline(always)]
    pub(super) fn on_ack(&mut self, _now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        let before = self.in_flight;
        let mut packets = 0;
        if seq >= self.acked && seq < self.next {
            packets += self.mark_acked(seq);
        }
        while self.acked < self.next
            && (self.acked < cumulative || self.ring[self.slot(self.acked)] == ACKED)
        {
            packets += self.mark_acked(self.acked);
            self.acked += 1;
        }
        Acknowledged { packets, in_flight: before }
    }
    #[inline(always)]
    fn mark_acked(&mut self, seq: u32) -> u32 {
        let slot = self.slot(seq);
        match std::mem::replace(&mut self.ring[slot], ACKED) {
            ACKED => return 0,
            LOST => self.lost -= 1,
            _ => self.in_flight -= 1,
        }
        1
    }
    /// Its own receiver sends none; a gap by itself is no reason to send again.
    pub(super) fn on_nack(&mut self, now: Time, cumulative: u32) -> Option<Acknowledged> {
        (cumulative > self.acked).then(|| self.on_ack(now, cumulative - 1, cumulative))
    }
    pub(super) fn deadline(&self, rto: Time) -> Option<Time> {
        let times = (self.acked..self.next).map(|seq| self.ring[self.slot(seq)]);
        let oldest = times.filter(|time| *time < LOST).min()?;
        Some(Time(oldest).saturating_add(rto))
    }
    pub(super) fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        let mut lost = 0;
        for seq in self.acked..self.next {
            let slot = self.slot(seq);
            let sent = self.ring[slot];
            if sent < LOST && Time(sent).saturating_add(rto) <= now {
                self.ring[slot] = LOST;
                lost += 1;
            }
        }
        self.in_flight -= lost;
        self.lost += lost;
        self.first_lost = self.acked;
        lost
    }
}

/// Keeps packets in any order.
#[derive(Clone, Debug)]
pub struct SelectiveReceiver {
    /// All below are here.
    expected: u32,
    packets: u32,
    /// One bit a packet from `expected` on, at its number modulo the ring's bits.
    ring: Box<[u64]>,
}

impl SelectiveReceiver {
    pub(super) fn new(packets: u32) -> SelectiveReceiver {
        SelectiveReceiver { expected: 0, packets, ring: vec![0; 1].into() }
    }
    /// Word and bit of `seq` in a ring of `words`.
    #[inline(always)]
    fn place(words: usize, seq: u32) -> (usize, u64) {
        ((seq as usize / 64) & (words - 1), 1 << (seq % 64))
    }
    #[inline(always)]
    fn has(&self, seq: u32) -> bool {
        let (word, bit) = Self::place(self.ring.len(), seq);
        self.ring[word] & bit != 0
    }
    #[inline(always)]
    pub(super) fn on_data(&mut self, seq: u32) -> Arrival {
        let duplicate = seq < self.expected || self.reorders(seq) && self.has(seq);
        if !duplicate {
            self.accept(seq);
        }
        let reply = Reply::Ack { cumulative: self.expected };
        Arrival { reply, accepted: !duplicate, duplicate }
    }
    /// Whether `seq` is within the ring; a packet beyond it cannot be known.
    #[inline(always)]
    fn reorders(&self, seq: u32) -> bool {
        ((seq - self.expected) as usize) < self.ring.len() * 64
    }
    #[inline(always)]
    fn accept(&mut self, seq: u32) {
        while !self.reorders(seq) {
            self.grow();
        }
        let (word, bit) = Self::place(self.ring.len(), seq);
        self.ring[word] |= bit;
        while self.has(self.expected) {
            let (word, bit) = Self::place(self.ring.len(), self.expected);
            self.ring[word] &= !bit;
            self.expected += 1;
        }
    }
    fn grow(&mut self) {
        let mut larger = vec![0u64; self.ring.len() * 2].into_boxed_slice();
        for seq in self.expected..self.expected + self.ring.len() as u32 * 64 {
            if self.has(seq) {
                let (word, bit) = Self::place(larger.len(), seq);
                larger[word] |= bit;
            }
        }
        self.ring = larger;
    }
    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.expected == self.packets
    }
    pub(super) fn expected(&self) -> u32 {
        self.expected
    }
}

/// The first size of a sender's ring: enough for short messages, a power of two.
fn first_ring(packets: u32) -> usize {
    packets.clamp(1, 16).next_power_of_two() as usize
}
