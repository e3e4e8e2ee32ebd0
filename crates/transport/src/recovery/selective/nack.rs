//! Selective repeat of RoCE NICs (ConnectX-6 Dx and later; as IRN, Mittal et al., SIGCOMM 2018, without its
//! window): the receiver keeps packets in any order and reports the first missing one, once, as soon as a later one
//! comes; the sender sends that one again, and nothing else. What is not reported times out.
//!
//! A NACK says nothing of the packet that made it leave, which is acknowledged with those before it.
//!
//! On one path a gap is a loss. On several it may be a packet that was overtaken, which then is sent again for
//! nothing.

use super::{SelectiveReceiver, SelectiveSender};
use crate::recovery::{
    Acknowledged, Arrival, ReceiveHalf, Recovery, RecoveryInfo, Reply, SendHalf, Sent,
};
use weft_units::{OptionError, Options, Time};

/// A reorder buffer, and a NACK a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectiveNack;

impl Recovery for SelectiveNack {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "selective-nack",
        summary: "reorder buffer at the receiver, which reports a gap once; that packet is sent again",
        source: "selective repeat of RoCE NICs; IRN (SIGCOMM 2018)",
        keeps_order: true,
        resends_overtaken: true,
        trims: false,
        rateless: false,
        options: &[],
    };
    type Sender = NackedSender;
    /// Boxed, since only one kind of receiver may fill the space that each flow has for any.
    type Receiver = Box<NackingReceiver>;

    fn read(_: &mut Options<'_>) -> Result<SelectiveNack, OptionError> {
        Ok(SelectiveNack)
    }
    fn sender(&self, packets: u32) -> NackedSender {
        NackedSender(SelectiveSender::new(packets))
    }
    fn receiver(&self, packets: u32) -> Box<NackingReceiver> {
        Box::new(NackingReceiver { inner: SelectiveReceiver::new(packets), reported: None })
    }
}

/// Resends what is reported, and what times out.
#[derive(Clone, Debug)]
pub struct NackedSender(SelectiveSender);

impl SendHalf for NackedSender {
    #[inline(always)]
    fn has_work(&self) -> bool {
        self.0.has_work()
    }
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        self.0.in_flight()
    }
    fn arrived(&self) -> u32 {
        self.0.arrived()
    }
    fn each_lost(&self, see: &mut dyn FnMut(u32)) {
        self.0.each_lost(see);
    }
    fn backlog(&self) -> u32 {
        self.0.backlog()
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.0.is_done()
    }
    fn peek(&self) -> u32 {
        self.0.peek()
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        self.0.send(now)
    }
    #[inline(always)]
    fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        self.0.on_ack(now, seq, cumulative)
    }
    /// The first packet that has not come is lost, unless it was taken for lost before. Whether `seq` has come is
    /// not said: a switch may have trimmed it.
    fn on_nack(&mut self, now: Time, _: u32, cumulative: u32) -> Option<Acknowledged> {
        let in_flight = self.0.in_flight();
        let packets = match cumulative > self.0.acked() {
            true => self.0.on_ack(now, cumulative - 1, cumulative).packets,
            false => 0,
        };
        let is_news = !self.0.was_lost(cumulative) && self.0.lose(cumulative);
        (is_news || packets > 0).then_some(Acknowledged { packets, in_flight, lost: 0 })
    }
    fn deadline(&self, rto: Time) -> Option<Time> {
        self.0.deadline(rto)
    }
    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        self.0.on_timer(now, rto)
    }
}

/// Keeps packets in any order, and reports gaps.
#[derive(Clone, Debug)]
pub struct NackingReceiver {
    inner: SelectiveReceiver,
    /// The missing packet that was reported last.
    reported: Option<u32>,
}

impl ReceiveHalf for NackingReceiver {
    fn on_data(&mut self, now: Time, seq: u32) -> Arrival {
        let arrival = self.inner.on_data(now, seq);
        let missing = self.inner.expected();
        if seq < missing || self.reported == Some(missing) {
            return arrival;
        }
        self.reported = Some(missing);
        Arrival { reply: Reply::Nack { cumulative: missing }, ..arrival }
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.inner.is_done()
    }
    fn expected(&self) -> u32 {
        self.inner.expected()
    }
}
