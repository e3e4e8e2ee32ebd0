//! Readable names of switches, hosts and links.

use super::{Fabric, LEAF, MID, Node};
use crate::{Clos, Shape};
use weft_units::id::Id;
use weft_units::{PortId, SwitchId};

impl Fabric {
    /// A readable name: `host-3`, `leaf-0`, `spine-7`, `pod-1-agg-0`, `core-2`, `rail-3-leaf-0`.
    pub fn name(&self, node: Node) -> String {
        let Node::Switch(id) = node else {
            let Node::Host(host) = node else { unreachable!() };
            return format!("host-{}", host.0);
        };
        let clos = match &self.shape {
            Shape::Clos(clos) => clos,
            Shape::Wiring(wiring) => return wiring.names[id.index()].clone(),
        };
        if self.planes > 1 {
            let first = self.in_first_plane(id);
            return format!("plane-{}-{}", self.plane_of(id), name_in_clos(clos, self, first));
        }
        name_in_clos(clos, self, id)
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
}

/// The name of a switch of the first plane, without that of the plane.
fn name_in_clos(clos: &Clos, fabric: &Fabric, id: SwitchId) -> String {
    let leaves = fabric.leaves();
    let mids = clos.pods() * clos.mids_per_pod();
    if clos.rails().is_some() {
        let (what, place, each) = match fabric.tier(id) {
            LEAF => ("leaf", id.0, clos.leaves_per_pod()),
            _ => ("spine", id.0 - leaves, clos.mids_per_pod()),
        };
        return format!("rail-{}-{what}-{}", place / each, place % each);
    }
    match fabric.tier(id) {
        LEAF => format!("leaf-{}", id.0),
        MID if clos.cores() == 0 => format!("spine-{}", id.0 - leaves),
        MID => {
            let mid = id.0 - leaves;
            let per_pod = clos.mids_per_pod();
            format!("pod-{}-agg-{}", mid / per_pod, mid % per_pod)
        }
        _ => format!("core-{}", id.0 - leaves - mids),
    }
}
