//! The built fabric: numbered ports, and the next hops from any switch to any host.
//!
//! A Clos is numbered and routed by arithmetic (`layout`), any other network by tables (`wiring`,
//! `routes`). A leaf is a switch with hosts, and leaves are numbered first: in a Clos the lowest tier, in other
//! networks perhaps every switch.
//!
//! Where NICs have several ports, each is in a plane of its own: all planes are the same network, without a link
//! between them. Switches and ports of the first plane have the numbers that they would have without the
//! others; then come those of the second, in the same order, and so on. What is said of leaves, pods and
//! paths is said of one plane.
//!
//! Port order in a plane: the NIC of every host, then switch by switch (leaves, spines or aggregation
//! switches, cores) first the ports down, then the ports up. Down ports stand in the order
//! of what is below, members of a bundle side by side; up ports in the order of what is above.

mod circles;
mod distance;
mod names;
mod planes;

use crate::layout::Layout;
use crate::routes::Routes;
use crate::wiring::{Span, Wiring};
use crate::{Clos, FabricError, PathId, Shape};
use std::ops::Range;
use std::sync::Arc;
use weft_units::id::Id;
use weft_units::{FastDiv, HostId, IdVec, PortId, Rate, SwitchId, Time};

/// What stands at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A server's NIC.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
}

/// One direction of one link, named by the output port that feeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Whose output this is.
    pub owner: Node,
    /// Where the link leads.
    pub peer: Node,
    /// The port of `peer` that leads back.
    pub reverse: PortId,
    /// Line rate.
    pub rate: Rate,
    /// From the last bit on the wire here until `peer` can act on the packet: propagation
    /// plus the latency of the peer.
    pub delay: Time,
}

/// Consecutive ports of one switch that lead equally far towards a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortGroup {
    /// The first port.
    pub first: PortId,
    /// How many there are.
    pub count: u32,
}

impl PortGroup {
    /// The ports.
    pub fn ids(self) -> impl Iterator<Item = PortId> {
        (self.first.0..self.first.0 + self.count).map(PortId)
    }
}

/// Where a switch stands and how it routes, kept small for the hot path.
///
/// What is below a switch are consecutive units: hosts for a leaf, leaves for a spine or an
/// aggregation switch, pods for a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// Hosts in a unit.
    pub(crate) unit: FastDiv,
    /// The first unit below.
    pub(crate) first: u32,
    /// How many there are.
    pub(crate) units: u32,
    /// Links to each.
    pub(crate) members: u32,
    /// First down port.
    pub(crate) down: u32,
    /// First up port.
    pub(crate) up: u32,
    /// Number of up ports.
    pub(crate) ups: u32,
    pub(crate) tier: u8,
}

pub(crate) const LEAF: u8 = 0;
pub(crate) const MID: u8 = 1;
pub(crate) const CORE: u8 = 2;

impl Switch {
    #[inline(always)]
    fn next_hops(&self, dst: HostId) -> PortGroup {
        // Unsigned: a unit before the first becomes a huge number.
        let unit = self.unit.div(dst.0).wrapping_sub(self.first);
        // Which way is hard to predict: both are computed, so that there is nothing to branch for.
        let down = self.down.wrapping_add(unit.wrapping_mul(self.members));
        let below = 0u32.wrapping_sub(u32::from(unit < self.units));
        let either = |down: u32, up: u32| up ^ ((up ^ down) & below);
        PortGroup { first: PortId(either(down, self.up)), count: either(self.members, self.ups) }
    }
}

/// The ways from one switch, for whoever asks often.
#[derive(Clone, Copy, Debug)]
pub struct Ways(Switch);

impl Ways {
    /// As [`Fabric::next_hops`].
    #[inline(always)]
    pub fn next_hops(&self, dst: HostId) -> PortGroup {
        self.0.next_hops(dst)
    }
}

/// A built fabric. Cheap to share; never changes.
#[derive(Clone, Debug)]
pub struct Fabric {
    shape: Shape,
    hosts: u32,
    leaves: u32,
    pods: u32,
    planes: u32,
    ports: IdVec<PortId, Port>,
    switches: IdVec<SwitchId, Switch>,
    /// Of a Clos.
    hosts_per_leaf: FastDiv,
    hosts_per_pod: FastDiv,
    /// Of any other network; empty of a Clos.
    routes: Arc<Routes>,
    /// Where NICs have several homes, the ports of these to each host; else empty.
    host_ports: Arc<[PortId]>,
}

impl Fabric {
    /// Builds `clos`.
    ///
    /// # Errors
    /// As [`Clos::validate`].
    pub fn build(clos: &Clos) -> Result<Fabric, FabricError> {
        clos.validate()?;
        let layout = Layout::new(clos);
        Ok(Fabric {
            shape: Shape::Clos(*clos),
            hosts: clos.hosts(),
            leaves: clos.pods() * clos.leaves_per_pod(),
            pods: clos.pods(),
            planes: 1,
            ports: layout.ports(),
            switches: layout.switches(),
            hosts_per_leaf: FastDiv::new(clos.hosts_per_leaf),
            hosts_per_pod: FastDiv::new(clos.hosts_per_leaf * clos.leaves_per_pod()),
            routes: Arc::default(),
            host_ports: Arc::default(),
        })
    }

    /// Builds a network of any shape.
    ///
    /// # Errors
    /// If some host cannot reach another, or there is too much of something.
    pub fn of_wiring(wiring: Wiring) -> Result<Fabric, FabricError> {
        wiring.validate()?;
        let (ports, spans) = wiring.ports();
        let leaves = wiring.leaves();
        let tiers = wiring.tiers();
        let mut first_host = 0;
        let switch = |(tier, span): (u8, &Span)| {
            let first = first_host;
            first_host += span.hosts;
            Switch {
                // Nobody is below: all ports are next hops, and tables say which.
                unit: FastDiv::new(1),
                first,
                units: 0,
                members: 0,
                down: span.first,
                up: span.first,
                ups: span.hosts + span.switches,
                tier,
            }
        };
        let switches = tiers.into_iter().zip(&spans).map(switch).collect();
        let mut fabric = Fabric {
            hosts: wiring.hosts.len() as u32,
            leaves,
            pods: wiring.groups.iter().max().map_or(1, |last| last + 1),
            planes: 1,
            ports,
            switches,
            hosts_per_leaf: FastDiv::new(1),
            hosts_per_pod: FastDiv::new(1),
            routes: Arc::default(),
            host_ports: Arc::default(),
            shape: Shape::from(wiring),
        };
        if fabric.homes() > 1 {
            let nics = |host| (0..fabric.homes()).map(move |home| (host, home));
            let all = (0..fabric.hosts).map(HostId).flat_map(nics);
            let back =
                all.map(|(host, home)| fabric.ports[fabric.nic_in_plane(host, home)].reverse);
            fabric.host_ports = back.collect();
        }
        fabric.routes = Arc::new(fabric.routes_without(&[]));
        fabric.check_connected()?;
        Ok(fabric)
    }

    /// Shortest paths that avoid the links behind `dead` ports, which are sorted.
    pub(crate) fn routes_without(&self, dead: &[PortId]) -> Routes {
        let Shape::Wiring(wiring) = &self.shape else { return Routes::default() };
        if let (Some(grid), [], false) = (&wiring.grid, dead, wiring.fits_in_small_tables()) {
            return Routes::of_grid(self, grid);
        }
        Routes::new(self, self.costs_without(dead))
    }

    /// What each link adds to the length of a path, and its dimension; `None` of those behind `dead` ports, which are
    /// sorted. Of a network that is no Clos.
    pub(crate) fn costs_without(&self, dead: &[PortId]) -> impl Fn(PortId) -> Option<(u32, u32)> {
        let Shape::Wiring(wiring) = &self.shape else {
            unreachable!("a Clos is routed by arithmetic")
        };
        let mut costs: IdVec<PortId, (u32, u32)> = self.ports.iter().map(|_| (0, 0)).collect();
        for (cable, ids) in wiring.cables.iter().zip(wiring.places(&wiring.spans())) {
            ids.into_iter().for_each(|id| costs[PortId(id)] = (cable.cost, cable.dimension));
        }
        move |port| Some(costs[port]).filter(|_| dead.binary_search(&port).is_err())
    }

    fn check_connected(&self) -> Result<(), FabricError> {
        let lonely = (1..self.leaves).find(|leaf| !self.routes.reaches(SwitchId(0), *leaf));
        let Some(leaf) = lonely else { return Ok(()) };
        let name = |leaf| self.name(Node::Switch(SwitchId(leaf)));
        let what = format!("no path leads from {} to {}; add a link", name(0), name(leaf));
        Err(FabricError(what))
    }

    /// The folded Clos that this is; `None`: it is another network.
    pub fn clos(&self) -> Option<&Clos> {
        match &self.shape {
            Shape::Clos(clos) => Some(clos),
            Shape::Wiring(_) => None,
        }
    }
    /// What it was built from.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
    /// How many hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }
    /// How many switches.
    pub fn switches(&self) -> u32 {
        self.switches.len() as u32
    }
    /// How many rails never meet each other; `None`: every host can reach every other.
    pub fn rails(&self) -> Option<u32> {
        self.clos().and_then(Clos::rails)
    }
    /// Whether a path leads from `src` to `dst` where nothing has failed: not between rails that never meet.
    pub fn reaches(&self, src: HostId, dst: HostId) -> bool {
        self.rails().is_none() || self.pod_of(src) == self.pod_of(dst)
    }
    /// How many leaves: switches with hosts.
    pub fn leaves(&self) -> u32 {
        self.leaves
    }
    /// All ports. The first [`Fabric::hosts`] of them are the NICs, in the order of the hosts.
    pub fn ports(&self) -> &IdVec<PortId, Port> {
        &self.ports
    }
    /// Every link, as the port at its lower end, or at that which is numbered first.
    pub fn links(&self) -> impl Iterator<Item = PortId> + '_ {
        self.ports.enumerate().filter(|(id, port)| *id < port.reverse).map(|(id, _)| id)
    }
    /// The NIC of `host`.
    pub fn nic(&self, host: HostId) -> PortId {
        PortId(host.0)
    }
    /// The rate of NICs.
    pub fn line_rate(&self) -> Rate {
        let port = self.ports[PortId(0)].rate;
        Rate::bps(port.as_bps() * u64::from(self.nic_ports()))
    }
    /// Whether some switch has less to the tier above than to hosts and the tier below.
    pub fn is_oversubscribed(&self) -> bool {
        (0..self.switches()).map(SwitchId).any(|switch| self.share_above(switch) < 1.0)
    }
    /// How much of what hosts and the tier below can send to `switch` fits into its links to the tier above: one, if all
    /// of it does or there is no such tier.
    pub fn share_above(&self, switch: SwitchId) -> f64 {
        let own = self.tier(switch);
        let (mut up, mut down) = (0, 0);
        for port in self.ports_of(switch).ids() {
            let Port { peer, rate, .. } = self.ports[port];
            match peer {
                Node::Switch(other) if self.tier(other) > own => up += rate.as_bps(),
                Node::Switch(other) if self.tier(other) == own => {}
                _ => down += rate.as_bps(),
            }
        }
        if up == 0 { 1.0 } else { (up as f64 / down as f64).min(1.0) }
    }
    /// The hosts below a leaf, by their numbers.
    pub fn hosts_of_leaf(&self, leaf: u32) -> Range<u32> {
        match &self.shape {
            Shape::Clos(_) => self.hosts_below(SwitchId(leaf)),
            Shape::Wiring(wiring) => {
                let place = |leaf: u32| wiring.hosts.partition_point(|one| *one < leaf) as u32;
                place(leaf)..place(leaf + 1)
            }
        }
    }
    /// The first host below a leaf: all others there have the same ways to other leaves.
    pub fn first_host(&self, leaf: u32) -> HostId {
        HostId(self.hosts_of_leaf(leaf).start)
    }
    /// How many hosts each leaf has; `None`: some have more than others.
    pub fn hosts_per_leaf(&self) -> Option<u32> {
        let each = self.hosts / self.leaves;
        let mut all = (0..self.leaves).map(|leaf| self.hosts_of_leaf(leaf).len() as u32);
        match self.shape {
            Shape::Clos(_) => Some(each),
            Shape::Wiring(_) => all.all(|hosts| hosts == each).then_some(each),
        }
    }
    /// How many tiers of switches a Clos has; zero of any other network.
    pub fn tiers(&self) -> u32 {
        self.clos().map_or(0, |clos| if clos.cores() == 0 { 2 } else { 3 })
    }
    /// The index of the leaf above `host`.
    #[inline(always)]
    pub fn leaf_of(&self, host: HostId) -> u32 {
        match &self.shape {
            Shape::Clos(_) => self.hosts_per_leaf.div(host.0),
            Shape::Wiring(wiring) => wiring.hosts[host.0 as usize],
        }
    }
    /// Which of the hosts below its leaf `host` is, from zero.
    #[inline(always)]
    pub fn place_below_leaf(&self, host: HostId) -> u32 {
        host.0 - self.hosts_of_leaf(self.leaf_of(host)).start
    }
    /// How many links lead up from `switch`, in a network that is no Clos to other switches.
    pub fn uplinks(&self, switch: SwitchId) -> u32 {
        match &self.shape {
            Shape::Clos(_) => self.switches[switch].ups,
            Shape::Wiring(wiring) if !wiring.homes.is_empty() => {
                let ports = self.ports_of(switch).ids().map(|port| self.ports[port].peer);
                ports.filter(|peer| matches!(peer, Node::Switch(_))).count() as u32
            }
            Shape::Wiring(_) => {
                let hosts =
                    if self.tier(switch) == LEAF { self.hosts_of_leaf(switch.0).len() } else { 0 };
                self.ports_of(switch).count - hosts as u32
            }
        }
    }
    /// How many links lead up from the leaf above `host`.
    pub fn uplinks_of(&self, host: HostId) -> u32 {
        self.uplinks(SwitchId(self.leaf_of(host)))
    }
    /// How many pods there are, or groups of switches: one, in a Clos of two tiers.
    pub fn pods(&self) -> u32 {
        self.pods
    }
    /// The index of the pod of `host`, or of its group of switches (0 with two tiers).
    #[inline(always)]
    pub fn pod_of(&self, host: HostId) -> u32 {
        match &self.shape {
            Shape::Clos(_) => self.hosts_per_pod.div(host.0),
            Shape::Wiring(wiring) => wiring.groups[wiring.hosts[host.0 as usize] as usize],
        }
    }
    /// The pod of a switch, or its group; `None` of a core.
    pub fn pod_of_switch(&self, switch: SwitchId) -> Option<u32> {
        let clos = match &self.shape {
            Shape::Clos(clos) => clos,
            Shape::Wiring(wiring) => return Some(wiring.groups[switch.index()]),
        };
        let switch = self.in_first_plane(switch);
        match self.switches[switch].tier {
            LEAF => Some(switch.0 / clos.leaves_per_pod()),
            MID => Some((switch.0 - self.leaves) / clos.mids_per_pod()),
            _ => None,
        }
    }
    /// All output ports of `switch`.
    pub fn ports_of(&self, switch: SwitchId) -> PortGroup {
        let first = self.switches[switch].down;
        let end = match (switch.0 + 1).is_multiple_of(self.switches_per_plane()) {
            true => (self.plane_of(switch) + 1) * self.ports_per_plane(),
            false => self.switches[SwitchId(switch.0 + 1)].down,
        };
        PortGroup { first: PortId(first), count: end - first }
    }

    /// The ports of `switch` that lead towards `dst`: down if it is below, else up. In a network that is no Clos
    /// all of its ports: [`Fabric::hops_among`] says which.
    #[inline(always)]
    pub fn next_hops(&self, switch: SwitchId, dst: HostId) -> PortGroup {
        self.switches[switch].next_hops(dst)
    }
    /// Which of [`Fabric::next_hops`] lead towards `dst`; `None`: all.
    #[inline]
    pub fn hops_among(&self, switch: SwitchId, dst: HostId) -> Option<&[PortId]> {
        let Shape::Wiring(wiring) = &self.shape else { return None };
        let leaf = wiring.hosts[dst.0 as usize];
        if !self.host_ports.is_empty() {
            return Some(match self.hops_home(switch, dst) {
                [] => self.routes.next_hops(switch, leaf),
                home => home,
            });
        }
        Some(match leaf == switch.0 {
            // The port to a host is the other end of its NIC's link.
            true => std::slice::from_ref(&self.ports[PortId(dst.0)].reverse),
            false => self.routes.next_hops(switch, leaf),
        })
    }
    /// The ports of `switch` to `dst`, where NICs have several homes and it is one of them.
    #[cold]
    fn hops_home(&self, switch: SwitchId, dst: HostId) -> &[PortId] {
        let homes = self.homes() as usize;
        let all = &self.host_ports[dst.0 as usize * homes..][..homes];
        // Each home is another switch.
        let home = all.iter().position(|port| self.ports[*port].owner == Node::Switch(switch));
        home.map_or(&[], |home| &all[home..home + 1])
    }
    /// All equal next hops of `switch` towards `dst`.
    pub fn equal_hops(&self, switch: SwitchId, dst: HostId) -> Vec<PortId> {
        match self.hops_among(switch, dst) {
            None => self.next_hops(switch, dst).ids().collect(),
            Some(hops) => hops.to_vec(),
        }
    }
    /// The port of `switch` on the path of that name towards `dst`, and the name as the next switch reads it. Where
    /// routing knows which ports are `left`, a Clos has other members of a bundle stand in for one that is not, and other
    /// networks take one of those ports; `None`: there is none.
    #[inline]
    pub fn pinned_hop(
        &self,
        switch: SwitchId,
        dst: HostId,
        path: PathId,
        left: Option<&[PortId]>,
    ) -> Option<(PortId, PathId)> {
        self.pinned_hop_by(&self.routes, (switch, dst), path, left)
    }
    /// The same, where packets go to other groups by these routes.
    #[inline]
    pub(crate) fn pinned_hop_by(
        &self,
        to_groups: &Routes,
        (switch, dst): (SwitchId, HostId),
        path: PathId,
        left: Option<&[PortId]>,
    ) -> Option<(PortId, PathId)> {
        match &self.shape {
            Shape::Clos(_) => {
                let port = self.next_hops(switch, dst).pinned(path);
                Some((self.member_left(port, left), path.swapped()))
            }
            Shape::Wiring(wiring) => {
                let leaf = wiring.hosts[dst.0 as usize];
                if !self.host_ports.is_empty()
                    && let [_, ..] = self.hops_home(switch, dst)
                {
                    // Routing may know that it leads there no more.
                    let hops = left.unwrap_or_else(|| self.hops_home(switch, dst));
                    return Some((*hops.get(usize::from(path.0) % hops.len().max(1))?, path));
                }
                if self.host_ports.is_empty() && leaf == switch.0 {
                    return Some((self.ports[PortId(dst.0)].reverse, path));
                }
                let path = match path.group() {
                    None => path,
                    Some((group, digit)) => {
                        match to_groups.towards(switch, group, u32::from(digit)) {
                            Some(port) => return Some((port, path)),
                            None => path.passed(),
                        }
                    }
                };
                Some((self.routes.pinned(switch, leaf, path.shortest(), left)?, path))
            }
        }
    }
    /// `port`, or a port to the same switch, if that one is not `left` and such a one is.
    fn member_left(&self, port: PortId, left: Option<&[PortId]>) -> PortId {
        let Some(left) = left.filter(|left| !left.contains(&port)) else { return port };
        let peer = self.ports[port].peer;
        let members = left.iter().filter(|other| self.ports[**other].peer == peer);
        let place = port.0 as usize % members.clone().count().max(1);
        members.copied().nth(place).unwrap_or(port)
    }
    /// Shortest paths; empty of a Clos.
    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }

    /// What `switch` knows of the ways from it.
    pub fn ways_from(&self, switch: SwitchId) -> Ways {
        Ways(self.switches[switch])
    }

    /// The hosts to which `switch` sends down, by their numbers.
    pub fn hosts_below(&self, switch: SwitchId) -> Range<u32> {
        let Switch { unit, first, units, .. } = self.switches[switch];
        first * unit.divisor()..(first + units) * unit.divisor()
    }

    /// Which tier the switch is in: 0 leaf, 1 spine or aggregation, 2 core; in a network that is no Clos how many links
    /// it is from the nearest leaf.
    pub fn tier(&self, switch: SwitchId) -> u8 {
        self.switches[switch].tier
    }
}
