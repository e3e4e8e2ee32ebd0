//! Dynamic load balancing of switches on sale (DLB; "adaptive routing and switching" in SAI), by the quality of
//! their own ports, and global load balancing (GLB), by that of the links behind them too.
//!
//! How ports are measured, and flowlets placed, is in [`crate::forward::quality`]; what spines tell leaves in
//! [`crate::tor::glb`].

use super::{PathUse, Scheme, SchemeInfo, StatefulSwitches};
use crate::forward::quality::{Mode, Options, Ports};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use crate::tor::{Tor, TorContext, glb};
use weft_units::OptionError;

/// The best of quantised ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dlb {
    /// What switches are told.
    pub options: Options,
}

impl Scheme for Dlb {
    const INFO: SchemeInfo = SchemeInfo {
        name: "dlb",
        summary: "switches send flowlets by the least loaded ports, as chips measure them",
        switches: "dynamic load balancing (SAI: ARS)",
        source: "SAI, adaptive routing and switching (2024)",
        multipath: true,
        in_switch: true,
        options: Options::INFO,
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Box<Ports>;

    fn read(options: &mut weft_units::Options<'_>) -> Result<Dlb, OptionError> {
        Ok(Dlb { options: Options::read(options)? })
    }
    fn is_multipath(&self) -> bool {
        self.options.mode != Mode::Fixed
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Box<Ports> {
        let SwitchContext { switch, fabric, seed, .. } = *context;
        Box::new(Ports::new(self.options, fabric, switch, seed))
    }
}

/// The best of quantised paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glb {
    /// What switches are told.
    pub options: Options,
}

impl Scheme for Glb {
    const INFO: SchemeInfo = SchemeInfo {
        name: "glb",
        summary: "as dlb, where leaves also know how loaded the links behind their spines are",
        switches: "dynamic load balancing, link qualities flooded",
        source: "Junos, global load balancing (2024); draft-ietf-idr-next-next-hop-nodes",
        tor: StatefulSwitches::All,
        ..Dlb::INFO
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut weft_units::Options<'_>) -> Result<Glb, OptionError> {
        Ok(Glb { options: Options::read(options)? })
    }
    fn is_multipath(&self) -> bool {
        self.options.mode != Mode::Fixed
    }
    fn needs_two_tiers(&self) -> Option<&'static str> {
        Some("spines tell leaves how loaded their links to other leaves are")
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
        Some(Tor::Glb(Box::new(glb::Switch::new(self.options, context))))
    }
}
