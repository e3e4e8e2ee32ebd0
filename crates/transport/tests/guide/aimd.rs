//! AIMD on marks: the window grows by a packet a round trip, and a mark or a loss cuts it.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// What the control is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AimdConfig {
    /// The share of the window that a cut leaves.
    pub keep: f64,
    /// Window at the start, in payload bytes.
    pub initial_window: u64,
}

impl CongestionControl for AimdConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "aimd",
        summary: "window grows by a packet a round trip; a mark or a loss cuts it, once a round trip",
        source: "Weft's guide to new congestion controls; Chiu and Jain (1989)",
        sets_rate: false,
        uses_marks: true,
        aims_at_delay: false,
        options: &[
            OptionInfo {
                key: "aimd_keep",
                default: "0.5",
                kind: OptionKind::Number(0.01, 0.99),
                meaning: "share of the window that a cut leaves",
            },
            OptionInfo {
                key: "aimd_initial_window",
                default: "1bdp",
                kind: OptionKind::Window,
                meaning: "window at the start; a size, or times the BDP",
            },
        ],
    };
    type State = Aimd;

    fn read(options: &mut Options<'_>, path: &PathScale) -> Result<AimdConfig, OptionError> {
        let keep = options.fraction("aimd_keep")?;
        Ok(AimdConfig { keep, initial_window: options.window("aimd_initial_window", path.bdp)? })
    }
    fn state(&self, flow: &FlowPace) -> Aimd {
        let window = (self.initial_window as f64 / f64::from(flow.mtu)).max(1.0) as f32;
        Aimd { window, most: 8.0 * window, keep: self.keep as f32, quiet: 0 }
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.initial_window)
    }
}

/// The state of one queue pair. Windows in packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Aimd {
    window: f32,
    /// The window never grows beyond.
    most: f32,
    keep: f32,
    /// So many packets that were out at the last cut are not acknowledged yet: they cut nothing.
    quiet: u32,
}

impl Aimd {
    fn cut(&mut self, in_flight: u32) {
        if self.quiet == 0 {
            self.window = (self.window * self.keep).max(1.0);
            self.quiet = in_flight;
        }
    }
}

impl CongestionState for Aimd {
    #[inline(always)]
    fn window(&self) -> u32 {
        self.window as u32
    }
    #[inline(always)]
    fn on_ack(&mut self, ack: &AckInfo) {
        self.quiet = self.quiet.saturating_sub(ack.packets);
        if ack.marked {
            self.cut(ack.in_flight);
        } else if ack.in_flight >= self.window() {
            // A window that is not used says nothing about the path.
            self.window = (self.window + ack.packets as f32 / self.window).min(self.most);
        }
    }
    fn on_loss(&mut self, _: Time, loss: Loss) {
        match loss {
            Loss::Gap | Loss::Trimmed { .. } => self.cut(self.window()),
            Loss::TimeOut => (self.window, self.quiet) = (1.0, 0),
        }
    }
}
