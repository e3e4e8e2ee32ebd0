//! Ranks at work: what goes in, what comes out, and what a rank is busy with.

use super::Job;
use super::meeting::Meeting;
use super::role::Role;
use super::rounds::Rounds;
use super::sequence::{Deed, Joining, Part, Pause, Sending};
use super::switched::Joined;
use super::waits::{self, Wait};
use crate::trace::{Collective, Compute, Transfer, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use weft_units::Time;

/// What the receiver of a message needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// What it is a part of.
    pub meeting: Meeting,
    /// For which sequence of a collective, and which of its receipts.
    pub sequence: u32,
    /// The number of the receipt within its sequence.
    pub number: u32,
    /// How long the receiver takes over it; whoever carries it tells [`Runner::received`] so much
    /// later than it has come.
    pub takes: Time,
}

/// What the sender of a message needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which node of the rank's graph.
    pub node: u32,
    /// Of which sequence of a collective, and which of its sends.
    pub sequence: u32,
    /// The number of the send within its sequence.
    pub number: u32,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Posts a message.
    Post {
        /// The sender, by its number.
        src: u32,
        /// Who receives; never `src`.
        dst: u32,
        /// Payload, at least one byte.
        bytes: u64,
        /// To be given to [`Runner::sent`] when it has been acknowledged, if the rank
        /// [waits for that](Job::awaits_sent).
        sent: Sent,
        /// To be given to [`Runner::received`] of the receiver when it is there and has been
        /// handled, which takes [`Receipt::takes`].
        receipt: Receipt,
    },
    /// Takes part in what switches do.
    Join {
        /// The rank.
        rank: u32,
        /// With whom, and in what.
        joined: Joined,
        /// To be given to [`Runner::received`] when the rank has what comes of it and has handled that,
        /// which takes [`Receipt::takes`].
        receipt: Receipt,
    },
    /// Wants [`Runner::woken`] at a time.
    Wake {
        /// The rank that wants it.
        rank: u32,
        /// For which node.
        node: u32,
        /// The time at which it happens.
        at: Time,
    },
    /// A node begins.
    Begun {
        /// The rank.
        rank: u32,
        /// The node, by its place in the graph of the rank.
        node: u32,
    },
    /// A rank begins phases of a collective, up to the one of which only the first rounds are done as
    /// messages ([`Runner::cutting`]).
    Phase {
        /// The rank.
        rank: u32,
        /// The node, by its place in the graph of the rank.
        node: u32,
        /// Which phase that is.
        phase: u32,
    },
    /// These rounds are done at a rank; it goes on after [`Runner::rest_done`].
    Paused {
        /// The rank.
        rank: u32,
        /// The node, by its place in the graph of the rank.
        node: u32,
        /// Which phase of the collective.
        phase: u32,
    },
    /// A node is done.
    Finished {
        /// The rank.
        rank: u32,
        /// The node, by its place in the graph of the rank.
        node: u32,
    },
}

/// Some ranks of a job at work.
#[derive(Debug)]
pub struct Runner<'a> {
    job: &'a Job,
    /// By rank; `None`: held by somebody else.
    ranks: Vec<Option<Box<Rank<'a>>>>,
    unfinished: u64,
    least: Option<Least<'a>>,
    first: Option<First<'a>>,
}

/// How many of its rounds are done as messages, of a phase of a collective that `rank` joins; `None`:
/// all.
struct First<'a>(Box<Cut<'a>>);
type Cut<'a> = dyn FnMut(u32, &Collective, &Rounds) -> Option<u32> + Send + 'a;

impl fmt::Debug for First<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("First")
    }
}

/// When a node of a rank may be over at the earliest, though nothing else holds it up; asked as
/// its part in a collective begins, at the time given.
struct Least<'a>(Box<dyn FnMut(Time, u32, u32) -> Time + Send + 'a>);

impl fmt::Debug for Least<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Least")
    }
}

/// What a rank is busy with.
#[derive(Debug)]
struct Rank<'a> {
    /// How many others each node waits for.
    unmet: Vec<u32>,
    /// Collectives that have begun, by node.
    parts: BTreeMap<u32, Part<'a>>,
    /// Those that may not be over yet, and until when.
    floors: BTreeMap<u32, Time>,
    /// Nodes that wait for messages.
    awaited: BTreeMap<Meeting, u32>,
    /// Messages that came before their nodes began.
    early: BTreeMap<Meeting, Vec<Receipt>>,
    /// Nodes that end when a time comes.
    timed: BTreeSet<u32>,
    /// The computation under way on each stream, and those that wait for it.
    computing: BTreeMap<u32, u32>,
    queues: BTreeSet<(u32, u32)>,
}

impl<'a> Runner<'a> {
    /// For the ranks that `holds` says; those that start are told by [`Runner::start`].
    pub fn new(job: &'a Job, holds: impl Fn(u32) -> bool) -> Runner<'a> {
        let rank = |rank: u32| holds(rank).then(|| Box::new(Rank::new(job, rank)));
        let ranks: Vec<_> = (0..job.ranks()).map(rank).collect();
        let unfinished = ranks.iter().flatten().map(|rank| rank.unmet.len() as u64).sum();
        Runner { job, ranks, unfinished, least: None, first: None }
    }
    /// The same, where a rank's part in a collective takes until `least` at the least: asked with
    /// time, rank and node as it begins. And a rank may compute many things at a time.
    pub fn lasting(self, least: impl FnMut(Time, u32, u32) -> Time + Send + 'a) -> Runner<'a> {
        Runner { least: Some(Least(Box::new(least))), ..self }
    }
    /// The same, where of a phase of a collective ([`Job::rounds`]) only the first rounds are done as
    /// messages: so many as `first` says for a rank that joins one, the same for all its ranks. Then comes
    /// [`Action::Paused`], and the rank waits for [`Runner::rest_done`].
    pub fn cutting(
        self,
        first: impl FnMut(u32, &Collective, &Rounds) -> Option<u32> + Send + 'a,
    ) -> Runner<'a> {
        Runner { first: Some(First(Box::new(first))), ..self }
    }
    /// The other rounds of a phase that paused are done, too.
    pub fn rest_done(
        &mut self,
        now: Time,
        (rank, node, phase): (u32, u32, u32),
        out: &mut Vec<Action>,
    ) {
        let job = self.job;
        let Work::Collective(one) = &job.trace.graph(rank).nodes()[node as usize].work else {
            unreachable!("only collectives pause")
        };
        let role = job.role(rank, one).expect("it moves something");
        if role.phases().nth(phase as usize + 1).is_some() {
            if self.go_on(now, (rank, node, phase + 1), role, one, out) {
                self.finish(now, rank, node, out);
            }
            return;
        }
        let state = self.state(rank);
        let meeting = Meeting::Group { group: one.group, turn: one.turn };
        if state.parts.remove(&node).is_some() {
            state.awaited.remove(&meeting);
        }
        match self.state(rank).floors.remove(&node) {
            Some(floor) if floor > now => self.wait(now, rank, node, now.until(floor), out),
            _ => self.finish(now, rank, node, out),
        }
    }
    /// Nodes that are not done.
    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// Begins what waits for nothing.
    pub fn start(&mut self, now: Time, out: &mut Vec<Action>) {
        for rank in 0..self.ranks.len() as u32 {
            let Some(state) = &self.ranks[rank as usize] else { continue };
            let free = |node: &u32| state.unmet[*node as usize] == 0;
            let ready: Vec<u32> = (0..state.unmet.len() as u32).filter(free).collect();
            for node in ready {
                if self.ready(now, rank, node, out) {
                    self.finish(now, rank, node, out);
                }
            }
        }
    }

    /// A message that `rank` posted has been acknowledged to its end.
    pub fn sent(&mut self, now: Time, rank: u32, sent: Sent, out: &mut Vec<Action>) {
        let job = self.job;
        match &job.trace.graph(rank).nodes()[sent.node as usize].work {
            Work::Send(_) => self.finish(now, rank, sent.node, out),
            _ => {
                let is_over = self.push_on(now, rank, sent.node, out, |part, out| {
                    part.sent(sent.sequence, sent.number, out);
                });
                if is_over {
                    self.finish(now, rank, sent.node, out);
                }
            }
        }
    }

    /// A message to `rank` is there, and handled.
    pub fn received(&mut self, now: Time, rank: u32, receipt: Receipt, out: &mut Vec<Action>) {
        let state = self.state(rank);
        let Some(&node) = state.awaited.get(&receipt.meeting) else {
            state.early.entry(receipt.meeting).or_default().push(receipt);
            return;
        };
        let is_over = match receipt.meeting {
            Meeting::Pair { .. } => state.awaited.remove(&receipt.meeting).is_some(),
            Meeting::Group { .. } => self.push_on(now, rank, node, out, |part, out| {
                part.received(receipt.sequence, receipt.number, out);
            }),
        };
        if is_over {
            self.finish(now, rank, node, out);
        }
    }

    /// The time that `rank` asked for on behalf of `node` has come.
    pub fn woken(&mut self, now: Time, rank: u32, node: u32, out: &mut Vec<Action>) {
        let stream = match &self.job.trace.graph(rank).nodes()[node as usize].work {
            Work::Compute(compute) => compute.stream,
            _ => 0,
        };
        let state = self.state(rank);
        if !state.timed.remove(&node) {
            let is_over = match state.parts.contains_key(&node) {
                true => self.push_on(now, rank, node, out, Part::begin),
                false => self.begin(now, rank, node, out),
            };
            if is_over {
                self.finish(now, rank, node, out);
            }
            return;
        }
        if let Some(next) = state.computed(stream, node) {
            self.compute(now, rank, next, out);
        }
        self.finish(now, rank, node, out);
    }

    /// Whether `rank` expects a message: it waits for it, or would if others were there that it waits for as well.
    /// What it cannot use before something else has come it does not expect.
    pub fn expects(&mut self, rank: u32, receipt: &Receipt) -> bool {
        let state = self.state(rank);
        let Some(node) = state.awaited.get(&receipt.meeting) else { return false };
        match state.parts.get_mut(node) {
            Some(part) => part.expects(receipt.sequence, receipt.number),
            None => true,
        }
    }

    /// What `rank` waits for that others have to do.
    pub fn waits(&self, rank: u32) -> Vec<Wait> {
        let Some(state) = &self.ranks[rank as usize] else { return Vec::new() };
        waits::of(self.job, rank, &state.parts, &state.awaited)
    }

    fn state(&mut self, rank: u32) -> &mut Rank<'a> {
        self.ranks[rank as usize].as_mut().expect("a rank that is held here")
    }

    /// All that `node` waited for is done. Returns whether it is done itself, at once.
    fn ready(&mut self, now: Time, rank: u32, node: u32, out: &mut Vec<Action>) -> bool {
        let start = self.job.trace.graph(rank).nodes()[node as usize].start;
        let at = start.max(now).saturating_add(self.job.delay(rank, node));
        if at > now {
            out.push(Action::Wake { rank, node, at });
            return false;
        }
        self.begin(now, rank, node, out)
    }

    /// Begins `node`. Returns whether it is done at once.
    fn begin(&mut self, now: Time, rank: u32, node: u32, out: &mut Vec<Action>) -> bool {
        let job = self.job;
        out.push(Action::Begun { rank, node });
        match &job.trace.graph(rank).nodes()[node as usize].work {
            Work::Nothing | Work::Unsupported(_) => return true,
            // A bound must not depend on which of several comes first.
            Work::Compute(compute) if compute.on_host || self.least.is_some() => {
                self.wait(now, rank, node, job.takes(rank, node, compute), out);
            }
            Work::Compute(Compute { stream, .. })
                if self.state(rank).computing.contains_key(stream) =>
            {
                self.state(rank).queues.insert((*stream, node));
            }
            Work::Compute(_) => self.compute(now, rank, node, out),
            Work::Memory(memory) => self.wait(now, rank, node, memory.time, out),
            Work::Send(transfer) => send(rank, node, transfer, out),
            Work::Receive(Transfer { peer, tag, turn, .. }) => {
                let meeting = Meeting::Pair { src: peer.of(rank), tag: *tag, turn: *turn };
                let state = self.state(rank);
                if state.early.remove(&meeting).is_some() {
                    return true;
                }
                state.awaited.insert(meeting, node);
            }
            Work::Collective(one) => return self.join(now, rank, node, one, out),
        }
        false
    }

    fn compute(&mut self, now: Time, rank: u32, node: u32, out: &mut Vec<Action>) {
        let job = self.job;
        let Work::Compute(compute) = &job.trace.graph(rank).nodes()[node as usize].work else {
            unreachable!("only computations queue")
        };
        self.state(rank).computing.insert(compute.stream, node);
        self.wait(now, rank, node, job.takes(rank, node, compute), out);
    }

    /// The node is done after `time`.
    fn wait(&mut self, now: Time, rank: u32, node: u32, time: Time, out: &mut Vec<Action>) {
        self.state(rank).timed.insert(node);
        out.push(Action::Wake { rank, node, at: now.saturating_add(time) });
    }

    /// `rank` begins its part of a collective, for which messages may be here already. Returns
    /// whether it is over at once.
    fn join(
        &mut self,
        now: Time,
        rank: u32,
        node: u32,
        one: &Collective,
        out: &mut Vec<Action>,
    ) -> bool {
        let job: &'a Job = self.job;
        let Some(role) = job.role(rank, one) else { return true };
        if let Some(Least(least)) = &mut self.least {
            let floor = least(now, rank, node);
            // Which of very many messages come first makes no difference to a bound.
            if role.steps.is_at_once() {
                self.wait(now, rank, node, now.until(floor.max(now)), out);
                return false;
            }
            self.state(rank).floors.insert(node, floor);
        }
        self.go_on(now, (rank, node, 0), role, one, out)
    }

    /// `rank` goes on with a collective from phase `phase` on. Returns whether it is over at once.
    fn go_on(
        &mut self,
        now: Time,
        (rank, node, phase): (u32, u32, u32),
        role: Role<'a>,
        one: &Collective,
        out: &mut Vec<Action>,
    ) -> bool {
        let mut phases = role.phases().skip(phase as usize);
        let mut from = 0;
        let pause = self.first.as_mut().and_then(|First(first)| {
            phases.by_ref().enumerate().find_map(|(place, rounds)| {
                if place == 0 {
                    from = rounds.receipts.0;
                }
                let count = first(rank, one, &rounds)?;
                Some(Pause { phase: rounds.phase, rounds: rounds.receipts.0 + count })
            })
        });
        if let Some(Pause { phase, rounds }) = pause {
            out.push(Action::Phase { rank, node, phase });
            if rounds == from {
                out.push(Action::Paused { rank, node, phase });
                return false;
            }
        }
        let meeting = Meeting::Group { group: one.group, turn: one.turn };
        let state = self.state(rank);
        if let Some(part) = state.parts.get_mut(&node) {
            part.resume(from, pause);
            return self.push_on(now, rank, node, out, Part::begin);
        }
        let early = state.early.remove(&meeting).unwrap_or_default();
        state.awaited.insert(meeting, node);
        let mut part = Part::new(role);
        part.resume(from, pause);
        state.parts.insert(node, part);
        let delay = self.job.endpoint.delay;
        if delay > Time::ZERO {
            out.push(Action::Wake { rank, node, at: now.saturating_add(delay) });
        }
        self.push_on(now, rank, node, out, |part, out| {
            if delay == Time::ZERO {
                part.begin(out);
            }
            for receipt in &early {
                part.received(receipt.sequence, receipt.number, out);
            }
        })
    }

    /// Lets `change` happen to a collective and posts what it sends. Returns whether that was the
    /// end of it.
    fn push_on(
        &mut self,
        now: Time,
        rank: u32,
        node: u32,
        out: &mut Vec<Action>,
        change: impl FnOnce(&mut Part<'a>, &mut dyn FnMut(Deed)),
    ) -> bool {
        let job = self.job;
        let Work::Collective(one) = &job.trace.graph(rank).nodes()[node as usize].work else {
            unreachable!("a collective")
        };
        let members = job.trace.members(one.group, rank).expect("it is a member");
        let meeting = Meeting::Group { group: one.group, turn: one.turn };
        let state = self.state(rank);
        // Acknowledgements may come after the end.
        let Some(part) = state.parts.get_mut(&node) else { return false };
        let endpoint = job.endpoint;
        let mut post = |deed| {
            let sending = match deed {
                Deed::Send(sending) => sending,
                Deed::Join(Joining { part, sequence, receipt: number }) => {
                    let place = members.place(rank).expect("it is a member");
                    let joined = Joined::new(one, &members, part, sequence).at(place);
                    let takes = endpoint.delay;
                    let receipt = Receipt { meeting, sequence, number, takes };
                    return out.push(Action::Join { rank, joined, receipt });
                }
            };
            let Sending { to, bytes, sequence, number, target, receipt, reduces } = sending;
            let sent = Sent { node, sequence, number };
            let takes = endpoint.takes(bytes, reduces);
            let receipt = Receipt { meeting, sequence: target, number: receipt, takes };
            out.push(Action::Post { src: rank, dst: members.rank(to), bytes, sent, receipt });
        };
        change(part, &mut post);
        while part.is_over() && part.turn_to_next() {
            if endpoint.delay > Time::ZERO {
                out.push(Action::Wake { rank, node, at: now.saturating_add(endpoint.delay) });
                return false;
            }
            part.begin(&mut post);
        }
        if !part.is_over() || part.is_paused() {
            return false;
        }
        if let Some(Pause { phase, .. }) = part.take_pause() {
            out.push(Action::Paused { rank, node, phase });
            return false;
        }
        state.parts.remove(&node);
        state.awaited.remove(&meeting);
        match state.floors.remove(&node) {
            Some(floor) if floor > now => {
                self.wait(now, rank, node, now.until(floor), out);
                false
            }
            _ => true,
        }
    }

    /// A node is done: those that waited for it may go on. Long chains of nodes that take no time
    /// are no deep recursion.
    fn finish(&mut self, now: Time, rank: u32, node: u32, out: &mut Vec<Action>) {
        let job = self.job;
        let graph = job.trace.graph_index(rank);
        let mut done = vec![node];
        while let Some(node) = done.pop() {
            out.push(Action::Finished { rank, node });
            self.unfinished -= 1;
            for next in job.followers[graph].of(node) {
                let unmet = &mut self.state(rank).unmet[*next as usize];
                *unmet -= 1;
                if *unmet == 0 && self.ready(now, rank, *next, out) {
                    done.push(*next);
                }
            }
        }
    }
}

/// A send of nothing still arrives: it is a byte.
fn send(rank: u32, node: u32, transfer: &Transfer, out: &mut Vec<Action>) {
    let Transfer { peer, bytes, tag, turn } = *transfer;
    let meeting = Meeting::Pair { src: rank, tag, turn };
    out.push(Action::Post {
        src: rank,
        dst: peer.of(rank),
        bytes: bytes.max(1),
        sent: Sent { node, sequence: 0, number: 0 },
        receipt: Receipt { meeting, sequence: 0, number: 0, takes: Time::ZERO },
    });
}

impl<'a> Rank<'a> {
    fn new(job: &Job, rank: u32) -> Rank<'a> {
        let graph = job.trace.graph(rank);
        let nodes = 0..graph.nodes().len() as u32;
        Rank {
            unmet: nodes.map(|node| graph.waits(node).len() as u32).collect(),
            parts: BTreeMap::new(),
            floors: BTreeMap::new(),
            awaited: BTreeMap::new(),
            early: BTreeMap::new(),
            timed: BTreeSet::new(),
            computing: BTreeMap::new(),
            queues: BTreeSet::new(),
        }
    }
    /// `node` is done, and with it a stream free if that is what it was computing; returns what comes next there.
    fn computed(&mut self, stream: u32, node: u32) -> Option<u32> {
        if self.computing.get(&stream) != Some(&node) {
            return None;
        }
        self.computing.remove(&stream);
        let next = self.queues.range((stream, 0)..=(stream, u32::MAX)).next().copied()?;
        self.queues.remove(&next);
        Some(next.1)
    }
}
