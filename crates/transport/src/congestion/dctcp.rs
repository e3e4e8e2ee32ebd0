//! DCTCP (Alizadeh et al., SIGCOMM 2010, section 3.1) for RDMA queue pairs.
//!
//! Once a window of packets the fraction `F` of marked ones updates `alpha += g (F - alpha)`;
//! a window with a mark is cut by `alpha / 2`, one without grows by a packet, but only if it
//! was what held the sender back (RFC 7661: an unused window says nothing about the path).
//! There is no slow start: a queue pair starts at its initial window (one bandwidth-delay
//! product by default), as RDMA NICs do. A NACK halves the window at most once a window; a
//! time-out returns to the initial window, unless marks have cut it below that.

use super::Loss;
use crate::DctcpConfig;

/// The state of one queue pair. Windows in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dctcp {
    cwnd: f32,
    alpha: f32,
    gain: f32,
    initial: f32,
    max: f32,
    /// `cwnd` rounded down.
    window: u32,
    /// Acknowledged and marked packets of the current round, and how many end it.
    acked: u32,
    marked: u32,
    round: u32,
    /// The window was full at some time of this round.
    limited: bool,
    /// A gap has halved the window in this round.
    halved: bool,
}

impl Dctcp {
    pub(super) fn new(config: &DctcpConfig, mtu: u32) -> Dctcp {
        let packets = |bytes: u64| (bytes as f64 / f64::from(mtu)).max(1.0) as f32;
        let (initial, max) = (packets(config.initial_window), packets(config.max_window));
        let mut dctcp = Dctcp {
            cwnd: 0.0,
            alpha: config.initial_alpha as f32,
            gain: config.gain as f32,
            initial: initial.min(max),
            max,
            window: 0,
            acked: 0,
            marked: 0,
            round: 1,
            limited: false,
            halved: false,
        };
        dctcp.set_window(dctcp.initial);
        dctcp.round = dctcp.window;
        dctcp
    }

    #[inline(always)]
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// The moving average of the marked fraction, 0 to 1.
    pub fn alpha(&self) -> f32 {
        self.alpha
    }

    #[inline(always)]
    pub(super) fn on_ack(&mut self, packets: u32, marked: bool, in_flight: u32) {
        self.acked += packets;
        self.marked += if marked { packets } else { 0 };
        self.limited |= in_flight >= self.window;
        if self.acked >= self.round {
            self.end_round(in_flight - packets.min(in_flight));
        }
    }

    /// A window of packets has been acknowledged; `in_flight` are out and make the next.
    fn end_round(&mut self, in_flight: u32) {
        let fraction = self.marked as f32 / self.acked as f32;
        self.alpha += self.gain * (fraction - self.alpha);
        if self.marked > 0 {
            self.set_window(self.cwnd * (1.0 - self.alpha / 2.0));
        } else if self.limited {
            self.set_window(self.cwnd + 1.0);
        }
        self.start_round(in_flight);
    }

    fn start_round(&mut self, in_flight: u32) {
        (self.acked, self.marked) = (0, 0);
        (self.limited, self.halved) = (false, false);
        self.round = in_flight.clamp(1, self.window);
    }

    pub(super) fn on_loss(&mut self, loss: Loss) {
        match loss {
            Loss::Gap if self.halved => {}
            Loss::Gap => {
                self.set_window(self.cwnd / 2.0);
                self.halved = true;
            }
            Loss::TimeOut => {
                self.set_window(self.cwnd.min(self.initial));
                self.start_round(self.window);
            }
        }
    }

    fn set_window(&mut self, packets: f32) {
        self.cwnd = packets.clamp(1.0, self.max);
        self.window = self.cwnd as u32;
    }
}
