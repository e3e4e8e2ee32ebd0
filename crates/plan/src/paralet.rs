//! ParaLet's tuning (ParaLet 2024): equation 1 and table 3 of section 4.1, and the choice of m and S
//! of section 5.2.
//!
//! Equation 1: every one of N ports has as many flowlets thrown at it as it could carry, m from
//! each of N senders, each to a random port. What one port is given, over what it can carry, is
//! about normal around 1 with variance 1/m; the paper takes its 1 - 1/N quantile for the largest of
//! N. So it is the load of the fullest of N links on one tier, where every sender sends at line
//! rate and nobody slows down; times a message's time at line rate that is its completion time.
//! Of several tiers the paper puts the number of all accelerators for N.
//!
//! What the formula leaves out: the load is binomial, with a longer tail than the normal one (for
//! small m the slowdown is larger than told); the 1 - 1/N quantile is not the mean of the largest
//! of N; loads of the ports of a switch add up to what comes in. `experiments/paralet-2024` holds
//! it against simulations.

use crate::normal::{exceeded_once_in, upper_tail};
use weft_balance::scheme::paralet::{MOST_QUEUE_PAIRS, Paralet, Ports};
use weft_units::{Rate, Time};

/// A question that has no answer, and the mend.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TuneError {
    /// Nothing can collide.
    #[error("{0} ports: use 2 or more")]
    Ports(u64),
    /// There is nothing to send on.
    #[error("0 queue pairs: use 1 or more")]
    QueuePairs,
    /// No number of queue pairs leads there.
    #[error("a slowdown of {0}: use more than 1")]
    Slowdown(f64),
    /// A NIC has no more.
    #[error("{0} queue pairs: use 1 to {MOST_QUEUE_PAIRS}")]
    Most(u32),
    /// More queue pairs than a NIC has.
    #[error(
        "a slowdown of {slowdown} takes {queue_pairs} queue pairs, and a NIC has {MOST_QUEUE_PAIRS} \
         at most; use {least:.3} or more"
    )]
    Beyond {
        /// What was asked for.
        slowdown: f64,
        /// What it takes.
        queue_pairs: f64,
        /// The least that can be, in thousandths.
        least: f64,
    },
    /// More queue pairs than there are numbers for.
    #[error("a slowdown of {slowdown} takes {queue_pairs} queue pairs; use a larger one")]
    TooMany {
        /// What was asked for.
        slowdown: f64,
        /// What it takes.
        queue_pairs: f64,
    },
}

/// How many standard deviations above its mean the fullest of `ports` is: n' of table 3,
/// Phi^-1(1 - 1/n).
///
/// # Errors
/// With fewer than two ports.
pub fn deviations(ports: u64) -> Result<f64, TuneError> {
    if ports < 2 {
        return Err(TuneError::Ports(ports));
    }
    Ok(exceeded_once_in(ports as f64))
}

/// Of how many ports the fullest is `deviations` above its mean: n of table 3, 1 / (1 - Phi(n')).
/// The table's last line, 1.501e15 of 8 deviations, is what the subtraction leaves in double
/// precision; it is 1.607e15.
pub fn ports(deviations: f64) -> f64 {
    upper_tail(deviations).recip()
}

/// Equation 1: the expected completion time of the slowest of `ports` messages, over that at line
/// rate, where each is sent as `queue_pairs` (m) flowlets side by side.
///
/// # Errors
/// With fewer than two ports, or without queue pairs.
pub fn slowdown(queue_pairs: u32, ports: u64) -> Result<f64, TuneError> {
    if queue_pairs == 0 {
        return Err(TuneError::QueuePairs);
    }
    Ok(1.0 + deviations(ports)? / libm::sqrt(f64::from(queue_pairs)))
}

/// The least m for which equation 1 promises `slowdown` or less over `ports` (section 5.2).
///
/// The paper rounds the deviations up to the next line of table 3 first: 5 in place of 4.26 of 10^5,
/// and so 25 queue pairs for a slowdown of 2, where equation 1 asks for 19.
///
/// # Errors
/// With fewer than two ports, a slowdown of 1 or less, or one that takes more than 2^32 queue pairs.
pub fn queue_pairs(slowdown: f64, ports: u64) -> Result<u32, TuneError> {
    let deviations = deviations(ports)?;
    if slowdown.is_nan() || slowdown <= 1.0 {
        return Err(TuneError::Slowdown(slowdown));
    }
    let root = deviations / (slowdown - 1.0);
    let queue_pairs = libm::ceil(root * root).max(1.0);
    if queue_pairs > f64::from(u32::MAX) {
        return Err(TuneError::TooMany { slowdown, queue_pairs });
    }
    Ok(queue_pairs as u32)
}

/// S: the payload of a flowlet in bytes, 4 BDP / m (section 5.2), in whole packets of `mtu` bytes
/// of payload, where `round_trip` is that of an empty fabric. What the scheme takes by default.
///
/// # Errors
/// Without queue pairs.
pub fn flowlet(rate: Rate, round_trip: Time, queue_pairs: u32, mtu: u32) -> Result<u64, TuneError> {
    if queue_pairs == 0 {
        return Err(TuneError::QueuePairs);
    }
    let scheme = Paralet { queue_pairs, flowlet: None, ports: Ports::QueuePair };
    Ok(scheme.flowlet_bytes(rate.bytes_in(round_trip), mtu))
}

/// Both numbers for a cluster, and what they lead to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// m.
    pub queue_pairs: u32,
    /// S in bytes of payload.
    pub flowlet: u64,
    /// What equation 1 expects of it.
    pub slowdown: f64,
    /// What a queue pair sends at.
    pub rate: Rate,
}

impl Tuning {
    /// For `accelerators` with NICs of `rate`, where no message shall take more than `wanted` times
    /// its time at line rate.
    ///
    /// # Errors
    /// As [`queue_pairs`] has them, and if a NIC has fewer.
    pub fn new(
        wanted: f64,
        accelerators: u64,
        rate: Rate,
        round_trip: Time,
        mtu: u32,
    ) -> Result<Tuning, TuneError> {
        let queue_pairs = match queue_pairs(wanted, accelerators) {
            Err(TuneError::TooMany { queue_pairs, .. }) => queue_pairs,
            found => f64::from(found?),
        };
        if queue_pairs > f64::from(MOST_QUEUE_PAIRS) {
            let least = slowdown(MOST_QUEUE_PAIRS, accelerators)?;
            let least = libm::ceil(least * 1000.0) / 1000.0;
            return Err(TuneError::Beyond { slowdown: wanted, queue_pairs, least });
        }
        Tuning::with(queue_pairs as u32, accelerators, rate, round_trip, mtu)
    }

    /// The same where m is given.
    ///
    /// # Errors
    /// As [`slowdown`] has them, and if a NIC has fewer.
    pub fn with(
        queue_pairs: u32,
        accelerators: u64,
        rate: Rate,
        round_trip: Time,
        mtu: u32,
    ) -> Result<Tuning, TuneError> {
        if queue_pairs > MOST_QUEUE_PAIRS {
            return Err(TuneError::Most(queue_pairs));
        }
        Ok(Tuning {
            queue_pairs,
            flowlet: flowlet(rate, round_trip, queue_pairs, mtu)?,
            slowdown: slowdown(queue_pairs, accelerators)?,
            rate: Rate::bps((rate.as_bps() / u64::from(queue_pairs)).max(1)),
        })
    }
}
