//! One flow under a scheme, with its clock.

use weft_balance::Steering;
use weft_balance::plan::Route;
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_balance::steer::{Departure, Feedback, FlowContext};
use weft_fabric::{Clos, Fabric, Link};
use weft_units::{HostId, Rate, Time};

/// The steering of a flow from host 0 to host 2, below another leaf, under seed 1, with packets of 1000
/// bytes.
pub(crate) fn steering(config: &BalanceConfig, flow: u64) -> Steering {
    steering_at(config, flow, false)
}
/// The same, at a host that can send probes or not.
fn steering_at(config: &BalanceConfig, flow: u64, probes: bool) -> Steering {
    let link = Link { rate: Rate::gbps(100), delay: Time::ns(500) };
    let fabric = Fabric::build(&Clos::leaf_spine(2, 4, 2, link)).unwrap();
    let (hosts, bdp) = ((HostId(0), HostId(2)), config.bdp);
    let context = FlowContext {
        flow,
        seed: 1,
        mtu: 1000,
        bdp,
        wire_bytes: (1064, 64),
        trims: false,
        probes,
        fabric: &fabric,
        hosts,
        hashing: None,
    };
    Steering::new(config, &context)
}

/// What a test sees of a flow.
#[derive(Clone)]
pub(crate) struct Flow {
    pub(crate) steering: Steering,
    pub(crate) now: Time,
    pub(crate) in_flight: u32,
}

impl Flow {
    pub(crate) fn new(scheme: &str, options: &[(&str, &str)]) -> Flow {
        Flow::at(scheme, options, false)
    }
    /// Of a host that can send probes.
    pub(crate) fn able_to_probe(scheme: &str, options: &[(&str, &str)]) -> Flow {
        Flow::at(scheme, options, true)
    }
    fn at(scheme: &str, options: &[(&str, &str)], probes: bool) -> Flow {
        let scheme = SchemeConfig::read(scheme, options).unwrap();
        let start_jitter = Time::ZERO;
        let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 };
        Flow { steering: steering_at(&config, 1, probes), now: Time::us(1), in_flight: 0 }
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
        Feedback { marked, ..Feedback::good(self.now, entropy) }
    }
}
