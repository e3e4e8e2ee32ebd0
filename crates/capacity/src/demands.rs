//! Traffic matrices: how much each host wants to send to each other.
//!
//! Invariant: all rates are whole numbers of 1/`per` bits per second, so that an all-to-all at
//! full rate, which divides the rate of a host by the number of its peers, is exact.

use weft_fabric::Fabric;
use weft_units::id::Id;
use weft_units::{HostId, IdVec};

/// Rates from hosts to hosts, summed by pairs of leaves. Memory: 8 bytes for each pair of
/// leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demands {
    pub(crate) per: u64,
    leaves: u32,
    /// What each host sends and receives.
    pub(crate) sent: IdVec<HostId, u64>,
    pub(crate) received: IdVec<HostId, u64>,
    /// From leaf to leaf, row by row; what stays within a leaf is not kept.
    between: Vec<u64>,
}

impl Demands {
    /// No traffic.
    pub fn none(fabric: &Fabric) -> Demands {
        let leaves = fabric.leaves();
        let zeros = || (0..fabric.hosts()).map(|_| 0).collect();
        let between = vec![0; leaves as usize * leaves as usize];
        Demands { per: 1, leaves, sent: zeros(), received: zeros(), between }
    }

    /// Every host sends equally to all others, together at the rate of its link.
    pub fn all_to_all(fabric: &Fabric) -> Demands {
        let mut demands = Demands::none(fabric);
        demands.per = u64::from(fabric.hosts() - 1).max(1);
        for src in (0..fabric.hosts()).map(HostId) {
            let rate = fabric.ports()[fabric.nic(src)].rate.as_bps();
            for dst in (0..fabric.hosts()).map(HostId).filter(|dst| *dst != src) {
                demands.put(fabric, src, dst, rate);
            }
        }
        demands
    }

    /// Every host sends to one other at the rate of its link: host `i` to `to[i]`, or to nobody
    /// where that is itself.
    pub fn permutation(fabric: &Fabric, to: &[HostId]) -> Demands {
        let mut demands = Demands::none(fabric);
        for (src, dst) in to.iter().enumerate() {
            let src = HostId::from_index(src);
            demands.add(fabric, src, *dst, fabric.ports()[fabric.nic(src)].rate.as_bps());
        }
        demands
    }

    /// Adds `rate` bits per second from `src` to `dst`.
    pub fn add(&mut self, fabric: &Fabric, src: HostId, dst: HostId, rate: u64) {
        self.put(fabric, src, dst, rate * self.per);
    }

    /// Adds `rate` bits per second from the leaf `src` to the leaf `dst`, from and to nobody in
    /// particular: the links of hosts are not asked for it.
    pub fn add_between(&mut self, src: u32, dst: u32, rate: u64) {
        if src != dst {
            self.between[(src * self.leaves + dst) as usize] += rate * self.per;
        }
    }

    fn put(&mut self, fabric: &Fabric, src: HostId, dst: HostId, amount: u64) {
        if src == dst {
            return;
        }
        self.sent[src] += amount;
        self.received[dst] += amount;
        let (from, to) = (fabric.leaf_of(src), fabric.leaf_of(dst));
        if from != to {
            self.between[(from * self.leaves + to) as usize] += amount;
        }
    }

    /// From leaf to leaf, in 1/`per` bits per second.
    pub(crate) fn between(&self, src: usize, dst: usize) -> u64 {
        self.between[src * self.leaves as usize + dst]
    }
}
