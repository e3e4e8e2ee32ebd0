//! The built fabric: numbered ports, and the next hops from any switch to any host.
//!
//! Port order: the NIC of every host, then switch by switch (leaves, spines or aggregation
//! switches, cores) first the ports down, then the ports up. Down ports stand in the order
//! of what is below, members of a bundle side by side; up ports in the order of what is above.

use crate::{Bundle, Clos, FabricError, Link};
use std::ops::Range;
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
struct Switch {
    /// Hosts in a unit.
    unit: FastDiv,
    /// The first unit below.
    first: u32,
    /// How many there are.
    units: u32,
    /// Links to each.
    members: u32,
    /// First down port.
    down: u32,
    /// First up port.
    up: u32,
    /// Number of up ports.
    ups: u32,
    tier: u8,
}

const LEAF: u8 = 0;
const MID: u8 = 1;
const CORE: u8 = 2;

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
    clos: Clos,
    ports: IdVec<PortId, Port>,
    switches: IdVec<SwitchId, Switch>,
    hosts_per_leaf: FastDiv,
    hosts_per_pod: FastDiv,
    two_tiers: bool,
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
            clos: *clos,
            ports: layout.ports(),
            switches: layout.switches(),
            hosts_per_leaf: FastDiv::new(clos.hosts_per_leaf),
            hosts_per_pod: FastDiv::new(clos.hosts_per_leaf * clos.leaves_per_pod()),
            two_tiers: clos.cores() == 0,
        })
    }

    /// The description that this was built from.
    pub fn clos(&self) -> &Clos {
        &self.clos
    }
    /// How many hosts.
    pub fn hosts(&self) -> u32 {
        self.clos.hosts()
    }
    /// How many switches.
    pub fn switches(&self) -> u32 {
        self.switches.len() as u32
    }
    /// How many leaves.
    pub fn leaves(&self) -> u32 {
        self.clos.pods() * self.clos.leaves_per_pod()
    }
    /// All ports. The first [`Fabric::hosts`] of them are the NICs, in the order of the hosts.
    pub fn ports(&self) -> &IdVec<PortId, Port> {
        &self.ports
    }
    /// The NIC of `host`.
    pub fn nic(&self, host: HostId) -> PortId {
        PortId(host.0)
    }
    /// The index of the leaf above `host`.
    #[inline(always)]
    pub fn leaf_of(&self, host: HostId) -> u32 {
        self.hosts_per_leaf.div(host.0)
    }
    /// Which of the hosts below its leaf `host` is, from zero.
    #[inline(always)]
    pub fn place_below_leaf(&self, host: HostId) -> u32 {
        host.0 - self.leaf_of(host) * self.clos.hosts_per_leaf
    }
    /// How many links lead up from `switch`.
    pub fn uplinks(&self, switch: SwitchId) -> u32 {
        self.switches[switch].ups
    }
    /// How many links lead up from the leaf above `host`.
    pub fn uplinks_of(&self, host: HostId) -> u32 {
        self.uplinks(SwitchId(self.leaf_of(host)))
    }
    /// The index of the pod of `host` (0 with two tiers).
    #[inline(always)]
    pub fn pod_of(&self, host: HostId) -> u32 {
        self.hosts_per_pod.div(host.0)
    }
    /// All output ports of `switch`.
    pub fn ports_of(&self, switch: SwitchId) -> PortGroup {
        let first = self.switches[switch].down;
        let next = self.switches.as_slice().get(switch.index() + 1);
        let end = next.map_or(self.ports.len() as u32, |switch| switch.down);
        PortGroup { first: PortId(first), count: end - first }
    }

    /// The ports of `switch` that lead towards `dst`: down if it is below, else up.
    #[inline(always)]
    pub fn next_hops(&self, switch: SwitchId, dst: HostId) -> PortGroup {
        self.switches[switch].next_hops(dst)
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

    /// How many links a packet from `src` to `dst` crosses.
    pub fn hops(&self, src: HostId, dst: HostId) -> u32 {
        if self.leaf_of(src) == self.leaf_of(dst) {
            2
        } else if self.pod_of(src) == self.pod_of(dst) {
            4
        } else {
            6
        }
    }

    /// One port for each link on any shortest path from `src` to `dst`; all shortest paths
    /// have the same rates and delays.
    pub fn sample_path(&self, src: HostId, dst: HostId) -> Vec<PortId> {
        let mut path = vec![self.nic(src)];
        loop {
            match self.ports[path[path.len() - 1]].peer {
                Node::Host(_) => return path,
                Node::Switch(switch) => path.push(self.next_hops(switch, dst).first),
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
        let (near, far) = (HostId(0), HostId(self.hosts() - 1));
        self.one_way(near, far, data_bytes) + self.one_way(far, near, ack_bytes)
    }

    /// The smallest link delay.
    pub fn min_delay(&self) -> Time {
        self.ports.iter().map(|port| port.delay).min().unwrap_or(Time::ZERO)
    }

    /// A readable name: `host-3`, `leaf-0`, `spine-7`, `pod-1-agg-0`, `core-2`.
    pub fn name(&self, node: Node) -> String {
        let Node::Switch(id) = node else {
            let Node::Host(host) = node else { unreachable!() };
            return format!("host-{}", host.0);
        };
        let leaves = self.leaves();
        let mids = self.clos.pods() * self.clos.mids_per_pod();
        match self.switches[id].tier {
            LEAF => format!("leaf-{}", id.0),
            MID if self.two_tiers => format!("spine-{}", id.0 - leaves),
            MID => {
                let mid = id.0 - leaves;
                let per_pod = self.clos.mids_per_pod();
                format!("pod-{}-agg-{}", mid / per_pod, mid % per_pod)
            }
            _ => format!("core-{}", id.0 - leaves - mids),
        }
    }

    /// A readable name of one direction of a link: `leaf-0 -> spine-1`, with `#1` behind it for
    /// the second of several parallel links.
    pub fn port_name(&self, id: PortId) -> String {
        let port = &self.ports[id];
        let earlier = self.ports.as_slice()[..id.index()].iter().rev();
        // Members of a bundle stand side by side.
        let member = earlier.take_while(|p| (p.owner, p.peer) == (port.owner, port.peer)).count();
        let name = format!("{} -> {}", self.name(port.owner), self.name(port.peer));
        if member == 0 { name } else { format!("{name}#{member}") }
    }

    /// The switch of that name, as [`Fabric::name`] writes it.
    pub fn switch_named(&self, name: &str) -> Option<SwitchId> {
        self.switches.ids().find(|id| self.name(Node::Switch(*id)) == name)
    }

    /// Which tier the switch is in: 0 leaf, 1 spine or aggregation, 2 core.
    pub fn tier(&self, switch: SwitchId) -> u8 {
        self.switches[switch].tier
    }
}

/// Where everything gets its number.
struct Layout<'a> {
    clos: &'a Clos,
    hosts: u32,
    leaves: u32,
    mids: u32,
    /// Ports of one leaf, aggregation switch (spine) and core.
    leaf_ports: u32,
    mid_ports: u32,
    core_ports: u32,
}

impl Layout<'_> {
    fn new(clos: &Clos) -> Layout<'_> {
        let leaf_ups = clos.mids_per_pod() * clos.leaf_bundle.members;
        let mid_downs = clos.leaves_per_pod() * clos.leaf_bundle.members;
        let mid_ups = clos.cores_per_plane() * clos.agg_bundle.members;
        Layout {
            clos,
            hosts: clos.hosts(),
            leaves: clos.pods() * clos.leaves_per_pod(),
            mids: clos.pods() * clos.mids_per_pod(),
            leaf_ports: clos.hosts_per_leaf + leaf_ups,
            mid_ports: mid_downs + mid_ups,
            core_ports: clos.pods() * clos.agg_bundle.members,
        }
    }

    fn leaf_base(&self, leaf: u32) -> u32 {
        self.hosts + leaf * self.leaf_ports
    }
    fn mid_base(&self, mid: u32) -> u32 {
        self.leaf_base(self.leaves) + mid * self.mid_ports
    }
    fn core_base(&self, core: u32) -> u32 {
        self.mid_base(self.mids) + core * self.core_ports
    }
    fn mid_downs(&self) -> u32 {
        self.clos.leaves_per_pod() * self.clos.leaf_bundle.members
    }

    fn switches(&self) -> IdVec<SwitchId, Switch> {
        let clos = self.clos;
        let hosts = clos.hosts_per_leaf;
        let leaves = (0..self.leaves).map(|leaf| {
            let down = self.leaf_base(leaf);
            Switch {
                unit: FastDiv::new(1),
                first: leaf * hosts,
                units: hosts,
                members: 1,
                down,
                up: down + hosts,
                ups: self.leaf_ports - hosts,
                tier: LEAF,
            }
        });
        let mids = (0..self.mids).map(|mid| {
            let down = self.mid_base(mid);
            Switch {
                unit: FastDiv::new(hosts),
                first: mid / clos.mids_per_pod() * clos.leaves_per_pod(),
                units: clos.leaves_per_pod(),
                members: clos.leaf_bundle.members,
                down,
                up: down + self.mid_downs(),
                ups: self.mid_ports - self.mid_downs(),
                tier: MID,
            }
        });
        let cores = (0..clos.cores()).map(|core| {
            let down = self.core_base(core);
            Switch {
                unit: FastDiv::new(hosts * clos.leaves_per_pod()),
                first: 0,
                units: clos.pods(),
                members: clos.agg_bundle.members,
                down,
                up: down + self.core_ports,
                ups: 0,
                tier: CORE,
            }
        });
        leaves.chain(mids).chain(cores).collect()
    }

    fn ports(&self) -> IdVec<PortId, Port> {
        let mut ports = IdVec::new();
        self.push_nics(&mut ports);
        for leaf in 0..self.leaves {
            self.push_leaf(leaf, &mut ports);
        }
        for mid in 0..self.mids {
            self.push_mid(mid, &mut ports);
        }
        for core in 0..self.clos.cores() {
            self.push_core(core, &mut ports);
        }
        ports
    }

    fn push_nics(&self, ports: &mut IdVec<PortId, Port>) {
        for host in 0..self.hosts {
            let (leaf, slot) = (host / self.clos.hosts_per_leaf, host % self.clos.hosts_per_leaf);
            ports.push(self.port(
                Node::Host(HostId(host)),
                Node::Switch(SwitchId(leaf)),
                PortId(self.leaf_base(leaf) + slot),
                self.clos.host_link,
            ));
        }
    }

    fn push_leaf(&self, leaf: u32, ports: &mut IdVec<PortId, Port>) {
        let clos = self.clos;
        let me = Node::Switch(SwitchId(leaf));
        for slot in 0..clos.hosts_per_leaf {
            let host = HostId(leaf * clos.hosts_per_leaf + slot);
            ports.push(self.port(me, Node::Host(host), PortId(host.0), clos.host_link));
        }
        let (pod, in_pod) = (leaf / clos.leaves_per_pod(), leaf % clos.leaves_per_pod());
        let Bundle { link, members } = clos.leaf_bundle;
        for up in 0..clos.mids_per_pod() * members {
            let mid = pod * clos.mids_per_pod() + up / members;
            let reverse = self.mid_base(mid) + in_pod * members + up % members;
            ports.push(self.port(me, self.mid(mid), PortId(reverse), link));
        }
    }

    fn push_mid(&self, mid: u32, ports: &mut IdVec<PortId, Port>) {
        let clos = self.clos;
        let me = self.mid(mid);
        let (pod, plane) = (mid / clos.mids_per_pod(), mid % clos.mids_per_pod());
        let Bundle { link, members } = clos.leaf_bundle;
        for down in 0..self.mid_downs() {
            let leaf = pod * clos.leaves_per_pod() + down / members;
            let leaf_up = clos.hosts_per_leaf + plane * members + down % members;
            let reverse = PortId(self.leaf_base(leaf) + leaf_up);
            ports.push(self.port(me, Node::Switch(SwitchId(leaf)), reverse, link));
        }
        let Bundle { link, members } = clos.agg_bundle;
        for up in 0..clos.cores_per_plane() * members {
            let core = plane * clos.cores_per_plane() + up / members;
            let reverse = PortId(self.core_base(core) + pod * members + up % members);
            ports.push(self.port(me, self.core(core), reverse, link));
        }
    }

    fn push_core(&self, core: u32, ports: &mut IdVec<PortId, Port>) {
        let clos = self.clos;
        let Bundle { link, members } = clos.agg_bundle;
        let (plane, in_plane) = (core / clos.cores_per_plane(), core % clos.cores_per_plane());
        for down in 0..self.core_ports {
            let mid = down / members * clos.mids_per_pod() + plane;
            let mid_up = self.mid_downs() + in_plane * members + down % members;
            let reverse = PortId(self.mid_base(mid) + mid_up);
            ports.push(self.port(self.core(core), self.mid(mid), reverse, link));
        }
    }

    fn mid(&self, mid: u32) -> Node {
        Node::Switch(SwitchId(self.leaves + mid))
    }
    fn core(&self, core: u32) -> Node {
        Node::Switch(SwitchId(self.leaves + self.mids + core))
    }

    fn port(&self, owner: Node, peer: Node, reverse: PortId, link: Link) -> Port {
        let latency = match peer {
            Node::Host(_) => self.clos.nic_latency,
            Node::Switch(_) => self.clos.switch_latency,
        };
        Port { owner, peer, reverse, rate: link.rate, delay: link.delay + latency }
    }
}
