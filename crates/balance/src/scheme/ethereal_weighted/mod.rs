//! Ethereal for fabrics whose paths are not alike: every batch is split in proportion to what its
//! paths can carry, by what hosts know of slow and dead links.
//!
//! Ethereal (2025) assumes that all paths to a leaf are equal, and leaves it to later work to
//! redistribute what is under way after a failure (section 3.3). Here hosts learn what routing
//! learns ([`Plan::learn`]), [`weft_fabric::PathView`] says what each path should carry, and
//! [`split_by_weight`] cuts messages only where the share of a path ends. All else, the batches,
//! the starts, the paths that are marked bad, is [`super::ethereal`]'s.
//!
//! With `redistribute` a host that learns of a failure, from routing or by a time-out of its own,
//! spreads its flows to the leaves in question anew, by what is left of each. A flow stays where it
//! is as long as its path's share has room for it; flows are not cut a second time. Flows that move
//! overtake packets of their own, so NACKs say nothing of paths then, and are left to recovery.
//!
//! Invariant: a path carries its share of every batch to within a unit, and s paths cost s - 1
//! extra parts a batch at most. What this does not do: look at what other hosts send.

mod split;
mod spread;

pub use split::split_by_weight;

use super::ethereal::{Batch, Ethereal, Group, Interceptor, Nack, Unit};
use super::{Scheme, SchemeInfo};
use crate::enforce::{Enforce, PortRules};
use crate::forward::SwitchContext;
use crate::plan::{ActiveFlow, FlowInfo, HostContext, LossSignal, Plan, Post, Route, Subflow};
use crate::steer::{Fixed, FlowContext};
use spread::spread;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use weft_fabric::{Fabric, LinkShares, PathId, PathView, PathWeights};
use weft_units::{HostId, OptionError, OptionInfo, OptionKind, Options, Time};

/// Minimal splitting in proportion to capacity, and pinned paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherealWeighted {
    /// What it has in common with Ethereal; its `group` does not matter.
    pub base: Ethereal,
    /// What the weights of paths are made of.
    pub weights: Weighing,
    /// Whether flows under way are spread anew after a failure.
    pub redistribute: bool,
}

/// What the weights of paths are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighing {
    /// What is left of each path by itself ([`PathView::weights`]).
    Path,
    /// What leaves all links equally full if all leaves send alike ([`PathView::evened`]).
    Even,
}

impl Scheme for EtherealWeighted {
    const INFO: SchemeInfo = SchemeInfo {
        name: "ethereal-weighted",
        summary: "Ethereal that loads each path by the capacity that failures have left of it",
        switches: "route by path id, tell hosts of links",
        source: "Weft, after Ethereal (Addanki et al. 2025) and WCMP (Zhou et al. 2014)",
        informed: true,
        options: &[
            OptionInfo {
                key: "batch",
                default: "100ns",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "time that messages are collected for, from the first one on",
            },
            OptionInfo {
                key: "bad_for",
                default: "100ms",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "time that a path to a leaf stays out of use after a time-out",
            },
            OptionInfo {
                key: "nack",
                default: "reroute",
                kind: OptionKind::Word(&["reroute", "stay"]),
                meaning: "what a flow does on a NACK: \"reroute\" takes another path; \"stay\" keeps \
                          it, as \"redistribute\" always does",
            },
            OptionInfo {
                key: "unit",
                default: "packet",
                kind: OptionKind::Word(&["byte", "packet"]),
                meaning: "what messages are cut into: a \"packet\", or a \"byte\"",
            },
            OptionInfo {
                key: "weights",
                default: "path",
                kind: OptionKind::Word(&["path", "even"]),
                meaning: "what paths weigh: \"path\" what is left of each by itself; \"even\" what \
                          fills all links alike if all leaves send alike",
            },
            OptionInfo {
                key: "redistribute",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "spread the flows under way to a leaf anew when routing or a time-out tells \
                          of a failure there; if not, only the flow that lost packets moves",
            },
            Enforce::OPTION,
        ],
        ..Ethereal::INFO
    };
    type Planner = Box<Weigher>;
    type Steering = Fixed;
    type Switching = PortRules;

    fn read(options: &mut Options<'_>) -> Result<EtherealWeighted, OptionError> {
        Ok(EtherealWeighted {
            base: Ethereal {
                batch: options.time("batch")?,
                bad_for: options.time("bad_for")?,
                group: Group::Leaf,
                nack: options
                    .choice("nack", &[("reroute", Nack::Reroute), ("stay", Nack::Stay)])?,
                unit: options.choice("unit", &[("byte", Unit::Byte), ("packet", Unit::Packet)])?,
                enforce: Enforce::read(options)?,
            },
            weights: options
                .choice("weights", &[("path", Weighing::Path), ("even", Weighing::Even)])?,
            redistribute: options.flag("redistribute")?,
        })
    }
    fn needs_path_ids(&self) -> bool {
        self.base.needs_path_ids()
    }
    fn enforce(&self) -> Option<Enforce> {
        self.base.enforce()
    }
    fn switches(&self) -> &'static str {
        match self.base.enforce {
            Enforce::PathId => Self::INFO.switches,
            Enforce::Segments => "policy of source ports, tell hosts of links",
            Enforce::Hash => "a hash that hosts know, tell hosts of links",
            Enforce::Discovered => "answers to probes of few hops, tell hosts of links",
        }
    }
    fn view(&self, fabric: &Fabric, links: LinkShares) -> PathView {
        match self.weights {
            Weighing::Path => PathView::new(links),
            Weighing::Even => PathView::new(links).evened(fabric),
        }
    }
    fn planner(&self, context: &HostContext) -> Box<Weigher> {
        Box::new(Weigher {
            interceptor: Interceptor::new(self.base, context),
            redistribute: self.redistribute,
            view: None,
            unsettled: BTreeSet::new(),
        })
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> PortRules {
        self.base.switching(context)
    }
}

/// An [`Interceptor`] that weighs paths.
#[derive(Clone, Debug)]
pub struct Weigher {
    interceptor: Interceptor,
    redistribute: bool,
    /// What is known of paths; nothing: all are alike.
    view: Option<Arc<PathView>>,
    /// Leaves to which flows are to be spread anew.
    unsettled: BTreeSet<u32>,
}

/// The weights of `paths` from `src` to the leaf of `dst`, by what is known.
fn weigh(
    view: Option<&PathView>,
    (src, dst): (HostId, HostId),
    paths: &[PathId],
    fabric: &Fabric,
) -> PathWeights {
    match view {
        Some(view) if !view.is_plain() => view.weights(fabric, src, dst).among(paths),
        _ => PathWeights::new(paths.iter().map(|path| (*path, 1))),
    }
}

impl Weigher {
    /// The paths in use to the leaf of `dst`, weighed; without `but`, of which there may be none.
    fn weights(
        &mut self,
        now: Time,
        dst: HostId,
        but: Option<PathId>,
        fabric: &Fabric,
    ) -> PathWeights {
        let mut paths = self.interceptor.paths_in_use(now, dst, fabric);
        paths.retain(|path| Some(*path) != but);
        weigh(self.view.as_deref(), (self.interceptor.host, dst), &paths, fabric)
    }

    /// The leaves whose paths have other weights under `view`.
    fn changed(&self, view: &PathView, fabric: &Fabric) -> BTreeSet<u32> {
        let host = self.interceptor.host;
        let has_changed = |leaf: &u32| {
            let dst = fabric.first_host(*leaf);
            let before = match &self.view {
                None => PathWeights::equal(fabric, host, dst),
                Some(view) => view.weights(fabric, host, dst),
            };
            *leaf != fabric.leaf_of(host) && before != view.weights(fabric, host, dst)
        };
        (0..fabric.leaves()).filter(has_changed).collect()
    }
}

impl Plan for Weigher {
    fn deadline(&self) -> Option<Time> {
        self.interceptor.deadline()
    }

    fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
        self.interceptor.post(now, post, fabric, out);
    }

    fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let (view, host) = (self.view.as_deref(), self.interceptor.host);
        self.interceptor.flush_by(now, fabric, out, |batch, shares| {
            let Batch { dst, sizes, paths, unit, stream } = batch;
            let weights = weigh(view, (host, dst), paths, fabric);
            split_by_weight(sizes, &weights, unit, stream, shares);
        });
    }

    fn on_loss(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<Route> {
        if self.redistribute && signal == LossSignal::Nack {
            return None;
        }
        let old = self.interceptor.give_up(now, flow, signal, fabric)?;
        if self.redistribute {
            self.unsettled.insert(fabric.leaf_of(flow.dst));
        }
        let weights = self.weights(now, flow.dst, Some(old), fabric);
        let path = weights.pick(self.interceptor.reroutes.bits())?;
        Some(self.interceptor.routes.route(fabric, flow.dst, path))
    }

    fn learn(&mut self, now: Time, view: &Arc<PathView>, fabric: &Fabric) {
        self.interceptor.learn(now, view, fabric);
        if self.redistribute {
            let changed = self.changed(view, fabric);
            self.unsettled.extend(changed);
        }
        self.view = Some(Arc::clone(view));
    }

    fn wants_rebalance(&self) -> bool {
        !self.unsettled.is_empty()
    }

    fn rebalance(
        &mut self,
        now: Time,
        flows: &[ActiveFlow],
        fabric: &Fabric,
        out: &mut Vec<(usize, Route)>,
    ) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let leaf = |flow: &(usize, ActiveFlow)| fabric.leaf_of(flow.1.flow.dst);
        let routes = &self.interceptor.routes;
        // By their paths, whatever enforces these.
        let flows = flows.iter().enumerate().filter_map(|(index, active)| {
            let path = routes.path(fabric, active.flow.dst, active.flow.route)?;
            let flow = FlowInfo { route: Route::Pinned(path), ..active.flow };
            Some((index, ActiveFlow { flow, ..*active }))
        });
        let mut flows: Vec<_> = flows.filter(|flow| unsettled.contains(&leaf(flow))).collect();
        // The large ones first: the small ones fill the gaps.
        flows.sort_by_key(|flow| (leaf(flow), Reverse(flow.1.left), flow.0));
        for flows in flows.chunk_by(|a, b| leaf(a) == leaf(b)) {
            let weights = self.weights(now, flows[0].1.flow.dst, None, fabric);
            let moved = out.len();
            spread(flows, &weights, &mut self.interceptor.reroutes, out);
            for (_, route) in &mut out[moved..] {
                if let Route::Pinned(path) = *route {
                    *route = self.interceptor.routes.route(fabric, flows[0].1.flow.dst, path);
                }
            }
        }
    }
}
