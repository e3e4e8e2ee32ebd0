//! Path pinning, as Meta had it before E-ECMP (Gangidi et al., SIGCOMM 2024; CTCCL 2025, section
//! 2.2): the place of the receiver in its rack says which uplink a packet takes.
//!
//! All that goes to the `i`-th host of any rack, its "slice", leaves a leaf by uplink `i` mod the
//! number of uplinks. Racks that are filled by one job are in balance so; parts of racks are not.
//!
//! The rule is made for two tiers. In three it goes on as in destination-based routing of
//! fat-trees: an aggregation switch takes the place of the receiver's leaf in its pod. On the
//! way down, the place that chose a link up chooses its fellow of a bundle.
//!
//! Of failed links Meta says that their flows are placed by ECMP ([`Failover::Hash`]). The usual
//! rule here is the same rule over the hops that are left ([`Failover::Modulo`]), which moves
//! others too, and keeps racks in balance as far as their hosts divide.
//!
//! Invariant: as long as the set of hops stays as it is, all that goes to one host takes one hop.

use super::{Scheme, SchemeInfo};
use crate::forward::{Forward, Hops, Passing, SwitchContext};
use crate::plan::{HostContext, Unsplit};
use crate::steer::{Fixed, FlowContext};
use std::ops::Range;
use weft_units::{FastDiv, HostId, OptionError, OptionInfo, OptionKind, Options};

/// The receiver's place says which hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPinning {
    /// What happens to those whose hop has failed.
    pub failover: Failover,
}

/// Where packets go whose own hop has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// All packets go by the same rule over what is left.
    Modulo,
    /// They go where the hash says, all others where they went.
    Hash,
}

impl Scheme for PathPinning {
    const INFO: SchemeInfo = SchemeInfo {
        name: "path-pinning",
        summary: "one path for all that goes to a host, by its place in its rack",
        switches: "policy of slices",
        source: "Gangidi et al. (SIGCOMM 2024); CTCCL (2025), section 2.2",
        in_switch: true,
        options: &[OptionInfo {
            key: "failover",
            default: "modulo",
            kind: OptionKind::Word(&["modulo", "hash"]),
            meaning: "when hops have failed: \"modulo\": the same rule over those that are left; \
                      \"hash\": ECMP for those whose hop has failed",
        }],
        ..SchemeInfo::PLAIN
    };
    type Planner = Unsplit;
    type Steering = Fixed;
    type Switching = Pinning;

    fn read(options: &mut Options<'_>) -> Result<PathPinning, OptionError> {
        let ways = [("modulo", Failover::Modulo), ("hash", Failover::Hash)];
        Ok(PathPinning { failover: options.choice("failover", &ways)? })
    }
    fn needs_clos(&self) -> Option<&'static str> {
        Some("its switches count hosts and leaves below each uplink")
    }
    fn planner(&self, context: &HostContext) -> Unsplit {
        Unsplit::new(context)
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> Pinning {
        Pinning::new(*self, context)
    }
}

/// A switch under [`PathPinning`].
#[derive(Clone, Debug)]
pub struct Pinning {
    failover: Failover,
    hosts_per_leaf: FastDiv,
    leaves_per_pod: FastDiv,
    /// Hosts whose own place counts; of all others that of their leaf does.
    own: Range<u32>,
}

impl Pinning {
    /// For one switch.
    pub fn new(scheme: PathPinning, context: &SwitchContext) -> Pinning {
        let SwitchContext { switch, fabric, .. } = *context;
        let clos = fabric.clos().expect("fits has said so");
        let own = match fabric.tier(switch) {
            0 => 0..fabric.hosts(),
            1 => fabric.hosts_below(switch),
            _ => 0..0,
        };
        Pinning {
            failover: scheme.failover,
            hosts_per_leaf: FastDiv::new(clos.hosts_per_leaf),
            leaves_per_pod: FastDiv::new(clos.leaves_per_pod()),
            own,
        }
    }

    /// The slice of `dst`, as this switch counts it.
    #[inline]
    fn slice(&self, dst: HostId) -> u32 {
        let (leaf, place) = self.hosts_per_leaf.div_rem(dst.0);
        match self.own.contains(&dst.0) {
            true => place,
            false => self.leaves_per_pod.div_rem(leaf).1,
        }
    }
}

impl Forward for Pinning {
    #[inline]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        let slice = self.slice(packet.dst);
        match self.failover {
            Failover::Modulo => slice % hops.count(),
            Failover::Hash => {
                let place = slice % hops.places();
                let own = (0..hops.count()).find(|hop| hops.place(*hop) == place);
                own.unwrap_or(packet.hashed)
            }
        }
    }
}
