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

/// How words for events are made, and scratch.
///
/// The port of an event is the one that a packet goes to, or whose transmission has ended. Its rank is
/// what orders the events of a switch at one instant: arrivals by their links, then ends by their
/// ports. A word is port, time, rank and number, or time, rank, port and number, from the highest
/// bits to the lowest.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// Switches' processes, if this can be done at all.
    pub(crate) processes: Range<u16>,
    bits: Bits,
    events: Vec<Event>,
    words: Vec<u64>,
    sorter: Sorter,
}

/// How many bits of a word each part has.
#[derive(Clone, Copy, Debug)]
struct Bits {
    /// The place of a port or link among those of a switch.
    port: u32,
    rank: u32,
    /// The number of an event among those of the window.
    number: u32,
}

/// What a word has.
#[derive(Clone, Copy)]
struct Word {
    port: u32,
    time: Time,
    rank: u32,
    number: u32,
}

impl Bits {
    /// For switches with up to `links` links.
    fn new(links: u16) -> Bits {
        let port = u16::BITS - links.leading_zeros();
        let rank = port + 1;
        // Always 9 bits or more.
        Bits { port, rank, number: u64::BITS - WINDOW_BITS - port - rank }
    }
    #[inline(always)]
    fn by_port(self, word: Word) -> u64 {
        let timed = u64::from(word.port) << WINDOW_BITS | word.time.0;
        (timed << self.rank | u64::from(word.rank)) << self.number | u64::from(word.number)
    }
    #[inline(always)]
    fn by_time(self, word: Word) -> u64 {
        let ranked = word.time.0 << self.rank | u64::from(word.rank);
        (ranked << self.port | u64::from(word.port)) << self.number | u64::from(word.number)
    }
    /// The number in `word`.
    #[inline(always)]
    fn number_of(self, word: u64) -> usize {
        (word & ((1 << self.number) - 1)) as usize
    }
    /// The port in `word`, which is of [`Bits::by_time`].
    #[inline(always)]
    fn port_of(self, word: u64) -> u32 {
        (word >> self.number) as u32 & ((1 << self.port) - 1)
    }
}

/// Fewer events are not worth a look at every port.
const WORTH_PORTS: usize = 6;

impl Bulk {
    /// For switches whose processes these are, with up to `links` links.
    pub(crate) fn new(processes: Range<u16>, links: u16) -> Bulk {
        let (events, words, sorter) = (Vec::new(), Vec::new(), Sorter::default());
        Bulk { processes, bits: Bits::new(links), events, words, sorter }
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
        let are_few = bulk.events.len() >> bulk.bits.number == 0;
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
        let arrivals = arrivals.map(|event| (switches.ingress(event), event.packet()));
        self.ports.are_independent(window, switch, arrivals)
    }

    /// Port by port.
    #[inline(never)]
    fn relay_by_port(&mut self, switch: OwnSwitch, window: &mut Window, bulk: &mut Bulk) {
        let Bulk { bits, events, words, sorter, .. } = bulk;
        let here = self.switches[switch];
        let ports = self.config.fabric.ports_of(here.id);
        self.route_all(here, window, events, words, *bits, |word| bits.by_port(word));
        let (switches, events) = (&self.switches, &events[..]);
        let by_port = bits.rank + bits.number + WINDOW_BITS;
        sorter.deal(words, by_port, ports.count as usize, |port, words| {
            let events = words.iter().map(|word| &events[bits.number_of(*word)]);
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
        let Bulk { bits, events, words, sorter, .. } = bulk;
        let here = self.switches[switch];
        let bits = match are_few {
            true => *bits,
            false => Bits { port: u16::BITS, rank: 0, number: u32::BITS },
        };
        if are_few {
            self.route_all(here, window, events, words, bits, |word| bits.by_time(word));
            let last = window.end.0 - window.start.0 - 1;
            let bits = bits.rank + bits.port + bits.number + u64::BITS - last.leading_zeros();
            sorter.sort(words, bits);
        } else {
            events.sort_unstable_by_key(Event::key);
            let in_order = |word| bits.by_time(Word { time: Time::ZERO, rank: 0, ..word });
            self.route_all(here, window, events, words, bits, in_order);
        }
        let (switches, events) = (&self.switches, &events[..]);
        let events = words.iter().map(|word| {
            let port = PortId(here.first.0 + bits.port_of(*word));
            (&events[bits.number_of(*word)], here.own(port))
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
        bits: Bits,
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
                    (port, 1 << (bits.rank - 1) | port)
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

impl Default for Bulk {
    fn default() -> Bulk {
        Bulk::new(0..0, 0)
    }
}
