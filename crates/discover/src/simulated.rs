//! Simulated switches for a survey: they answer probes as real ones do, few a second and some never.
//!
//! What it costs to discover paths, and what comes out wrong, can be found out here for any hash.

use crate::{Probe, Reply, Step, Survey};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use weft_units::{Draw, Time};

/// How switches answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Answers that a switch gives at once.
    pub burst: u64,
    /// How long it takes until it gives one more; zero: it answers everything.
    pub refill: Time,
    /// Switches that never answer.
    pub silent: BTreeSet<Ipv4Addr>,
    /// Switches that have no way to any target, and say so.
    pub dead: BTreeSet<Ipv4Addr>,
    /// Probes of a million that are lost on the way.
    pub lost: u64,
    /// Whether targets answer probes that reach them.
    pub targets: bool,
    /// From a probe to its answer.
    pub round_trip: Time,
}

impl Answers {
    /// Everything is answered, and targets are silent, as RDMA NICs are.
    pub fn all() -> Answers {
        Answers {
            burst: 1,
            refill: Time::ZERO,
            silent: BTreeSet::new(),
            dead: BTreeSet::new(),
            lost: 0,
            targets: false,
            round_trip: Time::us(200),
        }
    }
    /// As Linux does: 6 answers at once, then one a second.
    pub fn linux() -> Answers {
        Answers { burst: 6, refill: Time::secs(1), ..Answers::all() }
    }
}

/// Simulated switches between a host and its targets.
pub struct Switches<'a> {
    /// The addresses of the switches on the way to a target from a source port.
    route: &'a dyn Fn(u32, u16) -> Vec<Ipv4Addr>,
    answers: Answers,
    losses: Draw,
    /// Answers that each switch has left, and since when.
    left: BTreeMap<Ipv4Addr, (u64, Time)>,
    probes: u64,
}

impl<'a> Switches<'a> {
    /// Over which `route` leads; `seed` draws what is lost.
    pub fn new(
        route: &'a dyn Fn(u32, u16) -> Vec<Ipv4Addr>,
        answers: Answers,
        seed: u64,
    ) -> Switches<'a> {
        let losses = Draw::new(seed, "lost probes");
        Switches { route, answers, losses, left: BTreeMap::new(), probes: 0 }
    }

    fn reply(&mut self, now: Time, probe: Probe) -> Option<Reply> {
        self.probes += 1;
        if self.losses.at(self.probes, 0) % 1_000_000 < self.answers.lost {
            return None;
        }
        let hops = (self.route)(probe.target, probe.port);
        let before = hops.iter().take(usize::from(probe.ttl));
        if let Some(dead) = before.copied().find(|hop| self.answers.dead.contains(hop)) {
            return self.has_left(now, dead).then_some(Reply::NoWay);
        }
        let Some(hop) = hops.get(usize::from(probe.ttl) - 1) else {
            return self.answers.targets.then_some(Reply::End);
        };
        let is_heard = !self.answers.silent.contains(hop) && self.has_left(now, *hop);
        is_heard.then_some(Reply::Hop(*hop))
    }

    /// Takes one of the answers that a switch has left.
    fn has_left(&mut self, now: Time, hop: Ipv4Addr) -> bool {
        let Answers { burst, refill, .. } = self.answers;
        if refill == Time::ZERO {
            return true;
        }
        let (left, since) = self.left.entry(hop).or_insert((burst, now));
        let more = since.until(now).0 / refill.0;
        *left = (*left + more).min(burst);
        *since = Time(since.0 + more * refill.0);
        let has = *left > 0;
        *left -= u64::from(has);
        has
    }

    /// Drives a survey to its end; how long that took. `None`: it had not ended after `most`.
    pub fn drive(&mut self, survey: &mut Survey, most: Time) -> Option<Time> {
        let mut now = Time::ZERO;
        // All take as long: they come in the order in which they were asked for.
        let mut coming = std::collections::VecDeque::new();
        while now <= most {
            while let Some((at, probe, reply)) = coming.front().copied()
                && at <= now
            {
                coming.pop_front();
                survey.answered(probe, reply);
            }
            match survey.poll(now) {
                Step::Send(probe) => {
                    if let Some(reply) = self.reply(now, probe) {
                        coming.push_back((
                            now.saturating_add(self.answers.round_trip),
                            probe,
                            reply,
                        ));
                    }
                }
                Step::Wait(until) => {
                    let next = coming.front().map_or(Time::MAX, |(at, ..)| *at);
                    now = next.min(until).max(now);
                }
                Step::Done => return Some(now),
            }
        }
        None
    }
}
