//! What comes of what a port with a queue does: events, or, where a switch takes in a window at once,
//! something that it keeps for itself until then.

use crate::agenda::Agenda;
use crate::event::Event;
use crate::packet::Packet;
use crate::partition::{Exit, OutPort, OwnHost, OwnSwitch};
use crate::ports::interface::Window;
use crate::queue::{EventQueue, Row};
use weft_units::Time;

/// Takes what is to come of what a port does.
pub(super) trait Outlet {
    /// As [`Agenda::arrive`].
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet);
    /// As [`Agenda::push_at_host`].
    fn push_at_host(&mut self, event: Event, host: OwnHost);
    /// As [`Agenda::push_at_switch`].
    fn push_at_switch(&mut self, event: Event, switch: OwnSwitch);
}

impl<Q: EventQueue> Outlet for Agenda<Q> {
    #[inline(always)]
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet) {
        Agenda::arrive(self, time, exit, packet);
    }
    #[inline(always)]
    fn push_at_host(&mut self, event: Event, host: OwnHost) {
        Agenda::push_at_host(self, event, host);
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
    #[inline(always)]
    fn arrive(&mut self, time: Time, exit: Exit, packet: Packet) {
        let event = Event::arrival(time, exit.link, packet);
        self.agenda.arrive_in_row(&mut self.row, exit, event);
    }
    fn push_at_host(&mut self, _: Event, host: OwnHost) {
        unreachable!("{host:?} is no switch");
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
    fn push_at_host(&mut self, _: Event, host: OwnHost) {
        unreachable!("{host:?} is no switch");
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
    /// By port, [`Window::key`] or [`NEVER`]; some more, so that all are looked at in [`ROW`]s.
    keys: Vec<u64>,
    /// The smallest.
    first: u64,
    /// Of transmissions whose ports have gone on at the same instant: hardly ever any.
    more: Vec<u64>,
}

const NEVER: u64 = u64::MAX;
const ROW: usize = 8;

impl Ends {
    /// None yet, of the ports of a switch from `port` on, in `window`.
    pub(super) fn start(&mut self, window: &Window, port: OutPort, ports: u32) {
        (self.window, self.port, self.first) = (*window, port, NEVER);
        self.keys.clear();
        self.keys.resize((ports as usize).next_multiple_of(ROW), NEVER);
    }
    #[inline(always)]
    fn push(&mut self, end: &Event) {
        let key = self.window.key(end);
        let place = &mut self.keys[(end.target().id() - self.port.0) as usize];
        match *place {
            NEVER => *place = key,
            _ => self.more.push(key),
        }
        self.first = self.first.min(key);
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
        let place = &mut self.keys[(port.0 - self.port.0) as usize];
        match *place == end {
            true => *place = NEVER,
            false => self.more.retain(|other| *other != end),
        }
        let (rows, _) = self.keys.as_chunks::<ROW>();
        let mut least = rows[0];
        for row in &rows[1..] {
            (0..ROW).for_each(|at| least[at] = least[at].min(row[at]));
        }
        let first = least.into_iter().fold(NEVER, u64::min);
        self.first = self.more.iter().fold(first, |first, other| first.min(*other));
        Some((time, port))
    }
}
