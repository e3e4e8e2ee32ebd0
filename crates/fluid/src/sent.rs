//! When a NIC has sent all of a flow, which may be long before it has crossed its links.
//!
//! What fits into a window leaves at the pace of the NIC, however long it waits at a link behind that. So a flow
//! that is held up there shares its NIC and its other links apart from each other. Of a longer one the last
//! bytes leave when what is left to cross is no more than what its window lets wait in queues. When a
//! flow has left, the NIC is free for others, and what waits for that goes on: the next message of a
//! connection, or the next part on a queue pair.

use crate::agenda::What;
use crate::engine::Engine;
use crate::flows::Flow;
use weft_sim::JobConfig;
use weft_units::Time;

/// What a NIC has to send of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unsent {
    /// It leaves as it crosses its links.
    AsItCrosses,
    /// It leaves on its own.
    Apart(Sending),
    /// All has left.
    Nothing,
}

/// What leaves a NIC of a flow that is held up behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Bytes of the wire as of `since`, and how many of them leave in a picosecond.
    left: f64,
    since: Time,
    rate: f64,
    /// Its number in [`crate::rates::Rates`].
    rates: u32,
    /// The earliest [`What::Sent`] that is on the agenda.
    look: Time,
}

/// Which flows of [`crate::rates::Rates`] are what a NIC sends: this, and the number.
pub(crate) const SENDING: u32 = 1 << 30;

/// A flow is held up behind its NIC if it has less than this share of what the NIC gives it.
pub(crate) const HELD_UP: f64 = 0.95;
/// The last bytes of a flow leave with the others unless at least this share of its window waits in queues.
const LEAST_WAITING: f64 = 0.05;
/// So few bytes are nothing.
const NOTHING: f64 = 1.0;

impl Sending {
    fn left_at(&self, now: Time) -> f64 {
        self.left - self.rate * self.since.until(now).0 as f64
    }
}

impl Engine<'_> {
    /// Whether a flow of one path is to leave its NIC on its own, if it is held up behind that.
    fn may_send_apart(&self, flow: &Flow) -> bool {
        let is_plain = !matches!(&self.config.job, Some(JobConfig { pcie: Some(_), .. }));
        let is_whole = !flow.is_split() && matches!(flow.unsent, Unsent::AsItCrosses);
        let is_seen = self.watch.is_some() || !self.config.failures.is_empty();
        self.queues.are_used() && is_whole && is_plain && !is_seen && !self.spreads
    }

    /// What each subflow of a flow sends at most, as its NIC has it; `None`: all has been sent.
    pub(crate) fn pace(&self, flow: &Flow) -> Option<f64> {
        match flow.unsent {
            Unsent::Apart(sending) if sending.rate > 0.0 => Some(sending.rate),
            // What it has of its NIC may not be known yet.
            Unsent::Apart(_) | Unsent::AsItCrosses => Some(self.fair_of_nic(flow)),
            Unsent::Nothing => None,
        }
    }

    /// Whether a flow that runs is held up behind its NIC, and leaves that all the same.
    pub(crate) fn is_held_up(&self, id: u32) -> bool {
        let flow = &self.flows[id as usize];
        flow.window.size.is_infinite()
            && flow.rate < HELD_UP * self.fair_of_nic(flow)
            && self.may_send_apart(flow)
    }

    /// A flow that is held up leaves its NIC on its own from now on.
    pub(crate) fn send_apart(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        if !flow.is_running || !self.is_held_up(id) {
            return;
        }
        let (left, rates, limit) = (flow.left_at(self.now), flow.rates, flow.window.limit());
        self.rates.remove(rates);
        self.begin_sending(id, left);
        self.share_links(id, limit);
        self.unsettle(self.latest);
    }

    /// A flow waits in queues before it has its share of their links. If it fits into its window it leaves
    /// all the same.
    pub(crate) fn send_while_it_waits(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        let wire = flow.wire as f64;
        if self.may_send_apart(flow) && wire <= self.known_window(flow).0 {
            self.begin_sending(id, wire);
        }
    }

    fn begin_sending(&mut self, id: u32, left: f64) {
        let limit = self.limit(id);
        let flow = &mut self.flows[id as usize];
        let rates = self.rates.add(&flow.forward.as_slice()[..1], limit);
        flow.unsent =
            Unsent::Apart(Sending { left, since: self.now, rate: 0.0, rates, look: Time::MAX });
        self.know(rates, SENDING | id);
        match self.rates.grant(rates) {
            Some(rate) => self.set_sending_rate(id, rate),
            None => self.unsettle(self.latest),
        }
    }

    /// A NIC sends a flow at this rate from now on.
    pub(crate) fn set_sending_rate(&mut self, id: u32, rate: f64) {
        let now = self.now;
        if let Unsent::Apart(sending) = &mut self.flows[id as usize].unsent {
            (sending.left, sending.since, sending.rate) = (sending.left_at(now), now, rate);
            self.look_for_end(id);
        }
    }

    /// What a NIC sends of a flow ends then, unless its rate changes.
    fn look_for_end(&mut self, id: u32) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        let Unsent::Apart(sending) = &mut flow.unsent else { return };
        if sending.rate > 0.0 {
            let before = sending.left_at(now).max(0.0) / sending.rate;
            let at = now.saturating_add(Time(before.ceil() as u64));
            if at < sending.look {
                sending.look = at;
                self.agenda.push(at, What::Sent { flow: id, version: flow.version });
            }
        }
    }

    /// A flow that is longer than its window has another rate: when its last bytes leave may be known.
    pub(crate) fn expect_last_bytes(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        if flow.window.size.is_infinite() || flow.rate <= 0.0 || !self.may_send_apart(flow) {
            return;
        }
        let waiting = flow.rate * self.queues.wait_there(flow);
        if waiting <= LEAST_WAITING * flow.window.size {
            return;
        }
        let before = (flow.left_at(self.now) - waiting).max(0.0) / flow.rate;
        let at = self.now.saturating_add(Time(before.ceil() as u64));
        if at < flow.sent_look {
            let version = flow.version;
            self.flows[id as usize].sent_look = at;
            self.agenda.push(at, What::Sent { flow: id, version });
        }
    }

    /// A NIC may have sent all of a flow.
    pub(crate) fn sent_if_due(&mut self, id: u32, version: u32) {
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        if flow.version != version {
            return;
        }
        let is_sent = match &mut flow.unsent {
            Unsent::Nothing => return,
            Unsent::Apart(sending) => {
                sending.look = Time::MAX;
                sending.left_at(now) <= NOTHING
            }
            Unsent::AsItCrosses => {
                flow.sent_look = Time::MAX;
                let waiting = flow.rate * self.queues.wait_there(flow);
                flow.is_running && flow.left_at(now) <= waiting + NOTHING
            }
        };
        let (src, subflow, rates, limit) =
            (flow.src, flow.subflow, flow.rates, flow.window.limit());
        if !is_sent {
            self.look_for_end(id);
            return self.expect_last_bytes(id);
        }
        if let Unsent::AsItCrosses = flow.unsent {
            flow.unsent = Unsent::Nothing;
            self.rates.remove(rates);
            self.share_links(id, limit);
        } else {
            self.stop_sending(id);
        }
        self.allow(id);
        self.unsettle(self.latest);
        self.sent_all(src, &subflow);
    }

    /// Nothing is left to send of a flow. Returns whether that is news.
    pub(crate) fn stop_sending(&mut self, id: u32) -> bool {
        let flow = &mut self.flows[id as usize];
        match std::mem::replace(&mut flow.unsent, Unsent::Nothing) {
            Unsent::Nothing => return false,
            Unsent::AsItCrosses => {}
            Unsent::Apart(sending) => self.rates.remove(sending.rates),
        }
        true
    }
}
