//! Congestion control: how many packets may be out, and how far apart they leave.
//!
//! One file a scheme; this one dispatches, and holds the fixed rate. Windows are in packets of
//! the MTU.

mod dcqcn;
mod dctcp;
mod dctcp_rate;
mod mp_rdma;
mod swift;

pub use dcqcn::Dcqcn;
pub use dctcp::Dctcp;
pub use dctcp_rate::DctcpRate;
pub use mp_rdma::MpRdma;
pub use swift::Swift;

use crate::CongestionConfig;
use weft_units::{Rate, Time, Wire};

/// What loss recovery concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The receiver reported a gap.
    Gap,
    /// A timer ran out.
    TimeOut,
}

/// What a new queue pair tells its congestion control about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPace {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// A fixed rate of its own, of data packets with their headers.
    pub rate: Option<Rate>,
    /// It may send at no more than its NIC's line rate over this, where congestion control sets a
    /// rate. Never zero.
    pub share: u32,
    /// Links of its path, one way.
    pub hops: u32,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckInfo {
    /// When it came.
    pub now: Time,
    /// The number of the packet that it answers.
    pub seq: u32,
    /// Packets that it newly acknowledges.
    pub packets: u32,
    /// The packet that it answers met congestion (ECN).
    pub marked: bool,
    /// Packets that were out before it.
    pub in_flight: u32,
    /// From the departure of the packet that it answers to `now`; zero: not known, or not asked
    /// for ([`Congestion::wants_rtt`]).
    pub rtt: Time,
}

/// The congestion state of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Congestion {
    /// Sends at a fixed rate whatever happens.
    FixedRate {
        /// The rate, prepared; `None`: as fast as the NIC.
        wire: Option<Wire>,
    },
    /// DCTCP.
    Dctcp(Dctcp),
    /// DCTCP as a rate.
    DctcpRate(DctcpRate),
    /// DCQCN.
    Dcqcn(Dcqcn),
    /// Swift.
    Swift(Swift),
    /// MP-RDMA's.
    MpRdma(MpRdma),
}

/// Every flow has one, and each packet sent or acknowledged touches it.
const _: () = assert!(size_of::<Congestion>() <= 40);

impl Congestion {
    /// The state of a new queue pair. Under a fixed rate its own rate, if it has one, stands
    /// over the common one; other schemes take no notice of it.
    pub fn new(config: &CongestionConfig, flow: &FlowPace) -> Congestion {
        match config {
            CongestionConfig::FixedRate { rate } => {
                Congestion::FixedRate { wire: flow.rate.or(*rate).map(Wire::new) }
            }
            CongestionConfig::Dctcp(config) => Congestion::Dctcp(Dctcp::new(config, flow.mtu)),
            CongestionConfig::DctcpRate(config) => {
                Congestion::DctcpRate(DctcpRate::new(config, flow))
            }
            CongestionConfig::Dcqcn(config) => Congestion::Dcqcn(Dcqcn::new(config, flow)),
            CongestionConfig::Swift(config) => Congestion::Swift(Swift::new(config, flow)),
            CongestionConfig::MpRdma(config) => Congestion::MpRdma(MpRdma::new(config, flow.mtu)),
        }
    }

    /// How many packets may be out at once; at least one.
    #[inline(always)]
    pub fn window(&self) -> u32 {
        match self {
            Congestion::FixedRate { .. } | Congestion::DctcpRate(_) | Congestion::Dcqcn(_) => {
                u32::MAX
            }
            Congestion::Dctcp(dctcp) => dctcp.window(),
            Congestion::Swift(swift) => swift.window(),
            Congestion::MpRdma(mp_rdma) => mp_rdma.window(),
        }
    }

    /// Whether [`Congestion::pacing`] may ever ask for a gap.
    #[inline(always)]
    pub fn is_paced(&self) -> bool {
        match self {
            Congestion::FixedRate { wire } => wire.is_some(),
            Congestion::Dctcp(_) | Congestion::MpRdma(_) => false,
            Congestion::Swift(_) | Congestion::DctcpRate(_) | Congestion::Dcqcn(_) => true,
        }
    }

    /// From the departure of a packet of `wire_bytes`, headers included, to that of the next;
    /// `None`: the NIC may send back to back. At a fixed rate the time that the packet takes at
    /// it, as exact as [`Wire`]: at most a picosecond too long, from 1 Mb/s on.
    #[inline(always)]
    pub fn pacing(&self, wire_bytes: u32) -> Option<Time> {
        match self {
            Congestion::FixedRate { wire } => wire.map(|wire| wire.time(wire_bytes)),
            Congestion::Dctcp(_) | Congestion::MpRdma(_) => None,
            Congestion::DctcpRate(dctcp) => dctcp.gap(wire_bytes),
            Congestion::Dcqcn(dcqcn) => dcqcn.gap(wire_bytes),
            Congestion::Swift(swift) => swift.gap(),
        }
    }

    /// A packet of `wire_bytes`, headers included, leaves; [`Congestion::pacing`] tells the gap
    /// after it.
    #[inline(always)]
    pub fn on_send(&mut self, now: Time, wire_bytes: u32) {
        if let Congestion::Dcqcn(dcqcn) = self {
            dcqcn.on_send(now, wire_bytes);
        }
    }

    /// Whether packets keep to a steady beat, so that the next one comes the sooner after one that
    /// the NIC was too busy to send in time.
    #[inline(always)]
    pub fn paces_absolutely(&self) -> bool {
        !matches!(self, Congestion::DctcpRate(_) | Congestion::Dcqcn(_))
    }

    /// Whether acknowledgements must carry a round-trip time.
    #[inline(always)]
    pub fn wants_rtt(&self) -> bool {
        matches!(self, Congestion::Swift(_))
    }

    /// An acknowledgement came back.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &AckInfo) {
        match self {
            Congestion::FixedRate { .. } => {}
            Congestion::Dctcp(dctcp) => dctcp.on_ack(ack.packets, ack.marked, ack.in_flight),
            Congestion::DctcpRate(dctcp) => dctcp.on_ack(ack),
            Congestion::Dcqcn(dcqcn) => dcqcn.on_ack(ack),
            Congestion::Swift(swift) => swift.on_ack(ack),
            Congestion::MpRdma(mp_rdma) => mp_rdma.on_ack(ack),
        }
    }

    /// A loss was detected at `now`.
    pub fn on_loss(&mut self, now: Time, loss: Loss) {
        match self {
            Congestion::FixedRate { .. } => {}
            Congestion::Dctcp(dctcp) => dctcp.on_loss(loss),
            Congestion::DctcpRate(dctcp) => dctcp.on_loss(loss),
            Congestion::Dcqcn(dcqcn) => dcqcn.on_loss(now, loss),
            Congestion::Swift(swift) => swift.on_loss(now, loss),
            Congestion::MpRdma(mp_rdma) => mp_rdma.on_loss(),
        }
    }
}
