//! The thread of a group: operations one after the other, single messages beside them.

use crate::call::{Call, Operation};
use crate::error::GroupError;
use crate::exchange::Exchange;
use crate::item::Timer;
use crate::links::Links;
use crate::memory::Copies;
use crate::mesh::Mesh;
use crate::run::Run;
use crate::schedule::{self, Tuning};
use crate::ticket::Ticket;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rounds in which nothing moved before the thread goes to sleep between them.
const RESTLESS: u32 = 64;
/// How long it sleeps then.
const NAP: Duration = Duration::from_micros(50);
/// And where there is nothing to do but to let peers in.
const REST: Duration = Duration::from_millis(50);
/// What has been under way for so long has its peers looked after, so often.
const PATIENCE: Duration = Duration::from_millis(20);

/// What callers and the thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    inbox: Mutex<Inbox>,
    word: Condvar,
}

#[derive(Debug)]
struct Inbox {
    calls: VecDeque<(Call, Ticket, Duration)>,
    /// How long an operation may take.
    limit: Duration,
    closing: bool,
    over: Option<GroupError>,
}

impl Shared {
    pub(crate) fn new(limit: Duration) -> Shared {
        let inbox = Inbox { calls: VecDeque::new(), limit, closing: false, over: None };
        Shared { inbox: Mutex::new(inbox), word: Condvar::new() }
    }
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Hands over a call that has been checked.
    pub(crate) fn submit(&self, call: Call, copies: Copies, limit: Option<Duration>) -> Ticket {
        let ticket = Ticket::new(copies);
        let mut inbox = self.inbox();
        let limit = limit.unwrap_or(inbox.limit);
        match &inbox.over {
            Some(error) => ticket.end(Err(error.told(call.operation))),
            None => inbox.calls.push_back((call, ticket.clone(), limit)),
        }
        self.word.notify_one();
        ticket
    }
    /// How long calls from now on may take.
    pub(crate) fn set_limit(&self, limit: Duration) {
        self.inbox().limit = limit;
    }
    /// Tells the thread to end.
    pub(crate) fn close(&self) {
        self.inbox().closing = true;
        self.word.notify_one();
    }
}

/// The collective that is under way.
#[derive(Debug)]
struct Current {
    run: Run<<Mesh as Links>::Request>,
    ticket: Ticket,
    timer: Timer,
    operation: Operation,
}

/// What is under way. Links are closed before anything else goes: they use the memory of the rest.
#[derive(Debug)]
struct Work {
    mesh: Mesh,
    current: Option<Current>,
    calls: VecDeque<(Call, Ticket, Duration)>,
    exchange: Exchange<<Mesh as Links>::Request, Ticket>,
    rank: u32,
    ranks: u32,
    tuning: Tuning,
    /// When peers are looked after next.
    look: Instant,
    /// Who was gone when they were looked after last.
    gone: BTreeSet<u32>,
}

/// Works until it is told to end, or an operation fails.
pub(crate) fn work(shared: &Arc<Shared>, mesh: Mesh, (rank, ranks): (u32, u32), tuning: Tuning) {
    let (calls, exchange) = (VecDeque::new(), Exchange::new(rank, ranks));
    let look = Instant::now();
    let (current, gone) = (None, BTreeSet::new());
    let mut work = Work { mesh, current, calls, exchange, rank, ranks, tuning, look, gone };
    // Whoever waits must hear of it, even if this is a mistake of ours.
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work.go(shared)));
    let error =
        ended.unwrap_or_else(|_| GroupError::Invalid("the group's thread has failed".into()));
    let Work { mut mesh, current, calls, exchange, .. } = work;
    let peers = mesh.close();
    let mut inbox = shared.inbox();
    inbox.over = Some(error.clone());
    let (is_closed, late) = (inbox.closing, std::mem::take(&mut inbox.calls));
    drop(inbox);
    if let Some(Current { run, ticket, operation, .. }) = current {
        drop(run);
        ticket.end(Err(error.at(operation)));
    }
    for (operation, ticket) in exchange.into_tickets() {
        ticket.end(Err(error.at(operation)));
    }
    for (call, ticket, _) in calls.into_iter().chain(late) {
        ticket.end(Err(error.told(call.operation)));
    }
    if !is_closed {
        mesh.give_up(peers);
    }
}

impl Work {
    fn go(&mut self, shared: &Shared) -> GroupError {
        let mut quiet = 0;
        loop {
            let mut inbox = shared.inbox();
            if inbox.calls.is_empty() && !inbox.closing && quiet > RESTLESS {
                let nap = if self.is_idle() { REST } else { NAP };
                let waited = shared.word.wait_timeout(inbox, nap);
                inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if inbox.closing {
                let why = "the group was closed".into();
                return GroupError::Over { operation: "group", why };
            }
            let now = Instant::now();
            while let Some((call, ticket, limit)) = inbox.calls.pop_front() {
                quiet = 0;
                let timer = Timer { since: now, limit };
                if call.operation.is_single() {
                    ticket.begin();
                }
                if let Err(ticket) = self.exchange.take(&call, ticket, timer) {
                    self.calls.push_back((call, ticket, limit));
                }
            }
            drop(inbox);
            match self.advance(now) {
                Ok(true) => quiet = 0,
                Ok(false) => {
                    quiet = quiet.saturating_add(1);
                    std::thread::yield_now();
                }
                Err(error) => return error,
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.current.is_none() && self.calls.is_empty() && self.exchange.is_empty()
    }

    fn advance(&mut self, now: Instant) -> Result<bool, GroupError> {
        let operation = self.current.as_ref().map_or("group", |one| one.operation.name());
        if let Some(peer) = self.mesh.poll().map_err(|why| GroupError::Over { operation, why })? {
            let owing = self.current.as_ref().map(|one| one.run.owing()).unwrap_or_default();
            let mut why = "it has given up, and says why itself".to_owned();
            // Perhaps it waits for this rank, which waits in turn.
            if owing.iter().any(|one| *one != peer) {
                why += &format!("; this rank was waiting for {}", named(&owing));
            }
            return Err(GroupError::Peer { operation, peer, why });
        }
        let mut moved = self.exchange.advance(&mut self.mesh, |one, peer| one.end_with(peer))?;
        if self.current.is_none()
            && let Some((call, ticket, limit)) = self.calls.pop_front()
        {
            ticket.begin();
            let schedule = schedule::of(&call, self.rank, self.ranks, self.tuning);
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: `Group::submit`'s contract; links are closed before a run is dropped undone.
            let run = unsafe { Run::new(&call, self.ranks, schedule) };
            let (timer, operation) = (Timer { since: now, limit }, call.operation);
            self.current = Some(Current { run, ticket, timer, operation });
        }
        if let Some(current) = &mut self.current {
            moved |= current.run.advance(&mut self.mesh)?;
        }
        if let Some(current) = self.current.take_if(|current| current.run.is_done()) {
            current.ticket.end(Ok(()));
            return Ok(true);
        }
        if now >= self.look {
            self.look = now + PATIENCE;
            self.look_after_peers(now)?;
        }
        Ok(moved)
    }

    /// Sees to it that no operation takes longer than it may, and that none waits for a peer that is
    /// gone.
    fn look_after_peers(&mut self, now: Instant) -> Result<(), GroupError> {
        let mut watched = BTreeSet::new();
        if let Some(Current { run, timer, operation, .. }) = &self.current {
            let owing = run.owing();
            if timer.is_late(now) {
                return Err(time_out(*operation, &owing, timer.limit));
            }
            if timer.age(now) > PATIENCE {
                watched.extend(owing.into_iter().map(|peer| (peer, operation.name())));
            }
        }
        for (operation, timer) in self.exchange.timers() {
            let peers = match operation.names() {
                Some(peer) => vec![peer],
                None => (0..self.ranks).filter(|peer| *peer != self.rank).collect(),
            };
            if timer.is_late(now) {
                return Err(time_out(operation, &peers, timer.limit));
            }
            if timer.age(now) > PATIENCE {
                watched.extend(peers.into_iter().map(|peer| (peer, operation.name())));
            }
        }
        let mut gone = BTreeSet::new();
        for (peer, operation) in watched {
            let Err(why) = self.mesh.watch(peer) else { continue };
            // Of a peer that has just left, what it had sent before may not have been read.
            if self.gone.contains(&peer) {
                return Err(GroupError::Peer { operation, peer, why });
            }
            gone.insert(peer);
        }
        self.gone = gone;
        Ok(())
    }
}

fn time_out(operation: Operation, peers: &[u32], limit: Duration) -> GroupError {
    GroupError::TimeOut { operation: operation.name(), peers: named(peers), limit }
}

/// As in messages.
fn named(peers: &[u32]) -> String {
    let peers: Vec<String> = peers.iter().map(|peer| format!("rank {peer}")).collect();
    peers.join(" and ")
}
