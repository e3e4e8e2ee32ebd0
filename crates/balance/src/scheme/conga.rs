//! CONGA (Alizadeh et al., SIGCOMM 2014): flowlets by the congestion of whole paths, which leaves
//! tell each other. What it does is in [`crate::tor::conga`]; here is what it is told.
//!
//! Acknowledgements are flows too, and carry feedback: in the paper all that passes between two
//! leaves does.

use super::{PathUse, Scheme, SchemeInfo, StatefulSwitches};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use crate::tor::conga::{Options as SwitchOptions, Switch};
use crate::tor::{Tor, TorContext};
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// Flowlets by the congestion of whole paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conga {
    /// What switches are told.
    pub options: SwitchOptions,
}

impl Scheme for Conga {
    const INFO: SchemeInfo = SchemeInfo {
        name: "conga",
        summary: "leaves place flowlets by the congestion of whole paths, which they tell each other",
        switches: "flowlet table, loads in headers",
        source: "CONGA (Alizadeh et al., SIGCOMM 2014)",
        multipath: true,
        in_switch: true,
        tor: StatefulSwitches::All,
        options: &[
            OptionInfo {
                key: "gap",
                default: "100us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "a flow is placed anew once its last packet is longer ago than this",
            },
            OptionInfo {
                key: "interval",
                default: "50us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "how often the estimate of a port's load decays, 1ns at least",
            },
            OptionInfo {
                key: "decay",
                default: "0.2",
                kind: OptionKind::Number(0.01, 1.0),
                meaning: "by which share of itself, 0.01 to 1",
            },
            OptionInfo {
                key: "bits",
                default: "3",
                kind: OptionKind::Whole(1, 7),
                meaning: "bits that a load has, 1 to 7",
            },
            OptionInfo {
                key: "aging",
                default: "10ms",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "what another leaf said is forgotten after this",
            },
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Conga, OptionError> {
        let options = SwitchOptions {
            gap: options.time("gap")?,
            interval: options.time("interval")?,
            decay: options.fraction("decay")?,
            bits: options.number("bits")?,
            aging: options.time("aging")?,
        };
        if options.interval < Time::ns(1) {
            let what = format!("\"{}\" is out of range; use 1ns at least", options.interval);
            return Err(OptionError::new("interval", what));
        }
        Ok(Conga { options })
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
        Some(Tor::Conga(Box::new(Switch::new(&self.options, context))))
    }
}
