//! Always the same rate, whatever happens (McClure et al. 2025, section 4).

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, Options, Rate, Time, Wire};

/// The rate of queue pairs that have none of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedRateConfig {
    /// Of data packets with their headers; `None`: the NIC's line rate.
    pub rate: Option<Rate>,
}

impl CongestionControl for FixedRateConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "fixed-rate",
        summary: "always the same rate, whatever happens",
        source: "McClure et al. (2025)",
        sets_rate: true,
        uses_marks: false,
        aims_at_delay: false,
        // The rate of each queue pair follows from fabric and workload: whoever opens it says.
        options: &[],
    };
    type State = FixedRate;

    fn read(_: &mut Options<'_>, _: &PathScale) -> Result<FixedRateConfig, OptionError> {
        Ok(FixedRateConfig::default())
    }
    fn state(&self, flow: &FlowPace) -> FixedRate {
        FixedRate { wire: flow.rate.or(self.rate).map(Wire::new) }
    }
}

/// The state of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedRate {
    /// The rate, prepared; `None`: as fast as the NIC.
    wire: Option<Wire>,
}

impl CongestionState for FixedRate {
    #[inline(always)]
    fn is_paced(&self) -> bool {
        self.wire.is_some()
    }
    /// The time that the packet takes at the rate, as exact as [`Wire`]: at most a picosecond too long,
    /// from 1 Mb/s on.
    #[inline(always)]
    fn pacing(&self, wire_bytes: u32) -> Option<Time> {
        self.wire.map(|wire| wire.time(wire_bytes))
    }
    #[inline(always)]
    fn on_ack(&mut self, _: &AckInfo) {}
    fn on_loss(&mut self, _: Time, _: Loss) {}
}
