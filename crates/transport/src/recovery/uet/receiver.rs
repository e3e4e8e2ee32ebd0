//! The receiving half: keeps packets in any order, and says so every now and then.

use crate::recovery::selective::Marks;
use crate::recovery::{Arrival, Carried, ReceiveHalf, Reply, Report};
use weft_units::Time;

/// Keeps packets in any order, and acknowledges several at once.
#[derive(Clone, Debug)]
pub struct UetReceiver {
    /// All below are here.
    expected: u32,
    packets: u32,
    /// What is here after `expected`.
    early: Marks,
    /// Packets that are here.
    received: u32,
    /// Bytes that have come since the last acknowledgement.
    pending: u32,
    /// As [`super::Uet::threshold`].
    threshold: u32,
    /// The sender has asked for an acknowledgement, and gets another when nothing is missing.
    asked: bool,
    /// It has asked for an acknowledgement of each of so many packets that come.
    following: u32,
    came: u32,
    answers: u32,
}

impl UetReceiver {
    pub(super) fn new(packets: u32, threshold: u32) -> UetReceiver {
        UetReceiver {
            expected: 0,
            packets,
            early: Marks::EMPTY,
            received: 0,
            pending: 0,
            threshold,
            asked: false,
            following: 0,
            came: 0,
            answers: 0,
        }
    }
    fn out_of_order(&self) -> u32 {
        self.received - self.expected
    }
    fn had(&self, seq: u32) -> bool {
        seq < self.expected || self.early.contains(self.expected, seq)
    }
}

impl ReceiveHalf for UetReceiver {
    fn on_data(&mut self, now: Time, seq: u32) -> Arrival {
        self.on_packet(now, seq, Carried::default())
    }
    #[inline]
    fn on_packet(&mut self, _: Time, seq: u32, carried: Carried) -> Arrival {
        self.came += 1;
        let accepted = seq >= self.expected && self.early.insert(self.expected, seq);
        let is_first = self.received == 0;
        let is_asked = carried.asks || self.following > 0;
        self.following = self.following.saturating_sub(1);
        let mut is_due = !accepted || carried.marked || is_asked || is_first;
        if accepted {
            self.received += 1;
            self.expected += self.early.take_run(self.expected);
            self.pending += u32::from(carried.bytes);
            is_due |= self.pending >= self.threshold;
        }
        if self.out_of_order() == 0 {
            is_due |= std::mem::take(&mut self.asked);
        } else {
            self.asked |= carried.asks;
        }
        let reply = match is_due {
            true => {
                self.pending = 0;
                Reply::Ack { cumulative: self.expected }
            }
            false => Reply::None,
        };
        if self.is_done() {
            self.early = Marks::EMPTY;
        }
        Arrival { reply, accepted, duplicate: !accepted }
    }
    fn on_trimmed(&mut self, _: Time, seq: u32) -> Arrival {
        self.came += 1;
        let cumulative = self.expected;
        let reply = match self.had(seq) {
            true => Reply::Ack { cumulative },
            false => Reply::Nack { cumulative },
        };
        Arrival { reply, accepted: false, duplicate: false }
    }
    fn report(&mut self, seq: u32, exact: bool) -> Report {
        self.answers += 1;
        let usual = seq.saturating_sub(u64::BITS - 1).max(self.expected + 1);
        let base = if exact { seq.max(self.expected) } else { usual };
        let bits = self.early.bits(self.expected, base);
        let (cumulative, out_of_order) = (self.expected, self.out_of_order());
        let UetReceiver { received, came, answers, .. } = *self;
        Report { cumulative, base, bits, received, out_of_order, came, answers }
    }
    fn on_request(&mut self, following: u32) {
        self.came += 1;
        self.pending = 0;
        self.following = self.following.max(following);
    }
    fn on_pull(&mut self) {
        self.answers += 1;
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.expected == self.packets
    }
    fn expected(&self) -> u32 {
        self.expected
    }
}
