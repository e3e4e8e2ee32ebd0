//! What comes back: data at its receiver, answers at their sender, timers.

use super::flow::{SendingQp, Stage};
use super::persistent::Left;
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::packet::{Answer, Data, Packet, flag};
use crate::partition::{OutPort, OwnHost};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::World;
use weft_balance::Steering;
use weft_balance::plan::{ChunkAnswer, LossSignal, QueuePairId, Route};
use weft_balance::steer::{Feedback, TimeOut};
use weft_fabric::Fabric;
use weft_transport::{Acknowledgement, Carried, Loss, Reply, Sender, TransportConfig};
use weft_units::{HostId, Time};

/// How often in a usual time-out a queue pair whose time-out is longer looks whether anything has arrived.
const LOOKS: u64 = 16;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A data packet has reached its host.
    #[inline(always)]
    pub(crate) fn receive(&mut self, host: OwnHost, port: OutPort, packet: Packet) {
        match self.agenda.headers.is_some() {
            false => self.receive_data::<false>(host, port, packet),
            true => self.receive_in_reports(host, port, packet),
        }
    }
    /// The same, where receivers report.
    #[inline(never)]
    fn receive_in_reports(&mut self, host: OwnHost, port: OutPort, packet: Packet) {
        self.receive_data::<true>(host, port, packet);
    }
    /// The same, for receivers that do or do not report.
    #[inline(always)]
    fn receive_data<const REPORTS: bool>(&mut self, host: OwnHost, port: OutPort, packet: Packet) {
        let data = packet.as_data();
        let Data { receiver: id, is_resent, asks, .. } = data;
        let (seq, target) = match REPORTS {
            true => self.open_data(&packet, data.seq),
            false => (data.seq, None),
        };
        let data = Data { seq, ..data };
        let flow = &mut self.nics.receivers[id.partition()][id.number()];
        let (back, message) = (flow.back(), flow.message);
        if packet.is(flag::TRIMMED) {
            let arrival = flow.receiver.on_trimmed(self.now, seq);
            self.reply::<REPORTS>(port, back, packet, data, (arrival.reply, false));
            if REPORTS {
                self.note_credit(host, &packet);
                self.want_credit(host, id, target);
            }
            return;
        }
        if seq >= flow.highest {
            flow.highest = seq;
        } else if !is_resent {
            let behind = flow.highest - seq;
            flow.reordering.packets += 1;
            flow.reordering.farthest = flow.reordering.farthest.max(behind);
            self.counts.reorder(behind);
        }
        let (arrival, done) = match REPORTS {
            true => {
                let carried = Carried { bytes: packet.size, marked: packet.is(flag::MARKED), asks };
                flow.receiver.on_packet_done(self.now, seq, carried)
            }
            false => flow.receiver.on_data_done(self.now, seq),
        };
        let mut defers = false;
        if arrival.accepted {
            self.counts.accept(self.now, &packet);
            if done {
                let bytes = flow.bytes;
                defers = self.asks_to_defer(host, message, bytes);
                self.subflow_received(message, bytes);
            }
        } else if arrival.duplicate && is_resent {
            self.counts.totals.spurious += 1;
            self.messages.add_spurious(message);
        }
        self.reply::<REPORTS>(port, back, packet, data, (arrival.reply, defers));
        if REPORTS {
            self.note_credit(host, &packet);
            match done {
                true => self.end_credit(host, id),
                false => self.want_credit(host, id, target),
            }
        }
    }

    /// Answers a data packet by the port that it came by. The acknowledgement retraces a pinned path.
    #[inline(always)]
    fn reply<const REPORTS: bool>(
        &mut self,
        port: OutPort,
        back: (HostId, u32),
        packet: Packet,
        data: Data,
        (reply, defers): (Reply, bool),
    ) {
        let (is_nack, cumulative) = match reply {
            Reply::Ack { cumulative } => (false, cumulative),
            Reply::Nack { cumulative } => (true, cumulative),
            Reply::None => return,
        };
        let route = answered_route(self.config.fabric, &packet);
        let ((src, sender), Data { receiver, seq, asks, .. }) = (back, data);
        let echo = packet.is(flag::MARKED);
        let last_hop = is_nack && packet.was_cut_at_last_hop();
        let answer = Answer { is_nack, sender, seq, cumulative, echo, last_hop, defers };
        let mut answer = Packet::answer(src, route, self.config.packet.ack as u16, answer);
        if REPORTS {
            answer = self.report(receiver, answer, data, echo || asks);
        }
        self.counts.totals.control_packets += 1;
        if is_nack {
            self.counts.totals.nacks += 1;
        }
        self.ports.answer(self.now, port, answer, &mut self.agenda);
    }

    /// An acknowledgement or NACK has reached the sender.
    #[inline(always)]
    pub(crate) fn answered(&mut self, host: OwnHost, port: OutPort, packet: Packet) {
        if self.agenda.headers.is_some() {
            return self.reported(host, port, packet);
        }
        let answer = packet.as_answer();
        let id = answer.sender;
        let mut flow = &mut self.nics.senders[id as usize];
        flow.note_answer();
        if flow.is_done() {
            return self.retire_if_over(id);
        }
        if answer.is_nack {
            return self.nacked(host, port, packet);
        }
        if flow.hooks.is_planed() {
            self.hear_from_plane(id, port);
            flow = &mut self.nics.senders[id as usize];
        }
        let rtt = flow.rtt(self.now, answer.seq);
        let ack = acknowledgement(self.now, answer, rtt);
        let (_, done) = ack.deliver(&mut flow.sender, &mut flow.congestion);
        if !flow.hooks.is_plain() {
            if flow.hooks.hears() {
                let (room, late) = (flow.room(), flow.congestion.is_late(rtt));
                let heard = self.world.heard(self.now, &packet, answer);
                let feedback = Feedback { room, rtt, late, ..heard };
                if flow.hooks.is_planed() {
                    self.steer_in_plane(id, port, feedback);
                    flow = &mut self.nics.senders[id as usize];
                } else {
                    flow.steering.on_ack(feedback);
                }
            }
            if let Some(departures) = flow.departures_if_timed() {
                departures.forget_below(answer.cumulative);
            }
        }
        if done {
            self.note_answer_to_chunk(id, &packet, answer);
        }
        self.go_on(host, id, done);
    }

    /// All of queue pair `id` is answered, the last of it by `packet`, which is `answer`. If it is a chunk, its planner
    /// hears what that says, and by which way it came.
    pub(super) fn note_answer_to_chunk(&mut self, id: u32, packet: &Packet, answer: Answer) {
        let Answer { defers, echo: marked, .. } = answer;
        if self.nics.chunks.note_answer(id, ChunkAnswer { defers, marked }) {
            self.nics.senders[id as usize].route = answered_route(self.config.fabric, packet);
        }
    }

    /// Closes queue pair `id` if it is done; else it sends if its window has opened.
    #[inline(always)]
    pub(super) fn go_on(&mut self, host: OwnHost, id: u32, done: bool) {
        if done {
            self.close_flow(host, id);
        } else {
            self.rejoin(id);
        }
        self.pull(host);
    }

    /// A NACK rewinds its queue pair and looks for another path, unless it is about a path
    /// that the queue pair has left: what was sent since then is on its way elsewhere.
    #[cold]
    fn nacked(&mut self, host: OwnHost, port: OutPort, packet: Packet) {
        let answer = packet.as_answer();
        let id = answer.sender;
        let flow = &mut self.nics.senders[id as usize];
        let pinned = packet.is(flag::PINNED);
        let path = answered_route(self.config.fabric, &packet);
        if (pinned || self.config.pins_by_port()) && flow.route != path {
            return;
        }
        if !flow.hooks.is_plain() && self.config.switch.trim.is_some() {
            // What was trimmed met congestion, as a mark would say.
            let heard = self.world.heard(self.now, &packet, answer);
            self.steer(id, port, Feedback { marked: true, trimmed: true, ..heard });
        }
        self.hear_from_plane(id, port);
        let flow = &mut self.nics.senders[id as usize];
        let rtt = flow.rtt(self.now, answer.seq);
        let ack = acknowledgement(self.now, answer, rtt);
        if ack.deliver_nack(&mut flow.sender, &mut flow.congestion).is_none() {
            return;
        }
        flow.nacked = true;
        self.reroute(host, id, LossSignal::Nack);
        let done = self.nics.senders[id as usize].sender.is_done();
        self.go_on(host, id, done);
    }

    /// What queue pair `id` carries is lost: something that left after it on the same queue pair of the NIC is here.
    #[cold]
    fn overtaken(&mut self, host: OwnHost, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        if flow.is_done() || flow.sender.on_timer(self.now, Time::ZERO) == 0 {
            return;
        }
        flow.congestion.on_loss(self.now, Loss::Gap);
        self.reroute(host, id, LossSignal::Nack);
        self.rejoin(id);
    }

    /// Asks the planner for a way around.
    pub(super) fn reroute(&mut self, host: OwnHost, id: u32, signal: LossSignal) {
        let flow = &mut self.nics.senders[id as usize];
        let planner = &mut self.nics.hosts[host].planner;
        let chunk = self.nics.chunks.number(id);
        if chunk.is_some() {
            self.nics.chunks.forget(id, host);
        }
        let (fabric, underway) = (self.config.fabric, flow.underway(chunk));
        if let Some(route) = planner.on_loss(self.now, &underway, signal, fabric) {
            let is_gap = signal == LossSignal::Nack && flow.route == route;
            flow.route = route;
            self.nics.time_outs.reroute(id, self.now);
            if let Some(port) = chunk.and_then(|chunk| planner.port(chunk)) {
                flow.planes = 1 << port;
            }
            if chunk.is_some() && is_gap {
                let senders = &self.nics.senders;
                let has_left = |id: u32| !senders[id as usize].sender.has_work();
                self.nics.chunks.put_again(id, host, has_left);
            }
        }
        let deadline = planner.deadline();
        self.flush_by(host, deadline);
        self.rebalance(host);
    }

    /// A `Timer` event: resends what timed out, and sleeps until the next deadline.
    pub(crate) fn flow_timer(&mut self, id: u32) {
        let TransportConfig { rto, backs_off, .. } = self.config.transport;
        if self.nics.chunks.is_stale(id, self.now) {
            return;
        }
        let rto = self.nics.chunks.time_out(id, rto);
        let flow = &mut self.nics.senders[id as usize];
        if flow.is_done() {
            flow.timed = false;
            return;
        }
        let host = flow.src;
        let after = self.nics.time_outs.of(id, rto, flow.sender.arrived());
        if self.is_patient(id, after) {
            return;
        }
        let flow = &mut self.nics.senders[id as usize];
        let lost = flow.sender.on_timer(self.now, after);
        let is_stuck = flow.is_stuck(lost > 0, rto);
        if lost > 0 || is_stuck {
            if backs_off {
                self.nics.time_outs.back_off(id, self.now, after, flow.sender.arrived());
            }
            for _ in 0..if flow.hooks.is_reported() { lost } else { 1 } {
                flow.congestion.on_loss(self.now, Loss::TimeOut);
            }
            let time_out = TimeOut { now: self.now, after };
            self.name_losses(id, time_out);
            self.steer_time_out(id, time_out);
            if is_stuck || self.nics.time_outs.is_of_route(id, time_out) {
                self.reroute(host, id, LossSignal::TimeOut);
            }
        }
        if is_stuck {
            self.ask_what_came(id);
        }
        let flow = &mut self.nics.senders[id as usize];
        let gap = if flow.waiting { self.now.until(flow.due) } else { Time::ZERO };
        self.counts.progress.wait(self.now, gap);
        // A queue pair without anything out still needs its timer: it may be held back for
        // good (a paused NIC), and only timers notice a stall.
        let again = self.now.saturating_add(flow.sender.longest_sleep(rto));
        let after = self.nics.time_outs.of(id, rto, flow.sender.arrived());
        // What arrives in a longer time-out ends it, and wakes nobody.
        let again = if after > rto { again.min(self.now + Time(rto.0 / LOOKS)) } else { again };
        let at = flow.sender.deadline(after).map_or(again, |at| at.min(again));
        let at = at.max(Time(self.now.0 + 1));
        self.nics.chunks.arm(id, at);
        self.agenda.push_at_host(Event::new(at, Class::Timer, id), host);
        self.rejoin(id);
        self.pull(host);
    }

    /// Whether queue pair `id`, whose time-out of `after` may have passed, carries a chunk that its planner gives more time.
    fn is_patient(&mut self, id: u32, after: Time) -> bool {
        let flow = &self.nics.senders[id as usize];
        let (Some(chunk), host) = (self.nics.chunks.number(id), flow.src) else { return false };
        let is_due = |after| flow.sender.deadline(after).is_some_and(|at| at <= self.now);
        // Nobody is more patient than the NIC.
        if !is_due(after) || is_due(self.config.transport.rto) {
            return false;
        }
        let underway = flow.underway(Some(chunk));
        let planner = &mut self.nics.hosts[host].planner;
        let Some(more) = planner.patience(self.now, &underway, self.config.fabric) else {
            return false;
        };
        let at = self.now.saturating_add(more.max(Time(1)));
        self.nics.chunks.arm(id, at);
        self.agenda.push_at_host(Event::new(at, Class::Timer, id), host);
        true
    }

    /// Every packet of queue pair `id` has left once.
    #[cold]
    pub(super) fn all_left(&mut self, id: u32) {
        let SendingQp { src, message, bytes, queue_pair, .. } = self.nics.senders[id as usize];
        if self.awaits_departures() && self.messages.leave(message, bytes) {
            self.rank_message_left(message);
        }
        if let Some(queue_pair) = queue_pair {
            self.hand_over(src, queue_pair, id);
        }
    }

    /// The last packet of flow `id`, on a persistent queue pair, is on the wire: that takes the next
    /// subflow.
    #[cold]
    fn hand_over(&mut self, host: OwnHost, queue_pair: QueuePairId, id: u32) {
        let flow = &self.nics.senders[id as usize];
        let left = Left { congestion: Some(flow.congestion.clone()), due: flow.due };
        let state = &mut self.nics.hosts[host];
        state.persistent.leave(queue_pair, left);
        let subflow = state.planner.next(self.now, queue_pair, self.config.fabric);
        self.nics.subflows.extend(subflow);
        self.open_flows(host);
    }

    /// The last acknowledgement is in: frees what the queue pair held.
    #[cold]
    fn close_flow(&mut self, host: OwnHost, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        let is_awaited = flow.sender.is_rateless() && flow.hooks.is_awaited();
        flow.stage = Stage::Done;
        if !flow.hooks.is_reported() {
            flow.sender = Sender::done();
        }
        flow.hooks = flow.hooks.of_done();
        flow.departures = None;
        for plane in 0..self.planes() {
            *self.steering_of(id, plane) = Steering::Fixed;
        }
        let flow = &mut self.nics.senders[id as usize];
        let (message, bytes) = (flow.message, flow.bytes);
        let underway = flow.underway(self.nics.chunks.number(id));
        self.nics.time_outs.forget(id);
        let counted = underway.queue_pair.or(self.nics.chunks.queue_pair(id));
        self.nics.hosts[host].close_queue_pair(counted);
        for lost in self.nics.chunks.close(id, host) {
            self.overtaken(host, lost);
        }
        let (planner, out) = (&mut self.nics.hosts[host].planner, &mut self.nics.subflows);
        if let Some(answer) = self.nics.chunks.answer(id) {
            planner.hear(&underway, answer);
        }
        planner.sent(self.now, &underway, self.config.fabric, out);
        let deadline = planner.deadline();
        if !out.is_empty() {
            self.open_flows(host);
        }
        self.flush_by(host, deadline);
        if is_awaited {
            // Which of its symbols would be the last, nobody knew.
            self.all_left(id);
        }
        self.subflow_sent(message, bytes);
        self.retire_if_over(id);
    }

    /// Gives the place of queue pair `id` to the next one, if nothing names it any more. One
    /// that lost a packet for good keeps its place: nobody can tell when the last of it is gone.
    #[inline]
    pub(super) fn retire_if_over(&mut self, id: u32) {
        let flow = &self.nics.senders[id as usize];
        if flow.is_over() {
            let partition = self.world.partitioning.hosts[flow.dst].partition;
            self.nics.hosts[flow.src].free.push(id);
            self.nics.free_receivers[usize::from(partition)].push(flow.receiver.number() as u32);
            let (message, to) = (flow.message, flow.dst);
            if self.messages.end_subflow(message) {
                self.forget_message(message, to);
            }
        }
    }
}

/// The route of the packet that `answer` answers; or of an answer to it, which retraces a pinned path.
#[inline(always)]
pub(super) fn answered_route(fabric: &Fabric, answer: &Packet) -> Route {
    match answer.route() {
        Route::Pinned(path) => Route::Pinned(fabric.path_as_sent(path)),
        hashed => hashed,
    }
}

impl World<'_> {
    /// What `packet`, which is `answer`, says to a scheme, but for what its sender knows of it.
    #[inline(always)]
    pub(super) fn heard(&self, now: Time, packet: &Packet, answer: Answer) -> Feedback {
        Feedback {
            marked: answer.echo,
            last_hop: answer.last_hop,
            answer_marked: packet.is(flag::MARKED),
            ..Feedback::good(now, answered_route(self.config.fabric, packet).number())
        }
    }
}

/// What `answer` says of a packet that left `rtt` before.
#[inline(always)]
pub(super) fn acknowledgement(now: Time, answer: Answer, rtt: Time) -> Acknowledgement {
    let Answer { seq, cumulative, echo: marked, .. } = answer;
    Acknowledgement { now, seq, cumulative, marked, rtt }
}
