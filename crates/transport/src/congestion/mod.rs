//! Congestion control: how many packets may be out, and how far apart they leave.
//!
//! One file a scheme; this one dispatches. Windows are in packets of the MTU.

mod dctcp;

pub use dctcp::Dctcp;

use crate::CongestionConfig;
use weft_units::Rate;

/// What loss recovery concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The receiver reported a gap.
    Gap,
    /// A timer ran out.
    TimeOut,
}

/// The congestion state of one queue pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Congestion {
    /// Sends at a fixed rate whatever happens.
    FixedRate {
        /// The rate; `None`: as fast as the NIC.
        rate: Option<Rate>,
    },
    /// DCTCP.
    Dctcp(Dctcp),
}

/// Every flow has one, and each packet sent or acknowledged touches it.
const _: () = assert!(size_of::<Congestion>() <= 40);

impl Congestion {
    /// The state of a new queue pair that sends packets of `mtu` payload bytes.
    pub fn new(config: &CongestionConfig, mtu: u32) -> Congestion {
        match config {
            CongestionConfig::FixedRate { rate } => Congestion::FixedRate { rate: *rate },
            CongestionConfig::Dctcp(config) => Congestion::Dctcp(Dctcp::new(config, mtu)),
        }
    }

    /// How many packets may be out at once; at least one.
    #[inline(always)]
    pub fn window(&self) -> u32 {
        match self {
            Congestion::FixedRate { .. } => u32::MAX,
            Congestion::Dctcp(dctcp) => dctcp.window(),
        }
    }

    /// The rate to pace at, or `None` to leave the NIC to send back to back.
    #[inline(always)]
    pub fn pacing(&self) -> Option<Rate> {
        match self {
            Congestion::FixedRate { rate } => *rate,
            Congestion::Dctcp(_) => None,
        }
    }

    /// An acknowledgement of `packets` new packets came back, marked or not, when `in_flight`
    /// packets were out before it.
    #[inline(always)]
    pub fn on_ack(&mut self, packets: u32, marked: bool, in_flight: u32) {
        match self {
            Congestion::FixedRate { .. } => {}
            Congestion::Dctcp(dctcp) => dctcp.on_ack(packets, marked, in_flight),
        }
    }

    /// A loss was detected.
    pub fn on_loss(&mut self, loss: Loss) {
        match self {
            Congestion::FixedRate { .. } => {}
            Congestion::Dctcp(dctcp) => dctcp.on_loss(loss),
        }
    }
}
