//! How long many things took, in little memory: counts by logarithmic classes.

use weft_units::Time;

/// Bits of a duration that tell its class from others of its magnitude: classes are a 64th of
/// their power of two wide.
const FINE: u32 = 6;
const CLASSES: usize = (64 - FINE as usize + 1) << FINE;

/// Durations, counted. Sum and longest are exact, percentiles too large by 1/64 at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    /// By class; empty until there is something.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    longest: Time,
}

impl DurationHistogram {
    /// Counts one more.
    pub fn add(&mut self, duration: Time) {
        self.add_times(duration, 1);
    }
    /// Counts so many more that all took `duration`.
    pub fn add_times(&mut self, duration: Time, times: u64) {
        self.counts.resize(CLASSES, 0);
        self.counts[class(duration.0)] += times;
        self.count += times;
        self.sum += u128::from(duration.0) * u128::from(times);
        self.longest = self.longest.max(duration);
    }
    /// Counts all of `other`, too.
    pub fn merge(&mut self, other: &DurationHistogram) {
        if other.count > 0 {
            self.counts.resize(CLASSES, 0);
        }
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Their mean; zero if there are none.
    pub fn mean(&self) -> Time {
        let mean = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        Time(u64::try_from(mean).expect("a mean is no larger than the largest"))
    }
    /// What at least `percent` of all do not exceed.
    pub fn percentile(&self, percent: u32) -> Time {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = |(_, count): &(usize, &u64)| {
            seen += u128::from(**count);
            seen >= rank
        };
        match self.counts.iter().enumerate().find(reached) {
            Some((class, _)) => Time(last_of(class)).min(self.longest),
            None => Time::ZERO,
        }
    }
}

fn class(ps: u64) -> usize {
    match ps.checked_ilog2() {
        Some(magnitude @ FINE..) => {
            let shift = magnitude - FINE;
            // The leading bit counts the magnitude up by one.
            ((shift as usize) << FINE) + (ps >> shift) as usize
        }
        _ => ps as usize,
    }
}

/// The largest duration of a class.
fn last_of(class: usize) -> u64 {
    let shift = (class >> FINE).saturating_sub(1) as u32;
    let leading = (class - ((shift as usize) << FINE)) as u64;
    (leading << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, DurationHistogram, class, last_of};
    use weft_units::Time;

    #[test]
    fn a_class_ends_where_the_next_begins() {
        for one in 0..CLASSES - 1 {
            assert_eq!(class(last_of(one)), one);
            assert_eq!(class(last_of(one) + 1), one + 1);
        }
        assert_eq!(last_of(class(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles_are_a_64th_too_large_at_most() {
        let (mut all, mut halves) = (
            DurationHistogram::default(),
            [DurationHistogram::default(), DurationHistogram::default()],
        );
        for turn in 1..=10_000u64 {
            let duration = Time(turn * 12_345);
            all.add(duration);
            halves[(turn % 2) as usize].add(duration);
        }
        let [mut merged, other] = halves;
        merged.merge(&other);
        assert_eq!(merged, all);
        assert_eq!((all.count(), all.mean()), (10_000, Time(12_345 * 10_001 / 2)));
        for percent in [1, 50, 99, 100] {
            let (exact, found) = (100 * 12_345 * u64::from(percent), all.percentile(percent).0);
            assert!(exact <= found && found <= exact + exact / 64, "{exact} {found}");
        }
        assert_eq!(all.percentile(100), Time(10_000 * 12_345));
        assert_eq!(DurationHistogram::default().percentile(50), Time::ZERO);
    }
}
