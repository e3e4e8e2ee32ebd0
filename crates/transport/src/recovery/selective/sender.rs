//! The sending half: runs a timer for every packet, and resends what timed out.
//!
//! Time does not run backwards, so packets that leave for the first time are in the order of
//! their send times: a ring of times in the order of numbers is a queue of timers too. A
//! packet that has timed out, or was reported lost, leaves that queue for [`Late`], which has one
//! of its own.

use super::late::Late;
use super::marks::Marks;
use crate::recovery::{Acknowledged, SendHalf, Sent};
use weft_units::Time;

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
    /// What is acknowledged after `acked`; beside it what timed out or was reported lost, if anything was.
    early: Marks<Late>,
    /// Send times of the packets from [`SelectiveSender::fresh`] to `next`, in picoseconds, at
    /// their number modulo the ring's length (zero or a power of two).
    times: Box<[u64]>,
}

impl SelectiveSender {
    pub(in crate::recovery) fn new(packets: u32) -> SelectiveSender {
        let (early, times) = (Marks::EMPTY, Box::default());
        SelectiveSender { acked: 0, next: 0, packets, in_flight: 0, early, times }
    }
    #[inline(always)]
    fn late(&self) -> Option<&Late> {
        self.early.beside()
    }
    /// The first packet that may be out for the first time.
    #[inline(always)]
    fn fresh(&self) -> u32 {
        self.late().map_or(self.acked, |late| late.below.max(self.acked))
    }
    #[inline(always)]
    fn time(&self, seq: u32) -> Time {
        Time(self.times[seq as usize & (self.times.len() - 1)])
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.packets.min(FIRST_TIMES).next_power_of_two() as usize;
        let mut larger = vec![0; first.max(self.times.len() * 2)].into_boxed_slice();
        for seq in self.fresh()..self.next {
            larger[seq as usize & (larger.len() - 1)] = self.time(seq).0;
        }
        self.times = larger;
    }

    /// Takes for lost what left for the first time and `is_due`; returns how many those were.
    fn expire_fresh(&self, late: &mut Late, is_due: impl Fn(Time) -> bool) -> u32 {
        let mut expired = 0;
        late.below = self.first_timed(late, late.below.max(self.acked));
        while late.below < self.next && is_due(self.time(late.below)) {
            late.lose(late.below);
            late.below = self.first_timed(late, late.below + 1);
            expired += 1;
        }
        expired
    }
    /// All below are acknowledged.
    pub(in crate::recovery) fn acked(&self) -> u32 {
        self.acked
    }
    /// Whether every packet has left once.
    pub(in crate::recovery) fn has_left(&self) -> bool {
        self.next == self.packets
    }
    /// The next to send for the first time.
    pub(in crate::recovery) fn next(&self) -> u32 {
        self.next
    }
    /// Whether something waits to be sent again.
    pub(in crate::recovery) fn has_lost(&self) -> bool {
        self.late().is_some_and(|late| late.waiting() > 0)
    }
    /// Takes `seq` for lost if it is out; returns whether it was.
    pub(in crate::recovery) fn lose(&mut self, seq: u32) -> bool {
        if seq >= self.next || !self.is_missing(seq) {
            return false;
        }
        // What is neither lost nor resent is out for the first time.
        let is_out = self.early.beside_or_default().lose(seq);
        self.in_flight -= u32::from(is_out);
        is_out
    }

    /// Whether `seq` is taken for lost, or was, and has been sent again.
    pub(in crate::recovery) fn was_lost(&self, seq: u32) -> bool {
        self.late().is_some_and(|late| late.knows(seq))
    }
    /// As [`Late::acknowledge`]. Once nothing is late any more, the flow is as cheap as one that
    /// never lost anything.
    #[cold]
    fn acknowledge_late(&mut self, seq: u32) -> u32 {
        let Some(late) = self.early.beside_mut() else {
            return 0;
        };
        let lost = late.acknowledge(seq, self.acked);
        if late.is_over(self.acked) {
            self.early.take_beside();
        }
        lost
    }

    /// Whether `seq` has not been acknowledged.
    fn is_missing(&self, seq: u32) -> bool {
        seq >= self.acked && !self.early.contains(self.acked, seq)
    }
    /// The first packet from `seq` on that has not been acknowledged.
    fn first_missing(&self, seq: u32) -> u32 {
        seq + self.early.run(self.acked, seq)
    }
    /// The first packet from `seq` on that is out for the first time, or is yet to leave.
    fn first_timed(&self, late: &Late, seq: u32) -> u32 {
        let mut at = self.first_missing(seq);
        while late.knows(at) {
            at = self.first_missing(at + 1);
        }
        at
    }
}

impl SendHalf for SelectiveSender {
    #[inline(always)]
    fn has_work(&self) -> bool {
        self.next < self.packets || self.has_lost()
    }
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        self.in_flight
    }
    fn arrived(&self) -> u32 {
        self.acked
    }
    fn each_lost(&self, see: &mut dyn FnMut(u32)) {
        self.late().iter().flat_map(|late| late.each_waiting()).for_each(see);
    }
    fn backlog(&self) -> u32 {
        self.packets - self.next + self.late().map_or(0, Late::waiting)
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.acked == self.packets
    }

    fn peek(&self) -> u32 {
        self.late().and_then(|late| late.each_waiting().next()).unwrap_or(self.next)
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        self.in_flight += 1;
        if let Some(late) = self.early.beside_mut()
            && let Some(seq) = late.resend(now)
        {
            return Sent { seq, retransmission: true };
        }
        let seq = self.next;
        if (seq - self.fresh()) as usize == self.times.len() {
            self.grow();
        }
        let slot = seq as usize & (self.times.len() - 1);
        self.times[slot] = now.0;
        self.next += 1;
        Sent { seq, retransmission: false }
    }

    #[inline(always)]
    fn on_ack(&mut self, _: Time, seq: u32, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight;
        let mut packets = 0;
        if seq >= self.acked && seq < self.next {
            packets += u32::from(self.early.insert(self.acked, seq));
        }
        self.acked += self.early.take_run(self.acked);
        // Answers to packets below `cumulative` have been overtaken or lost.
        while self.acked < cumulative.min(self.next) {
            packets += 1;
            self.acked += 1 + self.early.take_run(self.acked + 1);
        }
        let lost = if self.late().is_some() { self.acknowledge_late(seq) } else { 0 };
        self.in_flight -= packets - lost;
        Acknowledged { packets, in_flight, lost: 0 }
    }

    /// A switch cut off the payload of `seq`: a gap by itself would be no reason to send again.
    fn on_nack(&mut self, now: Time, seq: u32, cumulative: u32) -> Option<Acknowledged> {
        let in_flight = self.in_flight;
        let packets = match cumulative > self.acked {
            true => self.on_ack(now, cumulative - 1, cumulative).packets,
            false => 0,
        };
        let is_news = self.lose(seq) || packets > 0;
        is_news.then_some(Acknowledged { packets, in_flight, lost: 0 })
    }

    fn deadline(&self, rto: Time) -> Option<Time> {
        let seq = match self.late() {
            None => self.first_missing(self.acked),
            Some(late) => self.first_timed(late, self.fresh()),
        };
        let fresh = (seq < self.next).then(|| self.time(seq));
        let resent = self.late().and_then(Late::oldest);
        Some(fresh.into_iter().chain(resent).min()?.saturating_add(rto))
    }

    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        if self.late().is_none() && self.deadline(rto).is_none_or(|deadline| deadline > now) {
            return 0;
        }
        let is_due = |sent: Time| sent.saturating_add(rto) <= now;
        let mut late = self.early.take_beside().unwrap_or_default();
        let lost = self.expire_fresh(&mut late, is_due) + late.expire(is_due);
        self.in_flight -= lost;
        if !late.is_over(self.acked) {
            *self.early.beside_or_default() = late;
        }
        lost
    }
}

/// The first size of the ring of times, a power of two: enough for short messages.
const FIRST_TIMES: u32 = 16;
