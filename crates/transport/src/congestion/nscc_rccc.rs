//! NSCC and RCCC together: a packet leaves when window and credit both allow it. The receiver takes
//! care of the last hop, so that what is trimmed there leaves the window alone.

use super::nscc::{Nscc, NsccConfig};
use super::rccc::{Rccc, RcccConfig};
use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, Delays, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, Options, Time};

/// What both are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NsccRcccConfig {
    /// The window.
    pub nscc: NsccConfig,
    /// The credit.
    pub rccc: RcccConfig,
}

/// Those of NSCC, and that of RCCC.
const OPTIONS: [OptionInfo; super::nscc::OPTIONS.len() + 1] = {
    let mut all = [super::rccc::WINDOW; super::nscc::OPTIONS.len() + 1];
    let mut index = 0;
    while index < super::nscc::OPTIONS.len() {
        all[index] = super::nscc::OPTIONS[index];
        index += 1;
    }
    all
};

impl CongestionControl for NsccRcccConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "nscc+rccc",
        summary: "NSCC's window and RCCC's credit must both allow a packet",
        source: "Ultra Ethernet specification 1.0, NSCC and RCCC; UEC htsim",
        sets_rate: false,
        uses_marks: true,
        aims_at_delay: false,
        options: &OPTIONS,
    };
    type State = NsccRccc;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<NsccRcccConfig, OptionError> {
        Ok(NsccRcccConfig { nscc: NsccConfig::read(o, path)?, rccc: RcccConfig::read(o, path)? })
    }
    fn state(&self, flow: &FlowPace) -> NsccRccc {
        let (window, credit) = (Nscc::new(&self.nscc, flow, true), Rccc::new(&self.rccc, flow));
        NsccRccc { window, credit: Box::new(credit) }
    }
    fn credit(&self) -> Option<RcccConfig> {
        Some(self.rccc)
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.nscc.initial_window)
    }
}

/// The state of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct NsccRccc {
    window: Nscc,
    credit: Box<Rccc>,
}

impl CongestionState for NsccRccc {
    const WANTS_RTT: bool = true;

    fn window(&self) -> u32 {
        self.window.window().min(self.credit.window())
    }
    fn largest_window(&self) -> u32 {
        self.window.largest_window()
    }
    fn delays(&self) -> Option<Delays> {
        self.window.delays()
    }
    fn on_send(&mut self, now: Time, wire_bytes: u32) {
        self.credit.on_send(now, wire_bytes);
    }
    fn on_ack(&mut self, ack: &AckInfo) {
        self.window.on_ack(ack);
        self.credit.on_ack(ack);
    }
    fn on_loss(&mut self, now: Time, loss: Loss) {
        self.window.on_loss(now, loss);
        self.credit.on_loss(now, loss);
    }
    fn pull_target(&self, backlog: u32, sharing: u32) -> Option<u32> {
        let most = self.window.bytes() + self.window.packet();
        Some(self.credit.target(backlog, sharing, most as i64))
    }
    fn on_credit(&mut self, granted: u32) {
        self.credit.on_credit(granted);
    }
}
