//! DCTCP (Alizadeh et al., SIGCOMM 2010, section 3.1) for RDMA queue pairs.
//!
//! Once a window of packets the fraction `F` of marked ones updates `alpha += g (F - alpha)`;
//! a window with a mark is cut by `alpha / 2`, one without grows by a packet, but only if it
//! was what held the sender back (RFC 7661: an unused window says nothing about the path).
//! There is no slow start: a queue pair starts at its initial window (one bandwidth-delay
//! product by default), as RDMA NICs do. A NACK halves the window at most once a window; a
//! time-out returns to the initial window, unless marks have cut it below that.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use core::ops::{Add, Div, Mul, Sub};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// What DCTCP is told. Windows in payload bytes; a queue pair may always have one packet out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpConfig {
    /// Gain of the moving average of marked bytes, `g`.
    pub gain: f64,
    /// Where the average starts.
    pub initial_alpha: f64,
    /// Window at the start, and at most after a time-out.
    pub initial_window: u64,
    /// The window never grows beyond.
    pub max_window: u64,
}

impl CongestionControl for DctcpConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "dctcp",
        summary: "window cut in proportion to the share of marked bytes; starts at one BDP",
        source: "Alizadeh et al. (SIGCOMM 2010); Ethereal (2024, 2025)",
        sets_rate: false,
        uses_marks: true,
        aims_at_delay: false,
        options: &[
            OptionInfo {
                key: "dctcp_gain",
                default: "0.0625",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "weight of the newest window in the average",
            },
            OptionInfo {
                key: "dctcp_initial_alpha",
                default: "0.0",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "share of marked bytes assumed at first",
            },
            OptionInfo {
                key: "dctcp_initial_window",
                default: "1bdp",
                kind: OptionKind::Window,
                meaning: "window at the start and after a time-out; a size, or times the BDP",
            },
            super::max_window("dctcp_max_window"),
        ],
    };
    type State = Dctcp;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<DctcpConfig, OptionError> {
        let gain = o.fraction("dctcp_gain")?;
        let initial_alpha = o.fraction("dctcp_initial_alpha")?;
        let (initial_window, max_window) =
            super::read_windows(o, ["dctcp_initial_window", "dctcp_max_window"], path)?;
        Ok(DctcpConfig { gain, initial_alpha, initial_window, max_window })
    }
    fn state(&self, flow: &FlowPace) -> Dctcp {
        Dctcp::new(self, flow.mtu)
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.initial_window)
    }
}

/// The window and the moving average of the marked fraction after a round in which `fraction` of the packets
/// were marked: cut by half the average, or longer by a `packet` if the window was what held the sender
/// back (Alizadeh et al. 2010, section 3.1). The window in the unit of `packet`; nobody limits it yet.
pub fn dctcp_after_round<T>(
    (window, alpha): (T, T),
    gain: T,
    fraction: T,
    limited: bool,
    packet: T,
) -> (T, T)
where
    T: Copy
        + From<u8>
        + PartialOrd
        + Add<Output = T>
        + Sub<Output = T>
        + Mul<Output = T>
        + Div<Output = T>,
{
    let number = T::from;
    let alpha = alpha + gain * (fraction - alpha);
    let window = if fraction > number(0) {
        window * (number(1) - alpha / number(2))
    } else if limited {
        window + packet
    } else {
        window
    };
    (window, alpha)
}

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

    /// The moving average of the marked fraction, 0 to 1.
    pub fn alpha(&self) -> f32 {
        self.alpha
    }

    /// A window of packets has been acknowledged; `in_flight` are out and make the next.
    fn end_round(&mut self, in_flight: u32) {
        let fraction = self.marked as f32 / self.acked as f32;
        let state = (self.cwnd, self.alpha);
        let (cwnd, alpha) = dctcp_after_round(state, self.gain, fraction, self.limited, 1.0);
        self.alpha = alpha;
        self.set_window(cwnd);
        self.start_round(in_flight);
    }

    fn start_round(&mut self, in_flight: u32) {
        (self.acked, self.marked) = (0, 0);
        (self.limited, self.halved) = (false, false);
        self.round = in_flight.clamp(1, self.window);
    }

    fn set_window(&mut self, packets: f32) {
        self.cwnd = packets.clamp(1.0, self.max);
        self.window = self.cwnd as u32;
    }
}

impl CongestionState for Dctcp {
    #[inline(always)]
    fn window(&self) -> u32 {
        self.window
    }
    #[inline(always)]
    fn on_ack(&mut self, ack: &AckInfo) {
        let AckInfo { packets, marked, in_flight, .. } = *ack;
        self.acked += packets;
        self.marked += if marked { packets } else { 0 };
        self.limited |= in_flight >= self.window;
        if self.acked >= self.round {
            self.end_round(in_flight - packets.min(in_flight));
        }
    }
    fn on_loss(&mut self, _: Time, loss: Loss) {
        match loss {
            Loss::Gap | Loss::Trimmed { .. } if self.halved => {}
            Loss::Gap | Loss::Trimmed { .. } => {
                self.set_window(self.cwnd / 2.0);
                self.halved = true;
            }
            Loss::TimeOut => {
                self.set_window(self.cwnd.min(self.initial));
                self.start_round(self.window);
            }
        }
    }
}
