//! LetFlow (Vanini et al., NSDI 2017): after a gap a flow goes on by any hop.
//!
//! Nobody looks at a queue: flows pause where they are held back, so that they leave such paths
//! more often than they leave free ones.
//!
//! In the paper every switch does this. In the code behind ConWeave (SIGCOMM 2023), which ParaLet (2024)
//! compares with, the leaf of the sender draws a whole path. In a leaf-spine with single links that
//! is the same, as only leaves have a choice; in three tiers it differs in that switches here
//! see gaps of their own. Acknowledgements are flows too, where that code hashes them.
//!
//! Invariant: packets of a flow that follow each other within the gap take one hop as long as the
//! set of hops stays as it is.

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::flows::FlowTable;
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream, Time};

/// After a gap, any hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetFlow {
    /// A flow is placed anew once its last packet is longer ago than this.
    pub gap: Time,
}

impl Scheme for LetFlow {
    const INFO: SchemeInfo = SchemeInfo {
        name: "letflow",
        summary: "switches move a flow to a random hop when it has paused",
        switches: "flowlet table",
        source: "LetFlow (Vanini et al., NSDI 2017)",
        multipath: true,
        in_switch: true,
        options: &[OptionInfo {
            key: "gap",
            default: "100us",
            kind: OptionKind::Time(Time::ZERO),
            meaning: "a flow is placed anew once its last packet is longer ago than this",
        }],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Box<AnyPath>;

    fn read(options: &mut Options<'_>) -> Result<LetFlow, OptionError> {
        Ok(LetFlow { gap: options.time("gap")? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<AnyPath> {
        Box::new(AnyPath::new(*self, context))
    }
}

/// A switch under [`LetFlow`].
#[derive(Clone, Debug)]
pub struct AnyPath {
    table: FlowTable,
    stream: Stream,
}

impl AnyPath {
    /// For one switch.
    pub fn new(scheme: LetFlow, context: &SwitchContext) -> AnyPath {
        let draw = Draw::new(context.seed, "letflow");
        // Where a flow was before its gap is of no use.
        AnyPath {
            table: FlowTable::new(scheme.gap),
            stream: draw.stream(u64::from(context.switch.0)),
        }
    }
}

impl Forward for AnyPath {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let Passing { now, flow, .. } = *packet;
        let count = hops.count();
        if count == 1 {
            return 0;
        }
        if let Some(place) = self.table.find(flow, now, count) {
            place.last = now;
            return place.hop;
        }
        let hop = self.stream.below(count);
        self.table.place(flow, now, count, hop);
        hop
    }
}
