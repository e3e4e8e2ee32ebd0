//! The window of MP-RDMA (Lu et al., NSDI 2018, section 3): one for all paths of a queue pair.
//!
//! An acknowledgement without a mark adds `1 / cwnd`, one with a mark takes half a packet. One
//! that comes too far behind the latest acknowledged packet tells of a path that is too slow: it
//! takes its own packet off the window, so that it lets nothing out, and the load balancer leaves
//! that path. Packets that were sent again are late for another reason: of those that were out
//! when something was lost, none counts as slow.
//!
//! What is ours: there is no slow start, as with [`super::Dctcp`]; and a loss, whoever reports it,
//! halves the window, at most once for all that was out. What to send again is loss recovery's.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// What MP-RDMA's congestion control is told. Windows in payload bytes; a queue pair may always
/// have one packet out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpRdmaConfig {
    /// Window at the start.
    pub initial_window: u64,
    /// The window never grows beyond.
    pub max_window: u64,
    /// A path is too slow if what it carried comes back by more than this many packets behind the
    /// latest that has; the paper's delta, 32 there.
    pub reordering: u32,
}

impl CongestionControl for MpRdmaConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "mp-rdma",
        summary: "window that grows and shrinks with every acknowledgement, late ones too",
        source: "MP-RDMA (Lu et al., NSDI 2018)",
        sets_rate: false,
        uses_marks: true,
        aims_at_delay: false,
        options: &[
            OptionInfo {
                key: "mp_rdma_reordering",
                default: "32",
                kind: OptionKind::Whole(1, 1_000_000),
                meaning: "packets behind the latest from which on a path is too slow and is left",
            },
            super::initial_window("mp_rdma_initial_window"),
            super::max_window("mp_rdma_max_window"),
        ],
    };
    type State = MpRdma;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<MpRdmaConfig, OptionError> {
        let reordering = o.number("mp_rdma_reordering")?;
        let (initial_window, max_window) =
            super::read_windows(o, ["mp_rdma_initial_window", "mp_rdma_max_window"], path)?;
        Ok(MpRdmaConfig { initial_window, max_window, reordering })
    }
    fn state(&self, flow: &FlowPace) -> MpRdma {
        MpRdma::new(self, flow.mtu)
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.initial_window)
    }
}

/// The state of one queue pair. Windows in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MpRdma {
    cwnd: f32,
    max: f32,
    /// `cwnd` rounded down.
    window: u32,
    reordering: u32,
    /// One more than the highest number acknowledged so far.
    highest: u32,
    /// All that was out at the last loss is below.
    recovery: u32,
}

impl MpRdma {
    pub(super) fn new(config: &MpRdmaConfig, mtu: u32) -> MpRdma {
        let packets = |bytes: u64| (bytes as f64 / f64::from(mtu)).max(1.0) as f32;
        let (initial, max) = (packets(config.initial_window), packets(config.max_window));
        let cwnd = initial.min(max);
        MpRdma {
            cwnd,
            max,
            window: cwnd as u32,
            reordering: config.reordering,
            highest: 0,
            recovery: 0,
        }
    }

    #[inline(always)]
    fn set_window(&mut self, packets: f32) {
        self.cwnd = packets.clamp(1.0, self.max);
        self.window = self.cwnd as u32;
    }
}

impl CongestionState for MpRdma {
    #[inline(always)]
    fn window(&self) -> u32 {
        self.window
    }
    // Out of line, as the schemes that it works with: what every packet passes is to stay short.
    #[inline(never)]
    fn on_ack(&mut self, ack: &AckInfo) {
        self.highest = self.highest.max(ack.seq + 1);
        let packets = ack.packets as f32;
        let mut cwnd = match ack.marked {
            true => self.cwnd - packets / 2.0,
            false => self.cwnd + packets / self.cwnd,
        };
        let is_late = self.highest - (ack.seq + 1) > self.reordering;
        if is_late && ack.seq >= self.recovery {
            cwnd -= packets;
        }
        self.set_window(cwnd);
    }

    fn on_loss(&mut self, _: Time, _: Loss) {
        // No more than a window has left since the latest that was acknowledged.
        let out = self.highest.saturating_add(self.window);
        if self.highest >= self.recovery {
            self.set_window(self.cwnd / 2.0);
            self.recovery = out;
        }
    }
}
