//! Valiant routing: every packet, or every flow, goes over a random group of switches other than its own and that of its
//! destination, and from there on by a shortest path (Valiant 1982; in dragonflies Kim et al. 2008, section 4).
//!
//! All global links carry alike whatever the traffic is, at the price of twice the global links for each
//! packet. Within a group, and in a Clos, where the same is done by spines, packets take a random shortest path.
//! What this does not do: look at queues, or keep to short paths while these are free (UGAL).

use super::spray::RandomSpray;
use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, FlowContext, Steer, TimeOut};
use weft_fabric::PathId;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// Over random groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Valiant {
    /// What goes over one group.
    pub per: Per,
}

/// What has a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Every packet.
    Packet,
    /// Every flow.
    Flow,
}

impl Scheme for Valiant {
    const INFO: SchemeInfo = SchemeInfo {
        name: "valiant",
        summary: "every packet over a random group of switches, whatever the traffic",
        switches: "route over the group that a packet names",
        source: "Valiant (1982); Kim, Dally, Scott and Abts (ISCA 2008)",
        multipath: true,
        over_groups: true,
        paths: PathUse::AsPacketsFind,
        options: &[OptionInfo {
            key: "per",
            default: "packet",
            kind: OptionKind::Word(&["packet", "flow"]),
            meaning: "what draws a group: every \"packet\", or every \"flow\", which then stays in order",
        }],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = OverGroups;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Valiant, OptionError> {
        let per = options.choice("per", &[("packet", Per::Packet), ("flow", Per::Flow)])?;
        Ok(Valiant { per })
    }
    fn is_multipath(&self) -> bool {
        self.per == Per::Packet
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> OverGroups {
        OverGroups(Box::new(State::new(self.per, context)))
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// A flow under [`Valiant`].
#[derive(Clone, Debug)]
pub struct OverGroups(Box<State>);

#[derive(Clone, Debug)]
struct State {
    draws: RandomSpray,
    /// Groups that it may go over: so many, but for its own two; `None`: by shortest paths.
    groups: Option<(u32, [u32; 2])>,
    /// What all packets take.
    fixed: Option<Route>,
    /// Since when.
    since: Time,
}

impl State {
    fn new(per: Per, context: &FlowContext<'_>) -> State {
        let (fabric, (src, dst)) = (context.fabric, context.hosts);
        let ends = [src, dst].map(|host| fabric.pod_of(host));
        let goes_far = fabric.has_detours() && ends[0] != ends[1];
        let groups = goes_far.then(|| (fabric.pods(), ends));
        let mut state = State {
            draws: RandomSpray::new(context.flow, context.seed),
            groups,
            fixed: None,
            since: Time::ZERO,
        };
        state.fixed = (per == Per::Flow).then(|| state.draw());
        state
    }

    fn draw(&mut self) -> Route {
        match self.groups {
            None => Route::Hashed(self.draws.next_entropy()),
            Some((groups, ends)) => {
                Route::Pinned(PathId::over_random(self.draws.next_bits(), groups, ends))
            }
        }
    }
}

impl Steer for OverGroups {
    const HEARS: bool = false;

    fn route(&mut self, _: Route, _: Departure) -> Route {
        let state = &mut self.0;
        match state.fixed {
            Some(route) => route,
            None => state.draw(),
        }
    }
    /// The link to a group may be dead: the flow goes over another one.
    fn on_time_out(&mut self, time_out: TimeOut) {
        let state = &mut self.0;
        if state.fixed.is_some() && time_out.reaches(state.since) {
            (state.fixed, state.since) = (Some(state.draw()), time_out.now);
        }
    }
}
