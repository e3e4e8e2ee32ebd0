//! The search for source ports.

use super::{Crossing, FiveTuple, HashFunction, Hasher, PortRange};

/// The ports that lead along one path.
#[derive(Clone, Debug)]
pub(crate) struct Fitting {
    range: PortRange,
    /// `None`: all of the range.
    hash: Option<HashChoice>,
}

/// What is hashed, and what shall come of it.
///
/// Functions are linear: the next port has the value of this one with some bits flipped, always the
/// same for the same bits of the port. So a search costs next to nothing a port.
#[derive(Clone, Debug)]
struct HashChoice {
    /// The value under port zero.
    base: u32,
    /// What the lowest bit of the port flips of the value, the lowest two together, and so on.
    flips: [u32; 16],
    /// What each switch shall choose.
    wanted: Vec<(Hasher, Crossing)>,
}

impl HashChoice {
    fn new(
        function: HashFunction,
        tuple: FiveTuple,
        wanted: Vec<(Hasher, Crossing)>,
    ) -> HashChoice {
        let value = |src_port| function.value(&FiveTuple { src_port, ..tuple });
        let flips = std::array::from_fn(|bit| value(0) ^ value(u16::MAX >> (15 - bit)));
        HashChoice { base: value(0), flips, wanted }
    }
    fn value(&self, port: u16) -> u32 {
        let below = |bit: usize| if bit == 0 { 0 } else { self.flips[bit - 1] };
        let set = (0..16).filter(|bit| port >> bit & 1 == 1);
        set.fold(self.base, |value, bit| value ^ self.flips[bit] ^ below(bit))
    }
    /// The first port of `range` that leads along the path.
    fn first_of(&self, range: PortRange) -> Option<u16> {
        let mut value = self.value(range.first);
        for port in range.ports() {
            let chosen = |(hasher, at): &(Hasher, Crossing)| hasher.pick(value, at.hops) == at.hop;
            if self.wanted.iter().all(chosen) {
                return Some(port);
            }
            // One more flips all ones at the end and the zero before them.
            value ^= self.flips[(port.trailing_ones() as usize).min(15)];
        }
        None
    }
}

impl Fitting {
    /// All ports of `range`.
    pub(super) fn all(range: PortRange) -> Fitting {
        Fitting { range, hash: None }
    }
    /// Those of `range` with which each of these switches chooses as `wanted`, all of them hashing
    /// `tuple` by `function`, each with a seed and offset of its own.
    pub(super) fn hashed(
        range: PortRange,
        function: HashFunction,
        tuple: FiveTuple,
        wanted: Vec<(Hasher, Crossing)>,
    ) -> Fitting {
        Fitting { range, hash: Some(HashChoice::new(function, tuple, wanted)) }
    }

    /// The first one in part of the range.
    fn first_of(&self, range: PortRange) -> Option<u16> {
        self.hash.as_ref().map_or(Some(range.first), |hash| hash.first_of(range))
    }
    /// Whether `port` is one of them.
    pub(crate) fn fits(&self, port: u16) -> bool {
        self.range.has(port) && self.first_of(PortRange { first: port, last: port }).is_some()
    }
    /// All of them, ascending.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        std::iter::successors(self.first_of(self.range), |port| self.behind(*port))
    }
    fn behind(&self, port: u16) -> Option<u16> {
        let last = self.range.last;
        (port < last).then(|| self.first_of(PortRange { first: port + 1, last })).flatten()
    }
    /// Those that take the right hop at the first switch.
    pub(crate) fn at_first(mut self) -> Fitting {
        if let Some(choice) = &mut self.hash {
            choice.wanted.truncate(1);
        }
        self
    }
    /// The next one after `last`, round and round.
    pub(crate) fn after(&self, last: Option<u16>) -> Option<u16> {
        let behind = last.and_then(|last| self.behind(last));
        behind.or_else(|| self.first_of(self.range))
    }
}
