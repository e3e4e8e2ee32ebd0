//! What is known of links when hosts begin to plan: failures that last, from a file or from whoever
//! watches the fabric.
//!
//! Planners of schemes that ask are told what every path can carry ([`crate::plan::Plan::learn`]);
//! others that pin paths learn of dead ones as if something had timed out there.

use crate::Planner;

use crate::plan::{FlowInfo, LossSignal, Route};
use crate::scheme::SchemeConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use weft_fabric::{Fabric, LinkShares, PathId, PathView, PathWeights};
use weft_units::{HostId, PortId, Time};

/// What planners are told before they begin. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// For schemes that ask.
    view: Option<Arc<PathView>>,
    /// By the leaves at both ends: paths that are dead.
    dead: BTreeMap<(u32, u32), Vec<PathId>>,
}

impl Known {
    /// Where each port sends so many bits per second, zero where its link is dead.
    pub fn new(fabric: &Fabric, scheme: &SchemeConfig, rates: impl Fn(PortId) -> u64) -> Known {
        if scheme.info().informed {
            let view = scheme.view(fabric, LinkShares::new(fabric, rates));
            return Known { view: Some(Arc::new(view)), dead: BTreeMap::new() };
        }
        let dead = match scheme.enforce() {
            Some(_) => dead_paths(fabric, rates),
            None => BTreeMap::new(),
        };
        Known { view: None, dead }
    }

    /// Where the scheme asks, lets the paths between two leaves carry what these weights say.
    pub fn give(&mut self, leaves: (u32, u32), weights: impl FnOnce() -> PathWeights) {
        if let Some(view) = &mut self.view {
            Arc::make_mut(view).give(leaves, weights());
        }
    }

    /// Tells the planner of `host`, which has planned nothing yet.
    pub fn tell(&self, planner: &mut Planner, host: HostId, fabric: &Fabric) {
        if let Some(view) = &self.view {
            planner.learn(Time::ZERO, view, fabric);
        }
        let leaf = fabric.leaf_of(host);
        for ((_, to), paths) in self.dead.range((leaf, 0)..=(leaf, u32::MAX)) {
            let dst = fabric.first_host(*to);
            for path in paths {
                let route = Route::Pinned(*path);
                let flow = FlowInfo { dst, route, bytes: 0, queue_pair: None, chunk: None };
                let _ = planner.on_loss(Time::ZERO, &flow, LossSignal::TimeOut, fabric);
            }
        }
    }
}

/// The paths that some dead link is on.
fn dead_paths(fabric: &Fabric, rates: impl Fn(PortId) -> u64) -> BTreeMap<(u32, u32), Vec<PathId>> {
    let mut dead: BTreeMap<(u32, u32), Vec<PathId>> = BTreeMap::new();
    if fabric.ports().ids().all(|port| rates(port) > 0) {
        return dead;
    }
    for from in 0..fabric.leaves() {
        for to in (0..fabric.leaves()).filter(|to| *to != from) {
            let (src, dst) = (fabric.first_host(from), fabric.first_host(to));
            let set = fabric.path_set(src, dst);
            for path in (0..set.len()).map(|index| set.get(index)) {
                let ports = fabric.trace(src, dst, path);
                let between = &ports[1..ports.len() - 1];
                if between.iter().any(|port| rates(*port) == 0) {
                    dead.entry((from, to)).or_default().push(path);
                }
            }
        }
    }
    dead
}
