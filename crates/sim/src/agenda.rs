//! What is to come in a partition, and what it sends to others.

use crate::event::{Class, Event};
use crate::mail::Mail;
use crate::packet::Packet;
use crate::partition::{Exit, InLink};
use crate::queue::EventQueue;
use crate::tor::{Tagged, Tags};
use weft_units::Time;

/// The events of one partition, and its mail to the others.
#[derive(Debug)]
pub struct Agenda<Q> {
    queue: Q,
    own: u16,
    /// By partition; the own one stays empty.
    outgoing: Vec<Mail>,
    /// Of the packets in this partition, if they have any.
    pub(crate) tags: Option<Tags>,
}

impl<Q: EventQueue> Agenda<Q> {
    /// For partition `own` of `partitions`; whether packets may have `tags`.
    pub(crate) fn new(queue: Q, own: u16, partitions: usize, tags: bool) -> Agenda<Q> {
        let outgoing = (0..partitions).map(|_| Mail::default()).collect();
        Agenda { queue, own, outgoing, tags: tags.then(Tags::default) }
    }
    /// Adds an event in this partition, not earlier than now.
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        self.queue.push(event);
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
        self.push_at(exit.partition, Event::arrival(time, exit.link, packet));
    }
    /// Adds an event in `partition`; if it is another one, at least the lookahead from now.
    #[inline(always)]
    pub(crate) fn push_at(&mut self, partition: u16, event: Event) {
        if partition == self.own {
            self.queue.push(event);
        } else {
            self.outgoing[usize::from(partition)].push(event);
        }
    }
    /// Adds an event that comes from another partition, with the tags of its mail.
    pub(crate) fn take_in(&mut self, event: Event, mail: &[Tagged]) {
        let (packet, target) = (event.packet(), event.target());
        if let Some(tags) = &mut self.tags
            && target.is(Class::Arrive)
            && let Some(place) = packet.tag()
        {
            let packet = packet.tagged(tags.put(mail[place as usize]));
            return self.push(Event::arrival(event.time, InLink(target.id()), packet));
        }
        self.push(event);
    }
    /// The next event before `end`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<Event> {
        self.queue.pop_before(end)
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
