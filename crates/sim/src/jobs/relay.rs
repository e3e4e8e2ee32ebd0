//! Messages that another GPU of a server passes on (PXN), on their way to the network or from it.
//!
//! A relay passes a message on piece by piece. Towards the network it begins when it has the first piece, but
//! so late that it never sends at line rate what has not come yet; the sender's scale-up link is taken for all of the
//! message, one message after the other, as for any other message between GPUs of a server. From the network all but
//! the last piece of a message goes on while it comes, as far as the scale-up link has had time for it since the message was
//! posted, and last pieces go on one after the other. Relays take no time of their own.

use super::state::{Happening, Waiting};
use crate::config::Service;
use crate::engine::Engine;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_units::Time;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// If a GPU of its own server passes on what rank `src` sends to rank `dst`, the message is on its way there.
    pub(super) fn relay_from(&mut self, src: u32, dst: u32, message: Waiting) -> bool {
        let jobs = self.jobs.as_mut().expect("a job");
        let Some(relays) = &jobs.config.relays else { return false };
        if relays.at_source(src, dst).is_none() {
            return false;
        }
        let (link, chunk) = (jobs.config.scale_up, relays.pxn.chunk);
        let busy = &mut jobs.busy[relays.gpus[src as usize] as usize];
        let begin = (*busy).max(self.now);
        *busy = begin + link.serialize(message.bytes);
        let leaving = self.config.fabric.line_rate().serialize(message.bytes);
        let first = begin + link.serialize(message.bytes.min(chunk));
        let there = first.max(Time(busy.0.saturating_sub(leaving.0))) + link.latency;
        let number = jobs.relayed;
        jobs.relayed = number.wrapping_add(1);
        jobs.relaying.insert(number, (dst, message));
        self.tell(src, there, Happening::Relayed(number));
        true
    }

    /// The relay of rank `src` may begin to send.
    pub(super) fn relayed(&mut self, src: u32, number: u32) {
        let jobs = self.jobs.as_mut().expect("a job");
        let (dst, message) = jobs.relaying.remove(&number).expect("it is relayed once");
        self.connect(src, dst, message);
    }

    /// Rank `src` sends a message to rank `dst` on their connection, if it has one and that is free.
    pub(super) fn connect(&mut self, src: u32, dst: u32, message: Waiting) {
        let jobs = self.jobs.as_mut().expect("a job");
        let is_in_order = self.config.service == Service::InOrder;
        if is_in_order && !jobs.connections.insert((src, dst)) {
            return jobs.waiting.entry((src, dst)).or_default().push_back(message);
        }
        self.send_for(src, dst, message);
    }

    /// When its receiver has a message that has just come from the network and was posted at `posted`, `relay` being
    /// the GPU that passes it on and how many bytes that are; at once without one.
    pub(super) fn relay_to(&mut self, relay: Option<(u32, u64)>, posted: Time) -> Time {
        let Some((gpu, bytes)) = relay else { return self.now };
        let jobs = self.jobs.as_mut().expect("a job");
        let relays = jobs.config.relays.as_ref().expect("somebody relays");
        let (link, chunk) = (jobs.config.scale_up, relays.pxn.chunk);
        let (all, last) = (link.serialize(bytes), link.serialize(bytes.min(chunk)));
        let coming = self.config.fabric.line_rate().serialize(bytes);
        let busy = &mut jobs.busy[gpu as usize];
        *busy = (*busy).max(posted) + all;
        let tail = &mut jobs.tails[gpu as usize];
        *tail = (*tail).max(self.now) + last;
        // As if it had come at line rate, and gone on as it came.
        let gone = Time((self.now + all).0.saturating_sub(coming.0));
        (*busy).max(*tail).max(gone) + link.latency
    }
}
