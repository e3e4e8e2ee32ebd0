//! What is to come in a partition, and what it sends to others.

use crate::event::{Class, Event};
use crate::headers::{Header, Headers};
use crate::mail::Mail;
use crate::packet::Packet;
use crate::partition::{Exit, InLink, OutPort, OwnHost, OwnSwitch, Partition};
use crate::processes::Processes;
use crate::queue::{EventQueue, Row, Whole};
use crate::tor::{Tagged, Tags};
use std::ops::Range;
use std::sync::Arc;
use weft_units::Time;

/// The events of one partition, and its mail to the others.
#[derive(Debug)]
pub struct Agenda<Q> {
    queue: Q,
    own: u16,
    /// By partition; the own one stays empty.
    outgoing: Vec<Mail>,
    processes: Arc<Processes>,
    /// Of the packets in this partition, if they have any.
    pub(crate) tags: Option<Tags>,
    /// Of the packets in this partition, if they have any.
    pub(crate) headers: Option<Headers>,
}

impl<Q: EventQueue> Agenda<Q> {
    /// For `partition`, which is `own` of `partitions`; for packets that have `tags` or `headers`.
    pub(crate) fn new(
        queue: Q,
        own: u16,
        (partition, partitions): (&Partition, usize),
        (tags, headers): (Option<Tags>, Option<Headers>),
    ) -> Agenda<Q> {
        let outgoing = (0..partitions).map(|_| Mail::default()).collect();
        let processes = Arc::clone(&partition.processes);
        Agenda { queue, own, outgoing, processes, tags, headers }
    }
    /// Adds an event of `host` in this partition, not earlier than now.
    #[inline(always)]
    pub fn push_at_host(&mut self, event: Event, host: OwnHost) {
        self.queue.push(event, self.processes.of_host(host));
    }
    /// Adds an event of a NIC's `port` in this partition, not earlier than now.
    #[inline(always)]
    pub fn push_at_nic(&mut self, event: Event, port: OutPort) {
        self.queue.push(event, self.processes.of_nic(port));
    }
    /// Adds an event of `switch`, or of a port of it, in this partition, not earlier than now.
    #[inline(always)]
    pub fn push_at_switch(&mut self, event: Event, switch: OwnSwitch) {
        self.queue.push(event, self.processes.of_switch(switch));
    }
    /// Adds an event that concerns all of this partition, not earlier than now.
    pub(crate) fn push_for_all(&mut self, event: Event) {
        self.queue.push_for_all(event, self.processes.of_all());
    }
    /// `packet` will reach the far end of a link, in whatever partition that is.
    #[inline(always)]
    pub fn arrive(&mut self, time: Time, exit: Exit, mut packet: Packet) {
        if exit.partition != self.own
            && let Some(tags) = &mut self.tags
            && let Some(place) = packet.tag()
        {
            let mail = &mut self.outgoing[usize::from(exit.partition)];
            packet = packet.tagged(mail.add_tag(tags.take(place)));
        }
        if exit.partition != self.own && self.has_header(&packet) {
            packet = packet.with_header(self.mail_header(exit.partition, packet.header()));
        }
        let event = Event::arrival(time, exit.link, packet);
        self.push_at((exit.partition, exit.process), event);
    }
    /// Whether `packet` has an extended header.
    #[inline(always)]
    fn has_header(&self, packet: &Packet) -> bool {
        self.headers.as_ref().is_some_and(|headers| headers.are_on(packet))
    }
    /// Puts an extended header into the mail of `partition`: its place there.
    #[cold]
    fn mail_header(&mut self, partition: u16, place: u32) -> u32 {
        let headers = self.headers.as_mut().expect("it has this one");
        self.outgoing[usize::from(partition)].add_header(headers.take(place))
    }
    /// As [`Agenda::arrive`], for one after the other with the same exit, each no earlier than the one
    /// before it, at the next window or later; packets without tags.
    #[inline(always)]
    pub(crate) fn arrive_in_row(&mut self, row: &mut Row, exit: Exit, event: Event) {
        debug_assert!(self.tags.is_none());
        if exit.partition == self.own {
            self.queue.push_in_row(row, event, exit.process);
        } else {
            let [first, second, third] = event.words();
            self.mail(exit.partition, event.time, first, second, third);
        }
    }
    /// Puts an arrival into the mail of `partition`. On its own, and word by word, so that events of this partition stay
    /// in registers.
    #[inline(never)]
    fn mail(&mut self, partition: u16, time: Time, first: u64, second: u64, third: u64) {
        let mut event = Event::of_words(time, [first, second, third]);
        let packet = event.packet();
        if self.has_header(&packet) {
            event.put(packet.with_header(self.mail_header(partition, packet.header())));
        }
        self.outgoing[usize::from(partition)].push(event);
    }
    /// Adds an event of `process`, which it knows if it is no arrival, in `partition`; if that is
    /// another one, at least the lookahead from now.
    #[inline(always)]
    pub(crate) fn push_at(&mut self, (partition, process): (u16, u16), event: Event) {
        if partition == self.own {
            self.queue.push(event, process);
        } else {
            self.outgoing[usize::from(partition)].push(event);
        }
    }
    /// Adds an event that comes from another partition, with the tags and headers of its mail.
    pub(crate) fn take_in(&mut self, event: Event, mail: &[Tagged], mailed: &[Header]) {
        let (mut packet, target) = (event.packet(), event.target());
        if !target.is(Class::Arrive) {
            return self.queue.push(event, event.process());
        }
        let link = InLink(target.id());
        if let (Some(tags), Some(place)) = (&mut self.tags, packet.tag()) {
            packet = packet.tagged(tags.put(mail[place as usize]));
        }
        if let Some(headers) = &mut self.headers
            && headers.are_on(&packet)
        {
            packet = packet.with_header(headers.put(mailed[packet.header() as usize]));
        }
        let event = Event::arrival(event.time, link, packet);
        self.queue.push(event, self.processes.of_link(link));
    }
    /// The next event before `end`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<Event> {
        self.queue.pop_before(end)
    }
    /// Who is who in this partition.
    pub(crate) fn processes(&self) -> &Arc<Processes> {
        &self.processes
    }
    /// As [`EventQueue::hand_out_whole`].
    pub(crate) fn hand_out_whole(&mut self, processes: Range<u16>) {
        self.queue.hand_out_whole(processes);
    }
    /// As [`EventQueue::take_whole`].
    #[inline(always)]
    pub(crate) fn take_whole(&mut self, events: &mut Vec<Event>) -> Option<Whole> {
        self.queue.take_whole(events)
    }
    /// As [`EventQueue::announce`].
    pub(crate) fn announce(&mut self) {
        self.queue.announce();
    }
    /// As [`EventQueue::next_ones`].
    #[inline(always)]
    pub(crate) fn next_ones(&mut self) -> Option<&[Event]> {
        self.queue.next_ones()
    }
    /// No event of this partition is earlier; `None`: there is none.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.next()
    }
    /// What goes to `partition`.
    pub(crate) fn mail_to(&mut self, partition: u16) -> &mut Mail {
        &mut self.outgoing[usize::from(partition)]
    }
    /// All that goes out, by partition.
    pub(crate) fn outgoing(&mut self) -> impl Iterator<Item = (usize, &mut Mail)> {
        self.outgoing.iter_mut().enumerate().filter(|(_, mail)| !mail.is_empty())
    }
}
