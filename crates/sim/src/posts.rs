//! Messages are posted when their dependencies are met, and complete when both ends say so.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::partition::{ReceivingId, SendingId};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::World;
use std::sync::Arc;
use weft_balance::plan::Post;
use weft_units::MessageId;
use weft_workload::When;

/// Schedules the messages that wait for nothing.
pub(crate) fn start<Q: EventQueue, P>(world: &World, partitions: &mut [Engine<Q, P>]) {
    for (id, message) in world.config.workload.messages().enumerate() {
        let partition =
            &mut partitions[usize::from(world.partitioning.hosts[message.src].partition)];
        if partition.messages.sending(world.sending[id]).unmet() == 0 {
            let host = world.partitioning.hosts[message.src].own;
            partition.agenda.push_at_host(Event::new(message.start, Class::Post, id.0), host);
        }
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A host posts a message to its NIC.
    pub(crate) fn post(&mut self, id: MessageId) {
        let message = &self.config.workload.messages()[id];
        let sending = self.world.sending[id];
        self.messages.post(self.now, sending);
        // A pause in the workload is no stall: from now on something can be delivered.
        self.counts.progress.make(self.now);
        let (dst, bytes, tag) = (message.dst, message.bytes, sending.0);
        let post = Post { message: id, dst, bytes, job: 0, ranks: (0, 0), tag };
        self.plan(self.world.partitioning.hosts[message.src].own, post);
    }

    /// A receiver has all of one subflow, `bytes` of payload.
    pub(crate) fn subflow_received(&mut self, id: ReceivingId, bytes: u64) {
        if let Some(message) = self.messages.receive(self.now, id, bytes) {
            match self.jobs {
                Some(_) => self.rank_received(id),
                None => self.end_reached(message, When::Received),
            }
        }
    }

    /// A sender has the last acknowledgement of one subflow, `bytes` of payload.
    pub(crate) fn subflow_sent(&mut self, id: SendingId, bytes: u64) {
        if let Some(message) = self.messages.acknowledge(self.now, id, bytes) {
            match self.jobs {
                Some(_) => self.rank_sent(id),
                None => self.end_reached(message, When::Sent),
            }
        }
    }

    /// One end of a message is done: whoever waited for it may go on. Where the waiting host
    /// is not the one that saw it, the news takes one link delay, the least that keeps hosts
    /// independent of each other for that long.
    fn end_reached(&mut self, id: MessageId, when: When) {
        let world = Arc::clone(&self.world);
        let messages = self.config.workload.messages();
        let observer = match when {
            When::Sent => messages[id].src,
            When::Received => messages[id].dst,
        };
        for dependency in world.dependents.numbers(id, when) {
            let host = messages[world.dependents.message(dependency)].src;
            if host == observer {
                self.dependency_met(dependency);
            } else {
                let at = self.now + world.news_delay;
                let (partition, process) = world.partitioning.process_of(host);
                let news = Event::new(at, Class::DependencyMet, dependency).of_process(process);
                self.agenda.push_at((partition, process), news);
            }
        }
    }

    /// The sender of the message that waits under `dependency` hears that it is met.
    pub(crate) fn dependency_met(&mut self, dependency: u32) {
        let id = self.world.dependents.message(dependency);
        if self.messages.meet(self.world.sending[id]) {
            let message = &self.config.workload.messages()[id];
            let host = self.world.partitioning.hosts[message.src].own;
            let at = self.now + message.start;
            self.agenda.push_at_host(Event::new(at, Class::Post, id.0), host);
        }
    }
}
