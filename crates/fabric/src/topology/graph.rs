//! Any network: which switch each host is at, and which switches are linked.

use crate::{Cable, FabricError, Link, Wiring};
use weft_units::Time;

/// A network by its links. Switches have any numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The switch of each host. Hosts of a switch stand side by side.
    pub host_switches: Vec<u32>,
    /// Where NICs have several ports, the other switches of each host, as many of each; empty: NICs have one.
    pub other_switches: Vec<Vec<u32>>,
    /// Of each port of a host.
    pub host_link: Link,
    /// Links between switches, any number between two of them.
    pub links: Vec<(u32, u32, Link)>,
}

impl Graph {
    /// Its switches in the order in which they are numbered: the first ones of hosts, in the order of these,
    /// then other ones of hosts, then all others.
    ///
    /// # Errors
    /// If hosts of a switch are apart, or have one of their switches in common and not all.
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
        let homes = self.homes(&switches)?;
        for other in homes.into_iter().flatten() {
            sorted.push(other);
            switches.push(other);
        }
        sorted.sort_unstable();
        let mut others: Vec<u32> = self.links.iter().flat_map(|link| [link.0, link.1]).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|switch| sorted.binary_search(switch).is_err());
        switches.extend(others);
        Ok(switches)
    }

    /// The other switches of the hosts of each of `leaves`.
    fn homes(&self, leaves: &[u32]) -> Result<Vec<Vec<u32>>, FabricError> {
        if self.other_switches.is_empty() {
            return Ok(Vec::new());
        }
        let wrong = |what: String| Err(FabricError(what));
        if self.other_switches.len() != self.host_switches.len() {
            let (others, hosts) = (self.other_switches.len(), self.host_switches.len());
            return wrong(format!(
                "{hosts} hosts have {others} lists of other switches; give one for each"
            ));
        }
        let each = self.other_switches[0].len();
        let mut homes: Vec<Vec<u32>> = Vec::new();
        let mut before = None;
        for (host, (switch, others)) in
            (0..).zip(self.host_switches.iter().zip(&self.other_switches))
        {
            if others.len() != each || others.len() > 7 {
                let what = format!(
                    "host {host} has {}, and host 0 has {} ports; give all as many, at most 8",
                    others.len() + 1,
                    each + 1
                );
                return wrong(what);
            }
            if before != Some(switch) {
                before = Some(switch);
                homes.push(others.clone());
            } else if homes.last() != Some(others) {
                let what = format!(
                    "hosts of switch {switch} have it in common, but host {host} has other ones beside it; give them the same"
                );
                return wrong(what);
            }
        }
        let mut all: Vec<u32> = homes.iter().flatten().chain(leaves).copied().collect();
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => wrong(format!(
                "hosts of several leaves are at switch {}; let those that share a switch share all",
                twice[0]
            )),
            None => Ok(if each == 0 { Vec::new() } else { homes }),
        }
    }

    /// All of it, without latency in boxes. Switches are called by their numbers, `switch-7`, and all are in one group;
    /// those with hosts come first, in the order of their hosts.
    ///
    /// # Errors
    /// As [`Graph::switches`], or if a switch is linked to itself.
    pub fn wiring(&self) -> Result<Wiring, FabricError> {
        let switches = self.switches()?;
        let mut leaves = self.host_switches.clone();
        leaves.dedup();
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
            homes: self
                .homes(&leaves)?
                .iter()
                .map(|others| others.iter().map(|one| place(*one)).collect())
                .collect(),
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
