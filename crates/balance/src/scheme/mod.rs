//! The schemes: what they are called, what they can be told, where they come from, and the
//! registry of them.
//!
//! One file a scheme, or a family of close relatives, below; here its `mod` line and one line
//! in the registry. Nothing else in Weft lists schemes: the simulator, the reader of
//! experiment files, `weft list` and the tests go by the registry.
//!
//! Invariant: a scheme's name, defaults and properties stand in its [`SchemeInfo`] and nowhere
//! else.

mod ecmp;
pub mod ethereal;
pub mod reps;
pub mod spray;

use crate::plan::{HostContext, Piece, Plan, Post, Route, Trouble};
use crate::registry::schemes;
use crate::steer::{FlowContext, MAX_STATE, Steer};
use std::fmt::Debug;
use weft_fabric::Fabric;
use weft_units::options::Settled;
use weft_units::{HostId, OptionError, OptionInfo, Options, Time};

/// A load balancer: what it is told, and what it puts into the places where it acts.
pub trait Scheme: Clone + Debug + PartialEq {
    /// Its line of the catalogue.
    const INFO: SchemeInfo;
    /// What acts at the NIC of a host: [`crate::plan::Whole`] for whole messages at once.
    type Planner: Plan + Clone + Debug;
    /// What acts at a flow: [`crate::steer::Fixed`] for one route.
    type Steering: Steer + Clone + Debug;

    /// What it is told.
    ///
    /// # Errors
    /// If an option is not what it may be.
    fn read(options: &mut Options<'_>) -> Result<Self, OptionError>;
    /// The planner of one host.
    fn planner(&self, context: &HostContext) -> Self::Planner;
    /// The state of one flow.
    fn steering(&self, context: &FlowContext) -> Self::Steering;
}

/// A scheme, as lists and help texts show it, and what the rest of Weft must know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeInfo {
    /// The value of `balance.scheme`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether packets of one flow may take different paths, so that they arrive out of order
    /// and want selective repeat.
    pub multipath: bool,
    /// Whether it needs a fabric whose paths have ids ([`Fabric::check_path_ids`]).
    pub path_ids: bool,
    /// [`BalanceConfig::start_jitter`] unless told otherwise.
    pub start_jitter: Time,
    /// [`BalanceConfig::random_position`] unless told otherwise.
    pub random_position: bool,
    /// What it can be told.
    pub options: &'static [OptionInfo],
}

impl SchemeInfo {
    /// A scheme without a name that keeps every flow on one path and randomises no starts: what
    /// the others differ from.
    pub const PLAIN: SchemeInfo = SchemeInfo {
        name: "",
        summary: "",
        source: "",
        multipath: false,
        path_ids: false,
        start_jitter: Time::ZERO,
        random_position: false,
        options: &[],
    };
}

/// Everything about balancing in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct BalanceConfig {
    /// The scheme.
    pub scheme: SchemeConfig,
    /// Every flow starts after a random delay below this.
    pub start_jitter: Time,
    /// Every flow enters its NIC's list of queue pairs at a random position.
    pub random_position: bool,
    /// Bytes that a flow may have sent before feedback can be expected: the first window of
    /// the REPS variants.
    pub first_window: u64,
}

// The registry: one line a scheme.
schemes! {
    ecmp::Ecmp,
    spray::Spray,
    spray::SprayCounter,
    reps::Reps,
    reps::RepsSticky,
    ethereal::Ethereal,
}

impl SchemeConfig {
    /// The scheme called `name` with options as an experiment file writes them:
    /// `[("entropies", "64")]`.
    ///
    /// # Errors
    /// If the name (key `scheme`) or an option is unknown, or a value is not what the option
    /// takes.
    pub fn read(name: &str, given: &[(&str, &str)]) -> Result<SchemeConfig, OptionError> {
        SchemeConfig::settle(name, given).map(|(scheme, _)| scheme)
    }
    /// All schemes with their default options, in the order of [`SCHEMES`].
    ///
    /// # Panics
    /// If a scheme refuses its own defaults.
    pub fn all() -> Vec<SchemeConfig> {
        let usual = |info: &SchemeInfo| match SchemeConfig::read(info.name, &[]) {
            Ok(scheme) => scheme,
            Err(error) => panic!("{}: {error}", info.name),
        };
        SCHEMES.iter().map(usual).collect()
    }
    /// Its name, as experiment files and tables have it.
    pub fn name(&self) -> &'static str {
        self.info().name
    }
    /// As [`SchemeInfo::multipath`].
    pub fn is_multipath(&self) -> bool {
        self.info().multipath
    }
    /// As [`SchemeInfo::path_ids`].
    pub fn needs_path_ids(&self) -> bool {
        self.info().path_ids
    }
}
