//! The source ports of a plan's subflows, from a table of discovered paths.

use std::collections::BTreeMap;
use weft_balance::enforce::PortTable;
use weft_config::cluster::{Cluster, discovered};
use weft_config::paths_file::PathsFile;
use weft_config::plan_file::{NONE, Step, Subflows};
use weft_fabric::PathId;
use weft_units::HostId;

/// Gives every subflow that crosses the fabric a port that was found to lead along its path. Those of a
/// step that share a path take its ports in turn.
///
/// # Errors
/// If a path has none: which, and the mend.
pub(super) fn give(steps: &mut [Step], cluster: &Cluster, table: &PathsFile) -> Result<(), String> {
    let found = discovered(cluster, table);
    if let Some(stranger) = found.strangers.first() {
        return Err(format!(
            "{stranger} answered where a switch of the cluster should be; mend [cluster] \
             uplink_next_hop"
        ));
    }
    let mut all = steps.iter_mut().filter_map(|step| step.placed.as_mut());
    all.try_for_each(|placed| give_step(placed, cluster, &found.ports))
}

fn give_step(placed: &mut Subflows, cluster: &Cluster, found: &PortTable) -> Result<(), String> {
    let mut used: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for at in 0..placed.src.len() {
        let (src, dst, path) = (placed.src[at], placed.dst[at], placed.path[at]);
        let [from, to] = [src, dst].map(|host| &cluster.hosts[host as usize]);
        if from.leaf == to.leaf {
            placed.source_port[at] = NONE;
            continue;
        }
        let path_id = PathId(path as u16);
        let ports = found.ports(HostId(src), HostId(dst), path_id);
        let turn = used.entry((src, dst, path)).or_default();
        let Some(place) = turn.checked_rem(ports.len()) else {
            let (first, second) = (path_id.first(), path_id.second());
            return Err(format!(
                "no port from {} to {} leads over path {first}.{second}; run weft discover again, or \
                 say under [failures] of the cluster that its link is down",
                from.name, to.name
            ));
        };
        placed.source_port[at] = u32::from(ports[place]);
        *turn += 1;
    }
    Ok(())
}
