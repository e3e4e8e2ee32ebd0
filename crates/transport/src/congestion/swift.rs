//! Swift (Kumar et al., SIGCOMM 2020): delay says how full the path is.
//!
//! Each acknowledgement's round trip is held against a target: below, the window grows by a
//! fixed amount a round trip; above, it is cut in proportion to the excess, at most once a round
//! trip. The target grows with the links of the path (topology-based scaling) and as the window
//! shrinks, since many small flows make a longer queue (flow-based scaling). A window below one
//! packet becomes a gap between packets. Gaps and time-outs cut by the most there is, and
//! time-outs in a row close the window.
//!
//! Only the window of the fabric is kept: hosts take no time to answer here, so that the window
//! of the paper's end-host delay would never bind. What sending reads lies in the value itself,
//! what acknowledgements change in a box.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

const PACKETS: OptionKind = OptionKind::Number(0.001, 1e6);

/// What Swift is told. Windows in payload bytes, but for the two ends of flow scaling, which the
/// paper gives in packets; names in quotes are the paper's. "htsim": the public htsim of
/// Broadcom, whose authors marked most of its values as guesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwiftConfig {
    /// Round trip to aim at before the other terms are added, "base target delay".
    /// Default 20 us (htsim), or twice the round trip of a lone packet over the longest path where that is
    /// more, which only the fabric knows: below a round trip windows shrink to nothing.
    pub base_target: Time,
    /// Added to the target for every link of the path, one way: topology-based scaling. Default
    /// 3053435 ps (htsim: the base over 6.55).
    pub per_hop: Time,
    /// The most that flow-based scaling adds to the target, "fs_range"; zero: none of it. Default
    /// 100 us (htsim: five times the base).
    pub scaling_range: Time,
    /// Packets in the window at and below which flow scaling adds all of its range,
    /// "fs_min_cwnd". More than zero. Default 0.1 (htsim).
    pub scaling_min: f64,
    /// Packets in the window from which on it adds nothing, "fs_max_cwnd". More than
    /// `scaling_min`. Default 100 (htsim).
    pub scaling_max: f64,
    /// Packets by which the window grows a round trip below the target, "ai". Default 1 (htsim).
    pub increase: f64,
    /// How much of the relative excess over the target is cut, "beta", 0 to 1. Default 0.8
    /// (htsim).
    pub decrease: f64,
    /// The largest share of the window that one cut takes, and what a loss takes, "max_mdf",
    /// 0 to 1. Default 0.5 (htsim).
    pub max_cut: f64,
    /// Time-outs without an acknowledgement between them, all within a round trip counted as
    /// one, after which the window falls to its least, "RETX_RESET_THRESHOLD". Default 5 (htsim).
    pub reset_after: u32,
    /// The window never falls below, "min_cwnd"; a byte at least. Default 10 bytes (htsim).
    pub min_window: u64,
    /// Window at the start. No default here: like DCTCP it should start at a bandwidth-delay
    /// product, which only the fabric knows.
    pub initial_window: u64,
    /// The window never grows beyond, "max_cwnd"; a packet at least. No default here either
    /// (htsim: 1000 packets).
    pub max_window: u64,
}

impl SwiftConfig {
    /// All defaults, with these windows at the start and at most, in payload bytes.
    pub const fn with_windows(initial_window: u64, max_window: u64) -> SwiftConfig {
        SwiftConfig {
            base_target: Time::us(20),
            per_hop: Time::ps(3_053_435),
            scaling_range: Time::us(100),
            scaling_min: 0.1,
            scaling_max: 100.0,
            increase: 1.0,
            decrease: 0.8,
            max_cut: 0.5,
            reset_after: 5,
            min_window: 10,
            initial_window,
            max_window,
        }
    }
}

impl CongestionControl for SwiftConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "swift",
        summary: "window that follows the round-trip time towards a target; paced below a packet",
        source: "Kumar et al. (SIGCOMM 2020); McClure et al. (2025)",
        sets_rate: false,
        uses_marks: false,
        aims_at_delay: true,
        options: &[
            OptionInfo {
                key: "swift_base_target",
                default: "auto",
                kind: OptionKind::Or(&OptionKind::Time(Time::ZERO), "auto"),
                meaning: "round trip to aim at before the other terms are added; \"auto\": 20 us, or \
                          twice the longest path's unloaded round trip where that is more",
            },
            OptionInfo {
                key: "swift_per_hop",
                default: "3053435ps",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "added for every link of the path",
            },
            OptionInfo {
                key: "swift_scaling_range",
                default: "100us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "the most that is added for small windows",
            },
            OptionInfo {
                key: "swift_scaling_min",
                default: "0.1",
                kind: PACKETS,
                meaning: "window in packets at which all of that is added",
            },
            OptionInfo {
                key: "swift_scaling_max",
                default: "100.0",
                kind: PACKETS,
                meaning: "window in packets from which on nothing is added",
            },
            OptionInfo {
                key: "swift_increase",
                default: "1.0",
                kind: PACKETS,
                meaning: "packets more a round trip",
            },
            OptionInfo {
                key: "swift_decrease",
                default: "0.8",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "how much of the relative excess over the target is cut",
            },
            OptionInfo {
                key: "swift_max_cut",
                default: "0.5",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "the largest share of the window that one cut takes",
            },
            OptionInfo {
                key: "swift_reset_after",
                default: "5",
                kind: OptionKind::Whole(1, 1_000),
                meaning: "time-outs in a row after which the window is at its least",
            },
            OptionInfo {
                key: "swift_min_window",
                default: "10B",
                kind: OptionKind::Size(1, 1_000_000_000),
                meaning: "the window never falls below",
            },
            super::initial_window("swift_initial_window"),
            super::max_window("swift_max_window"),
        ],
    };
    type State = Swift;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<SwiftConfig, OptionError> {
        let published = SwiftConfig::with_windows(0, 0).base_target;
        let base_target = o.time_or_word("swift_base_target")?;
        let base_target =
            base_target.unwrap_or(published.max(Time(path.round_trip.0.saturating_mul(2))));
        let per_hop = o.time("swift_per_hop")?;
        let scaling_range = o.time("swift_scaling_range")?;
        let scaling_min = o.fraction("swift_scaling_min")?;
        let scaling_max = o.fraction("swift_scaling_max")?;
        if scaling_max <= scaling_min {
            let what = "is not above swift_scaling_min; raise it or lower that";
            return Err(OptionError::new("swift_scaling_max", what));
        }
        let increase = o.fraction("swift_increase")?;
        let decrease = o.fraction("swift_decrease")?;
        let max_cut = o.fraction("swift_max_cut")?;
        let reset_after = o.number("swift_reset_after")?;
        let min_window = o.size("swift_min_window")?;
        let (initial_window, max_window) =
            super::read_windows(o, ["swift_initial_window", "swift_max_window"], path)?;
        Ok(SwiftConfig {
            base_target,
            per_hop,
            scaling_range,
            scaling_min,
            scaling_max,
            increase,
            decrease,
            max_cut,
            reset_after,
            min_window,
            initial_window,
            max_window,
        })
    }
    fn state(&self, flow: &FlowPace) -> Swift {
        Swift::new(self, flow)
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.initial_window)
    }
}

/// The state of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Swift {
    /// `cwnd` rounded down, one at least.
    window: u32,
    /// Between packets, while `cwnd` is below one.
    gap: Option<Time>,
    state: Box<State>,
}

#[derive(Clone, Debug, PartialEq)]
struct State {
    /// The congestion window, in packets.
    cwnd: f64,
    /// Smoothed round trip; until the first is measured, the target without flow scaling.
    rtt: Time,
    measured: bool,
    last_cut: Option<Time>,
    /// Since the last acknowledgement, one a round trip.
    time_outs: u32,
    terms: Terms,
}

/// The parameters, as the formulas take them: times in picoseconds, windows in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Terms {
    /// Target of a window that flow scaling does not reach.
    floor: f64,
    /// Flow scaling adds `slope / sqrt(cwnd) - offset`, from zero to `range`.
    slope: f64,
    offset: f64,
    range: f64,
    increase: f64,
    decrease: f64,
    max_cut: f64,
    reset_after: u32,
    min: f64,
    max: f64,
}

impl Terms {
    fn new(config: &SwiftConfig, flow: &FlowPace) -> Terms {
        let (low, high) = (config.scaling_min, config.scaling_max);
        assert!(low > 0.0 && low < high, "flow scaling from {low} up to {high} packets");
        let packets = |bytes: u64| bytes as f64 / f64::from(flow.mtu);
        let ps = |time: Time| time.0 as f64;
        // 1 / sqrt(cwnd) falls by `fall` while the term falls from `range` to zero. IEEE rounds
        // square roots correctly, as it does the four basic operations: alike on all platforms.
        let fall = 1.0 / low.sqrt() - 1.0 / high.sqrt();
        let slope = ps(config.scaling_range) / fall;
        let max = packets(config.max_window).max(1.0);
        Terms {
            floor: ps(config.base_target) + f64::from(flow.hops) * ps(config.per_hop),
            slope,
            offset: slope / high.sqrt(),
            range: ps(config.scaling_range),
            increase: config.increase,
            decrease: config.decrease,
            max_cut: config.max_cut,
            reset_after: config.reset_after,
            min: packets(config.min_window.max(1)).min(max),
            max,
        }
    }

    #[inline(always)]
    fn target(&self, cwnd: f64) -> f64 {
        self.floor + (self.slope / cwnd.sqrt() - self.offset).clamp(0.0, self.range)
    }
}

impl State {
    #[inline(always)]
    fn on_ack(&mut self, ack: &AckInfo) {
        self.time_outs = 0;
        if ack.rtt == Time::ZERO {
            return;
        }
        self.measure(ack.rtt);
        let delay = ack.rtt.0 as f64;
        // The first comparison spares the root while the path is idle.
        if delay < self.terms.floor || delay < self.terms.target(self.cwnd) {
            return self.grow(f64::from(ack.packets));
        }
        // A packet that left before the last cut says nothing about what that cut did.
        if self.may_cut(ack.now, ack.rtt) {
            let excess = (delay - self.terms.target(self.cwnd)) / delay;
            let share = (self.terms.decrease * excess).min(self.terms.max_cut);
            if share > 0.0 {
                self.cut(ack.now, share);
            }
        }
    }

    #[inline(always)]
    fn measure(&mut self, rtt: Time) {
        self.rtt = match self.measured {
            true => Time(self.rtt.0 - self.rtt.0 / 8 + rtt.0 / 8),
            false => rtt,
        };
        self.measured = true;
    }

    /// By `increase` packets a round trip, or an acknowledgement while that is longer.
    #[inline(always)]
    fn grow(&mut self, packets: f64) {
        let more = self.terms.increase * packets / self.cwnd.max(1.0);
        self.cwnd = (self.cwnd + more).min(self.terms.max);
    }

    /// Whether `round_trip` has passed since the last cut.
    fn may_cut(&self, now: Time, round_trip: Time) -> bool {
        self.last_cut.is_none_or(|cut| cut.until(now) >= round_trip)
    }

    fn cut(&mut self, now: Time, share: f64) {
        self.cwnd = (self.cwnd * (1.0 - share)).max(self.terms.min);
        self.last_cut = Some(now);
    }

    fn on_loss(&mut self, now: Time, loss: Loss) {
        // Many packets lost together are one loss, however many timers run out for them.
        if !self.may_cut(now, self.rtt) {
            return;
        }
        self.time_outs += u32::from(loss == Loss::TimeOut);
        let close = loss == Loss::TimeOut && self.time_outs >= self.terms.reset_after;
        self.cut(now, if close { 1.0 } else { self.terms.max_cut });
    }
}

impl Swift {
    pub(super) fn new(config: &SwiftConfig, flow: &FlowPace) -> Swift {
        let terms = Terms::new(config, flow);
        let initial = config.initial_window as f64 / f64::from(flow.mtu);
        let state = State {
            cwnd: initial.clamp(terms.min, terms.max),
            rtt: Time(terms.floor as u64),
            measured: false,
            last_cut: None,
            time_outs: 0,
            terms,
        };
        let mut swift = Swift { window: 1, gap: None, state: Box::new(state) };
        swift.refresh();
        swift
    }

    /// The window in packets; may be below one.
    pub fn cwnd(&self) -> f64 {
        self.state.cwnd
    }
    /// The round trip that the window aims at now.
    pub fn target(&self) -> Time {
        Time(self.state.terms.target(self.state.cwnd) as u64)
    }

    #[inline(always)]
    fn refresh(&mut self) {
        let State { cwnd, rtt, .. } = *self.state;
        self.window = (cwnd as u32).max(1);
        self.gap = (cwnd < 1.0).then(|| Time((rtt.0 as f64 / cwnd) as u64));
    }
}

impl CongestionState for Swift {
    const PACED: bool = true;
    const WANTS_RTT: bool = true;

    #[inline(always)]
    fn window(&self) -> u32 {
        self.window
    }
    #[inline(always)]
    fn pacing(&self, _: u32) -> Option<Time> {
        self.gap
    }
    #[inline(always)]
    fn is_late(&self, rtt: Time) -> bool {
        rtt > Time::ZERO && rtt.0 as f64 > self.state.terms.target(self.state.cwnd)
    }
    #[inline(always)]
    fn on_ack(&mut self, ack: &AckInfo) {
        self.state.on_ack(ack);
        self.refresh();
    }
    fn on_loss(&mut self, now: Time, loss: Loss) {
        self.state.on_loss(now, loss);
        self.refresh();
    }
}
