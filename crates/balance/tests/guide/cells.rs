//! Cells on pinned paths: so many bytes of a flow take one path, as many the next, in turn; after Presto (He
//! et al., SIGCOMM 2015). A path that is silent when packets time out is left alone for a while.

use super::{Scheme, SchemeInfo};
use crate::enforce::{Enforce, PortRules};
use crate::forward::SwitchContext;
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Time};

/// For how many time-outs a path is left alone.
const PATIENCE: u64 = 64;

/// What the scheme is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Payload of a cell, in bytes.
    pub cell: u64,
    /// What makes packets take their path.
    pub enforce: Enforce,
}

impl Scheme for Cells {
    const INFO: SchemeInfo = SchemeInfo {
        name: "cells",
        summary: "cells of every flow take all paths in turn",
        switches: "route by path id",
        source: "Presto (He et al., SIGCOMM 2015)",
        multipath: true,
        path_ids: true,
        options: &[
            OptionInfo {
                key: "cell",
                default: "64KB",
                kind: OptionKind::Size(1, 1_000_000_000),
                meaning: "payload on one path before the next one's turn, in whole packets",
            },
            Enforce::OPTION,
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Box<Turns>;
    type Switching = PortRules;

    fn read(options: &mut Options<'_>) -> Result<Cells, OptionError> {
        let cell = options.size("cell")?;
        Ok(Cells { cell, enforce: Enforce::read(options)? })
    }
    fn needs_path_ids(&self) -> bool {
        self.enforce == Enforce::PathId
    }
    fn enforce(&self) -> Option<Enforce> {
        Some(self.enforce)
    }
    fn switches(&self) -> &'static str {
        self.enforce.switches()
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, context: &FlowContext<'_>) -> Box<Turns> {
        let routes = context.routes(self.enforce).into_vec();
        let path = |route| Path { route, silent_since: Time::MAX, out_until: Time::ZERO };
        let paths: Box<[Path]> = routes.into_iter().map(path).collect();
        let mut stream = Draw::new(context.seed, "cells").stream(context.flow);
        let turn = stream.below(paths.len() as u32) as usize;
        let cell = (self.cell / u64::from(context.mtu)).max(1);
        Box::new(Turns { paths, turn, cell, left: cell })
    }
    fn switching(&self, context: &SwitchContext) -> PortRules {
        match self.enforce {
            Enforce::Segments => PortRules::of(context),
            Enforce::PathId | Enforce::Hash | Enforce::Discovered => PortRules::none(),
        }
    }
}

/// A flow under [`Cells`].
#[derive(Clone, Debug)]
pub struct Turns {
    paths: Box<[Path]>,
    /// The path of this cell.
    turn: usize,
    /// Packets of a cell, and of this one those still to leave.
    cell: u64,
    left: u64,
}

/// What a flow knows of a path.
#[derive(Clone, Debug)]
struct Path {
    route: Route,
    /// When the first packet left of which, and after which, nothing came back; MAX: none.
    silent_since: Time,
    out_until: Time,
}

impl Turns {
    /// Goes on to the next path that is in use; if none is, to the next one.
    fn begin_cell(&mut self, now: Time) {
        let count = self.paths.len();
        let after = |step: usize| (self.turn + step) % count;
        let next = (1..=count).map(after).find(|path| self.paths[*path].out_until <= now);
        (self.turn, self.left) = (next.unwrap_or(after(1)), self.cell);
    }
}

impl Steer for Turns {
    #[inline]
    fn route(&mut self, _: Route, at: Departure) -> Route {
        if self.left == 0 {
            self.begin_cell(at.now);
        }
        self.left -= 1;
        let path = &mut self.paths[self.turn];
        path.silent_since = path.silent_since.min(at.now);
        path.route
    }
    fn on_ack(&mut self, feedback: Feedback) {
        let of = |path: &&mut Path| path.route.number() == feedback.entropy;
        if let Some(path) = self.paths.iter_mut().find(of) {
            path.silent_since = Time::MAX;
        }
    }
    fn on_time_out(&mut self, time_out: TimeOut) {
        for path in &mut self.paths {
            if path.silent_since.saturating_add(time_out.after) <= time_out.now {
                path.silent_since = Time::MAX;
                path.out_until = time_out.now.saturating_add(time_out.after * PATIENCE);
            }
        }
        self.left = 0;
    }
}
