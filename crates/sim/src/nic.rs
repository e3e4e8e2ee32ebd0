//! The NIC of a host: queue pairs that take turns, their transport, and their timers.
//!
//! The NIC serves the queue pairs that have something to send and an open window round robin,
//! one packet each (paper 000, assumption 3). A queue pair that cannot send leaves the round;
//! what opens its window brings it back at the end. Acknowledgements go before data.

use crate::config::RunConfig;
use crate::cut::{OwnHost, Territory};
use crate::engine::Engine;
use crate::event::{Class, Event, Packet, ReceiverId, Target, flag};
use crate::mail::Opening;
use crate::ports::{Ports, Ready};
use crate::queue::EventQueue;
use std::collections::VecDeque;
use weft_balance::plan::{Piece, Planner, Route, Trouble};
use weft_balance::steer::Steering;
use weft_fabric::PathId;
use weft_transport::{Acknowledged, Congestion, Loss, Receiver, Reply, Sender};
use weft_units::prefetch::prefetch;
use weft_units::{Draw, HostId, IdVec, MessageId, Stream, Time};

/// A host: its planner and the round of its NIC.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number in the fabric.
    pub(crate) id: HostId,
    pub(crate) planner: Planner,
    /// Queue pairs that want to send, the next one first.
    round: VecDeque<u32>,
    /// Random positions in the round.
    positions: Stream,
    /// A `Wake` event is under way.
    waking: bool,
    /// When the pending `Flush` event comes.
    pub(crate) flush_at: Option<Time>,
    active: u32,
    most_active: u32,
    established: u32,
}

impl Host {
    /// The hosts of a domain.
    pub(crate) fn all(config: &RunConfig, territory: &Territory) -> IdVec<OwnHost, Host> {
        let positions = Draw::new(config.seed, "queue-position");
        let hosts = territory.hosts.iter();
        hosts
            .map(|host| Host {
                id: *host,
                planner: Planner::new(&config.balance, *host, config.seed),
                round: VecDeque::new(),
                positions: positions.stream(u64::from(host.0)),
                waking: false,
                flush_at: None,
                active: 0,
                most_active: 0,
                established: 0,
            })
            .collect()
    }
    pub(crate) fn most_active(&self) -> u32 {
        self.most_active
    }
    pub(crate) fn established(&self) -> u32 {
        self.established
    }
    fn open_queue_pair(&mut self) {
        self.established += 1;
        self.active += 1;
        self.most_active = self.most_active.max(self.active);
    }
}

/// The sending half of a queue pair: what decides whether it may send stands first, in two
/// cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct SendFlow {
    sender: Sender,
    packets: u32,
    /// In its host's round.
    queued: bool,
    /// A `Start` event will bring it back: it has not started yet, or it is paced.
    waiting: bool,
    /// Has entered its NIC's round once.
    started: bool,
    /// A `Timer` event is under way.
    timed: bool,
    congestion: Congestion,
    route: Route,
    /// What switches hash: stands for the addresses of the flow.
    key: u32,
    dst: HostId,
    /// The receiving half.
    receiver: ReceiverId,
    src: OwnHost,
    /// Payload of the last packet; all others are full.
    last_payload: u16,
    /// All packets take `route`, whatever `steering` is.
    fixed: bool,
    pub(crate) message: MessageId,
    steering: Steering,
}

impl SendFlow {
    #[inline(always)]
    fn may_send(&self) -> bool {
        !self.waiting
            && self.sender.has_work()
            && self.sender.in_flight() < self.congestion.window()
    }
    #[inline(always)]
    fn payload(&self, seq: u32, mtu: u32) -> u32 {
        if seq + 1 == self.packets { u32::from(self.last_payload) } else { mtu }
    }
    /// Has the cache fetch what the flow's next packet or acknowledgement needs.
    #[inline(always)]
    fn prefetch(&self) {
        prefetch(self);
        prefetch(&self.congestion);
    }
    /// Payload of the whole flow.
    fn bytes(&self, mtu: u32) -> u64 {
        u64::from(self.packets - 1) * u64::from(mtu) + u64::from(self.last_payload)
    }
    pub(crate) fn is_done(&self) -> bool {
        self.sender.is_done()
    }
}

/// The receiving half of a queue pair: a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ReceiveFlow {
    pub(crate) receiver: Receiver,
    src: HostId,
    /// The sending half, as the domain of `src` numbers it.
    sender: u32,
    pub(crate) message: MessageId,
    /// Payload of the whole flow.
    bytes: u64,
}

impl ReceiveFlow {
    /// The receiving half of a new queue pair.
    pub(crate) fn new(config: &RunConfig, opening: &Opening) -> ReceiveFlow {
        let Opening { src, sender, message, bytes } = *opening;
        let packets = packets_of(config, bytes);
        let receiver = Receiver::new(config.transport.recovery, packets);
        ReceiveFlow { receiver, src, sender, message, bytes }
    }
    /// Payload that has come in order, if some is missing yet.
    pub(crate) fn bytes_of_open_piece(&self, mtu: u32) -> u64 {
        match self.receiver.is_done() {
            true => 0,
            false => u64::from(self.receiver.expected()) * u64::from(mtu),
        }
    }
}

/// How many packets carry `bytes` of payload.
fn packets_of(config: &RunConfig, bytes: u64) -> u32 {
    let packets = bytes.div_ceil(u64::from(config.packet.mtu));
    u32::try_from(packets).expect("2^32 packets are too many")
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Opens a queue pair for every piece that the planner of `host` has put out.
    pub(crate) fn open_flows(&mut self, host: OwnHost) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in pieces.drain(..) {
            self.jobs.add_piece(self.world.sending[piece.message]);
            self.open_flow(host, piece);
        }
        self.pieces = pieces;
    }

    fn open_flow(&mut self, host: OwnHost, piece: Piece) {
        let config = self.config;
        let packets = packets_of(config, piece.bytes);
        let before_last = u64::from(packets - 1) * u64::from(config.packet.mtu);
        let name = Draw::new(config.seed, "flow-key");
        let key = name.at(u64::from(piece.message.0), u64::from(piece.part));
        let id = self.senders.len() as u32;
        assert!(id < Target::LIMIT, "{id} queue pairs are too many");
        let receiver = self.open_receiver(host, id, &piece);
        let steering = Steering::new(&config.balance, key, config.seed, config.packet.mtu);
        let fixed = steering.is_fixed();
        self.senders.push(SendFlow {
            sender: Sender::new(config.transport.recovery, packets),
            congestion: Congestion::new(&config.transport.congestion, config.packet.mtu),
            steering,
            route: piece.route,
            key: key as u32,
            src: host,
            dst: piece.dst,
            receiver,
            message: piece.message,
            packets,
            last_payload: (piece.bytes - before_last) as u16,
            fixed,
            queued: false,
            waiting: true,
            started: false,
            timed: false,
        });
        self.hosts[host].open_queue_pair();
        if piece.delay > Time::ZERO {
            self.agenda.push(Event::new(self.now + piece.delay, Class::Start, id));
        } else {
            self.enter_round(id);
            self.wake_later(host);
        }
    }

    /// Makes the receiving half of the queue pair that `host` opens as its `sender`.
    fn open_receiver(&mut self, host: OwnHost, sender: u32, piece: &Piece) -> ReceiverId {
        let Piece { message, bytes, dst, .. } = *piece;
        let opening = Opening { src: self.hosts[host].id, sender, message, bytes };
        let domain = self.world.cut.hosts[dst].domain;
        let number = &mut self.opened[usize::from(domain)];
        let id = ReceiverId::new(self.own, *number);
        *number += 1;
        if domain == self.own {
            self.receivers[usize::from(domain)].push(ReceiveFlow::new(self.config, &opening));
        } else {
            self.agenda.mail_to(domain).openings.push(opening);
        }
        id
    }

    /// Puts a new queue pair into its NIC's round: at the end, or anywhere if so configured.
    fn enter_round(&mut self, id: u32) {
        let flow = &mut self.senders[id as usize];
        (flow.waiting, flow.queued, flow.started) = (false, true, true);
        let host = &mut self.hosts[flow.src];
        let len = host.round.len();
        let at = match self.config.balance.random_position {
            true => host.positions.below(len as u32 + 1) as usize,
            false => len,
        };
        host.round.insert(at, id);
    }

    /// Lets the NIC look for work once everything that happens now has been posted.
    fn wake_later(&mut self, host: OwnHost) {
        let state = &mut self.hosts[host];
        if !state.waking {
            state.waking = true;
            self.agenda.push(Event::new(self.now, Class::Wake, host.0));
        }
    }

    pub(crate) fn wake(&mut self, host: OwnHost) {
        self.hosts[host].waking = false;
        self.pull(host);
    }

    /// A `Start` event: the queue pair begins, or its pacing gap is over.
    pub(crate) fn start_flow(&mut self, id: u32) {
        let flow = &mut self.senders[id as usize];
        let host = flow.src;
        if !flow.started {
            self.enter_round(id);
            return self.wake_later(host);
        }
        flow.waiting = false;
        self.rejoin(id);
        self.pull(host);
    }

    /// Brings a queue pair back into the round if it can send.
    #[inline(always)]
    fn rejoin(&mut self, id: u32) {
        let flow = &mut self.senders[id as usize];
        if !flow.queued && flow.may_send() {
            flow.queued = true;
            self.hosts[flow.src].round.push_back(id);
        }
    }

    /// If the NIC of `host` is free, sends the next packet in turn.
    #[inline(always)]
    pub(crate) fn pull(&mut self, host: OwnHost) {
        let nic = host.nic();
        loop {
            let round = &mut self.hosts[host].round;
            if round.is_empty() || self.ports.ready(self.now, nic, &mut self.agenda) == Ready::Told
            {
                return;
            }
            let id = round.pop_front().expect("not empty");
            let flow = &mut self.senders[id as usize];
            flow.queued = false;
            if flow.may_send() {
                return self.send_data(host, id);
            }
        }
    }

    /// Puts the next packet of queue pair `id` on the wire.
    #[inline(always)]
    fn send_data(&mut self, host: OwnHost, id: u32) {
        let flow = &mut self.senders[id as usize];
        let sent = flow.sender.send(self.now);
        let route = match flow.fixed {
            true => flow.route,
            false => flow.steering.route(flow.route),
        };
        let (route, flags) = Packet::encode(route);
        let again = if sent.retransmission { flag::AGAIN } else { 0 };
        let size = flow.payload(sent.seq, self.config.packet.mtu) + self.config.packet.header;
        let to = flow.dst.0 | flags | again;
        let packet = Packet {
            flow: flow.receiver.0,
            seq: sent.seq,
            aux: flow.key,
            to,
            route,
            size: size as u16,
        };
        if let Some(rate) = flow.congestion.pacing() {
            flow.waiting = true;
            let next = self.now + rate.serialize(u64::from(size));
            self.agenda.push(Event::new(next, Class::Start, id));
        } else if flow.may_send() {
            flow.queued = true;
            self.hosts[host].round.push_back(id);
        }
        self.totals.packets += 1;
        if sent.retransmission {
            self.totals.retransmits += 1;
            let message = self.senders[id as usize].message;
            self.jobs.add_retransmit(self.world.sending[message]);
        }
        self.arm_timer(id);
        let next = self.hosts[host].round.front();
        let more = next.is_some();
        if let Some(next) = next {
            self.senders[*next as usize].prefetch();
        }
        let nic = host.nic();
        self.ports.send(self.now, nic, packet, more, &mut self.agenda);
    }

    #[inline(always)]
    fn arm_timer(&mut self, id: u32) {
        let flow = &mut self.senders[id as usize];
        if !flow.timed {
            flow.timed = true;
            let at = self.now.saturating_add(self.config.transport.rto);
            self.agenda.push(Event::new(at, Class::Timer, id));
        }
    }

    /// A data packet has reached its host.
    #[inline(always)]
    pub(crate) fn receive(&mut self, host: OwnHost, packet: Packet) {
        let id = ReceiverId(packet.flow);
        let flow = &mut self.receivers[id.domain()][id.number()];
        let arrival = flow.receiver.on_data(packet.seq);
        let (back, message) = ((flow.src, flow.sender), flow.message);
        if arrival.accepted {
            self.life.sign(self.now);
            if flow.receiver.is_done() {
                let bytes = flow.bytes;
                self.piece_received(message, bytes);
            }
        } else if arrival.duplicate && packet.is(flag::AGAIN) {
            self.totals.spurious += 1;
            self.jobs.add_spurious(self.world.receiving[message]);
        }
        self.reply(host, back, packet, arrival.reply);
    }

    /// Answers a data packet. The acknowledgement retraces a pinned path.
    #[inline(always)]
    fn reply(&mut self, host: OwnHost, back: (HostId, u32), packet: Packet, reply: Reply) {
        let (kind, aux) = match reply {
            Reply::Ack { cumulative } => (flag::ACK, cumulative),
            Reply::Nack { cumulative } => (flag::NACK, cumulative),
            Reply::None => return,
        };
        let pinned = packet.is(flag::PINNED);
        let route = if pinned { packet.path().flipped().0 } else { packet.route };
        let (src, sender) = back;
        let answer = Packet {
            flow: sender,
            seq: packet.seq,
            aux,
            to: src.0 | kind | packet.to & (flag::MARKED | flag::PINNED),
            route,
            size: self.config.packet.ack as u16,
        };
        self.totals.control_packets += 1;
        let nic = host.nic();
        self.ports.answer(self.now, nic, answer, &mut self.agenda);
    }

    /// An acknowledgement or NACK has reached the sender.
    #[inline(always)]
    pub(crate) fn answered(&mut self, host: OwnHost, packet: Packet) {
        let flow = &mut self.senders[packet.flow as usize];
        if flow.sender.is_done() {
            return;
        }
        if packet.is(flag::NACK) {
            return self.nacked(host, packet);
        }
        let marked = packet.is(flag::MARKED);
        if !flow.fixed {
            flow.steering.on_ack(packet.route, marked);
        }
        let learnt = flow.sender.on_ack(self.now, packet.seq, packet.aux);
        self.learn(host, packet.flow, learnt, marked);
    }

    /// Passes on what an acknowledgement taught, and sends if it opened the window.
    #[inline(always)]
    fn learn(&mut self, host: OwnHost, id: u32, learnt: Acknowledged, marked: bool) {
        let flow = &mut self.senders[id as usize];
        if learnt.packets > 0 {
            flow.congestion.on_ack(learnt.packets, marked, learnt.in_flight);
        }
        if flow.sender.is_done() {
            self.close_flow(host, id);
        } else {
            self.rejoin(id);
        }
        self.pull(host);
    }

    /// A NACK rewinds its queue pair and looks for another path, unless it is about a path
    /// that the queue pair has left: what was sent since then is on its way elsewhere.
    #[cold]
    fn nacked(&mut self, host: OwnHost, packet: Packet) {
        let flow = &mut self.senders[packet.flow as usize];
        // The answer retraced the path, so its id has been swapped an odd number of times.
        let path = Route::Pinned(packet.path().swapped());
        if packet.is(flag::PINNED) && flow.route != path {
            return;
        }
        let Some(learnt) = flow.sender.on_nack(self.now, packet.aux) else {
            return;
        };
        flow.congestion.on_loss(Loss::Gap);
        self.reroute(host, packet.flow, Trouble::Nack);
        self.learn(host, packet.flow, learnt, packet.is(flag::MARKED));
    }

    /// Asks the planner for a way around.
    fn reroute(&mut self, host: OwnHost, id: u32, trouble: Trouble) {
        let flow = &mut self.senders[id as usize];
        let planner = &mut self.hosts[host].planner;
        let fabric = self.config.fabric;
        if let Some(route) = planner.trouble(self.now, flow.dst, flow.route, trouble, fabric) {
            flow.route = route;
        }
    }

    /// A `Timer` event: resends what timed out, and sleeps until the next deadline.
    pub(crate) fn flow_timer(&mut self, id: u32) {
        let rto = self.config.transport.rto;
        let flow = &mut self.senders[id as usize];
        if flow.sender.is_done() {
            return;
        }
        let host = flow.src;
        if flow.sender.on_timer(self.now, rto) > 0 {
            flow.congestion.on_loss(Loss::TimeOut);
            flow.steering.on_time_out();
            self.reroute(host, id, Trouble::TimeOut);
        }
        if self.life.silence(self.now) > self.config.stall_after {
            self.suspect = Some(self.now);
        }
        let flow = &mut self.senders[id as usize];
        // A queue pair without anything out still needs its timer: it may be held back for
        // good (a paused NIC), and only timers notice a stall.
        let again = self.now.saturating_add(rto);
        let at = flow.sender.deadline(rto).unwrap_or(again).max(Time(self.now.0 + 1));
        self.agenda.push(Event::new(at, Class::Timer, id));
        self.rejoin(id);
        self.pull(host);
    }

    /// The last acknowledgement is in: frees what the queue pair held.
    #[cold]
    fn close_flow(&mut self, host: OwnHost, id: u32) {
        let flow = &mut self.senders[id as usize];
        (flow.steering, flow.fixed) = (Steering::Fixed, true);
        flow.sender = Sender::done();
        let (message, bytes) = (flow.message, flow.bytes(self.config.packet.mtu));
        self.hosts[host].active -= 1;
        self.piece_sent(message, bytes);
    }
}

/// A packet's size travels in 16 bits, its path id in the same 16 bits as its entropy.
const _: () = assert!(size_of::<PathId>() == 2);
