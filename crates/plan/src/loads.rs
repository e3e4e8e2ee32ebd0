//! What links carry in a step, how long the busiest one takes, and how long it takes at least,
//! whoever plans.
//!
//! Payload only: headers add the same share to every link where packets are full.

use crate::network::PlannedFabric;
use crate::steps::Transfer;
use weft_capacity::{Bottleneck, Demands, carries};
use weft_fabric::Fabric;
use weft_units::{IdVec, PortId};

/// Payload by link, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads(pub IdVec<PortId, u64>);

/// The link that takes longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busiest {
    /// The port.
    pub port: PortId,
    /// What it carries, in bytes.
    pub bytes: u64,
    /// How long it takes over that, in seconds; infinite on a dead link.
    pub seconds: f64,
}

/// The least time that some link takes over a step (theorem 1's congestion of ideal spraying, on
/// any fabric).
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// In seconds; infinite where demands have no way.
    pub seconds: f64,
    /// A routing is known that takes no longer than this, in seconds, if messages may be split at
    /// will: how tight the bound is.
    pub reached: f64,
    /// The links that force the bound, with weights: the demands need more of them than they have.
    /// Nothing where nothing is sent.
    pub bottleneck: Option<Bottleneck>,
}

impl Loads {
    /// Nothing on any link.
    pub fn none(fabric: &Fabric) -> Loads {
        Loads(fabric.ports().iter().map(|_| 0).collect())
    }
    /// Adds a subflow of so many bytes.
    pub fn add(&mut self, ports: &[PortId], bytes: u64) {
        for port in ports {
            self.0[*port] += bytes;
        }
    }
    /// The link that takes longest, the first of equals; `None` where nothing is sent.
    pub fn busiest(&self, network: &PlannedFabric<'_>) -> Option<Busiest> {
        let loaded = self.0.enumerate().filter(|(_, bytes)| **bytes > 0);
        let all = loaded.map(|(port, bytes)| {
            let seconds = *bytes as f64 * 8.0 / network.capacities[port] as f64;
            Busiest { port, bytes: *bytes, seconds }
        });
        all.reduce(|most, one| if one.seconds > most.seconds { one } else { most })
    }
}

impl Bound {
    /// Of `messages`, sent side by side.
    pub fn of(network: &PlannedFabric<'_>, messages: &[Transfer]) -> Bound {
        let fabric = network.fabric;
        let mut demands = Demands::none(fabric);
        for one in messages {
            demands.add(fabric, one.src, one.dst, 8 * one.bytes);
        }
        // The demands of one second: how much of them fits is how many seconds they take.
        let verdict = carries(fabric, &network.capacities, &demands);
        Bound {
            seconds: verdict.limit.recip(),
            reached: verdict.factor.recip(),
            bottleneck: verdict.bottleneck,
        }
    }
}
