//! The leaf of senders: which path a packet takes, and what its tag says (paper, section 3.2; the
//! code behind it for the order of the questions).
//!
//! Invariant: the packets of one epoch and phase take one path, and those of the next epoch begin
//! on that of the last phase, unless the flow was silent for long or its path died.

use super::{ControlMessage, ControlPacket, Options, Part, Tag, first_epoch, is_later};
use crate::tor::table::Table;
use crate::tor::{FlowId, Ways};
use rustc_hash::FxHashMap;
use weft_fabric::PathId;
use weft_units::{Stream, Time};

/// The flows of the hosts below a leaf, and what it knows of paths.
#[derive(Clone, Debug)]
pub struct Sending {
    options: Options,
    /// To each leaf and back, without queues.
    round_trips: Vec<Time>,
    flows: Table<Flow>,
    /// Until when paths to a leaf are to be left alone; only those that met congestion.
    pauses: FxHashMap<(u32, PathId), Time>,
    stream: Stream,
    reroutes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    epoch: u32,
    path: PathId,
    phase: Phase,
    /// The epoch is over, and the next packet begins another.
    stabilised: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until then the reply may come; the end of time once it has.
    Old(Time),
    /// On a new path since the tail left, at that time.
    New(Time),
}

impl Sending {
    /// For a leaf that is `round_trips` away from each leaf, and draws paths from `stream`.
    pub fn new(options: Options, round_trips: Vec<Time>, stream: Stream) -> Sending {
        let flows = Table::new(options.expiry);
        let pauses = FxHashMap::default();
        Sending { options, round_trips, flows, pauses, stream, reroutes: 0 }
    }

    /// As [`super::Leaf::send`].
    #[inline]
    pub fn send(&mut self, now: Time, flow: FlowId, to: u32, ways: &impl Ways) -> Option<Tag> {
        let reply_by = now.saturating_add(self.round_trips[to as usize] + self.options.extra_reply);
        let state = match self.flows.touch(flow, now) {
            Some(state) if ways.has(state.path) => state,
            other => {
                let before = other.map(|state| *state);
                return self.begin(now, flow, to, ways, (before, reply_by));
            }
        };
        let tag = |state: &Flow, part, tail| {
            Some(Tag { path: state.path, epoch: state.epoch, part, sent: now, tail })
        };
        if state.stabilised {
            state.stabilised = false;
            state.epoch = state.epoch.wrapping_add(1);
            state.phase = Phase::Old(reply_by);
            return tag(state, Part::Init, Time::ZERO);
        }
        match state.phase {
            Phase::New(tail) => tag(state, Part::New, tail),
            Phase::Old(by) if by >= now => tag(state, Part::Old, Time::ZERO),
            Phase::Old(_) => {
                let last = tag(state, Part::Tail, now);
                self.turn_off(now, flow, to, ways);
                last
            }
        }
    }

    /// The flow begins, or begins anew where its path has died.
    #[cold]
    fn begin(
        &mut self,
        now: Time,
        flow: FlowId,
        to: u32,
        ways: &impl Ways,
        (before, reply_by): (Option<Flow>, Time),
    ) -> Option<Tag> {
        let (path, _) = self.draw(now, to, ways)?;
        self.reroutes += u64::from(before.is_some());
        let epoch = match before {
            Some(before) if !is_later(first_epoch(now), before.epoch) => {
                before.epoch.wrapping_add(1)
            }
            _ => first_epoch(now),
        };
        let phase = Phase::Old(reply_by);
        self.flows.insert(flow, now, Flow { epoch, path, phase, stabilised: false });
        Some(Tag { path, epoch, part: Part::Init, sent: now, tail: Time::ZERO })
    }

    /// The tail leaves: what comes behind it takes another path, if a good one is found.
    fn turn_off(&mut self, now: Time, flow: FlowId, to: u32, ways: &impl Ways) {
        let found = self.draw(now, to, ways);
        let state = self.flows.get(flow).expect("it has just been looked at");
        state.phase = Phase::New(now);
        if let Some((path, true)) = found {
            self.reroutes += u64::from(path != state.path);
            state.path = path;
        }
    }

    /// Of some paths by chance the first that need not be left alone; else the first of all.
    /// Whether it is a good one.
    fn draw(&mut self, now: Time, to: u32, ways: &impl Ways) -> Option<(PathId, bool)> {
        let count = ways.count();
        let mut first = None;
        for _ in 0..if count == 0 { 0 } else { self.options.samples } {
            let path = ways.get(self.stream.below(count));
            if self.pauses.get(&(to, path)).is_none_or(|until| *until <= now) {
                return Some((path, true));
            }
            first.get_or_insert(path);
        }
        first.map(|path| (path, false))
    }

    /// As [`super::Leaf::hear`].
    pub fn hear(&mut self, now: Time, from: u32, packet: &ControlPacket) {
        if let ControlMessage::Notify(path) = packet.message {
            self.pauses.insert((from, path), now.saturating_add(self.options.path_pause));
            return;
        }
        let Some(state) = self.flows.get(packet.flow) else { return };
        match (packet.message, state.phase) {
            (ControlMessage::Reply(epoch), Phase::Old(by)) if epoch == state.epoch && now < by => {
                state.stabilised = true;
                state.phase = Phase::Old(Time::MAX);
            }
            (ControlMessage::Clear(epoch), Phase::New(_)) if epoch == state.epoch => {
                state.stabilised = true
            }
            _ => {}
        }
    }

    /// Most flows that it knew at once.
    pub fn most_flows(&self) -> u64 {
        self.flows.most() as u64
    }
    /// How often a flow went on by another path.
    pub fn reroutes(&self) -> u64 {
        self.reroutes
    }
}
