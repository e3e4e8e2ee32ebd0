//! What a scheme decides per packet: which entropy value or path it takes, given what the
//! acknowledgements said.
//!
//! One [`Steering`] per flow (queue pair), made of the scheme's own [`Steer`]. Single-path
//! schemes use [`Fixed`]: the route that the flow was given stands until someone re-routes the
//! flow.

pub use crate::scheme::Steering;

use crate::plan::Route;
use crate::scheme::BalanceConfig;
use weft_units::Time;

/// When a packet leaves, and what is out then.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When.
    pub now: Time,
    /// Packets of the flow that were sent before and are neither acknowledged nor taken for
    /// lost. Zero: the flow was idle, or begins.
    pub in_flight: u32,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// When it came.
    pub now: Time,
    /// Under which entropy value its packet was sent.
    pub entropy: u16,
    /// Whether its packet met congestion (ECN).
    pub marked: bool,
    /// Whether its packet lost its payload to a full queue, which counts as marked too.
    pub trimmed: bool,
    /// Whether the acknowledgement itself met congestion on its way back.
    pub answer_marked: bool,
    /// How many packets the window now lets out; zero if its packet was trimmed.
    pub room: u32,
    /// How long ago its packet left; zero unless the scheme asks ([`Steer::TIMED`]).
    pub rtt: Time,
}

/// Packets that nothing has answered for too long.
#[derive(Clone, Copy, Debug)]
pub struct TimeOut {
    /// When they were taken for lost.
    pub now: Time,
    /// How long, at least, they had been out. Which they were is not told.
    pub after: Time,
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

    /// The route of the next data packet of a flow whose own route is `base`. Called once for
    /// every packet put on the wire, resent ones included.
    fn route(&mut self, base: Route, at: Departure) -> Route;

    /// An acknowledgement returned.
    #[inline(always)]
    fn on_ack(&mut self, feedback: Feedback) {
        let _ = feedback;
    }

    /// A packet of the flow timed out, or several did together.
    #[inline(always)]
    fn on_time_out(&mut self, time_out: TimeOut) {
        let _ = time_out;
    }
}

/// The most bytes of a flow's state, boxes apart.
pub const MAX_STATE: usize = 24;

/// What the state of a flow is made from, beside its scheme.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext {
    /// A stable id of the flow, the same in every run under one seed: the entity of its
    /// random draws.
    pub flow: u64,
    /// All randomness follows from it.
    pub seed: u64,
    /// Packets that may be sent before feedback can be expected.
    pub first_window: u32,
}

impl Steering {
    /// The state of a new flow. `flow_key` is a stable id of the flow, the same in every run
    /// under one `seed`; `mtu` is the payload of a full packet, in bytes.
    pub fn new(config: &BalanceConfig, flow_key: u64, seed: u64, mtu: u32) -> Steering {
        let window = config.first_window.div_ceil(u64::from(mtu.max(1)));
        let first_window = u32::try_from(window).unwrap_or(u32::MAX);
        Steering::of(&config.scheme, &FlowContext { flow: flow_key, seed, first_window })
    }
}

/// Every packet takes the flow's route.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Steer for Fixed {
    const FIXED: bool = true;

    #[inline(always)]
    fn route(&mut self, base: Route, _: Departure) -> Route {
        base
    }
}

impl<S: Steer> Steer for Box<S> {
    const FIXED: bool = S::FIXED;
    const TIMED: bool = S::TIMED;

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
}
