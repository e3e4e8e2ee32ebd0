//! How much of what goes to a leaf each next hop should carry: weights for WCMP (Zhou et al.,
//! EuroSys 2014, section 4), in proportion to the capacity that is left.
//!
//! What a switch can carry towards a leaf is shared by all that send through it, and nobody knows
//! how many these are. So capacity is counted as a share of what there is in a fabric without
//! failures, where equal weights are right. A hop has the share left that its own link has, or the
//! switch behind it if that is less; a switch has the mean of its hops, dead ones included. In a
//! leaf-spine hops weigh what is left of their link up and the link down behind it; in a fat-tree
//! a leaf sends half as much to an aggregation switch that has lost half of its ways to a pod.
//!
//! Only what is not equal is kept. Memory in switches is no object here: the paper's reduction of
//! weights to what hash tables hold is left out.

use crate::exceptions::Exceptions;
use crate::{Fabric, LinkShares, Node};
use weft_units::{HostId, IdVec, PortId, SwitchId};

/// The weights that are not all the same. Rebuilt whenever routing learns of a change.
#[derive(Clone, Debug)]
pub struct Weights(Exceptions<u32>);

/// The largest weight of a list. With up to 65535 hops sums stay below 2^32.
const MOST: u64 = 1 << 16;

impl Weights {
    /// For `fabric` if `rate` is what is left of the rate of each port in bits per second, zero
    /// where it is known to be dead. Visits every port of the fabric once for each leaf.
    pub fn new(fabric: &Fabric, rate: impl Fn(PortId) -> u64) -> Weights {
        Weights::by_shares(fabric, &LinkShares::new(fabric, rate))
    }

    /// The same by what is left of each link.
    pub fn by_shares(fabric: &Fabric, left: &LinkShares) -> Weights {
        let mut weights = Exceptions::new(fabric);
        if left.are_whole() {
            return Weights(weights);
        }
        for (plane, leaf) in fabric.leaves_of_planes() {
            let mut search = Search::new(fabric, left, (plane, leaf));
            let leaf = fabric.leaf_in_plane(leaf, plane);
            for switch in fabric.switches_of_plane(plane).filter(|id| *id != leaf) {
                search.share(switch, &mut weights);
            }
        }
        Weights(weights)
    }

    /// Whether all weights of every list are the same.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The weights of the hops of `switch` towards `dst` that are usable, in port order: none is
    /// zero, the largest is 65536. `None`: all the same. Usable are those of
    /// [`crate::Detours::next_hops`].
    #[inline]
    pub fn of(&self, switch: SwitchId, dst: HostId) -> Option<&[u32]> {
        self.0.get(switch, dst)
    }
}

/// What is left of the ways to one leaf.
struct Search<'a> {
    fabric: &'a Fabric,
    /// Of each link.
    left: &'a LinkShares,
    leaf: u32,
    /// Of each switch; unknown until asked for.
    shares: IdVec<SwitchId, Option<u64>>,
}

impl Search<'_> {
    fn new<'a>(fabric: &'a Fabric, left: &'a LinkShares, (plane, leaf): (u32, u32)) -> Search<'a> {
        let mut shares: IdVec<SwitchId, Option<u64>> =
            (0..fabric.switches()).map(|_| None).collect();
        shares[fabric.leaf_in_plane(leaf, plane)] = Some(LinkShares::WHOLE);
        Search { fabric, left, leaf, shares }
    }

    /// The share of `switch`; notes its weights. Goes four switches deep at most.
    fn share(&mut self, switch: SwitchId, weights: &mut Exceptions<u32>) -> u64 {
        if let Some(known) = self.shares[switch] {
            return known;
        }
        let dst = self.fabric.first_host(self.leaf);
        let hops = self.fabric.equal_hops(switch, dst);
        let all: Vec<u64> = hops.iter().map(|port| self.through(*port, weights)).collect();
        let usable: Vec<u64> = all.iter().copied().filter(|share| *share > 0).collect();
        if let Some(most) = usable.iter().copied().max()
            && usable.iter().any(|share| *share != most)
        {
            let weight = |share: &u64| ((share * MOST + most / 2) / most).max(1) as u32;
            weights.note(switch, self.leaf, &usable.iter().map(weight).collect::<Vec<_>>());
        }
        let share = all.iter().sum::<u64>() / (all.len() as u64).max(1);
        let share = share.max(u64::from(!usable.is_empty()));
        self.shares[switch] = Some(share);
        share
    }

    fn through(&mut self, port: PortId, weights: &mut Exceptions<u32>) -> u64 {
        let own = self.left.of(port);
        match self.fabric.ports()[port].peer {
            Node::Switch(next) if own > 0 => own.min(self.share(next, weights)),
            _ => own,
        }
    }
}
