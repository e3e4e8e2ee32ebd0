//! The thread of a group: operations one after the other, single messages beside them.

use crate::call::{Call, Operation};
use crate::error::GroupError;
use crate::exchange::Exchange;
use crate::links::Links;
use crate::mesh::Mesh;
use crate::programme::Tuning;
use crate::run::Run;
use crate::ticket::Ticket;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rounds in which nothing moved before the thread goes to sleep between them.
const RESTLESS: u32 = 64;
/// How long it sleeps then.
const NAP: Duration = Duration::from_micros(50);
/// And where there is nothing to do but to let peers in.
const REST: Duration = Duration::from_millis(50);

/// What callers and the thread share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    inbox: Mutex<Inbox>,
    word: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    calls: VecDeque<(Call, Ticket)>,
    closing: bool,
    over: Option<GroupError>,
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Hands over a call that has been checked.
    pub(crate) fn submit(&self, call: Call) -> Ticket {
        let ticket = Ticket::default();
        let mut inbox = self.inbox();
        match &inbox.over {
            Some(error) => ticket.end(Err(error.told(call.operation))),
            None => inbox.calls.push_back((call, ticket.clone())),
        }
        self.word.notify_one();
        ticket
    }
    /// Tells the thread to end.
    pub(crate) fn close(&self) {
        self.inbox().closing = true;
        self.word.notify_one();
    }
}

/// What is under way. Links are closed before anything else goes: they use the memory of the rest.
#[derive(Debug)]
struct Work {
    mesh: Mesh,
    current: Option<(Run<<Mesh as Links>::Request>, Ticket, Instant, Operation)>,
    calls: VecDeque<(Call, Ticket)>,
    exchange: Exchange<<Mesh as Links>::Request, Ticket>,
    rank: u32,
    ranks: u32,
    tuning: Tuning,
    limit: Duration,
}

/// Works until it is told to end, or an operation fails.
pub(crate) fn work(
    shared: &Arc<Shared>,
    mesh: Mesh,
    (rank, ranks): (u32, u32),
    tuning: Tuning,
    limit: Duration,
) {
    let (calls, exchange) = (VecDeque::new(), Exchange::new());
    let mut work = Work { mesh, current: None, calls, exchange, rank, ranks, tuning, limit };
    // Whoever waits must hear of it, even if this is a mistake of ours.
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work.go(shared)));
    let error =
        ended.unwrap_or_else(|_| GroupError::Invalid("the group's thread has failed".into()));
    let Work { mut mesh, current, calls, exchange, .. } = work;
    let peers = mesh.close();
    let mut inbox = shared.inbox();
    inbox.over = Some(error.clone());
    if let Some((run, ticket, _, operation)) = current {
        drop(run);
        ticket.end(Err(error.at(operation)));
    }
    for (operation, ticket) in exchange.into_tickets() {
        ticket.end(Err(error.at(operation)));
    }
    for (call, ticket) in calls.into_iter().chain(inbox.calls.drain(..)) {
        ticket.end(Err(error.told(call.operation)));
    }
    let is_closed = inbox.closing;
    drop(inbox);
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
            while let Some((call, ticket)) = inbox.calls.pop_front() {
                quiet = 0;
                if let Err(ticket) = self.exchange.take(&call, ticket, now) {
                    self.calls.push_back((call, ticket));
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
        let operation = self.current.as_ref().map_or("group", |(.., operation)| operation.name());
        if let Some(peer) = self.mesh.poll().map_err(|why| GroupError::Over { operation, why })? {
            let why = "it has given up, and says why itself".to_owned();
            return Err(GroupError::Peer { operation, peer, why });
        }
        let mut moved = self.exchange.advance(&mut self.mesh, |ticket| ticket.end(Ok(())))?;
        if self.current.is_none()
            && let Some((call, ticket)) = self.calls.pop_front()
        {
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: `Group::submit`'s contract; links are closed before a run is dropped undone.
            let run = unsafe { Run::new(&call, self.rank, self.ranks, self.tuning) };
            self.current = Some((run, ticket, now, call.operation));
        }
        if let Some((run, ..)) = &mut self.current {
            moved |= run.advance(&mut self.mesh)?;
        }
        if let Some((_, ticket, ..)) = self.current.take_if(|(run, ..)| run.is_done()) {
            ticket.end(Ok(()));
            return Ok(true);
        }
        if !moved {
            self.keep_time(now)?;
        }
        Ok(moved)
    }

    fn keep_time(&self, now: Instant) -> Result<(), GroupError> {
        let late = |since: Instant| now.saturating_duration_since(since) > self.limit;
        let seconds = self.limit.as_secs();
        if let Some((run, _, since, operation)) = &self.current
            && late(*since)
        {
            let peers: Vec<String> =
                run.owing().iter().map(|peer| format!("rank {peer}")).collect();
            let (operation, peers) = (operation.name(), peers.join(" and "));
            return Err(GroupError::TimeOut { operation, peers, seconds });
        }
        if let Some((since, operation)) = self.exchange.oldest()
            && late(since)
            && let Some(peer) = operation.names()
        {
            let (operation, peers) = (operation.name(), format!("rank {peer}"));
            return Err(GroupError::TimeOut { operation, peers, seconds });
        }
        Ok(())
    }
}
