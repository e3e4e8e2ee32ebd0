//! What a scheme keeps in switches beyond the choice among next hops: leaves that tag packets, hold
//! some back and write to each other.
//!
//! Most schemes in switches choose a hop and forget ([`crate::forward`]). Those here have a state
//! in the leaf of the sender and one in the leaf of the receiver, which speak through tags on
//! packets between leaves and through control packets, small packets from leaf to leaf, or from spine to leaf. Whoever drives them
//! (the simulator) carries tags and control packets, hands every packet between leaves to the state of the
//! switch, does what it says, and calls when a deadline has come.
//!
//! | module | what it holds |
//! |---|---|
//! | [`conweave`] | [`conweave::Leaf`]: paths by epochs, reordering at the destination's leaf |
//! | [`themis`] | [`themis::Leaf`]: spraying, and NACKs of what is only late stopped |
//! | [`glb`] | [`glb::Switch`]: flowlets by quantised loads, which spines flood |
//! | [`conga`] | [`conga::Switch`]: flowlets by the congestion of whole paths |
//! | `table` | flows that are forgotten when they have been silent |
//!
//! Invariant: traffic within a rack never comes here. What a state does is a function of its
//! options, the seed and the calls made to it.

pub mod conga;
pub mod conweave;
pub mod glb;
mod table;
pub mod themis;

use weft_fabric::{Fabric, PathId};
use weft_units::{HostId, SwitchId, Time};

/// A flow, as switches tell it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId {
    /// Stands for the rest of its addresses: hardly ever the same for two flows of two hosts.
    pub key: u32,
    /// Whether it is made of acknowledgements.
    pub control: bool,
    /// The host that sends.
    pub src: HostId,
    /// The host that receives.
    pub dst: HostId,
}

/// The whole paths from a leaf to the leaf of some host.
pub trait Ways {
    /// How many are left, by what routing knows. Zero: there is no way.
    fn count(&self) -> u32;
    /// The `index`-th of those.
    fn get(&self, index: u32) -> PathId;
    /// Whether a path is among them.
    fn has(&self, path: PathId) -> bool;
}

/// What the state of a switch is made from, beside its scheme.
#[derive(Clone, Copy, Debug)]
pub struct TorContext<'a> {
    /// Which switch: the entity of its random draws.
    pub switch: SwitchId,
    /// What it is a part of.
    pub fabric: &'a Fabric,
    /// All randomness follows from it.
    pub seed: u64,
    /// Bytes on the wire of a full data packet.
    pub packet: u32,
}

impl TorContext<'_> {
    /// Whether the switch is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.switch.0 < self.fabric.leaves()
    }
    /// What a full packet to another leaf and a control packet back take where nobody else is: for each
    /// leaf, zero for the own one and for those of other rails that never meet this one.
    fn round_trips(&self) -> Vec<Time> {
        let first = |leaf: u32| self.fabric.first_host(leaf);
        let own = self.switch.0;
        let one_way = |from: u32, to: u32, bytes: u32| {
            let path = self.fabric.sample_path(first(from), first(to));
            path[1..path.len() - 1].iter().fold(Time::ZERO, |sum, port| {
                let port = &self.fabric.ports()[*port];
                sum + port.rate.serialize(u64::from(bytes)) + port.delay
            })
        };
        let pod = |leaf: u32| self.fabric.pod_of(first(leaf));
        // All leaves of the own pod are equally far, and all others.
        let mut known = [None; 2];
        let mut round =
            |leaf: u32| match leaf == own || !self.fabric.reaches(first(own), first(leaf)) {
                true => Time::ZERO,
                false => *known[usize::from(pod(leaf) == pod(own))].get_or_insert_with(|| {
                    one_way(own, leaf, self.packet) + one_way(leaf, own, CONTROL_BYTES)
                }),
            };
        (0..self.fabric.leaves()).map(&mut round).collect()
    }
}

/// Bytes on the wire of a control packet.
pub const CONTROL_BYTES: u32 = 64;

/// The state of one switch, for items `T` that a leaf holds back.
#[derive(Clone, Debug)]
pub enum Tor<T> {
    /// A leaf under ConWeave.
    ConWeave(Box<conweave::Leaf<T>>),
    /// Any switch under CONGA.
    Conga(Box<conga::Switch>),
    /// A leaf under Themis.
    Themis(Box<themis::Leaf>),
    /// Any switch under global load balancing.
    Glb(Box<glb::Switch>),
}

/// What a control packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Under ConWeave, from leaf to leaf.
    ConWeave(conweave::ControlPacket),
    /// Under global load balancing, from a spine to the leaf above this host.
    Glb(HostId, glb::Qualities),
}

/// What a packet between leaves carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Under ConWeave.
    ConWeave(conweave::Tag),
    /// Under CONGA.
    Conga(conga::Tag),
    /// Under Themis.
    Themis(themis::Tag),
}

/// What a run under such a scheme took in switches: of one switch, or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorCounts {
    /// Most flows that one leaf knew at once: those of its senders, and those of its receivers.
    pub flows: u64,
    /// How often a flow that was known went on by another path.
    pub reroutes: u64,
    /// Control packets that leaves sent.
    pub control_packets: u64,
    /// Most flows that one leaf held packets of at once: reordering queues.
    pub queues: u64,
    /// Most bytes that one leaf held at once.
    pub held_bytes: u64,
    /// Packets that were held.
    pub held: u64,
    /// For how long, all together.
    pub held_for: Time,
    /// For how long the one that was held longest.
    pub longest: Time,
    /// Queues that were let go because their time was over.
    pub flushes: u64,
    /// Of those, how many too early: something that was waited for came later.
    pub premature: u64,
    /// NACKs that went no further, since the packet might still come.
    pub blocked_nacks: u64,
    /// Of those, how many were sent after all.
    pub late_nacks: u64,
}

impl TorCounts {
    /// Adds those of another switch.
    pub fn add(&mut self, other: &TorCounts) {
        self.flows = self.flows.max(other.flows);
        self.reroutes += other.reroutes;
        self.control_packets += other.control_packets;
        self.queues = self.queues.max(other.queues);
        self.held_bytes = self.held_bytes.max(other.held_bytes);
        self.held += other.held;
        self.held_for += other.held_for;
        self.longest = self.longest.max(other.longest);
        self.flushes += other.flushes;
        self.premature += other.premature;
        self.blocked_nacks += other.blocked_nacks;
        self.late_nacks += other.late_nacks;
    }
}

impl<T> Tor<T> {
    /// What this switch took so far.
    pub fn counts(&self) -> TorCounts {
        match self {
            Tor::ConWeave(leaf) => leaf.counts(),
            Tor::Conga(switch) => switch.counts(),
            Tor::Themis(leaf) => leaf.counts(),
            Tor::Glb(switch) => switch.counts(),
        }
    }
}
