//! What a scheme decides in a switch: which of several equal next hops a packet takes.
//!
//! One [`crate::Switching`] per switch, made of the scheme's own [`Forward`]. Most schemes leave
//! switches as they are ([`Hashed`]: the choice of [`crate::hash`] stands). The others see the
//! queues of the hops through [`Hops`] and may keep state, by destination, by set of hops or by
//! flow ([`flows`]).
//!
//! All packets that follow no path id come here, acknowledgements too. Invariant: a choice is
//! below the number of hops, also when links that fail or recover change that number between
//! two packets.

pub mod flows;
pub mod loads;
pub mod quality;

use weft_fabric::Fabric;
use weft_units::{HostId, PortId, SwitchId, Time};

/// The first hop of a path, as the switch at its start sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStart {
    /// Bytes in the queue there.
    pub queued: u64,
    /// Links that are left, this one included.
    pub links: u32,
}

impl PathStart {
    /// What it costs to wait there if every link of the path is as full.
    pub fn cost(self) -> u64 {
        self.queued.saturating_mul(u64::from(self.links))
    }
}

/// A packet at a switch that has several equal next hops.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    /// When. Never earlier than that of the packet before.
    pub now: Time,
    /// The same for all packets of a flow, and hardly ever for two flows. The acknowledgements
    /// of a flow are a flow of their own.
    pub flow: u64,
    /// The receiving host.
    pub dst: HostId,
    /// Whether it is an acknowledgement of either kind.
    pub control: bool,
    /// Its entropy value (UDP source port); an acknowledgement echoes that of its packet.
    pub entropy: u16,
    /// What the switch's hash says, below the number of hops.
    pub hashed: u32,
    /// That hash ([`crate::hash::bits`]).
    pub hash: u32,
    /// Its bytes on the wire.
    pub bytes: u32,
}

/// The equal next hops of a packet, numbered from zero.
pub trait Hops {
    /// How many. Never zero.
    fn count(&self) -> u32;
    /// Bytes in the queue of `hop`, the packet on the wire included.
    fn queued(&self, hop: u32) -> u64;
    /// The port behind `hop`.
    fn port(&self, hop: u32) -> PortId;
    /// A number for this set of hops, unique within the switch: another one, or another
    /// [`Hops::count`], once a hop has failed.
    fn group(&self) -> u32;
    /// How many there are while none has failed.
    fn places(&self) -> u32;
    /// Which of these `hop` is: zero to [`Hops::places`], ascending.
    fn place(&self, hop: u32) -> u32;
    /// How much of the traffic each hop should carry, by what routing knows, in proportion to
    /// the others: none is zero, and all together are at most 2^32. `None`: all the same, and
    /// always so unless the scheme asks ([`crate::scheme::SchemeInfo::weighted`]).
    fn weights(&self) -> Option<&[u32]>;
}

/// The part of a scheme in one switch.
pub trait Forward {
    /// Whether every packet goes where the hash says, so that the calls can be left out.
    const HASHED: bool = false;

    /// Whether that holds for this state, where options of its scheme decide.
    fn is_hashed(&self) -> bool {
        Self::HASHED
    }

    /// The hop of `packet`, below `hops.count()`. Called once for every packet that has
    /// several hops; with a single one it answers zero and nothing else changes.
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32;
}

/// What a switch's state is made from, beside its scheme.
#[derive(Clone, Copy, Debug)]
pub struct SwitchContext<'a> {
    /// Which: the entity of its random draws.
    pub switch: SwitchId,
    /// What it is a part of.
    pub fabric: &'a Fabric,
    /// All randomness follows from it.
    pub seed: u64,
    /// Bytes that the queue of one port may hold.
    pub buffer: u64,
}

/// Every packet goes where the hash says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed;

impl Forward for Hashed {
    const HASHED: bool = true;

    #[inline(always)]
    fn choose<H: Hops>(&mut self, packet: &Passing, _: &H) -> u32 {
        packet.hashed
    }
}

impl<F: Forward> Forward for Box<F> {
    const HASHED: bool = F::HASHED;

    fn is_hashed(&self) -> bool {
        F::is_hashed(self)
    }
    #[inline(always)]
    fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
        F::choose(self, packet, hops)
    }
}
