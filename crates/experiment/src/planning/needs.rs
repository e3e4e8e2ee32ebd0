//! What a job needs of discovered ports: which paths it takes between which hosts, and how often at once.

use super::file::{Resolve, resolve};
use super::{
    PlanRequest, Result, enforced, hosts_for, network, planned, steps_of, unreachable, wrong,
};
use std::collections::BTreeMap;
use weft_balance::enforce::Enforce;
use weft_fabric::Fabric;
use weft_plan::{Bound, Placed, assign};

/// Paths that a job takes between hosts in different racks, a row each, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathNeeds {
    /// Sending host.
    pub src: Vec<u32>,
    /// Receiving host.
    pub dst: Vec<u32>,
    /// Path id.
    pub path: Vec<u32>,
    /// The most subflows that take it in one step.
    pub subflows: Vec<u32>,
}

/// The needs of the job of `request`, planned for discovered ports.
///
/// # Errors
/// As [`super::make`]; and if the scheme leaves paths to switches.
pub fn path_needs(request: &PlanRequest<'_>) -> Result<PathNeeds> {
    let Resolve { experiment, .. } = resolve(request, Enforce::Discovered)?;
    if enforced(&experiment) != Enforce::Discovered.name() {
        let name = experiment.balance.scheme.info().name;
        let what = format!(
            "{name} takes no discovered ports (balance.enforce is {}); use a scheme that does, such as \
             ethereal",
            enforced(&experiment)
        );
        return Err(wrong("balance.scheme", what));
    }
    let mut network = network(&experiment, request.seed)?;
    let mut most: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
    for step in steps_of(&planned(&experiment, request.seed)?) {
        let least = || Bound::of(&network, &step.messages).seconds;
        let hosts = hosts_for(&experiment, request.seed, &network, &step, least)?;
        let mut now: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
        let fabric = network.fabric;
        let each = |one: &Placed| {
            if crosses(fabric, one) {
                *now.entry((one.src.0, one.dst.0, u32::from(one.way.path.0))).or_default() += 1;
            }
        };
        assign(&mut network, &hosts, (0, &step.messages[..]), each)
            .map_err(|lost| unreachable(&network, lost))?;
        for (key, count) in now {
            let before = most.entry(key).or_default();
            *before = count.max(*before);
        }
    }
    let mut needs = PathNeeds::default();
    for ((src, dst, path), subflows) in most {
        needs.src.push(src);
        needs.dst.push(dst);
        needs.path.push(path);
        needs.subflows.push(subflows);
    }
    Ok(needs)
}

fn crosses(fabric: &Fabric, one: &Placed) -> bool {
    fabric.leaf_of(one.src) != fabric.leaf_of(one.dst)
}
