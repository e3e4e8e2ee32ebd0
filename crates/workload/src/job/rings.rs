//! When rings are over on a network where no message is in another's way: round by round for all ranks
//! at once, instead of message by message.
//!
//! Every rank passes on what it has received. So what comes to a place in round `k` left `k` places before
//! in round 0, and `at(place, k + 1) = at(place - 1, k) + what the message takes`, where a rank sends
//! nothing before it has joined.

use super::advance::advance;
use super::role::Role;
use super::rounds::Rounds;
use super::{IdleNetwork, Job};
use crate::collective::Step;
use crate::trace::{Collective, Members, Work};
use std::collections::BTreeMap;
use weft_units::Time;

/// Beyond so many messages all are taken for the shortest: at most a byte too short.
const MOST_ROUNDS: u64 = 1 << 29;

/// Rings with empty blocks, where each of so many would pass each rank, would take too long message by message.
const MOST_MESSAGES: u64 = 1 << 22;

/// How the ranks of a ring go about it here.
#[derive(PartialEq, Eq)]
enum Way {
    /// All at once, since each waits for all others.
    Together,
    /// Message by message.
    Apart,
    /// Nobody waits.
    Alone,
}

impl Way {
    fn of(role: &Role<'_>, rounds: &Rounds) -> Way {
        // The blocks of all sequences differ by a byte at most.
        let ranks = u64::from(role.call.ranks);
        let blocks = ranks * u64::from(rounds.messages);
        // The same for all phases of a collective.
        match role.call.bytes >= blocks {
            true => Way::Together,
            false if blocks.saturating_mul(ranks) <= MOST_MESSAGES => Way::Apart,
            false => Way::Alone,
        }
    }
}

/// Rings that some ranks have joined.
pub(super) struct Rings<'a> {
    job: &'a Job,
    /// By group, turn, phase and first member.
    joined: BTreeMap<(u32, u32, u32, u32), Vec<Joined>>,
}

/// A rank, its node, and when it joined, or is done.
type Joined = (u32, u32, Time);

/// What a message takes into each place, if it is as short as the shortest, or a byte longer.
struct Takes {
    short: Vec<u64>,
    long: Vec<u64>,
}

impl<'a> Rings<'a> {
    pub(super) fn new(job: &'a Job) -> Rings<'a> {
        Rings { job, joined: BTreeMap::new() }
    }

    /// How many rounds of a phase are done as messages, as [`super::Runner::cutting`] asks.
    pub(super) fn first(job: &Job, rank: u32, one: &Collective, rounds: &Rounds) -> Option<u32> {
        let role = job.role(rank, one)?;
        (Way::of(&role, rounds) != Way::Apart).then_some(0)
    }

    /// A rank has come to a phase of a collective. If it is the last one of those that wait for each other: all
    /// of them with their nodes, and when each is done, which is no sooner than `now`.
    pub(super) fn paused(
        &mut self,
        network: &impl IdleNetwork,
        now: Time,
        (rank, node, phase): (u32, u32, u32),
    ) -> Vec<Joined> {
        let trace = self.job.trace();
        let Work::Collective(one) = &trace.graph(rank).nodes()[node as usize].work else {
            unreachable!("only collectives have rounds")
        };
        let members = trace.members(one.group, rank).expect("it is a member");
        let rounds = self.job.rounds(rank, one, phase).expect("it has come to it");
        let role = self.job.role(rank, one).expect("it moves something");
        // Who goes on sends at once.
        let delay = if phase == 0 { self.job.endpoint.delay } else { Time::ZERO };
        if Way::of(&role, &rounds) == Way::Alone {
            return vec![(rank, node, now.saturating_add(delay))];
        }
        let key = (one.group, one.turn, phase, members.rank(rounds.first));
        let joined = self.joined.entry(key).or_default();
        joined.push((rank, node, now));
        if joined.len() < rounds.ranks as usize {
            return Vec::new();
        }
        let mut joined = self.joined.remove(&key).expect("it is full");
        joined.sort_unstable_by_key(|(rank, ..)| members.place(*rank));
        let mut ends: Vec<Time> = vec![now; joined.len()];
        for sequence in 0..rounds.messages {
            let starts = joined.iter().map(|(_, _, at)| at.saturating_add(delay).0).collect();
            let order = order(&role, &rounds, sequence);
            let ring = (sequence, &order[..], &rounds);
            let done = self.around(network, &role, &members, ring, starts);
            for (place, at) in order.iter().zip(done) {
                let end = &mut ends[(place - rounds.first) as usize / rounds.stride as usize];
                *end = (*end).max(Time(at));
            }
        }
        joined.into_iter().zip(ends).map(|((rank, node, _), end)| (rank, node, end)).collect()
    }

    /// When the ranks of one sequence are done, in the order of the ring, which names their places in the
    /// group; `starts` are in the order of the places, in picoseconds.
    fn around(
        &self,
        network: &impl IdleNetwork,
        role: &Role<'_>,
        members: &Members<'_>,
        (sequence, order, phase): (u32, &[u32], &Rounds),
        starts: Vec<u64>,
    ) -> Vec<u64> {
        let Role { steps, call, .. } = role;
        let (first, rounds) = (phase.receipts.0, phase.count());
        let ranks = order.len();
        let sizes: Vec<u64> =
            order.iter().map(|place| first_send(role, (*place, sequence), first)).collect();
        let shortest = sizes.iter().copied().min().unwrap_or(0);
        let start = |place: &u32| starts[(place - phase.first) as usize / phase.stride as usize];
        let starts: Vec<u64> = order.iter().map(start).collect();
        let mut at = starts.clone();
        let few = u64::from(rounds) * ranks as u64 <= MOST_ROUNDS;
        let is_long: Vec<bool> = sizes.iter().map(|size| few && *size > shortest).collect();
        let takes = |reduces| {
            let of = |bytes: u64| {
                let into = |place: usize| {
                    let before = order[(place + ranks - 1) % ranks];
                    let [src, dst] = [before, order[place]].map(|place| members.rank(place));
                    let alone = network.alone(src, dst, bytes).0;
                    alone.saturating_add(self.job.endpoint.takes(bytes, reduces)).0
                };
                (0..ranks).map(into).collect()
            };
            Takes { short: of(shortest), long: of(shortest + 1) }
        };
        let [keeps, reduces] = [takes(false), takes(true)];
        if !few {
            let reduced = role.reducing_rounds(sequence, phase);
            return many_rounds(&starts, &keeps, &reduces, reduced, rounds);
        }
        let mut next = vec![0; ranks];
        for round in 0..rounds {
            let is_reduced = steps.reduces(call, sequence, first + round);
            let takes = if is_reduced { &reduces } else { &keeps };
            let shift = ranks - round as usize % ranks;
            for place in 0..ranks {
                let before = if place == 0 { ranks - 1 } else { place - 1 };
                // What left so many places before.
                let source = before + shift;
                let source = if source >= ranks { source - ranks } else { source };
                let took = if is_long[source] { takes.long[place] } else { takes.short[place] };
                next[place] = at[place].max(at[before] + took);
            }
            std::mem::swap(&mut at, &mut next);
        }
        at
    }
}

/// As [`Rings::around`], for so many rounds that each would take too long, of messages of one size: what leads to
/// `place` after `rounds` began at one of the last so many places, at the latest of their
/// starts beyond what lies between.
fn many_rounds(
    starts: &[u64],
    keeps: &Takes,
    reduces: &Takes,
    reduced: u32,
    rounds: u32,
) -> Vec<u64> {
    let first = advance(starts, &reduces.short, reduced as usize);
    advance(&first, &keeps.short, rounds as usize - reduced as usize)
}

/// The places in the group of a phase's ranks, in the order of the ring.
fn order(role: &Role<'_>, phase: &Rounds, sequence: u32) -> Vec<u32> {
    let mut order = vec![phase.first];
    loop {
        let last = *order.last().expect("it begins with one");
        let around = role.steps.around(&role.call, last, sequence, phase.phase);
        match around.expect("it has rounds").to {
            next if next == phase.first => return order,
            next => order.push(next),
        }
    }
}

/// How long the message is that the rank at `place` sends in a round of a sequence.
fn first_send(role: &Role<'_>, (place, sequence): (u32, u32), round: u32) -> u64 {
    match role.steps.step(&role.call, place, sequence, 2 * round) {
        Some(Step::Send { payload, .. }) => payload,
        _ => 0,
    }
}
