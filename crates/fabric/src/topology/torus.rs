//! A torus, or a mesh without the links that wrap around: a switch with hosts at each point of a grid, linked to its
//! neighbours in every dimension.
//!
//! Packets cross the dimensions in their order (dimension-order routing), so that there is one path, or two where a
//! ring of an even length is crossed to its far side.

use crate::{Cable, FabricError, Grid, Link, Wiring};
use weft_units::Time;

/// A grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    /// The length of each dimension.
    pub sizes: Vec<u32>,
    /// Whether the ends of each are linked.
    pub wraps: bool,
    /// Hosts of a switch.
    pub hosts: u32,
    /// Of hosts.
    pub host_link: Link,
    /// Between switches.
    pub link: Link,
}

impl Torus {
    /// How many switches.
    pub fn switches(&self) -> u64 {
        self.sizes.iter().fold(1, |all, size| all.saturating_mul(u64::from(*size)))
    }
    /// How many links there are at most, of hosts too.
    pub fn links(&self) -> u64 {
        let each = self.sizes.len() as u64 + u64::from(self.hosts);
        self.switches().saturating_mul(each)
    }

    /// All of it, without latency in boxes. Switches are called by their coordinates: `switch-0-3-1`.
    ///
    /// # Errors
    /// If there is no dimension, or one of no length.
    pub fn wiring(&self) -> Result<Wiring, FabricError> {
        if self.sizes.is_empty() || self.sizes.contains(&0) {
            return Err(FabricError("every dimension needs a length of at least 1".into()));
        }
        let switches = self.switches() as u32;
        let name = |id: u32| {
            let place = self.coordinates(id).iter().map(u32::to_string).collect::<Vec<_>>();
            format!("switch-{}", place.join("-"))
        };
        let hosts = (0..switches).flat_map(|switch| (0..self.hosts).map(move |_| switch));
        let mut cables = Vec::new();
        for id in 0..switches {
            let mut stride = 1;
            for (dimension, (size, place)) in (0..).zip(self.sizes.iter().zip(self.coordinates(id)))
            {
                let next = if place + 1 < *size { Some(id + stride) } else { None };
                // A ring of two has one link.
                let around =
                    (self.wraps && place + 1 == *size && *size > 2).then(|| id - place * stride);
                if let Some(next) = next.or(around) {
                    cables.push(Cable { ends: [id, next], link: self.link, cost: 1, dimension });
                }
                stride *= size;
            }
        }
        Ok(Wiring {
            hosts: hosts.collect(),
            homes: Vec::new(),
            host_link: self.host_link,
            cables,
            names: (0..switches).map(name).collect(),
            groups: vec![0; switches as usize],
            grid: Some(Grid { sizes: self.sizes.clone(), wraps: self.wraps }),
            switch_latency: Time::ZERO,
            nic_latency: Time::ZERO,
        })
    }

    /// Where a switch stands in each dimension, the first one's neighbours being numbered side by side.
    fn coordinates(&self, mut id: u32) -> Vec<u32> {
        let place = |size: &u32| {
            let place = id % size;
            id /= size;
            place
        };
        self.sizes.iter().map(place).collect()
    }
}
