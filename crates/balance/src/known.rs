//! What hosts that choose paths are told of links, and the only way in which they are told: by whoever plans,
//! simulates, or starts hosts on a real network.
//!
//! Schemes that ask ([`crate::scheme::SchemeInfo::informed`]) are told what every path can carry. Others that
//! pin paths are told which links are dead, and leave these alone until they are told otherwise.

use crate::Planner;
use crate::scheme::SchemeConfig;
use std::sync::Arc;
use weft_fabric::{Fabric, LinkShares, PathView, PathWeights};
use weft_units::{PortId, Time};

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

    /// Tells a planner.
    pub fn tell(&self, now: Time, planner: &mut Planner, fabric: &Fabric) {
        if let Some(view) = &self.view {
            planner.learn(now, view, fabric);
        }
    }
}
