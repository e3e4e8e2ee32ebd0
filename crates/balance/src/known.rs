//! What hosts that choose paths are told of links, and the only way in which they are told: by whoever plans,
//! simulates, or starts hosts on a real network.
//!
//! Schemes that ask ([`crate::scheme::SchemeInfo::informed`]) are told what every path can carry. Others that
//! pin paths are told which links are dead, and leave these alone until they are told otherwise. So are those
//! whose source ports name uplinks, where switches have rules for these: a rule knows the links of its own switch.

use crate::Planner;
use crate::scheme::SchemeConfig;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_fabric::{Fabric, LinkShares, PathId, PathView, PathWeights};
use weft_units::{HostId, PortId, Time};

/// What planners are told. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Known {
    view: Option<Arc<PathView>>,
}

impl Known {
    /// Where each port sends so many bits per second, zero where its link is dead.
    ///
    /// In a network that is no Clos only schemes that ask are told: there switches lead pinned packets
    /// around what routing knows to be dead, and names of paths say less than routing does.
    pub fn new(fabric: &Fabric, scheme: &SchemeConfig, rates: impl Fn(PortId) -> u64) -> Known {
        if scheme.info().informed {
            let view = scheme.view(fabric, LinkShares::new(fabric, rates));
            return Known { view: Some(Arc::new(view)) };
        }
        if scheme.enforce().is_none() || fabric.clos().is_none() {
            return Known::default();
        }
        Known::of_dead(fabric, rates)
    }

    /// The same on switches that have the rules of a configuration, for source ports that name uplinks. In a
    /// simulation leaves hash what is named an uplink that has lost its way farther on; a rule sends it there.
    pub fn beside_rules(
        fabric: &Fabric,
        scheme: &SchemeConfig,
        rates: impl Fn(PortId) -> u64,
    ) -> Known {
        match scheme.info().port_policy && fabric.clos().is_some() {
            true => Known::of_dead(fabric, rates),
            false => Known::new(fabric, scheme, rates),
        }
    }

    fn of_dead(fabric: &Fabric, rates: impl Fn(PortId) -> u64) -> Known {
        let alive = |port: PortId| match rates(port) {
            0 => 0,
            _ => fabric.ports()[port].rate.as_bps(),
        };
        Known { view: Some(Arc::new(PathView::new(LinkShares::new(fabric, alive)))) }
    }

    /// Lets the paths between two leaves carry what these weights say, where planners go by weights.
    pub fn give(&mut self, leaves: (u32, u32), weights: impl FnOnce() -> PathWeights) {
        if let Some(view) = &mut self.view {
            Arc::make_mut(view).give(leaves, weights());
        }
    }

    /// The paths from `src` to `dst` that are not known to be dead, in their order; all if all are.
    pub fn paths(&self, fabric: &Fabric, src: HostId, dst: HostId) -> Box<[PathId]> {
        alive(fabric, (src, dst), |path| {
            self.view.as_ref().is_some_and(|view| view.is_dead(fabric, (src, dst), path))
        })
    }

    /// Tells a planner.
    pub fn tell(&self, now: Time, planner: &mut Planner, fabric: &Fabric) {
        if let Some(view) = &self.view {
            planner.learn(now, view, fabric);
        }
    }
}

/// The paths of one host that are not known to be dead.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlivePaths {
    /// What is known of links; nothing: all are alive.
    known: Option<Arc<PathView>>,
    /// By leaf, the paths there, where some links are not what they were. Never iterated.
    by_leaf: FxHashMap<u32, Box<[PathId]>>,
}

impl AlivePaths {
    pub(crate) fn learn(&mut self, view: &Arc<PathView>) {
        self.known = Some(Arc::clone(view));
        self.by_leaf.clear();
    }

    /// Those from `host` to the leaf of `dst`, in their order; all if all are dead. `None`: nothing is known of
    /// any.
    pub(crate) fn to(&mut self, fabric: &Fabric, host: HostId, dst: HostId) -> Option<&[PathId]> {
        let known = self.known.as_ref().filter(|known| !known.is_plain())?;
        let find = || alive(fabric, (host, dst), |path| known.is_dead(fabric, (host, dst), path));
        Some(self.by_leaf.entry(fabric.leaf_of(dst)).or_insert_with(find))
    }
}

/// The paths between two hosts that are not dead; all if all are.
fn alive(
    fabric: &Fabric,
    (src, dst): (HostId, HostId),
    is_dead: impl Fn(PathId) -> bool,
) -> Box<[PathId]> {
    let set = fabric.path_set(src, dst);
    let all = || (0..set.len()).map(|index| set.get(index));
    let alive: Box<[PathId]> = all().filter(|path| !is_dead(*path)).collect();
    if alive.is_empty() { all().collect() } else { alive }
}
