//! ParaLet: a few queue pairs of a NIC, shared by all its connections, that send flowlets of all
//! messages side by side (ParaLet 2024).
//!
//! Every host has m queue pairs, each with a source port of its own, which switches hash, and each
//! at 1/m of line rate. Messages are cut into flowlets of 4 BDP / m (section 5.2), whole packets;
//! a queue pair that has sent one pulls the next, from the messages in turn. Inside a flowlet
//! packets stay in order, and between flowlets there is none: the transport's recovery runs
//! flowlet by flowlet. With m = 1 this is flow-level balancing; with one flowlet a packet, spraying.
//!
//! Invariant: a host has at most m flowlets that are not on the wire to the end. What a message
//! needs is cut off when a queue pair pulls it, so memory follows messages and not flowlets. What
//! the paper leaves open: the order of pulling (in turn here), and whether a flowlet keeps the
//! port of its queue pair ([`Ports`]).

use super::{PathUse, Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{Carrier, HostContext, Plan, Post, QueuePairId, Route, Starts, Subflow};
use crate::steer::{Fixed, FlowContext};
use std::collections::VecDeque;
use weft_fabric::Fabric;
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, Time};

/// Queue pairs that a NIC may have.
pub const MOST_QUEUE_PAIRS: u32 = 4096;

/// Parallel flowlets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paralet {
    /// Queue pairs of a NIC, the paper's m. Never zero.
    pub queue_pairs: u32,
    /// Payload of a flowlet in bytes, rounded up to whole packets; `None`: 4 BDP / m.
    pub flowlet: Option<u64>,
    /// Where source ports come from.
    pub ports: Ports,
}

/// What has a source port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Every queue pair, for good (section 5.1).
    QueuePair,
    /// Every flowlet, so that it may take a path that its queue pair has not taken before.
    Flowlet,
}

impl Scheme for Paralet {
    const INFO: SchemeInfo = SchemeInfo {
        name: "paralet",
        summary: "a few shared queue pairs a NIC send flowlets of all messages side by side",
        source: "ParaLet (Cao et al., NAIC 2024)",
        congestion: "dctcp-rate",
        numbered: Some("queue_pairs"),
        persistent: true,
        shares: true,
        options: &[
            OptionInfo {
                key: "queue_pairs",
                default: "32",
                kind: OptionKind::Whole(1, MOST_QUEUE_PAIRS),
                meaning: "queue pairs of a NIC, each at its share of line rate, 1 to 4096",
            },
            OptionInfo {
                key: "flowlet",
                default: "4 BDP / queue_pairs",
                kind: OptionKind::Size(0, u64::MAX),
                meaning: "payload of a flowlet, rounded up to whole packets",
            },
            OptionInfo {
                key: "ports",
                default: "queue-pair",
                kind: OptionKind::Word(&["queue-pair", "flowlet"]),
                meaning: "what has a source port of its own: a \"queue-pair\", or every \
                          \"flowlet\"",
            },
        ],
        paths: PathUse::AsPacketsFind,
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<Flowlets>;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Paralet, OptionError> {
        let words = [("queue-pair", Ports::QueuePair), ("flowlet", Ports::Flowlet)];
        let queue_pairs = options.number("queue_pairs")?;
        let flowlet = options.size_if_given("flowlet")?;
        if flowlet == Some(0) {
            return Err(OptionError::new(
                "flowlet",
                "a flowlet has payload; write one such as 16KB",
            ));
        }
        Ok(Paralet { queue_pairs, flowlet, ports: options.choice("ports", &words)? })
    }
    fn number(&self) -> Option<u32> {
        Some(self.queue_pairs)
    }
    fn planner(&self, context: &HostContext) -> Box<Flowlets> {
        Box::new(Flowlets::new(*self, context))
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, _: &SwitchContext) -> Hashed {
        Hashed
    }
}

impl Paralet {
    /// Payload of a flowlet in bytes: whole packets of `mtu` bytes of payload, where `bdp` bytes
    /// are a bandwidth-delay product.
    pub fn flowlet_bytes(&self, bdp: u64, mtu: u32) -> u64 {
        let given = self.flowlet.unwrap_or(4 * bdp / u64::from(self.queue_pairs));
        given.max(1).next_multiple_of(u64::from(mtu))
    }
}

/// The queue pairs of one host.
#[derive(Clone, Debug)]
pub struct Flowlets {
    scheme: Paralet,
    host: HostId,
    /// Payload of a flowlet.
    bytes: u64,
    ports: Draw,
    starts: Starts,
    /// Queue pairs with room, the one that has waited for longest first.
    free: VecDeque<QueuePairId>,
    /// Messages of which something is to be pulled, the next one first.
    waiting: VecDeque<Rest>,
}

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
struct Rest {
    post: Post,
    /// Payload that has not been pulled.
    bytes: u64,
    /// How many flowlets have been.
    flowlets: u32,
}

impl Flowlets {
    fn new(scheme: Paralet, context: &HostContext) -> Flowlets {
        let HostContext { host, seed, mtu, starts, bdp, .. } = *context;
        Flowlets {
            scheme,
            host,
            bytes: scheme.flowlet_bytes(bdp, mtu),
            ports: Draw::new(seed, "paralet"),
            starts,
            free: (0..scheme.queue_pairs).map(QueuePairId).collect(),
            waiting: VecDeque::new(),
        }
    }

    /// The next flowlet, on `queue_pair`.
    fn pull(&mut self, queue_pair: QueuePairId) -> Option<Subflow> {
        let mut rest = self.waiting.pop_front()?;
        let bytes = self.bytes.min(rest.bytes);
        let part = rest.flowlets;
        rest.bytes -= bytes;
        rest.flowlets += 1;
        if rest.bytes > 0 {
            self.waiting.push_back(rest);
        }
        let Post { message, dst, tag, .. } = rest.post;
        let port = match self.scheme.ports {
            Ports::QueuePair => self.ports.at(u64::from(self.host.0), u64::from(queue_pair.0)),
            Ports::Flowlet => self.ports.at(u64::from(message.0), u64::from(part)),
        };
        let route = Route::Hashed((port >> 48) as u16);
        // Only the start of a message is random: later flowlets begin when there is room.
        let delay = if part == 0 { self.starts.delay(message, 0) } else { Time::ZERO };
        let all = self.scheme.queue_pairs;
        let carrier = Carrier::Persistent { queue_pair, share: all, beside: all };
        Some(Subflow { message, dst, bytes, part, route, delay, tag, carrier })
    }
}

impl Plan for Flowlets {
    fn post(&mut self, _: Time, post: Post, _: &Fabric, out: &mut Vec<Subflow>) {
        self.waiting.push_back(Rest { post, bytes: post.bytes, flowlets: 0 });
        while !self.waiting.is_empty()
            && let Some(queue_pair) = self.free.pop_front()
        {
            out.extend(self.pull(queue_pair));
        }
    }

    fn next(&mut self, _: Time, queue_pair: QueuePairId, _: &Fabric) -> Option<Subflow> {
        let subflow = self.pull(queue_pair);
        if subflow.is_none() {
            self.free.push_back(queue_pair);
        }
        subflow
    }
}
