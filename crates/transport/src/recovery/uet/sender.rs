//! The sending half: what reports say is here leaves the window; what NACKs, time-outs and SLEEK say is
//! not leaves again, before anything new.

use super::probing::Probing;
use crate::recovery::selective::SelectiveSender;
use crate::recovery::{Acknowledged, Report, SendHalf, Sent};
use weft_units::Time;

/// Knows of each packet whether it is acknowledged, out, or to be sent again.
#[derive(Clone, Debug)]
pub struct UetSender {
    packets: SelectiveSender,
    /// As the latest report had it.
    received: u32,
    /// Packets that have left, less those that arrived, that were trimmed, and that timed out. The bitmap
    /// may lag behind the count of what arrived, so that this is less than what is not acknowledged;
    /// by packets that were sent again in vain it may be below zero.
    out: i32,
    /// SLEEK is on.
    sleek: bool,
    /// All below are sent again if they are missing.
    recover: u32,
    /// All below have been looked at in this recovery.
    looked: u32,
    /// Packets of any kind that left, and answers that came.
    left: u32,
    heard: u32,
    /// What the receiver says that came, and that left there.
    came: u32,
    answers: u32,
    probing: Probing,
}

impl UetSender {
    pub(super) fn new(packets: u32, sleek: bool) -> UetSender {
        let packets = SelectiveSender::new(packets);
        UetSender {
            packets,
            received: 0,
            out: 0,
            sleek,
            recover: 0,
            looked: 0,
            left: 0,
            heard: 0,
            came: 0,
            answers: 0,
            probing: Probing::IDLE,
        }
    }

    /// SLEEK (UEC htsim; after STrack): once `out_of_order` packets are beyond what a window and a half
    /// holds, all that is missing below the highest that had left is sent again, once.
    fn sleek(&mut self, report: &Report, window: Window) {
        let acked = self.packets.acked();
        if acked >= self.recover {
            self.recover = 0;
        }
        let threshold = (window.now + window.now / 2).min(window.most).max(LEAST_OVERTAKEN);
        if self.recover == 0 && report.out_of_order >= threshold && !self.packets.has_lost() {
            self.start_recovery();
        }
        self.go_on(window);
    }
    fn go_on(&mut self, window: Window) {
        let acked = self.packets.acked();
        if self.recover > 0 {
            let end = self.recover.min(acked.saturating_add(window.now));
            for seq in self.looked.max(acked)..end {
                self.out -= i32::from(self.packets.lose(seq));
            }
            self.looked = self.looked.max(end);
        }
    }
    fn start_recovery(&mut self) {
        (self.recover, self.looked) = (self.packets.next(), self.packets.acked());
    }
}

/// SLEEK never takes less reordering for loss.
const LEAST_OVERTAKEN: u32 = 5;

/// What congestion control lets out, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Now.
    pub now: u32,
    /// At most.
    pub most: u32,
}

impl SendHalf for UetSender {
    #[inline(always)]
    fn has_work(&self) -> bool {
        self.packets.has_work()
    }
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        self.out.max(0) as u32
    }
    fn arrived(&self) -> u32 {
        self.received
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.packets.is_done()
    }
    fn each_lost(&self, see: &mut dyn FnMut(u32)) {
        self.packets.each_lost(see);
    }
    fn backlog(&self) -> u32 {
        self.packets.backlog()
    }

    fn peek(&self) -> u32 {
        self.packets.peek()
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        self.out += 1;
        self.left += 1;
        self.packets.send(now)
    }

    fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight();
        let learnt = self.packets.on_ack(now, seq, cumulative);
        self.received += learnt.packets;
        self.out -= learnt.packets as i32;
        Acknowledged { in_flight, ..learnt }
    }
    fn on_report(&mut self, now: Time, report: &Report, window: Window) -> Acknowledged {
        let in_flight = self.in_flight();
        let packets = report.received.saturating_sub(self.received);
        self.received += packets;
        self.out -= packets as i32;
        if report.cumulative > 0 {
            self.packets.on_ack(now, report.cumulative - 1, report.cumulative);
        }
        let mut bits = report.bits;
        while bits != 0 {
            let seq = report.base + bits.trailing_zeros();
            self.packets.on_ack(now, seq, 0);
            bits &= bits - 1;
        }
        if self.sleek {
            self.sleek(report, window);
        }
        Acknowledged { packets, in_flight, lost: 0 }
    }
    fn hear(&mut self, report: Option<&Report>) {
        self.heard += 1;
        if let Some(report) = report {
            self.came = self.came.max(report.came);
            self.answers = self.answers.max(report.answers);
        }
    }
    fn on_request(&mut self) {
        self.left += 1;
    }
    fn probing(&mut self) -> Option<&mut Probing> {
        self.sleek.then_some(&mut self.probing)
    }
    fn has_left(&self) -> bool {
        self.packets.has_left()
    }
    fn on_quick_probe(&mut self, window: Window) {
        self.start_recovery();
        self.go_on(window);
    }
    /// What SLEEK sends again does not wait for the window.
    #[inline(always)]
    fn has_work_below(&self, window: u32) -> bool {
        let is_open = self.in_flight() < window || self.recover > 0 && self.packets.has_lost();
        self.has_work() && is_open
    }
    fn is_quiet(&self) -> bool {
        self.is_done() && self.left == self.came && self.heard == self.answers
    }
    fn on_nack(&mut self, _: Time, seq: u32, _: u32) -> Option<Acknowledged> {
        let in_flight = self.in_flight();
        self.packets.lose(seq).then(|| {
            self.out -= 1;
            Acknowledged { packets: 0, in_flight, lost: 0 }
        })
    }

    fn deadline(&self, rto: Time) -> Option<Time> {
        self.packets.deadline(rto)
    }
    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        let lost = self.packets.on_timer(now, rto);
        self.out -= lost as i32;
        lost
    }
}
