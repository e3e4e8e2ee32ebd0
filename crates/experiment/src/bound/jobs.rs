//! Along the dependencies of jobs, and what leaves each rank over its scale-up link.

use super::{Ground, drain};
use crate::traffic::Ranks;
use std::ops::ControlFlow;
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
    let Ranks { jobs, servers, scale_up, .. } = ranks;
    let mut count = servers.clone();
    count.sort_unstable();
    count.dedup();
    if count.len() == servers.len() {
        return Time::ZERO;
    }
    let (mut first, mut fullest) = (0, Time::ZERO);
    for job in jobs {
        let mut busy = vec![Time::ZERO; job.ranks() as usize];
        let _ = job.traffic(|Traffic { src, dst, bytes, times }| {
            let [home, other] = [src, dst].map(|rank| servers[(first + rank) as usize]);
            if home == other {
                let busy = &mut busy[src as usize];
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
        let Ranks { hosts, servers, .. } = self.ranks;
        let [src, dst] = [src, dst].map(|rank| (self.first + rank) as usize);
        (servers[src] != servers[dst]).then(|| (hosts[src], hosts[dst]))
    }
}

impl IdleNetwork for Alone<'_> {
    fn alone(&self, src: u32, dst: u32, bytes: u64) -> (Time, Time) {
        let Some((src, dst)) = self.hosts(src, dst) else {
            let link = self.ranks.scale_up;
            return (link.serialize(bytes) + link.latency, link.latency);
        };
        (self.ground.alone(src, dst, bytes), self.ground.path(src, dst).back)
    }
    fn intake(&self, src: u32, dst: u32, bytes: u64) -> Time {
        match self.hosts(src, dst) {
            Some(_) => drain(self.ground.wire_bytes(bytes), self.ground.nic()),
            None => Time::ZERO,
        }
    }
}
