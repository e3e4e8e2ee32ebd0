//! The description of a two- or three-tier folded Clos.

use std::fmt;
use weft_units::{Rate, Time};

/// One link: its rate and its propagation delay (above zero), the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Time,
}

/// The parallel links between one pair of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Each member.
    pub link: Link,
    /// How many members, at least one.
    pub members: u32,
}

/// How many switches stand in which tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiers {
    /// Leaf-spine: every leaf has a bundle to every spine.
    Two {
        /// Leaf (top-of-rack) switches.
        leaves: u32,
        /// Spine switches.
        spines: u32,
    },
    /// Pods of leaves and aggregation switches under a core. Within a pod every leaf has a
    /// bundle to every aggregation switch. The cores form one plane for each aggregation
    /// position: aggregation switch `a` of every pod has a bundle to every core of plane `a`.
    Three {
        /// Pods.
        pods: u32,
        /// Leaf switches in each pod.
        leaves_per_pod: u32,
        /// Aggregation switches in each pod.
        aggs_per_pod: u32,
        /// Core switches in all: a multiple of `aggs_per_pod`.
        cores: u32,
    },
    /// Rails that never meet (Wang et al., arXiv 2307.12169): a leaf-spine for each, without a link to the
    /// others. What is said of pods is said of rails.
    Rails {
        /// How many: one for each NIC of a server.
        rails: u32,
        /// Leaf switches of each rail.
        leaves: u32,
        /// Spine switches of each rail; none where a rail is one leaf.
        spines: u32,
    },
}

/// A folded Clos: what [`crate::Fabric::build`] builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clos {
    /// The switches.
    pub tiers: Tiers,
    /// Hosts under each leaf.
    pub hosts_per_leaf: u32,
    /// Host to leaf.
    pub host_link: Link,
    /// Leaf to spine, or leaf to aggregation switch.
    pub leaf_bundle: Bundle,
    /// Aggregation switch to core; not used with two tiers.
    pub agg_bundle: Bundle,
    /// Time that a packet spends in each switch besides queueing and serialisation.
    pub switch_latency: Time,
    /// Time that a packet spends in the receiving NIC.
    pub nic_latency: Time,
}

impl Clos {
    /// Two tiers with one link everywhere and no latency in boxes.
    pub fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32, link: Link) -> Clos {
        Clos::uniform(Tiers::Two { leaves, spines }, hosts_per_leaf, link)
    }

    /// The k-ary fat-tree of Al-Fares et al. (SIGCOMM 2008): k pods of k/2 leaves and k/2
    /// aggregation switches, k*k/4 cores, k/2 hosts a leaf, one link everywhere.
    pub fn fat_tree(k: u32, link: Link) -> Clos {
        let half = k / 2;
        let tiers =
            Tiers::Three { pods: k, leaves_per_pod: half, aggs_per_pod: half, cores: half * half };
        Clos::uniform(tiers, half, link)
    }

    /// The given switches with one link everywhere and no latency in boxes.
    pub fn uniform(tiers: Tiers, hosts_per_leaf: u32, link: Link) -> Clos {
        let bundle = Bundle { link, members: 1 };
        Clos {
            tiers,
            hosts_per_leaf,
            host_link: link,
            leaf_bundle: bundle,
            agg_bundle: bundle,
            switch_latency: Time::ZERO,
            nic_latency: Time::ZERO,
        }
    }

    /// Pods; a leaf-spine counts as one, and each rail that never meets another is one.
    pub fn pods(&self) -> u32 {
        match self.tiers {
            Tiers::Two { .. } => 1,
            Tiers::Three { pods, .. } => pods,
            Tiers::Rails { rails, .. } => rails,
        }
    }
    /// Leaves in each pod.
    pub fn leaves_per_pod(&self) -> u32 {
        match self.tiers {
            Tiers::Two { leaves, .. } | Tiers::Rails { leaves, .. } => leaves,
            Tiers::Three { leaves_per_pod, .. } => leaves_per_pod,
        }
    }
    /// Switches above the leaves in each pod: spines or aggregation switches.
    pub fn mids_per_pod(&self) -> u32 {
        match self.tiers {
            Tiers::Two { spines, .. } | Tiers::Rails { spines, .. } => spines,
            Tiers::Three { aggs_per_pod, .. } => aggs_per_pod,
        }
    }
    /// Core switches; none with two tiers.
    pub fn cores(&self) -> u32 {
        match self.tiers {
            Tiers::Two { .. } | Tiers::Rails { .. } => 0,
            Tiers::Three { cores, .. } => cores,
        }
    }
    /// Core switches in each plane.
    pub fn cores_per_plane(&self) -> u32 {
        self.cores().checked_div(self.mids_per_pod()).unwrap_or(0)
    }
    /// How many rails never meet each other; `None`: every host can reach every other.
    pub fn rails(&self) -> Option<u32> {
        match self.tiers {
            Tiers::Rails { rails, .. } => Some(rails),
            _ => None,
        }
    }
    /// Hosts in all.
    pub fn hosts(&self) -> u32 {
        self.pods() * self.leaves_per_pod() * self.hosts_per_leaf
    }

    /// Checks every count and delay.
    ///
    /// # Errors
    /// With what is wrong and what it may be.
    pub fn validate(&self) -> Result<(), FabricError> {
        let alone = matches!(self.tiers, Tiers::Rails { leaves: 1, .. });
        let counts = [
            ("pods", self.pods()),
            ("leaves", self.leaves_per_pod()),
            ("spines (aggregation switches)", self.mids_per_pod() + u32::from(alone)),
            ("hosts per leaf", self.hosts_per_leaf),
            ("members of a leaf bundle", self.leaf_bundle.members),
            ("members of an aggregation bundle", self.agg_bundle.members),
        ];
        if let Some((what, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(FabricError(format!("a fabric needs at least one of: {what}")));
        }
        if let Tiers::Three { aggs_per_pod, cores, .. } = self.tiers
            && (cores == 0 || !cores.is_multiple_of(aggs_per_pod))
        {
            return Err(FabricError(format!(
                "{cores} cores do not divide into {aggs_per_pod} planes: \
                 use a multiple of the aggregation switches in a pod"
            )));
        }
        let links = [self.host_link, self.leaf_bundle.link, self.agg_bundle.link];
        if links.iter().any(|link| link.delay == Time::ZERO) {
            return Err(FabricError(NO_DELAY.into()));
        }
        let hosts = u64::from(self.pods())
            * u64::from(self.leaves_per_pod())
            * u64::from(self.hosts_per_leaf);
        if hosts > MAX_HOSTS {
            return Err(FabricError(format!("{hosts} hosts are more than {MAX_HOSTS}")));
        }
        if self.links() > MAX_LINKS {
            return Err(FabricError(format!(
                "the fabric has more than {MAX_LINKS} links: use fewer switches or members"
            )));
        }
        Ok(())
    }

    /// How many links there are, those of hosts included; the greatest number, if there are more.
    pub fn links(&self) -> u64 {
        let product = |counts: [u32; 4]| {
            counts.into_iter().fold(1, |all: u64, count| all.saturating_mul(u64::from(count)))
        };
        let mids = self.mids_per_pod();
        let leaf_links =
            product([self.pods(), self.leaves_per_pod(), mids, self.leaf_bundle.members]);
        let core_links = product([self.pods(), self.cores(), self.agg_bundle.members, 1]);
        let hosts = product([self.pods(), self.leaves_per_pod(), self.hosts_per_leaf, 1]);
        hosts.saturating_add(leaf_links).saturating_add(core_links)
    }
    /// The lowest rate of any link.
    pub fn slowest(&self) -> Rate {
        let edge = self.host_link.rate.min(self.leaf_bundle.link.rate);
        if self.cores() > 0 { edge.min(self.agg_bundle.link.rate) } else { edge }
    }
}

/// What is wrong with a link without delay.
pub(crate) const NO_DELAY: &str =
    "a link without delay would let events at two ends happen at one instant: use at least 1ps";
/// A packet names its destination in 24 bits.
const MAX_HOSTS: u64 = 1 << 24;
/// Ports, two for each link, have 32-bit ids and some tens of bytes each.
pub(crate) const MAX_LINKS: u64 = 1 << 27;

/// Why a fabric cannot be built or cannot express something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricError(pub String);

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for FabricError {}
