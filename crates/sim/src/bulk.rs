//! Switches that handle all events of a window at once.
//!
//! Packets are routed first. Where a switch's ports are independent of each other, it makes no
//! difference which of them is looked at first: only what is for one port needs its order. So events
//! are sorted by port and time, and each port takes its own one after the other. Elsewhere they are
//! sorted by time, and ports keep to themselves what comes of that within the window.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::hops::Switch;
use crate::packet::flag;
use crate::partition::{InLink, OutPort, OwnSwitch};
use crate::ports::{Ports, Window};
use crate::queue::{EventQueue, Sorter, WINDOW_BITS, Whole};
use std::ops::Range;
use weft_fabric::Ways;
use weft_units::{PortId, Time};

/// Which switches do so, and scratch.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    /// Switches' processes, if this can be done at all.
    pub(crate) processes: Range<u16>,
    events: Vec<Event>,
    words: Vec<u64>,
    sorter: Sorter,
}

/// What a word has. In order of time these stand from the highest bits to the lowest; by port, the port comes before the
/// time.
///
/// The port of an event is the one that a packet goes to, or whose transmission has ended. Its rank is
/// what orders the events of a switch at one instant: arrivals by their links, then ends by their
/// ports.
#[derive(Clone, Copy)]
struct Word {
    time: Time,
    rank: u32,
    port: u32,
    /// The number of an event among those of the window.
    number: u32,
}

/// Bits of the place of a port or link among those of a switch.
const PORT: u32 = 13;
const RANK: u32 = PORT + 1;
/// Bits of a number: no shift takes a variable.
const NUMBER: u32 = u64::BITS - WINDOW_BITS - PORT - RANK;
/// The bits below the port in [`Word::by_port`].
const BELOW_PORT: u32 = WINDOW_BITS + RANK + NUMBER;
/// The rank of the end of a transmission, beside its port.
const END: u32 = 1 << PORT;

impl Word {
    #[inline(always)]
    fn by_port(self) -> u64 {
        let timed = u64::from(self.port) << WINDOW_BITS | self.time.0;
        (timed << RANK | u64::from(self.rank)) << NUMBER | u64::from(self.number)
    }
    #[inline(always)]
    fn by_time(self) -> u64 {
        let ranked = self.time.0 << RANK | u64::from(self.rank);
        (ranked << PORT | u64::from(self.port)) << NUMBER | u64::from(self.number)
    }
    /// As [`Word::by_time`] for so many events that their numbers take more bits: what has their order already.
    #[inline(always)]
    fn in_order(self) -> u64 {
        u64::from(self.port) << u32::BITS | u64::from(self.number)
    }
}

/// The number in a word of [`Word::by_port`] or [`Word::by_time`].
#[inline(always)]
fn number_of(word: u64) -> usize {
    (word & ((1 << NUMBER) - 1)) as usize
}

/// Fewer events are not worth a look at every port.
const WORTH_PORTS: usize = 6;

impl Bulk {
    /// For switches whose processes these are, with up to `links` links: none, if these are too many.
    pub(crate) fn new(processes: Range<u16>, links: u16) -> Bulk {
        let processes = if links >> PORT == 0 { processes } else { 0..0 };
        Bulk { processes, ..Bulk::default() }
    }
    /// The switch that is `process`.
    fn switch(&self, process: u16) -> OwnSwitch {
        OwnSwitch(u32::from(process - self.processes.start))
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Whether switches may handle all events of a window at once.
    pub(crate) fn may_relay_in_bulk(&self) -> bool {
        self.ports.take_windows() && self.switches.are_plain() && self.switches.links_are_plain()
    }

    /// Handles what a window has for a switch, if that is why the agenda had no event.
    pub(crate) fn relay_whole(&mut self) -> bool {
        let Some(whole) = self.agenda.take_whole(&mut self.bulk.events) else { return false };
        let mut bulk = std::mem::take(&mut self.bulk);
        let Whole { process, start, end } = whole;
        let (switch, mut window) = (bulk.switch(process), Window::new(start, end));
        let are_few = bulk.events.len() >> NUMBER == 0;
        let by_port = are_few && bulk.events.len() >= WORTH_PORTS;
        match by_port && self.goes_by_port(switch, &window, &bulk.events) {
            true => self.relay_by_port(switch, &mut window, &mut bulk),
            false => self.relay_by_time(switch, &mut window, &mut bulk, are_few),
        }
        self.latest = self.latest.max(window.latest);
        self.counts.totals.events += window.events;
        self.bulk = bulk;
        true
    }

    /// Whether `events` can be sorted by port. If so their switch has taken them in.
    fn goes_by_port(&mut self, switch: OwnSwitch, window: &Window, events: &[Event]) -> bool {
        let switches = &self.switches;
        let arrivals = events.iter().filter(|event| is_arrival::<P>(event));
        let arrivals = arrivals.map(|event| (switches.ingress(event), event));
        self.ports.are_independent(window, switch, arrivals)
    }

    /// Port by port.
    #[inline(never)]
    fn relay_by_port(&mut self, switch: OwnSwitch, window: &mut Window, bulk: &mut Bulk) {
        let Bulk { events, words, sorter, .. } = bulk;
        let here = self.switches[switch];
        let ports = self.config.fabric.ports_of(here.id);
        self.route_all(here, window, events, words, Word::by_port);
        let (switches, events) = (&self.switches, &events[..]);
        sorter.deal(words, BELOW_PORT, ports.count as usize, |port, words| {
            let events = words.iter().map(|word| &events[number_of(*word)]);
            if self.counts.are_audited() {
                events.clone().for_each(|event| self.counts.relay(event));
            }
            let port = here.own(PortId(ports.first.0 + port as u32));
            let ingress = |event: &Event| switches.ingress(event);
            self.ports.relay(port, events, ingress, window, &mut self.agenda);
        });
    }

    /// One after the other; `are_few`: all have a number in a word.
    #[inline(never)]
    fn relay_by_time(
        &mut self,
        switch: OwnSwitch,
        window: &mut Window,
        bulk: &mut Bulk,
        are_few: bool,
    ) {
        let Bulk { events, words, sorter, .. } = bulk;
        let here = self.switches[switch];
        let number = if are_few { NUMBER } else { u32::BITS };
        if are_few {
            self.route_all(here, window, events, words, Word::by_time);
            let last = window.end.0 - window.start.0 - 1;
            sorter.sort(words, RANK + PORT + NUMBER + u64::BITS - last.leading_zeros());
        } else {
            events.sort_unstable_by_key(Event::key);
            self.route_all(here, window, events, words, Word::in_order);
        }
        let (switches, events) = (&self.switches, &events[..]);
        let events = words.iter().map(|word| {
            let place = (word >> number) as u32 & ((1 << PORT) - 1);
            let event = &events[(word & ((1 << number) - 1)) as usize];
            (event, here.own(PortId(here.first.0 + place)))
        });
        if self.counts.are_audited() {
            events.clone().for_each(|(event, _)| self.counts.relay(event));
        }
        let ingress = |event: &Event| switches.ingress(event);
        let ports = self.config.fabric.ports_of(here.id);
        let ports = (here.own(ports.first), ports.count);
        self.ports.relay_in_order(ports, events, ingress, window, &mut self.agenda);
    }

    /// Routes the packets among `events`, and makes a word of each event.
    #[inline(always)]
    fn route_all(
        &self,
        here: Switch,
        window: &mut Window,
        events: &mut [Event],
        words: &mut Vec<u64>,
        make: impl Fn(Word) -> u64,
    ) {
        let ways = self.config.fabric.ways_from(here.id);
        let (switches, processes) = (&self.switches, self.agenda.processes());
        let mut latest = Time::ZERO;
        words.clear();
        words.extend((0..).zip(events.iter_mut()).map(|(number, event)| {
            latest = latest.max(event.time);
            let id = event.target().id();
            let (port, rank) = match is_arrival::<P>(event) {
                true => {
                    let port = match P::KEEP && event.packet().is(flag::PFC) {
                        true => here.place(switches.ingress(event)),
                        false => route(here, &ways, event).0 - here.first.0,
                    };
                    (port, u32::from(processes.place_of(InLink(id))))
                }
                false => {
                    let port = here.place(OutPort(id));
                    (port, END | port)
                }
            };
            make(Word { port, time: event.time - window.start, rank, number })
        }));
        window.latest = latest;
        window.events = events.len() as u64;
    }
}

/// Whether `event`, of a switch, is the arrival of a packet: always, where ports keep none.
#[inline(always)]
fn is_arrival<P: Ports>(event: &Event) -> bool {
    !P::KEEP || event.target().is(Class::Arrive)
}

/// The port where a packet that has come to `here` goes.
#[inline(always)]
fn route(here: Switch, ways: &Ways, event: &mut Event) -> PortId {
    let mut packet = event.packet();
    let group = ways.next_hops(packet.dst());
    if !packet.is(flag::PINNED) {
        return here.hashed(packet.hash_fields(), group);
    }
    let port = group.pinned(packet.swap_path());
    event.put(packet);
    port
}
