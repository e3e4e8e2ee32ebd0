//! What is to come in a domain, and what it sends to others.

use crate::cut::{Exit, InLink};
use crate::event::{Class, Event, Packet, flag};
use crate::mail::Mail;
use crate::queue::EventQueue;
use crate::tor::{Tagged, Tags};
use weft_units::Time;

/// The events of one domain, and its mail to the others.
#[derive(Debug)]
pub struct Agenda<Q> {
    queue: Q,
    own: u16,
    /// By domain; the own one stays empty.
    outgoing: Vec<Mail>,
    /// Of the packets in this domain, if they have any.
    pub(crate) tags: Option<Tags>,
}

impl<Q: EventQueue> Agenda<Q> {
    /// For domain `own` of `domains`; whether packets may have `tags`.
    pub(crate) fn new(queue: Q, own: u16, domains: usize, tags: bool) -> Agenda<Q> {
        let outgoing = (0..domains).map(|_| Mail::default()).collect();
        Agenda { queue, own, outgoing, tags: tags.then(Tags::default) }
    }
    /// Adds an event in this domain, not earlier than now.
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        self.queue.push(event);
    }
    /// `packet` will reach the far end of a link, in whatever domain that is.
    #[inline(always)]
    pub fn arrive(&mut self, time: Time, exit: Exit, mut packet: Packet) {
        if exit.domain != self.own
            && let Some(tags) = &mut self.tags
            && packet.is(flag::TAGGED)
        {
            let mail = &mut self.outgoing[usize::from(exit.domain)];
            packet.aux = mail.add_tag(tags.take(packet.aux));
        }
        self.push_at(exit.domain, Event::arrival(time, exit.link, packet));
    }
    /// Adds an event in `domain`; if it is another one, at least the lookahead from now.
    #[inline(always)]
    pub(crate) fn push_at(&mut self, domain: u16, event: Event) {
        if domain == self.own {
            self.queue.push(event);
        } else {
            self.outgoing[usize::from(domain)].push(event);
        }
    }
    /// Adds an event that comes from another domain, with the tags of its mail.
    pub(crate) fn take_in(&mut self, event: Event, mail: &[Tagged]) {
        let mut packet = event.packet();
        let target = event.target();
        if let Some(tags) = &mut self.tags
            && target.is(Class::Arrive)
            && packet.is(flag::TAGGED)
        {
            packet.aux = tags.put(mail[packet.aux as usize]);
            return self.push(Event::arrival(event.time, InLink(target.id()), packet));
        }
        self.push(event);
    }
    /// The next event before `end`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<Event> {
        self.queue.pop_before(end)
    }
    /// No event of this domain is earlier; `None`: there is none.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.next()
    }
    /// What goes to `domain`.
    pub(crate) fn mail_to(&mut self, domain: u16) -> &mut Mail {
        &mut self.outgoing[usize::from(domain)]
    }
    /// All that goes out, by domain.
    pub(crate) fn outgoing(&mut self) -> impl Iterator<Item = (usize, &mut Mail)> {
        self.outgoing.iter_mut().enumerate().filter(|(_, mail)| !mail.is_empty())
    }
}
