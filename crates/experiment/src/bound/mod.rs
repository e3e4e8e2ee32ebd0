//! A lower bound on the completion time of a workload, whatever balances it.
//!
//! The larger of two:
//!
//! - `cuts`: all that must cross a set of links, over what that set carries while some of them
//!   are degraded or down;
//! - `dag`: along dependencies, what each message needs on an empty network. Of jobs this is
//!   [`weft_workload::job::earliest`], compute and all.
//!
//! Invariant: no run may finish earlier, with any splitting, any order and any paths. So a
//! message of `b` bytes is counted as `b` plus one header for each full or last packet, the
//! least that any splitting leaves, and the packet that opens or closes the use of a link may
//! be as small as one byte with its header, which splitting can bring about. Acknowledgements,
//! windows, jitter and losses only make a run longer; they are left out, and so are flaky links.

mod carrying;
mod cuts;
mod dag;
mod jobs;
mod sparsest;

use crate::traffic::{Stream, Traffic};
use sparsest::Sent;
use weft_fabric::{Fabric, Failures, Node, Port};
use weft_sim::PacketConfig;
use weft_units::{HostId, Rate, Time};

/// The least time in which `traffic` can be received in full, and all ranks be done, on `fabric`
/// under `failures`.
pub fn bound(
    fabric: &Fabric,
    failures: &Failures,
    traffic: &Traffic,
    packet: &PacketConfig,
) -> Time {
    let ground = Ground::new(fabric, packet);
    let carrying = carrying::carrying(fabric, failures, packet);
    if let Some(ranks) = &traffic.ranks {
        let cuts = cuts::fullest_of(&ground, &carrying, traffic);
        let sparsest = sparsest::fullest(&ground, failures, |each| {
            traffic.streams(|Stream { src, dst, bytes, times, .. }| {
                let wire_bytes = ground.wire_bytes(bytes) * times;
                each(Sent { src, dst, wire_bytes, posted: Time::ZERO });
            });
        });
        let alone = jobs::along(&ground, ranks).max(jobs::within_servers(ranks));
        return alone.max(cuts).max(sparsest);
    }
    let workload = &traffic.workload;
    let posted = dag::earliest(&ground, workload);
    let along = dag::longest(&ground, workload, &posted);
    let sparsest = sparsest::fullest(&ground, failures, |each| {
        for (id, message) in workload.messages().enumerate() {
            let wire_bytes = ground.wire_bytes(message.bytes);
            each(Sent { src: message.src, dst: message.dst, wire_bytes, posted: posted[id] });
        }
    });
    along.max(cuts::fullest(&ground, &carrying, workload, &posted)).max(sparsest)
}

/// What both bounds know about the fabric.
struct Ground<'a> {
    fabric: &'a Fabric,
    packet: &'a PacketConfig,
    /// By the number of links: in a Clos within a rack, within a pod, across pods. All paths of
    /// a kind have the same links there; in other networks none is faster.
    paths: Vec<Option<Path>>,
}

/// The links of one kind of path, source first.
#[derive(Clone, Debug)]
struct Path {
    /// From leaving the source until the smallest packet can start on link `i`.
    before: Vec<Time>,
    /// From the last bit of the smallest packet on link `i` until it is received.
    after: Vec<Time>,
    /// The way back of an acknowledgement.
    back: Time,
}

impl<'a> Ground<'a> {
    fn new(fabric: &'a Fabric, packet: &'a PacketConfig) -> Ground<'a> {
        let smallest = u64::from(packet.header) + 1;
        let Some(clos) = fabric.clos() else {
            return Ground { fabric, packet, paths: fastest_paths(fabric, packet, smallest) };
        };
        let in_pod = clos.hosts_per_leaf * clos.leaves_per_pod();
        let mut paths = vec![None; 1 + fabric.most_hops() as usize];
        for far in [1, clos.hosts_per_leaf, in_pod] {
            let (src, dst) = (HostId(0), HostId(far));
            if far == 0 || far >= fabric.hosts() || !fabric.reaches(src, dst) {
                continue;
            }
            let links = links(fabric, src, dst);
            let back = fabric.one_way(dst, src, u64::from(packet.ack));
            paths[links.len()] = Some(Path::new(&links, smallest, back));
        }
        Ground { fabric, packet, paths }
    }

    fn path(&self, src: HostId, dst: HostId) -> &Path {
        let links = self.fabric.least_links(src, dst) as usize;
        self.paths[links].as_ref().expect("every kind of path has been measured")
    }

    /// What `bytes` of payload are on a wire, at the least.
    fn wire_bytes(&self, bytes: u64) -> u64 {
        let packets = bytes.div_ceil(u64::from(self.packet.mtu));
        bytes + packets * u64::from(self.packet.header)
    }

    /// The rate of a NIC, in bits per second.
    fn nic(&self) -> u128 {
        u128::from(self.fabric.line_rate().as_bps())
    }

    /// From post to receipt of a message that has the network to itself: the source's NIC
    /// serialises all of it; the last packet then crosses the rest of the path.
    fn alone(&self, src: HostId, dst: HostId, bytes: u64) -> Time {
        drain(self.wire_bytes(bytes), self.nic()) + self.path(src, dst).after[0]
    }
}

/// For each number of links a path over the fastest links that there are, in a network of any shape.
fn fastest_paths(fabric: &Fabric, packet: &PacketConfig, smallest: u64) -> Vec<Option<Path>> {
    let fastest = |of: fn(&Port) -> bool| {
        let all = || fabric.ports().iter().filter(|port| of(port));
        let (rate, delay) = (all().map(|port| port.rate).max(), all().map(|port| port.delay).min());
        rate.zip(delay)
    };
    let out = fastest(|port| matches!(port.owner, Node::Host(_))).expect("there are hosts");
    let into = fastest(|port| matches!(port.peer, Node::Host(_))).expect("there are hosts");
    let between =
        fastest(|port| matches!((port.owner, port.peer), (Node::Switch(_), Node::Switch(_))));
    let path = |links: usize| {
        let middle = links.checked_sub(2)?;
        let middle = std::iter::repeat_n(between, middle).collect::<Option<Vec<_>>>()?;
        let links: Vec<_> = std::iter::once(out).chain(middle).chain([into]).collect();
        let ack = |(rate, delay): &(Rate, Time)| rate.serialize(u64::from(packet.ack)) + *delay;
        let back = links.iter().map(ack).fold(Time::ZERO, |sum, link| sum + link);
        Some(Path::new(&links, smallest, back))
    };
    (0..=fabric.most_hops() as usize).map(path).collect()
}

fn links(fabric: &Fabric, src: HostId, dst: HostId) -> Vec<(Rate, Time)> {
    let ports = fabric.sample_path(src, dst).into_iter().map(|port| fabric.ports()[port]);
    ports.map(|port| (port.rate, port.delay)).collect()
}

impl Path {
    fn new(links: &[(Rate, Time)], smallest: u64, back: Time) -> Path {
        let full = |(rate, delay): &(Rate, Time)| rate.serialize(smallest) + *delay;
        let sum =
            |links: &[(Rate, Time)]| links.iter().fold(Time::ZERO, |sum, link| sum + full(link));
        let before = (0..links.len()).map(|at| sum(&links[..at])).collect();
        let after = (0..links.len()).map(|at| links[at].1 + sum(&links[at + 1..])).collect();
        Path { before, after, back }
    }
}

/// The time that `bytes` take at `bits` per second, rounded down: a bound rounds in favour of
/// the run.
fn drain(bytes: u64, bits: u128) -> Time {
    let ps = u128::from(bytes) * 8_000_000_000_000 / bits;
    Time(u64::try_from(ps).unwrap_or(u64::MAX / 4))
}
