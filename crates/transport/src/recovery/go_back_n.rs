//! Go-back-N as in RoCE: the receiver keeps nothing out of order, reports gaps and throws away
//! what follows them; the sender rewinds to the gap. A time-out without any send or
//! acknowledgement rewinds too (Ethereal 2025, section 3.3).
//!
//! NICs differ in how often they report and how far they rewind; all of that are options.

use super::{Acknowledged, Arrival, ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf, Sent};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// When receivers report gaps, and what senders make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoBackN {
    /// Where the sender goes on.
    pub rewind: Rewind,
    /// A gap is reported again whenever a packet comes after it; else only once.
    pub repeat: bool,
    /// Nothing is reported for so long after a report: what comes out of order in that time was
    /// sent before the sender can have rewound.
    pub quiet: Time,
}

/// Where a sender goes on after a NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewind {
    /// At the packet that is missing.
    Gap,
    /// At the start of the message (McClure et al. 2025, section 4, offers both).
    Message,
}

impl GoBackN {
    /// Every gap is reported once, and the sender rewinds to it.
    pub const PLAIN: GoBackN = GoBackN { rewind: Rewind::Gap, repeat: false, quiet: Time::ZERO };
}

impl Recovery for GoBackN {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "go-back-n",
        summary: "one NACK a gap, everything sent again from there; nothing kept out of order",
        source: "RoCE; Ethereal (2024, 2025); McClure et al. (2025)",
        keeps_order: false,
        resends_overtaken: true,
        trims: false,
        rateless: false,
        options: &[
            OptionInfo {
                key: "nack_rewind",
                default: "gap",
                kind: OptionKind::Word(&["gap", "message"]),
                meaning: "after a NACK go on at the \"gap\", or at the start of the \"message\"",
            },
            OptionInfo {
                key: "nack_repeat",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "report a gap at every packet that comes after it, not only at the first",
            },
            OptionInfo {
                key: "nack_quiet",
                default: "0s",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "no NACK for so long after one; a round trip, or 10ms as in the code of Ethereal (2025)",
            },
        ],
    };
    type Sender = GoBackNSender;
    type Receiver = GoBackNReceiver;

    fn read(options: &mut Options<'_>) -> Result<GoBackN, OptionError> {
        let words = [("gap", Rewind::Gap), ("message", Rewind::Message)];
        let rewind = options.choice("nack_rewind", &words)?;
        let (repeat, quiet) = (options.flag("nack_repeat")?, options.time("nack_quiet")?);
        Ok(GoBackN { rewind, repeat, quiet })
    }
    fn sender(&self, packets: u32) -> GoBackNSender {
        GoBackNSender { packets, rewind: self.rewind, ..GoBackNSender::done() }
    }
    fn receiver(&self, packets: u32) -> GoBackNReceiver {
        let GoBackN { repeat, quiet, .. } = *self;
        let quiet_until = Time::ZERO;
        GoBackNReceiver { expected: 0, packets, quiet, quiet_until, repeat, reported: false }
    }
}

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
    rewind: Rewind,
}

impl GoBackNSender {
    pub(super) fn done() -> GoBackNSender {
        let (acked, next, fresh, packets) = (0, 0, 0, 0);
        GoBackNSender { acked, next, fresh, packets, active: Time::ZERO, rewind: Rewind::Gap }
    }
    /// Where sending goes on after a report or a time-out.
    fn rewind(&mut self, to: Rewind) {
        self.next = match to {
            Rewind::Gap => self.acked,
            Rewind::Message => 0,
        };
    }
}

impl SendHalf for GoBackNSender {
    #[inline(always)]
    fn has_work(&self) -> bool {
        self.next < self.packets
    }
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        // After a rewind to the start, what is sent has been acknowledged before.
        self.next.saturating_sub(self.acked)
    }
    fn arrived(&self) -> u32 {
        self.acked
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.acked == self.packets
    }
    fn peek(&self) -> u32 {
        self.next
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        let seq = self.next;
        self.next += 1;
        let retransmission = seq < self.fresh;
        self.fresh = self.fresh.max(self.next);
        self.active = now;
        Sent { seq, retransmission }
    }
    #[inline(always)]
    fn on_ack(&mut self, now: Time, _: u32, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight();
        let packets = cumulative.saturating_sub(self.acked);
        self.acked += packets;
        if self.rewind == Rewind::Gap || self.is_done() {
            // After a rewind, packets that were out before it may still be acknowledged.
            self.next = self.next.max(self.acked);
        }
        self.active = now;
        Acknowledged { packets, in_flight, lost: 0 }
    }
    fn on_nack(&mut self, now: Time, seq: u32, cumulative: u32) -> Option<Acknowledged> {
        if cumulative < self.acked {
            return None;
        }
        let learnt = self.on_ack(now, seq, cumulative);
        self.rewind(self.rewind);
        Some(learnt)
    }
    fn deadline(&self, rto: Time) -> Option<Time> {
        (self.next > self.acked).then(|| self.active.saturating_add(rto))
    }
    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        if self.deadline(rto).is_none_or(|deadline| deadline > now) {
            return 0;
        }
        let lost = self.in_flight();
        self.rewind(Rewind::Gap);
        self.active = now;
        lost
    }
}

/// Accepts the expected packet only.
#[derive(Clone, Debug)]
pub struct GoBackNReceiver {
    expected: u32,
    packets: u32,
    quiet: Time,
    /// No report before.
    quiet_until: Time,
    repeat: bool,
    /// The present gap has been reported.
    reported: bool,
}

impl GoBackNReceiver {
    #[cold]
    fn gap(&mut self, now: Time) -> Arrival {
        let silent = self.reported && !self.repeat || now < self.quiet_until;
        let reply = if silent {
            Reply::None
        } else {
            self.reported = true;
            self.quiet_until = now.saturating_add(self.quiet);
            Reply::Nack { cumulative: self.expected }
        };
        Arrival { reply, accepted: false, duplicate: false }
    }
}

impl ReceiveHalf for GoBackNReceiver {
    #[inline(always)]
    fn on_data(&mut self, now: Time, seq: u32) -> Arrival {
        if seq > self.expected {
            return self.gap(now);
        }
        let accepted = seq == self.expected;
        if accepted {
            self.expected += 1;
            self.reported = false;
        }
        let reply = Reply::Ack { cumulative: self.expected };
        Arrival { reply, accepted, duplicate: !accepted }
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.expected == self.packets
    }
    fn expected(&self) -> u32 {
        self.expected
    }
}
