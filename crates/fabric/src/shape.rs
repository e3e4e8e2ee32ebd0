//! What a fabric is built from: counts of a folded Clos, or all that any other network has.

use crate::{Clos, Fabric, FabricError, Wiring};
use std::sync::Arc;
use weft_units::{Rate, Time};

/// A network that is described, not built. Cheap to share.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A folded Clos, by arithmetic.
    Clos(Clos),
    /// Any other, by tables.
    Wiring(Arc<Wiring>),
}

impl From<Wiring> for Shape {
    fn from(wiring: Wiring) -> Shape {
        Shape::Wiring(Arc::new(wiring))
    }
}

impl Shape {
    /// Rails that never meet; `None`: every host reaches every other.
    pub fn rails(&self) -> Option<u32> {
        match self {
            Shape::Clos(clos) => clos.rails(),
            Shape::Wiring(_) => None,
        }
    }
    /// Switches with hosts.
    pub fn leaves(&self) -> u32 {
        match self {
            Shape::Clos(clos) => clos.pods() * clos.leaves_per_pod(),
            Shape::Wiring(wiring) => wiring.leaves(),
        }
    }
    /// Hosts of each of them; the fewest, where some have more.
    pub fn hosts_per_leaf(&self) -> u32 {
        match self {
            Shape::Clos(clos) => clos.hosts_per_leaf,
            Shape::Wiring(_) => self.hosts_of_leaves().into_iter().min().unwrap_or(0),
        }
    }
    /// Hosts of each leaf.
    pub fn hosts_of_leaves(&self) -> Vec<u32> {
        match self {
            Shape::Clos(clos) => vec![clos.hosts_per_leaf; self.leaves() as usize],
            Shape::Wiring(wiring) => {
                wiring.hosts.chunk_by(|a, b| a == b).map(|hosts| hosts.len() as u32).collect()
            }
        }
    }
    /// How many links there are, those of hosts included.
    pub fn links(&self) -> u64 {
        match self {
            Shape::Clos(clos) => clos.links(),
            Shape::Wiring(wiring) => {
                let hosts = wiring.hosts.len() as u64 * u64::from(wiring.nic_ports());
                hosts + wiring.cables.len() as u64
            }
        }
    }
    /// The lowest rate of any link.
    pub fn slowest(&self) -> Rate {
        match self {
            Shape::Clos(clos) => clos.slowest(),
            Shape::Wiring(wiring) => {
                let rates = wiring.cables.iter().map(|cable| cable.link.rate);
                rates.fold(wiring.host_link.rate, Rate::min)
            }
        }
    }
    /// Packets spend so long in each switch, and in the NIC that receives them.
    pub fn set_latencies(&mut self, switch: Time, nic: Time) {
        match self {
            Shape::Clos(clos) => (clos.switch_latency, clos.nic_latency) = (switch, nic),
            Shape::Wiring(wiring) => {
                let wiring = Arc::make_mut(wiring);
                (wiring.switch_latency, wiring.nic_latency) = (switch, nic);
            }
        }
    }
    /// The same, so many neighbouring leaves sharing their hosts, which have a port at each.
    ///
    /// # Errors
    /// If that cannot be.
    pub fn homed(self, homes: u32) -> Result<Shape, FabricError> {
        match self {
            it if homes == 1 => Ok(it),
            Shape::Clos(clos) => Wiring::homed(&clos, homes).map(Shape::from),
            Shape::Wiring(_) => Err(FabricError(
                "leaves are of folded Clos: remove it, or write a graph with other_switches".into(),
            )),
        }
    }
    /// Builds it.
    ///
    /// # Errors
    /// As [`Fabric::build`] and [`Fabric::of_wiring`].
    pub fn build(self) -> Result<Fabric, FabricError> {
        match self {
            Shape::Clos(clos) => Fabric::build(&clos),
            Shape::Wiring(wiring) => Fabric::of_wiring(Arc::unwrap_or_clone(wiring)),
        }
    }
}
