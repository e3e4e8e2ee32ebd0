//! Adaptive spraying by switches: every packet to the shortest queue.
//!
//! As in McClure et al. (2025), section 4. Its code looks at four levels of each queue, at most every
//! 100 ns: `levels = "quantised"` and `refresh = "100ns"` (see [`crate::forward::loads`]).

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::loads::{Gauge, Loads, least};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{Draw, OptionError, Options, Stream};

/// Every packet goes to one of the shortest queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSprayAdaptive {
    /// How switches look at their queues.
    pub gauge: Gauge,
}

impl Scheme for SwitchSprayAdaptive {
    const INFO: SchemeInfo = SchemeInfo {
        name: "switch-spray-adaptive",
        summary: "every packet to the shortest queue of the switch, ties at random",
        switches: "queue lengths",
        source: "McClure et al. (2025), adaptive spraying in switches",
        multipath: true,
        in_switch: true,
        options: &[Gauge::LEVELS, Gauge::REFRESH],
        paths: PathUse::AllAlike,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Box<Shortest>;

    fn read(options: &mut Options<'_>) -> Result<SwitchSprayAdaptive, OptionError> {
        Ok(SwitchSprayAdaptive { gauge: Gauge::read(options)? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<Shortest> {
        Box::new(Shortest::new(self.gauge, context))
    }
}

/// A switch under [`SwitchSprayAdaptive`].
#[derive(Clone, Debug)]
pub struct Shortest {
    loads: Loads,
    /// Draws that break ties.
    stream: Stream,
}

impl Shortest {
    /// For one switch that looks at its queues as `gauge` says.
    pub fn new(gauge: Gauge, context: &SwitchContext) -> Shortest {
        let draw = Draw::new(context.seed, "switch-spray-adaptive");
        let stream = draw.stream(u64::from(context.switch.0));
        Shortest { loads: Loads::new(gauge, context.buffer), stream }
    }
}

impl Forward for Shortest {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        if hops.count() == 1 {
            return 0;
        }
        least(self.loads.look(packet.now, hops), &mut self.stream)
    }
}
