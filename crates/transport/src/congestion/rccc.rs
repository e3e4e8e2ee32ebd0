//! Receiver-credit congestion control of Ultra Ethernet (UE specification 1.0, section 3.6.14), as UEC
//! htsim runs it: the receiver shares its link out among those who send to it, in credit.
//!
//! A queue pair starts with the credit of a window, for packets sent on speculation. The first answer
//! ends that. From then on it sends what it has credit for, and every packet says how much more it could use
//! (its pull target). The other half, which grants, is [`crate::credit`].

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use crate::credit::QUANTUM;
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// What RCCC is told. Bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcccConfig {
    /// The most credit that a queue pair holds, and what it starts with.
    pub max_window: u64,
    /// Receivers mind uplinks that carry less than the hosts below them.
    pub minds_uplinks: bool,
}

pub(super) const WINDOW: OptionInfo = OptionInfo {
    key: "rccc_max_window",
    default: "1.5bdp",
    kind: OptionKind::Window,
    meaning: "most credit of a queue pair, which it starts with; a size, or times the BDP",
};

impl RcccConfig {
    pub(super) fn read(o: &mut Options<'_>, path: &PathScale) -> Result<RcccConfig, OptionError> {
        let max_window = o.window(WINDOW.key, path.bdp)?;
        Ok(RcccConfig { max_window, minds_uplinks: false })
    }
}

impl CongestionControl for RcccConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "rccc",
        summary: "sends what the receiver grants credit for; the receiver shares out its link",
        source: "Ultra Ethernet specification 1.0, RCCC; UEC htsim",
        sets_rate: false,
        uses_marks: false,
        aims_at_delay: false,
        options: &[
            WINDOW,
            OptionInfo {
                key: "rccc_oversubscribed",
                default: "auto",
                kind: OptionKind::Word(&["auto", "true", "false"]),
                meaning: "receivers grant less where packets are marked or trimmed on the way; \"auto\": \
                          where uplinks carry less than the hosts below them",
            },
        ],
    };
    type State = Rccc;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<RcccConfig, OptionError> {
        let choices = [("auto", path.oversubscribed), ("true", true), ("false", false)];
        let minds_uplinks = o.choice("rccc_oversubscribed", &choices)?;
        Ok(RcccConfig { minds_uplinks, ..RcccConfig::read(o, path)? })
    }
    fn state(&self, flow: &FlowPace) -> Rccc {
        Rccc::new(self, flow)
    }
    fn credit(&self) -> Option<RcccConfig> {
        Some(*self)
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.max_window)
    }
}

/// The credit of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Rccc {
    /// Bytes; less than none after a packet that was larger than the rest.
    credit: i64,
    max: i64,
    /// What has been granted, in quanta, as far as it is known.
    granted: u32,
    packet: u32,
    /// Nothing has come back yet.
    speculates: bool,
}

impl Rccc {
    pub(super) fn new(config: &RcccConfig, flow: &FlowPace) -> Rccc {
        let packet = flow.wire_bytes();
        let max = (config.max_window as i64).max(i64::from(packet));
        Rccc { credit: max, max, granted: 0, packet, speculates: true }
    }
    /// The answer to what was sent on speculation ends that.
    fn end_speculation(&mut self) {
        if self.speculates {
            self.speculates = false;
            self.credit = self.credit.min(0);
        }
    }
    /// As [`CongestionState::pull_target`], where no more than `most` bytes may leave anyway. Less than what was
    /// granted, if there is more credit than that, so that receivers do not grant still more ahead.
    pub(super) fn target(&self, backlog: u32, sharing: u32, most: i64) -> u32 {
        let backlog = i64::from(backlog) * i64::from(self.packet);
        let mut wanted = backlog.min(self.max).min(most) - self.credit;
        if self.speculates && backlog > 0 {
            wanted = wanted.max(i64::from(self.packet));
        }
        let wanted = wanted / i64::from(sharing.max(1));
        // In quanta, rounded up.
        self.granted.wrapping_sub((-wanted).div_euclid(i64::from(QUANTUM)) as u32)
    }
}

impl CongestionState for Rccc {
    fn window(&self) -> u32 {
        if self.credit > 0 { u32::MAX } else { 0 }
    }
    fn largest_window(&self) -> u32 {
        (self.max / i64::from(self.packet)) as u32
    }
    #[inline(always)]
    fn on_send(&mut self, _: weft_units::Time, wire_bytes: u32) {
        self.credit -= i64::from(wire_bytes);
    }
    fn on_ack(&mut self, _: &AckInfo) {
        self.end_speculation();
    }
    fn on_loss(&mut self, _: weft_units::Time, loss: Loss) {
        if loss != Loss::TimeOut {
            self.end_speculation();
        }
    }
    fn pull_target(&self, backlog: u32, sharing: u32) -> Option<u32> {
        Some(self.target(backlog, sharing, i64::MAX))
    }
    fn on_credit(&mut self, granted: u32) {
        self.end_speculation();
        let more = granted.wrapping_sub(self.granted);
        // A pull that was overtaken by a later one says nothing new.
        if more as i32 > 0 {
            self.granted = granted;
            let credit = self.credit + i64::from(more) * i64::from(QUANTUM);
            self.credit = credit.min(self.max);
        }
    }
}
