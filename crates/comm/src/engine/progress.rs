//! Who drives the engine: whoever asks what has become of a request, a bounded round each time; and a
//! thread of the endpoint, where nobody has asked for [`STAND_BY`].
//!
//! A thread that asks has its core anyway, and bytes that it moves itself need no other thread to be woken.
//! Where several endpoints share one asking thread, it comes by too seldom for all of them, and their own
//! threads go to work.

use super::planning::Planning;
use super::{Engine, FIRST, LAST, LISTENER, Order, QUEUES, Shared, WAKER};
use crate::tcp;
use mio::{Events, Token};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Turns of connections in a round: of the endpoint's thread, and of one that only asks.
const TURNS: usize = 16;
const FEW_TURNS: usize = 4;
/// How long the endpoint's thread leaves the engine to those who ask: so long at first, and longer
/// while they go on, since each look is a timer and a switch of threads: 15 us and more.
const STAND_BY: Duration = Duration::from_micros(100);
const LONGEST_STAND_BY: Duration = Duration::from_micros(800);
/// How long it looks again, where it has run out of work, before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Shorter sleeps are not worth it.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// The engine, for one thread at a time.
#[derive(Default)]
pub(crate) struct Progress {
    rounds: Mutex<Option<Box<Rounds>>>,
    /// Rounds of those who ask.
    asked: AtomicU64,
}

/// What goes round.
struct Rounds {
    engine: Engine,
    events: Events,
    orders: Vec<Order>,
    /// When it gives up what still has to leave.
    stop_at: Option<Instant>,
    /// The last round did not look for what had come, to carry out orders first.
    puts_off: bool,
    /// The last round had something to do.
    busy: bool,
    /// The endpoint's thread looks again then.
    sleeps_until: Option<Instant>,
}

/// What is left after a round.
enum Left {
    /// The engine is over.
    Nothing,
    /// Something to do at once.
    Work,
    /// Something to do at this time, if nothing comes before.
    Until(Instant),
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Progress {
    /// Puts the engine where threads find it. What becomes readable when it has something to do.
    pub(super) fn begin(&self, engine: Engine) -> RawFd {
        let file = engine.poll.as_raw_fd();
        let (events, orders) = (Events::with_capacity(256), Vec::new());
        let rounds = Rounds {
            engine,
            events,
            orders,
            stop_at: None,
            puts_off: false,
            busy: false,
            sleeps_until: None,
        };
        *self.rounds.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(rounds));
        file
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Box<Rounds>>>> {
        match self.rounds.try_lock() {
            Ok(rounds) => Some(rounds),
            // An engine that panics is taken out before the lock is let go.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Shared {
    /// A round of the engine in this thread, unless another one is at it.
    pub(crate) fn drive(&self) {
        self.drive_round(true);
    }

    /// A round that carries out orders, and does not look for what has come: whoever gives an order asks for
    /// something next.
    pub(super) fn carry_out(&self) {
        self.drive_round(false);
    }

    fn drive_round(&self, looks: bool) {
        if !self.process.is_current() {
            return;
        }
        let Some(mut rounds) = self.progress.try_lock() else {
            // Whoever is at it may have looked at orders before the last one came.
            return self.orders.wake_sleeper(&self.waker);
        };
        let wakes = match round(&mut rounds, FEW_TURNS, looks) {
            Left::Nothing | Left::Work => true,
            Left::Until(at) => rounds.as_ref().is_some_and(|this| {
                let too_late = this.sleeps_until.is_some_and(|until| at < until);
                // A device wakes a sleeper once, and then has to be asked to again.
                too_late || this.busy && this.engine.nics.is_some()
            }),
        };
        let is_over = rounds.is_none();
        drop(rounds);
        // The endpoint's thread waits for no one to end, and looks where nobody does.
        if !is_over && looks {
            self.progress.asked.fetch_add(1, Ordering::Relaxed);
        }
        if wakes || !self.orders.is_empty() {
            self.orders.wake_sleeper(&self.waker);
        }
    }

    /// What the endpoint's thread does, until the engine is over. `file` is as [`Progress::begin`] says.
    pub(super) fn stand_by(&self, file: RawFd) {
        let (mut seen, mut works) = (0, false);
        let mut busy_until = Instant::now();
        let mut stand_by = STAND_BY;
        loop {
            let asked = self.progress.asked.load(Ordering::Relaxed);
            let is_driven = asked != seen && !works;
            seen = asked;
            // Where it is locked, whoever asks is at it.
            let rounds = if is_driven { None } else { self.progress.try_lock() };
            let Some(mut rounds) = rounds else {
                std::thread::sleep(stand_by);
                stand_by = LONGEST_STAND_BY.min(2 * stand_by);
                continue;
            };
            stand_by = STAND_BY;
            let left = round(&mut rounds, TURNS, true);
            let Some(this) = rounds.as_mut() else { return };
            let now = this.engine.now;
            if this.busy {
                busy_until = now + SPIN;
            }
            let until = match left {
                Left::Until(at) if at > now + SHORTEST_SLEEP => at,
                _ => now,
            };
            works = matches!(left, Left::Work);
            let sleeps = until > now
                && now >= busy_until
                && this.engine.links_may_sleep()
                && self.orders.fall_asleep();
            this.sleeps_until = sleeps.then_some(until);
            drop(rounds);
            if sleeps {
                tcp::wait_readable(file, until.saturating_duration_since(now));
                self.orders.wake_up();
            }
        }
    }
}

/// A round of the engine, if it is there. One that is over is taken out, also by a panic, which has been told
/// on standard error: whoever waits hears of it before the lock is free.
fn round(rounds: &mut Option<Box<Rounds>>, turns: usize, looks: bool) -> Left {
    let Some(this) = rounds else { return Left::Nothing };
    let left = catch_unwind(AssertUnwindSafe(|| this.round(turns, looks)));
    let left = left.unwrap_or(Left::Nothing);
    if matches!(left, Left::Nothing) {
        *rounds = None;
    }
    left
}

impl Rounds {
    fn round(&mut self, turns: usize, looks: bool) -> Left {
        let Rounds { engine, events, orders, stop_at, puts_off, .. } = self;
        events.clear();
        // What is to leave goes first: to look is a system call. The next round looks then.
        let first = looks && !*puts_off && !engine.shared.orders.is_empty();
        *puts_off = first;
        if looks
            && !first
            && let Err(error) = engine.poll.poll(events, Some(Duration::ZERO))
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Left::Nothing;
        }
        (engine.now, engine.made_links) = (Instant::now(), 0);
        engine.shared.orders.take(orders);
        let mut busy = !orders.is_empty() || !events.is_empty();
        engine.hear_events(events);
        for order in orders.drain(..) {
            if !engine.handle(order) {
                stop_at.get_or_insert(engine.now + LAST);
                engine.leave_all();
            }
        }
        busy |= engine.poll_links();
        engine.match_and_tell();
        engine.plan();
        for _ in 0..turns {
            let Some(token) = engine.ready.pop_front() else { break };
            busy = true;
            engine.take_turn(token);
        }
        engine.match_and_tell();
        engine.plan();
        if engine.now >= engine.next_look {
            engine.look_at_times();
        }
        engine.look_at_chunks();
        engine.look_at_announced();
        engine.look_at_held();
        // Last in a round: before anybody is heard, orders are taken, and with them the listener that
        // was there before its handle was given away.
        if engine.knocking {
            engine.take_in();
        }
        self.busy = busy;
        let ended = |at| engine.now >= at || engine.connections.is_empty() && !engine.owes();
        if stop_at.is_some_and(ended) {
            return Left::Nothing;
        }
        engine.left()
    }
}

impl Engine {
    fn hear_events(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                WAKER => {}
                LISTENER => self.knocking = true,
                QUEUES => {}
                Token(token) => {
                    debug_assert!(token >= FIRST);
                    let Some(connection) = self.connections.get_mut(&token) else { continue };
                    connection.readable |= event.is_readable() || event.is_error();
                    connection.ending |= event.is_read_closed() || event.is_error();
                    connection.writable |= event.is_writable() || event.is_error();
                    self.line_up(token);
                }
            }
        }
    }

    /// Whether something is to leave that the application takes for sent.
    fn owes(&self) -> bool {
        self.sending.iter().any(|(_, sending)| !sending.over)
    }

    fn left(&mut self) -> Left {
        let waits = !self.to_match.is_empty() || !self.to_tell.is_empty() || !self.cuts.is_empty();
        if waits || !self.ready.is_empty() || self.knocking {
            return Left::Work;
        }
        let due = |it: &mut Planning| [it.deadline(), it.chunk_due()].into_iter().flatten().min();
        let announced = self.announced.peek().map(|it| it.0.due);
        let held = [self.held.peek().map(|it| it.0.0), self.soon.front().map(|it| it.0)];
        let held = held.into_iter().flatten();
        let dues = self.members.plannings().filter_map(due).chain(announced).chain(held);
        Left::Until(dues.fold(self.next_look, Instant::min))
    }
}
