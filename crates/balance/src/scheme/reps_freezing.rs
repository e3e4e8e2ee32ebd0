//! REPS with a ring: recycled entropies that freeze when packets get lost.
//!
//! [`RepsFreezing`] is the scheme as published in 2025 (Bonato et al., "REPS: recycled entropy packet
//! spraying"; the form in UEC htsim), [`Reps2026`] that of EuroSys 2026.
//!
//! A ring keeps the entropies of the last unmarked acknowledgements. Each serves one packet; a
//! packet that finds none fresh takes any. After a time-out the flow is frozen for a while: its
//! packets go round the ring again and again, used up or not, since those are the entropies that
//! are known to have worked. When it thaws, the ring is forgotten, and the next packets explore.
//!
//! That of 2026 differs in two points. A bandwidth-delay product of packets explores: at first and after a frost (as its
//! artifact has it; the paper has one packet in eight explore then). A connection that starts again explores, too; here that
//! is another flow. And it tells failures from congestion: where nothing is trimmed, a time-out freezes a flow
//! only if round trips were short before it. "Before" is ours: since one to two spans of [`SPAN`] base round
//! trips; the artifact takes those of a time-out.
//!
//! Invariant: what is fresh are the last slots before the head, so that a count says which.

use super::reps::{ENTROPIES, Entropies, read_entropies};
use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream, Time};

/// Recycled entropies, as published in 2025.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepsFreezing {
    /// How many entropy values a flow has, 1 to 65,536.
    pub entropies: u32,
    /// How many of them the ring keeps. Never zero.
    pub ring: u32,
    /// How long a flow is frozen after a time-out.
    pub freeze: Time,
    /// How many packets explore after that.
    pub explore: u32,
}

impl Scheme for RepsFreezing {
    const INFO: SchemeInfo = SchemeInfo {
        name: "reps-freezing",
        summary: "recycles the last good entropy values, and only those after a time-out",
        source: "REPS (Bonato et al. 2025); UEC htsim",
        multipath: true,
        options: &[
            ENTROPIES,
            RING,
            FREEZE,
            OptionInfo {
                key: "explore",
                default: "16",
                kind: OptionKind::Whole(0, u32::MAX),
                meaning: "packets with random entropy values after that",
            },
        ],
        paths: PathUse::AllByRoom,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<FreezingFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<RepsFreezing, OptionError> {
        Ok(RepsFreezing {
            entropies: read_entropies(options)?,
            ring: read_ring(options)?,
            freeze: options.time("freeze")?,
            explore: options.number("explore")?,
        })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<FreezingFlow> {
        Box::new(FreezingFlow::new(*self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// Recycled entropies, as published in 2026.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reps2026 {
    /// How many entropy values a flow has, 1 to 65,536.
    pub entropies: u32,
    /// How many of them the ring keeps. Never zero.
    pub ring: u32,
    /// How long a flow is frozen after a failure.
    pub freeze: Time,
    /// How many packets explore at a time; `None`: a bandwidth-delay product.
    pub explore: Option<u32>,
    /// Where nothing is trimmed, a time-out is a failure if round trips before it were shorter than this many
    /// base round trips.
    pub rtt_limit: f64,
}

impl Scheme for Reps2026 {
    const INFO: SchemeInfo = SchemeInfo {
        name: "reps-2026",
        summary: "as reps-freezing; a window of packets explores first, and failures are told from congestion",
        source: "REPS (Bonato et al., EuroSys 2026) and its artifact",
        multipath: true,
        options: &[
            OptionInfo { default: "65536", ..ENTROPIES },
            RING,
            FREEZE,
            OptionInfo {
                key: "explore",
                default: "bdp",
                kind: OptionKind::Or(&OptionKind::Whole(0, u32::MAX), "bdp"),
                meaning: "packets with random entropy values at first and after a frost; \"bdp\": a \
                          bandwidth-delay product",
            },
            OptionInfo {
                key: "rtt_limit",
                default: "1.65",
                kind: OptionKind::Number(1.0, 1e6),
                meaning: "without trimming: no frost if a round trip before the time-out was longer than \
                          this many base round trips",
            },
        ],
        paths: PathUse::AllByRoom,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<Flow2026>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Reps2026, OptionError> {
        Ok(Reps2026 {
            entropies: read_entropies(options)?,
            ring: read_ring(options)?,
            freeze: options.time("freeze")?,
            explore: options.number_or_word("explore")?,
            rtt_limit: options.fraction("rtt_limit")?,
        })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<Flow2026> {
        Box::new(Flow2026::new(self, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// How many base round trips long the spans are whose longest round trip [`Flow2026`] remembers.
pub const SPAN: u64 = 8;

const RING: OptionInfo = OptionInfo {
    key: "ring",
    default: "8",
    kind: OptionKind::Whole(1, 1 << 16),
    meaning: "entropy values that a flow remembers, up to 65536",
};
const FREEZE: OptionInfo = OptionInfo {
    key: "freeze",
    default: "10ms",
    kind: OptionKind::Time(Time::ZERO),
    meaning: "time that a flow keeps to what it remembers after a time-out",
};

fn read_ring(options: &mut Options<'_>) -> Result<u32, OptionError> {
    options.number("ring")
}

/// What a packet's entropy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The oldest that is fresh.
    Recycling,
    /// The slots in turn, whatever they are worth.
    Frozen { until: Time, turn: u32 },
    /// Chance, for so many packets more. Never none.
    Exploring { packets: u32 },
}

/// A flow under [`RepsFreezing`].
#[derive(Clone, Debug)]
pub struct FreezingFlow {
    scheme: RepsFreezing,
    stream: Stream,
    entropies: Entropies,
    /// Grows to [`RepsFreezing::ring`] slots.
    ring: Vec<u16>,
    /// The slot that is written next.
    head: u32,
    /// How many slots before the head have not served a packet.
    fresh: u32,
    mode: Mode,
}

impl FreezingFlow {
    /// For one flow.
    ///
    /// # Panics
    /// If it has no entropy value, or more than 65,536.
    pub fn new(scheme: RepsFreezing, context: &FlowContext<'_>) -> FreezingFlow {
        let mut stream = Draw::new(context.seed, "reps").stream(context.flow);
        let entropies = Entropies::new(scheme.entropies, &mut stream);
        let (ring, mode) = (Vec::new(), Mode::Recycling);
        FreezingFlow { scheme, stream, entropies, ring, head: 0, fresh: 0, mode }
    }

    /// The entropy of a packet that leaves at `now`.
    #[inline]
    pub fn next_entropy(&mut self, now: Time) -> u16 {
        self.thaw(now);
        match self.mode {
            Mode::Recycling if self.fresh > 0 => self.oldest_fresh(),
            Mode::Recycling => self.entropies.any(&mut self.stream),
            Mode::Frozen { until, turn } => self.next_in_turn(until, turn),
            Mode::Exploring { packets } => {
                self.mode = exploring(packets - 1);
                self.entropies.any(&mut self.stream)
            }
        }
    }

    #[inline]
    fn oldest_fresh(&mut self) -> u16 {
        let (slots, back) = (self.ring.len() as u32, self.fresh);
        let at = if self.head >= back { self.head - back } else { self.head + slots - back };
        self.fresh -= 1;
        self.ring[at as usize]
    }

    fn next_in_turn(&mut self, until: Time, turn: u32) -> u16 {
        let Some(entropy) = self.ring.get(turn as usize).copied() else {
            // Nothing has ever come back.
            return self.entropies.any(&mut self.stream);
        };
        let turn = if turn + 1 == self.ring.len() as u32 { 0 } else { turn + 1 };
        self.mode = Mode::Frozen { until, turn };
        entropy
    }

    /// Puts what an unmarked acknowledgement brings into the ring.
    #[inline]
    fn keep(&mut self, entropy: u16) {
        if self.head as usize == self.ring.len() {
            self.ring.push(entropy);
        } else {
            self.ring[self.head as usize] = entropy;
        }
        let slots = self.scheme.ring;
        self.head = if self.head + 1 == slots { 0 } else { self.head + 1 };
        self.fresh = slots.min(self.fresh + 1);
    }

    /// Ends the frost if it is time.
    #[inline]
    fn thaw(&mut self, now: Time) {
        if let Mode::Frozen { until, .. } = self.mode
            && now >= until
        {
            self.ring.clear();
            (self.head, self.fresh) = (0, 0);
            self.mode = exploring(self.scheme.explore);
        }
    }
}

fn exploring(packets: u32) -> Mode {
    if packets == 0 { Mode::Recycling } else { Mode::Exploring { packets } }
}

impl Steer for FreezingFlow {
    #[inline]
    fn route(&mut self, _: Route, at: Departure) -> Route {
        Route::Hashed(self.next_entropy(at.now))
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        self.thaw(feedback.now);
        if feedback.is_good() {
            self.keep(feedback.entropy);
        }
    }
    /// Freezes the flow, unless it is frozen or explores.
    fn on_time_out(&mut self, TimeOut { now, .. }: TimeOut) {
        self.thaw(now);
        if self.mode == Mode::Recycling {
            let until = now.saturating_add(self.scheme.freeze);
            self.mode = Mode::Frozen { until, turn: 0 };
        }
    }
}

/// A flow under [`Reps2026`].
#[derive(Clone, Debug)]
pub struct Flow2026 {
    ring: FreezingFlow,
    /// No frost if a round trip was longer; [`Time::MAX`]: whatever it was.
    limit: Time,
    span: Time,
    /// When the present span ends.
    span_ends: Time,
    /// The longest round trips of the last span and of the present one.
    longest: [Time; 2],
}

impl Flow2026 {
    /// For one flow.
    ///
    /// # Panics
    /// As [`FreezingFlow::new`].
    pub fn new(scheme: &Reps2026, context: &FlowContext<'_>) -> Flow2026 {
        let Reps2026 { entropies, ring, freeze, explore, rtt_limit } = *scheme;
        let explore = explore.unwrap_or(context.first_window());
        let base = context.base_rtt();
        let limit = match context.trims {
            true => Time::MAX,
            false => Time((base.0 as f64 * rtt_limit) as u64),
        };
        let ring = RepsFreezing { entropies, ring, freeze, explore };
        let mut ring = FreezingFlow::new(ring, context);
        ring.mode = exploring(explore);
        Flow2026 { ring, limit, span: base * SPAN, span_ends: Time::ZERO, longest: [Time::ZERO; 2] }
    }
    /// Begins a new span if the present one is over.
    fn move_on(&mut self, now: Time) {
        if now >= self.span_ends {
            let is_old = self.span_ends.until(now) >= self.span;
            self.longest = [if is_old { Time::ZERO } else { self.longest[1] }, Time::ZERO];
            self.span_ends = now + self.span;
        }
    }
}

impl Steer for Flow2026 {
    const TIMED: bool = true;

    #[inline]
    fn route(&mut self, base: Route, at: Departure) -> Route {
        self.ring.route(base, at)
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        self.move_on(feedback.now);
        self.longest[1] = self.longest[1].max(feedback.rtt);
        self.ring.on_ack(feedback);
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        self.move_on(time_out.now);
        if self.longest[0].max(self.longest[1]) <= self.limit {
            self.ring.on_time_out(time_out);
        }
    }
}
