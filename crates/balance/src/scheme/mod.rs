//! The schemes: what they are called, what they can be told, where they come from, and the
//! registry of them.
//!
//! One file a scheme, or a family of close relatives, below; here its `mod` line and one line
//! in the registry. Nothing else in Weft lists schemes: the simulator, the reader of
//! experiment files, `weft list` and the tests go by the registry.
//!
//! Invariant: a scheme's name, defaults and properties stand in its [`SchemeInfo`] and nowhere
//! else.

mod cast;
pub mod conga;
pub mod connections;
pub mod conweave;
mod dlb;
pub mod dnlb;
pub mod drill;
mod ecmp;
pub mod ecmp_adaptive;
pub mod enhanced_ecmp;
pub mod ethereal;
pub mod ethereal_weighted;
pub mod flowlet_adaptive;
pub mod host_flowlets;
pub mod hpn;
mod interface;
pub mod letflow;
pub mod mp_rdma;
mod mrc;
pub mod paralet;
pub mod path_pinning;
pub mod platform;
pub mod repath;
pub mod reps;
pub mod reps_freezing;
mod rlb;
pub mod spray;
pub mod spray_bitmap;
pub mod subflows;
pub mod switch_spray;
pub mod switch_spray_adaptive;
mod themis;
pub mod twill;
pub mod ugal;
pub mod valiant;
pub mod wcmp;

pub(crate) use interface::needs_clos;
pub use interface::{PathUse, Scheme, SchemeInfo, StatefulSwitches};

use crate::enforce::{Enforce, Hashing};
use crate::forward::{Forward, Hops, Passing, PathStart, SwitchContext};
use crate::plan::{
    ActiveFlow, ChunkAnswer, FlowInfo, HostContext, LossSignal, Plan, Post, QueuePairId, Route,
    Starts, Subflow,
};
use crate::registry::{Spelling, schemes};
use crate::steer::{Departure, Feedback, FlowContext, MAX_STATE, Steer, TimeOut};
use crate::tor::{Tor, TorContext};
use std::fmt::Debug;
use std::sync::Arc;
use weft_fabric::{Fabric, FabricError, LinkShares, PathId, PathView};
use weft_units::options::ResolvedOptions;
use weft_units::{HostId, OptionError, OptionInfo, OptionKind, Options, Time};

/// Everything about balancing in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct BalanceConfig {
    /// The scheme.
    pub scheme: SchemeConfig,
    /// Every flow starts after a random delay below this.
    pub start_jitter: Time,
    /// Every flow enters its NIC's list of queue pairs at a random position.
    pub random_position: bool,
    /// Bytes that a flow may have sent before feedback can be expected: a bandwidth-delay product.
    pub bdp: u64,
}

// The registry: one line a scheme.
schemes! {
    ecmp::Ecmp,
    spray::Spray,
    spray::SprayCounter,
    spray::SprayLabel,
    reps::Reps,
    reps::RepsSticky,
    reps_freezing::RepsFreezing,
    reps_freezing::Reps2026,
    spray_bitmap::SprayBitmap,
    spray_bitmap::SprayMixed,
    spray_bitmap::STrack,
    mp_rdma::MpRdma,
    mrc::Mrc,
    ethereal::Ethereal,
    ethereal_weighted::EtherealWeighted,
    hpn::Hpn,
    enhanced_ecmp::EnhancedEcmp,
    cast::Cast,
    rlb::Rlb,
    dnlb::Dnlb,
    paralet::Paralet,
    switch_spray::SwitchSpray,
    switch_spray::SwitchRotation,
    switch_spray_adaptive::SwitchSprayAdaptive,
    ecmp_adaptive::EcmpAdaptive,
    flowlet_adaptive::FlowletAdaptive,
    dlb::Dlb,
    dlb::Glb,
    drill::Drill,
    letflow::LetFlow,
    conga::Conga,
    conweave::ConWeave,
    themis::Themis,
    path_pinning::PathPinning,
    wcmp::Wcmp,
    host_flowlets::HostFlowlets,
    repath::Plb,
    repath::FlowBender,
    subflows::Subflows,
    subflows::SubflowsAdaptive,
    valiant::Valiant,
    twill::Twill,
    ugal::Ugal,
}

impl SchemeInfo {
    /// The scheme that `name` stands for, with or without a number at its end.
    ///
    /// # Errors
    /// If there is none (key `scheme`).
    pub fn find(name: &str) -> Result<&'static SchemeInfo, OptionError> {
        Spelling::read(name, SCHEMES).map(|spelling| spelling.info)
    }
}

impl SchemeConfig {
    /// The scheme called `name` with options as an experiment file writes them:
    /// `[("entropies", "64")]`. A numbered name gives one of them (see
    /// [`SchemeInfo::numbered`]), which may be given again with the same value only.
    ///
    /// # Errors
    /// If the name (key `scheme`) or an option is unknown, or a value is not what the option
    /// takes.
    pub fn read(name: &str, given: &[(&str, &str)]) -> Result<SchemeConfig, OptionError> {
        SchemeConfig::resolve(name, given).map(|(scheme, _)| scheme)
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
    /// Its name, as experiment files and tables have it. One that may have a number has it:
    /// `subflows-4` also where the file says `subflows`.
    pub fn name(&self) -> String {
        self.info().named(self.number())
    }
}

impl Planner {
    /// The planner of `host`. All its randomness follows from `seed`; `mtu` is the payload of a
    /// full packet, in bytes.
    pub fn new(config: &BalanceConfig, host: HostId, seed: u64, mtu: u32) -> Planner {
        Planner::knowing(None, config, host, seed, mtu)
    }

    /// As [`Planner::new`], where hosts know what the switches' hash is.
    pub fn knowing(
        hashing: Option<Hashing>,
        config: &BalanceConfig,
        host: HostId,
        seed: u64,
        mtu: u32,
    ) -> Planner {
        let starts = Starts::new(config.start_jitter, seed);
        let bdp = config.bdp;
        Planner::of(&config.scheme, &HostContext { host, seed, mtu, starts, bdp, hashing })
    }
}

impl Steering {
    /// The state of a new flow under the scheme of `config`.
    pub fn new(config: &BalanceConfig, context: &FlowContext<'_>) -> Steering {
        Steering::of(&config.scheme, context)
    }
}

impl Switching {
    /// The state of one switch.
    pub fn new(config: &BalanceConfig, context: &SwitchContext) -> Switching {
        Switching::of(&config.scheme, context)
    }
}
