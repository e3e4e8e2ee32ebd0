//! Along the dependencies of jobs, and what leaves each rank over its scale-up link.

use super::{Ground, drain};
use crate::traffic::Ranks;
use std::ops::ControlFlow;
use weft_fabric::{RelayAt, Relays};
use weft_units::{HostId, Time};
use weft_workload::job::{IdleNetwork, Joined, Traffic, earliest};

/// When the last rank can be done: each message has the network to itself.
pub(super) fn along(ground: &Ground<'_>, ranks: &Ranks) -> Time {
    let mut first = 0;
    let ends = ranks.jobs.iter().enumerate().map(|(number, job)| {
        let end = earliest(job, &Alone { ground, ranks, number, first });
        first += job.ranks();
        end
    });
    ends.max().unwrap_or(Time::ZERO)
}

/// When the last rank can be done: each sends all it has for others of its server one by one.
pub(super) fn within_servers(ranks: &Ranks) -> Time {
    let Ranks { jobs, servers, scale_up, relays, .. } = ranks;
    let mut count = servers.clone();
    count.sort_unstable();
    count.dedup();
    if count.len() == servers.len() && relays.is_none() {
        return Time::ZERO;
    }
    let relays = relays.as_ref();
    let gpu = |rank: u32| relays.map_or(rank, |relays| relays.gpus[rank as usize]) as usize;
    let gpus = relays.map_or(servers.len(), |relays| relays.nics.len());
    let (mut first, mut fullest) = (0, Time::ZERO);
    for job in jobs {
        let mut busy = vec![Time::ZERO; gpus];
        let mut taking = busy.clone();
        let _ = job.traffic(|Traffic { src, dst, bytes, times }| {
            let [src, dst] = [src, dst].map(|rank| first + rank);
            let sender = match servers[src as usize] == servers[dst as usize] {
                true => Some(gpu(src)),
                // What a relay in its own server gets from the sender, or what one passes on to the receiver.
                false => relays.and_then(|relays| {
                    let relay = relays.between(src, dst)? as usize;
                    Some(if relays.pxn.at == RelayAt::Source { gpu(src) } else { relay })
                }),
            };
            if let Some(sender) = sender {
                let busy = &mut busy[sender];
                *busy =
                    busy.saturating_add(Time(scale_up.serialize(bytes).0.saturating_mul(times)));
            }
            ControlFlow::Continue(())
        });
        for rank in 0..job.ranks() {
            let add = |busy: &mut Time, bytes: u64, times: u64| {
                *busy =
                    busy.saturating_add(Time(scale_up.serialize(bytes).0.saturating_mul(times)));
            };
            job.switched(rank, |set, place, part, times| {
                if ranks.share_server(job, first, &set) {
                    let (out, into) = part.within_server(place);
                    add(&mut busy[gpu(first + rank)], out, times);
                    add(&mut taking[gpu(first + rank)], into, times);
                }
            });
        }
        first += job.ranks();
        fullest = busy.into_iter().chain(taking).fold(fullest, Time::max);
    }
    // From the last byte of a link until it is there; nothing at all takes no time.
    if fullest == Time::ZERO { fullest } else { fullest.saturating_add(scale_up.latency) }
}

/// The network of the job whose first rank is `first`.
struct Alone<'a> {
    ground: &'a Ground<'a>,
    ranks: &'a Ranks,
    number: usize,
    first: u32,
}

impl Alone<'_> {
    /// The hosts of two ranks, unless they are in one server.
    fn hosts(&self, src: u32, dst: u32) -> Option<(HostId, HostId)> {
        let servers = &self.ranks.servers;
        let [src, dst] = [src, dst].map(|rank| self.first + rank);
        let apart = servers[src as usize] != servers[dst as usize];
        apart.then(|| self.ranks.ends(src, dst))
    }
    /// The relays, if a GPU passes on what one rank sends to another.
    fn relays(&self, src: u32, dst: u32) -> Option<&Relays> {
        let relays = self.ranks.relays.as_ref()?;
        relays.between(self.first + src, self.first + dst).map(|_| relays)
    }
}

impl IdleNetwork for Alone<'_> {
    fn alone(&self, src: u32, dst: u32, bytes: u64) -> (Time, Time) {
        let link = self.ranks.scale_up;
        let Some((from, to)) = self.hosts(src, dst) else {
            let there = link.serialize(bytes) + link.latency;
            return (there, there + link.latency);
        };
        let over = self.ground.alone(from, to, bytes);
        let known = over + self.ground.path(from, to).back;
        let Some(relays) = self.relays(src, dst) else { return (over, known) };
        // Of what a relay passes on, one piece is for a while nowhere else.
        let piece = link.serialize(bytes.min(relays.pxn.chunk)) + link.latency;
        match relays.pxn.at {
            RelayAt::Source => (over + piece, known + piece),
            RelayAt::Destination => (over + piece, known),
        }
    }
    fn intake(&self, src: u32, dst: u32, bytes: u64) -> Time {
        let relays = self.relays(src, dst);
        // What relays pass on comes by their NICs.
        let own = relays.is_none_or(|relays| relays.pxn.at == RelayAt::Source);
        match self.hosts(src, dst).filter(|_| own) {
            Some(_) => drain(self.ground.wire_bytes(bytes), self.ground.nic()),
            None => Time::ZERO,
        }
    }
    fn switched(&self, last: u32, joined: &Joined, rank: u32, place: u32) -> Time {
        let Joined { set, place: from, part, .. } = joined;
        let job = &self.ranks.jobs[self.number];
        if self.ranks.share_server(job, self.first, set) {
            let link = self.ranks.scale_up;
            let busy = part.within_server(*from).0.max(part.within_server(place).1);
            return link.serialize(busy) + Time(link.latency.0 * part.crossings());
        }
        match (part.passes(*from, place), self.hosts(last, rank)) {
            (0, _) => Time::ZERO,
            (bytes, Some((src, dst))) => self.ground.alone(src, dst, bytes),
            // Up to the first switch and back.
            (bytes, None) => drain(self.ground.wire_bytes(bytes), self.ground.nic()),
        }
    }
}
