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

use super::{AckInfo, FlowPace, Loss};
use crate::SwiftConfig;
use weft_units::Time;

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
    /// In packets.
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

    #[inline(always)]
    pub(super) fn window(&self) -> u32 {
        self.window
    }
    #[inline(always)]
    pub(super) fn gap(&self) -> Option<Time> {
        self.gap
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
    pub(super) fn on_ack(&mut self, ack: &AckInfo) {
        self.state.on_ack(ack);
        self.refresh();
    }

    pub(super) fn on_loss(&mut self, now: Time, loss: Loss) {
        self.state.on_loss(now, loss);
        self.refresh();
    }

    #[inline(always)]
    fn refresh(&mut self) {
        let State { cwnd, rtt, .. } = *self.state;
        self.window = (cwnd as u32).max(1);
        self.gap = (cwnd < 1.0).then(|| Time((rtt.0 as f64 / cwnd) as u64));
    }
}
