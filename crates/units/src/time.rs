//! Simulated time in whole picoseconds: one bit at 1 Tb/s, so that link times stay exact.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Picoseconds: an instant since the start of a run, or a span. Wraps after 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The start of a run; an empty span.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const MAX: Time = Time(u64::MAX);

    /// `n` picoseconds.
    pub const fn ps(n: u64) -> Time {
        Time(n)
    }
    /// `n` nanoseconds.
    pub const fn ns(n: u64) -> Time {
        Time(n * 1_000)
    }
    /// `n` microseconds.
    pub const fn us(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// `n` milliseconds.
    pub const fn ms(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }
    /// `n` seconds.
    pub const fn secs(n: u64) -> Time {
        Time(n * 1_000_000_000_000)
    }
    /// Seconds, correctly rounded.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// The span to `later`, or zero if `later` is not later.
    pub fn until(self, later: Time) -> Time {
        Time(later.0.saturating_sub(self.0))
    }
    /// The sum, or [`Time::MAX`] where it would overflow.
    pub fn saturating_add(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}
impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}
impl SubAssign for Time {
    fn sub_assign(&mut self, other: Time) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}

/// The largest unit that keeps the number whole (`1500ns`, never `1.5us`): parses back exactly.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (1_000_000_000_000, "s"),
            (1_000_000_000, "ms"),
            (1_000_000, "us"),
            (1_000, "ns"),
            (1, "ps"),
        ];
        if self.0 == 0 {
            return write!(f, "0ns");
        }
        let (scale, unit) = UNITS
            .into_iter()
            .find(|(scale, _)| self.0.is_multiple_of(*scale))
            .expect("every number is a multiple of one");
        write!(f, "{}{unit}", self.0 / scale)
    }
}
