//! When a job can be over at the earliest: on a network where no message is in another's way.
//!
//! Every message takes what it would take alone. Beyond that, a rank's part in a collective
//! lasts at least as long as its link is busy with all that the rank receives in it, and as the
//! slowest of that takes alone, counted from when the first of the group began: nobody sends for
//! a collective that he has not begun. Who receives nothing waits for nobody.
//! Where ranks send all at once, that alone counts, for there would be too many messages.

use super::Job;
use super::rings::Rings;
use super::role::Role;
use super::rounds::Rounds;
use super::runner::{Action, Receipt, Runner, Sent};
use super::switched::{Joined, SwitchedSet};
use crate::collective::Operation;
use crate::trace::{Collective, Work};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use weft_units::Time;

/// What a message takes that has the network to itself. Ranks are numbered as in the job.
pub trait IdleNetwork: Sync {
    /// From post until its receiver has it, and until its sender has the acknowledgement.
    fn alone(&self, src: u32, dst: u32, bytes: u64) -> (Time, Time);
    /// How long it keeps the receiver's link busy at least; no two messages do that at once.
    fn intake(&self, src: u32, dst: u32, bytes: u64) -> Time;
    /// What switches take at least for what rank `last` has `joined` as the last one, until `rank`, at `place`
    /// among those that take part, has what comes of it.
    fn switched(&self, last: u32, joined: &Joined, rank: u32, place: u32) -> Time;
}

/// What happens next, the earliest first; what happens at one time, in the order of its making.
struct Next {
    at: Time,
    number: u64,
    rank: u32,
    what: What,
}

enum What {
    Received(Receipt),
    Sent(Sent),
    Woken(u32),
    RestDone(u32, u32),
}

/// A lower bound on the time at which the last node of `job` is over.
///
/// A rank may compute several things at once here: in which order it computes them could make
/// more haste less speed. All of it together is a bound of its own.
pub fn earliest(job: &Job, network: &impl IdleNetwork) -> Time {
    let mut intake = Intake { job, network, begun: BTreeMap::new(), known: BTreeMap::new() };
    let least = |now, rank, node| intake.least(now, rank, node);
    // Rings are over when that follows from: no need to go through all their rounds one by one.
    let cut = |rank, one: &Collective, rounds: &Rounds| Rings::first(job, rank, one, rounds);
    let mut runner = Runner::new(job, |_| true).lasting(least).cutting(cut);
    let mut rings = Rings::new(job);
    let mut joining = Joining::default();
    let mut agenda: BinaryHeap<Reverse<Next>> = BinaryHeap::new();
    let (mut number, mut now, mut end) = (0, Time::ZERO, Time::ZERO);
    let mut actions = Vec::new();
    runner.start(now, &mut actions);
    loop {
        for action in actions.drain(..) {
            let mut push = |at, rank, what| {
                number += 1;
                agenda.push(Reverse(Next { at, number, rank, what }));
            };
            match action {
                Action::Post { src, dst, bytes, sent, receipt } => {
                    let (there, known) = network.alone(src, dst, bytes);
                    push(now + there + receipt.takes, dst, What::Received(receipt));
                    if job.awaits_sent(src, sent.node) {
                        push(now + known, src, What::Sent(sent));
                    }
                }
                Action::Join { rank, joined, receipt } => {
                    for (rank, receipt, there) in joining.join(network, now, rank, joined, receipt)
                    {
                        push(there + receipt.takes, rank, What::Received(receipt));
                    }
                }
                Action::Wake { rank, node, at } => push(at, rank, What::Woken(node)),
                Action::Begun { .. } | Action::Phase { .. } => {}
                Action::Paused { rank, node, phase } => {
                    for (rank, node, at) in rings.paused(network, now, (rank, node, phase)) {
                        push(at, rank, What::RestDone(node, phase));
                    }
                }
                Action::Finished { .. } => end = now,
            }
        }
        let Some(Reverse(Next { at, rank, what, .. })) = agenda.pop() else {
            return end.max(job.computing());
        };
        now = at;
        match what {
            What::Received(receipt) => runner.received(now, rank, receipt, &mut actions),
            What::Sent(sent) => runner.sent(now, rank, sent, &mut actions),
            What::Woken(node) => runner.woken(now, rank, node, &mut actions),
            What::RestDone(node, phase) => {
                runner.rest_done(now, (rank, node, phase), &mut actions);
            }
        }
    }
}

/// Who has joined what switches do, which they begin with the last one.
#[derive(Default)]
struct Joining(BTreeMap<(SwitchedSet, u32), Joiners>);

/// Who has joined one thing that switches do.
#[derive(Default)]
struct Joiners {
    members: Vec<Member>,
    /// Of a broadcast: its root, and when it joined.
    root: Option<(u32, Joined, Time)>,
}

/// A rank, its place in the set, and its receipt.
type Member = (u32, u32, Receipt);

impl Joining {
    /// `rank` joins. If it is the last one: all of them, and when each has what it waits for.
    fn join(
        &mut self,
        network: &impl IdleNetwork,
        now: Time,
        rank: u32,
        own: Joined,
        receipt: Receipt,
    ) -> Vec<(u32, Receipt, Time)> {
        let Joined { set, place, part, number } = own;
        let joiners = self.0.entry((set, number)).or_default();
        joiners.members.push((rank, place, receipt));
        if part.operation == Operation::Broadcast && place == part.root {
            joiners.root = Some((rank, own, now));
        }
        if joiners.members.len() < set.ranks as usize {
            return Vec::new();
        }
        let Joiners { members, root } = self.0.remove(&(set, number)).unwrap_or_default();
        let there = |(other, at, receipt): Member| {
            let from = |(rank, joined, since): (u32, Joined, Time)| {
                since + network.switched(rank, &joined, other, at)
            };
            // What the root of a broadcast sends may be on its way before the last one has joined.
            let of_root = root.filter(|root| root.0 != other).map_or(now, from);
            (other, receipt, from((rank, own, now)).max(of_root))
        };
        members.into_iter().map(there).collect()
    }
}

/// How long receiving takes each rank in each collective.
struct Intake<'a, N> {
    job: &'a Job,
    network: &'a N,
    /// When the first of the group began: by group, turn and first member.
    begun: BTreeMap<(u32, u32, u32), Time>,
    /// By rank and group, of collectives that are alike.
    known: BTreeMap<(u32, u32), Vec<(Role<'a>, Time)>>,
}

impl<'a, N: IdleNetwork> Intake<'a, N> {
    /// When the part of `rank` in the collective `node`, which begins now, can be over.
    fn least(&mut self, now: Time, rank: u32, node: u32) -> Time {
        let trace = self.job.trace();
        let Work::Collective(one) = &trace.graph(rank).nodes()[node as usize].work else {
            return now;
        };
        let first = trace.members(one.group, rank).expect("it is a member").rank(0);
        let begun = *self.begun.entry((one.group, one.turn, first)).or_insert(now);
        let own = now.saturating_add(self.job.endpoint.delay);
        own.max(begun.saturating_add(self.receiving(rank, one)))
    }

    /// From when the first of the group begins until all is there and handled; zero if that is nothing.
    fn receiving(&mut self, rank: u32, one: &Collective) -> Time {
        let job: &'a Job = self.job;
        let Some(role) = job.role(rank, one) else { return Time::ZERO };
        let known = self.known.entry((rank, one.group)).or_default();
        if let Some((_, time)) = known.iter().find(|(other, _)| *other == role) {
            return *time;
        }
        let members = self.job.trace().members(one.group, rank).expect("it is a member");
        // Nobody sends sooner than his own delay, and what has come still has to be handled.
        let delay = self.job.endpoint.delay;
        let handled = delay.saturating_add(delay);
        let mut time = Time::ZERO;
        let mut busy = handled;
        let _ = role.receives(|from, bytes, times| {
            let src = members.rank(from);
            let intake = self.network.intake(src, rank, bytes);
            busy = busy.saturating_add(Time(intake.0.saturating_mul(times)));
            let alone = self.network.alone(src, rank, bytes).0;
            time = time.max(busy).max(alone.saturating_add(handled));
            ControlFlow::Continue(())
        });
        known.push((role, time));
        time
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Next) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Next {}
impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Next {
    fn cmp(&self, other: &Next) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
