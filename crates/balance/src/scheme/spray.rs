//! Oblivious spraying: a new entropy value for every packet, whatever the network says.
//!
//! Switches hash the entropy, so packets of one flow spread over all paths. No form looks at
//! feedback.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, FlowContext, Steer};
use std::ops::RangeInclusive;
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

/// A random entropy value for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spray;

impl Scheme for Spray {
    const INFO: SchemeInfo = SchemeInfo {
        name: "spray",
        summary: "a random path for every packet",
        source: "Ethereal (2025); McClure et al. (2025)",
        multipath: true,
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = RandomSpray;
    type Switching = Hashed;

    fn read(_: &mut Options<'_>) -> Result<Spray, OptionError> {
        Ok(Spray)
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> RandomSpray {
        RandomSpray::new(context.flow, context.seed)
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// How many entropy values a flow counts through.
pub(super) const ENTROPIES: OptionInfo = OptionInfo {
    key: "entropies",
    default: "64",
    kind: OptionKind::Whole(0, u32::MAX),
    meaning: "entropy values of a flow, a power of two up to 65536",
};

pub(super) fn read_entropies(options: &mut Options<'_>) -> Result<u32, OptionError> {
    let entropies = options.number("entropies")?;
    if entropies.is_power_of_two() && entropies <= 1 << 16 {
        return Ok(entropies);
    }
    let mend = "use a power of two up to 65536";
    Err(OptionError::new("entropies", format!("{entropies} is out of range; {mend}")))
}

/// Entropy values counted through, under a mask redrawn at each wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SprayCounter {
    /// How many entropy values, a power of two up to 65,536.
    pub entropies: u32,
}

impl Scheme for SprayCounter {
    const INFO: SchemeInfo = SchemeInfo {
        name: "spray-counter",
        summary: "every packet the next of some entropy values, in an order redrawn each round",
        source: "UEC htsim, oblivious",
        multipath: true,
        options: &[ENTROPIES],
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = CounterSpray;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<SprayCounter, OptionError> {
        Ok(SprayCounter { entropies: read_entropies(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> CounterSpray {
        CounterSpray::new(self.entropies, context.flow, context.seed)
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// Every packet the next entropy value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SprayLabel;

impl Scheme for SprayLabel {
    const INFO: SchemeInfo = SchemeInfo {
        name: "spray-label",
        summary: "every packet the next entropy value, as hosts count up a flow label",
        source: "McClure et al. (2025), spraying in hosts",
        multipath: true,
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = LabelSpray;
    type Switching = Hashed;

    fn read(_: &mut Options<'_>) -> Result<SprayLabel, OptionError> {
        Ok(SprayLabel)
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> LabelSpray {
        LabelSpray::new(context.flow, context.seed)
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// Every packet draws one of the 65,536 entropy values.
#[derive(Clone, Debug)]
pub struct RandomSpray {
    stream: Stream,
}

impl RandomSpray {
    /// For the flow `flow_key` under `seed`.
    pub fn new(flow_key: u64, seed: u64) -> RandomSpray {
        RandomSpray { stream: Draw::new(seed, "spray").stream(flow_key) }
    }
    /// The entropy of the next packet.
    #[inline(always)]
    pub fn next_entropy(&mut self) -> u16 {
        (self.next_bits() >> 48) as u16
    }
    /// Random bits for the next packet.
    #[inline(always)]
    pub fn next_bits(&mut self) -> u64 {
        self.stream.bits()
    }
}

impl Steer for RandomSpray {
    const HEARS: bool = false;

    #[inline(always)]
    fn route(&mut self, _: Route, _: Departure) -> Route {
        Route::Hashed(self.next_entropy())
    }
}

/// A counter walks through all entropy values of the flow, in an order that changes at each
/// wrap: the counter XOR a mask drawn anew (the oblivious balancer of UEC htsim). The values
/// are a block of consecutive ones at a place that the flow draws once.
#[derive(Clone, Debug)]
pub struct CounterSpray {
    stream: Stream,
    /// The counter's bits: the number of entropy values less one.
    bits: u16,
    /// What all entropies of the flow have above these bits.
    block: u16,
    counter: u16,
    mask: u16,
}

impl CounterSpray {
    /// For the flow `flow_key` under `seed`, over `entropies` values.
    ///
    /// # Panics
    /// If `entropies` is not a power of two up to 65,536.
    pub fn new(entropies: u32, flow_key: u64, seed: u64) -> CounterSpray {
        CounterSpray::drawn(entropies, Draw::new(seed, "spray-counter").stream(flow_key))
    }
    /// As [`CounterSpray::new`], with randomness of its own.
    pub(super) fn drawn(entropies: u32, mut stream: Stream) -> CounterSpray {
        assert!(
            entropies.is_power_of_two() && entropies <= 1 << 16,
            "a counted spray needs a power of two of entropies up to 65536, not {entropies}"
        );
        let bits = (entropies - 1) as u16;
        let block = (stream.bits() >> 48) as u16 & !bits;
        let mask = (stream.bits() >> 48) as u16 & bits;
        CounterSpray { stream, bits, block, counter: 0, mask }
    }
    /// The entropy of the next packet.
    #[inline]
    pub fn next_entropy(&mut self) -> u16 {
        let entropy = self.block | (self.counter ^ self.mask);
        self.counter = self.counter.wrapping_add(1) & self.bits;
        if self.counter == 0 {
            self.mask = (self.stream.bits() >> 48) as u16 & self.bits;
        }
        entropy
    }
    /// All entropies of the flow.
    pub(super) fn all(&self) -> RangeInclusive<u16> {
        self.block..=self.block | self.bits
    }
    /// How many entropies the flow has.
    pub(super) fn entropies(&self) -> u32 {
        u32::from(self.bits) + 1
    }
    /// Which of the flow's entropies this is, from zero.
    #[inline]
    pub(super) fn index(&self, entropy: u16) -> usize {
        usize::from(entropy & self.bits)
    }
    /// The index of the next one.
    pub(super) fn next_index(&self) -> usize {
        usize::from(self.counter ^ self.mask)
    }
}

impl Steer for CounterSpray {
    const HEARS: bool = false;

    fn entropies(&self) -> Option<RangeInclusive<u16>> {
        Some(self.all())
    }
    #[inline]
    fn route(&mut self, _: Route, _: Departure) -> Route {
        Route::Hashed(self.next_entropy())
    }
}

/// Some entropy value, then the one after it, and so on, wrapping at 65,536. Where it begins the
/// queue pair draws for itself: several on one route must not walk the same paths in step.
#[derive(Clone, Debug)]
pub struct LabelSpray {
    next: u16,
}

impl LabelSpray {
    /// For the flow `flow_key` under `seed`.
    pub fn new(flow_key: u64, seed: u64) -> LabelSpray {
        LabelSpray { next: (Draw::new(seed, "spray-label").at(flow_key, 0) >> 48) as u16 }
    }
}

impl Steer for LabelSpray {
    const HEARS: bool = false;

    #[inline(always)]
    fn route(&mut self, base: Route, _: Departure) -> Route {
        let label = self.next;
        self.next = label.wrapping_add(1);
        match base {
            Route::Hashed(_) => Route::Hashed(label),
            pinned => pinned,
        }
    }
}
