//! How a run ends, and why without a result.

use crate::outcome::Totals;
use crate::probes::MOST_SAMPLES;
use std::fmt;
use weft_units::Time;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// There are no events left.
    Done,
    /// No message had got nearer to its end for too long.
    Stalled(Silence),
    /// Its ports cannot express what happened.
    Overflowed,
    /// Something else stopped it.
    Halted(Halt),
}

/// Why a run ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Somebody asked for it.
    Cancelled,
    /// No message gets nearer to its end any more: which ones wait for what.
    Stalled(Box<Stall>),
    /// The probes have taken more samples than a result can reasonably hold.
    TooManySamples,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Halt::Cancelled => write!(f, "cancelled"),
            Halt::Stalled(stall) => write!(f, "the run stalled: {stall}"),
            Halt::TooManySamples => write!(f, "more than {MOST_SAMPLES} samples of queues"),
        }
    }
}
impl std::error::Error for Halt {}

/// A run that was given up because it made no progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Since when, and what waits for what.
    pub text: String,
    /// What the run had counted until then; [`Totals::events`] is left out.
    pub totals: Totals,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// No message got nearer to its end for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The last progress.
    pub since: Time,
    /// When the run was given up.
    pub now: Time,
    /// So many data packets were sent in vain, if that was why.
    pub packets: Option<u64>,
}
