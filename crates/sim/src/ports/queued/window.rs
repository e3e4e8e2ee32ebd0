//! What comes of what a port with a queue does: events, or, where a switch takes in a window at once,
//! something that it keeps for itself until then.

use super::QueuePorts;
use super::list::Entry;
use crate::agenda::Agenda;
use crate::event::{Class, Event};
use crate::packet::{Packet, flag};
use crate::partition::{Exit, OutPort, OwnSwitch};
use crate::ports::interface::Window;
use crate::queue::{EventQueue, Row};
use weft_units::Time;

/// Takes what is to come of what a port does.
pub(super) trait Outlet {
    /// Whether the memory of the switch has taken in all that comes in this window.
    const TAKEN: bool = false;
    /// As [`Agenda::arrive`].
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet);
    /// As [`Agenda::push_at_nic`].
    fn push_at_nic(&mut self, event: Event, port: OutPort);
    /// As [`Agenda::push_at_switch`].
    fn push_at_switch(&mut self, event: Event, switch: OwnSwitch);
}

impl<Q: EventQueue> Outlet for Agenda<Q> {
    #[inline(always)]
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet) {
        Agenda::arrive(self, time, exit, packet);
    }
    #[inline(always)]
    fn push_at_nic(&mut self, event: Event, port: OutPort) {
        Agenda::push_at_nic(self, event, port);
    }
    #[inline(always)]
    fn push_at_switch(&mut self, event: Event, switch: OwnSwitch) {
        Agenda::push_at_switch(self, event, switch);
    }
}

/// Of one port of a switch, in a window in which it depends on no other: it is asked itself when its
/// transmissions end.
pub(super) struct OfPort<'a, Q> {
    pub(super) agenda: &'a mut Agenda<Q>,
    pub(super) row: Row,
}

impl<Q: EventQueue> Outlet for OfPort<'_, Q> {
    const TAKEN: bool = true;

    #[inline(always)]
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet) {
        let event = Event::arrival(time, exit.link, packet);
        self.agenda.arrive_in_row(&mut self.row, exit, event);
    }
    fn push_at_nic(&mut self, _: Event, port: OutPort) {
        unreachable!("{port:?} is no switch's");
    }
    #[inline(always)]
    fn push_at_switch(&mut self, _: Event, _: OwnSwitch) {}
}

/// Of all ports of a switch, in a window.
pub(super) struct OfSwitch<'a, Q> {
    pub(super) agenda: &'a mut Agenda<Q>,
    pub(super) ends: Ends,
}

impl<Q: EventQueue> Outlet for OfSwitch<'_, Q> {
    #[inline(always)]
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet) {
        self.agenda.arrive(time, exit, packet);
    }
    fn push_at_nic(&mut self, _: Event, port: OutPort) {
        unreachable!("{port:?} is no switch's");
    }
    #[inline(always)]
    fn push_at_switch(&mut self, event: Event, switch: OwnSwitch) {
        match event.time < self.ends.window.end {
            true => self.ends.push(&event),
            false => self.agenda.push_at_switch(event, switch),
        }
    }
}

/// The transmissions of a switch's ports that end in a window.
#[derive(Debug, Default)]
pub(super) struct Ends {
    window: Window,
    /// The first port of the switch.
    port: OutPort,
    /// By port, [`Window::key`] or [`NEVER`]; in rows, beside the smallest key of each.
    rows: Vec<[u64; ROW]>,
    least: Vec<u64>,
    /// Of transmissions whose ports have gone on at the same instant: hardly ever any.
    more: Vec<u64>,
    /// The smallest key of all, or [`NEVER`].
    first: u64,
}

const NEVER: u64 = u64::MAX;
const ROW: usize = 8;

impl Ends {
    /// None yet, of a switch's ports from `port` on, in `window`.
    pub(super) fn start(&mut self, window: &Window, port: OutPort, ports: u32) {
        (self.window, self.port, self.first) = (*window, port, NEVER);
        let rows = (ports as usize).div_ceil(ROW);
        if self.rows.len() != rows {
            // All are taken when a window is over.
            self.rows.resize(rows, [NEVER; ROW]);
            self.least.resize(rows, NEVER);
        }
    }
    #[inline(always)]
    fn push(&mut self, end: &Event) {
        let key = self.window.key(end);
        let place = (end.target().id() - self.port.0) as usize;
        let slot = &mut self.rows[place / ROW][place % ROW];
        match *slot {
            NEVER => *slot = key,
            _ => self.more.push(key),
        }
        let least = &mut self.least[place / ROW];
        *least = key.min(*least);
        self.first = key.min(self.first);
    }
    /// Takes the first end, if its key is below `key`: its time and port.
    #[inline(always)]
    pub(super) fn pop_before(&mut self, key: u64) -> Option<(Time, OutPort)> {
        let end = self.first;
        if end >= key {
            return None;
        }
        let (time, target) = self.window.of_key(end);
        let port = OutPort(target.id());
        let place = (port.0 - self.port.0) as usize;
        let row = &mut self.rows[place / ROW];
        match row[place % ROW] == end {
            true => row[place % ROW] = NEVER,
            false => self.more.retain(|other| *other != end),
        }
        self.least[place / ROW] = row.iter().fold(NEVER, |least, key| least.min(*key));
        let least = |keys: &[u64]| keys.iter().fold(NEVER, |least, key| least.min(*key));
        self.first = least(&self.least);
        if !self.more.is_empty() {
            self.first = self.first.min(least(&self.more));
        }
        Some((time, port))
    }
}

impl QueuePorts {
    /// As [`Ports::relay`](crate::ports::Ports::relay).
    #[inline(always)]
    pub(super) fn relay_at_port<'e, Q: EventQueue>(
        &mut self,
        port: OutPort,
        events: impl Iterator<Item = &'e Event>,
        ingress: impl Fn(&Event) -> OutPort,
        window: &mut Window,
        agenda: &mut Agenda<Q>,
    ) {
        let queue = &self.ports[port];
        let is_later = queue.told && queue.busy_until >= window.end;
        let mut out = OfPort { agenda, row: Row::default() };
        for event in events {
            if event.target().is(Class::Arrive) {
                if !self.joins(event, port, &ingress) {
                    self.go_on(event.time, port, window, &mut out);
                    self.arrive(event, port, &ingress, &mut out);
                }
            } else {
                // Counted when it comes to that.
                window.events -= 1;
            }
        }
        self.go_on(window.end, port, window, &mut out);
        let queue = &self.ports[port];
        if queue.told && !is_later {
            let end = Event::new(queue.busy_until, Class::Transmitted, port.0);
            agenda.push_at_switch(end, OwnSwitch(queue.switch));
        }
    }

    /// As [`Ports::relay_in_order`](crate::ports::Ports::relay_in_order).
    #[inline(always)]
    pub(super) fn relay_at_switch<'e, Q: EventQueue>(
        &mut self,
        ports: (OutPort, u32),
        events: impl Iterator<Item = (&'e Event, OutPort)>,
        ingress: impl Fn(&Event) -> OutPort,
        window: &mut Window,
        agenda: &mut Agenda<Q>,
    ) {
        let mut out = OfSwitch { agenda, ends: std::mem::take(&mut self.ends) };
        out.ends.start(window, ports.0, ports.1);
        for (event, port) in events {
            while let Some((at, port)) = out.ends.pop_before(window.key(event)) {
                window.count(at);
                self.ended(at, port, &mut out);
            }
            if event.target().is(Class::Arrive) {
                self.arrive(event, port, &ingress, &mut out);
            } else {
                self.ended(event.time, port, &mut out);
            }
        }
        while let Some((at, port)) = out.ends.pop_before(u64::MAX) {
            window.count(at);
            self.ended(at, port, &mut out);
        }
        self.ends = out.ends;
    }

    /// Puts what waits at `port` on the wire, one after the other, until `time`; the port depends on
    /// no other.
    #[inline(always)]
    fn go_on<O: Outlet>(&mut self, time: Time, port: OutPort, window: &mut Window, out: &mut O) {
        let queue = &self.ports[port];
        if self.knows_departures && queue.is_in_order() {
            return match self.accounts {
                false => self.drain::<false, O>(time, port, window, out),
                true => self.drain::<true, O>(time, port, window, out),
            };
        }
        loop {
            let queue = &self.ports[port];
            let at = queue.busy_until;
            if !queue.told || at >= time {
                return;
            }
            window.count(at);
            self.ended(at, port, out);
        }
    }

    /// The same, where all leaves in the order in which it has come, and nothing holds it back; `ACCOUNTS`: packets are
    /// in the memory of the switch.
    #[inline(always)]
    fn drain<const ACCOUNTS: bool, O: Outlet>(
        &mut self,
        time: Time,
        port: OutPort,
        window: &mut Window,
        out: &mut O,
    ) {
        let mut queue = &mut self.ports[port];
        while queue.told && queue.busy_until < time {
            let at = queue.busy_until;
            window.count(at);
            queue.told = false;
            let switch = OwnSwitch(queue.switch);
            if ACCOUNTS && queue.service_size > 0 {
                let (size, ingress) = (queue.service_size, queue.service_ingress);
                queue.service_size = 0;
                self.release(switch, ingress, size);
                queue = &mut self.ports[port];
            }
            if let Some(entry) = self.waiting.pop(&mut queue.data) {
                let size = queue.line.wire.time(u32::from(entry.packet().size));
                queue.waiting -= size;
                let shared = if ACCOUNTS { Some(&mut self.switches[switch]) } else { None };
                queue.serve(at, port, (entry, size), shared, out);
            }
        }
    }

    /// A packet comes for `port`, which depends on no other, and joins the end of its queue, if that is all that can
    /// become of it: then it makes no difference which of those before it have left already.
    #[inline(always)]
    fn joins(&mut self, event: &Event, port: OutPort, ingress: impl Fn(&Event) -> OutPort) -> bool {
        let (now, mut packet) = (event.time, event.packet());
        let queue = &self.ports[port];
        let in_order = queue.is_in_order() && !packet.is(self.ahead | flag::PFC);
        let (backlog, size) = (now.until(queue.busy_until + queue.waiting), packet.size);
        if !(self.knows_departures && in_order && queue.told && backlog > Time::ZERO) {
            return false;
        }
        let limits = &self.limits[usize::from(queue.limits)];
        let time = queue.line.wire.time(u32::from(size));
        if !limits.fits(backlog, time) {
            return false;
        }
        self.mark_behind(backlog, port, &mut packet);
        let queue = &mut self.ports[port];
        queue.count(size, backlog + time);
        queue.waiting += time;
        self.waiting.push(&mut queue.data, Entry::new(packet, ingress(event)));
        true
    }

    /// A packet comes for `port` of a switch, or a PFC frame.
    #[inline(always)]
    fn arrive<O: Outlet>(
        &mut self,
        event: &Event,
        port: OutPort,
        ingress: impl Fn(&Event) -> OutPort,
        out: &mut O,
    ) {
        let (now, packet) = (event.time, event.packet());
        if packet.is(flag::PFC) {
            self.hold(now, port, packet.pauses(), out);
        } else {
            self.take(now, port, ingress(event), packet, out);
        }
    }
}
