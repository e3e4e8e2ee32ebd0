//! Go-back-N as in RoCE: the receiver keeps nothing out of order, reports each gap once and
//! throws away what follows it; the sender rewinds to the gap. A time-out without any send
//! or acknowledgement rewinds too (paper 000, section 3.3).

use super::{Acknowledged, Arrival, Reply, Sent};
use weft_units::Time;

/// Sends in order, from the first packet that is not acknowledged.
#[derive(Clone, Debug)]
pub struct GoBackNSender {
    /// All below are acknowledged.
    acked: u32,
    /// The next to send.
    next: u32,
    /// All below have left at least once.
    fresh: u32,
    packets: u32,
    /// The last send or acknowledgement: the time-out counts from there.
    active: Time,
}

impl GoBackNSender {
    pub(super) fn new(packets: u32) -> GoBackNSender {
        GoBackNSender { acked: 0, next: 0, fresh: 0, packets, active: Time::ZERO }
    }
    #[inline(always)]
    pub(super) fn has_work(&self) -> bool {
        self.next < self.packets
    }
    #[inline(always)]
    pub(super) fn in_flight(&self) -> u32 {
        self.next - self.acked
    }
    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.acked == self.packets
    }
    #[inline(always)]
    pub(super) fn send(&mut self, now: Time) -> Sent {
        let seq = self.next;
        self.next += 1;
        let retransmission = seq < self.fresh;
        self.fresh = self.fresh.max(self.next);
        self.active = now;
        Sent { seq, retransmission }
    }
    #[inline(always)]
    pub(super) fn on_ack(&mut self, now: Time, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight();
        let packets = cumulative.saturating_sub(self.acked);
        self.acked += packets;
        // After a rewind, packets that were out before it may still be acknowledged.
        self.next = self.next.max(self.acked);
        self.active = now;
        Acknowledged { packets, in_flight }
    }
    pub(super) fn on_nack(&mut self, now: Time, cumulative: u32) -> Option<Acknowledged> {
        if cumulative < self.acked {
            return None;
        }
        let learnt = self.on_ack(now, cumulative);
        self.next = self.acked;
        Some(learnt)
    }
    pub(super) fn deadline(&self, rto: Time) -> Option<Time> {
        (self.in_flight() > 0).then(|| self.active.saturating_add(rto))
    }
    pub(super) fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        if self.deadline(rto).is_none_or(|deadline| deadline > now) {
            return 0;
        }
        let lost = self.in_flight();
        self.next = self.acked;
        self.active = now;
        lost
    }
}

/// Accepts the expected packet only.
#[derive(Clone, Debug)]
pub struct GoBackNReceiver {
    expected: u32,
    packets: u32,
    /// The present gap has been reported.
    reported: bool,
}

impl GoBackNReceiver {
    pub(super) fn new(packets: u32) -> GoBackNReceiver {
        GoBackNReceiver { expected: 0, packets, reported: false }
    }
    #[inline(always)]
    pub(super) fn on_data(&mut self, seq: u32) -> Arrival {
        if seq > self.expected {
            return self.gap();
        }
        let accepted = seq == self.expected;
        if accepted {
            self.expected += 1;
            self.reported = false;
        }
        let reply = Reply::Ack { cumulative: self.expected };
        Arrival { reply, accepted, duplicate: !accepted }
    }
    fn gap(&mut self) -> Arrival {
        let reply = match self.reported {
            true => Reply::None,
            false => Reply::Nack { cumulative: self.expected },
        };
        self.reported = true;
        Arrival { reply, accepted: false, duplicate: false }
    }
    #[inline(always)]
    pub(super) fn is_done(&self) -> bool {
        self.expected == self.packets
    }
    pub(super) fn expected(&self) -> u32 {
        self.expected
    }
}
