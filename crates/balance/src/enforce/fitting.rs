//! The search for source ports.

use super::{Crossing, FiveTuple, HashFunction, Hasher, PortRange};

/// The ports that lead along one path.
#[derive(Clone, Debug)]
pub(crate) struct Fitting {
    pub(super) range: PortRange,
    /// `None`: all of the range.
    pub(super) hash: Option<HashChoice>,
}

/// What is hashed, and what shall come of it.
#[derive(Clone, Debug)]
pub(super) struct HashChoice {
    /// Of all switches: they differ in what they do to its value.
    pub(super) function: HashFunction,
    /// With any source port.
    pub(super) tuple: FiveTuple,
    /// What each switch shall choose.
    pub(super) wanted: Vec<(Hasher, Crossing)>,
}

impl Fitting {
    pub(crate) fn fits(&self, port: u16) -> bool {
        let Some(HashChoice { function, tuple, wanted }) = &self.hash else {
            return self.range.has(port);
        };
        let value = function.value(&FiveTuple { src_port: port, ..*tuple });
        let chosen = |(hasher, at): &(Hasher, Crossing)| hasher.pick(value, at.hops) == at.hop;
        self.range.has(port) && wanted.iter().all(chosen)
    }
    /// All of them, ascending.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.range.ports().filter(|port| self.fits(*port))
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
        let Some(last) = last else { return self.ports().next() };
        let behind = (last..=self.range.last).skip(1).find(|port| self.fits(*port));
        behind.or_else(|| (self.range.first..=last).find(|port| self.fits(*port)))
    }
}
