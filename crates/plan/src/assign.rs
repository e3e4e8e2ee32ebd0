//! Which way every subflow of a step takes, by the very planners that hosts run.

use crate::network::{Hashes, PlannedFabric, RoutedPath};
use crate::path_shares::PathShares;
use crate::steps::Transfer;
use weft_balance::Planner;
use weft_balance::known::Known;
use weft_balance::plan::{Carrier, FlowInfo, Post, QueuePairId, Route, Subflow};
use weft_balance::scheme::BalanceConfig;
use weft_fabric::{LinkShares, PathWeights};
use weft_units::{Draw, HostId, MessageId, PortId, Time};

/// A subflow of a message, and its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which of the step's messages.
    pub message: u32,
    /// Which part of it: 0, 1, ...
    pub part: u32,
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Pinned to a path, or hashed by a source port.
    pub route: Route,
    /// Where it goes: as pinned, or as the switches' hash has it.
    pub way: RoutedPath,
    /// The persistent queue pair of its host, if it is on one.
    pub queue_pair: Option<QueuePairId>,
}

/// A message that has no way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// From here.
    pub src: HostId,
    /// To there.
    pub dst: HostId,
}

/// The planners of all hosts, and what they know.
#[derive(Clone, Debug)]
pub struct Hosts {
    balance: BalanceConfig,
    hashes: Hashes,
    mtu: u32,
    /// What they are told of links.
    known: Known,
}

impl Hosts {
    /// Of `network`, under `balance`; `mtu` is the payload of a full packet, in bytes.
    pub fn new(
        network: &PlannedFabric<'_>,
        balance: &BalanceConfig,
        hashes: Hashes,
        mtu: u32,
    ) -> Hosts {
        let rates = |port: PortId| network.capacities[port];
        let known = Known::beside_rules(network.fabric, &balance.scheme, rates);
        Hosts { balance: balance.clone(), hashes, mtu, known }
    }

    /// The same with the shares that `spread` gives to paths, if hosts are told of links at all.
    #[must_use]
    pub fn knowing(mut self, spread: &PathShares) -> Hosts {
        for (leaves, shares) in &spread.pairs {
            let weight = |share: f64| (share * LinkShares::WHOLE as f64) as u64;
            let weights = || shares.iter().map(|(path, share)| (*path, weight(*share)));
            self.known.give(*leaves, || PathWeights::new(weights()));
        }
        self
    }

    fn planner(&self, host: HostId, network: &PlannedFabric<'_>) -> Planner {
        let Hashes { seed, .. } = self.hashes;
        let hashing = self.hashes.known();
        let mut planner = Planner::knowing(hashing, &self.balance, host, seed, self.mtu);
        self.known.tell(Time::ZERO, &mut planner, network.fabric);
        planner
    }
}

/// Plans messages of a step, which stand by sender: each host posts its own at one instant. They
/// are all of its senders', and the first of them is the step's message `first`.
/// `each` gets every subflow, in the order in which hosts hand them to their NICs.
///
/// # Errors
/// If there is no live way.
pub fn assign(
    network: &mut PlannedFabric<'_>,
    hosts: &Hosts,
    (first, messages): (u32, &[Transfer]),
    mut each: impl FnMut(&Placed),
) -> Result<(), Unreachable> {
    let seed = hosts.hashes.seed;
    let keys = Draw::new(seed, "flow-key");
    let mut number = first;
    let mut subflows = Vec::new();
    for posts in messages.chunk_by(|a, b| a.src == b.src) {
        let src = posts[0].src;
        let mut planner = hosts.planner(src, network);
        hand_over(&mut planner, posts, number, network, &mut subflows);
        number += posts.len() as u32;
        for subflow in subflows.drain(..) {
            let Subflow { dst, route, bytes, part, .. } = subflow;
            let queue_pair = subflow.carrier.persistent();
            let key = match queue_pair {
                None => keys.at(u64::from(subflow.message.0), u64::from(part)),
                Some(id) => {
                    let pair = u64::from(src.0) << 32 | u64::from(id.0);
                    Draw::new(seed, "queue-pair-key").at(pair, u64::from(dst.0))
                }
            };
            let way = network.way(src, dst, route, key as u32);
            let alive =
                |way: &RoutedPath| way.ports().iter().all(|port| network.capacities[*port] > 0);
            let way = way.filter(alive).ok_or(Unreachable { src, dst })?;
            let message = subflow.tag;
            each(&Placed { message, part, src, dst, bytes, route, way, queue_pair });
        }
    }
    Ok(())
}

/// Posts the messages of one host, of which the first is number `first` of the step, and takes
/// every subflow of them, those that wait for a queue pair included.
fn hand_over(
    planner: &mut Planner,
    posts: &[Transfer],
    first: u32,
    network: &PlannedFabric<'_>,
    out: &mut Vec<Subflow>,
) {
    let fabric = network.fabric;
    for (tag, one) in (first..).zip(posts) {
        let Transfer { dst, bytes, job, ranks, .. } = *one;
        let post = Post { message: MessageId(tag), dst, bytes, job, ranks, tag };
        planner.post(Time::ZERO, post, fabric, out);
    }
    while let Some(due) = planner.deadline() {
        planner.flush(due, fabric, out);
    }
    let (mut at, mut done) = (0, 0);
    while let Some(subflow) = out.get(at) {
        if let Carrier::Persistent { queue_pair, .. } = subflow.carrier
            && let Some(next) = planner.next(Time::ZERO, queue_pair, fabric)
        {
            out.push(next);
        }
        at += 1;
        // Who waits for answers has them, once all that could leave has left.
        while at == out.len() && done < at {
            let flow = FlowInfo::from(&out[done]);
            if flow.queue_pair.is_some() {
                planner.sent(Time::ZERO, &flow, fabric, out);
            }
            done += 1;
        }
    }
}
