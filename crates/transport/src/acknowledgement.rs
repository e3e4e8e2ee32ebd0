//! What an acknowledgement does to a queue pair's loss recovery, and through that to its congestion
//! control.

use crate::congestion::{AckInfo, Congestion, Loss};
use crate::recovery::{Acknowledged, Report, Sender, Window};
use weft_units::Time;

/// An acknowledgement or a NACK, as it reaches the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// When it came.
    pub now: Time,
    /// The packet that it answers.
    pub seq: u32,
    /// As [`Reply`](crate::Reply) has it.
    pub cumulative: u32,
    /// As [`AckInfo::marked`].
    pub marked: bool,
    /// As [`AckInfo::rtt`].
    pub rtt: Time,
}

impl Acknowledgement {
    /// It is an acknowledgement: what it taught, and whether everything is acknowledged now.
    #[inline(always)]
    pub fn deliver(
        &self,
        recovery: &mut Sender,
        congestion: &mut Congestion,
    ) -> (Acknowledged, bool) {
        let (learnt, done) = recovery.on_ack_done(self.now, self.seq, self.cumulative);
        self.pass_on(learnt, congestion);
        (learnt, done)
    }

    /// It is a report, when congestion control let out a `window`: whether everything is acknowledged now.
    pub fn deliver_report(
        &self,
        report: &Report,
        window: Window,
        recovery: &mut Sender,
        congestion: &mut Congestion,
    ) -> bool {
        let (Acknowledged { packets, in_flight, .. }, done) =
            recovery.on_report_done(self.now, report, window);
        let Acknowledgement { now, seq, marked, rtt, .. } = *self;
        congestion.on_ack(&AckInfo { now, seq, packets, marked, in_flight, rtt });
        done
    }

    /// It is a NACK: what it taught. `None`: that was known already.
    pub fn deliver_nack(
        &self,
        recovery: &mut Sender,
        congestion: &mut Congestion,
    ) -> Option<Acknowledged> {
        let learnt = recovery.on_nack(self.now, self.seq, self.cumulative)?;
        congestion.on_loss(self.now, Loss::Gap);
        self.pass_on(learnt, congestion);
        Some(learnt)
    }

    #[inline(always)]
    fn pass_on(&self, learnt: Acknowledged, congestion: &mut Congestion) {
        let Acknowledgement { now, seq, marked, rtt, .. } = *self;
        let Acknowledged { packets, in_flight, lost } = learnt;
        if packets > 0 {
            congestion.on_ack(&AckInfo { now, seq, packets, marked, in_flight, rtt });
        }
        if lost > 0 {
            congestion.on_loss(now, Loss::Gap);
        }
    }
}
