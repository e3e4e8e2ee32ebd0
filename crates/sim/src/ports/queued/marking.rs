//! Which packets ports with queues mark: on arrival by the queue that a packet finds, or when its
//! first bit leaves by what waits behind it.
//!
//! What waits behind is all that is queued at the port then, without the packet itself; nothing else
//! is in service. Where control goes ahead of data, only data waits behind data. A packet that finds
//! its port free is never marked. What arrives at the very instant at which a busy port becomes free
//! has come before.

use super::QueuePorts;
use super::list::Entry;
use crate::packet::Packet;
use crate::partition::OutPort;
use crate::ports::limits::mark_bits;
use weft_units::Time;

impl QueuePorts {
    /// Marks `packet`, which is to be queued at `port`, by the queue that it finds, if that is how
    /// it is done.
    #[inline(always)]
    pub(super) fn mark(&mut self, now: Time, port: OutPort, packet: &mut Packet) {
        self.mark_behind(self.queued(now, port), port, packet);
    }

    /// As [`QueuePorts::mark`], where the queue takes so long.
    #[inline(always)]
    pub(super) fn mark_behind(&mut self, backlog: Time, port: OutPort, packet: &mut Packet) {
        if !self.marks_joining {
            return;
        }
        let queue = &self.ports[port];
        let limits = &self.limits[usize::from(queue.limits)];
        let bits = || mark_bits(self.marks, self.records[port].id, queue.packets);
        // The kind comes second: which comes next is hard to predict.
        if limits.marks(backlog, bits) && !packet.is(self.unmarked) {
            packet.mark();
            self.records[port].mark();
        }
    }

    /// What is to be done about `entry`, which takes `time` and has left a lane of `port` for the
    /// wire, the one ahead of data if it is `first`. Returns it as it leaves.
    #[inline(always)]
    pub(super) fn watched(
        &mut self,
        port: OutPort,
        entry: Entry,
        time: Time,
        first: bool,
    ) -> Entry {
        if let Some(in_service) = &mut self.in_service {
            in_service[port] = time;
        }
        if first && let Some(trimming) = &mut self.trimming {
            trimming.leave(port, time);
        }
        // Headers are not marked, nor what goes with them.
        match self.marks_leaving && !(first && self.trimming.is_some()) {
            true => self.mark_leaving(port, entry),
            false => entry,
        }
    }

    /// `entry`, which leaves `port` now, marked if so much waits behind it.
    #[inline(never)]
    fn mark_leaving(&mut self, port: OutPort, entry: Entry) -> Entry {
        let mut packet = entry.packet();
        let queue = &self.ports[port];
        let limits = &self.limits[usize::from(queue.limits)];
        let record = &mut self.records[port];
        let bits = || mark_bits(self.marks, record.id, record.draw());
        if packet.is(self.unmarked) || !limits.marks(queue.waiting, bits) {
            return entry;
        }
        packet.mark();
        self.records[port].mark();
        Entry::new(packet, entry.ingress())
    }
}
