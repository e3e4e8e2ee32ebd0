//! What a scheme decides per packet: which entropy value it carries, given what the
//! acknowledgements said.
//!
//! One [`Steering`] per flow (queue pair). Single-path schemes are [`Steering::Fixed`]: the
//! route that the flow was given stands until someone re-routes the flow.

use crate::plan::Route;
use crate::reps::{Reps, StickyReps};
use crate::scheme::{BalanceConfig, SchemeConfig};
use crate::spray::{CounterSpray, RandomSpray};

/// The per-packet state of one flow, at most 32 bytes: larger states are boxed.
#[derive(Clone, Debug)]
pub enum Steering {
    /// Every packet takes the flow's route (ECMP, Ethereal).
    Fixed,
    /// See [`RandomSpray`].
    Random(RandomSpray),
    /// See [`CounterSpray`].
    Counter(CounterSpray),
    /// See [`Reps`].
    Reps(Box<Reps>),
    /// See [`StickyReps`].
    StickyReps(Box<StickyReps>),
}

impl Steering {
    /// The state of a new flow. `flow_key` is a stable id of the flow, the same in every run
    /// under one `seed`; `mtu` is the payload of a full packet, in bytes.
    pub fn new(config: &BalanceConfig, flow_key: u64, seed: u64, mtu: u32) -> Steering {
        let window = config.first_window.div_ceil(u64::from(mtu.max(1)));
        let window = u32::try_from(window).unwrap_or(u32::MAX);
        match config.scheme {
            SchemeConfig::Ecmp | SchemeConfig::Ethereal(_) => Steering::Fixed,
            SchemeConfig::Spray => Steering::Random(RandomSpray::new(flow_key, seed)),
            SchemeConfig::SprayCounter { entropies } => {
                Steering::Counter(CounterSpray::new(entropies, flow_key, seed))
            }
            SchemeConfig::Reps { entropies } => {
                Steering::Reps(Box::new(Reps::new(entropies, window, flow_key, seed)))
            }
            SchemeConfig::RepsSticky { entropies } => {
                Steering::StickyReps(Box::new(StickyReps::new(entropies, window, flow_key, seed)))
            }
        }
    }

    /// Whether all packets take the flow's route, so that the other calls can be left out.
    #[inline(always)]
    pub fn is_fixed(&self) -> bool {
        matches!(self, Steering::Fixed)
    }

    /// The route of the next data packet of a flow whose own route is `base`. Call it once
    /// for every packet put on the wire, resent ones included.
    #[inline]
    pub fn route(&mut self, base: Route) -> Route {
        match self {
            Steering::Fixed => base,
            Steering::Random(spray) => Route::Hashed(spray.next_entropy()),
            Steering::Counter(spray) => Route::Hashed(spray.next_entropy()),
            Steering::Reps(reps) => Route::Hashed(reps.next_entropy()),
            Steering::StickyReps(reps) => Route::Hashed(reps.next_entropy()),
        }
    }

    /// An acknowledgement returned for a packet that was sent under `entropy`; `marked`: it
    /// met congestion (ECN).
    #[inline]
    pub fn on_ack(&mut self, entropy: u16, marked: bool) {
        match self {
            Steering::Fixed | Steering::Random(_) | Steering::Counter(_) => {}
            Steering::Reps(reps) => reps.on_ack(entropy, marked),
            Steering::StickyReps(reps) => reps.on_ack(entropy, marked),
        }
    }

    /// A packet of the flow timed out.
    pub fn on_time_out(&mut self) {
        match self {
            // REPS of 2024 knows no loss: the lost entropy simply never returns to the cache.
            Steering::Fixed | Steering::Random(_) | Steering::Counter(_) | Steering::Reps(_) => {}
            Steering::StickyReps(reps) => reps.on_time_out(),
        }
    }
}
