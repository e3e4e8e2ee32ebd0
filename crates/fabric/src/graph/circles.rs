//! Shortest paths on which packets may wait for each other in a circle.

use super::{Fabric, LEAF, Node};
use crate::Shape;
use std::collections::BTreeSet;
use weft_units::id::Id;
use weft_units::{IdVec, PortId, SwitchId};

impl Fabric {
    /// Whether packets on shortest paths may wait for each other in a circle: where full switches pause
    /// those before them, they may do so for ever (Dally and Seitz 1987). Never in a Clos.
    pub fn has_circular_routes(&self) -> bool {
        match &self.shape {
            Shape::Clos(_) => return false,
            Shape::Wiring(wiring) => {
                if let Some(grid) = &wiring.grid {
                    return grid.has_circles();
                }
            }
        }
        // Which ports packets go on to from each port.
        let mut onward: IdVec<PortId, BTreeSet<PortId>> =
            self.ports.iter().map(|_| BTreeSet::new()).collect();
        for leaf in 0..self.leaves {
            // Packets come from leaves; other switches see those that these send there.
            let mut comes_by: Vec<bool> =
                self.switches.iter().map(|switch| switch.tier == LEAF).collect();
            let leaves = self.switches.ids().filter(|id| self.tier(*id) == LEAF);
            let mut next: Vec<SwitchId> = leaves.collect();
            while let Some(switch) = next.pop() {
                for hop in self.routes.next_hops(switch, leaf) {
                    let Node::Switch(peer) = self.ports[*hop].peer else { continue };
                    onward[*hop].extend(self.routes.next_hops(peer, leaf));
                    if !std::mem::replace(&mut comes_by[peer.index()], true) {
                        next.push(peer);
                    }
                }
            }
        }
        let mut before: IdVec<PortId, u32> = self.ports.iter().map(|_| 0).collect();
        onward.iter().flatten().for_each(|port| before[*port] += 1);
        let mut free: Vec<PortId> = before.ids().filter(|port| before[*port] == 0).collect();
        let mut seen = 0;
        while let Some(port) = free.pop() {
            seen += 1;
            for next in &onward[port] {
                before[*next] -= 1;
                free.extend((before[*next] == 0).then_some(*next));
            }
        }
        seen < self.ports.len()
    }
}
