//! Network-signalled congestion control of Ultra Ethernet (UE specification 1.0, section 3.6.13), as
//! UEC htsim runs it: a window in bytes, steered by ECN and by the delay in queues.
//!
//! | mark | delay | what happens |
//! |---|---|---|
//! | no | below target | proportional increase; fast increase once a window has seen no delay at all |
//! | no | at target or above | fair increase |
//! | yes | at target or above | multiplicative decrease by the average delay, once a round trip |
//! | yes | below target | nothing: the load balancer takes another path |
//!
//! Quick adapt: where loss or much delay came with few bytes in a round trip, the window becomes what
//! came, and what was under way then no longer counts. Increases are collected, and applied
//! every few packets; once a round trip the window grows by a little whatever the signals.
//!
//! What is ours: sums of increases are wide numbers (in UEC htsim they have 32 bits, which wrap at 800
//! Gb/s). The window counts in full packets. The service time of the receiver is zero.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, Delays, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Rate, Time};

/// What NSCC is told. Windows in bytes on the wire. Names in quotes are the specification's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NsccConfig {
    /// Unloaded round trip of the longest path, "config_base_rtt".
    pub base_rtt: Time,
    /// The rate of a host's link.
    pub line: Rate,
    /// Delay in queues to aim at; `None`: three quarters of `base_rtt` where switches trim, else all
    /// of it.
    pub target: Option<Time>,
    /// Window at the start.
    pub initial_window: u64,
    /// The window never grows beyond, "MaxWnd".
    pub max_window: u64,
    /// How strongly a cut follows the excess over the target, "gamma".
    pub gamma: f64,
    /// What a cut leaves at least, as a share, "max_md_jump".
    pub least_left: f64,
    /// Packets, in proportion to the path, of a fair increase, "fi".
    pub fair: f64,
    /// Packets by which the window grows a round trip in any case, "eta".
    pub eta: f64,
    /// Share of what is acknowledged that a fast increase adds, "fi_scale".
    pub fast: f64,
    /// Whether it adapts quickly to loss.
    pub quick_adapt: bool,
    /// It does when less than the largest window over two to this came, "qa_gate".
    pub gate: u32,
    /// Or when the delay is this many times the target, "qa_threshold".
    pub threshold: f64,
    /// Packets between two applications of increases, "adjust_bytes".
    pub adjust: u32,
    /// Weight of the newest delay in the average.
    pub gain: f64,
}

pub(super) const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        key: "nscc_target_delay",
        default: "auto",
        kind: OptionKind::Or(&OptionKind::Time(Time::ns(1)), "auto"),
        meaning: "delay in queues to aim at; \"auto\": 3/4 of the longest path's unloaded round trip \
                  where switches trim, else all of it",
    },
    OptionInfo {
        key: "nscc_initial_window",
        default: "1.5bdp",
        kind: OptionKind::Window,
        meaning: "window at the start; a size, or times the BDP",
    },
    OptionInfo {
        key: "nscc_max_window",
        default: "1.5bdp",
        kind: OptionKind::Window,
        meaning: "the window never grows beyond; a size, or times the BDP",
    },
    OptionInfo {
        key: "nscc_gamma",
        default: "0.8",
        kind: OptionKind::Number(0.0, 1.0),
        meaning: "how strongly a cut follows the delay",
    },
    OptionInfo {
        key: "nscc_max_md_jump",
        default: "0.5",
        kind: OptionKind::Number(0.0, 1.0),
        meaning: "share of the window that a cut leaves at least",
    },
    OptionInfo {
        key: "nscc_fi",
        default: "5.0",
        kind: OptionKind::Number(0.0, 1000.0),
        meaning: "packets of a fair increase, at a BDP of 150 kB",
    },
    OptionInfo {
        key: "nscc_eta",
        default: "0.15",
        kind: OptionKind::Number(0.0, 1000.0),
        meaning: "packets by which the window grows each round trip, at a BDP of 150 kB",
    },
    OptionInfo {
        key: "nscc_fi_scale",
        default: "0.25",
        kind: OptionKind::Number(0.0, 1000.0),
        meaning: "bytes of a fast increase for each acknowledged one, at a BDP of 150 kB",
    },
    OptionInfo {
        key: "nscc_quick_adapt",
        default: "true",
        kind: OptionKind::Flag,
        meaning: "set the window to what came where loss or delay show heavy congestion",
    },
    OptionInfo {
        key: "nscc_qa_gate",
        default: "3",
        kind: OptionKind::Whole(0, 16),
        meaning: "quick adapt needs less than the largest window over two to this in a round trip",
    },
    OptionInfo {
        key: "nscc_qa_threshold",
        default: "4.0",
        kind: OptionKind::Number(0.0, 1e6),
        meaning: "delay, in targets, from which quick adapt needs no loss",
    },
    OptionInfo {
        key: "nscc_adjust_packets",
        default: "8",
        kind: OptionKind::Whole(1, 1 << 16),
        meaning: "acknowledged packets after which collected increases are applied",
    },
    OptionInfo {
        key: "nscc_delay_gain",
        default: "0.0125",
        kind: OptionKind::Number(0.0, 1.0),
        meaning: "weight of the newest delay in the average",
    },
];

impl NsccConfig {
    pub(super) fn read(o: &mut Options<'_>, path: &PathScale) -> Result<NsccConfig, OptionError> {
        let (initial_window, max_window) =
            super::read_windows(o, ["nscc_initial_window", "nscc_max_window"], path)?;
        Ok(NsccConfig {
            base_rtt: path.round_trip,
            line: path.line,
            target: o.time_or_word("nscc_target_delay")?,
            initial_window,
            max_window,
            gamma: o.fraction("nscc_gamma")?,
            least_left: o.fraction("nscc_max_md_jump")?,
            fair: o.fraction("nscc_fi")?,
            eta: o.fraction("nscc_eta")?,
            fast: o.fraction("nscc_fi_scale")?,
            quick_adapt: o.flag("nscc_quick_adapt")?,
            gate: o.number("nscc_qa_gate")?,
            threshold: o.fraction("nscc_qa_threshold")?,
            adjust: o.number("nscc_adjust_packets")?,
            gain: o.fraction("nscc_delay_gain")?,
        })
    }
}

impl CongestionControl for NsccConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "nscc",
        summary: "window steered by marks and by delay in queues, in four branches",
        source: "Ultra Ethernet specification 1.0, NSCC; UEC htsim",
        sets_rate: false,
        uses_marks: true,
        aims_at_delay: false,
        options: OPTIONS,
    };
    type State = Nscc;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<NsccConfig, OptionError> {
        NsccConfig::read(o, path)
    }
    fn state(&self, flow: &FlowPace) -> Nscc {
        Nscc::new(self, flow, false)
    }
    fn initial_window(&self) -> Option<u64> {
        Some(self.initial_window)
    }
}

/// The state of one queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Nscc {
    /// The window, in full packets, at least one.
    window: u32,
    state: Box<State>,
}

/// Bytes on the wire, and picoseconds.
#[derive(Clone, Debug, PartialEq)]
struct State {
    cwnd: f64,
    max: f64,
    /// Increases not applied yet, times the window.
    increase: f64,
    /// Acknowledged since they were last applied.
    received: f64,
    /// Acknowledged since the round trip of quick adapt began.
    achieved: f64,
    /// When that ends.
    adapt_at: Option<Time>,
    /// Loss was reported since the last quick adapt.
    trigger: bool,
    /// What of `to_ignore`, under way at the last quick adapt, is accounted for.
    ignored: f64,
    to_ignore: f64,
    /// Acknowledged without delay, one after the other.
    undelayed: f64,
    /// In fast increase.
    increasing: bool,
    average: f64,
    base_rtt: f64,
    cut_at: Time,
    applied_at: Time,
    /// A packet, with its header.
    packet: f64,
    terms: Terms,
}

/// What follows from the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Terms {
    target: f64,
    /// Bytes for each picosecond below the target.
    alpha: f64,
    fair: f64,
    eta: f64,
    fast: f64,
    gamma: f64,
    least_left: f64,
    quick_adapt: bool,
    gate: f64,
    threshold: f64,
    adjust: f64,
    period: f64,
    gain: f64,
    /// The largest window over the round trip.
    bytes_per_time: f64,
    /// Receiver credit is on too, which takes care of the last hop.
    credit: bool,
}

/// Of the network that the constants are for: a bandwidth-delay product of 100 Gb/s times 12 us.
const REFERENCE_BDP: f64 = 150_000.0;
const REFERENCE_DELAY: f64 = 12e6;
/// A delay below is none: 1 us.
const NO_DELAY: f64 = 1e6;

impl Nscc {
    /// `credit`: the receiver grants credit, too.
    pub(super) fn new(config: &NsccConfig, flow: &FlowPace, credit: bool) -> Nscc {
        let base_rtt = config.base_rtt.0 as f64;
        let scale = config.line.bytes_in(config.base_rtt) as f64 / REFERENCE_BDP;
        let (packet, payload) = (f64::from(flow.wire_bytes()), f64::from(flow.mtu));
        let usual = if flow.trims { 0.75 * base_rtt } else { base_rtt };
        let target = config.target.map_or(usual, |target| target.0 as f64);
        let max = (config.max_window as f64).max(packet);
        let terms = Terms {
            target,
            alpha: 4.0 * payload * scale / REFERENCE_DELAY,
            fair: config.fair * payload * scale,
            eta: config.eta * payload * scale,
            fast: config.fast * scale,
            gamma: config.gamma,
            least_left: config.least_left,
            quick_adapt: config.quick_adapt,
            gate: f64::from(1u32 << config.gate),
            threshold: config.threshold * target,
            adjust: f64::from(config.adjust) * packet,
            period: base_rtt,
            gain: config.gain,
            bytes_per_time: max / base_rtt,
            credit,
        };
        let state = State {
            cwnd: (config.initial_window as f64).clamp(packet, max),
            max,
            increase: 0.0,
            received: 0.0,
            achieved: 0.0,
            adapt_at: None,
            trigger: false,
            ignored: 0.0,
            to_ignore: 0.0,
            undelayed: 0.0,
            increasing: false,
            average: 0.0,
            base_rtt,
            cut_at: Time::ZERO,
            applied_at: Time::ZERO,
            packet,
            terms,
        };
        let mut nscc = Nscc { window: 0, state: Box::new(state) };
        nscc.round();
        nscc
    }
    /// The window in bytes on the wire.
    pub fn bytes(&self) -> f64 {
        self.state.cwnd
    }
    /// A full packet, with its header.
    pub(super) fn packet(&self) -> f64 {
        self.state.packet
    }
    fn round(&mut self) {
        self.window = (self.state.cwnd / self.state.packet) as u32;
    }
}

impl State {
    fn clamp(&mut self) {
        self.cwnd = self.cwnd.clamp(self.packet, self.max);
    }

    /// The delay in queues that a round trip tells of; where it tells nothing, the average.
    fn delay(&mut self, rtt: Time) -> f64 {
        if rtt == Time::ZERO {
            return self.average;
        }
        let rtt = rtt.0 as f64;
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max = (self.terms.bytes_per_time * rtt).max(self.packet);
        }
        rtt - self.base_rtt
    }
    /// Long queues that drain are forgotten.
    fn average_in(&mut self, delay: f64, marked: bool) {
        let drains = !marked && delay > self.terms.target;
        let sample = if drains { 0.25 * self.base_rtt } else { delay };
        self.average += self.terms.gain * (sample - self.average);
    }

    /// Whether there is nothing more to be done about a signal.
    fn quick_adapt(
        &mut self,
        now: Time,
        (marked, lost): (bool, bool),
        delay: f64,
        out: f64,
    ) -> bool {
        if self.ignored < self.to_ignore && marked {
            (self.increase, self.received) = (0.0, 0.0);
            return true;
        }
        if !self.terms.quick_adapt || self.adapt_at.is_some_and(|at| now <= at) {
            return false;
        }
        let is_congested = self.trigger || lost || delay > self.terms.threshold;
        let adapts =
            self.adapt_at.is_some() && is_congested && self.achieved < self.max / self.terms.gate;
        if adapts {
            self.cwnd = self.achieved.max(self.packet);
            (self.to_ignore, self.ignored) = (out, 0.0);
            self.trigger = false;
            (self.increase, self.received) = (0.0, 0.0);
        }
        self.achieved = 0.0;
        self.adapt_at = Some(now + Time((self.base_rtt + self.terms.target) as u64));
        adapts
    }

    fn increase(&mut self, bytes: f64, delay: f64) {
        if delay < NO_DELAY {
            self.undelayed += bytes;
            if self.increasing || self.undelayed > self.cwnd {
                self.increasing = true;
                self.cwnd += self.terms.fast * bytes;
                return;
            }
        } else {
            (self.undelayed, self.increasing) = (0.0, false);
        }
        self.increase += self.terms.alpha * bytes * (self.terms.target - delay);
    }
    fn decrease(&mut self, now: Time) {
        (self.undelayed, self.increasing) = (0.0, false);
        let (average, target) = (self.average, self.terms.target);
        if average > target && self.cut_at.until(now).0 as f64 > self.base_rtt {
            let left = 1.0 - self.terms.gamma * (average - target) / average;
            self.cwnd *= left.max(self.terms.least_left);
            self.cut_at = now;
        }
    }
    /// Applies what has been collected.
    fn apply(&mut self, now: Time) {
        self.clamp();
        let waited = self.applied_at.until(now).0 as f64;
        if self.received > self.terms.adjust || waited > self.terms.period {
            self.cwnd += self.increase / self.cwnd;
            if waited >= self.terms.period {
                self.cwnd += self.terms.eta;
                self.applied_at = now;
            }
            (self.increase, self.received) = (0.0, 0.0);
            self.clamp();
        }
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let AckInfo { now, packets, marked, in_flight, rtt, .. } = *ack;
        let bytes = f64::from(packets) * self.packet;
        let out = f64::from(in_flight.saturating_sub(packets)) * self.packet;
        let delay = self.delay(rtt);
        self.average_in(delay, marked);
        self.achieved += bytes;
        self.received += bytes;
        self.ignored += bytes;
        if self.quick_adapt(now, (marked, false), delay, out) {
            return;
        }
        match (marked, delay >= self.terms.target) {
            (false, true) => self.increase += self.terms.fair * bytes,
            (false, false) => self.increase(bytes, delay),
            (true, true) => self.decrease(now),
            (true, false) => {}
        }
        self.apply(now);
    }
    /// A packet is lost, when with it `in_flight` were out.
    fn on_nack(&mut self, now: Time, in_flight: u32, last_hop: bool) {
        let out = f64::from(in_flight.saturating_sub(1)) * self.packet;
        self.ignored += self.packet;
        self.average_in(self.terms.period, true);
        self.trigger = true;
        let is_receivers = self.terms.credit && last_hop;
        if !self.quick_adapt(now, (true, true), 0.0, out) && !is_receivers {
            self.cwnd -= self.packet;
            self.clamp();
        }
    }
}

impl CongestionState for Nscc {
    const WANTS_RTT: bool = true;

    #[inline(always)]
    fn window(&self) -> u32 {
        self.window
    }
    fn largest_window(&self) -> u32 {
        (self.state.max / self.state.packet) as u32
    }
    fn delays(&self) -> Option<Delays> {
        let [base_rtt, target] = [self.state.base_rtt, self.state.terms.target];
        Some(Delays { base_rtt: Time(base_rtt as u64), target: Time(target as u64) })
    }
    #[inline(never)]
    fn on_ack(&mut self, ack: &AckInfo) {
        self.state.on_ack(ack);
        self.round();
    }
    fn on_loss(&mut self, now: Time, loss: Loss) {
        match loss {
            Loss::Gap => self.state.on_nack(now, self.window, false),
            Loss::Trimmed { last_hop, in_flight } => self.state.on_nack(now, in_flight, last_hop),
            Loss::TimeOut => {
                self.state.cwnd -= self.state.packet;
                self.state.clamp();
            }
        }
        self.round();
    }
}
