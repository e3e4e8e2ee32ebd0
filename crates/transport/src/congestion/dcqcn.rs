//! DCQCN (Zhu et al., SIGCOMM 2015, section 3.2): a rate without a window, cut when the receiver
//! says that it saw marks, and raised by timer and byte counter.
//!
//! *Notification point.* The receiver sends a congestion notification (CNP) for marked packets, at
//! most one in an interval. Here the sender makes CNPs of marked acknowledgements, by the same
//! rule: the first counts at once, and what is marked within the interval after it counts once, at
//! its end. So a CNP takes the way of an acknowledgement, and costs nothing.
//!
//! *Reaction point.* A CNP makes the current rate the target, takes the share `alpha / 2` off the
//! rate, and then moves `alpha` up by `alpha += g (1 - alpha)`; a timer without a CNP moves it down
//! by `alpha -= g alpha`. Timer and byte counter raise the rate. As long as neither has run out
//! more than `F` times since the cut, the rate goes half of the way to the target (fast recovery);
//! then the target grows by a constant before (additive increase); and once both have run out more
//! than `F` times, by another one times the number of times beyond (hyper increase, as in QCN).
//! A queue pair starts at line rate with `alpha = 1`. A loss changes nothing.
//!
//! *NICs* as the code behind ConWeave (SIGCOMM 2023) models them differ, and so does
//! [`DcqcnConfig`] where it is told so: without a byte counter the timer alone counts, and hyper
//! increase begins after one round of additive increase, with a constant; a cut that follows
//! another one without an increase between them leaves the target alone unless `clamp` is set; with
//! `gaps` a gap that the receiver reports is a mark; and where the timer of `alpha` is shorter than
//! the interval of CNPs, `alpha` moves up with each of its own intervals in which there was a mark.
//!
//! No timer has an event: what it would have done is made up for when an acknowledgement comes or a
//! packet leaves, which is when it matters.

use super::{
    AckInfo, CongestionControl, CongestionInfo, CongestionState, FlowPace, Loss, PathScale,
};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Rate, Time};

/// Shorter timers would run out many times a packet.
const TIMER: OptionKind = OptionKind::Time(Time::ns(1));
/// A smaller counter would count packets.
const COUNTER: OptionKind = OptionKind::Or(&OptionKind::Size(65_536, 1_000_000_000_000), "none");

/// What DCQCN is told; names in quotes are the paper's. Rates are those of packets with their
/// headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcqcnConfig {
    /// At least so long from one CNP to the next, and so from one cut to the next; "N".
    pub cnp_interval: Time,
    /// Without a CNP `alpha` decays each time that this has passed. More than zero.
    pub alpha_timer: Time,
    /// The rate is raised each time that this has passed since the last cut, "T". More than zero.
    pub increase_timer: Time,
    /// The rate is also raised each time that so many bytes have left since then, "B"; more than
    /// zero. `None`: the timer alone counts.
    pub byte_counter: Option<u64>,
    /// How often timer or byte counter run out before the target grows, "F".
    pub fast_recovery: u32,
    /// What the target then grows by each time, "R_AI".
    pub increase: Rate,
    /// What it grows by in the last phase, "R_HAI".
    pub hyper_increase: Rate,
    /// How fast `alpha` moves, "g".
    pub gain: f64,
    /// Every cut makes the rate the target; otherwise only one that follows an increase.
    pub clamp: bool,
    /// A gap that the receiver reports counts as a mark.
    pub gaps: bool,
    /// Where the rate starts, and its end.
    pub line: Rate,
    /// The rate never falls below.
    pub least: Rate,
}

impl DcqcnConfig {
    /// The paper's (section 5), for `line`. It names neither "R_HAI" nor the lowest rate; these
    /// are those of the code behind ConWeave at 100 Gb/s.
    pub const fn published(line: Rate) -> DcqcnConfig {
        DcqcnConfig {
            cnp_interval: Time::us(50),
            alpha_timer: Time::us(55),
            increase_timer: Time::us(55),
            byte_counter: Some(10_000_000),
            fast_recovery: 5,
            increase: Rate::bps(40_000_000),
            hyper_increase: Rate::bps(100_000_000),
            gain: 1.0 / 256.0,
            clamp: true,
            gaps: false,
            line,
            least: Rate::bps(100_000_000),
        }
    }
}

impl CongestionControl for DcqcnConfig {
    const INFO: CongestionInfo = CongestionInfo {
        name: "dcqcn",
        summary: "rate that notifications cut, and timer and byte counter raise; starts at line rate",
        source: "Zhu et al. (SIGCOMM 2015)",
        sets_rate: true,
        uses_marks: true,
        aims_at_delay: false,
        options: &[
            OptionInfo {
                key: "dcqcn_cnp_interval",
                default: "50us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "marks count as one notification, and cut the rate, at most so often",
            },
            OptionInfo {
                key: "dcqcn_alpha_timer",
                default: "55us",
                kind: TIMER,
                meaning: "time without a notification after which alpha decays, again and again",
            },
            OptionInfo {
                key: "dcqcn_increase_timer",
                default: "55us",
                kind: TIMER,
                meaning: "the rate is raised whenever so much time has passed since the last cut",
            },
            OptionInfo {
                key: "dcqcn_byte_counter",
                default: "10MB",
                kind: COUNTER,
                meaning: "and whenever so many bytes have left since; \"none\": the timer alone counts, \
                          as in NICs",
            },
            OptionInfo {
                key: "dcqcn_fast_recovery",
                default: "5",
                kind: OptionKind::Whole(0, 1_000),
                meaning: "how often timer or counter run out before the target grows",
            },
            OptionInfo {
                key: "dcqcn_increase",
                default: "40Mbps",
                kind: OptionKind::Rate,
                meaning: "what the target then grows by each time",
            },
            OptionInfo {
                key: "dcqcn_hyper_increase",
                default: "100Mbps",
                kind: OptionKind::Rate,
                meaning: "what it grows by once both have run out more often; times how much more \
                          often, if there is a counter",
            },
            OptionInfo {
                key: "dcqcn_gain",
                default: "0.00390625",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "weight of the newest mark in alpha",
            },
            OptionInfo {
                key: "dcqcn_clamp",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "every cut makes the rate the target; false: only one that follows an \
                          increase",
            },
            OptionInfo {
                key: "dcqcn_gaps",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "a gap that the receiver reports counts as a mark, as in NICs",
            },
            OptionInfo {
                key: "dcqcn_least",
                default: "100Mbps",
                kind: OptionKind::Rate,
                meaning: "the lowest rate",
            },
        ],
    };
    type State = Dcqcn;

    fn read(o: &mut Options<'_>, path: &PathScale) -> Result<DcqcnConfig, OptionError> {
        Ok(DcqcnConfig {
            cnp_interval: o.time("dcqcn_cnp_interval")?,
            alpha_timer: o.time("dcqcn_alpha_timer")?,
            increase_timer: o.time("dcqcn_increase_timer")?,
            byte_counter: o.size_or_word("dcqcn_byte_counter")?,
            fast_recovery: o.number("dcqcn_fast_recovery")?,
            increase: o.rate("dcqcn_increase")?,
            hyper_increase: o.rate("dcqcn_hyper_increase")?,
            gain: o.fraction("dcqcn_gain")?,
            clamp: o.flag("dcqcn_clamp")?,
            gaps: o.flag("dcqcn_gaps")?,
            line: path.line,
            least: o.rate("dcqcn_least")?,
        })
    }
    fn state(&self, flow: &FlowPace) -> Dcqcn {
        Dcqcn::new(self, flow)
    }
}

/// The state of one queue pair: what sending reads, and a box for the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcqcn {
    /// Bits per second.
    rate: f32,
    line: f32,
    /// At line rate, and no cut waits: nothing happens until the next mark.
    quiet: bool,
    state: Box<State>,
}

/// Rates in bits per second.
#[derive(Clone, Debug, PartialEq)]
struct State {
    target: f32,
    alpha: f32,
    /// CNPs, as they cut the rate and as they raise `alpha`.
    cuts: Gate,
    rises: Gate,
    /// When the timers run out next; [`Time::MAX`] before the first CNP.
    decay: Time,
    increase: Time,
    /// Bytes sent since the byte counter ran out, or the last cut.
    sent: u64,
    /// How often timer and byte counter have run out since the last cut.
    by_time: u32,
    by_bytes: u32,
    terms: Terms,
}

/// The parameters, as the formulas take them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Terms {
    config: DcqcnConfig,
    gain: f32,
    least: f32,
    increase: f32,
    hyper_increase: f32,
}

/// Lets marks through: one at once, and those of an interval after it as one at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gate {
    interval: Time,
    opens: Time,
    /// A mark waits for that.
    held: bool,
}

impl Gate {
    fn new(interval: Time) -> Gate {
        Gate { interval, opens: Time::ZERO, held: false }
    }
    /// A mark at `now`, when nothing that is due waits: whether it passes.
    fn mark(&mut self, now: Time) -> bool {
        if now < self.opens {
            self.held = true;
            return false;
        }
        self.pass(now);
        true
    }
    fn pass(&mut self, at: Time) {
        (self.opens, self.held) = (at + self.interval, false);
    }
    /// When the mark that waits passes; [`Time::MAX`] if none does.
    fn due(&self) -> Time {
        if self.held { self.opens } else { Time::MAX }
    }
}

impl Dcqcn {
    pub(super) fn new(config: &DcqcnConfig, flow: &FlowPace) -> Dcqcn {
        let bits = |rate: Rate| rate.as_bps() as f32;
        let line = bits(config.line) / flow.share as f32;
        let terms = Terms {
            config: *config,
            gain: config.gain as f32,
            least: bits(config.least).min(line),
            increase: bits(config.increase),
            hyper_increase: bits(config.hyper_increase),
        };
        let state = State {
            target: line,
            alpha: 1.0,
            cuts: Gate::new(config.cnp_interval),
            rises: Gate::new(config.cnp_interval.min(config.alpha_timer)),
            decay: Time::MAX,
            increase: Time::MAX,
            sent: 0,
            by_time: 0,
            by_bytes: 0,
            terms,
        };
        Dcqcn { rate: line, line, quiet: true, state: Box::new(state) }
    }

    /// Bits per second, headers included.
    pub fn rate(&self) -> f32 {
        self.rate
    }
    /// What the rate recovers to; may be beyond the line.
    pub fn target(&self) -> f32 {
        self.state.target
    }
    /// How much the next cut takes, times two: 0 to 1.
    pub fn alpha(&self) -> f32 {
        self.state.alpha
    }

    // Out of line, as all below: what every packet passes is to stay short.
    #[cold]
    #[inline(never)]
    fn count(&mut self, now: Time, wire_bytes: u32) {
        self.catch_up(now);
        // Timers may have brought the rate back to the line just now.
        if self.rate < self.line {
            let counter = self.state.terms.config.byte_counter.unwrap_or(u64::MAX);
            self.state.sent += u64::from(wire_bytes);
            while self.state.sent >= counter {
                self.state.sent -= counter;
                self.state.by_bytes += 1;
                self.raise();
            }
        }
        self.rest();
    }

    fn mark(&mut self, now: Time) {
        if self.state.cuts.mark(now) {
            self.cut(now);
        }
        if self.state.rises.mark(now) {
            self.state.rise(now);
        }
    }

    fn rest(&mut self) {
        self.quiet = self.rate >= self.line && !self.state.cuts.held;
    }

    /// All that was due until `now`. At one instant marks go before timers.
    fn catch_up(&mut self, now: Time) {
        loop {
            let (cut, rise) = (self.state.cuts.due(), self.state.rises.due());
            let at = cut.min(rise);
            if at > now {
                break;
            }
            self.run_timers(Time(at.0.saturating_sub(1)));
            if cut == at {
                self.state.cuts.pass(at);
                self.cut(at);
            }
            if rise == at {
                self.state.rises.pass(at);
                self.state.rise(at);
            }
        }
        self.run_timers(now);
    }

    fn run_timers(&mut self, now: Time) {
        self.state.fade(now);
        while self.state.increase <= now && self.rate < self.line {
            self.state.increase += self.state.terms.config.increase_timer;
            self.state.by_time += 1;
            self.raise();
        }
    }

    /// A CNP.
    fn cut(&mut self, at: Time) {
        let State { alpha, by_time, by_bytes, terms, .. } = *self.state;
        if terms.config.clamp || by_time + by_bytes > 0 {
            self.state.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - alpha / 2.0)).max(terms.least);
        (self.state.by_time, self.state.by_bytes, self.state.sent) = (0, 0, 0);
        self.state.increase = at + terms.config.increase_timer;
    }

    /// Timer or byte counter has run out.
    fn raise(&mut self) {
        self.state.target += self.state.step();
        self.rate = ((self.rate + self.state.target) / 2.0).min(self.line);
    }
}

impl CongestionState for Dcqcn {
    const PACED: bool = true;
    const PACES_ABSOLUTELY: bool = false;

    /// `None` at line rate.
    #[inline(always)]
    fn pacing(&self, wire_bytes: u32) -> Option<Time> {
        const BITS: f32 = 8e12;
        (self.rate < self.line).then(|| Time((wire_bytes as f32 * BITS / self.rate) as u64))
    }

    /// A packet leaves. Where there is nothing to raise, nothing is counted either: the next cut
    /// starts anew.
    #[inline(always)]
    fn on_send(&mut self, now: Time, wire_bytes: u32) {
        if !self.quiet {
            self.count(now, wire_bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_ack(&mut self, ack: &AckInfo) {
        self.catch_up(ack.now);
        if ack.marked {
            self.mark(ack.now);
        }
        self.rest();
    }

    #[cold]
    fn on_loss(&mut self, now: Time, loss: Loss) {
        if loss != Loss::TimeOut && self.state.terms.config.gaps {
            self.catch_up(now);
            self.mark(now);
            self.rest();
        }
    }
}

impl State {
    /// What the target grows by.
    fn step(&self) -> f32 {
        let Terms { config, increase, hyper_increase, .. } = self.terms;
        let (by_time, by_bytes, first) = (self.by_time, self.by_bytes, config.fast_recovery);
        let beyond = match config.byte_counter {
            Some(_) => by_time.min(by_bytes).saturating_sub(first),
            None => u32::from(by_time > first + 1),
        };
        if by_time.max(by_bytes) <= first {
            0.0
        } else if beyond > 0 {
            beyond as f32 * hyper_increase
        } else {
            increase
        }
    }

    /// A CNP moves `alpha` up.
    fn rise(&mut self, at: Time) {
        self.alpha += self.terms.gain * (1.0 - self.alpha);
        self.decay = at + self.terms.config.alpha_timer;
    }

    /// The timer of `alpha`.
    fn fade(&mut self, now: Time) {
        if self.decay <= now {
            let period = self.terms.config.alpha_timer;
            let times = self.decay.until(now).0 / period.0 + 1;
            self.alpha *= power(1.0 - self.terms.gain, times);
            self.decay += period * times;
        }
    }
}

/// `base` to the power of `n`, by multiplications alone: alike on all platforms.
fn power(base: f32, mut n: u64) -> f32 {
    let (mut result, mut square) = (1.0, base);
    while n > 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}
