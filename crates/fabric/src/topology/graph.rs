//! Any network: which switch each host is at, and which switches are linked.

use crate::{Cable, FabricError, Link, Wiring};
use weft_units::Time;

/// A network by its links. Switches have any numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The switch of each host. Hosts of a switch stand side by side.
    pub host_switches: Vec<u32>,
    /// Of hosts.
    pub host_link: Link,
    /// Links between switches, any number between two of them.
    pub links: Vec<(u32, u32, Link)>,
}

impl Graph {
    /// Its switches in the order in which they are numbered: those with hosts, in the order of these, then all
    /// others.
    ///
    /// # Errors
    /// If hosts of a switch are apart.
    pub fn switches(&self) -> Result<Vec<u32>, FabricError> {
        let mut switches = self.host_switches.clone();
        switches.dedup();
        let mut sorted = switches.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(FabricError(format!(
                "hosts of switch {} are apart from each other; list them side by side",
                twice[0]
            )));
        }
        let mut others: Vec<u32> = self.links.iter().flat_map(|link| [link.0, link.1]).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|switch| sorted.binary_search(switch).is_err());
        switches.extend(others);
        Ok(switches)
    }

    /// All of it, without latency in boxes. Switches are called by their numbers, `switch-7`, and all are in one group;
    /// those with hosts come first, in the order of their hosts.
    ///
    /// # Errors
    /// If hosts of a switch are apart, or a switch is linked to itself.
    pub fn wiring(&self) -> Result<Wiring, FabricError> {
        let switches = self.switches()?;
        let mut places: Vec<(u32, u32)> = switches.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let place = |switch: u32| {
            let at = places.binary_search_by_key(&switch, |one| one.0);
            places[at.expect("all switches are there")].1
        };
        let cable = |&(a, b, link): &(u32, u32, Link)| match a == b {
            true => Err(FabricError(format!("switch {a} is linked to itself; remove the link"))),
            false => Ok(Cable { ends: [place(a), place(b)], link, cost: 1, dimension: 0 }),
        };
        Ok(Wiring {
            hosts: self.host_switches.iter().map(|switch| place(*switch)).collect(),
            host_link: self.host_link,
            cables: self.links.iter().map(cable).collect::<Result<_, _>>()?,
            groups: vec![0; switches.len()],
            names: switches.iter().map(|switch| format!("switch-{switch}")).collect(),
            grid: None,
            switch_latency: Time::ZERO,
            nic_latency: Time::ZERO,
        })
    }
}
