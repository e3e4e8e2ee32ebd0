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

use super::AckInfo;
use crate::MpRdmaConfig;

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
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    // Out of line, as the schemes that it works with: what every packet passes is to stay short.
    #[inline(never)]
    pub(super) fn on_ack(&mut self, ack: &AckInfo) {
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

    pub(super) fn on_loss(&mut self) {
        // No more than a window has left since the latest that was acknowledged.
        let out = self.highest.saturating_add(self.window);
        if self.highest >= self.recovery {
            self.set_window(self.cwnd / 2.0);
            self.recovery = out;
        }
    }

    #[inline(always)]
    fn set_window(&mut self, packets: f32) {
        self.cwnd = packets.clamp(1.0, self.max);
        self.window = self.cwnd as u32;
    }
}
