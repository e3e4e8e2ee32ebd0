//! What a scheme decides per packet: which entropy value or path it takes, given what the
//! acknowledgements said.
//!
//! One [`crate::Steering`] per flow (queue pair), made of the scheme's own [`Steer`]. Single-path
//! schemes use [`Fixed`]: the route that the flow was given stands until someone re-routes the
//! flow.

use crate::enforce::{Enforce, Hashing, PathRoutes};
use crate::plan::Route;
use std::ops::RangeInclusive;
use weft_fabric::Fabric;
use weft_units::{HostId, Time};

/// When a packet leaves, and what is out then.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The time at which it leaves.
    pub now: Time,
    /// Packets of the flow that were sent before and are neither acknowledged nor taken for
    /// lost. Zero: the flow was idle, or begins.
    pub in_flight: u32,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// The time at which it came.
    pub now: Time,
    /// Under which entropy value its packet was sent; of one that was pinned by path id, the number of
    /// that id.
    pub entropy: u16,
    /// Whether its packet met congestion (ECN).
    pub marked: bool,
    /// Whether its packet lost its payload to a full queue, which counts as marked too.
    pub trimmed: bool,
    /// Whether that happened at the switch of the receiver's link, which all paths share.
    pub last_hop: bool,
    /// Whether the acknowledgement itself met congestion on its way back.
    pub answer_marked: bool,
    /// How many packets the window now lets out; zero if its packet was trimmed.
    pub room: u32,
    /// How long ago its packet left; zero unless the scheme asks ([`Steer::TIMED`]).
    pub rtt: Time,
    /// Whether that is longer than congestion control aims at; never of one that aims at no delay, or
    /// where the scheme does not ask for `rtt`.
    pub late: bool,
}

impl Feedback {
    /// Of an acknowledgement that says nothing but that a packet under `entropy` has arrived.
    #[inline(always)]
    pub const fn good(now: Time, entropy: u16) -> Feedback {
        Feedback {
            now,
            entropy,
            marked: false,
            trimmed: false,
            last_hop: false,
            answer_marked: false,
            room: 0,
            rtt: Time::ZERO,
            late: false,
        }
    }
    /// Whether it speaks for the path: its packet met no congestion, or none but at the last hop.
    #[inline(always)]
    pub fn is_good(&self) -> bool {
        !self.marked || self.trimmed && self.last_hop
    }
}

/// Packets that nothing has answered for too long.
#[derive(Clone, Copy, Debug)]
pub struct TimeOut {
    /// When they were taken for lost.
    pub now: Time,
    /// How long, at least, they had been out. Which they were is not told.
    pub after: Time,
}

impl TimeOut {
    /// Whether packets may be among them that left since then. If not, it says nothing of a path that was taken then: what was
    /// lost together on the one before times out packet by packet.
    pub fn reaches(&self, since: Time) -> bool {
        since.saturating_add(self.after) <= self.now
    }
}

/// The part of a scheme at one flow: its per-packet state.
///
/// A state has at most [`MAX_STATE`] bytes (the build fails otherwise), since every flow
/// carries the largest of any scheme: put larger ones into a [`Box`].
pub trait Steer {
    /// Whether all packets take the flow's route, so that the calls can be left out.
    const FIXED: bool = false;
    /// Whether it wants round-trip times.
    const TIMED: bool = false;
    /// Whether it wants to hear of acknowledgements: [`Steer::on_ack`] is called.
    const HEARS: bool = true;

    /// Whether it wants to know under which entropy value a packet left that was lost.
    const NAMES_LOSSES: bool = false;

    /// The entropy values that all packets take, each as often, until something is learnt of the
    /// network; `None`: there are no such.
    fn entropies(&self) -> Option<RangeInclusive<u16>> {
        None
    }

    /// The route of the next data packet of a flow whose own route is `base`. Called once for
    /// every packet put on the wire, retransmissions included.
    fn route(&mut self, base: Route, at: Departure) -> Route;

    /// An acknowledgement returned.
    #[inline(always)]
    fn on_ack(&mut self, feedback: Feedback) {
        let _ = feedback;
    }

    /// A packet that left under `entropy` timed out, of a scheme that asks ([`Steer::NAMES_LOSSES`]).
    fn on_lost(&mut self, now: Time, entropy: u16) {
        let _ = (now, entropy);
    }

    /// A packet of the flow timed out, or several did together.
    #[inline(always)]
    fn on_time_out(&mut self, time_out: TimeOut) {
        let _ = time_out;
    }

    /// When it wants [`Steer::probe`] to be called, of a scheme that asks after losses ([`Steer::NAMES_LOSSES`]), if that is
    /// sooner than it said before.
    fn probe_at(&mut self) -> Option<Time> {
        None
    }
    /// It is called as it asked: appends the routes of probes, packets without data, that are to leave now; says
    /// when to call again.
    fn probe(&mut self, now: Time, out: &mut Vec<Route>) -> Option<Time> {
        let _ = (now, out);
        None
    }
    /// A probe that left under `entropy` was answered.
    fn on_probe(&mut self, entropy: u16) {
        let _ = entropy;
    }
}

/// The most bytes of a flow's state, boxes apart: the sending half of a queue pair in the simulator has
/// room for so many.
pub const MAX_STATE: usize = 16;

/// What the state of a flow is made from, beside its scheme.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext<'a> {
    /// A stable id of the flow, the same in every run under one seed: the entity of its
    /// random draws.
    pub flow: u64,
    /// All randomness follows from it.
    pub seed: u64,
    /// Payload of a full packet, in bytes.
    pub mtu: u32,
    /// Bytes that may be sent before feedback can be expected.
    pub bdp: u64,
    /// Bytes on the wire of a full data packet, and of an acknowledgement.
    pub wire_bytes: (u32, u32),
    /// Whether switches trim packets that find no room, so that nothing else is lost but to failures.
    pub trims: bool,
    /// Whether its host can send probes ([`Steer::probe`]).
    pub probes: bool,
    /// The network as its host knows it.
    pub fabric: &'a Fabric,
    /// Who sends, and to whom.
    pub hosts: (HostId, HostId),
    /// What switches make of addresses and ports, if hosts know.
    pub hashing: Option<Hashing>,
}

impl FlowContext<'_> {
    /// [`FlowContext::bdp`] in full packets, at least one.
    pub fn first_window(&self) -> u32 {
        let window = self.bdp.div_ceil(u64::from(self.mtu.max(1)));
        u32::try_from(window).unwrap_or(u32::MAX)
    }
    /// What a full packet and its acknowledgement take where nobody else is.
    pub fn base_rtt(&self) -> Time {
        let ((host, dst), (data, ack)) = (self.hosts, self.wire_bytes);
        let one_way = |from, to, bytes| self.fabric.one_way(from, to, u64::from(bytes));
        one_way(host, dst, data) + one_way(dst, host, ack)
    }
    /// A route by every path that can be named between the two hosts, in the order of
    /// [`Fabric::path_set`], for packets whose paths `enforce` makes them take.
    ///
    /// # Panics
    /// If there are too few ports for that ([`Enforce::fits`]).
    pub fn routes(&self, enforce: Enforce) -> Box<[Route]> {
        let (host, dst) = self.hosts;
        let mut routes = PathRoutes::new(enforce, host, self.hashing);
        let paths = self.fabric.path_set(host, dst);
        (0..paths.len()).map(|index| routes.route(self.fabric, dst, paths.get(index))).collect()
    }
}

/// Every packet takes the flow's route.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Steer for Fixed {
    const FIXED: bool = true;
    const HEARS: bool = false;

    #[inline(always)]
    fn route(&mut self, base: Route, _: Departure) -> Route {
        base
    }
}

impl<S: Steer> Steer for Box<S> {
    const FIXED: bool = S::FIXED;
    const TIMED: bool = S::TIMED;
    const HEARS: bool = S::HEARS;
    const NAMES_LOSSES: bool = S::NAMES_LOSSES;

    fn on_lost(&mut self, now: Time, entropy: u16) {
        S::on_lost(self, now, entropy);
    }
    fn entropies(&self) -> Option<RangeInclusive<u16>> {
        (**self).entropies()
    }
    #[inline(always)]
    fn route(&mut self, base: Route, at: Departure) -> Route {
        S::route(self, base, at)
    }
    #[inline(always)]
    fn on_ack(&mut self, feedback: Feedback) {
        S::on_ack(self, feedback);
    }
    #[inline(always)]
    fn on_time_out(&mut self, time_out: TimeOut) {
        S::on_time_out(self, time_out);
    }
    fn probe_at(&mut self) -> Option<Time> {
        S::probe_at(self)
    }
    fn probe(&mut self, now: Time, out: &mut Vec<Route>) -> Option<Time> {
        S::probe(self, now, out)
    }
    fn on_probe(&mut self, entropy: u16) {
        S::on_probe(self, entropy);
    }
}
