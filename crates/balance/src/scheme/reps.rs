//! REPS: recycled entropies. What an unmarked acknowledgement brings back is used again.
//!
//! [`Reps`] is the scheme as published in 2024 (Bonato et al.; the legacy form in UEC
//! htsim): each cached entropy serves one packet. [`RepsSticky`] is what the code behind
//! Ethereal (2025) runs under that name: the oldest cached entropy serves every packet until a
//! congestion signal, which makes it a single path that moves. Both start with a walk
//! through consecutive entropies from a place drawn by the flow. The scheme as published in 2025
//! is [`super::RepsFreezing`].
//!
//! Invariant: a cache never holds more than [`CACHE`] entropies; the oldest one leaves.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use std::collections::VecDeque;
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

/// The most entropies that a flow remembers. Far beyond a window of packets, so that it
/// bounds memory and nothing else.
pub const CACHE: usize = 1024;

pub(super) const ENTROPIES: OptionInfo = OptionInfo {
    key: "entropies",
    default: "256",
    kind: OptionKind::Whole(1, 1 << 16),
    meaning: "entropy values of a flow, up to 65536",
};

pub(super) fn read_entropies(options: &mut Options<'_>) -> Result<u32, OptionError> {
    options.number("entropies")
}

/// Recycled entropies, as published in 2024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reps {
    /// How many entropy values the first window walks through, 1 to 65,536.
    pub entropies: u32,
}

impl Scheme for Reps {
    const INFO: SchemeInfo = SchemeInfo {
        name: "reps",
        summary: "recycles the entropy values of unmarked acknowledgements, one packet each",
        source: "REPS (Bonato et al. 2024); UEC htsim, legacy form",
        multipath: true,
        options: &[ENTROPIES],
        paths: PathUse::AllByRoom,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<RepsFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Reps, OptionError> {
        Ok(Reps { entropies: read_entropies(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<RepsFlow> {
        let FlowContext { flow, seed, .. } = *context;
        Box::new(RepsFlow::new(self.entropies, context.first_window(), flow, seed))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// REPS as the code behind Ethereal (2025) has it: the front of the cache stays in use until a
/// congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepsSticky {
    /// How many entropy values the first window walks through, 1 to 65,536.
    pub entropies: u32,
}

impl Scheme for RepsSticky {
    const INFO: SchemeInfo = SchemeInfo {
        name: "reps-sticky",
        summary: "keeps to one recycled entropy value until a mark or a time-out",
        source: "REPS as the code behind Ethereal (2025) has it",
        multipath: true,
        options: &[ENTROPIES],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<StickyFlow>;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<RepsSticky, OptionError> {
        Ok(RepsSticky { entropies: read_entropies(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<StickyFlow> {
        let FlowContext { flow, seed, .. } = *context;
        Box::new(StickyFlow::new(self.entropies, context.first_window(), flow, seed))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// The entropies of one flow: consecutive values (wrapping at 65,536) from a random first.
#[derive(Clone, Debug)]
pub(super) struct Entropies {
    first: u16,
    count: u32,
    /// How many of the walk are done, modulo `count`.
    walked: u32,
}

impl Entropies {
    pub(super) fn new(count: u32, stream: &mut Stream) -> Entropies {
        assert!(
            (1..=1 << 16).contains(&count),
            "REPS needs between 1 and 65536 entropies, not {count}"
        );
        Entropies { first: (stream.bits() >> 48) as u16, count, walked: 0 }
    }
    /// The next one in order.
    #[inline]
    fn walk(&mut self) -> u16 {
        let entropy = self.first.wrapping_add(self.walked as u16);
        self.walked += 1;
        if self.walked == self.count {
            self.walked = 0;
        }
        entropy
    }
    /// Any of the flow's entropy values.
    #[inline]
    pub(super) fn any(&self, stream: &mut Stream) -> u16 {
        self.first.wrapping_add(stream.below(self.count) as u16)
    }
}

/// A flow under [`Reps`].
#[derive(Clone, Debug)]
pub struct RepsFlow {
    stream: Stream,
    entropies: Entropies,
    /// Packets of the first window still to be sent.
    first_window: u32,
    cache: VecDeque<u16>,
}

impl RepsFlow {
    /// For the flow `flow_key` under `seed`, over `entropies` values; the first `window`
    /// packets walk through them.
    ///
    /// # Panics
    /// If `entropies` is not between 1 and 65,536.
    pub fn new(entropies: u32, window: u32, flow_key: u64, seed: u64) -> RepsFlow {
        let mut stream = Draw::new(seed, "reps").stream(flow_key);
        let entropies = Entropies::new(entropies, &mut stream);
        RepsFlow { stream, entropies, first_window: window, cache: VecDeque::new() }
    }
    /// The entropy of the next packet: in order in the first window; later the oldest of the
    /// cache, which it leaves; any if the cache is empty.
    #[inline]
    pub fn next_entropy(&mut self) -> u16 {
        if self.first_window > 0 {
            self.first_window -= 1;
            return self.entropies.walk();
        }
        match self.cache.pop_front() {
            Some(entropy) => entropy,
            None => self.entropies.any(&mut self.stream),
        }
    }
}

// REPS of 2024 knows no loss: a lost entropy simply never returns to the cache.
impl Steer for RepsFlow {
    #[inline]
    fn route(&mut self, _: Route, _: Departure) -> Route {
        Route::Hashed(self.next_entropy())
    }
    /// An unmarked acknowledgement brings its entropy back to the cache.
    #[inline]
    fn on_ack(&mut self, feedback: Feedback) {
        if feedback.is_good() {
            remember(&mut self.cache, feedback.entropy);
        }
    }
}

/// A flow under [`RepsSticky`].
#[derive(Clone, Debug)]
pub struct StickyFlow {
    entropies: Entropies,
    /// Packets of the first window still to be sent.
    first_window: u32,
    cache: VecDeque<u16>,
}

impl StickyFlow {
    /// For the flow `flow_key` under `seed`, over `entropies` values; at least the first
    /// `window` packets walk through them.
    ///
    /// # Panics
    /// If `entropies` is not between 1 and 65,536.
    pub fn new(entropies: u32, window: u32, flow_key: u64, seed: u64) -> StickyFlow {
        let mut stream = Draw::new(seed, "reps").stream(flow_key);
        let entropies = Entropies::new(entropies, &mut stream);
        StickyFlow { entropies, first_window: window, cache: VecDeque::new() }
    }
    /// The entropy of the next packet: in order in the first window and whenever the cache is
    /// empty; else the oldest of the cache, which stays there.
    #[inline]
    pub fn next_entropy(&mut self) -> u16 {
        if self.first_window > 0 {
            self.first_window -= 1;
            return self.entropies.walk();
        }
        match self.cache.front() {
            Some(entropy) => *entropy,
            None => self.entropies.walk(),
        }
    }
}

impl Steer for StickyFlow {
    #[inline]
    fn route(&mut self, _: Route, _: Departure) -> Route {
        Route::Hashed(self.next_entropy())
    }
    /// An unmarked acknowledgement brings its entropy to the cache unless it is there
    /// already; a marked one, whatever its entropy, drops the front.
    #[inline]
    fn on_ack(&mut self, Feedback { entropy, marked, .. }: Feedback) {
        if marked {
            self.cache.pop_front();
        } else if self.cache.front() != Some(&entropy) && !self.cache.contains(&entropy) {
            remember(&mut self.cache, entropy);
        }
    }
    /// Drops the front.
    fn on_time_out(&mut self, _: TimeOut) {
        self.cache.pop_front();
    }
}

/// Puts `entropy` at the end of a cache, which may cost the oldest its place.
#[inline]
pub(super) fn remember(cache: &mut VecDeque<u16>, entropy: u16) {
    if cache.len() == CACHE {
        cache.pop_front();
    }
    cache.push_back(entropy);
}
