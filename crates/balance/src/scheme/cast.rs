//! CAST (congestion-aware scheduling of RCCL's InfiniBand transport, 2026): chunks of messages go to the
//! queue pairs of a connection by weights, which follow from how long chunks took on each.
//!
//! A queue pair keeps its path, which a hash gives it. When a chunk completes, its round-trip time is the time
//! since it was posted less what its bytes take on the NIC's port. The weight of a queue pair is the inverse of
//! its mean excess over the fastest one plus the least time of that one; all weights add up to one. They are
//! used as tokens, 100 for all queue pairs: those that have some take chunks in turn, and when none
//! is left all get theirs again. With `split = "weighted"` a large chunk is cut over all queue pairs by their
//! weights instead.
//!
//! Source: `projects/rccl/src/transport/net_ib_cast` of ROCm's rocm-systems; its environment variables are
//! named at the options. A connection has so many chunks under way as NCCL has steps in a buffer
//! ([`Cast::depth`]), the next one is posted when one has completed. What it cannot do is move a queue pair: two that share
//! an uplink stay there.
//!
//! What is ours: a round trip of zero counts as one picosecond; a chunk of a message is never joined with
//! another one.

use super::connections::{Connections, Sharing, Split, connection_draw};
use super::{Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{FlowInfo, HostContext, Plan, Post, QueuePairId, Subflow};
use crate::steer::{Fixed, FlowContext};
use std::collections::VecDeque;
use weft_fabric::Fabric;
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, Time};

/// Queue pairs weighted by round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cast {
    /// Queue pairs of a connection. Never zero.
    pub queue_pairs: u32,
    /// Whether large chunks are cut over all queue pairs, instead of going whole to one.
    pub splits: bool,
    /// Bytes for each queue pair from which on a chunk is cut.
    pub split_from: u64,
    /// Messages are sent in chunks of this payload. Never zero.
    pub chunk: u64,
    /// Chunks of a connection that are under way at once. Never zero.
    pub depth: u32,
    /// The share of a new sample in the average; zero: the mean of all samples since the last reset.
    pub gain: f64,
    /// Weights are made anew no more often than this.
    pub update: Time,
    /// What was learnt is forgotten after this; zero: never.
    pub reset: Time,
}

impl Scheme for Cast {
    const INFO: SchemeInfo = SchemeInfo {
        name: "cast",
        summary: "several queue pairs a connection, which get chunks by how long chunks took on each",
        source: "RCCL's IB-CAST transport (ROCm 2026)",
        numbered: Some("queue_pairs"),
        persistent: true,
        options: &[
            Sharing::QUEUE_PAIRS,
            OptionInfo {
                key: "split",
                default: "round-robin",
                kind: OptionKind::Word(&["round-robin", "weighted"]),
                meaning: "a chunk goes whole to one queue pair in weighted turn (\"round-robin\"), or is cut \
                          over all by their weights (\"weighted\"): NCCL_IB_SPLIT_DATA_ON_QPS = 0 and 1",
            },
            OptionInfo {
                key: "split_from",
                default: "65536B",
                kind: OptionKind::Size(0, u64::MAX),
                meaning: "bytes for each queue pair from which on a chunk is cut (SPLIT_DATA_MIN)",
            },
            OptionInfo {
                key: "chunk",
                default: "524288B",
                kind: OptionKind::Size(1, u64::MAX),
                meaning: "messages are sent in chunks of this size, as NCCL does",
            },
            OptionInfo {
                key: "depth",
                default: "8",
                kind: OptionKind::Whole(1, u32::MAX),
                meaning: "chunks of a connection that are under way at once (NCCL_STEPS)",
            },
            OptionInfo {
                key: "gain",
                default: "0.0",
                kind: OptionKind::Number(0.0, 1.0),
                meaning: "share of a new sample in the average; 0: the mean since the last reset \
                          (RCCL_IB_QP_SCHED_WEIGHT)",
            },
            OptionInfo {
                key: "update",
                default: "50us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "weights are made anew no more often than this (UPDATE_INTERVAL)",
            },
            OptionInfo {
                key: "reset",
                default: "60s",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "what was learnt is forgotten after this; 0s: never (RESET_INTERVAL)",
            },
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<WeightedConnections>;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Cast, OptionError> {
        Ok(Cast {
            queue_pairs: options.number("queue_pairs")?,
            splits: options.choice("split", &[("round-robin", false), ("weighted", true)])?,
            split_from: options.size("split_from")?,
            chunk: options.size("chunk")?,
            depth: options.number("depth")?,
            gain: options.fraction("gain")?,
            update: options.time("update")?,
            reset: options.time("reset")?,
        })
    }
    fn number(&self) -> Option<u32> {
        Some(self.queue_pairs)
    }
    fn planner(&self, context: &HostContext) -> Box<WeightedConnections> {
        let Cast { queue_pairs, .. } = *self;
        let sharing = Sharing { queue_pairs, split: Split::RoundRobin, chunk: None };
        Box::new(WeightedConnections {
            scheme: *self,
            host: context.host,
            ports: Draw::new(context.seed, "connection-port"),
            connections: Connections::new(sharing, context),
            peers: Vec::new(),
        })
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

/// The connections of one host.
#[derive(Clone, Debug)]
pub struct WeightedConnections {
    scheme: Cast,
    host: HostId,
    ports: Draw,
    connections: Connections,
    /// By the number of the connection.
    peers: Vec<Peer>,
}

/// What a connection is about to send, and what it has learnt.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// Messages of which chunks are still to be posted, with the number of the next part.
    waiting: VecDeque<(Post, u32)>,
    /// Bytes posted that have not completed.
    posted: u64,
    queues: Box<[Sampled]>,
    /// The share of each queue pair; empty before the first samples of all.
    weights: Box<[f64]>,
    tokens: Box<[u32]>,
    /// Whose turn it is.
    turn: usize,
    updated: Time,
    forgot: Time,
}

/// How long chunks took on a queue pair.
#[derive(Clone, Debug, Default)]
struct Sampled {
    /// Parts that were posted and have not completed, the oldest first.
    posted: VecDeque<Posted>,
    /// A mean, of so many samples, and the least of them, in picoseconds.
    mean: f64,
    count: u32,
    least: f64,
}

/// A part of a chunk.
#[derive(Clone, Copy, Debug)]
struct Posted {
    at: Time,
    bytes: u64,
    /// What of them has not completed.
    left: u64,
}

impl Sampled {
    fn learn(&mut self, rtt: f64, gain: f64) {
        self.count += 1;
        let gain = if gain == 0.0 || self.count == 1 { 1.0 / f64::from(self.count) } else { gain };
        self.mean += gain * (rtt - self.mean);
        self.least = if self.count == 1 { rtt } else { self.least.min(rtt) };
    }
}

impl Peer {
    fn new(scheme: &Cast, now: Time) -> Peer {
        let count = scheme.queue_pairs as usize;
        let queues = vec![Sampled::default(); count].into_boxed_slice();
        let tokens = vec![1; count].into_boxed_slice();
        Peer { queues, tokens, updated: now, forgot: now, ..Peer::default() }
    }

    /// Makes the weights anew if it is time.
    fn update(&mut self, scheme: &Cast, now: Time) {
        if scheme.reset > Time::ZERO && self.forgot.until(now) >= scheme.reset {
            self.forgot = now;
            self.queues.iter_mut().for_each(|queue| queue.count = 0);
        }
        let is_first = self.weights.is_empty();
        let is_due = is_first || self.updated.until(now) >= scheme.update;
        if !is_due || self.queues.iter().any(|queue| queue.count == 0) {
            return;
        }
        self.updated = now;
        let by_mean = |a: &&Sampled, b: &&Sampled| a.mean.total_cmp(&b.mean);
        let fastest = self.queues.iter().min_by(by_mean).expect("there is a queue pair");
        let (mean, least) = (fastest.mean, fastest.least.max(1.0));
        let speeds = self.queues.iter().map(|queue| 1.0 / (queue.mean - mean + least));
        let sum: f64 = speeds.clone().sum();
        self.weights = speeds.map(|speed| speed / sum).collect();
        for (token, weight) in self.tokens.iter_mut().zip(&self.weights) {
            *token = (*token).min(tokens(*weight));
        }
    }

    /// Which queue pair gets the next chunk.
    fn next_queue(&mut self) -> usize {
        if self.tokens.iter().all(|left| *left == 0) {
            match self.weights.is_empty() {
                true => self.tokens.fill(1),
                false => {
                    self.tokens = self.weights.iter().map(|weight| tokens(*weight)).collect();
                }
            }
        }
        let count = self.tokens.len();
        let mut turns = (self.turn..count).chain(0..self.turn);
        let queue = turns.find(|at| self.tokens[*at] > 0).expect("some have tokens");
        self.tokens[queue] -= 1;
        self.turn = (queue + 1) % count;
        queue
    }

    /// Over which queue pairs a chunk of `bytes` goes, and how much over each.
    fn parts(&mut self, scheme: &Cast, bytes: u64) -> Vec<(usize, u64)> {
        let count = self.queues.len();
        if !scheme.splits || bytes / (count as u64) < scheme.split_from {
            return vec![(self.next_queue(), bytes)];
        }
        let mut left = bytes;
        let mut parts = Vec::with_capacity(count);
        for queue in 0..count {
            let part = match self.weights.get(queue) {
                None => bytes.div_ceil(count as u64).next_multiple_of(UNIT),
                Some(weight) => (bytes as f64 * weight) as u64 / UNIT * UNIT,
            };
            let part = if queue + 1 == count { left } else { part.min(left) };
            if part > 0 {
                parts.push((queue, part));
                left -= part;
            }
        }
        parts
    }
}

/// Parts of a chunk are so many bytes, or a multiple.
const UNIT: u64 = 128;

/// How many of the 100 tokens such a weight gives.
fn tokens(weight: f64) -> u32 {
    let hundred = 100.0 * weight;
    let whole = hundred as u32;
    whole + u32::from(whole == 0 || hundred - f64::from(whole) > 0.5)
}

impl WeightedConnections {
    /// Posts what connection `peer` may have under way.
    fn fill(&mut self, now: Time, peer: u32, out: &mut Vec<Subflow>) {
        let scheme = self.scheme;
        let state = &mut self.peers[peer as usize];
        let most = scheme.chunk.saturating_mul(u64::from(scheme.depth));
        while let Some((post, part)) = state.waiting.front().copied()
            && (state.posted == 0
                || state.posted.saturating_add(post.bytes.min(scheme.chunk)) <= most)
        {
            state.update(&scheme, now);
            let bytes = post.bytes.min(scheme.chunk);
            let parts = state.parts(&scheme, bytes);
            for ((queue, bytes), part) in parts.iter().copied().zip(part..) {
                state.queues[queue].posted.push_back(Posted { at: now, bytes, left: bytes });
                self.connections.put(peer, queue as u32, (post, part, bytes), out);
            }
            state.posted += bytes;
            match post.bytes - bytes {
                0 => drop(state.waiting.pop_front()),
                left => {
                    let next = (Post { bytes: left, ..post }, part + parts.len() as u32);
                    state.waiting[0] = next;
                }
            }
        }
    }
}

impl Plan for WeightedConnections {
    fn post(&mut self, now: Time, post: Post, _: &Fabric, out: &mut Vec<Subflow>) {
        let pair = connection_draw(self.ports, self.host, &post);
        let port = |number: u32| ((pair >> 48) as u16).wrapping_add(number as u16);
        let peer = self.connections.connection(&post, port);
        while self.peers.len() <= peer as usize {
            self.peers.push(Peer::new(&self.scheme, now));
        }
        self.peers[peer as usize].waiting.push_back((post, 0));
        self.fill(now, peer, out);
    }
    fn next(&mut self, _: Time, queue_pair: QueuePairId, _: &Fabric) -> Option<Subflow> {
        self.connections.next(queue_pair)
    }
    fn sent(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let Some(queue_pair) = flow.queue_pair else { return };
        let (peer, number) = self.connections.find(queue_pair);
        let (state, bytes) = (&mut self.peers[peer], flow.bytes);
        let queue = &mut state.queues[number];
        let Some(oldest) = queue.posted.front_mut() else { return };
        oldest.left = oldest.left.saturating_sub(bytes);
        state.posted = state.posted.saturating_sub(bytes);
        let oldest = *oldest;
        if oldest.left == 0 {
            queue.posted.pop_front();
            let rate = fabric.ports()[fabric.nic(self.host)].rate;
            let rtt = rate.serialize(oldest.bytes).until(oldest.at.until(now));
            queue.learn(rtt.0.max(1) as f64, self.scheme.gain);
        }
        self.fill(now, peer as u32, out);
    }
}
