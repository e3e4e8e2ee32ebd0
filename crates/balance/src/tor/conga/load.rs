//! How loaded a port is: the discounting rate estimator (section 3.2). A register grows by the
//! bytes that leave and loses a share of itself every interval, so that it stands for the rate of the
//! last few intervals.

use super::Options;
use weft_units::{Rate, Time};

/// The estimate of one port.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The register.
    bytes: u64,
    /// How many intervals had begun when it was last right.
    intervals: u64,
    interval: Time,
    decay: f64,
    /// What it stands at under full load, in bytes.
    full: u64,
    /// How many levels.
    levels: u64,
}

impl Load {
    /// Of a port of `rate`. Under full load the register stands at what the port sends in
    /// `interval / decay`.
    pub fn new(options: &Options, rate: Rate) -> Load {
        let Options { interval, decay, bits, .. } = *options;
        let mut load = Load { bytes: 0, intervals: 0, interval, decay, full: 1, levels: 1 << bits };
        load.set_rate(rate);
        load
    }
    /// The port has another rate from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.full = ((rate.bytes_in(self.interval) as f64 / self.decay) as u64).max(1);
    }
    /// `bytes` leave.
    #[inline]
    pub fn add(&mut self, now: Time, bytes: u32) {
        self.decay(now);
        self.bytes += u64::from(bytes);
    }
    /// The load of the last intervals, from zero to the highest level.
    #[inline]
    pub fn level(&mut self, now: Time) -> u8 {
        self.decay(now);
        (self.bytes * self.levels / self.full).min(self.levels - 1) as u8
    }
    /// Makes up for the intervals that began since it was last looked at.
    #[inline]
    fn decay(&mut self, now: Time) {
        let intervals = now.0 / self.interval.0;
        while self.intervals < intervals && self.bytes > 0 {
            // Rounded down, so that it comes to zero.
            self.bytes = (self.bytes as f64 * (1.0 - self.decay)) as u64;
            self.intervals += 1;
        }
        self.intervals = intervals;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        gap: Time::us(100),
        interval: Time::us(50),
        decay: 0.2,
        bits: 3,
        aging: Time::ms(10),
    };

    /// The level after a millisecond at a share of 100 Gb/s.
    fn level_at(share: f64) -> u8 {
        let mut load = Load::new(&OPTIONS, Rate::gbps(100));
        for us in 0..1000 {
            load.add(Time::us(us), (12_500.0 * share) as u32);
        }
        load.level(Time::us(999))
    }

    #[test]
    fn levels_are_eighths_of_the_rate() {
        assert_eq!([0.0, 0.1, 0.2, 0.4, 0.6, 0.8].map(level_at), [0, 0, 1, 3, 4, 6]);
        assert_eq!(level_at(3.0), 7, "the highest");
    }

    #[test]
    fn it_loses_a_fifth_every_interval() {
        let mut load = Load::new(&OPTIONS, Rate::gbps(100));
        load.add(Time::us(49), 100_000);
        load.decay(Time::us(49));
        assert_eq!(load.bytes, 100_000);
        load.decay(Time::us(50));
        assert_eq!(load.bytes, 80_000);
        load.decay(Time::us(149));
        assert_eq!(load.bytes, 64_000);
        load.decay(Time::secs(9));
        assert_eq!(load.bytes, 0);
    }
}
