//! How full the queues of equal next hops look to a switch, and which of them is best.
//!
//! A switch may know the bytes of each queue, or only one of four levels as chips report them,
//! and what it knows may be as old as the [`Gauge`] says. All hops of a set are looked at
//! together. Memory is one number a hop of each set.

use super::Hops;
use rustc_hash::FxHashMap;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Stream, Time};

/// How a switch looks at queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// How exactly a switch sees the bytes of a queue.
    pub levels: Levels,
    /// What was seen is used for this long. Zero: every packet looks anew.
    pub refresh: Time,
}

/// How exactly a switch sees a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// By the byte.
    Exact,
    /// Below 5, 10 or 20 % of the buffer, or not.
    Quantised,
}

impl Gauge {
    /// The option `levels`, exact unless told otherwise.
    pub const LEVELS: OptionInfo = OptionInfo {
        key: "levels",
        default: "exact",
        kind: OptionKind::Word(&["exact", "quantised"]),
        meaning: "what switches see of a queue: \"exact\" its bytes; \"quantised\" whether it is \
                  below 5, 10 or 20 % of the buffer",
    };
    /// The option `refresh`.
    pub const REFRESH: OptionInfo = OptionInfo {
        key: "refresh",
        default: "0ns",
        kind: OptionKind::Time(Time::ZERO),
        meaning: "time that switches use what they saw of the queues; 0ns: look for each packet",
    };

    /// Reads both options.
    ///
    /// # Errors
    /// If one of them is not what it may be.
    pub fn read(options: &mut Options<'_>) -> Result<Gauge, OptionError> {
        let levels = Levels::read(options)?;
        Ok(Gauge { levels, refresh: options.time("refresh")? })
    }
    /// As [`Gauge::read`], where the default of `levels` is `usual`, and in words.
    ///
    /// # Errors
    /// As [`Gauge::read`].
    pub fn read_or(options: &mut Options<'_>, usual: Levels) -> Result<Gauge, OptionError> {
        let levels = if options.has("levels") { Levels::read(options)? } else { usual };
        Ok(Gauge { levels, refresh: options.time("refresh")? })
    }
}

impl Levels {
    fn read(options: &mut Options<'_>) -> Result<Levels, OptionError> {
        options.choice("levels", &[("exact", Levels::Exact), ("quantised", Levels::Quantised)])
    }
}

/// What one switch sees of its queues.
#[derive(Clone, Debug)]
pub struct Loads {
    refresh: Time,
    /// The fewest bytes at each level above the lowest; none where levels are exact.
    borders: Option<[u64; 3]>,
    /// Of the last set of hops, where every packet looks anew.
    latest: Seen,
    /// By set of hops, where not. Never iterated.
    seen: FxHashMap<u32, Seen>,
}

/// What was seen of one set of hops.
#[derive(Clone, Debug, Default)]
struct Seen {
    at: Time,
    /// One a hop: bytes, or levels from zero up. Empty before the first look.
    loads: Vec<u64>,
}

impl Loads {
    /// For a switch whose queues hold `buffer` bytes each.
    pub fn new(gauge: Gauge, buffer: u64) -> Loads {
        let borders = match gauge.levels {
            Levels::Exact => None,
            // A twentieth, a tenth and a fifth.
            Levels::Quantised => Some([20, 10, 5].map(|part| buffer.div_ceil(part))),
        };
        let (latest, seen) = (Seen::default(), FxHashMap::default());
        Loads { refresh: gauge.refresh, borders, latest, seen }
    }
    /// What the switch sees of `hops` at `now`: one number a hop, the less the better.
    #[inline]
    pub fn look<H: Hops>(&mut self, now: Time, hops: &H) -> &[u64] {
        let seen = match self.refresh {
            Time::ZERO => &mut self.latest,
            _ => self.seen.entry(hops.group()).or_default(),
        };
        let fresh = seen.at.until(now) < self.refresh;
        if !fresh || seen.loads.len() != hops.count() as usize {
            seen.at = now;
            seen.loads.clear();
            let borders = &self.borders;
            let load = |hop| level(borders, hops.queued(hop));
            seen.loads.extend((0..hops.count()).map(load));
        }
        &seen.loads
    }
}

#[inline(always)]
fn level(borders: &Option<[u64; 3]>, queued: u64) -> u64 {
    match borders {
        None => queued,
        Some(borders) => borders.iter().map(|border| u64::from(queued >= *border)).sum(),
    }
}

/// Any of the hops with the least of `loads`.
///
/// # Panics
/// If there are none.
#[inline]
pub fn least(loads: &[u64], stream: &mut Stream) -> u32 {
    let least = *loads.iter().min().expect("a packet has a hop");
    let ties = loads.iter().filter(|load| **load == least).count() as u32;
    // Whoever is alone needs no draw.
    let chosen = if ties == 1 { 0 } else { stream.below(ties) as usize };
    let mut best = (0u32..).zip(loads).filter(|(_, load)| **load == least);
    best.nth(chosen).expect("one of the ties").0
}
