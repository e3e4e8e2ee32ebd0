//! Ethereal: batches of messages, split as little as theorem 1 needs and pinned to paths
//! (Ethereal 2025, algorithm 1 and sections 3.1 to 3.3; the split in s/g parts is that of its
//! proof, section 3.2 misprints it).
//!
//! The interceptor collects what its host posts for other racks until the batch timer fires.
//! [`split_and_assign`] then spreads the messages for each destination leaf over the paths
//! there: the s of the theorem is the uplinks of a leaf, or in three tiers across pods the cores,
//! less what is marked bad or was dead before the job began: Ethereal knows the topology then (section 3.3).
//! A flow that lost packets moves to another path, and this host marks its old
//! path to that leaf bad for a while. Messages within the rack have one path and never wait for the batch; the start
//! jitter, an option of every scheme, applies to them as it does under the others.
//!
//! What makes packets take their path, on new switches or on such as they are, is said by `enforce`
//! ([`crate::enforce`]).
//!
//! Invariant: messages of one batch and one size put the same payload on every path in use
//! to a leaf, but for one byte. With several sizes that holds for each size under
//! [`Group::Size`] only. What this does not do: weigh paths by rate or by what other hosts do.

use super::{Scheme, SchemeInfo};
use crate::enforce::{Enforce, PathRoutes, PortRules};
use crate::forward::SwitchContext;
use crate::known::AlivePaths;
use crate::plan::{Carrier, FlowInfo, HostContext, LossSignal, Plan, Post, Route, Starts, Subflow};
use crate::steer::{Fixed, FlowContext};
use std::sync::Arc;
use weft_fabric::{Fabric, PathId, PathView};
use weft_units::{Draw, HostId, OptionError, OptionInfo, OptionKind, Options, Stream, Time};

/// Minimal splitting and pinned paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethereal {
    /// How long the interceptor collects messages into one batch, from the first one on.
    pub batch: Time,
    /// How long this host marks a path to a leaf bad after a flow there was in trouble on it.
    pub bad_for: Time,
    /// Which messages of a batch are spread together.
    pub group: Group,
    /// What a NACK does.
    pub nack: Nack,
    /// What messages are cut into.
    pub unit: Unit,
    /// What makes packets take their path.
    pub enforce: Enforce,
}

/// What a message is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes: paths are loaded alike to the byte, as published.
    Byte,
    /// Whole packets: alike to the packet, and no message has more parts than packets.
    Packet,
}

/// What a NACK does to its flow's path. A time-out always re-routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nack {
    /// The same as a time-out: the flow moves and its path is marked bad (algorithm 1).
    Reroute,
    /// Nothing, so that the flow goes back on the path that it has: its authors' code.
    Stay,
}

/// Which messages of a batch to one leaf [`split_and_assign`] counts together: the n of
/// theorem 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// All, whatever their sizes, as algorithm 1 and its authors' code have it: as few extra
    /// queue pairs as possible. Paths are loaded alike only as far as sizes are.
    Leaf,
    /// Those of equal size, since theorem 1 holds for equal sizes: paths are loaded alike
    /// whatever the sizes, at the price of up to s parts for every size that is there once.
    Size,
}

impl Scheme for Ethereal {
    const INFO: SchemeInfo = SchemeInfo {
        name: "ethereal",
        summary: "splits as few messages as balance needs and pins every part to a path",
        switches: "route by path id",
        source: "Ethereal (Addanki et al. 2024; 2025, algorithm 1)",
        path_ids: true,
        // As published; the baselines are published without.
        start_jitter: Time::ns(50),
        random_position: true,
        options: &[
            OptionInfo {
                key: "batch",
                default: "100ns",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "time that messages are collected for, from the first one on",
            },
            OptionInfo {
                key: "bad_for",
                default: "100ms",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "time that a path to a leaf stays out of use after a NACK or time-out",
            },
            OptionInfo {
                key: "group",
                default: "leaf",
                kind: OptionKind::Word(&["leaf", "size"]),
                meaning: "which messages of a batch are spread over the paths together: \"leaf\" \
                          all to a leaf, as published; \"size\" those of equal size, which \
                          balances mixed sizes too but splits more of them",
            },
            OptionInfo {
                key: "nack",
                default: "reroute",
                kind: OptionKind::Word(&["reroute", "stay"]),
                meaning: "what a flow does on a NACK: \"reroute\" takes another path, as published; \
                          \"stay\" keeps it, as in its authors' code, where only time-outs move",
            },
            OptionInfo {
                key: "unit",
                default: "byte",
                kind: OptionKind::Word(&["byte", "packet"]),
                meaning: "what messages are cut into: a \"byte\", as published, so that short ones \
                          have parts of a few bytes; or a \"packet\", so that they have no more \
                          parts than packets",
            },
            Enforce::OPTION,
        ],
        ..SchemeInfo::PLAIN
    };
    type Planner = Box<Interceptor>;
    type Steering = Fixed;
    type Switching = PortRules;

    fn read(options: &mut Options<'_>) -> Result<Ethereal, OptionError> {
        Ok(Ethereal {
            batch: options.time("batch")?,
            bad_for: options.time("bad_for")?,
            group: options.choice("group", &[("leaf", Group::Leaf), ("size", Group::Size)])?,
            nack: options.choice("nack", &[("reroute", Nack::Reroute), ("stay", Nack::Stay)])?,
            unit: options.choice("unit", &[("byte", Unit::Byte), ("packet", Unit::Packet)])?,
            enforce: Enforce::read(options)?,
        })
    }
    fn needs_path_ids(&self) -> bool {
        self.enforce == Enforce::PathId
    }
    fn enforce(&self) -> Option<Enforce> {
        Some(self.enforce)
    }
    fn switches(&self) -> &'static str {
        self.enforce.switches()
    }
    fn planner(&self, context: &HostContext) -> Box<Interceptor> {
        Box::new(Interceptor::new(*self, context))
    }
    fn steering(&self, _: &FlowContext<'_>) -> Fixed {
        Fixed
    }
    fn switching(&self, context: &SwitchContext) -> PortRules {
        self.enforce.rules(context)
    }
}

/// The parts and the path that [`split_and_assign`] chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which of the given messages.
    pub message: usize,
    /// Which part of the message: 0, 1, ...
    pub part: u32,
    /// Payload. Never zero, unless the message itself is empty.
    pub bytes: u64,
    /// The path that it takes.
    pub path: PathId,
}

/// Splits messages of `sizes` bytes, all of one batch to one leaf, and assigns the parts to
/// `paths`. Appends to `shares`, message by message, the parts of each in their order.
///
/// Of a group of n messages over s paths, n - r (r = n mod s) stay whole, the same number on
/// each path; the r others are cut into s/g parts each (g = gcd(r, s)), r/g parts a path. The
/// extra parts of a group never exceed r (s - g) / g; a message shorter than s/g bytes has
/// fewer. Parts of a message differ by a byte at most. Where sizes are equal, the odd bytes
/// rotate over the paths from message to message and, under [`Group::Size`], from group to
/// group: in total two paths differ by a byte at most.
///
/// `stream` decides in which order messages and paths are taken; the last r messages of a
/// group are those that are cut.
///
/// Where `unit` is more than a byte, parts are whole units but for the last one of a message, and
/// what is said of bytes above holds of units.
///
/// # Panics
/// If `paths` is empty.
pub fn split_and_assign(
    sizes: &[u64],
    paths: &[PathId],
    group: Group,
    unit: u64,
    stream: &mut Stream,
    shares: &mut Vec<Share>,
) {
    assert!(!paths.is_empty(), "a message needs a path");
    let mut paths = paths.to_vec();
    stream.shuffle(&mut paths);
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    stream.shuffle(&mut order);
    if group == Group::Size {
        // Stable: within a group the shuffled order stays.
        order.sort_by_key(|message| sizes[*message]);
    }
    let together = |a: &usize, b: &usize| group == Group::Leaf || sizes[*a] == sizes[*b];
    let start = shares.len();
    for messages in order.chunk_by(together) {
        let odd = assign_group(messages, sizes, &paths, unit, shares);
        // The first `odd` paths carry one unit more: the next group begins after them.
        paths.rotate_left(odd);
    }
    shares[start..].sort_unstable_by_key(|share| (share.message, share.part));
}

/// Assigns the messages of one group. Returns how many paths, from the first on, carry one
/// unit more than the others if all sizes are equal.
fn assign_group(
    group: &[usize],
    sizes: &[u64],
    paths: &[PathId],
    unit: u64,
    out: &mut Vec<Share>,
) -> usize {
    let s = paths.len();
    let (whole, rest) = group.split_at(group.len() - group.len() % s);
    for (turn, message) in whole.iter().enumerate() {
        let (message, bytes, path) = (*message, sizes[*message], paths[turn % s]);
        out.push(Share { message, part: 0, bytes, path });
    }
    if rest.is_empty() {
        return 0;
    }
    let g = gcd(rest.len(), s);
    let parts = s / g;
    // g messages in a row cover all paths, each of them its lane: every g-th path. In a lane
    // the odd units of a message begin after those of the one before.
    let mut first_odd = vec![0; g];
    for (turn, message) in rest.iter().enumerate() {
        let lane = turn % g;
        let lane_paths = paths.iter().skip(lane).step_by(g);
        let bytes = sizes[*message];
        cut(*message, (bytes, unit), first_odd[lane], lane_paths, out);
        let odd = bytes.div_ceil(unit) % parts as u64;
        first_odd[lane] = (first_odd[lane] + odd as usize) % parts;
    }
    first_odd[0] * g
}

/// Cuts a message into as many parts as `paths`, the units that do not divide going to the
/// parts from `first_odd` on (cyclically). Parts that would be empty are left out, unless the
/// message is empty: then the first remains, so that the receiver learns of it.
fn cut<'a>(
    message: usize,
    (bytes, unit): (u64, u64),
    first_odd: usize,
    paths: impl ExactSizeIterator<Item = &'a PathId>,
    out: &mut Vec<Share>,
) {
    let parts = paths.len();
    let units = bytes.div_ceil(unit);
    let (least, odd) = (units / parts as u64, units % parts as u64);
    let (mut part, mut left) = (0, bytes);
    for (step, path) in paths.enumerate() {
        let turn = (step + parts - first_odd) % parts;
        // Only the last unit may be short, and it comes last.
        let share = (unit * (least + u64::from((turn as u64) < odd))).min(left);
        left -= share;
        if share > 0 || (bytes == 0 && step == 0) {
            out.push(Share { message, part, bytes: share, path: *path });
            part += 1;
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A path that this host leaves alone for a while.
#[derive(Clone, Copy, Debug)]
struct BadPath {
    leaf: u32,
    path: PathId,
    until: Time,
}

/// The messages of one batch to one leaf.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    /// One of their receivers.
    pub(super) dst: HostId,
    pub(super) sizes: &'a [u64],
    /// That are not marked bad.
    pub(super) paths: &'a [PathId],
    /// Bytes that messages are cut into.
    pub(super) unit: u64,
    pub(super) stream: &'a mut Stream,
}

/// The interceptor of one host, between the communication library and the NIC.
#[derive(Clone, Debug)]
pub struct Interceptor {
    config: Ethereal,
    starts: Starts,
    pub(super) host: HostId,
    /// Shuffles of each batch.
    assign: Draw,
    /// Bytes that messages are cut into.
    unit: u64,
    /// Batches done so far.
    batches: u64,
    /// New paths of flows that lost packets.
    pub(super) reroutes: Stream,
    waiting: Vec<Post>,
    deadline: Option<Time>,
    bad: Vec<BadPath>,
    alive: AlivePaths,
    pub(super) routes: PathRoutes,
}

impl Interceptor {
    pub(super) fn new(config: Ethereal, context: &HostContext) -> Interceptor {
        let HostContext { host, seed, starts, mtu, .. } = *context;
        let unit = match config.unit {
            Unit::Byte => 1,
            Unit::Packet => u64::from(mtu.max(1)),
        };
        Interceptor {
            unit,
            config,
            starts,
            host,
            assign: Draw::new(seed, "ethereal-assign"),
            batches: 0,
            reroutes: Draw::new(seed, "ethereal-reroute").stream(u64::from(host.0)),
            waiting: Vec::new(),
            deadline: None,
            bad: Vec::new(),
            alive: AlivePaths::default(),
            routes: PathRoutes::new(config.enforce, context.host, context.hashing),
        }
    }

    /// The subflows of every post, leaf by leaf, each with the index of its post.
    fn plan_batch(
        &mut self,
        now: Time,
        posts: &[Post],
        fabric: &Fabric,
        split: impl Fn(Batch<'_>, &mut Vec<Share>),
    ) -> Vec<(usize, Subflow)> {
        let draw = Draw::new(self.assign.at(u64::from(self.host.0), self.batches), "leaf");
        let leaf = |index: &usize| fabric.leaf_of(posts[*index].dst);
        let mut order: Vec<usize> = (0..posts.len()).collect();
        order.sort_by_key(leaf);
        let mut planned = Vec::with_capacity(posts.len());
        let mut shares = Vec::new();
        for group in order.chunk_by(|a, b| leaf(a) == leaf(b)) {
            let sizes: Vec<u64> = group.iter().map(|index| posts[*index].bytes).collect();
            let paths = self.paths_in_use(now, posts[group[0]].dst, fabric);
            let mut stream = draw.stream(u64::from(leaf(&group[0])));
            let (dst, unit, stream) = (posts[group[0]].dst, self.unit, &mut stream);
            split(Batch { dst, sizes: &sizes, paths: &paths, unit, stream }, &mut shares);
            for share in shares.drain(..) {
                let index = group[share.message];
                let Share { part, bytes, path, .. } = share;
                let subflow = self.subflow(posts[index], part, bytes, path, fabric);
                planned.push((index, subflow));
            }
        }
        planned
    }

    /// [`Plan::flush`] for whoever splits the messages to each leaf by `split`.
    pub(super) fn flush_by(
        &mut self,
        now: Time,
        fabric: &Fabric,
        out: &mut Vec<Subflow>,
        split: impl Fn(Batch<'_>, &mut Vec<Share>),
    ) {
        self.deadline = None;
        let posts = std::mem::take(&mut self.waiting);
        if posts.is_empty() {
            return;
        }
        self.routes.reserve(posts.len());
        let mut planned = self.plan_batch(now, &posts, fabric, split);
        self.batches += 1;
        // Back in the order of posting: which path a message takes says nothing about when
        // it starts. Stable, so parts stay in order.
        planned.sort_by_key(|(index, _)| *index);
        out.extend(planned.into_iter().map(|(_, subflow)| subflow));
    }

    /// The path of a flow that lost packets, if it has to leave it for others: then that is marked bad.
    pub(super) fn give_up(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<PathId> {
        let path = self.routes.path(fabric, flow.dst, flow.route)?;
        let leaf = fabric.leaf_of(flow.dst);
        let stays = signal == LossSignal::Nack && self.config.nack == Nack::Stay;
        if stays || leaf == fabric.leaf_of(self.host) {
            return None;
        }
        self.mark_bad(now, leaf, path);
        Some(path)
    }

    /// A new path for a flow to `dst` in trouble on `old`, which is marked bad: any other
    /// good one; any other one if none is good; none if there is no other.
    fn reroute(&mut self, now: Time, dst: HostId, old: PathId, fabric: &Fabric) -> Option<PathId> {
        let mut paths = self.paths_in_use(now, dst, fabric);
        paths.retain(|path| *path != old);
        let chosen = self.reroutes.below(paths.len() as u32) as usize;
        paths.get(chosen).copied()
    }

    fn mark_bad(&mut self, now: Time, leaf: u32, path: PathId) {
        self.bad.retain(|bad| bad.until > now && (bad.leaf, bad.path) != (leaf, path));
        let until = now.saturating_add(self.config.bad_for);
        self.bad.push(BadPath { leaf, path, until });
    }

    /// The paths to the leaf of `dst` that are not marked bad; all that are alive if all are.
    pub(super) fn paths_in_use(&mut self, now: Time, dst: HostId, fabric: &Fabric) -> Vec<PathId> {
        let mut all = self.paths_alive(dst, fabric);
        let leaf = fabric.leaf_of(dst);
        let is_bad = |path: &PathId| {
            self.bad.iter().any(|bad| (bad.leaf, bad.path) == (leaf, *path) && bad.until > now)
        };
        if !all.iter().all(is_bad) {
            all.retain(|path| !is_bad(path));
        }
        all
    }

    /// The paths to the leaf of `dst` that are not known to be dead; all if all are.
    fn paths_alive(&mut self, dst: HostId, fabric: &Fabric) -> Vec<PathId> {
        if let Some(alive) = self.alive.to(fabric, self.host, dst) {
            return alive.to_vec();
        }
        let set = fabric.path_set(self.host, dst);
        (0..set.len()).map(|index| set.get(index)).collect()
    }

    fn subflow(
        &mut self,
        post: Post,
        part: u32,
        bytes: u64,
        path: PathId,
        fabric: &Fabric,
    ) -> Subflow {
        let Post { message, dst, tag, .. } = post;
        let delay = self.starts.delay(message, part);
        let (route, carrier) = (self.routes.route(fabric, dst, path), Carrier::Own);
        Subflow { message, dst, bytes, part, route, delay, tag, carrier }
    }
}

impl Plan for Interceptor {
    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
        if fabric.leaf_of(self.host) == fabric.leaf_of(post.dst) {
            let path = fabric.path_set(self.host, post.dst).get(0);
            out.push(self.subflow(post, 0, post.bytes, path, fabric));
            return;
        }
        self.waiting.push(post);
        self.deadline.get_or_insert(now.saturating_add(self.config.batch));
    }

    fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
        let group = self.config.group;
        self.flush_by(now, fabric, out, |batch, shares| {
            let Batch { sizes, paths, unit, stream, .. } = batch;
            split_and_assign(sizes, paths, group, unit, stream, shares);
        });
    }

    fn on_loss(
        &mut self,
        now: Time,
        flow: &FlowInfo,
        signal: LossSignal,
        fabric: &Fabric,
    ) -> Option<Route> {
        let old = self.give_up(now, flow, signal, fabric)?;
        let path = self.reroute(now, flow.dst, old, fabric)?;
        Some(self.routes.route(fabric, flow.dst, path))
    }

    fn learn(&mut self, _: Time, view: &Arc<PathView>, _: &Fabric) {
        self.alive.learn(view);
    }
}
