//! NICs with ports at several switches of one network (dual-homed servers): Alibaba HPN (SIGCOMM 2024), dual ToR.
//!
//! The switches of a NIC are a leaf together: hosts that have one of them in common have all of them in common. Routing
//! knows a host behind each of its switches, and takes the nearest; all that are equally near are next hops. Where the
//! link of a host dies, routing learns that this host is behind the others only.

use crate::exceptions::Exceptions;
use crate::routes::Search;
use crate::wiring::Wiring;
use crate::{Clos, Fabric, FabricError, Node, Shape};
use std::collections::BTreeMap;
use weft_units::{HostId, PortId, SwitchId};

impl Wiring {
    /// `clos`, where so many neighbouring leaves share their hosts, which have a port at each: of `homes` leaves there
    /// are the hosts of one. Switches keep their names; they are numbered first leaves of hosts, then other leaves, then those above.
    ///
    /// # Errors
    /// If the leaves of a pod cannot be shared out, or rails never meet.
    pub fn homed(clos: &Clos, homes: u32) -> Result<Wiring, FabricError> {
        if clos.rails().is_some() {
            return Err(FabricError(
                "homes share what is above them: choose a Clos whose rails meet".into(),
            ));
        }
        if !clos.leaves_per_pod().is_multiple_of(homes) {
            let what = format!(
                "{homes} homes do not divide {} leaves; use a divisor",
                clos.leaves_per_pod()
            );
            return Err(FabricError(what));
        }
        let fabric = Fabric::build(clos)?;
        let racks = fabric.leaves() / homes;
        let place = |switch: u32| match switch {
            other if other >= fabric.leaves() => other,
            leaf => match (leaf / homes, leaf % homes) {
                (rack, 0) => rack,
                (rack, home) => racks + rack * (homes - 1) + home - 1,
            },
        };
        let mut it = Wiring::from(clos);
        for cable in &mut it.cables {
            cable.ends = cable.ends.map(place);
        }
        let groups = it.groups.clone();
        for switch in 0..fabric.switches() {
            it.names[place(switch) as usize] = fabric.name(Node::Switch(SwitchId(switch)));
            it.groups[place(switch) as usize] = groups[switch as usize];
        }
        it.hosts =
            (0..racks).flat_map(|rack| (0..clos.hosts_per_leaf).map(move |_| rack)).collect();
        let others = |rack: u32| racks + rack * (homes - 1)..racks + (rack + 1) * (homes - 1);
        it.homes = if homes == 1 {
            Vec::new()
        } else {
            (0..racks).map(|rack| others(rack).collect()).collect()
        };
        Ok(it)
    }

    /// Ports of every NIC.
    pub fn nic_ports(&self) -> u32 {
        1 + self.homes.first().map_or(0, |others| others.len() as u32)
    }

    /// The switches of the hosts of a leaf.
    pub fn ends(&self, leaf: u32) -> impl Iterator<Item = u32> + '_ {
        let others = self.homes.get(leaf as usize).into_iter().flatten();
        std::iter::once(leaf).chain(others.copied())
    }

    /// The leaf that a switch is, or is a part of.
    pub fn leaf_of_switch(&self, switch: u32) -> Option<u32> {
        match switch < self.leaves() {
            true => Some(switch),
            false => self
                .homes
                .iter()
                .position(|others| others.contains(&switch))
                .map(|leaf| leaf as u32),
        }
    }

    /// Checks what is said of homes.
    pub(crate) fn check_homes(&self) {
        let each = self.nic_ports() as usize - 1;
        assert!(
            self.homes.is_empty() || self.homes.len() == self.leaves() as usize,
            "homes of every leaf"
        );
        assert!(self.homes.iter().all(|others| others.len() == each), "as many of each leaf");
        let mut all: Vec<u32> = self.homes.iter().flatten().copied().collect();
        all.sort_unstable();
        let first = self.leaves();
        assert!(
            all.iter().copied().eq(first..first + all.len() as u32),
            "they stand behind the leaves, in one each"
        );
    }
}

impl Fabric {
    /// Ports of every NIC: one in each plane, or at each of its switches.
    pub fn nic_ports(&self) -> u32 {
        match self.shape() {
            Shape::Clos(_) => self.planes(),
            Shape::Wiring(wiring) => wiring.nic_ports(),
        }
    }
    /// At how many switches of one network every NIC has a port.
    pub fn homes(&self) -> u32 {
        self.nic_ports() / self.planes()
    }
    /// The ports of NICs with several that are of no use while the links behind `dead` ports are: a bit for each of
    /// a host, of hosts that have any. Of a host that has no other, none.
    pub fn dead_nic_ports(&self, dead: &[PortId]) -> Vec<(HostId, u8)> {
        let mut hosts: BTreeMap<HostId, u8> = BTreeMap::new();
        if self.nic_ports() == 1 {
            return Vec::new();
        }
        let each = if self.homes() > 1 { self.hosts() } else { self.ports_per_plane() };
        for port in dead {
            for end in [*port, self.ports()[*port].reverse] {
                if let Node::Host(host) = self.ports()[end].owner {
                    *hosts.entry(host).or_default() |= 1 << (end.0 / each);
                }
            }
        }
        let all = u8::MAX >> (u8::BITS - self.nic_ports());
        hosts.into_iter().filter(|(_, dead)| *dead != all).collect()
    }
}

/// Notes where packets to hosts with a dead link go instead.
pub(crate) fn note_hosts(
    fabric: &Fabric,
    dead: &[PortId],
    search: &mut Search,
    others: &mut Exceptions<PortId>,
) {
    let mut hops = Vec::new();
    for (host, lost) in fabric.dead_nic_ports(dead) {
        let nics = (0..fabric.homes()).filter(|home| lost >> home & 1 == 0);
        let back: Vec<PortId> =
            nics.map(|home| fabric.ports()[fabric.nic_in_plane(host, home)].reverse).collect();
        let owner = |port: &PortId| match fabric.ports()[*port].owner {
            Node::Switch(switch) => switch,
            Node::Host(_) => unreachable!("a NIC is linked to a switch"),
        };
        let ends: Vec<u32> = back.iter().map(|port| owner(port).0).collect();
        search.go(&ends);
        for switch in (0..fabric.switches()).map(SwitchId) {
            match ends.contains(&switch.0) {
                true => {
                    hops.clear();
                    hops.extend(back.iter().copied().filter(|port| owner(port) == switch));
                }
                false => search.next_hops(switch, &mut hops),
            }
            let usual = fabric.equal_hops(switch, host);
            if hops != usual || others.get(switch, host).is_some() {
                others.note_host(switch, host, &hops);
            }
        }
    }
}
