//! Dragonfly (Kim et al., ISCA 2008) and dragonfly+ (Shpiner et al., HiPINEB 2017).
//!
//! Minimal paths cross one global link at most: between groups, local, global, local. Global links are wired
//! as in HTSIM: the links of a group stand in the order of their switches, and lead to the other groups in the
//! order of these, round after round.

use crate::{Cable, FabricError, Link, Wiring};
use weft_units::Time;

/// What a group consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Switches with hosts, each with a link to every other one: `a` of Kim et al.
    Routers(u32),
    /// Leaves with hosts, each with a link to every spine; global links are those of spines: dragonfly+.
    LeavesAndSpines(u32, u32),
}

/// Groups with links between each two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// How many groups.
    pub groups: u32,
    /// What each is.
    pub group: Group,
    /// Hosts of a router or leaf: `p`.
    pub hosts: u32,
    /// Global links of a router or spine: `h`.
    pub global_ports: u32,
    /// Of hosts.
    pub host_link: Link,
    /// Within a group.
    pub local: Link,
    /// Between groups.
    pub global: Link,
}

/// What a global link is longer than a local one: more than a path over two local ones may save.
const GLOBAL_COST: u32 = 3;

impl Dragonfly {
    /// Links between two groups.
    ///
    /// # Errors
    /// If the global links of a group cannot be shared equally by all other groups.
    pub fn links_between_groups(&self) -> Result<u32, FabricError> {
        let all = u64::from(self.with_global_links()) * u64::from(self.global_ports);
        let others = u64::from(self.groups) - 1;
        if others == 0 {
            return Ok(0);
        }
        if all < others || !all.is_multiple_of(others) {
            let what = format!(
                "a group has {all} global links, which {others} other groups cannot share equally; \
                 use groups = {}, or other global_ports",
                nearest_divisor(all, others) + 1
            );
            return Err(FabricError(what));
        }
        Ok((all / others) as u32)
    }

    /// Switches of a group that have global links.
    fn with_global_links(&self) -> u32 {
        match self.group {
            Group::Routers(routers) => routers,
            Group::LeavesAndSpines(_, spines) => spines,
        }
    }
    /// Switches of a group that have hosts.
    fn leaves(&self) -> u32 {
        match self.group {
            Group::Routers(routers) => routers,
            Group::LeavesAndSpines(leaves, _) => leaves,
        }
    }

    /// How many links there are, of hosts too.
    pub fn links(&self) -> u64 {
        let (groups, leaves) = (u64::from(self.groups), u64::from(self.leaves()));
        let local = match self.group {
            Group::Routers(routers) => u64::from(routers) * (u64::from(routers) - 1) / 2,
            Group::LeavesAndSpines(_, spines) => leaves.saturating_mul(u64::from(spines)),
        };
        let global =
            u64::from(self.with_global_links()).saturating_mul(u64::from(self.global_ports));
        let group = leaves.saturating_mul(u64::from(self.hosts)).saturating_add(local);
        groups.saturating_mul(group.saturating_add(global / 2))
    }

    /// All of it, without latency in boxes. Switches are called `group-1-router-0`, or `group-1-leaf-0` and
    /// `group-1-spine-0`.
    ///
    /// # Errors
    /// As [`Dragonfly::links_between_groups`].
    pub fn wiring(&self) -> Result<Wiring, FabricError> {
        let (leaves, between) = (self.leaves(), self.links_between_groups()?);
        let switches = |group: u32, of: &str, count: u32| {
            let name = format!("group-{group}-{of}");
            (0..count).map(move |place| (format!("{name}-{place}"), group)).collect::<Vec<_>>()
        };
        let tier = |of: &str, count| {
            (0..self.groups).flat_map(|group| switches(group, of, count)).collect::<Vec<_>>()
        };
        let all = match self.group {
            Group::Routers(routers) => tier("router", routers),
            Group::LeavesAndSpines(leaves, spines) => {
                [tier("leaf", leaves), tier("spine", spines)].concat()
            }
        };
        let (names, groups) = all.into_iter().unzip();
        let hosts = (0..self.groups * leaves).flat_map(|leaf| (0..self.hosts).map(move |_| leaf));
        let mut cables: Vec<Cable> =
            (0..self.groups).flat_map(|group| self.local_cables(group)).collect();
        for (low, high) in
            (0..self.groups).flat_map(|low| (low + 1..self.groups).map(move |high| (low, high)))
        {
            for round in 0..between {
                let ends = [self.gateway(low, high, round), self.gateway(high, low, round)];
                cables.push(Cable { ends, link: self.global, cost: GLOBAL_COST, dimension: 0 });
            }
        }
        Ok(Wiring {
            hosts: hosts.collect(),
            homes: Vec::new(),
            host_link: self.host_link,
            cables,
            names,
            groups,
            grid: None,
            switch_latency: Time::ZERO,
            nic_latency: Time::ZERO,
        })
    }

    fn local_cables(&self, group: u32) -> Vec<Cable> {
        let cable = |ends| Cable { ends, link: self.local, cost: 1, dimension: 0 };
        match self.group {
            Group::Routers(routers) => {
                let first = group * routers;
                let pairs = (0..routers).flat_map(|a| (a + 1..routers).map(move |b| [a, b]));
                pairs.map(|ends| cable(ends.map(|end| first + end))).collect()
            }
            Group::LeavesAndSpines(leaves, spines) => {
                let first = (group * leaves, self.groups * leaves + group * spines);
                let pairs =
                    (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, spine)));
                pairs.map(|(leaf, spine)| cable([first.0 + leaf, first.1 + spine])).collect()
            }
        }
    }

    /// The switch of `group` that has the link of a round to `other`.
    fn gateway(&self, group: u32, other: u32, round: u32) -> u32 {
        let turn = other - u32::from(other > group);
        let place = (round * (self.groups - 1) + turn) / self.global_ports;
        match self.group {
            Group::Routers(routers) => group * routers + place,
            Group::LeavesAndSpines(leaves, spines) => self.groups * leaves + group * spines + place,
        }
    }
}

fn nearest_divisor(of: u64, to: u64) -> u64 {
    let divides = |one: &u64| of.is_multiple_of(*one);
    (1..=of.min(1 << 16)).filter(divides).min_by_key(|one| one.abs_diff(to)).unwrap_or(1)
}
