//! Connections of several queue pairs, as NCCL and libraries made of it have them: how messages
//! are spread over the queue pairs of a connection, and which source port each of them has.
//!
//! Two ranks that talk have a connection, with so many persistent queue pairs; two hosts, where
//! there are no ranks. Ranks that share a NIC share no queue pairs. A message, or each chunk of it,
//! is cut evenly over the queue pairs (`NCCL_IB_SPLIT_DATA_ON_QPS=1`), or goes to one of them in
//! turn (`=0`). A queue pair carries its subflows one after the other.
//!
//! A library that watches over its queue pairs leaves one alone for a while after a time-out on
//! it, and gives what waits there to the others (`Connections::leave`).

use super::{OptionError, OptionInfo, OptionKind, Options};
use crate::plan::{Carrier, FlowInfo, HostContext, Post, QueuePairId, Route, Starts, Subflow};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use weft_units::{Draw, HostId, Time};

/// How messages use the queue pairs of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Queue pairs of a connection. Never zero.
    pub queue_pairs: u32,
    /// What goes where.
    pub split: Split,
    /// Longer messages are sent as if posted in chunks of this payload; `None`: whole.
    pub chunk: Option<u64>,
}

/// Which queue pairs a message, or chunk, takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// All, an equal part on each.
    Even,
    /// One, the next in turn.
    RoundRobin,
}

impl Sharing {
    /// How many queue pairs.
    pub const QUEUE_PAIRS: OptionInfo = OptionInfo {
        key: "queue_pairs",
        default: "8",
        kind: OptionKind::Whole(1, 128),
        meaning: "queue pairs of a connection, 1 to 128 (NCCL_IB_QPS_PER_CONNECTION)",
    };
    /// What goes where.
    pub const SPLIT: OptionInfo = OptionInfo {
        key: "split",
        default: "even",
        kind: OptionKind::Word(&["even", "round-robin"]),
        meaning: "a message goes in equal parts over all queue pairs (\"even\"), or whole to one \
                  of them in turn (\"round-robin\"): NCCL_IB_SPLIT_DATA_ON_QPS = 1 and 0",
    };
    /// The option `chunk`: messages are sent as if posted in chunks.
    pub const CHUNK: OptionInfo = OptionInfo {
        key: "chunk",
        default: "whole messages",
        kind: OptionKind::Size(0, u64::MAX),
        meaning: "longer messages are sent in chunks of this size; NCCL's are 512KiB and less",
    };

    pub(super) fn read(options: &mut Options<'_>) -> Result<Sharing, OptionError> {
        let words = [("even", Split::Even), ("round-robin", Split::RoundRobin)];
        let queue_pairs = options.number("queue_pairs")?;
        let split = options.choice("split", &words)?;
        let chunk = options.size_if_given("chunk")?;
        if chunk == Some(0) {
            return Err(OptionError::new("chunk", "a chunk has payload; write one such as 512KiB"));
        }
        Ok(Sharing { queue_pairs, split, chunk })
    }
}

/// The connections of one host.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    sharing: Sharing,
    host: HostId,
    mtu: u64,
    starts: Starts,
    /// By the ends of each. Never iterated.
    numbers: FxHashMap<Ends, u32>,
    all: Vec<Connection>,
    /// What has been moved to queue pairs with room.
    moved: Vec<Subflow>,
    /// Queue pairs are numbered in steps of this, from that one on.
    step: u32,
    base: u32,
}

/// The ends of a connection: the receiving host, and the ranks.
type Ends = (HostId, (u32, u32));

/// A random number for each connection of `host`, of which `post` goes over one.
pub(super) fn connection_draw(draw: Draw, host: HostId, post: &Post) -> u64 {
    let (from, to) = post.ranks;
    let end = |host: HostId, rank: u32| u64::from(rank) << 32 | u64::from(host.0);
    draw.at(end(host, from), end(post.dst, to))
}

/// A connection to one peer.
#[derive(Clone, Debug)]
struct Connection {
    queues: Box<[Queue]>,
    /// Whose turn it is.
    turn: u32,
    /// How many queue pairs a message is on at once.
    beside: u32,
    /// Which of the live queue pairs takes over next. Hosts begin with different ones, since what
    /// they have to move is often the same.
    heir: u32,
}

/// A queue pair.
#[derive(Clone, Debug)]
struct Queue {
    port: u16,
    /// Has a subflow that is not on the wire to the end.
    busy: bool,
    /// Out of use until then.
    left_until: Time,
    waiting: VecDeque<Subflow>,
}

impl Connections {
    pub(super) fn new(sharing: Sharing, context: &HostContext) -> Connections {
        let HostContext { host, mtu, starts, .. } = *context;
        let (numbers, all, moved) = (FxHashMap::default(), Vec::new(), Vec::new());
        let mtu = u64::from(mtu.max(1));
        Connections { sharing, host, mtu, starts, numbers, all, moved, step: 1, base: 0 }
    }
    /// With every `step`-th number for its queue pairs, from `base` on.
    pub(super) fn numbered(self, step: u32, base: u32) -> Connections {
        Connections { step, base, ..self }
    }

    /// Spreads a message; appends to `out` what can leave at once. `port` gives the source port of
    /// each queue pair of a connection that is new.
    pub(super) fn post(
        &mut self,
        now: Time,
        post: Post,
        port: impl Fn(u32) -> u16,
        out: &mut Vec<Subflow>,
    ) {
        let Sharing { split, chunk, .. } = self.sharing;
        let peer = self.connection(&post, port);
        let mut part = 0;
        let mut left = post.bytes;
        loop {
            let bytes = chunk.map_or(left, |chunk| chunk.min(left));
            left -= bytes;
            let in_use = self.all[peer as usize].in_use(now);
            let parts = match split {
                Split::Even => (in_use.len() as u64).min(bytes.div_ceil(self.mtu)).max(1),
                Split::RoundRobin => 1,
            };
            for number in 0..parts {
                let turn = match split {
                    // All take part; where there are fewer parts, they go round.
                    Split::Even if parts == in_use.len() as u64 => number as usize,
                    _ => self.all[peer as usize].turns(in_use.len()),
                };
                let bytes = bytes / parts + u64::from(number < bytes % parts);
                self.put(peer, in_use[turn], (post, part, bytes), out);
                part += 1;
            }
            if left == 0 {
                return;
            }
        }
    }

    /// The number of the connection that `post` goes over; `port` gives the source port of each queue
    /// pair of a new one.
    pub(super) fn connection(&mut self, post: &Post, port: impl Fn(u32) -> u16) -> u32 {
        *self.numbers.entry((post.dst, post.ranks)).or_insert_with(|| {
            let Sharing { queue_pairs, split, .. } = self.sharing;
            let queue = |number| Queue {
                port: port(number),
                busy: false,
                left_until: Time::ZERO,
                waiting: VecDeque::new(),
            };
            let beside = if split == Split::Even { queue_pairs } else { 1 };
            let queues = (0..queue_pairs).map(queue).collect();
            self.all.push(Connection { queues, turn: 0, beside, heir: self.host.0 });
            self.all.len() as u32 - 1
        })
    }

    /// Gives a part of a message, of so many bytes, to queue pair `number` of connection `peer`.
    pub(super) fn put(
        &mut self,
        peer: u32,
        number: u32,
        (post, part, bytes): (Post, u32, u64),
        out: &mut Vec<Subflow>,
    ) {
        let id = self.naming()(peer * self.sharing.queue_pairs + number);
        let delay = self.starts.delay(post.message, part);
        let subflow = subflow(post, part, bytes, delay);
        self.all[peer as usize].enqueue(number, id, subflow, out);
    }

    /// The next subflow for a queue pair.
    pub(super) fn next(&mut self, id: QueuePairId) -> Option<Subflow> {
        let (peer, number) = self.find(id);
        let queue = &mut self.all[peer].queues[number];
        let subflow = queue.waiting.pop_front();
        queue.busy = subflow.is_some();
        subflow
    }

    /// Leaves the queue pair whose port `flow` has alone until `until`, its own or the one that it
    /// was moved to: what waits there goes to the others, and what they have room for to
    /// [`Connections::moved`].
    /// The source port under which `flow` itself goes on; `None`: there is no other queue pair.
    pub(super) fn leave(&mut self, now: Time, flow: &FlowInfo, until: Time) -> Option<Route> {
        let (peer, own) = self.find(flow.queue_pair?);
        let connection = &mut self.all[peer];
        let has_port = |queue: &Queue| Route::Hashed(queue.port) == flow.route;
        let number = match has_port(&connection.queues[own]) {
            true => own,
            false => connection.queues.iter().position(has_port).unwrap_or(own),
        };
        connection.queues[number].left_until = until;
        let in_use = connection.in_use(now);
        if in_use.contains(&(number as u32)) {
            return None;
        }
        let (id, first) = (self.naming(), peer as u32 * self.sharing.queue_pairs);
        let connection = &mut self.all[peer];
        for subflow in std::mem::take(&mut connection.queues[number].waiting) {
            let to = connection.heir(&in_use);
            connection.enqueue(to, id(first + to), subflow, &mut self.moved);
        }
        let heir = connection.heir(&in_use);
        Some(Route::Hashed(connection.queues[heir as usize].port))
    }

    /// What has been moved and can leave at once.
    pub(super) fn moved(&mut self) -> &mut Vec<Subflow> {
        &mut self.moved
    }

    /// Of which connection a queue pair is, and which of its queue pairs.
    pub(super) fn find(&self, id: QueuePairId) -> (usize, usize) {
        let number = id.0 / self.step;
        let queue_pairs = self.sharing.queue_pairs;
        ((number / queue_pairs) as usize, (number % queue_pairs) as usize)
    }
    /// The name of a queue pair, by its number among those of all connections.
    fn naming(&self) -> impl Fn(u32) -> QueuePairId + use<> {
        let (step, base) = (self.step, self.base);
        move |number| QueuePairId(number * step + base)
    }
}

impl Connection {
    /// The queue pairs that are not left alone; all if all are.
    fn in_use(&self, now: Time) -> Vec<u32> {
        let all = 0..self.queues.len() as u32;
        let good = |number: &u32| self.queues[*number as usize].left_until <= now;
        let in_use: Vec<u32> = all.clone().filter(good).collect();
        if in_use.is_empty() { all.collect() } else { in_use }
    }
    /// Who takes over next.
    fn heir(&mut self, in_use: &[u32]) -> u32 {
        self.heir = self.heir.wrapping_add(1);
        in_use[self.heir as usize % in_use.len()]
    }
    /// Whose turn it is among `count`.
    fn turns(&mut self, count: usize) -> usize {
        let turn = self.turn as usize % count;
        self.turn = self.turn.wrapping_add(1);
        turn
    }
    /// Gives `subflow` to queue pair `number`, whose name is `id`.
    fn enqueue(
        &mut self,
        number: u32,
        id: QueuePairId,
        mut subflow: Subflow,
        out: &mut Vec<Subflow>,
    ) {
        let queue = &mut self.queues[number as usize];
        subflow.route = Route::Hashed(queue.port);
        subflow.carrier = Carrier::Persistent { queue_pair: id, share: 1, beside: self.beside };
        if queue.busy {
            queue.waiting.push_back(subflow);
        } else {
            queue.busy = true;
            out.push(subflow);
        }
    }
}

/// A subflow that no queue pair has yet.
fn subflow(post: Post, part: u32, bytes: u64, delay: Time) -> Subflow {
    let Post { message, dst, tag, .. } = post;
    let (route, carrier) = (Route::Hashed(0), Carrier::Own);
    Subflow { message, dst, bytes, part, route, delay, tag, carrier }
}
