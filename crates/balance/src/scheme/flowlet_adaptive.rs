//! Flowlets in switches with adaptive placement: after a gap, a flow goes on at the shortest
//! queue.
//!
//! As in McClure et al. (2025), section 4. Its code tosses a coin at each gap and moves only to a better one
//! of four levels, seen at most every 100 ns: `coin = true`, `strictly = true`,
//! `refresh = "100ns"`.
//!
//! Invariant: packets of a flow that follow each other within the gap take one hop as long as
//! the set of hops stays as it is.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::flows::{FlowTable, IDLE};
use crate::forward::loads::{Gauge, Levels, Loads, least};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream, Time};

/// After a gap, the shortest queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowletAdaptive {
    /// A flow may move once its last packet is longer ago than this.
    pub gap: Time,
    /// Whether a fair coin must fall too.
    pub coin: bool,
    /// Whether the other queue must be better, instead of as good.
    pub strictly: bool,
    /// How switches look at their queues.
    pub gauge: Gauge,
}

impl Scheme for FlowletAdaptive {
    const INFO: SchemeInfo = SchemeInfo {
        name: "flowlet-adaptive",
        summary: "switches move a flow to the shortest queue when it has paused",
        switches: "queue lengths, flowlet table",
        source: "McClure et al. (2025), flowlets with adaptive routing in switches",
        multipath: true,
        in_switch: true,
        options: &[
            OptionInfo {
                key: "gap",
                default: "10us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "a flow may move once its last packet is longer ago than this",
            },
            OptionInfo {
                key: "coin",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "true: at a gap it moves with probability one half only, as in the \
                          study's code",
            },
            OptionInfo {
                key: "strictly",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "true: it moves only to a better queue than its own, as in the study's \
                          code",
            },
            OptionInfo { default: "exact, or quantised if strictly", ..Gauge::LEVELS },
            Gauge::REFRESH,
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Box<Flowlets>;

    fn read(options: &mut Options<'_>) -> Result<FlowletAdaptive, OptionError> {
        let gap = options.time("gap")?;
        let (coin, strictly) = (options.flag("coin")?, options.flag("strictly")?);
        let usual = if strictly { Levels::Quantised } else { Levels::Exact };
        Ok(FlowletAdaptive { gap, coin, strictly, gauge: Gauge::read_or(options, usual)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<Flowlets> {
        Box::new(Flowlets::new(*self, context))
    }
}

/// A switch under [`FlowletAdaptive`].
#[derive(Clone, Debug)]
pub struct Flowlets {
    scheme: FlowletAdaptive,
    table: FlowTable,
    loads: Loads,
    /// Coins and ties.
    stream: Stream,
}

impl Flowlets {
    /// For one switch.
    pub fn new(scheme: FlowletAdaptive, context: &SwitchContext) -> Flowlets {
        let draw = Draw::new(context.seed, "flowlet-adaptive");
        // Without a coin and strictness, where a flow was before its gap is of no use.
        let idle = if scheme.coin || scheme.strictly { scheme.gap.max(IDLE) } else { scheme.gap };
        Flowlets {
            scheme,
            table: FlowTable::new(idle),
            loads: Loads::new(scheme.gauge, context.buffer),
            stream: draw.stream(u64::from(context.switch.0)),
        }
    }
}

impl Forward for Flowlets {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let Passing { now, flow, .. } = *packet;
        let count = hops.count();
        if count == 1 {
            return 0;
        }
        let Some(place) = self.table.find(flow, now, count) else {
            let hop = least(self.loads.look(now, hops), &mut self.stream);
            self.table.place(flow, now, count, hop);
            return hop;
        };
        let FlowletAdaptive { gap, coin, strictly, .. } = self.scheme;
        let paused = place.last.until(now) > gap;
        place.last = now;
        if paused && (!coin || self.stream.below(2) == 1) {
            let loads = self.loads.look(now, hops);
            let best = least(loads, &mut self.stream);
            if !strictly || loads[best as usize] < loads[place.hop as usize] {
                place.hop = best;
            }
        }
        place.hop
    }
}
