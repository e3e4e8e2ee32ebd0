//! What failures have left of each link, as somebody knows it.

use crate::Fabric;
use weft_units::{IdVec, PortId};

/// The share of its line rate that each link has left. [`crate::Weights`] and
/// [`crate::PathView`] are made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkShares {
    shares: IdVec<PortId, u64>,
    whole: bool,
}

impl LinkShares {
    /// All of a link.
    pub const WHOLE: u64 = 1 << 32;

    /// If `rate` is what is left of the rate of each port in bits per second, zero where it is
    /// known to be dead.
    pub fn new(fabric: &Fabric, rate: impl Fn(PortId) -> u64) -> LinkShares {
        let shares: IdVec<PortId, u64> = (fabric.ports().enumerate())
            .map(|(id, port)| {
                let (rate, line) = (rate(id), port.rate.as_bps());
                let share = u128::from(rate) * u128::from(LinkShares::WHOLE) / u128::from(line);
                // However little is left, it is a way.
                (share as u64).clamp(u64::from(rate > 0), LinkShares::WHOLE)
            })
            .collect();
        let whole = shares.iter().all(|share| *share == LinkShares::WHOLE);
        LinkShares { shares, whole }
    }

    /// What is left of the link behind `port`, of [`LinkShares::WHOLE`].
    #[inline]
    pub fn of(&self, port: PortId) -> u64 {
        self.shares[port]
    }

    /// Whether nothing is left of a link in either direction: who takes a path has answers come back
    /// by the same links.
    #[inline]
    pub fn is_dead(&self, fabric: &Fabric, port: PortId) -> bool {
        self.of(port) == 0 || self.of(fabric.ports()[port].reverse) == 0
    }

    /// Whether nothing is missing anywhere.
    pub fn are_whole(&self) -> bool {
        self.whole
    }
}
