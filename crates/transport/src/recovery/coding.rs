//! Rateless erasure coding (McClure et al. 2025, sections 4 to 6): every packet is a new symbol of the
//! message, and any so many of them are the message. The sender sends symbols until it hears
//! that enough have arrived; no packet is ever sent again, and order does not matter.
//!
//! The ideal code needs as many symbols as the message has packets; a real one some more. The
//! time to encode and decode is not modelled.

use super::{Acknowledged, Arrival, ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf, Sent};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// How many symbols make a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coding {
    /// Symbols needed beyond the message's packets, as a share of these, rounded up.
    pub overhead: f64,
    /// And so many more.
    pub extra: u32,
}

impl Coding {
    /// Symbols that a message of `packets` packets needs.
    pub fn symbols(&self, packets: u32) -> u32 {
        // A share such as 0.05 is not exact in binary: what is above a whole number by no more
        // than that is that number.
        let beyond = f64::from(packets) * self.overhead;
        let whole = beyond as u32;
        let up = u32::from(beyond - f64::from(whole) > 1e-6);
        packets.saturating_add(whole + up).saturating_add(self.extra)
    }
}

impl Recovery for Coding {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "coding",
        summary: "rateless erasure code: new symbols until enough have arrived, none sent again",
        source: "McClure et al. (2025), sections 4 to 6",
        keeps_order: true,
        resends_overtaken: false,
        trims: false,
        rateless: true,
        options: &[
            OptionInfo {
                key: "coding_overhead",
                default: "0",
                kind: OptionKind::Number(0.0, 10.0),
                meaning: "symbols needed beyond the packets of the message, as a share of these",
            },
            OptionInfo {
                key: "coding_extra",
                default: "0",
                kind: OptionKind::Whole(0, 1_000_000),
                meaning: "symbols needed beyond that, whatever the message",
            },
        ],
    };
    type Sender = CodingSender;
    type Receiver = CodingReceiver;

    fn read(options: &mut Options<'_>) -> Result<Coding, OptionError> {
        let overhead = options.fraction("coding_overhead")?;
        Ok(Coding { overhead, extra: options.number("coding_extra")? })
    }
    fn sender(&self, packets: u32) -> CodingSender {
        CodingSender {
            next: 0,
            here: 0,
            forgotten: 0,
            horizon: 0,
            needed: self.symbols(packets),
            active: Time::ZERO,
        }
    }
    fn receiver(&self, packets: u32) -> CodingReceiver {
        CodingReceiver { here: 0, needed: self.symbols(packets), packets }
    }
}

/// Sends symbols until enough have arrived.
#[derive(Clone, Debug)]
pub struct CodingSender {
    /// The next symbol.
    next: u32,
    /// The receiver has so many, as far as is known.
    here: u32,
    /// Symbols that nothing was heard of for a time-out.
    forgotten: u32,
    /// They are among those below.
    horizon: u32,
    needed: u32,
    /// The last acknowledgement, or the first send after none was out: the time-out counts from
    /// there. There is always something to send, which is no sign of life.
    active: Time,
}

impl SendHalf for CodingSender {
    #[inline(always)]
    fn has_work(&self) -> bool {
        self.here < self.needed
    }
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        // Less than nothing if an answer stands for older ones, which were lost.
        self.next.saturating_sub(self.here + self.forgotten)
    }
    fn arrived(&self) -> u32 {
        self.here
    }
    fn beyond(&self) -> u32 {
        self.next.saturating_sub(self.needed)
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.here >= self.needed
    }
    fn peek(&self) -> u32 {
        self.next
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        if self.in_flight() == 0 {
            self.active = now;
        }
        let seq = self.next;
        self.next += 1;
        Sent { seq, retransmission: false }
    }
    #[inline(always)]
    fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight();
        let packets = cumulative.saturating_sub(self.here);
        self.here += packets;
        if seq < self.horizon {
            // What was forgotten arrives all the same.
            self.forgotten = self.forgotten.saturating_sub(packets);
        }
        self.active = now;
        Acknowledged { packets, in_flight, lost: 0 }
    }
    /// Whatever is missing, another symbol is as good.
    fn on_nack(&mut self, _: Time, _: u32, _: u32) -> Option<Acknowledged> {
        None
    }
    fn deadline(&self, rto: Time) -> Option<Time> {
        (self.in_flight() > 0).then(|| self.active.saturating_add(rto))
    }
    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        if self.deadline(rto).is_none_or(|deadline| deadline > now) {
            return 0;
        }
        let lost = self.in_flight();
        self.forgotten += lost;
        self.horizon = self.next;
        self.active = now;
        lost
    }
}

/// Counts symbols.
#[derive(Clone, Debug)]
pub struct CodingReceiver {
    here: u32,
    needed: u32,
    packets: u32,
}

impl ReceiveHalf for CodingReceiver {
    #[inline(always)]
    fn on_data(&mut self, _: Time, _: u32) -> Arrival {
        let accepted = self.here < self.needed;
        self.here += u32::from(accepted);
        Arrival { reply: Reply::Ack { cumulative: self.here }, accepted, duplicate: false }
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.here == self.needed
    }
    fn expected(&self) -> u32 {
        self.here.min(self.packets)
    }
}
