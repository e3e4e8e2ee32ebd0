//! When a link loses what is on its wire: the bursts of a flaky link and the time that a link
//! is dead, as intervals of time [start, end).
//!
//! Invariant: the intervals of one source are sorted by their start (a burst may begin within
//! another), and depend on the seed, the port and the failure only. They are drawn as they are
//! asked for, in constant memory.

use weft_units::random::below;
use weft_units::{Draw, PortId, Stream, Time};

/// Loses everything from the first time until, not including, the second.
pub type Interval = (Time, Time);

/// How the bursts of a flaky link come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// From the start of a burst to the start of the next, in the mean.
    pub(super) every: Time,
    /// How long a burst lasts, in the mean.
    pub(super) length: Time,
    pub(super) regular: bool,
}

/// The bursts of one flaky failure of one link, in the order of their
/// starts. A burst may begin within another.
#[derive(Clone, Debug)]
pub struct Bursts {
    rhythm: Rhythm,
    random: Stream,
    /// The burst that was drawn last and not yet told.
    next: Interval,
    /// No burst starts or lasts beyond this.
    end: Time,
}

impl Bursts {
    /// The bursts of `port` under its `index`-th flaky failure, which lasts from `start` to
    /// `end`.
    pub(super) fn new(
        rhythm: Rhythm,
        (start, end): Interval,
        (seed, port, index): (u64, PortId, u64),
    ) -> Bursts {
        let entity = u64::from(port.0) | index << 32;
        let random = Draw::new(seed, "flaky").stream(entity);
        let mut bursts = Bursts { rhythm, random, next: (start, start), end };
        // Links of one rhythm shall not fail in step.
        let gap = match rhythm.regular {
            true => Time(below(bursts.random.bits(), rhythm.every.0)),
            false => bursts.gap(),
        };
        bursts.draw(start, gap);
        bursts
    }

    /// Draws the burst that starts `gap` after `from`.
    fn draw(&mut self, from: Time, gap: Time) {
        let start = from.saturating_add(gap);
        let length = exponential(&mut self.random, self.rhythm.length).0.max(1);
        self.next = (start, start.saturating_add(Time(length)));
    }

    fn gap(&mut self) -> Time {
        if self.rhythm.regular {
            self.rhythm.every
        } else {
            exponential(&mut self.random, self.rhythm.every)
        }
    }
}

impl Iterator for Bursts {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        let (start, end) = self.next;
        if start >= self.end {
            return None;
        }
        let gap = self.gap();
        self.draw(start, gap);
        Some((start, end.min(self.end)))
    }
}

/// An exponentially distributed time of mean `mean`, rounded down.
fn exponential(random: &mut Stream, mean: Time) -> Time {
    // 1 - u is never zero.
    Time((-(mean.0 as f64) * libm::log(1.0 - random.unit())) as u64)
}

/// Where one failure of one link loses packets.
#[derive(Clone, Debug)]
enum Source {
    Flaky(Bursts),
    Dead(Option<Interval>),
}

impl Source {
    fn next(&mut self) -> Option<Interval> {
        match self {
            Source::Flaky(bursts) => bursts.next(),
            Source::Dead(interval) => interval.take(),
        }
    }
}

/// After every interval.
const NEVER: Interval = (Time::MAX, Time::MAX);

/// Says of each transmission on one link whether it is lost. Asked in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Each source with its first interval that may still matter. One that begins within it and
    /// lasts longer is found when it is over.
    sources: Vec<(Interval, Source)>,
}

impl Losses {
    pub(super) fn add_flaky(&mut self, bursts: Bursts) {
        self.sources.push(((Time::ZERO, Time::ZERO), Source::Flaky(bursts)));
    }
    pub(super) fn add_dead(&mut self, interval: Interval) {
        self.sources.push(((Time::ZERO, Time::ZERO), Source::Dead(Some(interval))));
    }

    /// Whether a transmission whose first bit is on the wire at `from` and whose last bit has
    /// left at `to` meets a burst or a dead time, which is when they share an instant of
    /// [from, to).
    ///
    /// `from` must not decrease from call to call. Constant time, spread over the calls and
    /// the bursts in between.
    #[inline]
    pub fn is_lost(&mut self, from: Time, to: Time) -> bool {
        let mut lost = false;
        for (interval, source) in &mut self.sources {
            while interval.1 <= from {
                *interval = source.next().unwrap_or(NEVER);
            }
            lost |= interval.0 < to;
        }
        lost
    }
}
