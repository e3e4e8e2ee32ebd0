//! Along the dependencies of jobs.

use super::{Ground, drain};
use crate::traffic::Ranks;
use weft_units::{HostId, Time};
use weft_workload::job::{Network, earliest};

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

impl Network for Alone<'_> {
    fn alone(&self, src: u32, dst: u32, bytes: u64) -> (Time, Time) {
        let Some((src, dst)) = self.hosts(src, dst) else {
            let link = self.ranks.scale_up;
            return (link.rate.serialize(bytes) + link.latency, link.latency);
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
