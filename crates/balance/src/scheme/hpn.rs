//! HPN's choice among connections (Qian et al., SIGCOMM 2024): every message goes to the
//! connection to its peer that has the fewest bytes outstanding.
//!
//! Two hosts have several connections, on paths as disjoint as the fabric allows or told apart
//! by their source ports only. A counter each says how many bytes were posted and are not
//! acknowledged to the end, as completions tell a communication library. Nothing is split.
//!
//! Switches route hashed connections around a dead link once they know of it. A pinned path stays
//! dead, and is left alone by hosts that know so before they begin, unless all are dead. Of one that dies
//! later they know nothing: a message that times out on it goes to the least of the other connections, and its
//! bytes go on counting against the one that it left, where nothing completes, until something
//! does.
//!
//! Invariant: a peer to whom nothing is outstanding takes no memory. What this simplifies: the
//! NIC opens a queue pair for every message, so that messages on one connection share its path but
//! send side by side, each with a window of its own, where a real connection sends them one after
//! the other. Connections to different peers know nothing of each other.

use super::{Scheme, SchemeInfo};
use crate::forward::{Hashed, SwitchContext};
use crate::plan::{Carrier, FlowInfo, HostContext, LossSignal, Plan, Post, Route, Starts, Subflow};
use crate::steer::{Fixed, FlowContext};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_fabric::{Fabric, PathView};
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, Time, random};

/// Least outstanding bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hpn {
    /// Connections to each peer; where paths are pinned, no more than there are. Never zero.
    pub connections: u32,
    /// What they differ in.
    pub paths: Paths,
}

/// How the connections to a peer find their ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Each is pinned to a path of its own.
    Pinned,
    /// Each has a source port of its own, which switches hash.
    Hashed,
}

impl Scheme for Hpn {
    const INFO: SchemeInfo = SchemeInfo {
        name: "hpn",
        summary: "every message to the connection with the fewest bytes outstanding",
        switches: "known hash, or route by path id",
        source: "Alibaba HPN (Qian et al., SIGCOMM 2024); Ethereal (2025), section 3.2",
        path_ids: true,
        options: &[
            OptionInfo {
                key: "connections",
                default: "4",
                kind: OptionKind::Whole(1, 256),
                meaning: "connections to each peer, 1 to 256",
            },
            OptionInfo {
                key: "paths",
                default: "pinned",
                kind: OptionKind::Word(&["pinned", "hashed"]),
                meaning: "\"pinned\": connections take paths that are as disjoint as can be; \
                          \"hashed\": their source ports differ, and switches hash them",
            },
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<Connections>;
    type Steering = Fixed;
    type Switching = Hashed;

    fn read(options: &mut Options<'_>) -> Result<Hpn, OptionError> {
        let words = [("pinned", Paths::Pinned), ("hashed", Paths::Hashed)];
        Ok(Hpn {
            connections: options.number("connections")?,
            paths: options.choice("paths", &words)?,
        })
    }
    fn needs_path_ids(&self) -> bool {
        self.paths == Paths::Pinned
    }
    fn planner(&self, context: &HostContext) -> Box<Connections> {
        Box::new(Connections::new(*self, context))
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
pub struct Connections {
    scheme: Hpn,
    host: HostId,
    starts: Starts,
    draw: Draw,
    /// What is outstanding to each peer. Never iterated.
    peers: FxHashMap<HostId, Box<[Outstanding]>>,
    /// What is known of links; nothing: all are alive.
    known: Option<Arc<PathView>>,
}

/// Bytes that a connection has not completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outstanding {
    /// On their way.
    bytes: u64,
    /// Of messages that have timed out and left.
    given_up: u64,
}

impl Outstanding {
    fn all(self) -> u64 {
        self.bytes + self.given_up
    }
}

impl Connections {
    fn new(scheme: Hpn, context: &HostContext) -> Connections {
        let HostContext { host, seed, starts, .. } = *context;
        let draw = Draw::new(seed, "hpn");
        Connections { scheme, host, starts, draw, peers: FxHashMap::default(), known: None }
    }

    /// How many connections there are to `dst`.
    fn count(&self, dst: HostId, fabric: &Fabric) -> u32 {
        match self.scheme.paths {
            Paths::Hashed => self.scheme.connections,
            Paths::Pinned => self.scheme.connections.min(fabric.path_set(self.host, dst).len()),
        }
    }

    /// The way of one of `count` connections to `dst`.
    fn route(&self, dst: HostId, connection: u32, count: u32, fabric: &Fabric) -> Route {
        let place = self.draw.at(u64::from(self.host.0), u64::from(dst.0));
        match self.scheme.paths {
            Paths::Hashed => Route::Hashed(((place >> 48) as u16).wrapping_add(connection as u16)),
            Paths::Pinned => {
                let paths = fabric.path_set(self.host, dst);
                // Paths that are far apart in the set have the fewest links in common.
                let first = random::below(place, u64::from(paths.len())) as u32;
                let index = (first + connection * paths.len() / count) % paths.len();
                Route::Pinned(paths.get(index))
            }
        }
    }

    /// Which connection a flow is on, of how many.
    fn find(&self, flow: &FlowInfo, fabric: &Fabric) -> Option<(u32, u32)> {
        let count = self.count(flow.dst, fabric);
        let mut all = 0..count;
        let connection = all.find(|it| self.route(flow.dst, *it, count, fabric) == flow.route)?;
        Some((connection, count))
    }

    /// Counts `bytes` on the least of `count` connections to `dst`, but for `left`; none if there
    /// is no other, or only such as are known to be dead while that is not.
    fn take(
        &mut self,
        (dst, bytes): (HostId, u64),
        count: u32,
        left: Option<u32>,
        fabric: &Fabric,
    ) -> Option<u32> {
        let others = (0..count).filter(|it| Some(*it) != left);
        let known = self.known.as_ref().filter(|known| !known.is_plain());
        let is_dead = |it: u32| {
            known.is_some_and(|known| match self.route(dst, it, count, fabric) {
                Route::Pinned(path) => known.is_dead(fabric, (self.host, dst), path),
                Route::Hashed(_) => false,
            })
        };
        let all = self.peers.get(&dst);
        let outstanding = |it: u32| all.map_or(0, |all| all[it as usize].all());
        let connection = others.min_by_key(|it| (is_dead(*it), outstanding(*it)))?;
        if left.is_some_and(|left| is_dead(connection) && !is_dead(left)) {
            return None;
        }
        let idle = || vec![Outstanding::default(); count as usize].into_boxed_slice();
        let connections = self.peers.entry(dst).or_insert_with(idle);
        connections[connection as usize].bytes += bytes;
        Some(connection)
    }
}

impl Plan for Connections {
    fn post(&mut self, _: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let Post { message, dst, bytes, tag, .. } = post;
        let count = self.count(dst, fabric);
        let connection = self.take((dst, bytes), count, None, fabric);
        let connection = connection.expect("there is a connection");
        let route = self.route(dst, connection, count, fabric);
        let delay = self.starts.delay(message, 0);
        let carrier = Carrier::Own;
        out.push(Subflow { message, dst, bytes, part: 0, route, delay, tag, carrier });
    }

    fn on_loss(
        &mut self,
        _: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<Route> {
        if (signal, self.scheme.paths) != (LossSignal::TimeOut, Paths::Pinned) {
            return None;
        }
        let FlowInfo { dst, bytes, .. } = *flow;
        let (left, count) = self.find(flow, fabric)?;
        let connection = self.take((dst, bytes), count, Some(left), fabric)?;
        let left = &mut self.peers.get_mut(&dst)?[left as usize];
        left.bytes -= bytes;
        left.given_up += bytes;
        Some(self.route(dst, connection, count, fabric))
    }

    fn learn(&mut self, _: Time, view: &Arc<PathView>, _: &Fabric) {
        self.known = Some(Arc::clone(view));
    }

    fn sent(&mut self, _: Time, flow: &FlowInfo, fabric: &Fabric, _: &mut Vec<Subflow>) {
        let Some((connection, _)) = self.find(flow, fabric) else { return };
        let Some(connections) = self.peers.get_mut(&flow.dst) else { return };
        let outstanding = &mut connections[connection as usize];
        *outstanding = Outstanding { bytes: outstanding.bytes - flow.bytes, given_up: 0 };
        if connections.iter().all(|outstanding| outstanding.all() == 0) {
            self.peers.remove(&flow.dst);
        }
    }
}
