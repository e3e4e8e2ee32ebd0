//! A host as a sender: its planner cuts messages into subflows, each subflow is a [`Flow`], and flows
//! take turns packet by packet.
//!
//! The planner is `balance`'s own, the same that the simulator drives: posts and the end of batches
//! go to it, and trouble of flows, which it may answer with another route. Steering schemes choose
//! per packet. So a plan here is, to the byte, the simulator's under the same seed.
//!
//! Invariant: a message is over when the bytes of all its subflows have been answered.

use crate::flow::{Flow, FlowConfig, Left, Packet, clock, since};
use crate::messages::Messages;
use crate::ports::Ports;
use crate::report::{Recovery, Sent};
use crate::wire::{Answer, DATA_HEADER, Data, LOWER_HEADERS};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use weft_balance::Planner;
use weft_balance::Steering;
use weft_balance::known::Known;
use weft_balance::plan::{Carrier, LossSignal, Post, QueuePairId, Route, Subflow};
use weft_balance::scheme::BalanceConfig;
use weft_balance::steer::{Departure, Feedback, FlowContext, TimeOut};
use weft_fabric::Fabric;
use weft_transport::RecoveryConfig;
use weft_units::{Draw, HostId, MessageId, Time};

/// Where the contents of messages come from.
pub trait Source {
    /// The bytes of `message` from `offset` on.
    fn read(&self, message: MessageId, offset: u64, out: &mut [u8]);
}

/// What a sender is made from.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The host that sends.
    pub host: HostId,
    /// The network as the planner knows it.
    pub fabric: Arc<Fabric>,
    /// What it is told of links before it begins.
    pub known: Arc<Known>,
    /// The scheme.
    pub balance: BalanceConfig,
    /// All randomness of the scheme follows from it.
    pub seed: u64,
    /// Packets and transport.
    pub flow: FlowConfig,
}

impl SenderConfig {
    /// The planner of the host, which has heard what is known.
    pub fn planner(&self) -> Planner {
        let mut planner = Planner::new(&self.balance, self.host, self.seed, self.flow.mtu);
        self.known.tell(Time::ZERO, &mut planner, &self.fabric);
        planner
    }
}

/// A datagram that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The host that it goes to.
    pub dst: HostId,
    /// From which UDP source port.
    pub port: u16,
    /// Its bytes.
    pub len: usize,
}

/// A subflow that a plan made elsewhere gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Payload.
    pub bytes: u64,
    /// Its way.
    pub route: Route,
    /// The source port to send it from while it stays on that way; `None`: any that enforces it.
    pub port: Option<u16>,
}

/// So many flows of a host may try paths of which they know nothing at once.
const MOST_FRESH: usize = 32;

/// One host's sending half.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    ports: Ports,
    planner: Planner,
    messages: Messages,
    flows: Vec<Flow>,
    /// Flows that wait for their start, or their next packet's time.
    later: BinaryHeap<Reverse<(Time, u32)>>,
    round: VecDeque<u32>,
    /// Flows that have sent something and heard nothing yet, and those that wait to do the same.
    fresh: Vec<u32>,
    unsure: VecDeque<u32>,
    /// Flows that are not over.
    open: Vec<u32>,
    /// No flow times out before then.
    next_check: Time,
    finished: VecDeque<MessageId>,
    /// What the last subflow on each persistent queue pair left. Never iterated.
    left: FxHashMap<QueuePairId, Left>,
    subflows: Vec<Subflow>,
    /// What was counted.
    pub sent: Sent,
}

impl Sender {
    /// A sender with nothing to send.
    pub fn new(config: SenderConfig) -> Sender {
        Sender {
            ports: Ports::new(config.fabric.uplinks_of(config.host)),
            planner: config.planner(),
            config,
            messages: Messages::default(),
            flows: Vec::new(),
            later: BinaryHeap::new(),
            round: VecDeque::new(),
            fresh: Vec::new(),
            unsure: VecDeque::new(),
            open: Vec::new(),
            next_check: Time::MAX,
            finished: VecDeque::new(),
            left: FxHashMap::default(),
            subflows: Vec::new(),
            sent: Sent::default(),
        }
    }

    /// How it recovers from loss: its receivers must as well.
    pub fn recovery(&self) -> RecoveryConfig {
        self.config.flow.transport.recovery
    }

    /// Takes a message for the planner to cut.
    pub fn post(&mut self, now: Time, message: MessageId, dst: HostId, bytes: u64) {
        let tag = self.messages.post(now, message, dst, bytes);
        let post = Post { message, dst, bytes, job: 0, ranks: (0, 0), tag };
        self.planner.post(now, post, &self.config.fabric, &mut self.subflows);
        self.open_subflows(now);
    }

    /// Takes a message that was planned elsewhere. Its subflows follow each other in the message and
    /// add up to it; trouble of theirs is still the planner's.
    pub fn post_given(&mut self, now: Time, message: MessageId, dst: HostId, given: &[Given]) {
        let bytes = given.iter().map(|subflow| subflow.bytes).sum();
        let tag = self.messages.post(now, message, dst, bytes);
        let first = self.flows.len();
        for (part, subflow) in (0..).zip(given) {
            let Given { bytes, route, .. } = *subflow;
            let carrier = Carrier::Own;
            let delay = Time::ZERO;
            self.subflows.push(Subflow { message, dst, bytes, part, route, delay, tag, carrier });
        }
        self.open_subflows(now);
        for (flow, subflow) in self.flows[first..].iter_mut().zip(given) {
            flow.port = subflow.port;
        }
    }

    /// Writes the next datagram into `out`, which has room for header and a full packet.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        source: &impl Source,
        out: &mut [u8],
    ) -> Option<Transmit> {
        loop {
            let id = self.round.pop_front()?;
            let flow = &mut self.flows[id as usize];
            flow.queued = false;
            if !flow.may_send() {
                continue;
            }
            if flow.is_fresh() && !self.fresh.contains(&id) {
                if self.fresh.len() >= MOST_FRESH {
                    flow.queued = true;
                    self.unsure.push_back(id);
                    continue;
                }
                self.fresh.push(id);
            }
            let in_flight = flow.in_flight();
            let packet = flow.send(now, (DATA_HEADER + LOWER_HEADERS) as u32);
            let route = match flow.steering.is_fixed() {
                true => flow.route,
                false => flow.steering.route(flow.route, Departure { now, in_flight }),
            };
            let port = port_on(flow, route, self.ports);
            let len = packet.len as usize;
            source.read(flow.message, packet.offset, &mut out[DATA_HEADER..DATA_HEADER + len]);
            let header = Data {
                src: self.config.host.0,
                flow: id,
                seq: packet.seq,
                packets: flow.packets,
                message: flow.message.0,
                offset: packet.offset,
                total: flow.total,
                clock: clock(now),
            };
            let len = header.seal(len, out);
            let dst = flow.dst;
            self.after_send(now, id, &packet, port);
            return Some(Transmit { dst, port, len });
        }
    }

    fn after_send(&mut self, now: Time, id: u32, packet: &Packet, port: u16) {
        let flow = &self.flows[id as usize];
        let local =
            self.config.fabric.leaf_of(flow.dst) == self.config.fabric.leaf_of(self.config.host);
        self.sent.count(port, local, packet);
        self.next_check = self.next_check.min(flow.deadline().unwrap_or(Time::MAX));
        let room = flow.makes_room(packet);
        self.line_up(now, id);
        if let Some((queue_pair, left)) = room {
            self.left.insert(queue_pair, left);
            let next = self.planner.next(now, queue_pair, &self.config.fabric);
            self.subflows.extend(next);
            self.open_subflows(now);
        }
    }

    /// An answer came.
    pub fn handle_answer(&mut self, now: Time, answer: &Answer) {
        let Some(flow) = self.flows.get_mut(answer.flow as usize) else { return };
        if flow.is_finished() {
            return;
        }
        // What was sent since the route changed is on its way elsewhere.
        if answer.nack
            && flow.steering.is_fixed()
            && answer.port != port_on(flow, flow.route, self.ports)
        {
            return;
        }
        let (time_outs, stopped) = (flow.time_outs, flow.progress);
        let rtt = since(now, answer.clock);
        let Some(learnt) = flow.handle_answer(now, answer, rtt) else { return };
        if time_outs > 0 {
            let (message, part) = (flow.message, flow.part);
            let recovery = Recovery { message, part, since: stopped, until: now, time_outs };
            self.sent.recoveries.push(recovery);
        }
        if !answer.nack && !flow.steering.is_fixed() {
            let (room, late) = (flow.room(), flow.is_late(rtt));
            let good = Feedback::good(now, answer.port);
            flow.steering.on_ack(Feedback { room, rtt, late, ..good });
        }
        self.next_check = self.next_check.min(flow.deadline().unwrap_or(Time::MAX));
        let finished = flow.is_finished();
        self.sent.lost += u64::from(learnt.lost);
        self.sent.gaps += u64::from(answer.nack || learnt.lost > 0);
        if answer.nack {
            self.on_loss(now, answer.flow, LossSignal::Nack);
        }
        if finished {
            let flow = &mut self.flows[answer.flow as usize];
            if flow.underway().chunk.is_some() {
                let on_port = |way: &Route| self.ports.port(*way, flow.message.0) == answer.port;
                flow.route = flow.before.filter(on_port).unwrap_or(flow.route);
            }
            self.finish(now, answer.flow);
            self.open_subflows(now);
        }
        self.heard_of(answer.flow);
        self.line_up(now, answer.flow);
    }

    /// When [`Sender::handle_time`] is due.
    pub fn poll_deadline(&self) -> Option<Time> {
        let later = self.later.peek().map(|Reverse((at, _))| *at);
        let check = Some(self.next_check).filter(|at| *at < Time::MAX);
        [self.planner.deadline(), later, check].into_iter().flatten().min()
    }

    /// Does what is due: ends batches, starts flows, times out.
    pub fn handle_time(&mut self, now: Time) {
        if self.planner.deadline().is_some_and(|deadline| deadline <= now) {
            self.planner.flush(now, &self.config.fabric, &mut self.subflows);
            self.open_subflows(now);
        }
        while let Some(Reverse((at, id))) = self.later.peek().copied() {
            if at > now {
                break;
            }
            self.later.pop();
            let flow = &mut self.flows[id as usize];
            flow.delayed = false;
            if !flow.started {
                (flow.started, flow.progress) = (true, now);
            }
            self.line_up(now, id);
        }
        if self.next_check <= now {
            self.check_time_outs(now);
        }
    }

    /// The next message that is over.
    pub fn poll_finished(&mut self) -> Option<MessageId> {
        self.finished.pop_front()
    }

    fn check_time_outs(&mut self, now: Time) {
        for at in 0..self.open.len() {
            let id = self.open[at];
            if self.is_patient(now, id) {
                continue;
            }
            if let Some((lost, after)) = self.flows[id as usize].handle_time_out(now) {
                self.sent.lost += u64::from(lost);
                self.sent.time_outs += 1;
                let (flow, time_out) = (&mut self.flows[id as usize], TimeOut { now, after });
                flow.steering.on_time_out(time_out);
                if flow.is_of_way(time_out) {
                    self.on_loss(now, id, LossSignal::TimeOut);
                }
                // It may wait for long: others try meanwhile.
                self.heard_of(id);
            }
            // Recovery may have something to send again that it does not count as lost now.
            self.line_up(now, id);
        }
        let deadlines = self.open.iter().filter_map(|id| self.flows[*id as usize].deadline());
        self.next_check = deadlines.min().unwrap_or(Time::MAX);
    }

    /// Whether flow `id` would time out, but is a chunk that its planner gives more time.
    fn is_patient(&mut self, now: Time, id: u32) -> bool {
        let flow = &mut self.flows[id as usize];
        let underway = flow.underway();
        if underway.chunk.is_none() || flow.deadline().is_none_or(|at| at > now) {
            return false;
        }
        let more = self.planner.patience(now, &underway, &self.config.fabric);
        more.into_iter().for_each(|more| flow.wait(now.saturating_add(more.max(Time(1)))));
        more.is_some()
    }

    fn on_loss(&mut self, now: Time, id: u32, signal: LossSignal) {
        let underway = self.flows[id as usize].underway();
        let route = self.planner.on_loss(now, &underway, signal, &self.config.fabric);
        if let Some(route) = route.filter(|route| *route != underway.route) {
            self.flows[id as usize].reroute(now, route);
            self.sent.remaps.push(now);
        }
    }

    fn finish(&mut self, now: Time, id: u32) {
        let underway = self.flows[id as usize].underway();
        self.planner.sent(now, &underway, &self.config.fabric, &mut self.subflows);
        self.open.retain(|open| *open != id);
        let tag = self.flows[id as usize].tag;
        if let Some(record) = self.messages.answered(now, tag, underway.bytes) {
            self.sent.messages.push(record);
            self.finished.push_back(record.message);
        }
    }

    /// Makes a flow of every subflow that the planner has put out.
    fn open_subflows(&mut self, now: Time) {
        let SenderConfig { seed, flow: config, .. } = self.config;
        let name = Draw::new(seed, "flow-key");
        let mut subflows = std::mem::take(&mut self.subflows);
        for subflow in subflows.drain(..) {
            let place = self.messages.cut(&subflow);
            let key = name.at(u64::from(subflow.message.0), u64::from(subflow.part));
            let SenderConfig { balance, fabric, host, .. } = &self.config;
            let steering = Steering::new(
                balance,
                &FlowContext {
                    flow: key,
                    seed,
                    mtu: config.mtu,
                    bdp: balance.bdp,
                    wire_bytes: (config.mtu, 0),
                    trims: false,
                    probes: false,
                    fabric,
                    hosts: (*host, subflow.dst),
                    hashing: None,
                },
            );
            let hops = self.config.fabric.hops(self.config.host, subflow.dst);
            let queue_pair = subflow.carrier.persistent();
            let left = queue_pair.and_then(|queue_pair| self.left.remove(&queue_pair));
            let mut flow = Flow::new(&subflow, place, steering, hops, left, config);
            flow.delayed = true;
            let id = self.flows.len() as u32;
            self.later.push(Reverse((flow.not_before.max(now + subflow.delay), id)));
            self.flows.push(flow);
            self.open.push(id);
        }
        self.subflows = subflows;
    }

    /// Flow `id` no longer tries a path of which it knows nothing: the next one may.
    fn heard_of(&mut self, id: u32) {
        let before = self.fresh.len();
        self.fresh.retain(|fresh| *fresh != id);
        if self.fresh.len() < before
            && let Some(next) = self.unsure.pop_front()
        {
            self.round.push_back(next);
        }
    }

    /// Gives flow `id` its turn, if it can send, now or when its time has come.
    fn line_up(&mut self, now: Time, id: u32) {
        let flow = &mut self.flows[id as usize];
        if flow.queued || flow.delayed || !flow.started || !flow.may_send() {
            return;
        }
        if flow.not_before > now {
            flow.delayed = true;
            self.later.push(Reverse((flow.not_before, id)));
        } else {
            flow.queued = true;
            self.round.push_back(id);
        }
    }
}

/// The source port of a packet of `flow` on `route`.
fn port_on(flow: &Flow, route: Route, ports: Ports) -> u16 {
    flow.port.unwrap_or_else(|| ports.port(route, flow.message.0))
}
