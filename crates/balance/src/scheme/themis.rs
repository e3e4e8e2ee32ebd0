//! Themis (Liu et al., EuroSys 2026): leaves spray the packets of ordinary NICs, which take gaps for losses, and
//! keep back their NACKs unless a packet is lost. What it does is in [`crate::tor::themis`].
//!
//! It is made for NICs that keep what comes out of order and report each gap once (`selective-nack`).

use super::{PathUse, Scheme, SchemeInfo, StatefulSwitches};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use crate::tor::{Tor, TorContext, themis};
use weft_units::{OptionError, Options};

/// Spraying in leaves, which tell reordering from loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Themis;

impl Scheme for Themis {
    const INFO: SchemeInfo = SchemeInfo {
        name: "themis",
        summary: "leaves spray packets in turn, and stop NACKs of packets that are only late",
        switches: "path by packet number, flow tables, NACK filter",
        source: "Themis (Liu et al., EuroSys 2026; APNet 2025)",
        multipath: true,
        path_ids: true,
        in_switch: true,
        tor: StatefulSwitches::Leaves,
        paths: PathUse::AllAlike,
        recovery: Some("selective-nack"),
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(_: &mut Options<'_>) -> Result<Themis, OptionError> {
        Ok(Themis)
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
        context.is_leaf().then(|| Tor::Themis(themis::Leaf::default().into()))
    }
}
