//! Rotating spray: the packets of a flow carry some entropy values in turn.

use super::{Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Route, Unsplit};
use crate::steer::{Departure, FlowContext, Steer};
use weft_units::{OptionError, OptionInfo, OptionKind, Options};

/// What the scheme is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// How many entropy values a flow has.
    pub entropies: u32,
}

impl Scheme for Rotate {
    const INFO: SchemeInfo = SchemeInfo {
        name: "rotate",
        summary: "every packet the next of some entropy values, always in the same order",
        source: "Weft's guide to new schemes",
        multipath: true,
        options: &[OptionInfo {
            key: "entropies",
            default: "16",
            kind: OptionKind::Whole(1, 1 << 16),
            meaning: "entropy values of a flow, up to 65536",
        }],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Turn;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Rotate, OptionError> {
        Ok(Rotate { entropies: options.number("entropies")? })
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Turn {
        Turn { entropies: self.entropies, turn: 0 }
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// A flow under [`Rotate`].
#[derive(Clone, Debug)]
pub struct Turn {
    entropies: u32,
    /// Whose turn it is, below `entropies`.
    turn: u32,
}

impl Steer for Turn {
    #[inline]
    fn route(&mut self, base: Route, _: Departure) -> Route {
        let turn = self.turn;
        self.turn = (turn + 1) % self.entropies;
        match base {
            // The planner gave every flow an entropy of its own: the turns start there.
            Route::Hashed(first) => Route::Hashed(first.wrapping_add(turn as u16)),
            pinned => pinned,
        }
    }
}
