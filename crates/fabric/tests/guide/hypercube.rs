//! A hypercube: switches with numbers of so many bits, each linked to all whose number differs in one bit.
//!
//! Packets mend bits in ascending order (e-cube routing), so that there is one path.

use crate::{Cable, FabricError, Link, Wiring};
use weft_units::Time;

/// A hypercube with hosts at every switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercube {
    /// Bits of a switch's number, up to 12.
    pub dimensions: u32,
    /// Hosts of a switch.
    pub hosts: u32,
    /// Of hosts.
    pub host_link: Link,
    /// Between switches.
    pub link: Link,
}

impl Hypercube {
    /// All of it, without latency in boxes. Switches are called by their numbers: `switch-5`.
    ///
    /// # Errors
    /// If there are too many dimensions.
    pub fn wiring(&self) -> Result<Wiring, FabricError> {
        if self.dimensions > 12 {
            let what = format!("{} dimensions are too many; use 12 at most", self.dimensions);
            return Err(FabricError(what));
        }
        let switches = 1 << self.dimensions;
        let mut cables = Vec::new();
        for (low, dimension) in
            (0..switches).flat_map(|low| (0..self.dimensions).map(move |bit| (low, bit)))
        {
            let high = low | 1 << dimension;
            if high != low {
                cables.push(Cable { ends: [low, high], link: self.link, cost: 1, dimension });
            }
        }
        let hosts = (0..switches).flat_map(|switch| (0..self.hosts).map(move |_| switch));
        Ok(Wiring {
            hosts: hosts.collect(),
            homes: Vec::new(),
            host_link: self.host_link,
            cables,
            names: (0..switches).map(|switch| format!("switch-{switch}")).collect(),
            groups: vec![0; switches as usize],
            grid: None,
            switch_latency: Time::ZERO,
            nic_latency: Time::ZERO,
        })
    }
}
