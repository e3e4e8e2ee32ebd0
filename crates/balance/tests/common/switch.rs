//! A switch with queues of so many bytes.

use crate::common::chi_square;
use std::sync::LazyLock;
use weft_balance::Switching;
use weft_balance::forward::{Hops, Passing, SwitchContext};
use weft_balance::scheme::{BalanceConfig, SchemeConfig};
use weft_fabric::{Clos, Fabric, Link};
use weft_units::{HostId, PortId, Rate, SwitchId, Time};

/// Bytes that a queue holds.
pub(crate) const BUFFER: u64 = 1_000;

/// Queues of so many bytes.
pub(crate) struct Queues {
    pub(crate) group: u32,
    pub(crate) queued: Vec<u64>,
}

impl Hops for Queues {
    fn count(&self) -> u32 {
        self.queued.len() as u32
    }
    fn queued(&self, hop: u32) -> u64 {
        self.queued[hop as usize]
    }
    fn port(&self, hop: u32) -> PortId {
        PortId(self.group() + hop)
    }
    fn group(&self) -> u32 {
        self.group
    }
    fn places(&self) -> u32 {
        self.count()
    }
    fn place(&self, hop: u32) -> u32 {
        hop
    }
    fn weights(&self) -> Option<&[u32]> {
        None
    }
}

pub(crate) fn queues(queued: &[u64]) -> Queues {
    Queues { group: 0, queued: queued.to_vec() }
}
pub(crate) fn empty(count: usize) -> Queues {
    queues(&vec![0; count])
}
pub(crate) const LINK: Link = Link { rate: Rate::gbps(100), delay: Time::us(1) };

/// Where a switch is, unless that matters.
static ANYWHERE: LazyLock<Fabric> =
    LazyLock::new(|| Fabric::build(&Clos::leaf_spine(4_000, 1, 1, LINK)).unwrap());

pub(crate) fn switch(scheme: &SchemeConfig, switch: u32, seed: u64) -> Switching {
    switch_of(&ANYWHERE, scheme, switch, seed)
}
pub(crate) fn switch_of(
    fabric: &Fabric,
    scheme: &SchemeConfig,
    switch: u32,
    seed: u64,
) -> Switching {
    let (scheme, start_jitter) = (scheme.clone(), Time::ZERO);
    let config = BalanceConfig { scheme, start_jitter, random_position: false, bdp: 1 };
    let context = SwitchContext { switch: SwitchId(switch), fabric, seed, buffer: BUFFER };
    Switching::new(&config, &context)
}
pub(crate) fn named(scheme: &str, options: &[(&str, &str)]) -> Switching {
    switch(&SchemeConfig::read(scheme, options).unwrap(), 3, 1)
}
/// A packet of `flow`, hashed to hop 1.
pub(crate) fn packet(now: Time, flow: u64) -> Passing {
    Passing {
        now,
        flow,
        dst: HostId(5),
        control: false,
        entropy: 9,
        hashed: 1,
        hash: 0,
        bytes: 1_000,
    }
}
/// `packets` packets of one flow at one time.
pub(crate) fn take(switching: &mut Switching, packets: usize, hops: &Queues) -> Vec<u32> {
    (0..packets).map(|_| switching.choose(&packet(Time::ZERO, 0), hops)).collect()
}
/// How often each hop was taken.
pub(crate) fn counts(taken: &[u32], hops: usize) -> Vec<u64> {
    let mut counts = vec![0; hops];
    taken.iter().for_each(|hop| counts[*hop as usize] += 1);
    counts
}
/// Whether `counts` are those of equally likely cells: the statistic within 4.5 standard
/// deviations of its mean.
pub(crate) fn is_even(counts: &[u64]) -> bool {
    let free = counts.len() as f64 - 1.0;
    (chi_square(counts) - free).abs() < 4.5 * (2.0 * free).sqrt()
}
pub(crate) fn sorted(list: &[u32]) -> Vec<u32> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list
}
