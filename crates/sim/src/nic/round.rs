//! The round of a NIC: whose turn it is, and what leaves.

use super::flow::{Stage, stretched};
use super::planes::Plane;
use crate::config::{Pacing, Service};
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::packet::{Data, Packet};
use crate::partition::OwnHost;
use crate::ports::{Ports, Ready};
use crate::queue::EventQueue;
use weft_balance::steer::Departure;
use weft_units::{Draw, Time, random};

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Puts a new queue pair into its NIC's round: where its turn is, or anywhere if so configured.
    pub(super) fn enter_round(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        (flow.waiting, flow.stage) = (false, Stage::Started);
        flow.due = self.now;
        let host = flow.src;
        if self.config.service != Service::OldestFirst && self.config.balance.random_position {
            flow.queued = flow.planes;
            let planes = flow.planes;
            for plane in (0..self.planes()).filter(|plane| planes >> plane & 1 == 1) {
                let most = self.nics.round(host, plane).len() as u32 + 1;
                let at = self.nics.hosts[host].positions.below(most) as usize;
                self.nics.round(host, plane).insert(at, id);
            }
            return;
        }
        self.line_up(host, id);
    }

    /// Puts queue pair `id`, which can send, into the round of its NIC.
    #[inline(always)]
    fn line_up(&mut self, host: OwnHost, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        if flow.hooks.is_planed() {
            return self.line_up_in_planes(host, id);
        }
        flow.queued = 1;
        self.line_up_in_plane(host, id, 0);
    }

    #[inline(never)]
    fn line_up_in_planes(&mut self, host: OwnHost, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        let mut missing = flow.planes & !flow.queued;
        flow.queued |= missing;
        while missing != 0 {
            self.line_up_in_plane(host, id, missing.trailing_zeros());
            missing &= missing - 1;
        }
    }

    #[inline(always)]
    pub(crate) fn line_up_in_plane(&mut self, host: OwnHost, id: u32, plane: u32) {
        match self.config.service {
            Service::RoundRobin | Service::InOrder => {
                self.nics.round(host, plane).push(id);
            }
            Service::OldestFirst => self.line_up_by_age(host, id, plane),
        }
    }

    #[cold]
    fn line_up_by_age(&mut self, host: OwnHost, id: u32, plane: u32) {
        let births = std::mem::take(&mut self.nics.opening_order);
        let mut round = std::mem::take(self.nics.round(host, plane));
        let age = |id: u32| match births.get(id as usize) {
            Some(birth) => *birth,
            None => self.age_of_operation(id),
        };
        round.insert_after(|other| age(other) < age(id), id);
        *self.nics.round(host, plane) = round;
        self.nics.opening_order = births;
    }

    /// Lets the NIC look for work once everything that happens now has been posted.
    pub(crate) fn wake_later(&mut self, host: OwnHost) {
        let state = &mut self.nics.hosts[host];
        if !state.waking {
            state.waking = true;
            self.agenda.push_at_host(Event::new(self.now, Class::Wake, host.0), host);
        }
    }

    pub(crate) fn wake(&mut self, host: OwnHost) {
        self.pull(host);
        self.nics.hosts[host].waking = false;
        // What the packet that has just left made way for asked for no second look at this instant.
        self.pull(host);
    }

    /// A `Start` event: the queue pair begins, or its pacing gap is over.
    pub(crate) fn start_flow(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        let host = flow.src;
        if flow.stage == Stage::New {
            self.enter_round(id);
            return self.wake_later(host);
        }
        flow.waiting = false;
        self.rejoin(id);
        self.retire_if_over(id);
        self.pull(host);
    }

    /// Brings a queue pair back into the round if it can send.
    #[inline(always)]
    pub(super) fn rejoin(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        if flow.may_join() && flow.may_send() {
            if flow.congestion.is_paced() {
                // What it could not send while it had nothing to send is not made up for.
                flow.due = flow.due.max(self.now);
            }
            let host = flow.src;
            self.line_up(host, id);
        }
    }

    /// If the port of the NIC of `host` in `plane` is free, sends the next packet in turn. Whether it will ask for data.
    /// `PLANED`: the NIC has several ports.
    #[inline(always)]
    pub(super) fn pull_in_plane<const PLANED: bool>(&mut self, host: OwnHost, plane: u32) -> bool {
        let nic = self.nics.ports.of(host, plane);
        loop {
            let round = self.nics.round(host, plane);
            if round.is_empty() {
                return false;
            }
            if self.ports.ready(self.now, nic, &mut self.agenda) == Ready::Told {
                return true;
            }
            let id = round.pop().expect("not empty");
            let Some(flow) = self.nics.senders.get_mut(id as usize) else {
                // No queue pair: an operation of switches.
                match self.pull_operation(host, id, plane) {
                    true => return false,
                    false => continue,
                }
            };
            flow.queued &= !(1 << plane);
            let is_open = |known: &[Plane]| {
                let known = &known[self.nics.ports.index(id, plane)];
                flow.takes(plane) && !known.is_barred(self.now)
            };
            if flow.may_send() && (!PLANED || is_open(&self.nics.planes)) {
                if self.nics.has_slots && !self.may_leave_gpu(id) {
                    continue;
                }
                return self.send_data::<PLANED>(host, id, plane);
            }
            if flow.is_done() {
                self.retire_if_over(id);
            }
        }
    }

    /// Puts the next packet of queue pair `id` on the wire in `plane`. Whether the port will ask for another one.
    #[inline(always)]
    fn send_data<const PLANED: bool>(&mut self, host: OwnHost, id: u32, plane: u32) -> bool {
        let flow = &mut self.nics.senders[id as usize];
        flow.note_sent();
        let in_flight = flow.sender.in_flight();
        let sent = flow.sender.send(self.now);
        let is_last = flow.hooks.is_awaited() && flow.is_last(&sent);
        let route = if PLANED {
            let at = Departure { now: self.now, in_flight };
            self.nics.several[host].last = plane as u8;
            let place = self.nics.ports.index(id, plane);
            self.nics.planes[place].route(flow, plane, sent.seq, at)
        } else if flow.hooks.is_plain() {
            flow.route
        } else {
            flow.leave(self.now, sent.seq, in_flight)
        };
        let size = flow.payload(sent.seq, self.config.packet.mtu) + self.config.packet.header;
        let (receiver, key) = (flow.receiver, flow.key);
        flow.congestion.on_send(self.now, size);
        let is_reported = flow.hooks.is_reported();
        let asks = is_reported && flow.asks(&sent, size, &self.config.transport.recovery);
        if is_reported {
            flow.hooks.note_asked(asks);
        }
        let data = Data { receiver, seq: sent.seq, key, is_resent: sent.retransmission, asks };
        let mut packet = Packet::data(flow.dst, route, size as u16, data);
        if let Some(gap) = flow.congestion.pacing(size) {
            self.wait_for_gap(host, id, gap);
        } else if flow.may_send() {
            flow.queued |= 1 << plane;
            let is_missing = PLANED && flow.may_join();
            self.line_up_in_plane(host, id, plane);
            if is_missing {
                self.line_up(host, id);
            }
        }
        self.counts.totals.packets += 1;
        if sent.retransmission {
            self.counts.totals.retransmits += 1;
            let message = self.nics.senders[id as usize].message;
            self.messages.add_retransmit(message);
        }
        self.arm_timer(id);
        if is_reported && let Some(place) = self.ask_for_credit(host, id, sent.seq) {
            packet = packet.with_header(place);
        }
        let next = self.nics.round(host, plane).next();
        let more = next.is_some();
        if let Some(next) = next.and_then(|next| self.nics.senders.get(next as usize)) {
            next.prefetch(self.nics.need_all);
        }
        let nic = self.nics.ports.of(host, plane);
        self.ports.send(self.now, nic, packet, more, &mut self.agenda);
        if is_last {
            self.all_left(id);
        }
        more
    }

    /// Holds queue pair `id` back until its next packet is due. Packets are due at a steady
    /// beat, even if the NIC, busy with others, sends some of them late; unless congestion control
    /// counts from when they have left.
    #[inline(always)]
    fn wait_for_gap(&mut self, host: OwnHost, id: u32, gap: Time) {
        let gap = self.gap_after(id, gap);
        let flow = &mut self.nics.senders[id as usize];
        if !flow.congestion.paces_absolutely() {
            flow.due = self.now;
        }
        flow.due += gap;
        if flow.due > self.now {
            flow.waiting = true;
            self.agenda.push_at_host(Event::new(flow.due, Class::Start, id), host);
        } else if flow.may_send() {
            self.line_up(host, id);
        }
    }

    /// The gap after the packet that queue pair `id` sends now, where `gap` is the usual one.
    /// Draws only where there is something to draw.
    #[inline]
    fn gap_after(&mut self, id: u32, gap: Time) -> Time {
        let Pacing { gap_jitter, desynchronise, .. } = self.config.pacing;
        let flow = &mut self.nics.senders[id as usize];
        let (seed, key) = (self.config.seed, u64::from(flow.key));
        let draw = |purpose| random::unit(Draw::new(seed, purpose).at(key, self.now.0));
        let mut gap = gap;
        if gap_jitter > 0.0 {
            gap += stretched(gap, gap_jitter * draw("pacing-gap"));
        }
        if desynchronise && flow.nacked {
            gap = stretched(gap, 0.5 + draw("pacing-shaken"));
        }
        flow.nacked = false;
        gap
    }

    #[inline(always)]
    fn arm_timer(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        if !flow.timed {
            flow.timed = true;
            let rto = self.nics.chunks.time_out(id, self.config.transport.rto);
            let at = self.now.saturating_add(flow.sender.longest_sleep(rto));
            let host = flow.src;
            self.nics.chunks.arm(id, at);
            self.agenda.push_at_host(Event::new(at, Class::Timer, id), host);
        }
    }
}
