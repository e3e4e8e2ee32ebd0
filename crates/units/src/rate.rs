//! Link rates, and the exact time that a packet of some size takes on a wire.

use crate::Time;
use std::fmt;
use std::ops::RangeInclusive;

/// Bits per second. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// `bits` per second.
    ///
    /// # Panics
    /// If `bits` is zero: a link that carries nothing is a link that is down.
    pub const fn bps(bits: u64) -> Rate {
        assert!(bits > 0, "a rate is at least one bit per second");
        Rate(bits)
    }
    /// `n` gigabits per second (decimal).
    pub const fn gbps(n: u64) -> Rate {
        Rate::bps(n * 1_000_000_000)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// The time to send `bytes`, rounded up to a picosecond.
    pub fn serialize(self, bytes: u64) -> Time {
        let ps = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(self.0));
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }
    /// The time to send `bytes` by a clock that only counts whole `cycle`s: rounded down to one;
    /// without a cycle (zero) as [`Rate::serialize`].
    pub fn serialize_in(self, bytes: u64, cycle: Time) -> Time {
        if cycle == Time::ZERO {
            return self.serialize(bytes);
        }
        let cycles =
            u128::from(bytes) * 8_000_000_000_000 / (u128::from(self.0) * u128::from(cycle.0));
        Time(u64::try_from(cycles * u128::from(cycle.0)).unwrap_or(u64::MAX))
    }
    /// Whole bytes that fit into `span` at this rate (a bandwidth-delay product).
    pub fn bytes_in(self, span: Time) -> u64 {
        let bytes = u128::from(span.0) * u128::from(self.0) / 8_000_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Rate {
    /// What links and queue pairs may be told: below, serialisation times are not exact; above, they
    /// fall below a picosecond a byte.
    pub const SENSIBLE: RangeInclusive<Rate> = Rate::bps(1_000_000)..=Rate::gbps(8_000);
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "Kbps"), (1, "bps")];
        let (scale, unit) = UNITS
            .into_iter()
            .find(|(scale, _)| self.0.is_multiple_of(*scale))
            .expect("every number is a multiple of one");
        write!(f, "{}{unit}", self.0 / scale)
    }
}

/// A rate prepared for the hot path: serialisation time with one multiplication.
///
/// Times are exact where 8 Tb/s is a multiple of the rate (all usual link speeds), and
/// rounded up to the next picosecond elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Picoseconds per byte, in 1/65536, rounded up.
    scaled: u64,
}

impl Wire {
    const SHIFT: u32 = 16;

    /// Prepares `rate`. Exact for packets up to 64 KiB at 1 Mb/s and faster; below some kb/s
    /// times stop growing, at 2 ms a byte, where they would no longer fit.
    pub fn new(rate: Rate) -> Wire {
        const LONGEST: u64 = u64::MAX >> 17;
        let scaled = (8_000_000_000_000u128 << Wire::SHIFT).div_ceil(u128::from(rate.0));
        Wire { scaled: u64::try_from(scaled).map_or(LONGEST, |scaled| scaled.min(LONGEST)) }
    }
    /// The time to send `bytes`.
    #[inline(always)]
    pub fn time(self, bytes: u32) -> Time {
        let round_up = (1 << Wire::SHIFT) - 1;
        Time((u64::from(bytes) * self.scaled + round_up) >> Wire::SHIFT)
    }
}
