//! Stop and wait: some packets, then nothing until all of them are acknowledged.

use super::{Acknowledged, Arrival, ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf, Sent};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// What the recovery is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopAndWait {
    /// Packets that leave together.
    pub batch: u32,
}

impl Recovery for StopAndWait {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "stop-and-wait",
        summary: "some packets, then nothing until all of them are acknowledged",
        source: "Weft's guide to new recoveries",
        keeps_order: false,
        resends_overtaken: true,
        trims: false,
        rateless: false,
        options: &[OptionInfo {
            key: "wait_batch",
            default: "8",
            kind: OptionKind::Whole(1, 1 << 16),
            meaning: "packets that leave before the sender waits",
        }],
    };
    type Sender = Batches;
    type Receiver = InOrder;

    fn read(options: &mut Options<'_>) -> Result<StopAndWait, OptionError> {
        Ok(StopAndWait { batch: options.number("wait_batch")? })
    }
    fn sender(&self, packets: u32) -> Batches {
        let (batch, active) = (self.batch, Time::ZERO);
        Batches { acked: 0, next: 0, fresh: 0, end: batch.min(packets), batch, packets, active }
    }
    fn receiver(&self, packets: u32) -> InOrder {
        InOrder { expected: 0, packets }
    }
}

/// The sender: packets from `acked` to `end` are its batch.
#[derive(Clone, Debug)]
pub struct Batches {
    /// All below are acknowledged.
    acked: u32,
    /// The next to send.
    next: u32,
    /// All below have left at least once.
    fresh: u32,
    end: u32,
    batch: u32,
    packets: u32,
    /// The last send or acknowledgement: the time-out counts from there.
    active: Time,
}

impl SendHalf for Batches {
    fn has_work(&self) -> bool {
        self.next < self.end
    }
    fn in_flight(&self) -> u32 {
        self.next - self.acked
    }
    fn is_done(&self) -> bool {
        self.acked == self.packets
    }
    fn peek(&self) -> u32 {
        self.next
    }
    fn send(&mut self, now: Time) -> Sent {
        let seq = self.next;
        let retransmission = seq < self.fresh;
        self.next += 1;
        self.fresh = self.fresh.max(self.next);
        self.active = now;
        Sent { seq, retransmission }
    }
    fn on_ack(&mut self, now: Time, _: u32, cumulative: u32) -> Acknowledged {
        let in_flight = self.in_flight();
        let packets = cumulative.saturating_sub(self.acked);
        self.acked += packets;
        // What was out before a time-out may be acknowledged after it.
        self.next = self.next.max(self.acked);
        if self.acked == self.end {
            self.end = self.packets.min(self.end + self.batch);
        }
        self.active = now;
        Acknowledged { packets, in_flight, lost: 0 }
    }
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
        self.next = self.acked;
        lost
    }
}

/// The receiver: keeps nothing out of order, and acknowledges whatever comes.
#[derive(Clone, Debug)]
pub struct InOrder {
    expected: u32,
    packets: u32,
}

impl ReceiveHalf for InOrder {
    fn on_data(&mut self, _: Time, seq: u32) -> Arrival {
        let (accepted, duplicate) = (seq == self.expected, seq < self.expected);
        self.expected += u32::from(accepted);
        Arrival { reply: Reply::Ack { cumulative: self.expected }, accepted, duplicate }
    }
    fn is_done(&self) -> bool {
        self.expected == self.packets
    }
    fn expected(&self) -> u32 {
        self.expected
    }
}
