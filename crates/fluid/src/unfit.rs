//! What only packets tell.

use weft_balance::scheme::{PathUse, SchemeInfo};
use weft_fabric::{Fabric, Failure, FailureKind};

/// Why a run cannot be simulated by rates, in words that follow the name of the scheme; `None`: it can.
pub fn unfit(scheme: &SchemeInfo, fabric: &Fabric, failures: &[Failure]) -> Option<&'static str> {
    if fabric.rails().is_some() {
        return Some("runs on rails that never meet");
    }
    if fabric.clos().is_none() {
        return Some("runs on a network that is no folded Clos");
    }
    if fabric.planes() > 1 && !failures.is_empty() {
        return Some("runs over several planes, of which some are slower than others or dead");
    }
    let any = |of: fn(&FailureKind) -> bool| failures.iter().any(|failure| of(&failure.kind));
    let is_flaky = any(|kind| matches!(kind, FailureKind::Flaky { .. }));
    let is_down = any(|kind| matches!(kind, FailureKind::Down { .. }));
    let is_slow = any(|kind| matches!(kind, FailureKind::Degraded { .. }));
    match scheme.paths {
        PathUse::AsPacketsFind => Some("sends packets where others before them met no queue"),
        _ if is_flaky => Some("loses some packets of a message on a flaky link, and not others"),
        PathUse::AllAlike | PathUse::AllByRoom if is_down => {
            Some("loses some packets of every message on a link that is down")
        }
        PathUse::AllByRoom if is_slow => Some("learns from marks which links are slow"),
        _ => None,
    }
}
