//! Sending at a rate: what the experiment says about it, and what comes of it once the messages
//! are known.

use crate::fair::{fair_shares, most_concurrent};
use weft_config::{ExperimentError, Origin};
use weft_fabric::Fabric;
use weft_sim::{Buffer, Pacing, PacketConfig, Rates, SwitchConfig};
use weft_transport::subflows_against_reordering;
use weft_units::Rate;
use weft_workload::Workload;

/// The rate that [`PaceConfig::coefficient`] is a share of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Base {
    /// The NIC's own, for every queue pair.
    Line,
    /// The message's fair share.
    Fair,
    /// This one, for every queue pair.
    Fixed(Rate),
}

/// Into how many queue pairs a flow is cut for accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subflows {
    /// Always so many.
    Fixed(u32),
    /// As many as it takes that spraying alone causes fewer than so many duplicate
    /// acknowledgements in a row (McClure et al. 2025, equation 1).
    Against(u32),
}

/// How queue pairs that send at a rate are paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceConfig {
    /// Congestion control does not say how fast: this does.
    pub is_paced: bool,
    /// What the rate is a share of.
    pub base: Base,
    /// The share.
    pub coefficient: f64,
    /// As [`Pacing::start_gaps`].
    pub start_gaps: f64,
    /// As [`Pacing::gap_jitter`].
    pub gap_jitter: f64,
    /// As [`Pacing::subflows`].
    pub subflows: Subflows,
}

impl PaceConfig {
    /// For congestion controls that say themselves how fast.
    pub const NONE: PaceConfig = PaceConfig {
        is_paced: false,
        base: Base::Line,
        coefficient: 1.0,
        start_gaps: 0.0,
        gap_jitter: 0.0,
        subflows: Subflows::Fixed(1),
    };

    /// What the simulator takes, for `workload` on `fabric`.
    pub(crate) fn pacing(
        &self,
        fabric: &Fabric,
        workload: &Workload,
        packet: &PacketConfig,
        switch: &SwitchConfig,
    ) -> Pacing {
        let line = fabric.line_rate();
        let same = |rate| Rates::Same(self.share(rate));
        let rates = match self.base {
            _ if !self.is_paced => Rates::Line,
            Base::Line => same(line),
            Base::Fixed(rate) => same(rate),
            Base::Fair => {
                let shares = fair_shares(fabric, workload);
                Rates::Each(shares.iter().map(|rate| self.share(*rate)).collect())
            }
        };
        let subflows = match self.subflows {
            Subflows::Fixed(count) => count,
            Subflows::Against(threshold) => {
                let queue = queue_in_packets(switch, packet);
                let flows = most_concurrent(fabric, workload);
                subflows_against_reordering(threshold, queue, shared_queues(fabric), flows)
            }
        };
        let PaceConfig { start_gaps, gap_jitter, is_paced, .. } = *self;
        Pacing { rates, start_gaps, gap_jitter, desynchronise: is_paced, subflows }
    }

    /// Refuses what can only be computed for messages that are all known in advance.
    pub(crate) fn check_jobs(&self) -> Result<(), ExperimentError> {
        let wrong = |key, what| Err(ExperimentError::new(key, Origin::Unknown, what));
        if self.is_paced && self.base == Base::Fair {
            let what = "\"fair\" needs messages that are known in advance, which a job's are not; \
                        use \"line\" or a rate";
            return wrong("transport.rate", what);
        }
        if matches!(self.subflows, Subflows::Against(_)) {
            let what = "the number of sub-flows follows from messages that are known in advance, \
                        which a job's are not; give a number";
            return wrong("transport.subflows", what);
        }
        Ok(())
    }

    /// [`PaceConfig::coefficient`] times `rate`.
    pub(crate) fn share(&self, rate: Rate) -> Rate {
        let bits = rate.as_bps() as f64 * self.coefficient;
        Rate::bps((bits as u64).max(1))
    }
}

/// Full packets that one queue holds, as switches count them.
fn queue_in_packets(switch: &SwitchConfig, packet: &PacketConfig) -> u64 {
    let (Buffer::PerPort { bytes } | Buffer::Shared { bytes, .. }) = switch.buffer;
    bytes / u64::from(packet.mtu + packet.header)
}

/// Queues on the longest path that two packets of one flow need not share: all but the first
/// and the last.
fn shared_queues(fabric: &Fabric) -> u32 {
    let (near, far) = fabric.farthest();
    fabric.hops(near, far).saturating_sub(2)
}
