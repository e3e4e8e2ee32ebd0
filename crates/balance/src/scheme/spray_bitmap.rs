//! Spraying that skips bad entropies: a score for each, as UEC htsim has it.
//!
//! Packets walk through the entropies of their flow as under [`super::SprayCounter`]. Marks, NACKs
//! and time-outs raise the score of their entropy; a packet whose turn is that of an entropy with a
//! score takes one off, and goes on to the next entropy without. [`SprayMixed`], the default there,
//! walks only if no unmarked acknowledgement has brought back an entropy to use again.
//!
//! A flow is not told which packet timed out. An entropy pays if a packet left under it as long ago
//! as that, and nothing has come back under it since: so one that leads to a dead link pays, and
//! one that lost a single packet among others does not.
//!
//! What the switch of the receiver's link has trimmed says nothing against its path, which all others end
//! in.
//!
//! [`STrack`] has one bit an entropy instead of a score, and skips it once. Its congestion control and its
//! recovery are ancestors of UET's (`nscc`, and `uet` with `sleek`), which stand for them here.
//!
//! Invariant: no score is above the cap, and a packet pays for one entropy at most.

use super::reps::remember;
use super::spray::{CounterSpray, ENTROPIES, read_entropies};
use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Time};

/// What raises the score of an entropy, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scores {
    /// A marked acknowledgement.
    pub mark: u8,
    /// A packet that lost its payload.
    pub nack: u8,
    /// A time-out.
    pub time_out: u8,
    /// No score goes beyond.
    pub cap: u8,
}

/// What a score may be: it is kept in a byte.
const SCORE: OptionKind = OptionKind::Whole(0, 255);
const OPTIONS: &[OptionInfo] = &[
    ENTROPIES,
    OptionInfo {
        key: "mark_score",
        default: "1",
        kind: SCORE,
        meaning: "what a mark adds to the score of its entropy value",
    },
    OptionInfo {
        key: "nack_score",
        default: "4",
        kind: SCORE,
        meaning: "the same for a packet that a switch has trimmed",
    },
    OptionInfo {
        key: "time_out_score",
        default: "15",
        kind: SCORE,
        meaning: "the same for a time-out",
    },
    OptionInfo {
        key: "score_cap",
        default: "15",
        kind: SCORE,
        meaning: "the most that a score can be",
    },
];

impl Scores {
    fn read(options: &mut Options<'_>) -> Result<Scores, OptionError> {
        let mut score = |key| options.number(key).map(|score| score as u8);
        Ok(Scores {
            mark: score("mark_score")?,
            nack: score("nack_score")?,
            time_out: score("time_out_score")?,
            cap: score("score_cap")?,
        })
    }
}

/// Every packet the next entropy without a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SprayBitmap {
    /// How many entropy values, a power of two up to 65,536.
    pub entropies: u32,
    /// What makes them bad.
    pub scores: Scores,
}

impl Scheme for SprayBitmap {
    const INFO: SchemeInfo = SchemeInfo {
        name: "spray-bitmap",
        summary: "every packet the next entropy value, but for those that marks and losses exclude",
        source: "UEC htsim, bitmap",
        multipath: true,
        options: OPTIONS,
        paths: PathUse::AllByRoom,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<BitmapFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<SprayBitmap, OptionError> {
        let entropies = read_entropies(options)?;
        Ok(SprayBitmap { entropies, scores: Scores::read(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<BitmapFlow> {
        Box::new(BitmapFlow::new(self.entropies, self.scores, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// Every packet a recycled entropy, if there is one; else the next without a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SprayMixed {
    /// How many entropy values, a power of two up to 65,536.
    pub entropies: u32,
    /// What makes them bad.
    pub scores: Scores,
}

impl Scheme for SprayMixed {
    const INFO: SchemeInfo = SchemeInfo {
        name: "spray-mixed",
        summary: "recycles entropy values of unmarked acknowledgements, else as spray-bitmap",
        source: "UEC htsim, mixed (its default)",
        multipath: true,
        options: OPTIONS,
        paths: PathUse::AllByRoom,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<MixedFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<SprayMixed, OptionError> {
        let entropies = read_entropies(options)?;
        Ok(SprayMixed { entropies, scores: Scores::read(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<MixedFlow> {
        let bitmap = BitmapFlow::new(self.entropies, self.scores, context);
        Box::new(MixedFlow { recycled: VecDeque::new(), bitmap })
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// STrack's spraying: every packet the next entropy, but for those that were marked since their last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct STrack {
    /// How many entropy values, a power of two up to 65,536.
    pub entropies: u32,
}

impl Scheme for STrack {
    const INFO: SchemeInfo = SchemeInfo {
        name: "strack",
        summary: "every packet the next entropy value; one that was marked is skipped once",
        source: "STrack (Le et al. 2024), its load balancing",
        multipath: true,
        options: &[ENTROPIES],
        paths: PathUse::AllByRoom,
        congestion: "nscc",
        wants_reports: true,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<BitmapFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<STrack, OptionError> {
        Ok(STrack { entropies: read_entropies(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<BitmapFlow> {
        let once = Scores { mark: 1, nack: 1, time_out: 1, cap: 1 };
        Box::new(BitmapFlow::new(self.entropies, once, context))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// A flow under [`SprayBitmap`].
#[derive(Clone, Debug)]
pub struct BitmapFlow {
    raise: Scores,
    walk: CounterSpray,
    /// The index of the first entropy of the walk.
    first: usize,
    /// Of each entropy that the walk has come to, in the order of its first round: a message of a
    /// few packets has a few.
    scores: Vec<u8>,
    /// How many of them are not zero.
    bad: u32,
    /// When the first packet left under each of these since anything came back under it;
    /// [`Time::MAX`]: none has.
    silent_since: Vec<Time>,
}

impl BitmapFlow {
    /// For one flow, over `entropies` values.
    ///
    /// # Panics
    /// If `entropies` is not a power of two up to 65,536.
    pub fn new(entropies: u32, raise: Scores, context: &FlowContext<'_>) -> BitmapFlow {
        let stream = Draw::new(context.seed, "spray-bitmap").stream(context.flow);
        let walk = CounterSpray::drawn(entropies, stream);
        let first = walk.next_index();
        BitmapFlow { raise, walk, first, scores: Vec::new(), bad: 0, silent_since: Vec::new() }
    }

    /// The entropy of the next packet that is not recycled.
    #[inline]
    pub fn next_entropy(&mut self) -> u16 {
        let entropy = self.walk_on();
        if self.scores[self.place(entropy)] == 0 { entropy } else { self.skip(entropy) }
    }
    /// The next entropy of the walk, with a score from now on.
    #[inline]
    fn walk_on(&mut self) -> u16 {
        let entropy = self.walk.next_entropy();
        self.reach(entropy);
        entropy
    }
    /// Where `entropy` has its score: as which of all it comes in the first round.
    #[inline]
    fn place(&self, entropy: u16) -> usize {
        self.walk.index(entropy) ^ self.first
    }
    /// The same, with room for it made.
    #[inline]
    fn reach(&mut self, entropy: u16) -> usize {
        let place = self.place(entropy);
        if place >= self.scores.len() {
            self.scores.resize(place + 1, 0);
            self.silent_since.resize(place + 1, Time::MAX);
        }
        place
    }
    /// Takes one off the score of `entropy`; the next without one. If all have one, then
    /// `entropy` is as good as any.
    fn skip(&mut self, entropy: u16) -> u16 {
        let all = self.walk.entropies();
        let is_hopeless = self.bad == all;
        let place = self.place(entropy);
        let score = &mut self.scores[place];
        *score -= 1;
        self.bad -= u32::from(*score == 0);
        if is_hopeless {
            return entropy;
        }
        // Two rounds, since the order changes in between, meet every entropy.
        for _ in 0..2 * all {
            let next = self.walk_on();
            if self.scores[self.place(next)] == 0 {
                return next;
            }
        }
        entropy
    }

    /// A packet leaves under `entropy`.
    #[inline]
    fn note(&mut self, now: Time, entropy: u16) {
        let place = self.place(entropy);
        let since = &mut self.silent_since[place];
        *since = now.min(*since);
    }
    fn raise(&mut self, place: usize, by: u8) {
        let score = &mut self.scores[place];
        let raised = score.saturating_add(by).min(self.raise.cap);
        self.bad += u32::from(*score == 0 && raised > 0);
        *score = raised;
    }
}

impl Steer for BitmapFlow {
    fn entropies(&self) -> Option<RangeInclusive<u16>> {
        Some(self.walk.all())
    }
    #[inline]
    fn route(&mut self, _: Route, at: Departure) -> Route {
        let entropy = self.next_entropy();
        self.note(at.now, entropy);
        Route::Hashed(entropy)
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        let place = self.reach(feedback.entropy);
        self.silent_since[place] = Time::MAX;
        if !feedback.is_good() {
            let by = if feedback.trimmed { self.raise.nack } else { self.raise.mark };
            self.raise(place, by);
        }
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        for place in 0..self.silent_since.len() {
            if time_out.reaches(self.silent_since[place]) {
                self.silent_since[place] = Time::MAX;
                self.raise(place, self.raise.time_out);
            }
        }
    }
}

/// A flow under [`SprayMixed`].
#[derive(Clone, Debug)]
pub struct MixedFlow {
    /// Entropies to use again, the oldest first.
    recycled: VecDeque<u16>,
    bitmap: BitmapFlow,
}

impl Steer for MixedFlow {
    #[inline]
    fn route(&mut self, base: Route, at: Departure) -> Route {
        let Some(entropy) = self.recycled.pop_front() else {
            return self.bitmap.route(base, at);
        };
        self.bitmap.note(at.now, entropy);
        Route::Hashed(entropy)
    }
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        self.bitmap.on_ack(feedback);
        if feedback.is_good() {
            remember(&mut self.recycled, feedback.entropy);
        }
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        self.bitmap.on_time_out(time_out);
    }
}
