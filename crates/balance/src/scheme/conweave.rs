//! ConWeave (Song et al., SIGCOMM 2023): leaves move flows whose path answers late, and put their
//! packets back into order. What it does is in [`crate::tor::conweave`]; here is what it is told.
//!
//! Acknowledgements, and its own control packets, go by the hash, as in the code behind the paper.

use super::{PathUse, Scheme, SchemeInfo, StatefulSwitches};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use crate::tor::conweave::{LONGEST_EXPIRY, Leaf, Options as LeafOptions};
use crate::tor::{Tor, TorContext};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// Re-routing in leaves, with their reordering queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConWeave {
    /// A reply is late when it takes longer than a round trip without queues and this.
    pub extra_reply: Time,
    /// How long a path is left alone after a packet on it met congestion.
    pub path_pause: Time,
    /// A queue is let go when its tail is late by this; `None`: by the number of tiers.
    pub extra_flush: Option<Time>,
    /// How late a tail is expected where nothing came by the old path; `None`: by the tiers.
    pub default_wait: Option<Time>,
    /// A flow that has been silent for longer begins anew; `None`: by the tiers.
    pub expiry: Option<Time>,
    /// How many paths are drawn to find one that need not be left alone.
    pub samples: u32,
}

/// Extra flush, default wait and expiry: what the code behind the paper gives a leaf-spine, and a
/// fat-tree.
const TWO_TIERS: [Time; 3] = [Time::us(16), Time::us(200), Time::us(300)];
const THREE_TIERS: [Time; 3] = [Time::us(64), Time::us(600), Time::us(1000)];

impl ConWeave {
    /// What the leaves of a fabric of two or three tiers are told.
    pub fn options(&self, three_tiers: bool) -> LeafOptions {
        let [flush, wait, expiry] = if three_tiers { THREE_TIERS } else { TWO_TIERS };
        LeafOptions {
            extra_reply: self.extra_reply,
            path_pause: self.path_pause,
            extra_flush: self.extra_flush.unwrap_or(flush),
            default_wait: self.default_wait.unwrap_or(wait),
            expiry: self.expiry.unwrap_or(expiry),
            samples: self.samples,
        }
    }
}

impl Scheme for ConWeave {
    const INFO: SchemeInfo = SchemeInfo {
        name: "conweave",
        summary: "leaves move flows whose path answers late, and put their packets back into order",
        switches: "flow tables, reordering queues",
        source: "ConWeave (Song et al., SIGCOMM 2023), timers of the code behind it",
        path_ids: true,
        in_switch: true,
        tor: StatefulSwitches::Leaves,
        options: &[
            OptionInfo {
                key: "extra_reply",
                default: "4us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "a reply is late when it takes longer than a round trip and this",
            },
            OptionInfo {
                key: "path_pause",
                default: "16us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "how long a path is left alone after a packet on it was marked",
            },
            OptionInfo {
                key: "extra_flush",
                default: "16us, or 64us with three tiers",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "packets held are let go when the last of the old path is late by this",
            },
            OptionInfo {
                key: "default_wait",
                default: "200us, or 600us with three tiers",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "when that one is expected where nothing came by the old path",
            },
            OptionInfo {
                key: "expiry",
                default: "300us, or 1ms with three tiers",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "a flow that was silent for longer begins anew, 1us to 500ms",
            },
            OptionInfo {
                key: "samples",
                default: "2",
                kind: OptionKind::Whole(1, 64),
                meaning: "paths drawn to find one that need not be left alone, up to 64",
            },
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<ConWeave, OptionError> {
        let scheme = ConWeave {
            extra_reply: options.time("extra_reply")?,
            path_pause: options.time("path_pause")?,
            extra_flush: options.time_if_given("extra_flush")?,
            default_wait: options.time_if_given("default_wait")?,
            expiry: options.time_if_given("expiry")?,
            samples: options.number("samples")?,
        };
        match scheme.expiry {
            Some(expiry) if !(Time::us(1)..=LONGEST_EXPIRY).contains(&expiry) => {
                let what = format!("\"{expiry}\" is out of range; use 1us to {LONGEST_EXPIRY}");
                Err(OptionError::new("expiry", what))
            }
            _ => Ok(scheme),
        }
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
    fn tor<T>(&self, context: &TorContext<'_>) -> Option<Tor<T>> {
        let options = self.options(context.fabric.tiers() == 3);
        context.is_leaf().then(|| Tor::ConWeave(Box::new(Leaf::new(&options, context))))
    }
}
