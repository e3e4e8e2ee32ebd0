//! The planner of the endpoint's host: messages that have a buffer go in, parts for lanes come out.
//!
//! It is `balance`'s own, the same that the simulator drives. A message is posted when its buffer is
//! known, so that no queue pair waits for a receiver. What is posted until the planner's deadline is
//! one batch; it ends earlier if as many messages are in it as the application said would come.
//!
//! Invariant: the planner hears of every piece that it is over, once, also of pieces of channels that
//! were closed and of those that are too small to go anywhere.

use super::routes::{Key, Routes, Way};
use crate::half::sender::Part;
use crate::slab::Slab;
use crate::{CommError, EndpointConfig, Hint};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_balance::plan::{Carrier, Piece, Planner, Post, Trouble, Underway};
use weft_fabric::Fabric;
use weft_units::{HostId, MessageId, Time};

/// A planner, and what it has under way.
#[derive(Debug)]
pub(super) struct Planning {
    pub(super) routes: Routes,
    fabric: Arc<Fabric>,
    planner: Planner,
    quantum: u64,
    start: Instant,
    messages: Slab<Message>,
    pieces: Slab<Under>,
    next_message: u32,
    /// Messages since the last end of a batch, and how many are expected.
    waiting: u32,
    expected: u32,
    /// What the planner gave out last, and what of it is to be cut, in its order.
    out: Vec<Piece>,
    ready: VecDeque<Piece>,
    /// Whether lanes are along paths.
    pub(super) pinned: bool,
}

/// A message that the planner has not cut to the end.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// The sending half and its send; `None`: closed.
    owner: Option<(u32, u32)>,
    bytes: u64,
    /// What the planner has given out, and what lanes have.
    planned: u64,
    cut: u64,
}

/// A piece on its way.
#[derive(Clone, Copy, Debug)]
struct Under {
    piece: Piece,
    owner: u32,
    /// Bytes that are not acknowledged, and not written.
    left: u64,
    unwritten: u64,
    /// Its queue pair has been told that there is room.
    made_room: bool,
}

/// A part for a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) owner: u32,
    pub(super) key: Key,
    pub(super) way: Way,
    pub(super) part: Part,
}

impl Planning {
    /// # Errors
    /// If the plan makes no sense.
    pub(super) fn new(config: &EndpointConfig) -> Result<Option<Planning>, CommError> {
        let Some(plan) = &config.plan else { return Ok(None) };
        let routes = Routes::new(config, plan)?;
        let mut planner = Planner::new(&plan.balance, plan.host, plan.seed, plan.quantum);
        plan.known.tell(&mut planner, plan.host, &plan.fabric);
        Ok(Some(Planning {
            routes,
            fabric: plan.fabric.clone(),
            planner,
            quantum: u64::from(plan.quantum),
            start: Instant::now(),
            messages: Slab::default(),
            pieces: Slab::default(),
            next_message: 0,
            waiting: 0,
            expected: 0,
            out: Vec::new(),
            ready: VecDeque::new(),
            pinned: plan.balance.scheme.enforce().is_some(),
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

    /// Takes a message.
    pub(super) fn post(&mut self, now: Instant, dst: HostId, owner: (u32, u32), bytes: u64) {
        let message = Message { owner: Some(owner), bytes, planned: 0, cut: 0 };
        let tag = self.messages.insert(message);
        let message = MessageId(self.next_message);
        self.next_message = self.next_message.wrapping_add(1);
        let post = Post { message, dst, bytes, job: 0, ranks: (0, 0), tag };
        let now = self.time(now);
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
    pub(super) fn poll(&mut self, now: Instant) -> Option<Cut> {
        loop {
            self.ready.extend(self.out.drain(..));
            let piece = self.ready.pop_front()?;
            if let Some(cut) = self.cut(now, piece) {
                return Some(cut);
            }
        }
    }

    fn cut(&mut self, now: Instant, piece: Piece) -> Option<Cut> {
        let message = self.messages.get_mut(piece.tag)?;
        message.planned += piece.bytes;
        let all = message.planned >= message.bytes;
        let end = match all {
            true => message.bytes,
            false => message.planned / self.quantum * self.quantum,
        };
        let (start, owner, empty) = (message.cut, message.owner, message.bytes == 0);
        message.cut = end;
        if all {
            self.messages.remove(piece.tag);
        }
        let (left, unwritten, made_room) = (end - start, end - start, false);
        let under = Under { piece, owner: 0, left, unwritten, made_room };
        match owner {
            Some((owner, send)) if start < end || empty => {
                let number = self.pieces.insert(Under { owner, ..under });
                let (key, way) = self.routes.lane(piece.dst, piece.route, piece.carrier);
                let part = Part { send, piece: number, start, end };
                Some(Cut { owner, key, way, part })
            }
            _ => {
                self.end(now, under);
                None
            }
        }
    }

    /// The piece is over, whatever became of it.
    fn end(&mut self, now: Instant, mut under: Under) {
        self.make_room(now, &mut under);
        self.planner.sent(&underway(&under.piece), &self.fabric);
    }

    fn make_room(&mut self, now: Instant, under: &mut Under) {
        if std::mem::replace(&mut under.made_room, true) {
            return;
        }
        if let Some(queue_pair) = under.piece.carrier.standing() {
            let now = self.time(now);
            self.out.extend(self.planner.next(now, queue_pair, &self.fabric));
        }
    }

    /// So many bytes of a piece have been written.
    pub(super) fn written(&mut self, now: Instant, piece: u32, bytes: u64) {
        let Some(under) = self.pieces.get_mut(piece) else { return };
        under.unwritten = under.unwritten.saturating_sub(bytes);
        if under.unwritten == 0 && !under.made_room {
            let mut copy = *under;
            under.made_room = true;
            self.make_room(now, &mut copy);
        }
    }

    /// So many bytes of a piece have been acknowledged.
    pub(super) fn acknowledged(&mut self, now: Instant, piece: u32, bytes: u64) {
        let Some(under) = self.pieces.get_mut(piece) else { return };
        under.left = under.left.saturating_sub(bytes);
        if under.left == 0
            && let Some(under) = self.pieces.remove(piece)
        {
            self.end(now, under);
        }
    }

    /// A sending half is over, and all that it had.
    pub(super) fn forget(&mut self, now: Instant, owner: u32) {
        for number in self.messages.numbers() {
            let message = self.messages.get_mut(number).expect("listed");
            message.owner = message.owner.filter(|(it, _)| *it != owner);
        }
        for number in self.pieces.numbers() {
            if self.pieces.get(number).is_some_and(|under| under.owner == owner)
                && let Some(under) = self.pieces.remove(number)
            {
                self.end(now, under);
            }
        }
    }

    /// A piece has timed out. Its way from now on, if it has another.
    pub(super) fn trouble(&mut self, now: Instant, piece: u32) -> Option<(Key, Way)> {
        let at = self.time(now);
        let under = self.pieces.get_mut(piece)?;
        let old = underway(&under.piece);
        let route = self.planner.trouble(at, &old, Trouble::TimeOut, &self.fabric)?;
        if route == old.route {
            return None;
        }
        under.piece.route = route;
        let Piece { dst, carrier, .. } = under.piece;
        Some(self.routes.lane(dst, route, carrier))
    }

    /// A lane that carries nothing has timed out on `way`. Another one, if there is.
    pub(super) fn trouble_idle(&mut self, now: Instant, dst: HostId, way: &Way) -> Option<Way> {
        let now = self.time(now);
        let flow = Underway { dst, route: way.route?, bytes: 0, queue_pair: None };
        let route = self.planner.trouble(now, &flow, Trouble::TimeOut, &self.fabric)?;
        Some(self.routes.lane(dst, route, Carrier::Own).1)
    }

    /// Whether the rest of a piece may go to another lane than what has begun: it is on no queue pair
    /// that stands.
    pub(super) fn may_part(&self, piece: u32) -> bool {
        self.pieces.get(piece).is_some_and(|under| under.piece.carrier == Carrier::Own)
    }

    /// Where a piece goes now.
    pub(super) fn lane(&self, piece: u32) -> Option<(Key, Way)> {
        let Piece { dst, route, carrier, .. } = self.pieces.get(piece)?.piece;
        Some(self.routes.lane(dst, route, carrier))
    }
}

fn underway(piece: &Piece) -> Underway {
    let Piece { dst, route, bytes, carrier, .. } = *piece;
    Underway { dst, route, bytes, queue_pair: carrier.standing() }
}
