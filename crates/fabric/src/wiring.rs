//! A network of any shape: hosts, switches and the links between them, and the ports that these become.
//!
//! Port order: the NIC of every host (the first port of each, then the second, ...), then switch by switch first the ports to hosts, then those to
//! switches, each in the order of what is at the other end, parallel links side by side.

use crate::{Bundle, Clos, FabricError, Grid, Link, Node, Port};
use std::collections::BTreeMap;
use weft_units::{HostId, IdVec, PortId, SwitchId, Time};

/// Between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// The switches at its ends.
    pub ends: [u32; 2],
    /// Rate and delay, the same in both directions.
    pub link: Link,
    /// What it adds to the length of a path, at least one. Packets take the shortest.
    pub cost: u32,
    /// Packets that could take links of several dimensions on shortest paths take those of the first.
    pub dimension: u32,
}

/// What a network consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// The switch of each host, in ascending order, so that hosts of a switch stand side by side.
    pub hosts: Vec<u32>,
    /// Where NICs have several ports, the other switches of the hosts of each leaf, as many of each; they are numbered
    /// right behind the leaves, and each is of one leaf. Empty: NICs have one port.
    pub homes: Vec<Vec<u32>>,
    /// The link of each port of a host.
    pub host_link: Link,
    /// All links between switches.
    pub cables: Vec<Cable>,
    /// What each switch is called. Those with hosts come first.
    pub names: Vec<String>,
    /// The group of each switch, from zero on.
    pub groups: Vec<u32>,
    /// The grid that it is, if it is one: then there are no tables of routes, if they were large.
    pub grid: Option<Grid>,
    /// Time that a packet spends in each switch besides queueing and serialisation.
    pub switch_latency: Time,
    /// Time that a packet spends in the receiving NIC.
    pub nic_latency: Time,
}

/// Entries of the tables of routes, of 6 bytes each.
const MAX_ENTRIES: u64 = 1 << 24;
/// So many are in a cache, and quicker looked up than worked out.
const SMALL_ENTRIES: u64 = 1 << 18;

/// The ports of one switch: the first one, how many lead to hosts, and how many to switches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) first: u32,
    pub(crate) hosts: u32,
    pub(crate) switches: u32,
}

impl From<&Clos> for Wiring {
    /// A Clos link by link, with the numbers and groups that it has by arithmetic. Cores are a group of their own.
    fn from(clos: &Clos) -> Wiring {
        let (pods, per_pod) = (clos.pods(), clos.mids_per_pod());
        let (leaves, mids) = (pods * clos.leaves_per_pod(), pods * per_pod);
        let mut cables = Vec::new();
        let mut lay = |a, b, bundle: Bundle| {
            let cable = Cable { ends: [a, b], link: bundle.link, cost: 1, dimension: 0 };
            cables.extend((0..bundle.members).map(|_| cable));
        };
        for leaf in 0..leaves {
            let first = leaves + leaf / clos.leaves_per_pod() * per_pod;
            (first..first + per_pod).for_each(|mid| lay(leaf, mid, clos.leaf_bundle));
        }
        for mid in 0..mids {
            let first = leaves + mids + mid % per_pod * clos.cores_per_plane();
            let cores = first..first + clos.cores_per_plane();
            cores.for_each(|core| lay(leaves + mid, core, clos.agg_bundle));
        }
        let group = |switch: u32| match switch {
            leaf if leaf < leaves => leaf / clos.leaves_per_pod(),
            mid if mid < leaves + mids => (mid - leaves) / per_pod,
            _ => pods,
        };
        let switches = leaves + mids + clos.cores();
        let hosts = (0..leaves).flat_map(|leaf| (0..clos.hosts_per_leaf).map(move |_| leaf));
        Wiring {
            hosts: hosts.collect(),
            homes: Vec::new(),
            host_link: clos.host_link,
            cables,
            names: (0..switches).map(|switch| format!("switch-{switch}")).collect(),
            groups: (0..switches).map(group).collect(),
            grid: None,
            switch_latency: clos.switch_latency,
            nic_latency: clos.nic_latency,
        }
    }
}

impl Wiring {
    /// Switches that have hosts.
    pub fn leaves(&self) -> u32 {
        self.hosts.last().map_or(0, |last| last + 1)
    }

    /// Whether paths of one length may take unequal times.
    pub(crate) fn has_unlike_links(&self) -> bool {
        let mut links: BTreeMap<u32, Link> = BTreeMap::new();
        self.cables.iter().any(|cable| *links.entry(cable.cost).or_insert(cable.link) != cable.link)
    }

    /// Whether tables of routes are small enough.
    pub(crate) fn fits_in_tables(&self) -> bool {
        self.entries() <= MAX_ENTRIES
    }
    /// Whether they are so small that nothing is quicker.
    pub(crate) fn fits_in_small_tables(&self) -> bool {
        self.entries() <= SMALL_ENTRIES
    }
    fn entries(&self) -> u64 {
        self.names.len() as u64 * u64::from(self.leaves())
    }

    /// Checks what [`crate::Fabric::of_wiring`] needs.
    ///
    /// # Errors
    /// With what is wrong and what it may be.
    pub(crate) fn validate(&self) -> Result<(), FabricError> {
        let switches = self.names.len() as u32;
        let is_known = |switch: &u32| *switch < switches;
        let has_all = |leaf: u32| self.hosts.binary_search(&leaf).is_ok();
        if self.hosts.is_empty() {
            return Err(FabricError("a fabric needs at least one host".into()));
        }
        assert!(self.hosts.is_sorted() && self.hosts.iter().all(is_known), "hosts of no switch");
        assert!((0..self.leaves()).all(has_all), "switches with hosts come first");
        assert!(self.cables.iter().flat_map(|cable| &cable.ends).all(is_known), "no such switch");
        self.check_homes();
        assert_eq!(self.groups.len(), self.names.len(), "a group for each switch");
        if self.grid.is_none() && !self.fits_in_tables() {
            return Err(FabricError(format!(
                "routes from {switches} switches to {} of them are more than {MAX_ENTRIES}; use fewer switches \
                 with more hosts each",
                self.leaves()
            )));
        }
        let links = self.cables.iter().map(|cable| cable.link).chain([self.host_link]);
        if links.into_iter().any(|link| link.delay == Time::ZERO) {
            return Err(FabricError(crate::clos::NO_DELAY.into()));
        }
        Ok(())
    }

    /// All ports, and those of each switch.
    pub(crate) fn ports(&self) -> (IdVec<PortId, Port>, Vec<Span>) {
        let spans = self.spans();
        let places = self.places(&spans);
        let hosts = self.hosts.len() as u32;
        let all = hosts * self.nic_ports()
            + spans.iter().map(|span| span.hosts + span.switches).sum::<u32>();
        let mut ports = vec![None; all as usize];
        let mut put = |ends: [Node; 2], ids: [u32; 2], link: Link| {
            for (from, to) in [(0, 1), (1, 0)] {
                let port = self.port(ends[from], ends[to], PortId(ids[to]), link);
                ports[ids[from] as usize] = Some(port);
            }
        };
        let mut next: Vec<u32> = spans.iter().map(|span| span.first).collect();
        for (host, switch) in (0..).zip(&self.hosts) {
            for (home, switch) in (0..).zip(self.ends(*switch)) {
                let port = next[switch as usize];
                next[switch as usize] += 1;
                let ends = [Node::Host(HostId(host)), Node::Switch(SwitchId(switch))];
                put(ends, [home * hosts + host, port], self.host_link);
            }
        }
        for (cable, ids) in self.cables.iter().zip(places) {
            put(cable.ends.map(|end| Node::Switch(SwitchId(end))), ids, cable.link);
        }
        (ports.into_iter().map(|port| port.expect("all are put")).collect(), spans)
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = vec![Span::default(); self.names.len()];
        for switch in self.hosts.iter().flat_map(|leaf| self.ends(*leaf)) {
            spans[switch as usize].hosts += 1;
        }
        for end in self.cables.iter().flat_map(|cable| cable.ends) {
            spans[end as usize].switches += 1;
        }
        let mut first = self.hosts.len() as u32 * self.nic_ports();
        for span in &mut spans {
            span.first = first;
            first += span.hosts + span.switches;
        }
        spans
    }

    /// The ports at the two ends of each cable.
    pub(crate) fn places(&self, spans: &[Span]) -> Vec<[u32; 2]> {
        let mut ends: Vec<(u32, u32, usize, usize)> = Vec::with_capacity(2 * self.cables.len());
        for (number, cable) in self.cables.iter().enumerate() {
            let [a, b] = cable.ends;
            ends.extend([(a, b, number, 0), (b, a, number, 1)]);
        }
        ends.sort_unstable();
        let mut next: Vec<u32> = spans.iter().map(|span| span.first + span.hosts).collect();
        let mut places = vec![[0; 2]; self.cables.len()];
        for (own, _, number, end) in ends {
            places[number][end] = next[own as usize];
            next[own as usize] += 1;
        }
        places
    }

    /// How many links each switch is from the nearest that has hosts; 255, if more.
    pub(crate) fn tiers(&self) -> Vec<u8> {
        let mut peers = vec![Vec::new(); self.names.len()];
        for Cable { ends: [a, b], .. } in &self.cables {
            peers[*a as usize].push(*b);
            peers[*b as usize].push(*a);
        }
        let mut tiers = vec![u8::MAX; self.names.len()];
        let mut next: Vec<u32> = (0..self.leaves() * self.nic_ports()).collect();
        for tier in 0..u8::MAX {
            let own = std::mem::take(&mut next);
            for switch in own {
                if tiers[switch as usize] == u8::MAX {
                    tiers[switch as usize] = tier;
                    next.extend(&peers[switch as usize]);
                }
            }
            next.retain(|one| tiers[*one as usize] == u8::MAX);
        }
        tiers
    }

    fn port(&self, owner: Node, peer: Node, reverse: PortId, link: Link) -> Port {
        let latency = match peer {
            Node::Host(_) => self.nic_latency,
            Node::Switch(_) => self.switch_latency,
        };
        Port { owner, peer, reverse, rate: link.rate, delay: link.delay + latency }
    }
}
