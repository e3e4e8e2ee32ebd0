//! What only packets tell.

use weft_balance::scheme::{PathUse, SchemeInfo};
use weft_fabric::{Failure, FailureKind};

/// Why a run cannot be simulated by rates, in words that follow the name of the scheme; `None`: it can.
pub fn unfit(scheme: &SchemeInfo, failures: &[Failure]) -> Option<&'static str> {
    let loses = |failure: &Failure| !matches!(failure.kind, FailureKind::Degraded { .. });
    match scheme.paths {
        PathUse::One => None,
        PathUse::AsPacketsFind => Some("sends packets where others before them met no queue"),
        PathUse::AllAlike | PathUse::AllByRoom if failures.iter().any(loses) => {
            Some("loses some packets of every message on a link that is down or flaky")
        }
        PathUse::AllAlike | PathUse::AllByRoom => None,
    }
}
