//! Along the dependencies of jobs, and what leaves each rank over its scale-up link.

use super::{Ground, drain};
use crate::traffic::Ranks;
use std::ops::ControlFlow;
use weft_fabric::{RelayAt, Relays};
use weft_units::{HostId, Time};
use weft_workload::job::{IdleNetwork, Traffic, earliest};

/// When the last rank can be done: each message has the network to itself.
pub(super) fn along(ground: &Ground<'_>, ranks: &Ranks) -> Time {
    let mut first = 0;
    let ends = ranks.jobs.iter().map(|job| {
        let end = earliest(job, &Alone { ground, ranks, first });
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
        first += job.ranks();
        fullest = busy.into_iter().fold(fullest, Time::max);
    }
    // From the last byte of a link until it is there; nothing at all takes no time.
    if fullest == Time::ZERO { fullest } else { fullest.saturating_add(scale_up.latency) }
}

/// The network of the job whose first rank is `first`.
struct Alone<'a> {
    ground: &'a Ground<'a>,
    ranks: &'a Ranks,
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
            return (link.serialize(bytes) + link.latency, link.latency);
        };
        // Of what a relay passes on, one piece is for a while nowhere else.
        let relay = self.relays(src, dst);
        let relay = relay.map(|relays| link.serialize(bytes.min(relays.pxn.chunk)) + link.latency);
        let alone = self.ground.alone(from, to, bytes) + relay.unwrap_or(Time::ZERO);
        (alone, self.ground.path(from, to).back)
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
}
