//! How far hosts are from each other: links, and time.

use super::{Fabric, Node, Port};
use crate::{PathId, Shape, Wiring};
use weft_units::{HostId, IdVec, PortId, SwitchId, Time};

impl Fabric {
    /// How many links a packet from `src` to `dst` crosses.
    pub fn hops(&self, src: HostId, dst: HostId) -> u32 {
        if let Shape::Wiring(_) = self.shape {
            return self.sample_path(src, dst).len() as u32;
        }
        if self.leaf_of(src) == self.leaf_of(dst) {
            2
        } else if self.pod_of(src) == self.pod_of(dst) {
            4
        } else {
            6
        }
    }

    /// How many links a packet at `switch` still crosses on that path, if it takes such a `hop` at each switch; `None`: it
    /// does not arrive.
    pub fn links_on(
        &self,
        mut switch: SwitchId,
        mut path: PathId,
        hop: impl Fn(SwitchId, PathId) -> Option<(PortId, PathId)>,
    ) -> Option<u32> {
        let mut links = 1;
        loop {
            let (port, next) = hop(switch, path)?;
            match self.ports[port].peer {
                Node::Host(_) => return Some(links),
                Node::Switch(peer) => (switch, path, links) = (peer, next, links + 1),
            }
        }
    }

    /// No packet from `src` to `dst` crosses fewer links, whatever path it takes: one over another group of a dragonfly
    /// may have fewer than the shortest, which crosses one global link.
    pub fn least_links(&self, src: HostId, dst: HostId) -> u32 {
        match self.clos() {
            Some(_) => self.hops(src, dst),
            None => {
                let Shape::Wiring(wiring) = &self.shape else { unreachable!("it is no Clos") };
                let homes = wiring.ends(self.leaf_of(src)).map(SwitchId);
                let links = homes.map(|home| self.routes.least_links(home, self.leaf_of(dst)));
                2 + links.min().unwrap_or(0)
            }
        }
    }

    /// No shortest path crosses more links.
    pub fn most_hops(&self) -> u32 {
        match self.clos() {
            Some(_) => 2 * self.tiers(),
            None => self.routes.longest() + 2,
        }
    }

    /// One port for each link on any shortest path from `src` to `dst`; all shortest paths
    /// have the same rates and delays, unless links of a graph differ.
    ///
    /// # Panics
    /// If they do not [reach](Fabric::reaches) each other.
    pub fn sample_path(&self, src: HostId, dst: HostId) -> Vec<PortId> {
        let mut path = vec![self.nic(src)];
        loop {
            match self.ports[path[path.len() - 1]].peer {
                Node::Host(_) => return path,
                Node::Switch(switch) => path.push(match self.hops_among(switch, dst) {
                    None => {
                        let hops = self.next_hops(switch, dst);
                        assert!(hops.count > 0, "rails never meet");
                        hops.first
                    }
                    Some(hops) => hops[0],
                }),
            }
        }
    }

    /// Time from the first bit on `src`'s wire until `dst` has a lone packet of `bytes`
    /// (headers included): store and forward at every switch.
    pub fn one_way(&self, src: HostId, dst: HostId, bytes: u64) -> Time {
        self.sample_path(src, dst).into_iter().fold(Time::ZERO, |sum, port| {
            let port = &self.ports[port];
            sum + port.rate.serialize(bytes) + port.delay
        })
    }

    /// The round trip between the two hosts that are farthest apart, for a lone data packet
    /// and its acknowledgement (bytes with headers).
    pub fn base_rtt(&self, data_bytes: u64, ack_bytes: u64) -> Time {
        if let Shape::Wiring(wiring) = &self.shape
            && wiring.has_unlike_links()
        {
            return self.slowest_round_trip(wiring, [data_bytes, ack_bytes]);
        }
        let (near, far) = self.farthest();
        self.one_way(near, far, data_bytes) + self.one_way(far, near, ack_bytes)
    }

    /// The same where shortest paths take unequal times, over the slowest. Back it is the same links.
    fn slowest_round_trip(&self, wiring: &Wiring, bytes: [u64; 2]) -> Time {
        let both_ways = |port: PortId| {
            let Port { rate, delay, .. } = self.ports[port];
            bytes.into_iter().fold(Time::ZERO, |sum, bytes| sum + rate.serialize(bytes) + delay)
        };
        let nic = self.nic(HostId(0));
        let hosts = both_ways(nic) + both_ways(self.ports[nic].reverse);
        let mut between = Time::ZERO;
        let mut times: IdVec<SwitchId, Time> = self.switches.iter().map(|_| Time::ZERO).collect();
        for leaf in 0..self.leaves {
            for switch in self.routes.nearest_first(leaf) {
                let behind = |port: &PortId| match self.ports[*port].peer {
                    Node::Host(_) => Time::ZERO,
                    Node::Switch(peer) => both_ways(*port) + times[peer],
                };
                let hops = self.routes.next_hops(switch, leaf).iter();
                times[switch] = hops.map(behind).max().unwrap_or(Time::ZERO);
            }
            let sources = (0..self.leaves).flat_map(|leaf| wiring.ends(leaf));
            between = sources.map(|one| times[SwitchId(one)]).fold(between, Time::max);
        }
        hosts + between
    }

    /// Two hosts that are farthest apart, of those that reach each other.
    pub fn farthest(&self) -> (HostId, HostId) {
        if let Shape::Clos(_) = self.shape {
            return (HostId(0), HostId(self.hosts() / self.rails().unwrap_or(1) - 1));
        }
        let far =
            |pair: &(u32, u32)| self.one_way(self.first_host(pair.0), self.first_host(pair.1), 1);
        let pairs = (0..self.leaves).map(|leaf| (0, leaf));
        // From one that is farthest from the first one on: exact where all are alike.
        let (_, end) = pairs.max_by_key(far).unwrap_or((0, 0));
        let pairs = (0..self.leaves).map(|leaf| (end, leaf));
        let (from, to) = pairs.max_by_key(far).unwrap_or((0, 0));
        (self.first_host(from), HostId(self.hosts_of_leaf(to).end - 1))
    }

    /// The smallest link delay.
    pub fn min_delay(&self) -> Time {
        self.ports.iter().map(|port| port.delay).min().unwrap_or(Time::ZERO)
    }
}
