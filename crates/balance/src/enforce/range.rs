//! Ranges of UDP source ports, cut into equal parts (CTCCL 2025, equation 2).

use std::ops::RangeInclusive;

/// Ports from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port, not below the first.
    pub last: u16,
}

impl PortRange {
    /// All source ports of RoCEv2, as NICs have them: 14 bits.
    pub const ROCE: PortRange = PortRange { first: 0xC000, last: 0xFFFF };

    /// How many ports.
    pub const fn len(self) -> u32 {
        self.last as u32 - self.first as u32 + 1
    }
    /// Whether it has no port: never.
    pub const fn is_empty(self) -> bool {
        false
    }
    /// Whether `port` is one of them.
    pub fn has(self, port: u16) -> bool {
        self.ports().contains(&port)
    }
    /// All of them, ascending.
    pub fn ports(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
    /// The one behind `last`, round and round; the first if there is none.
    #[inline]
    pub(super) fn after(self, last: Option<u16>) -> u16 {
        last.filter(|last| *last < self.last).map_or(self.first, |last| last + 1)
    }
    /// The `index`-th of `parts` equal parts. What does not divide is behind the last one.
    ///
    /// # Panics
    /// If there are fewer ports than parts.
    pub fn part(self, index: u32, parts: u32) -> PortRange {
        let step = self.len() / parts;
        assert!(step > 0 && index < parts, "part {index} of {parts} of {self:?}");
        let first = u32::from(self.first) + index * step;
        PortRange { first: first as u16, last: (first + step - 1) as u16 }
    }
    /// In which of `parts` equal parts `port` is. `None`: it is below the range, or behind the last
    /// part.
    #[inline]
    pub fn part_of(self, port: u16, parts: u32) -> Option<u32> {
        let offset = u32::from(port).checked_sub(u32::from(self.first))?;
        let part = offset / (self.len() / parts);
        (part < parts).then_some(part)
    }
}
