//! PFC at ports with queues: when memory is freed, and what upstream ports are told.

use super::window::Outlet;
use super::{QueuePorts, Queued, SPARED};
use crate::event::{Class, Event};
use crate::packet::Packet;
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::shared::{Ingress, Ingresses, PAUSE_FRAME_BYTES};
use weft_units::{IdVec, Time};

impl QueuePorts {
    /// Tells the upstream port of `port`'s reverse link to pause or to resume.
    #[cold]
    pub(super) fn send_frame<O: Outlet>(&mut self, now: Time, port: OutPort, out: &mut O) {
        let queue = &mut self.ports[port];
        let pause = queue.ingress.pause;
        queue.told_pause = pause;
        queue.busy_until = now + queue.line.wire.time(u32::from(PAUSE_FRAME_BYTES));
        if let Some(in_service) = &mut self.in_service {
            in_service[port] = queue.busy_until - now;
        }
        queue.tell_end(port, out);
        let frame = Packet::pfc(pause, PAUSE_FRAME_BYTES);
        out.arrive(queue.busy_until + queue.line.delay, queue.exit, frame);
        self.pauses_sent += u64::from(pause);
    }

    /// The wish to pause the upstream port of `ingress` has changed: tell it at once if the
    /// port back is idle, else after the packet in service.
    #[cold]
    pub(super) fn tell<O: Outlet>(&mut self, now: Time, ingress: OutPort, out: &mut O) {
        let queue = &mut self.ports[ingress];
        if queue.ingress.pause == queue.told_pause {
            return;
        }
        if queue.is_idle(now) {
            self.send_frame(now, ingress, out);
        } else {
            queue.tell_end(ingress, out);
        }
    }

    /// Notes what has left `switch` before `until`: frees its memory and lets upstream resume.
    pub(super) fn free_departed<O: Outlet>(
        &mut self,
        now: Time,
        switch: OwnSwitch,
        until: Time,
        out: &mut O,
    ) {
        self.note_departed(switch, until, |ports, ingress| ports.tell(now, ingress, out));
    }

    /// Notes what has left `switch` before `until`, and tells `resume` of ingresses whose pause that ends.
    pub(super) fn note_departed(
        &mut self,
        switch: OwnSwitch,
        until: Time,
        mut resume: impl FnMut(&mut Self, OutPort),
    ) {
        let mut leaving = std::mem::take(&mut self.switches[switch].leaving);
        leaving.retain(|packet| {
            let left = packet.at < until;
            if left && self.release(switch, packet.ingress, packet.size) {
                resume(self, packet.ingress);
            }
            !left
        });
        self.switches[switch].leaving = leaving;
    }

    /// Frees the memory of a packet of `size` bytes that came by `ingress` and has left
    /// `switch`. Returns whether that ends a pause.
    #[inline(always)]
    pub(super) fn release(&mut self, switch: OwnSwitch, ingress: OutPort, size: u16) -> bool {
        if !self.accounts {
            return false;
        }
        let shared = &mut self.switches[switch];
        let size = u64::from(size);
        if ingress == SPARED {
            shared.memory.total -= size;
            return false;
        }
        let state = &mut self.ports[ingress].ingress;
        let resumes = self.rules.release(&mut shared.memory, state, size);
        shared.pausing -= u32::from(resumes);
        resumes
    }

    /// From now on it matters when each packet leaves `switch`.
    pub(super) fn watch_leaving<O: Outlet>(&mut self, switch: OwnSwitch, out: &mut O) {
        for packet in &self.switches[switch].leaving {
            let queue = &mut self.ports[packet.port];
            if packet.at == queue.busy_until {
                queue.tell_end(packet.port, out);
            } else {
                // The port has gone on to its next packet at this very instant.
                let end = Event::new(packet.at, Class::Transmitted, packet.port.0);
                out.push_at_switch(end, switch);
            }
        }
    }
}

impl Ingresses for IdVec<OutPort, Queued> {
    fn get(&self, port: OutPort) -> &Ingress {
        &self[port].ingress
    }
    fn get_mut(&mut self, port: OutPort) -> &mut Ingress {
        &mut self[port].ingress
    }
}
