//! A subflow of a message at its sender: which packets wait, are out, lost, or have come.
//!
//! Selective repeat. A packet is taken for lost when three that left after it, on the same route,
//! have been answered; that is only asked where packets of a flow take one path. Else, and where
//! nothing comes back at all, the time-out of the oldest packet that is out decides.
//!
//! Invariant: `in_flight` packets have the state `Out`, and the first of `out` is one of them.

use crate::window::{Window, WindowConfig};
use crate::wire::Answer;
use std::collections::VecDeque;
use weft_balance::plan::{Carrier, FlowInfo, QueuePairId, Route, Subflow};
use weft_balance::steer::Steering;
use weft_units::{HostId, MessageId, Time};

/// Answers from behind a packet that make it lost.
const GAP: u32 = 3;
/// A time-out doubles this often at most, from the least one on.
const MOST_BACKOFF: u32 = 4;

/// What is the same for all flows of a host.
#[derive(Clone, Copy, Debug)]
pub struct FlowConfig {
    /// Payload of a full packet, in bytes.
    pub mtu: u32,
    /// The least time-out.
    pub rto: Time,
    /// How windows behave.
    pub window: WindowConfig,
    /// Whether packets of a flow may overtake each other, so that gaps say nothing.
    pub multipath: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Waiting,
    /// On its way, sent as so-manieth of the flow.
    Out(u32),
    Lost,
    Done,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    order: u32,
    seq: u32,
    at: Time,
}

/// Where a packet's payload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Which of the flow.
    pub seq: u32,
    /// Where in its message.
    pub offset: u64,
    /// Payload in bytes.
    pub len: u32,
    /// Sent before.
    pub again: bool,
}

/// What an answer changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets that are now known to have come.
    pub come: u32,
    /// Packets now taken for lost.
    pub lost: u32,
    /// The window was cut for it.
    pub cut: bool,
    /// All have come, which was not known before.
    pub finished: bool,
    /// How long ago the answered packet left.
    pub rtt: Time,
}

/// A subflow on its way.
#[derive(Debug)]
pub struct Flow {
    config: FlowConfig,
    /// Its message.
    pub message: MessageId,
    /// Bytes of the whole message.
    pub total: u64,
    /// The sender's own number of the message.
    pub tag: u32,
    /// Which part of it.
    pub part: u32,
    /// To whom.
    pub dst: HostId,
    /// The way that its planner gave it last.
    pub route: Route,
    /// The source port that a plan made elsewhere gives it.
    pub port: Option<u16>,
    /// Per-packet choice.
    pub steering: Steering,
    /// Has a place in the sender's round.
    pub queued: bool,
    /// Waits for a time at which it may send.
    pub delayed: bool,
    /// No packet may leave before then.
    pub not_before: Time,
    /// Has had its first turn.
    pub started: bool,
    /// Time-outs since something last came back.
    pub time_outs: u32,
    /// Those since it got its route.
    backoff: u32,
    /// When something last came back; else when it began.
    pub progress: Time,
    bytes: u64,
    offset: u64,
    carrier: Carrier,
    slots: Vec<Slot>,
    out: VecDeque<Sent>,
    lost: VecDeque<u32>,
    /// The first packet that never left.
    next: u32,
    /// The first packet that has not come, as far as known.
    first_missing: u32,
    missing: u32,
    in_flight: u32,
    order: u32,
    window: Window,
    /// Smoothed round trip and its deviation (RFC 6298).
    rtt: Option<(Time, Time)>,
}

impl Flow {
    /// Of `subflow`, whose first byte is at `offset` of a message of `total` bytes.
    pub fn new(
        subflow: &Subflow,
        offset: u64,
        total: u64,
        steering: Steering,
        config: FlowConfig,
    ) -> Flow {
        let packets = subflow.bytes.div_ceil(u64::from(config.mtu)) as u32;
        Flow {
            config,
            message: subflow.message,
            total,
            tag: subflow.tag,
            part: subflow.part,
            dst: subflow.dst,
            route: subflow.route,
            port: None,
            steering,
            queued: false,
            delayed: false,
            not_before: Time::ZERO,
            started: false,
            time_outs: 0,
            backoff: 0,
            progress: Time::ZERO,
            bytes: subflow.bytes,
            offset,
            carrier: subflow.carrier,
            slots: vec![Slot::Waiting; packets as usize],
            out: VecDeque::new(),
            lost: VecDeque::new(),
            next: 0,
            first_missing: 0,
            missing: packets,
            in_flight: 0,
            order: 0,
            window: Window::new(config.window),
            rtt: None,
        }
    }

    /// It goes on another way, of which its time-outs say nothing.
    pub fn reroute(&mut self, route: Route) {
        (self.route, self.port, self.backoff) = (route, None, 0);
    }

    /// As planners know it.
    pub fn underway(&self) -> FlowInfo {
        let queue_pair = self.carrier.persistent();
        FlowInfo { dst: self.dst, route: self.route, bytes: self.bytes, queue_pair }
    }
    /// Packets on their way.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
    /// Whether all has come.
    pub fn is_finished(&self) -> bool {
        self.missing == 0
    }
    /// Whether nothing has ever come back.
    pub fn is_fresh(&self) -> bool {
        self.rtt.is_none()
    }
    /// Packets that the window lets out now.
    pub fn room(&self) -> u32 {
        self.window.packets().saturating_sub(self.in_flight)
    }
    /// Whether a packet may leave now.
    pub fn may_send(&self) -> bool {
        let has_some = !self.lost.is_empty() || (self.next as usize) < self.slots.len();
        has_some && self.missing > 0 && self.room() > 0
    }

    /// Takes the next packet out. `None`: what was lost has come after all, and nothing else waits.
    pub fn send(&mut self, now: Time) -> Option<Packet> {
        let seq = loop {
            match self.lost.pop_front() {
                Some(seq) if self.slots[seq as usize] == Slot::Lost => break seq,
                Some(_) => {}
                None if (self.next as usize) < self.slots.len() => {
                    self.next += 1;
                    break self.next - 1;
                }
                None => return None,
            }
        };
        let again = self.slots[seq as usize] == Slot::Lost;
        self.order += 1;
        self.slots[seq as usize] = Slot::Out(self.order);
        self.out.push_back(Sent { order: self.order, seq, at: now });
        self.in_flight += 1;
        self.not_before = now.saturating_add(self.window.gap(self.smoothed()));
        let mtu = u64::from(self.config.mtu);
        let start = u64::from(seq) * mtu;
        let len = (self.bytes - start).min(mtu) as u32;
        Some(Packet { seq, offset: self.offset + start, len, again })
    }

    /// The queue pair that has room for another subflow, if `sent` was the last of this one.
    pub fn makes_room(&self, sent: &Packet) -> Option<QueuePairId> {
        let is_last = !sent.again && sent.seq as usize + 1 == self.slots.len();
        self.carrier.persistent().filter(|_| is_last)
    }

    /// An answer came, to a packet that queued for `queued`.
    pub fn handle_answer(&mut self, now: Time, answer: &Answer, queued: Time) -> Progress {
        let rtt = Time::us(u64::from(clock(now).wrapping_sub(answer.clock)));
        let order = match self.slots.get(answer.seq as usize) {
            Some(Slot::Out(order)) => Some(*order),
            Some(_) => None,
            None => return Progress::default(),
        };
        let before = self.missing;
        for seq in self.first_missing..answer.all_before.min(self.slots.len() as u32) {
            self.done(seq);
        }
        for bit in (0..u64::BITS).filter(|bit| answer.beyond >> bit & 1 == 1) {
            self.done(answer.all_before.saturating_add(1 + bit));
        }
        self.done(answer.seq);
        while self.slots.get(self.first_missing as usize) == Some(&Slot::Done) {
            self.first_missing += 1;
        }
        let come = before - self.missing;
        if come > 0 {
            (self.time_outs, self.backoff, self.progress) = (0, 0, now);
            self.sample(rtt);
            self.window.on_ack(now, come, queued, rtt);
        }
        let lost = order.filter(|_| !self.config.multipath).map_or(0, |order| self.gaps(order));
        let cut = lost > 0 && self.window.on_loss(now, self.smoothed());
        self.prune();
        Progress { come, lost, cut, finished: come > 0 && self.missing == 0, rtt }
    }

    /// When a time-out is due.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.out.front()?.at.saturating_add(self.patience()))
    }

    /// If a time-out is due: what is out is lost; of a flow on many paths what is out for so long.
    /// Returns how many packets, and the time-out.
    pub fn handle_time_out(&mut self, now: Time) -> Option<(u32, Time)> {
        let after = self.patience();
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return None;
        }
        let before = self.in_flight;
        while let Some(front) = self.out.front().copied() {
            if self.config.multipath && front.at.saturating_add(after) > now {
                break;
            }
            self.out.pop_front();
            self.lose(front);
        }
        self.prune();
        self.time_outs += 1;
        self.backoff += 1;
        self.not_before = now;
        self.window.on_time_out();
        Some((before - self.in_flight, after))
    }

    fn patience(&self) -> Time {
        let (rtt, deviation) = self.rtt.unwrap_or_default();
        let least = self.config.rto.max(rtt + deviation * 4);
        let most = self.config.rto * (1 << MOST_BACKOFF);
        Time(least.0 << self.backoff.min(MOST_BACKOFF)).min(most)
    }
    fn smoothed(&self) -> Time {
        self.rtt.map_or(self.config.window.target, |(rtt, _)| rtt)
    }
    fn sample(&mut self, rtt: Time) {
        self.rtt = Some(match self.rtt {
            None => (rtt, Time(rtt.0 / 2)),
            Some((Time(mean), Time(deviation))) => {
                let error = mean.abs_diff(rtt.0);
                (Time(mean - mean / 8 + rtt.0 / 8), Time(deviation - deviation / 4 + error / 4))
            }
        });
    }

    /// Packet `seq` has come.
    fn done(&mut self, seq: u32) {
        let Some(slot) = self.slots.get_mut(seq as usize) else { return };
        match std::mem::replace(slot, Slot::Done) {
            Slot::Done => return,
            Slot::Out(_) => self.in_flight -= 1,
            Slot::Lost => {}
            // Nobody answers what never left.
            Slot::Waiting => return *slot = Slot::Waiting,
        }
        self.missing -= 1;
    }
    /// What left well before the `order`-th and is still out is lost. Returns how many.
    fn gaps(&mut self, order: u32) -> u32 {
        let before = self.in_flight;
        while let Some(front) = self.out.front().copied() {
            if front.order + GAP > order {
                break;
            }
            self.out.pop_front();
            self.lose(front);
        }
        before - self.in_flight
    }
    fn lose(&mut self, sent: Sent) {
        let slot = &mut self.slots[sent.seq as usize];
        if *slot == Slot::Out(sent.order) {
            *slot = Slot::Lost;
            self.in_flight -= 1;
            self.lost.push_back(sent.seq);
        }
    }
    fn prune(&mut self) {
        let slots = &self.slots;
        let is_old = |sent: &Sent| slots[sent.seq as usize] != Slot::Out(sent.order);
        while self.out.front().is_some_and(is_old) {
            self.out.pop_front();
        }
    }
}

/// The clock as datagrams carry it: microseconds, which wrap after 71 minutes.
pub fn clock(now: Time) -> u32 {
    (now.0 / 1_000_000) as u32
}
