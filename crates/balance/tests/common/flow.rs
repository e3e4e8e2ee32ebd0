//! One flow under a scheme, with its clock.

use weft_balance::plan::Route;
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_balance::steer::{Departure, Feedback, Steering};
use weft_units::Time;

/// What a test sees of a flow.
#[derive(Clone)]
pub(crate) struct Flow {
    pub(crate) steering: Steering,
    pub(crate) now: Time,
    pub(crate) in_flight: u32,
}

impl Flow {
    pub(crate) fn new(scheme: &str, options: &[(&str, &str)]) -> Flow {
        let scheme = SchemeConfig::read(scheme, options).unwrap();
        let (start_jitter, first_window) = (Time::ZERO, 1);
        let config = BalanceConfig { scheme, start_jitter, random_position: false, first_window };
        Flow { steering: Steering::new(&config, 1, 1, 1000), now: Time::us(1), in_flight: 0 }
    }
    /// What the next packet carries.
    pub(crate) fn send(&mut self) -> u16 {
        let at = Departure { now: self.now, in_flight: self.in_flight };
        match self.steering.route(Route::Hashed(7), at) {
            Route::Hashed(entropy) => entropy,
            Route::Pinned(path) => panic!("{path:?}"),
        }
    }
    /// What the next packets carry.
    pub(crate) fn sends(&mut self, count: usize) -> Vec<u16> {
        (0..count).map(|_| self.send()).collect()
    }
    /// An acknowledgement that opens no window.
    pub(crate) fn feedback(&self, entropy: u16, marked: bool) -> Feedback {
        let (now, rtt) = (self.now, Time::ZERO);
        Feedback { now, entropy, marked, trimmed: false, answer_marked: false, room: 0, rtt }
    }
}
