//! Answers that stand for several packets, and credit: what recoveries that report send beside data.

use super::feedback::{acknowledgement, answered_route};
use super::planes::in_turn;
use crate::config::{PacketConfig, RunConfig};
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::headers::{Ask, Header};
use crate::packet::{Answer, Data, Packet, flag};
use crate::partition::{OutPort, OwnHost, ReceiverId};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::plan::{LossSignal, Route};
use weft_balance::steer::{Departure, Feedback};
use weft_transport::credit::{Granter, UplinkShare};
use weft_transport::{Acknowledgement, Loss, Report, Window};
use weft_units::{Draw, HostId, Time};

/// The credit that a NIC grants.
#[derive(Debug)]
pub(super) struct Credit {
    granter: Granter<ReceiverId>,
    /// A `Credit` event is under way.
    is_busy: bool,
    /// Pulls that have left: each takes the next way.
    pulls: u16,
}

/// Pulls walk through so many entropy values.
const PULL_ENTROPIES: u16 = 128;

impl Credit {
    /// Of a NIC, where receivers grant credit.
    pub(super) fn new(config: &RunConfig, host: HostId) -> Option<Box<Credit>> {
        let rccc = config.transport.congestion.credit()?;
        let rate = config.fabric.line_rate();
        let mut granter = Granter::new(rate, config.packet.mtu, rccc.max_window);
        if rccc.minds_uplinks {
            let PacketConfig { mtu, header, ack } = config.packet;
            let round_trip = config.fabric.base_rtt(u64::from(mtu + header), u64::from(ack));
            let chance = Draw::new(config.seed, "uplink-share").stream(u64::from(host.0));
            granter = granter.minding(UplinkShare::new(round_trip, chance));
        }
        Some(Box::new(Credit { granter, is_busy: false, pulls: 0 }))
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// The number of a data packet, and the credit that it asks for; its extended header, where it has
    /// one, is no more.
    #[inline(always)]
    pub(super) fn open_data(&mut self, packet: &Packet, seq: u32) -> (u32, Option<u32>) {
        match &mut self.agenda.headers {
            Some(headers) if headers.are_on_data() => match headers.take(packet.header()) {
                Header::Data { seq, target } => (seq, Some(target)),
                other => unreachable!("{other:?} of data"),
            },
            _ => (seq, None),
        }
    }
    /// The place of an extended header, which a packet is to have.
    fn put_header(&mut self, header: Header) -> u32 {
        let headers = self.agenda.headers.as_mut().expect("the run has extended headers");
        headers.forget(self.ports.losses_mut());
        headers.forget(&mut self.counts.losses);
        headers.put(header)
    }
    /// The place of the header of data packet `seq`, if it is to say what credit its queue pair wants.
    pub(super) fn ask_for_credit(&mut self, host: OwnHost, id: u32, seq: u32) -> Option<u32> {
        let sharing = self.nics.round(host, 0).len() as u32;
        let flow = &self.nics.senders[id as usize];
        let backlog = flow.sender.backlog();
        let target = flow.congestion.pull_target(backlog, sharing)?;
        Some(self.put_header(Header::Data { seq, target }))
    }
    /// The report that goes with an `answer` of queue pair `id`.
    pub(super) fn report(
        &mut self,
        id: ReceiverId,
        answer: Packet,
        data: Data,
        exact: bool,
    ) -> Packet {
        let flow = &mut self.nics.receivers[id.partition()][id.number()];
        let report = flow.receiver.report(data.seq, exact);
        let Data { seq, is_resent, .. } = data;
        let place = self.put_header(Header::Report { seq, is_resent, report, request: None });
        answer.with_header(place)
    }
    /// The number for the NACK that a switch makes of trimmed data.
    pub(crate) fn turn_header(&mut self, trimmed: &Packet, seq: u32, is_resent: bool) -> u32 {
        let (seq, _) = self.open_data(trimmed, seq);
        match &mut self.agenda.headers {
            None => seq,
            Some(headers) => {
                let report = Report::default();
                headers.put(Header::Report { seq, is_resent, report, request: None })
            }
        }
    }

    /// An answer has reached the sender, or a request its receiver.
    #[inline(never)]
    pub(super) fn reported(&mut self, host: OwnHost, port: OutPort, packet: Packet) {
        let headers = self.agenda.headers.as_mut().expect("the run has extended headers");
        match headers.take(packet.header()) {
            Header::Report { seq, is_resent, report, request } => {
                self.hear_report((host, port), packet, (seq, is_resent, request), &report);
            }
            Header::Pull(granted) => self.hear_pull(host, packet.sender(), granted),
            Header::Request { receiver, target, ask } => {
                self.requested((host, port), packet, (receiver, target, ask));
            }
            Header::Data { .. } => unreachable!("data is no answer"),
        }
    }

    fn hear_report(
        &mut self,
        (host, port): (OwnHost, OutPort),
        packet: Packet,
        (seq, is_resent, request): (u32, bool, Option<Ask>),
        report: &Report,
    ) {
        let answer = Answer { seq, ..packet.as_answer() };
        let id = answer.sender;
        let flow = &mut self.nics.senders[id as usize];
        flow.sender.hear(Some(report));
        if flow.is_done() {
            return self.retire_if_over(id);
        }
        let now = self.now;
        if request == Some(Ask::Path) {
            self.hear_of_path(id, port, answered_route(self.config.fabric, &packet).number());
        }
        let flow = &mut self.nics.senders[id as usize];
        let probe = match request {
            Some(Ask::Probe(number)) => {
                flow.sender.probing().and_then(|probing| probing.age(now, number))
            }
            _ => None,
        };
        let rtt = match (probe, flow.congestion.delays()) {
            (Some(age), Some(delays)) => age.max(delays.base_rtt),
            // When that packet left says nothing of when the request did.
            _ if request.is_some() => Time::ZERO,
            _ => flow.rtt_of_copy(now, seq, is_resent),
        };
        let heard = acknowledgement(now, answer, rtt);
        self.hear_from_plane(id, port);
        let Some(done) = self.learn(id, &heard, answer, report) else { return };
        if !answer.is_nack {
            self.put_off_probe(id, probe);
        }
        let flow = &mut self.nics.senders[id as usize];
        if !flow.hooks.is_plain() {
            if flow.hooks.hears() {
                let trimmed = answer.is_nack && self.config.switch.trim.is_some();
                let (room, late) = match trimmed {
                    true => (0, false),
                    false => (flow.room(), flow.congestion.is_late(rtt)),
                };
                let heard = self.world.heard(now, &packet, answer);
                let marked = heard.marked || trimmed;
                self.steer(id, port, Feedback { marked, trimmed, room, rtt, late, ..heard });
            }
            if let Some(departures) = &mut self.nics.senders[id as usize].departures {
                departures.forget_below(report.cumulative);
            }
        }
        if answer.is_nack {
            self.nics.senders[id as usize].nacked = true;
            self.reroute(host, id, LossSignal::Nack);
        }
        if done {
            self.note_answer_to_chunk(id, &packet, answer);
        } else {
            self.ask_if_held(id);
        }
        self.go_on(host, id, done);
    }

    /// Asks for a report if queue pair `id` waits for one that nobody would send.
    fn ask_if_held(&mut self, id: u32) {
        let (config, flow) = (self.config, &self.nics.senders[id as usize]);
        let wire_bytes = config.packet.mtu + config.packet.header;
        if flow.lacks_report(wire_bytes, &config.transport.recovery) {
            self.ask_what_came(id);
        }
    }
    /// Queue pair `id` may not send, and asks what is there and for a report of each packet that is out.
    pub(super) fn ask_what_came(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        flow.hooks.note_asked(true);
        let out = flow.sender.in_flight();
        self.request(id, Ask::Stuck(out));
    }

    /// Tells recovery and congestion control; whether all is acknowledged. `None`: a NACK that tells no
    /// news.
    fn learn(
        &mut self,
        id: u32,
        heard: &Acknowledgement,
        answer: Answer,
        report: &Report,
    ) -> Option<bool> {
        let flow = &mut self.nics.senders[id as usize];
        if answer.is_nack {
            let learnt = flow.sender.on_nack(self.now, answer.seq, 0)?;
            let loss = match self.config.switch.trim {
                None => Loss::Gap,
                Some(_) => Loss::Trimmed { last_hop: answer.last_hop, in_flight: learnt.in_flight },
            };
            flow.congestion.on_loss(self.now, loss);
            return Some(false);
        }
        let window =
            Window { now: flow.congestion.window(), most: flow.congestion.largest_window() };
        Some(heard.deliver_report(report, window, &mut flow.sender, &mut flow.congestion))
    }

    fn hear_pull(&mut self, host: OwnHost, id: u32, granted: u32) {
        let flow = &mut self.nics.senders[id as usize];
        flow.sender.hear(None);
        if flow.is_done() {
            return self.retire_if_over(id);
        }
        flow.congestion.on_credit(granted);
        self.go_on(host, id, false);
    }

    /// Queue pair `id` asks its receiver what is there.
    pub(super) fn request(&mut self, id: u32, ask: Ask) {
        let (flow, now) = (&self.nics.senders[id as usize], self.now);
        let (is_plain, base, in_flight) =
            (flow.hooks.is_plain(), flow.route, flow.sender.in_flight());
        let route = match is_plain {
            true => base,
            false => self.steering_of(id, 0).route(base, Departure { now, in_flight }),
        };
        let flow = &self.nics.senders[id as usize];
        let turn = Draw::new(self.config.seed, "request-plane").at(u64::from(flow.key), now.0);
        let plane = in_turn(flow.planes, (turn >> 32) as u32);
        self.request_by(id, plane, route, ask);
    }
    /// The same, in this plane and by this route.
    pub(super) fn request_by(&mut self, id: u32, plane: u32, route: Route, ask: Ask) {
        let flow = &mut self.nics.senders[id as usize];
        flow.sender.on_request();
        let (host, receiver, dst) = (flow.src, flow.receiver, flow.dst);
        let sharing = self.nics.round(host, 0).len() as u32;
        let flow = &self.nics.senders[id as usize];
        let target = flow.congestion.pull_target(flow.sender.backlog(), sharing);
        let header = Header::Request { receiver, target, ask };
        self.counts.totals.requests += 1;
        let port = self.nics.ports.of(host, plane);
        self.send_to_end(port, dst, route, 0, header);
    }
    /// Sends a control packet that is no answer to data.
    fn send_to_end(
        &mut self,
        port: OutPort,
        dst: HostId,
        route: Route,
        sender: u32,
        header: Header,
    ) {
        let (seq, cumulative) = (0, 0);
        let (is_nack, echo, last_hop, defers) = (false, false, false, false);
        let answer = Answer { is_nack, sender, seq, cumulative, echo, last_hop, defers };
        let packet = Packet::answer(dst, route, self.config.packet.ack as u16, answer);
        let packet = packet.with_header(self.put_header(header));
        self.counts.totals.control_packets += 1;
        self.ports.answer(self.now, port, packet, &mut self.agenda);
    }

    /// A sender asks what is there.
    fn requested(
        &mut self,
        (host, port): (OwnHost, OutPort),
        packet: Packet,
        (id, target, ask): (ReceiverId, Option<u32>, Ask),
    ) {
        let flow = &mut self.nics.receivers[id.partition()][id.number()];
        flow.receiver.on_request(if let Ask::Stuck(out) = ask { out } else { 0 });
        let seq = flow.receiver.expected();
        let report = flow.receiver.report(seq, true);
        let ((src, sender), is_done) = (flow.back(), flow.receiver.is_done());
        let header = Header::Report { seq, is_resent: true, report, request: Some(ask) };
        let route = answered_route(self.config.fabric, &packet);
        self.send_to_end(port, src, route, sender, header);
        if !is_done {
            // A pull may have been lost.
            let credit = self.nics.hosts[host].credit.as_ref();
            if let Some(granted) = credit.and_then(|credit| credit.granter.granted(id)) {
                self.send_pull(host, id, granted);
            }
            self.want_credit(host, id, target);
        }
    }

    /// What happened to `packet` on its way, to whoever grants credit at `host`.
    pub(super) fn note_credit(&mut self, host: OwnHost, packet: &Packet) {
        if let Some(credit) = &mut self.nics.hosts[host].credit {
            let is_cut = packet.is(flag::TRIMMED) && !packet.was_cut_at_last_hop();
            credit.granter.note(packet.is(flag::MARKED), is_cut);
        }
    }
    /// Queue pair `id` says how much credit it wants.
    #[inline(always)]
    pub(super) fn want_credit(&mut self, host: OwnHost, id: ReceiverId, target: Option<u32>) {
        if let (Some(target), Some(credit)) = (target, &mut self.nics.hosts[host].credit) {
            credit.granter.want(id, target);
            if !credit.is_busy {
                self.grant(host);
            }
        }
    }
    /// Queue pair `id` has all that it waited for.
    #[inline(always)]
    pub(super) fn end_credit(&mut self, host: OwnHost, id: ReceiverId) {
        if let Some(credit) = &mut self.nics.hosts[host].credit {
            credit.granter.forget(id);
        }
    }
    /// Tells the sender of queue pair `id` what it was granted.
    fn send_pull(&mut self, host: OwnHost, id: ReceiverId, granted: u32) {
        let Some(credit) = &mut self.nics.hosts[host].credit else { return };
        let route = Route::Hashed(credit.pulls % PULL_ENTROPIES);
        credit.pulls = credit.pulls.wrapping_add(1);
        let port = self.nics.ports.of(host, u32::from(credit.pulls) % self.nics.ports.planes);
        let flow = &mut self.nics.receivers[id.partition()][id.number()];
        flow.receiver.on_pull();
        let (src, sender) = flow.back();
        self.send_to_end(port, src, route, sender, Header::Pull(granted));
        self.counts.totals.pulls += 1;
    }
    /// Grants credit to the next in turn; a `Credit` event.
    pub(crate) fn grant(&mut self, host: OwnHost) {
        let Some(credit) = &mut self.nics.hosts[host].credit else { return };
        let Some(pull) = credit.granter.pull(self.now) else {
            credit.is_busy = false;
            return;
        };
        credit.is_busy = true;
        self.send_pull(host, pull.connection, pull.granted);
        let at = self.now + pull.gap.max(Time(1));
        self.agenda.push_at_host(Event::new(at, Class::Credit, host.0), host);
    }
}
