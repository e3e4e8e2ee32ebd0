//! The engine of an endpoint: it owns all its sockets, and one thread at a time drives it.
//!
//! | module | what it does |
//! |---|---|
//! | [`connection`] | a socket: what it carries, whether it may read and write |
//! | [`start`] | the sockets and the thread |
//! | [`progress`] | who drives it: those who ask, else the thread |
//! | [`sending`], [`hearing`] | sending halves of channels: what they write, and what they hear |
//! | [`pending`] | connections that have not said who they are: who knows the secret gets a lane |
//! | [`receiving`] | receiving halves |
//! | [`absent`] | senders without a connection: whether their processes live |
//! | [`lanes`] | connections of lanes: opened, lost, opened again |
//! | [`room`] | connections that a host has no room for |
//! | [`spread`] | messages cut evenly, where nobody plans |
//! | [`members`] | the NICs of an endpoint, and which of them carries what |
//! | [`planning`] | the planner: messages to parts, time-outs to other routes |
//! | [`routes`] | which lane a subflow goes over, and from which ports a lane connects |
//! | [`rdma`] | lanes that have a queue pair beside their connection |
//! | [`times`] | what is late |
//! | [`standing`] | processes that stand still |
//!
//! Orders come from any thread through a queue, and what comes of them is left in atomics that the
//! application looks at ([`crate::request`]). A connection that has something to do is in
//! `ready`; each gets a turn of bounded length.

mod absent;
mod connection;
mod even_split;
mod hearing;
mod lanes;
mod members;
mod pending;
mod planning;
mod progress;
mod rdma;
mod receiving;
mod room;
mod routes;
mod sending;
mod standing;
mod start;
mod times;

pub(crate) use members::fit;
pub(crate) use start::{random, start};

use crate::api::{Arrival, Inbox};
use crate::handle::{Parts, SECRET};
use crate::memory::Span;
use crate::queue::Queue;
use crate::request::{ChannelState, Status};
use crate::roce::{LoopBack, Memory, Nics};
use crate::slab::Slab;
use crate::statistics::{Counts, Statistics};
use crate::stream::inflow::Sink;
use crate::threads::AtomicBool;
use crate::wire::{ChannelKey, Home, Slot};
use crate::{CommError, EndpointConfig, Hint, Process, process, tcp};
use absent::Absent;
use connection::{Broken, Connection, Role};
use even_split::EvenSplit;
use members::Members;
use mio::{Interest, Poll, Token, Waker};
use planning::LanePart;
use progress::Progress;
use receiving::{Announced, Listening, Receiving};
use room::Spare;
use rustc_hash::FxHashMap;
use sending::Sending;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
/// Queues of devices.
const QUEUES: Token = Token(usize::MAX - 1);
/// Tokens of connections begin here, and none is given twice.
const FIRST: usize = 2;
/// What still has to leave when an endpoint is dropped gets so long.
const LAST: Duration = Duration::from_secs(2);

/// What the application asks of the engine.
#[derive(Debug)]
pub(crate) enum Order {
    Listen {
        number: u32,
        key: ChannelKey,
        inbox: Arc<Inbox>,
    },
    Unlisten(u32),
    Connect {
        channel: u64,
        to: Parts,
        dscp: Option<u8>,
        state: Arc<ChannelState>,
    },
    Send {
        channel: u64,
        body: Span,
        tag: i32,
        status: Arc<Status>,
    },
    Receive {
        channel: u64,
        buffers: Vec<(Span, Slot)>,
        status: Arc<Status>,
    },
    /// Of the sending half, or the receiving one. `done` is told when the engine has left its memory.
    Close {
        channel: u64,
        sends: bool,
        done: Option<mpsc::SyncSender<()>>,
    },
    Hint(Hint),
    Statistics(mpsc::SyncSender<Statistics>),
    Stop,
}

/// What the application and the engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    orders: Queue<Order>,
    waker: Waker,
    progress: Progress,
    dead: Arc<AtomicBool>,
    pub(crate) numbers: AtomicU64,
    /// Address and host of the endpoint, without listener and secret.
    pub(crate) parts: Parts,
    /// The process that has its thread.
    pub(crate) process: Process,
    /// What tells it apart from others at the same port.
    life: u64,
    /// What all processes of the job know; empty: nothing.
    job: Arc<[u8]>,
    /// What the devices know of memory, where there are any.
    pub(crate) memory: Option<Arc<Memory>>,
    /// The processor reads all payload.
    pub(crate) checks_all: bool,
    /// And the ways from each to itself, by NIC.
    pub(crate) loop_backs: Vec<LoopBack>,
    /// Why there is none, where one was wanted.
    pub(crate) notice: Option<String>,
    /// New channels keep notes.
    pub(crate) notes: AtomicBool,
}

impl Shared {
    /// Hands over an order, and has it carried out. Sends and receives that follow each other are carried out
    /// together, by whoever asks for one of them, and share system calls. Nobody hears orders of a child that was
    /// forked.
    pub(crate) fn order(&self, order: Order) {
        if self.process.is_current() {
            let waits = matches!(order, Order::Send { .. } | Order::Receive { .. });
            let sleeps = self.orders.push(order);
            if sleeps || !waits {
                self.carry_out();
            }
        }
    }
    /// The state of a new channel.
    pub(crate) fn new_channel_state(&self) -> Arc<ChannelState> {
        let notes = self.notes.load(Ordering::Relaxed);
        Arc::new(ChannelState::new(self.dead.clone(), self.process, notes))
    }
    /// What whoever has the handle of a listener with this secret knows, if it is of this job.
    pub(crate) fn key(&self, secret: &[u8; SECRET]) -> ChannelKey {
        ChannelKey::new(&self.job, secret)
    }
    /// Which endpoint this is.
    fn home(&self) -> Home {
        Home { life: self.life, address: self.parts.address }
    }
    /// Whether the engine runs, and in this process.
    pub(crate) fn check(&self) -> Result<(), CommError> {
        if !self.process.is_current() {
            return Err(CommError::forked());
        }
        if self.dead.load(Ordering::Acquire) {
            return Err(CommError::System("the endpoint is closed".into()));
        }
        Ok(())
    }
}

pub(crate) struct Engine {
    shared: Arc<Shared>,
    config: EndpointConfig,
    spread: EvenSplit,
    members: Members,
    poll: Poll,
    listeners: FxHashMap<u32, Listening>,
    sending: Slab<Sending>,
    receiving: Slab<Receiving>,
    /// By channel.
    senders: FxHashMap<u64, u32>,
    receivers: FxHashMap<u64, u32>,
    /// Channels whose receiving halves were closed, the last ones.
    closed: VecDeque<u64>,
    connections: FxHashMap<usize, Connection>,
    /// Endpoints that some receiving half has no connection from.
    absent: FxHashMap<Home, Absent>,
    /// Connections that have not said who they are, or are refused, the oldest first.
    pending_connections: VecDeque<usize>,
    /// For whoever comes when there are no descriptors.
    spare: Spare,
    /// Somebody may wait to be taken in.
    knocking: bool,
    next_token: usize,
    ready: VecDeque<usize>,
    /// Sending halves that may have matched something, and receiving halves that have something to
    /// tell.
    to_match: Vec<u32>,
    /// Parts that lanes are about to get.
    cuts: VecDeque<LanePart>,
    to_tell: Vec<u32>,
    /// Connections that are silent while other lanes bring what they should, and since when.
    silent: Vec<(usize, Instant)>,
    /// What was announced and is watched, what is due first at the top.
    announced: BinaryHeap<Reverse<Announced>>,
    /// Connections over which acknowledgements are held back, and until when, what is due first at the top.
    held: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Receiving halves whose next announcements wait for each other, and until when.
    soon: VecDeque<(Instant, u32)>,
    /// The time of this round.
    now: Instant,
    /// When [`Engine::look_at_times`] is due.
    next_look: Instant,
    /// When that was last done.
    looked: Instant,
    counts: Counts,
    /// The devices of lanes over RDMA.
    nics: Option<Nics>,
    /// Links that this round has made.
    made_links: u32,
}

impl Engine {
    /// Does what the application asks. Whether the engine goes on.
    fn handle(&mut self, order: Order) -> bool {
        match order {
            Order::Listen { number, key, inbox } => {
                self.listeners.insert(number, Listening { key, inbox });
            }
            Order::Unlisten(number) => {
                let gone = self.listeners.remove(&number);
                // Nobody will accept those who wait.
                let waiting = gone.iter().flat_map(|one| lock(&one.inbox).split_off(0));
                for (channel, _) in waiting.flatten() {
                    self.close_receiving(channel);
                }
            }
            Order::Connect { channel, to, dscp, state } => {
                self.connect(channel, &to, dscp, state);
            }
            Order::Send { channel, body, tag, status } => self.send(channel, body, tag, status),
            Order::Receive { channel, buffers, status } => self.receive(channel, buffers, status),
            Order::Close { channel, sends, done } => {
                if sends {
                    self.close_sending(channel);
                } else {
                    self.close_receiving(channel);
                }
                if let Some(done) = done {
                    // Nobody waits if the application is ending.
                    let _ = done.try_send(());
                }
            }
            Order::Hint(hint) => {
                self.members.plannings().for_each(|planning| planning.hint(hint));
            }
            Order::Statistics(to) => {
                let _ = to.try_send(self.statistics());
            }
            Order::Stop => return false,
        }
        true
    }

    fn match_and_tell(&mut self) {
        while let Some(number) = self.to_match.pop() {
            self.match_sends(number);
        }
        while let Some(number) = self.to_tell.pop() {
            self.tell(number);
        }
    }

    fn take_turn(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.queued = false;
        match connection.role {
            Role::Stranger { .. } => self.greet(token),
            Role::Send { channel, lane } => self.turn_send(token, channel, lane),
            Role::Receive { channel, lane, .. } => self.turn_receive(token, channel, lane),
            Role::Leaving { .. } => self.turn_leaving(token),
            Role::Asks { home } => self.turn_asking(token, home),
        }
        if self.has_last(token) {
            self.keep_spare();
        }
    }

    /// Gives a connection a turn.
    fn line_up(&mut self, token: usize) {
        if let Some(connection) = self.connections.get_mut(&token)
            && !connection.queued
        {
            connection.queued = true;
            self.ready.push_back(token);
        }
    }

    /// Watches a connection; its token.
    fn add(&mut self, mut connection: Connection) -> io::Result<usize> {
        let token = self.next_token;
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut connection.stream, Token(token), both)?;
        self.next_token += 1;
        self.connections.insert(token, connection);
        Ok(token)
    }

    fn leave_all(&mut self) {
        for number in self.sending.numbers() {
            let Some(sending) = self.sending.get_mut(number) else { continue };
            if !sending.over && sending.holds_copies() {
                sending.closes.get_or_insert(self.now + LAST);
            } else {
                self.end_sending(number, None);
            }
        }
        for number in self.receiving.numbers() {
            self.end_receiving(number, None);
        }
    }
}

fn lock(inbox: &Inbox) -> MutexGuard<'_, VecDeque<Arrival>> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until nothing is there or the turn is over; bytes read.
fn read(connection: &mut Connection, sink: &mut impl Sink) -> Result<usize, Broken> {
    #[expect(unsafe_code, reason = "payload is read to where it belongs")]
    // SAFETY: bodies belong to receives under way, whose memory stays by the contract of `irecv`: a
    // buffer is not given back while a frame for it has begun (`RecvHalf`), and the connections of a
    // channel that is closed read no more of it (`Role::Leaving`).
    unsafe {
        connection.read(sink)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // First nobody touches memory of the application any more.
        for listener in self.members.listeners() {
            tcp::close_listener(listener);
            process::forget(listener.as_raw_fd());
        }
        self.connections.clear();
        self.nics = None;
        // After this nobody waits for anything, also where the engine has panicked.
        self.shared.dead.store(true, Ordering::Release);
        self.shared.orders.close();
        let gone = || CommError::System("the endpoint is closed".into());
        for (_, sending) in self.sending.iter() {
            sending.state.fail(gone());
        }
        for (_, receiving) in self.receiving.iter() {
            receiving.state.fail(gone());
        }
        for number in self.sending.numbers() {
            self.sending.get_mut(number).expect("listed").fail_all();
        }
        for number in self.receiving.numbers() {
            self.receiving.get_mut(number).expect("listed").fail_all();
        }
    }
}
