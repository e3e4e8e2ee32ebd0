//! Hosts that move a flow once its round trips are congested: PLB and FlowBender.
//!
//! Both count, a round trip at a time, how many of the acknowledgements bring a mark, or with
//! `signal = "delay"` come later than congestion control aims at (PLB in Falcon, OCP specification 0.9, 2024,
//! which smooths delays first; there a window of packets is a round). A round
//! ends with the acknowledgement of a packet that left after the round began, and that
//! acknowledgement still belongs to it. A flow that moves draws a new entropy.
//!
//! [`Plb`] is that of Linux (`net/ipv4/tcp_plb.c`, after Qureshi et al. 2022), [`FlowBender`]
//! that of Kabbani et al. (2014).

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream, Time, random};

/// Protective load balancing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plb {
    /// What says that a packet met congestion.
    pub signal: Signal,
    /// A round is congested if this share of its packets met congestion.
    pub threshold: f64,
    /// Congested rounds in a row after which a flow moves. Never zero.
    pub rounds: u32,
    /// Congested rounds in a row after which it moves when it starts sending again with
    /// nothing out. Zero: never.
    pub idle_rounds: u32,
    /// After a time-out it moves at once, and then not again for a random time from this to
    /// twice this.
    pub suspend: Time,
}

/// What says that a packet met congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A mark.
    Ecn,
    /// A round trip longer than congestion control aims at.
    Delay,
}

impl Scheme for Plb {
    const INFO: SchemeInfo = SchemeInfo {
        name: "plb",
        summary: "a new path after some congested round trips, fewer when the flow was idle",
        source: "PLB (Qureshi et al. 2022) as in Linux",
        multipath: true,
        options: &[
            OptionInfo {
                key: "signal",
                default: "ecn",
                kind: OptionKind::Word(&["ecn", "delay"]),
                meaning: "\"ecn\": a mark says that a packet met congestion; \"delay\": a round trip longer \
                          than congestion control aims at, as in Falcon, which takes swift",
            },
            OptionInfo {
                key: "threshold",
                default: "0.5",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "share of packets that met congestion from which a round trip is congested",
            },
            OptionInfo {
                key: "rounds",
                default: "12",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "congested round trips in a row after which a flow moves, 1 or more",
            },
            OptionInfo {
                key: "idle_rounds",
                default: "3",
                kind: OptionKind::Whole(0, u32::MAX),
                meaning: "the same for a flow that has nothing out when it sends; 0: never",
            },
            OptionInfo {
                key: "suspend",
                default: "60s",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "after a time-out a flow moves, and not again for this to twice this",
            },
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<PlbFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Plb, OptionError> {
        Ok(Plb {
            signal: options.choice("signal", &[("ecn", Signal::Ecn), ("delay", Signal::Delay)])?,
            threshold: options.fraction("threshold")?,
            rounds: options.number("rounds")?,
            idle_rounds: options.number("idle_rounds")?,
            suspend: options.time("suspend")?,
        })
    }
    fn follows_delay(&self) -> bool {
        self.signal == Signal::Delay
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<PlbFlow> {
        Box::new(PlbFlow::new(*self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// A flow under [`Plb`].
#[derive(Clone, Debug)]
pub struct PlbFlow {
    scheme: Plb,
    path: Path,
    round: Round,
    /// Congested rounds in a row, up to [`Plb::rounds`].
    congested: u32,
    /// It stays where it is until then.
    suspended: Time,
}

impl PlbFlow {
    /// For one flow.
    pub fn new(scheme: Plb, context: &FlowContext<'_>) -> PlbFlow {
        let path = Path::new(Draw::new(context.seed, "plb").stream(context.flow));
        PlbFlow { scheme, path, round: Round::default(), congested: 0, suspended: Time::ZERO }
    }
    /// Moves, unless a time-out forbids it: then the congested rounds stay counted.
    fn leave(&mut self, now: Time) {
        if now >= self.suspended {
            self.path.leave(now);
            self.congested = 0;
        }
    }
}

impl Steer for PlbFlow {
    const TIMED: bool = true;

    #[inline]
    fn route(&mut self, base: Route, at: Departure) -> Route {
        let idle_rounds = self.scheme.idle_rounds;
        if at.in_flight == 0 && idle_rounds > 0 && self.congested >= idle_rounds {
            self.leave(at.now);
        }
        self.path.route(base)
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        let Plb { signal, threshold, rounds, .. } = self.scheme;
        let congested = if signal == Signal::Ecn { feedback.marked } else { feedback.late };
        let Some(share) = self.round.count(&feedback, congested) else { return };
        self.congested = if share < threshold { 0 } else { rounds.min(self.congested + 1) };
        if self.congested == rounds {
            self.leave(feedback.now);
        }
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        if !time_out.reaches(self.path.since) {
            return;
        }
        self.path.leave(time_out.now);
        self.congested = 0;
        let Time(span) = self.scheme.suspend;
        let more = Time(random::below(self.path.stream.bits(), span));
        self.suspended = time_out.now.saturating_add(self.scheme.suspend).saturating_add(more);
    }
}

/// FlowBender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowBender {
    /// A round is congested if a larger share of its packets than this was marked.
    pub threshold: f64,
    /// Congested rounds in a row after which a flow moves. Never zero.
    pub rounds: u32,
}

impl Scheme for FlowBender {
    const INFO: SchemeInfo = SchemeInfo {
        name: "flowbender",
        summary: "a new path after a congested round trip or a time-out",
        source: "FlowBender (Kabbani et al. 2014)",
        multipath: true,
        options: &[
            OptionInfo {
                key: "threshold",
                default: "0.05",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "share of marked packets above which a round trip is congested",
            },
            OptionInfo {
                key: "rounds",
                default: "1",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "congested round trips in a row after which a flow moves, 1 or more",
            },
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<BentFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<FlowBender, OptionError> {
        let threshold = options.fraction("threshold")?;
        Ok(FlowBender { threshold, rounds: options.number("rounds")? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<BentFlow> {
        Box::new(BentFlow::new(*self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// A flow under [`FlowBender`].
#[derive(Clone, Debug)]
pub struct BentFlow {
    scheme: FlowBender,
    path: Path,
    round: Round,
    /// Congested rounds in a row.
    congested: u32,
}

impl BentFlow {
    /// For one flow.
    pub fn new(scheme: FlowBender, context: &FlowContext<'_>) -> BentFlow {
        let path = Path::new(Draw::new(context.seed, "flowbender").stream(context.flow));
        BentFlow { scheme, path, round: Round::default(), congested: 0 }
    }
    fn leave(&mut self, now: Time) {
        self.path.leave(now);
        self.congested = 0;
    }
}

impl Steer for BentFlow {
    const TIMED: bool = true;

    #[inline]
    fn route(&mut self, base: Route, _: Departure) -> Route {
        self.path.route(base)
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        let FlowBender { threshold, rounds } = self.scheme;
        let Some(share) = self.round.count(&feedback, feedback.marked) else { return };
        self.congested = if share > threshold { self.congested + 1 } else { 0 };
        if self.congested == rounds {
            self.leave(feedback.now);
        }
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        if time_out.reaches(self.path.since) {
            self.leave(time_out.now);
        }
    }
}

/// The flow's own route until it moves, then one random entropy after the other.
#[derive(Clone, Debug)]
struct Path {
    stream: Stream,
    moved: Option<u16>,
    /// When it moved last.
    since: Time,
}

impl Path {
    fn new(stream: Stream) -> Path {
        Path { stream, moved: None, since: Time::ZERO }
    }
    #[inline]
    fn route(&self, base: Route) -> Route {
        match (base, self.moved) {
            (Route::Hashed(_), Some(entropy)) => Route::Hashed(entropy),
            _ => base,
        }
    }
    fn leave(&mut self, now: Time) {
        self.moved = Some((self.stream.bits() >> 48) as u16);
        self.since = now;
    }
}

/// What came back in the present round trip.
#[derive(Clone, Debug, Default)]
struct Round {
    /// When it began; `None` before the first acknowledgement.
    began: Option<Time>,
    acked: u32,
    congested: u32,
}

impl Round {
    /// Counts an acknowledgement. If it ends the round: the share of packets that met congestion.
    #[inline]
    fn count(&mut self, feedback: &Feedback, congested: bool) -> Option<f64> {
        let Feedback { now, rtt, .. } = *feedback;
        self.acked += 1;
        self.congested += u32::from(congested);
        // The first acknowledgement of all begins a round and ends none.
        let Some(began) = self.began else {
            self.began = Some(now);
            return None;
        };
        let left = rtt.until(now);
        if left < began {
            return None;
        }
        let share = f64::from(self.congested) / f64::from(self.acked);
        *self = Round { began: Some(now), acked: 0, congested: 0 };
        Some(share)
    }
}
