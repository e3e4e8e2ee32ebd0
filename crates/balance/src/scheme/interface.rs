//! What a load balancer is to the rest of Weft: the trait that every scheme implements, and its line of the
//! catalogue.

use crate::enforce::Enforce;
use crate::forward::{Forward, PathStart, SwitchContext};
use crate::plan::{HostContext, Plan};
use crate::steer::{FlowContext, Steer};
use crate::tor::{Tor, TorContext};
use std::fmt::Debug;
use weft_fabric::{Fabric, FabricError, LinkShares, PathView};
use weft_units::{OptionError, OptionInfo, Options, Time};

/// A load balancer: what it is told, and what it puts into the places where it acts.
pub trait Scheme: Clone + Debug + PartialEq {
    /// Its line of the catalogue.
    const INFO: SchemeInfo;
    /// What acts at the NIC of a host: [`crate::plan::Unsplit`] for messages that are not split.
    type Planner: Plan + Clone + Debug;
    /// What acts at a flow: [`crate::steer::Fixed`] for one route.
    type Steering: Steer + Clone + Debug;
    /// What acts in a switch: [`crate::forward::Hashed`] for the hash. A large state goes into
    /// a [`Box`].
    type Switching: Forward + Clone + Debug;

    /// What it is told.
    ///
    /// # Errors
    /// If an option is not what it may be.
    fn read(options: &mut Options<'_>) -> Result<Self, OptionError>;
    /// Whether packets of one flow may take different paths. [`SchemeInfo::multipath`] unless
    /// an option changes it.
    fn is_multipath(&self) -> bool {
        Self::INFO.multipath
    }
    /// Whether it goes by the delay that congestion control aims at ([`crate::steer::Feedback::late`]).
    fn follows_delay(&self) -> bool {
        false
    }
    /// Whether it needs a fabric whose paths have ids ([`Fabric::check_path_ids`]).
    /// [`SchemeInfo::path_ids`] unless an option changes it.
    fn needs_path_ids(&self) -> bool {
        Self::INFO.path_ids
    }
    /// What makes packets take paths that hosts choose, if hosts choose any.
    fn enforce(&self) -> Option<Enforce> {
        self.needs_path_ids().then_some(Enforce::PathId)
    }
    /// Why it needs a folded Clos; `None`: it does not.
    fn needs_clos(&self) -> Option<&'static str> {
        let knows_uplinks = Self::INFO.port_policy || !Self::INFO.tor.is_none();
        knows_uplinks.then_some("its switches tell paths apart by the uplinks of leaves")
    }
    /// Why it needs a folded Clos of leaves and spines; `None`: it does not, or may have more tiers.
    fn needs_two_tiers(&self) -> Option<&'static str> {
        None
    }
    /// Whether it can run on `fabric`.
    ///
    /// # Errors
    /// If packets cannot be made to take the paths that it chooses.
    fn fits(&self, fabric: &Fabric) -> Result<(), FabricError> {
        let in_one_plane = Self::INFO.persistent
            || Self::INFO.informed
            || Self::INFO.port_policy
            || !Self::INFO.tor.is_none()
            || self.enforce().is_some_and(|enforce| enforce != Enforce::PathId);
        if in_one_plane && fabric.planes() > 1 {
            let why = "its queue pairs, or what switches know, belong to one port of a NIC";
            return Err(FabricError(format!("it needs planes = 1, since {why}")));
        }
        if (in_one_plane || Self::INFO.weighted) && fabric.homes() > 1 {
            let why = "what hosts and switches know of paths is of one port of a NIC";
            return Err(FabricError(format!("it needs homes = 1, since {why}")));
        }
        if let (Some(why), None) = (self.needs_clos(), fabric.clos()) {
            return Err(needs_clos(why));
        }
        if let (Some(why), 3..) = (self.needs_two_tiers(), fabric.tiers()) {
            return Err(FabricError(format!(
                "it needs a fabric of leaves and spines only, since {why}"
            )));
        }
        self.enforce().map_or(Ok(()), |enforce| enforce.fits(fabric))
    }
    /// What switches must do: [`SchemeInfo::switches`] unless an option changes it.
    fn switches(&self) -> &'static str {
        Self::INFO.switches
    }
    /// The value of the option that [`SchemeInfo::numbered`] names.
    fn number(&self) -> Option<u32> {
        None
    }
    /// What hosts are told of paths when routing has learnt what is left of the links, where
    /// [`SchemeInfo::informed`] says that they are.
    fn view(&self, _: &Fabric, links: LinkShares) -> PathView {
        PathView::new(links)
    }
    /// The planner of one host.
    fn planner(&self, context: &HostContext) -> Self::Planner;
    /// The state of one flow.
    fn steering(&self, context: &FlowContext<'_>) -> Self::Steering;
    /// The state of one switch.
    fn switching(&self, context: &SwitchContext) -> Self::Switching;
    /// Whether a packet goes over another group instead of by a shortest path, where
    /// [`SchemeInfo::weighs_detours`] has switches ask.
    fn prefers_detour(&self, shortest: PathStart, detour: PathStart) -> bool {
        let _ = (shortest, detour);
        false
    }
    /// Whether other switches of the group ask, too.
    fn weighs_again(&self) -> bool {
        false
    }
    /// What one switch keeps beyond that, for items `T` that it may hold back: something where
    /// [`SchemeInfo::tor`] says so, else nothing.
    fn tor<T>(&self, _: &TorContext<'_>) -> Option<Tor<T>> {
        None
    }
}

/// Why a scheme does not run on a network that is no Clos.
pub(crate) fn needs_clos(why: &str) -> FabricError {
    FabricError(format!("it needs a folded Clos, since {why}"))
}

/// A scheme, as lists and help texts show it, and what the rest of Weft must know of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchemeInfo {
    /// The value of `balance.scheme`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What switches must do beyond hashing packets onto equal hops, in a few words.
    pub switches: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether packets of one flow may take different paths, so that they arrive out of order
    /// and want selective repeat.
    pub multipath: bool,
    /// Which paths the packets of one flow take, for those who count in flows instead of packets.
    pub paths: PathUse,
    /// Whether it needs a fabric whose paths have ids ([`Fabric::check_path_ids`]), unless it is
    /// told otherwise.
    pub path_ids: bool,
    /// Whether it chooses in switches: whether [`Scheme::Switching`] is anything but
    /// [`crate::forward::Hashed`] and [`crate::enforce::PortRules`], which follow what hosts chose, or
    /// [`SchemeInfo::tor`] names some, or [`SchemeInfo::weighs_detours`].
    pub in_switch: bool,
    /// Whether all that it does in switches is a policy that maps source ports to uplinks, which switches
    /// on sale can be configured to do.
    pub port_policy: bool,
    /// Which switches keep what [`Scheme::tor`] gives them.
    pub tor: StatefulSwitches,
    /// Whether the switch at the source of a packet asks [`Scheme::prefers_detour`], where packets may go over
    /// other groups ([`Fabric::has_detours`]).
    pub weighs_detours: bool,
    /// Whether packets go over other groups of switches, where there are any.
    pub over_groups: bool,
    /// Whether it is made for a recovery whose receivers report, and switches that trim.
    pub wants_reports: bool,
    /// Whether routing is to tell switches the weights of hops ([`crate::forward::Hops::weights`]).
    pub weighted: bool,
    /// Whether hosts are told what routing learns of links ([`Plan::learn`]).
    pub informed: bool,
    /// Whether its queue pairs are persistent, and carry one subflow after the other.
    pub persistent: bool,
    /// Whether its planner watches over chunks, each with a time-out of its own ([`crate::plan::Carrier::Chunk`]).
    pub watches: bool,
    /// Whether its queue pairs have shares of the line rate, so that congestion control must set a
    /// rate.
    pub shares: bool,
    /// The congestion control that it is made for, and gets unless the experiment names one.
    pub congestion: &'static str,
    /// The loss recovery that it is made for, and gets unless the experiment names one; `None`: what suits
    /// all that take one path, or several.
    pub recovery: Option<&'static str>,
    /// The option whose value may stand at the end of the name: `subflows-8` for `subflows`
    /// with `count = 8`.
    pub numbered: Option<&'static str>,
    /// [`super::BalanceConfig::start_jitter`] unless told otherwise.
    pub start_jitter: Time,
    /// [`super::BalanceConfig::random_position`] unless told otherwise.
    pub random_position: bool,
    /// What it can be told.
    pub options: &'static [OptionInfo],
}

/// Which paths the packets of one flow take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// One, until its host or a switch is told of a failure.
    One,
    /// All shortest ones, the same share on each.
    AllAlike,
    /// All shortest ones, on each as much as it carries: hosts learn from marks where that is.
    AllByRoom,
    /// What packets meet on their way decides: marks, queues, gaps between packets. Only a
    /// simulation of packets tells.
    AsPacketsFind,
}

/// Which switches keep a state of their own ([`crate::tor`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatefulSwitches {
    /// No switch.
    None,
    /// Those that hosts are at.
    Leaves,
    /// All switches.
    All,
}

impl StatefulSwitches {
    /// Whether no switch keeps a state.
    pub const fn is_none(self) -> bool {
        matches!(self, StatefulSwitches::None)
    }
    /// Whether a switch does, which is a leaf or not.
    pub fn includes(self, is_leaf: bool) -> bool {
        self == StatefulSwitches::All || self == StatefulSwitches::Leaves && is_leaf
    }
}

impl SchemeInfo {
    /// A scheme without a name that keeps every flow on one path under DCTCP and randomises no
    /// starts: what the others differ from.
    pub const PLAIN: SchemeInfo = SchemeInfo {
        name: "",
        summary: "",
        switches: "nothing",
        source: "",
        multipath: false,
        paths: PathUse::One,
        path_ids: false,
        in_switch: false,
        port_policy: false,
        tor: StatefulSwitches::None,
        weighs_detours: false,
        over_groups: false,
        wants_reports: false,
        weighted: false,
        informed: false,
        persistent: false,
        watches: false,
        shares: false,
        congestion: "dctcp",
        recovery: None,
        numbered: None,
        start_jitter: Time::ZERO,
        random_position: false,
        options: &[],
    };

    /// How to write its name: `reps`, `subflows-N`.
    pub fn spelling(&self) -> String {
        format!("{}{}", self.name, if self.numbered.is_some() { "-N" } else { "" })
    }
    /// Its name with the number that a scheme of it has.
    pub(crate) fn named(&self, number: Option<u32>) -> String {
        match number {
            Some(number) => format!("{}-{number}", self.name),
            None => self.name.to_owned(),
        }
    }
}
