//! The choices that switches make along a path.

use super::{PortError, clos};
use weft_fabric::{Fabric, Node, PathId};
use weft_units::{HostId, PortId, SwitchId};

/// A switch on a path that has a choice, and what it should choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The switch.
    pub switch: SwitchId,
    /// The hop, from zero.
    pub hop: u32,
    /// How many it has.
    pub hops: u32,
}

/// All of them from `src` to `dst`: on the way up the switches take the uplinks that `path` names,
/// and on the way down the same member of a bundle as on the way up between the same tiers.
///
/// # Errors
/// If a switch has no such hop.
pub fn crossings(
    fabric: &Fabric,
    src: HostId,
    dst: HostId,
    path: PathId,
) -> Result<Vec<Crossing>, PortError> {
    let mut crossings = Vec::new();
    let mut at = fabric.ports()[fabric.nic(src)].peer;
    while let Node::Switch(switch) = at {
        let group = fabric.next_hops(switch, dst);
        let named = (u32::from(path.first()), Some(u32::from(path.second())));
        let place = Place::of(fabric, switch);
        let hop = match group.count {
            1 => 0,
            _ => place.hop(place.is_above(dst), named).unwrap_or(u32::MAX),
        };
        if hop >= group.count {
            let what = format!(
                "there is no path {}.{}: {} has {} hops towards {}",
                path.first(),
                path.second(),
                fabric.name(at),
                group.count,
                fabric.name(Node::Host(dst))
            );
            return Err(PortError(what));
        }
        if group.count > 1 {
            crossings.push(Crossing { switch, hop, hops: group.count });
        }
        at = fabric.ports()[PortId(group.first.0 + hop)].peer;
    }
    Ok(crossings)
}

/// Where a switch stands, as far as its choice depends on that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// 0 leaf, 1 spine or aggregation switch, 2 core.
    pub(super) tier: u8,
    /// Hosts to which it sends down: the first, and the one behind the last.
    below: (u32, u32),
    /// Of each bundle to a leaf, and to an aggregation switch.
    members: (u32, u32),
}

impl Place {
    pub(super) fn of(fabric: &Fabric, switch: SwitchId) -> Place {
        let (below, clos) = (fabric.hosts_below(switch), clos(fabric));
        let members = (clos.leaf_bundle.members, clos.agg_bundle.members);
        Place { tier: fabric.tier(switch), below: (below.start, below.end), members }
    }
    #[inline]
    pub(super) fn is_above(&self, dst: HostId) -> bool {
        (self.below.0..self.below.1).contains(&dst.0)
    }
    /// Which of its hops up or `down` it takes, if an uplink of the leaf and one of the aggregation
    /// switch are named.
    #[inline]
    pub(super) fn hop(&self, down: bool, (first, second): (u32, Option<u32>)) -> Option<u32> {
        match (self.tier, down) {
            (0, _) => Some(first),
            (1, false) => second,
            (1, true) => Some(first % self.members.0),
            _ => second.map(|second| second % self.members.1),
        }
    }
}
