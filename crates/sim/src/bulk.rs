//! Switches that handle all packets of a window at once, port by port.
//!
//! Where a switch's ports are independent of each other, it makes no difference which of them is
//! looked at first: only the packets for one port need their order. So all packets of a window are
//! routed first, then sorted by port and time, and each port takes its own one after the other.

use crate::engine::Engine;
use crate::event::Event;
use crate::packet::flag;
use crate::partition::{InLink, OwnSwitch};
use crate::ports::Ports;
use crate::queue::{EventQueue, Sorter, WINDOW_BITS, Whole};
use std::ops::Range;
use weft_units::{PortId, Time};

/// How words for packets are made, and scratch.
///
/// A word is the packet's port, its time, the place of its link and its own place, from the highest
/// bits to the lowest.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// Switches' processes, if this can be done at all.
    pub(crate) processes: Range<u16>,
    /// Bits for a port or link of a switch.
    link: u32,
    /// Bits for a place among the packets.
    place: u32,
    events: Vec<Event>,
    words: Vec<u64>,
    sorter: Sorter,
}

impl Bulk {
    /// For switches whose processes these are, with up to `links` links.
    pub(crate) fn new(processes: Range<u16>, links: u16) -> Bulk {
        let link = u16::BITS - links.leading_zeros();
        // Always 10 bits or more.
        let place = 64 - WINDOW_BITS - 2 * link;
        let (events, words) = (Vec::new(), Vec::new());
        Bulk { processes, link, place, events, words, sorter: Sorter::default() }
    }
    /// The switch that is `process`.
    fn switch(&self, process: u16) -> OwnSwitch {
        OwnSwitch(u32::from(process - self.processes.start))
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Whether switches may handle the packets of a window port by port.
    pub(crate) fn may_relay_in_bulk(&self) -> bool {
        self.ports.can_be_independent()
            && self.switches.are_plain()
            && self.switches.links_are_plain()
    }

    /// Handles what a window has for a switch, if that is why the agenda had no event.
    pub(crate) fn relay_whole(&mut self) -> bool {
        let Some(whole) = self.agenda.take_whole(&mut self.bulk.events) else { return false };
        let mut bulk = std::mem::take(&mut self.bulk);
        self.counts.totals.events += bulk.events.len() as u64;
        match self.goes_by_port(whole, &bulk) {
            true => self.relay_by_port(whole, &mut bulk),
            false => self.relay_by_time(&mut bulk.events),
        }
        self.bulk = bulk;
        true
    }

    /// Whether the packets of `bulk` can be sorted by port. If so their switch has taken them in.
    fn goes_by_port(&mut self, Whole { process, start }: Whole, bulk: &Bulk) -> bool {
        let (switch, switches) = (bulk.switch(process), &self.switches);
        let ingress = |event: &Event| switches.link(InLink(event.target().id())).reverse;
        let arrivals = bulk.events.iter().map(|event| (ingress(event), event.packet().size));
        bulk.events.len() >> bulk.place == 0
            && switches.are_plain()
            && self.ports.are_independent(start, switch, arrivals)
    }

    /// One after the other.
    #[cold]
    fn relay_by_time(&mut self, events: &mut [Event]) {
        events.sort_unstable_by_key(Event::key);
        for event in events {
            self.now = event.time;
            self.latest = self.latest.max(event.time);
            self.arrive(InLink(event.target().id()), event.packet());
        }
    }

    #[inline(never)]
    fn relay_by_port(&mut self, Whole { process, start }: Whole, bulk: &mut Bulk) {
        let here = self.switches[bulk.switch(process)];
        let ports = self.config.fabric.ports_of(here.id);
        let ways = self.config.fabric.ways_from(here.id);
        let Bulk { link, place, events, words, sorter, .. } = bulk;
        let (by_time, by_port) = (*link + *place, WINDOW_BITS + *link + *place);
        let mut latest = Time::ZERO;
        words.clear();
        let processes = self.agenda.processes();
        words.extend((0..).zip(events.iter_mut()).map(|(number, event)| {
            let link = InLink(event.target().id());
            let mut packet = event.packet();
            let group = ways.next_hops(packet.dst());
            let port = match packet.is(flag::PINNED) {
                true => {
                    let port = group.pinned(packet.swap_path());
                    event.put(packet);
                    port
                }
                false => here.hashed(packet.hash_fields(), group),
            };
            latest = latest.max(event.time);
            let port = u64::from(port.0 - ports.first.0) << by_port;
            let time = (event.time - start).0 << by_time;
            let link = u64::from(processes.place_of(link)) << *place;
            port | time | link | number
        }));
        self.latest = self.latest.max(latest);
        let switches = &self.switches;
        let (number, events) = ((1 << *place) - 1, &events[..]);
        sorter.deal(words, by_port, ports.count as usize, |port, words| {
            let arrivals = words.iter().map(|word| &events[(word & number) as usize]);
            if self.counts.are_audited() {
                arrivals.clone().for_each(|event| {
                    self.counts.arrive(InLink(event.target().id()), event.packet());
                });
            }
            let port = here.own(PortId(ports.first.0 + port as u32));
            let ingress = |event: &Event| switches.link(InLink(event.target().id())).reverse;
            self.ports.relay(port, arrivals, ingress, &mut self.agenda);
        });
    }
}

impl Default for Bulk {
    fn default() -> Bulk {
        Bulk::new(0..0, 0)
    }
}
