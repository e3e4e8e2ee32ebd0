//! DCTCP as a rate without a window, as NICs with rate limiters run it and as the code behind
//! Ethereal (2025) has it.
//!
//! A queue pair starts at line rate. Once all that was out has been acknowledged, the fraction `F`
//! of marked packets updates `alpha += g (F - alpha)`, and the rate grows by a constant unless it
//! has just been cut. The first mark cuts it by `alpha / 2`, and no other one does until all that
//! was out then has been acknowledged. A time-out brings the line rate back; a gap changes
//! nothing.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Rate, Time};

/// What DCTCP is told where it sets a rate. Rates are those of packets with their headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpRateConfig {
    /// Gain of the moving average of marked packets, `g`.
    pub gain: f64,
    /// Where the average starts.
    pub initial_alpha: f64,
    /// Where the rate starts, and its end.
    pub line: Rate,
    /// The rate never falls below.
    pub least: Rate,
    /// What it grows by in a round trip without a cut.
    pub increase: Rate,
}

impl CongestionControl for DctcpRateConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "dctcp-rate",
        summary: "DCTCP as a rate without a window; starts at line rate",
        source: "the code behind Ethereal (2025)",
        sets_rate: true,
        uses_marks: true,
        aims_at_delay: false,
        options: &[
            OptionInfo {
                key: "dctcp_rate_gain",
                default: "0.00390625",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "weight of the newest round trip in the average",
            },
            OptionInfo {
                key: "dctcp_rate_initial_alpha",
                default: "1.0",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "share of marks assumed at first",
            },
            OptionInfo {
                key: "dctcp_rate_increase",
                default: "1Gbps",
                kind: OptionKind::Rate,
                meaning: "what the rate grows by in a round trip without a cut",
            },
            OptionInfo {
                key: "dctcp_rate_least",
                default: "100Mbps",
                kind: OptionKind::Rate,
                meaning: "the lowest rate",
            },
        ],
    };
    type State = DctcpRate;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<DctcpRateConfig, OptionError> {
        Ok(DctcpRateConfig {
            gain: o.fraction("dctcp_rate_gain")?,
            initial_alpha: o.fraction("dctcp_rate_initial_alpha")?,
            line: path.line,
            increase: o.rate("dctcp_rate_increase")?,
            least: o.rate("dctcp_rate_least")?,
        })
    }
    fn state(&self, flow: &FlowPace) -> DctcpRate {
        DctcpRate::new(self, flow)
    }
}

/// The state of one queue pair. Rates in bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpRate {
    rate: f32,
    line: f32,
    least: f32,
    increase: f32,
    alpha: f32,
    gain: f32,
    /// Packets whose acknowledgements end the round, and how many it has in all.
    open: u32,
    round: u32,
    /// Marked ones of the round; more than fit are as good as all.
    marked: u16,
    /// Packets whose acknowledgements must come before the next cut; of more than fit so many.
    held: u16,
}

impl DctcpRate {
    pub(super) fn new(config: &DctcpRateConfig, flow: &FlowPace) -> DctcpRate {
        let bits = |rate: Rate| rate.as_bps() as f32;
        let line = bits(config.line) / flow.share as f32;
        DctcpRate {
            rate: line,
            line,
            least: bits(config.least).min(line),
            increase: bits(config.increase),
            alpha: config.initial_alpha as f32,
            gain: config.gain as f32,
            open: 0,
            round: 0,
            marked: 0,
            held: 0,
        }
    }

    /// Bits per second, headers included.
    pub fn rate(&self) -> f32 {
        self.rate
    }
    /// The moving average of the marked fraction, 0 to 1.
    pub fn alpha(&self) -> f32 {
        self.alpha
    }
}

impl CongestionState for DctcpRate {
    const PACED: bool = true;
    const PACES_ABSOLUTELY: bool = false;

    /// `None` at line rate.
    #[inline(always)]
    fn pacing(&self, wire_bytes: u32) -> Option<Time> {
        const BITS: f32 = 8e12;
        (self.rate < self.line).then(|| Time((wire_bytes as f32 * BITS / self.rate) as u64))
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let left = ack.in_flight.saturating_sub(ack.packets);
        let narrow = |packets: u32| u16::try_from(packets).unwrap_or(u16::MAX);
        self.marked = self.marked.saturating_add(u16::from(ack.marked));
        self.open = self.open.saturating_sub(ack.packets);
        self.held = self.held.saturating_sub(narrow(ack.packets));
        let is_over = self.open == 0;
        if is_over {
            // Before the first round nothing is known.
            if self.round > 0 {
                let fraction = (f32::from(self.marked) / self.round as f32).min(1.0);
                self.alpha += self.gain * (fraction - self.alpha);
                self.marked = 0;
            }
            // The next acknowledgement after all that is out.
            (self.open, self.round) = (left + 1, left + 1);
        }
        if self.held > 0 {
            return;
        }
        if ack.marked {
            self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(self.least);
            self.held = narrow(left + 1);
        } else if is_over {
            self.rate = (self.rate + self.increase).min(self.line);
        }
    }

    fn on_loss(&mut self, _: Time, loss: Loss) {
        if loss == Loss::TimeOut {
            self.rate = self.line;
        }
    }
}
