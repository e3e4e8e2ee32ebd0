//! Ports of dead links whose switch throws their queues away (`weft_fabric::Queued::Lost`): from the
//! instant at which the link dies such a port keeps nothing and takes nothing. What it drops is
//! counted as drops of the port; the memory is free at once. The packet in service goes on, and is
//! lost on the wire.
//!
//! A port is shut by limits that fit nothing, so that the usual packet is asked nothing more; the
//! first packet that comes when the link is back opens it.

use super::list::Entry;
use super::window::Outlet;
use super::{NIC, QueuePorts, narrow};
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::limits::Limits;
use weft_units::Time;

impl QueuePorts {
    /// Shuts `port`, of a switch, until, not including, `until`, and drops what waits there.
    pub(super) fn shut_until<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        until: Time,
        out: &mut O,
    ) {
        let queue = &mut self.ports[port];
        debug_assert!(queue.switch != NIC, "NICs keep their pace");
        let switch = OwnSwitch(queue.switch);
        queue.limits = narrow(Limits::SHUT.index_in(&mut self.limits));
        queue.waiting = Time::ZERO;
        if let Some(trimming) = &mut self.trimming {
            trimming.set_waiting(port, Time::ZERO);
        }
        let end = self.shut.entry(port).or_default();
        *end = until.max(*end);
        while let Some(entry) = self.pop_any(port) {
            let packet = entry.packet();
            self.records[port].flush(packet.lost());
            self.losses.add(packet.lost());
            if self.release(switch, entry.ingress(), packet.size) {
                self.tell(now, entry.ingress(), out);
            }
        }
    }

    /// Takes a packet that waits at `port`, of whatever class.
    fn pop_any(&mut self, port: OutPort) -> Option<Entry> {
        let queue = &mut self.ports[port];
        self.waiting.pop(&mut queue.control).or_else(|| self.waiting.pop(&mut queue.data))
    }

    /// Whether `port` takes nothing now. If its link is back it takes packets from here on.
    #[inline]
    pub(super) fn is_shut(&mut self, now: Time, port: OutPort) -> bool {
        !self.shut.is_empty() && self.still_shut(now, port)
    }

    #[cold]
    fn still_shut(&mut self, now: Time, port: OutPort) -> bool {
        let Some(until) = self.shut.get(&port) else { return false };
        if now < *until {
            return true;
        }
        self.shut.remove(&port);
        let limits = self.limits_at(port, self.records[port].rate());
        self.ports[port].limits = narrow(limits.index_in(&mut self.limits));
        false
    }
}
