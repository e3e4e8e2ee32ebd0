//! What the switches of a server's scale-up network do for its ranks (NVLS): add up what they read from all,
//! and copy what one writes.
//!
//! An operation begins when the last of its ranks has joined, and when the links that it needs most are free:
//! all those out of its GPUs for what is read from them, all those into them for what is brought. Of those that
//! wait, the one that was numbered first goes first. It then keeps each link as long as its bytes take
//! ([`Switched::within_server`]); what they take beside is the latency of the links: to a switch's read and back
//! with the sum, twice, and once for what is written.

use super::state::{Happening, Jobs};
use crate::engine::Engine;
use crate::ports::Ports;
use crate::queue::EventQueue;
use std::collections::BTreeMap;
use weft_units::Time;
use weft_workload::collective::Switched;
use weft_workload::job::{Joined, Receipt, SwitchedSet};

/// Those of a partition.
#[derive(Debug)]
pub(super) struct SwitchedServers {
    /// Until when each rank's link from the switches is busy.
    taking: Vec<Time>,
    /// Operations for which ranks have joined: by number, job and set.
    joining: BTreeMap<Key, Vec<Member>>,
    /// Those that all have joined and that wait for links, by server.
    waiting: BTreeMap<u32, BTreeMap<Key, (Switched, Vec<Member>)>>,
}

/// The earliest of a group first.
type Key = (u32, u32, SwitchedSet);

/// A rank, its place in the set, and what it is told.
type Member = (u32, u32, Receipt);

impl SwitchedServers {
    pub(super) fn new(ranks: usize) -> SwitchedServers {
        let (joining, waiting) = (BTreeMap::new(), BTreeMap::new());
        SwitchedServers { taking: vec![Time::ZERO; ranks], joining, waiting }
    }
}

impl Jobs<'_> {
    /// When the links that an operation needs most are free.
    fn free_at(&self, part: &Switched, members: &[Member]) -> Time {
        let volumes = || members.iter().map(|(_, place, _)| part.within_server(*place));
        let (out, into) =
            (volumes().map(|(out, _)| out).max(), volumes().map(|(_, into)| into).max());
        let gpu = |rank: &u32| self.config.gpu(*rank) as usize;
        let busy = |of: &[Time]| members.iter().map(|(rank, ..)| of[gpu(rank)]).max();
        let out_free = busy(&self.busy).filter(|_| out >= into);
        let in_free = busy(&self.switched.taking).filter(|_| into >= out);
        out_free.max(in_free).unwrap_or(Time::ZERO)
    }

    /// Keeps the links of an operation busy from `now` on. Returns when each rank has what comes of it.
    fn occupy(&mut self, now: Time, part: &Switched, members: &[Member]) -> Vec<Time> {
        let link = self.config.scale_up;
        let take = |busy: &mut Time, bytes: u64| {
            *busy = (*busy).max(now) + link.serialize(bytes);
            *busy
        };
        let mut read = Time::ZERO;
        for (rank, place, _) in members {
            let gpu = self.config.gpu(*rank) as usize;
            read = read.max(take(&mut self.busy[gpu], part.within_server(*place).0));
        }
        let latency = Time(link.latency.0 * part.crossings());
        let brought = members.iter().map(|(rank, place, _)| {
            let bytes = part.within_server(*place).1;
            let gpu = self.config.gpu(*rank) as usize;
            take(&mut self.switched.taking[gpu], bytes).max(read) + latency
        });
        brought.collect()
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Rank `rank` of a job takes part in what the switches of its server do.
    pub(super) fn join_in_server(
        &mut self,
        job: u32,
        rank: u32,
        joined: &Joined,
        receipt: Receipt,
    ) {
        let Joined { set, place, part, number } = *joined;
        let jobs = self.jobs.as_mut().expect("a job");
        let key = (number, job, set);
        let members = jobs.switched.joining.entry(key).or_default();
        members.push((rank, place, receipt));
        if members.len() < set.ranks as usize {
            return;
        }
        let members = jobs.switched.joining.remove(&key).expect("it is full");
        let server = jobs.config.servers[rank as usize];
        jobs.switched.waiting.entry(server).or_default().insert(key, (part, members));
        self.begin_in_server(rank);
    }

    /// The switches of the server of `rank` begin what can begin.
    pub(super) fn begin_in_server(&mut self, rank: u32) {
        let now = self.now;
        loop {
            let jobs = self.jobs.as_mut().expect("a job");
            let server = jobs.config.servers[rank as usize];
            let Some(waiting) = jobs.switched.waiting.get(&server) else { return };
            let free = |(part, members): &(Switched, Vec<Member>)| jobs.free_at(part, members);
            let Some(key) = waiting.iter().find(|(_, one)| free(one) <= now).map(|(key, _)| *key)
            else {
                if let Some(next) = waiting.values().map(free).min() {
                    self.tell(rank, next, Happening::Server);
                }
                return;
            };
            let waiting = jobs.switched.waiting.get_mut(&server).expect("it is waiting there");
            let (part, members) = waiting.remove(&key).expect("it is waiting there");
            let done = jobs.occupy(now, &part, &members);
            for ((rank, _, receipt), at) in members.into_iter().zip(done) {
                self.tell(rank, at + receipt.takes, Happening::Received(receipt));
            }
        }
    }
}
