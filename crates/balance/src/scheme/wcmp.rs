//! WCMP (Zhou et al., EuroSys 2014): ECMP whose hash prefers hops that can carry more.
//!
//! Each next hop has a weight, by the capacity that its link and what is behind it have left
//! towards the receiver's leaf ([`weft_fabric::Weights`]), and gets its share of all hashes. Routing
//! tells of links that are dead once they are detected, and of degraded ones at once, since a
//! group of links that has lost members knows.
//!
//! Invariants: a flow takes one hop as long as routing learns nothing new; where all weights are
//! the same, it is the hop that ECMP would have taken.

use super::{Scheme, SchemeInfo};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use weft_units::{OptionError, Options};

/// The hash, over weighted hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wcmp;

impl Scheme for Wcmp {
    const INFO: SchemeInfo = SchemeInfo {
        name: "wcmp",
        summary: "one path a flow, by a hash that prefers hops with more capacity left",
        switches: "weighted hash",
        source: "WCMP (Zhou et al., EuroSys 2014)",
        in_switch: true,
        weighted: true,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Weighted;

    fn read(_: &mut Options<'_>) -> Result<Wcmp, OptionError> {
        Ok(Wcmp)
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, _: &SwitchContext) -> Weighted {
        Weighted
    }
}

/// A switch under [`Wcmp`].
#[derive(Clone, Copy, Debug)]
pub struct Weighted;

impl Forward for Weighted {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let Some(weights) = hops.weights() else { return packet.hashed };
        let all: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        // Which of all the weights laid end to end: with equal ones as `hash::below` has it.
        let mut at = (u64::from(packet.hash) * all) >> 32;
        for (hop, weight) in (0..).zip(weights) {
            match at.checked_sub(u64::from(*weight)) {
                Some(rest) => at = rest,
                None => return hop,
            }
        }
        unreachable!("a share of all weights is below their sum")
    }
}
