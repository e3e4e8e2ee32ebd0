//! ECMP: every message is a flow, and every flow takes the path that its hash gives it.
//!
//! All of it is elsewhere: the planner of whole messages, and the hash of the switches.

use super::{Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{OptionError, Options};

/// One path a flow, by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecmp;

impl Scheme for Ecmp {
    const INFO: SchemeInfo = SchemeInfo {
        name: "ecmp",
        summary: "one path a flow, chosen by the switches' hash",
        source: "RFC 2992; the baseline of every paper",
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(_: &mut Options<'_>) -> Result<Ecmp, OptionError> {
        Ok(Ecmp)
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}
