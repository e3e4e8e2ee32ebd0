//! Routing around links that are known to be dead.
//!
//! Routes stay shortest and up-down. A next hop is usable while its link is alive and the
//! switch behind it still has a usable next hop of its own, and so on to the destination's
//! leaf: a core or spine without a live way down to a leaf is avoided, for that leaf, by every
//! switch below it; of a bundle only the dead members go.
//!
//! Only what differs from [`Fabric::next_hops`] is kept. Links between hosts and leaves have
//! no alternative and are not looked at.

use crate::exceptions::Exceptions;
use crate::homes::note_hosts;
use crate::routes::{Routes, Search as RouteSearch};
use crate::{Fabric, Node, PathId};
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId, SwitchId};

/// The next hops that dead links change. Rebuilt whenever routing learns of a change.
#[derive(Clone, Debug)]
pub struct Detours {
    hops: Exceptions<PortId>,
    /// The ways to groups, where packets may go over others.
    to_groups: Option<Routes>,
}

impl Detours {
    /// Routes of `fabric` without the links behind `dead`. Visits every port of the fabric
    /// once for each leaf.
    pub fn new(fabric: &Fabric, dead: &[PortId]) -> Detours {
        let mut detours = Exceptions::new(fabric);
        if dead.is_empty() {
            return Detours { hops: detours, to_groups: None };
        }
        if fabric.clos().is_none() {
            return other_routes(fabric, dead);
        }
        let mut alive = vec![true; fabric.ports().len()];
        for port in dead {
            alive[port.index()] = false;
        }
        for (plane, leaf) in fabric.leaves_of_planes() {
            let mut search = Search::new(fabric, &alive, (plane, leaf));
            let leaf = fabric.leaf_in_plane(leaf, plane);
            for switch in fabric.switches_of_plane(plane).filter(|id| *id != leaf) {
                search.reaches(switch, &mut detours);
            }
        }
        Detours { hops: detours, to_groups: None }
    }

    /// Whether all routes are as usual.
    pub fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// The ports of `switch` that still lead to `dst`, in port order; empty if none does.
    /// `None`: all that [`Fabric::next_hops`] names.
    #[inline]
    pub fn next_hops(&self, switch: SwitchId, dst: HostId) -> Option<&[PortId]> {
        self.hops.get(switch, dst)
    }

    /// As [`Fabric::pinned_hop`], over what is left.
    #[inline]
    pub fn pinned_hop(
        &self,
        fabric: &Fabric,
        switch: SwitchId,
        dst: HostId,
        path: PathId,
    ) -> Option<(PortId, PathId)> {
        let to_groups = self.to_groups.as_ref().unwrap_or(fabric.routes());
        fabric.pinned_hop_by(to_groups, (switch, dst), path, self.next_hops(switch, dst))
    }
}

/// Where the shortest paths that avoid dead links are others, in a network that is no Clos.
fn other_routes(fabric: &Fabric, dead: &[PortId]) -> Detours {
    let mut others = Exceptions::new(fabric);
    let mut dead = dead.to_vec();
    dead.sort_unstable();
    let routes = fabric.routes_without(&dead);
    for switch in (0..fabric.switches()).map(SwitchId) {
        for leaf in 0..fabric.leaves() {
            let hops = routes.next_hops(switch, leaf);
            if hops != fabric.routes().next_hops(switch, leaf) {
                others.note(switch, leaf, hops);
            }
        }
    }
    if fabric.homes() > 1 {
        let mut search = RouteSearch::new(fabric, fabric.costs_without(&dead));
        note_hosts(fabric, &dead, &mut search, &mut others);
    }
    let to_groups = fabric.has_detours().then(|| routes.into_group_ways());
    Detours { hops: others, to_groups }
}

/// Which switches reach one leaf.
struct Search<'a> {
    fabric: &'a Fabric,
    alive: &'a [bool],
    leaf: u32,
    /// Unknown until asked for.
    reaches: IdVec<SwitchId, Option<bool>>,
}

impl Search<'_> {
    fn new<'a>(fabric: &'a Fabric, alive: &'a [bool], (plane, leaf): (u32, u32)) -> Search<'a> {
        let mut reaches: IdVec<SwitchId, Option<bool>> =
            (0..fabric.switches()).map(|_| None).collect();
        reaches[fabric.leaf_in_plane(leaf, plane)] = Some(true);
        Search { fabric, alive, leaf, reaches }
    }

    /// Whether `switch` reaches the leaf; notes its detour. Goes four switches deep at most.
    fn reaches(&mut self, switch: SwitchId, detours: &mut Exceptions<PortId>) -> bool {
        if let Some(known) = self.reaches[switch] {
            return known;
        }
        let dst = self.fabric.first_host(self.leaf);
        let group = self.fabric.next_hops(switch, dst);
        let usable: Vec<PortId> =
            group.ids().filter(|port| self.is_usable(*port, detours)).collect();
        if usable.len() < group.count as usize {
            detours.note(switch, self.leaf, &usable);
        }
        self.reaches[switch] = Some(!usable.is_empty());
        !usable.is_empty()
    }

    fn is_usable(&mut self, port: PortId, detours: &mut Exceptions<PortId>) -> bool {
        let Node::Switch(next) = self.fabric.ports()[port].peer else { return true };
        self.alive[port.index()] && self.reaches(next, detours)
    }
}
