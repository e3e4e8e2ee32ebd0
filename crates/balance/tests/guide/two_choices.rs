//! Power of two choices: every packet looks at some hops by chance and takes the shortest queue.

use super::{Scheme, SchemeInfo};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{Draw, OptionError, OptionInfo, OptionKind, Options, Stream};

/// What the scheme is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoChoices {
    /// How many hops a packet looks at.
    pub choices: u32,
}

impl Scheme for TwoChoices {
    const INFO: SchemeInfo = SchemeInfo {
        name: "two-choices",
        summary: "every packet the shortest queue of some hops that a switch draws for it",
        switches: "queue lengths",
        source: "Weft's guide to new schemes; Mitzenmacher (2001)",
        multipath: true,
        in_switch: true,
        options: &[OptionInfo {
            key: "choices",
            default: "2",
            kind: OptionKind::Whole(1, 64),
            meaning: "hops that a packet looks at, up to 64",
        }],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Chooser;

    fn read(options: &mut Options<'_>) -> Result<TwoChoices, OptionError> {
        Ok(TwoChoices { choices: options.number("choices")? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Chooser {
        let draw = Draw::new(context.seed, "two-choices");
        Chooser { stream: draw.stream(u64::from(context.switch.0)), choices: self.choices }
    }
}

/// A switch under [`TwoChoices`].
#[derive(Clone, Debug)]
pub struct Chooser {
    stream: Stream,
    choices: u32,
}

impl Forward for Chooser {
    #[inline]
    fn choose<H: Hops>(&mut self, _: &Passing, hops: &H) -> u32 {
        let count = hops.count();
        if count == 1 {
            return 0;
        }
        let mut best = self.stream.below(count);
        for _ in 1..self.choices {
            let other = self.stream.below(count);
            if hops.queued(other) < hops.queued(best) {
                best = other;
            }
        }
        best
    }
}
