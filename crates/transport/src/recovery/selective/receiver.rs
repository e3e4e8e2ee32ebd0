//! The receiving half: keeps packets in any order and acknowledges each.

use super::marks::Marks;
use crate::recovery::{Arrival, ReceiveHalf, Reply};
use std::num::NonZeroU32;
use weft_units::Time;

/// Keeps packets in any order.
#[derive(Clone, Debug)]
pub struct SelectiveReceiver {
    /// All below are here.
    expected: u32,
    /// Never zero, which leaves a value to tell the schemes apart by.
    packets: NonZeroU32,
    /// What is here after `expected`.
    early: Marks,
}

impl SelectiveReceiver {
    pub(in crate::recovery) fn new(packets: u32) -> SelectiveReceiver {
        let packets = NonZeroU32::new(packets).expect("a packet at least");
        SelectiveReceiver { expected: 0, packets, early: Marks::EMPTY }
    }
}

impl ReceiveHalf for SelectiveReceiver {
    #[inline(always)]
    fn on_data(&mut self, _: Time, seq: u32) -> Arrival {
        let accepted = seq >= self.expected && self.early.insert(self.expected, seq);
        if accepted {
            self.expected += self.early.take_run(self.expected);
            if self.is_done() {
                self.early = Marks::EMPTY;
            }
        }
        let reply = Reply::Ack { cumulative: self.expected };
        Arrival { reply, accepted, duplicate: !accepted }
    }
    fn on_trimmed(&mut self, _: Time, _: u32) -> Arrival {
        let reply = Reply::Nack { cumulative: self.expected };
        Arrival { reply, accepted: false, duplicate: false }
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.expected == self.packets.get()
    }
    fn expected(&self) -> u32 {
        self.expected
    }
}
