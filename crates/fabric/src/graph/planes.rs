//! Planes: the same network several times, without a link between them.

use super::{Fabric, Node, Port, Switch};
use crate::FabricError;
use weft_units::{HostId, PortId, SwitchId};

impl Fabric {
    /// So many planes, each of them this network: the NIC of every host has a port in each.
    ///
    /// # Errors
    /// If it is no Clos, or there would be too many links.
    pub fn in_planes(mut self, planes: u32) -> Result<Fabric, FabricError> {
        if planes == 1 {
            return Ok(self);
        }
        if self.clos().is_none() {
            return Err(FabricError(
                "planes are folded Clos: choose another topology, or one plane".into(),
            ));
        }
        let (ports, switches) = (self.ports.len() as u32, self.switches());
        if u64::from(ports) * u64::from(planes) > 2 * crate::clos::MAX_LINKS {
            return Err(FabricError(format!(
                "{planes} planes of {} links are too many",
                ports / 2
            )));
        }
        for plane in 1..planes {
            let node = |node: Node| match node {
                Node::Host(_) => node,
                Node::Switch(switch) => Node::Switch(SwitchId(switch.0 + plane * switches)),
            };
            for id in 0..ports {
                let port = self.ports[PortId(id)];
                let reverse = PortId(port.reverse.0 + plane * ports);
                let [owner, peer] = [port.owner, port.peer].map(node);
                self.ports.push(Port { owner, peer, reverse, ..port });
            }
            for id in 0..switches {
                let switch = self.switches[SwitchId(id)];
                let [down, up] = [switch.down, switch.up].map(|port| port + plane * ports);
                self.switches.push(Switch { down, up, ..switch });
            }
        }
        self.planes = planes;
        Ok(self)
    }

    /// How many planes: ports of every NIC.
    pub fn planes(&self) -> u32 {
        self.planes
    }

    /// How many switches each plane has.
    pub fn switches_per_plane(&self) -> u32 {
        self.switches() / self.planes
    }

    /// How many ports each plane has, NICs included.
    pub fn ports_per_plane(&self) -> u32 {
        self.ports.len() as u32 / self.planes
    }

    /// The plane of a switch.
    pub fn plane_of(&self, switch: SwitchId) -> u32 {
        switch.0 / self.switches_per_plane()
    }

    /// The switch in the first plane that stands where `switch` does in its own.
    pub fn in_first_plane(&self, switch: SwitchId) -> SwitchId {
        SwitchId(switch.0 % self.switches_per_plane())
    }

    /// A leaf, by its number in its plane.
    pub fn leaf_in_plane(&self, leaf: u32, plane: u32) -> SwitchId {
        SwitchId(plane * self.switches_per_plane() + leaf)
    }

    /// The switches of a plane.
    pub fn switches_of_plane(&self, plane: u32) -> impl Iterator<Item = SwitchId> + use<> {
        let all = self.switches_per_plane();
        (plane * all..(plane + 1) * all).map(SwitchId)
    }

    /// The leaves, each as its plane and its number there.
    pub fn leaves_of_planes(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let leaves = self.leaves;
        (0..self.planes).flat_map(move |plane| (0..leaves).map(move |leaf| (plane, leaf)))
    }

    /// The ports of all NICs, plane by plane.
    pub fn nics(&self) -> impl Iterator<Item = PortId> + '_ {
        let first = (0..self.nic_ports()).map(|port| self.nic_in_plane(HostId(0), port).0);
        first.flat_map(|first| (first..first + self.hosts).map(PortId))
    }

    /// The port of a host's NIC in a plane, or at one of its homes.
    pub fn nic_in_plane(&self, host: HostId, plane: u32) -> PortId {
        let each = if self.homes() > 1 { self.hosts } else { self.ports_per_plane() };
        PortId(plane * each + host.0)
    }
}
