//! Stragglers: GPUs that compute more slowly than others, or not always equally fast, and so come late
//! to what ranks do together.
//!
//! A GPU has one pace for a whole run: what the slow ones take longer, over a speed that is drawn for
//! each. Every computation varies beyond that. Where nothing is computed, ranks (hosts, of patterns) are
//! late by a delay that is drawn for each collective, as many times as long as their computations would be.
//!
//! All is drawn by (seed, purpose, rank, node): two schemes under one seed see the same stragglers.

use crate::WorkloadError;
use weft_units::Time;
use weft_units::random::{Draw, Stream};

/// Which GPUs are slow, and how equally fast all are.
#[derive(Clone, Debug, PartialEq)]
pub struct Stragglers {
    /// Which are slow.
    pub slow: Slow,
    /// How many times as long these take.
    pub factor: f64,
    /// How the speeds of all are distributed.
    pub speed: Speed,
    /// A computation takes longer by up to this share of it, each by another, uniformly.
    pub jitter: f64,
    /// The mean delay of a collective that no computation stands before; of a slow GPU the mean times its pace.
    pub start_delay: Time,
    /// How that is distributed.
    pub delays: Delays,
}

/// Which GPUs are slow.
#[derive(Clone, Debug, PartialEq)]
pub enum Slow {
    /// This share of all, drawn by the seed, rounded to the nearest whole number of GPUs.
    Share(f64),
    /// So many, drawn by the seed.
    Count(u32),
    /// These ranks.
    Ranks(Vec<u32>),
}

/// The distribution of a GPU's speed, with 1 in its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// All are equally fast.
    Equal,
    /// Normal, with this standard deviation; beyond three of them it is three.
    Normal(f64),
    /// Its logarithm is normal, with this standard deviation.
    Lognormal(f64),
    /// Uniform, up to so much above and below.
    Uniform(f64),
}

/// How delays are distributed about their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delays {
    /// All are equal.
    Fixed,
    /// From none to twice the mean.
    Uniform,
    /// As the gaps of a Poisson process.
    Exponential,
}

/// How fast each rank of a job is.
#[derive(Clone, Debug, PartialEq)]
pub struct Paces {
    /// By rank: how many times as long as usual it takes.
    paces: Vec<f64>,
    /// The number of its first rank among those of all jobs.
    first: u32,
    jitter: f64,
    start_delay: Time,
    delays: Delays,
    seed: u64,
}

impl Stragglers {
    /// How fast each of `ranks` ranks is under `seed`, numbered through all jobs.
    ///
    /// # Errors
    /// If a slow rank does not exist, or more are to be slow than there are: with the key and the mend.
    pub fn paces(&self, ranks: u32, seed: u64) -> Result<Paces, WorkloadError> {
        let Stragglers { jitter, start_delay, delays, .. } = *self;
        let speeds = Draw::new(seed, "gpu-speed");
        let mut paces: Vec<f64> =
            (0..ranks).map(|rank| 1.0 / self.speed.draw(speeds.stream(rank.into()))).collect();
        for rank in self.slow.ranks(ranks, seed)? {
            paces[rank as usize] *= self.factor;
        }
        Ok(Paces { paces, first: 0, jitter, start_delay, delays, seed })
    }
}

impl Slow {
    fn ranks(&self, ranks: u32, seed: u64) -> Result<Vec<u32>, WorkloadError> {
        let error = |what: String| Err(WorkloadError(what));
        let count = match self {
            Slow::Share(share) => (share * f64::from(ranks) + 0.5) as u32,
            Slow::Count(count) if *count > ranks => {
                return error(format!("count: {count} are more than the {ranks} GPUs; use fewer"));
            }
            Slow::Count(count) => *count,
            Slow::Ranks(listed) => {
                return match listed.iter().find(|rank| **rank >= ranks) {
                    None => Ok(listed.clone()),
                    Some(rank) => {
                        let last = ranks.saturating_sub(1);
                        error(format!("ranks: there is no rank {rank}; use 0 to {last}"))
                    }
                };
            }
        };
        let draw = Draw::new(seed, "slow-gpus");
        let mut all: Vec<u32> = (0..ranks).collect();
        all.sort_by_key(|rank| draw.at(u64::from(*rank), 0));
        all.truncate(count as usize);
        Ok(all)
    }
}

impl Speed {
    fn draw(self, mut stream: Stream) -> f64 {
        match self {
            Speed::Equal => 1.0,
            Speed::Normal(spread) => 1.0 + spread * normal(&mut stream).clamp(-3.0, 3.0),
            Speed::Lognormal(spread) => libm::exp(spread * normal(&mut stream)),
            Speed::Uniform(spread) => 1.0 + spread * (2.0 * stream.unit() - 1.0),
        }
    }
}

/// A number of the standard normal distribution (Box and Muller 1958).
fn normal(stream: &mut Stream) -> f64 {
    // Never the logarithm of zero.
    let (radius, angle) = (1.0 - stream.unit(), stream.unit());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * std::f64::consts::PI * angle)
}

impl Paces {
    /// Those of the ranks `first .. first + ranks`, as a job numbers them.
    pub fn of(&self, first: u32, ranks: u32) -> Paces {
        let own = first as usize..(first + ranks) as usize;
        Paces { paces: self.paces[own].to_vec(), first: self.first + first, ..*self }
    }
    /// How many times as long as usual `rank` takes.
    pub fn pace(&self, rank: u32) -> f64 {
        self.paces[rank as usize]
    }
    /// What `rank` takes over computation `node`, which usually takes `time`.
    pub fn computing(&self, rank: u32, node: u32, time: Time) -> Time {
        let extra = match self.jitter {
            0.0 => 0.0,
            jitter => jitter * self.stream("compute-jitter", rank, node).unit(),
        };
        scaled(time, self.pace(rank) * (1.0 + extra))
    }
    /// By how much `rank` is late for collective `node`.
    pub fn delay(&self, rank: u32, node: u32) -> Time {
        if self.start_delay == Time::ZERO {
            return Time::ZERO;
        }
        let mut stream = self.stream("start-delay", rank, node);
        let drawn = match self.delays {
            Delays::Fixed => 1.0,
            Delays::Uniform => 2.0 * stream.unit(),
            Delays::Exponential => -libm::log(1.0 - stream.unit()),
        };
        scaled(self.start_delay, self.pace(rank) * drawn)
    }
    /// Whether collectives are delayed where nothing is computed.
    pub fn delays(&self) -> bool {
        self.start_delay > Time::ZERO
    }
    fn stream(&self, purpose: &str, rank: u32, node: u32) -> Stream {
        let entity = u64::from(self.first + rank) << 32 | u64::from(node);
        Draw::new(self.seed, purpose).stream(entity)
    }
}

/// To the nearest picosecond.
fn scaled(time: Time, by: f64) -> Time {
    Time((time.0 as f64 * by + 0.5) as u64)
}
