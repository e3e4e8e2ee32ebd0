//! The planner of the endpoint's host: messages that have a buffer go in, parts for lanes come out.
//!
//! It is `balance`'s own, the same that the simulator drives. A message is posted when its buffer is
//! known, so that no queue pair waits for a receiver. What is posted until the planner's deadline is
//! one batch; it ends earlier if as many messages are in it as the application said would come.
//!
//! A planner may watch over chunks ([`Carrier::Chunk`]): each has a time-out of its own, after which it gets another
//! way, while the lane that has it goes on.
//!
//! Invariant: the planner hears of every subflow that it is over, once, also of subflows of channels that
//! were closed and of those that are too small to go anywhere.

use super::members::MOST_MEMBERS;
use super::routes::{Key, LanePath, Routes};
use crate::half::sender::Part;
use crate::slab::Slab;
use crate::{CommError, EndpointConfig, Hint};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_balance::Planner;
use weft_balance::plan::{Carrier, Chunk, FlowInfo, LossSignal, Post, Route, Subflow};
use weft_fabric::{Fabric, PathId};
use weft_units::{HostId, MessageId, Time};

/// A planner of a NIC, and what it has under way. Outside the numbers of its subflows say whose they are.
#[derive(Debug)]
pub(super) struct Planning {
    pub(super) routes: Routes,
    /// Which NIC of the endpoint.
    member: u8,
    fabric: Arc<Fabric>,
    host: HostId,
    planner: Planner,
    quantum: u64,
    start: Instant,
    messages: Slab<Message>,
    subflows: Slab<Under>,
    next_message: u32,
    /// Messages since the last end of a batch, and how many are expected.
    waiting: u32,
    expected: u32,
    /// What the planner gave out last, and what of it is to be cut, in its order.
    out: Vec<Subflow>,
    ready: VecDeque<Subflow>,
    /// Whether lanes are along paths.
    pub(super) pinned: bool,
    /// Whether its planner watches over chunks, and the most that it waits for one.
    pub(super) watches: bool,
    path_time_out: Time,
    /// When chunks time out, unless they are over: by their numbers, and the how manieth they were.
    due: BinaryHeap<Reverse<(Time, u32, u64)>>,
    chunks: u64,
}

/// A message, or the share of it of this NIC, that the planner has not cut to the end.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// The sending half and its send; `None`: closed.
    owner: Option<(u32, u32)>,
    /// The first byte of the share, and how many they are.
    start: u64,
    bytes: u64,
    /// What the planner has given out, and what lanes have.
    planned: u64,
    cut: u64,
}

/// A subflow on its way.
#[derive(Clone, Copy, Debug)]
struct Under {
    subflow: Subflow,
    owner: u32,
    /// Bytes that are not acknowledged, and not written.
    left: u64,
    unwritten: u64,
    /// Its queue pair has been told that there is room.
    made_room: bool,
    /// Of a chunk: the how manieth, and since when a lane has it.
    chunk: u64,
    since: Instant,
    /// The way that it took first, if it has timed out: several lanes may have it.
    first: Option<Route>,
}

/// A part for a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePart {
    pub(super) owner: u32,
    pub(super) key: Key,
    pub(super) way: LanePath,
    pub(super) part: Part,
}

/// Has a planner leave the paths that nobody has found a port for: they are dead, as a rule.
fn leave_missing(
    planner: &mut Planner,
    routes: &Routes,
    now: Time,
    (host, fabric): (HostId, &Fabric),
) {
    let hosts = (0..fabric.hosts()).map(HostId);
    for dst in hosts.filter(|dst| fabric.leaf_of(*dst) != fabric.leaf_of(host)) {
        for path in routes.missing(dst) {
            let route = Route::Pinned(path);
            let flow = FlowInfo { dst, route, bytes: 0, queue_pair: None, chunk: None };
            // What it would take instead is asked when there is something to send.
            let _ = planner.on_loss(now, &flow, LossSignal::TimeOut, fabric);
        }
    }
}

impl Planning {
    /// # Errors
    /// If the plan makes no sense.
    pub(super) fn new(config: &EndpointConfig, member: u8) -> Result<Option<Planning>, CommError> {
        let Some(plan) = &config.plan else { return Ok(None) };
        let routes = Routes::new(config, plan, member)?;
        let mut planner = Planner::new(&plan.balance, plan.host, plan.seed, plan.quantum);
        plan.known.tell(Time::ZERO, &mut planner, &plan.fabric);
        leave_missing(&mut planner, &routes, Time::ZERO, (plan.host, &plan.fabric));
        Ok(Some(Planning {
            routes,
            member,
            fabric: plan.fabric.clone(),
            host: plan.host,
            planner,
            quantum: u64::from(plan.quantum),
            start: Instant::now(),
            messages: Slab::default(),
            subflows: Slab::default(),
            next_message: 0,
            waiting: 0,
            expected: 0,
            out: Vec::new(),
            ready: VecDeque::new(),
            pinned: plan.balance.scheme.enforce().is_some(),
            watches: plan.balance.scheme.info().watches,
            path_time_out: Time(config.path_time_out.as_nanos() as u64 * 1_000),
            due: BinaryHeap::new(),
            chunks: 0,
        }))
    }

    pub(super) fn hint(&mut self, hint: Hint) {
        let Hint { peers, flows_per_peer } = hint;
        // Who says only the most or only the least means that.
        let some = |(least, most): (u32, u32)| least.max(most);
        self.expected = some(peers).saturating_mul(some(flows_per_peer));
    }

    fn time(&self, now: Instant) -> Time {
        Time(now.saturating_duration_since(self.start).as_nanos() as u64 * 1_000)
    }

    /// The number of a subflow outside, and inside.
    fn outside(&self, number: u32) -> u32 {
        number * MOST_MEMBERS + u32::from(self.member)
    }
    fn inside(subflow: u32) -> u32 {
        subflow / MOST_MEMBERS
    }

    /// Takes the bytes of a message from `start` to `end`.
    pub(super) fn post(
        &mut self,
        now: Instant,
        dst: HostId,
        owner: (u32, u32),
        (start, end): (u64, u64),
    ) {
        let bytes = end - start;
        let message = Message { owner: Some(owner), start, bytes, planned: 0, cut: 0 };
        let tag = self.messages.insert(message);
        let message = MessageId(self.next_message);
        self.next_message = self.next_message.wrapping_add(1);
        let post = Post { message, dst, bytes, job: 0, ranks: (0, 0), tag };
        let now = self.time(now);
        if self.routes.renew() {
            leave_missing(&mut self.planner, &self.routes, now, (self.host, &self.fabric));
        }
        self.planner.post(now, post, &self.fabric, &mut self.out);
        self.waiting += 1;
    }

    /// When [`Planning::flush`] is due; `Some` of the past if it is.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let at = self.planner.deadline()?;
        Some(self.start + Duration::from_nanos(at.0.div_ceil(1_000)))
    }

    /// Ends the batch if it is time.
    pub(super) fn flush(&mut self, now: Instant) {
        let Some(deadline) = self.deadline() else {
            self.waiting = 0;
            return;
        };
        let complete = self.expected > 0 && self.waiting >= self.expected;
        if deadline <= now || complete {
            let now = self.time(now);
            self.planner.flush(now, &self.fabric, &mut self.out);
            self.waiting = 0;
        }
    }

    /// The next part for a lane.
    pub(super) fn poll(&mut self, now: Instant) -> Option<LanePart> {
        loop {
            self.ready.extend(self.out.drain(..));
            let subflow = self.ready.pop_front()?;
            if let Some(cut) = self.cut(now, subflow) {
                return Some(cut);
            }
        }
    }

    fn cut(&mut self, now: Instant, subflow: Subflow) -> Option<LanePart> {
        let message = self.messages.get_mut(subflow.tag)?;
        message.planned += subflow.bytes;
        let all = message.planned >= message.bytes;
        let end = match all {
            true => message.bytes,
            false => message.planned / self.quantum * self.quantum,
        };
        let (start, owner, empty) = (message.cut, message.owner, message.bytes == 0);
        let base = message.start;
        message.cut = end;
        if all {
            self.messages.remove(subflow.tag);
        }
        let (left, unwritten, made_room) = (end - start, end - start, false);
        let (chunk, since, first) = (0, now, None);
        let under = Under { subflow, owner: 0, left, unwritten, made_room, chunk, since, first };
        match owner {
            Some((owner, send)) if start < end || empty => {
                let chunk = self.chunks;
                let number = self.subflows.insert(Under { owner, chunk, ..under });
                if let Carrier::Chunk(Chunk { time_out, .. }) = subflow.carrier {
                    self.chunks += 1;
                    let due = self.time(now).saturating_add(time_out.min(self.path_time_out));
                    self.due.push(Reverse((due, number, chunk)));
                }
                let (key, way) = self.routes.lane(subflow.dst, subflow.route, subflow.carrier);
                let subflow_number = self.outside(number);
                let part =
                    Part { send, subflow: subflow_number, start: base + start, end: base + end };
                Some(LanePart { owner, key, way, part })
            }
            _ => {
                self.end(now, under);
                None
            }
        }
    }

    /// The subflow is over, whatever became of it.
    fn end(&mut self, now: Instant, mut under: Under) {
        self.make_room(now, &mut under);
        let now = self.time(now);
        self.planner.sent(now, &FlowInfo::from(&under.subflow), &self.fabric, &mut self.out);
    }

    fn make_room(&mut self, now: Instant, under: &mut Under) {
        if std::mem::replace(&mut under.made_room, true) {
            return;
        }
        if let Some(queue_pair) = under.subflow.carrier.persistent() {
            let now = self.time(now);
            self.out.extend(self.planner.next(now, queue_pair, &self.fabric));
        }
    }

    /// So many bytes of a subflow have been written.
    pub(super) fn written(&mut self, now: Instant, subflow: u32, bytes: u64) {
        let Some(under) = self.subflows.get_mut(Planning::inside(subflow)) else { return };
        under.unwritten = under.unwritten.saturating_sub(bytes);
        if under.unwritten == 0 && !under.made_room {
            let mut copy = *under;
            under.made_room = true;
            self.make_room(now, &mut copy);
        }
    }

    /// So many bytes of a subflow have been acknowledged on a lane with that path. If it is over, and lanes may still
    /// have it: since when the first has.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        subflow: u32,
        bytes: u64,
        path: Option<PathId>,
    ) -> Option<Instant> {
        let subflow = Planning::inside(subflow);
        let under = self.subflows.get_mut(subflow)?;
        under.left = under.left.saturating_sub(bytes);
        if under.left == 0
            && let Some(mut under) = self.subflows.remove(subflow)
        {
            let dst = under.subflow.dst;
            let is_first =
                |first: &Route| path.is_some() && self.routes.way(dst, *first).path == path;
            let answered = under.first.filter(is_first);
            under.subflow.route = answered.unwrap_or(under.subflow.route);
            self.end(now, under);
            return under.first.map(|_| under.since);
        }
        None
    }

    /// When the next chunk times out.
    pub(super) fn chunk_due(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, number, chunk))) = self.due.peek() {
            if self.subflows.get(*number).is_some_and(|under| under.chunk == *chunk) {
                return Some(self.start + Duration::from_nanos(at.0.div_ceil(1_000)));
            }
            self.due.pop();
        }
        None
    }

    /// The next chunk that is lost, as far as its planner knows: of which sending half, and where it is to go.
    pub(super) fn poll_lost(&mut self, now: Instant) -> Option<(u32, u32, Key, LanePath)> {
        while self.chunk_due().is_some_and(|due| due <= now) {
            let Reverse((_, number, chunk)) = self.due.pop()?;
            let at = self.time(now);
            let under = self.subflows.get_mut(number)?;
            let flow = FlowInfo::from(&under.subflow);
            if let Some(more) = self.planner.patience(at, &flow, &self.fabric) {
                self.due.push(Reverse((at.saturating_add(more.max(Time(1))), number, chunk)));
                continue;
            }
            let signal = LossSignal::TimeOut;
            let route = self.planner.on_loss(at, &flow, signal, &self.fabric);
            under.subflow.route = route.unwrap_or(flow.route);
            under.first.get_or_insert(flow.route);
            let Subflow { dst, route, carrier, .. } = under.subflow;
            let owner = under.owner;
            if let Carrier::Chunk(Chunk { time_out, .. }) = carrier {
                let due = at.saturating_add(time_out.min(self.path_time_out));
                self.due.push(Reverse((due, number, chunk)));
            }
            let (key, way) = self.routes.lane(dst, route, carrier);
            return Some((owner, self.outside(number), key, way));
        }
        None
    }

    /// A sending half is over, and all that it had.
    pub(super) fn forget(&mut self, now: Instant, owner: u32) {
        for number in self.messages.numbers() {
            let message = self.messages.get_mut(number).expect("listed");
            message.owner = message.owner.filter(|(it, _)| *it != owner);
        }
        for number in self.subflows.numbers() {
            if self.subflows.get(number).is_some_and(|under| under.owner == owner)
                && let Some(under) = self.subflows.remove(number)
            {
                self.end(now, under);
            }
        }
    }

    /// A subflow has timed out. Its way from now on, if it has another.
    pub(super) fn on_loss(&mut self, now: Instant, subflow: u32) -> Option<(Key, LanePath)> {
        let at = self.time(now);
        let under = self.subflows.get_mut(Planning::inside(subflow))?;
        let old = FlowInfo::from(&under.subflow);
        let route = self.planner.on_loss(at, &old, LossSignal::TimeOut, &self.fabric)?;
        if route == old.route {
            return None;
        }
        under.subflow.route = route;
        let Subflow { dst, carrier, .. } = under.subflow;
        Some(self.routes.lane(dst, route, carrier))
    }

    /// A lane that carries nothing has timed out on `way`. Another one, if there is.
    pub(super) fn trouble_idle(
        &mut self,
        now: Instant,
        dst: HostId,
        way: &LanePath,
    ) -> Option<LanePath> {
        let now = self.time(now);
        let flow = FlowInfo { dst, route: way.route?, bytes: 0, queue_pair: None, chunk: None };
        let route = self.planner.on_loss(now, &flow, LossSignal::TimeOut, &self.fabric)?;
        Some(self.routes.lane(dst, route, Carrier::Own).1)
    }

    /// A connection by `path` has been made after one that was lost.
    pub(super) fn works(&mut self, now: Instant, dst: HostId, path: PathId) {
        let now = self.time(now);
        self.planner.works(now, dst, path, &self.fabric);
    }

    /// Whether the rest of a subflow may go to another lane than what has begun: it is on no queue pair
    /// that stands.
    pub(super) fn may_part(&self, subflow: u32) -> bool {
        let under = self.subflows.get(Planning::inside(subflow));
        under.is_some_and(|under| under.subflow.carrier == Carrier::Own)
    }

    /// Where a subflow goes now.
    pub(super) fn lane(&self, subflow: u32) -> Option<(Key, LanePath)> {
        let under = self.subflows.get(Planning::inside(subflow))?;
        let Subflow { dst, route, carrier, .. } = under.subflow;
        Some(self.routes.lane(dst, route, carrier))
    }
}
