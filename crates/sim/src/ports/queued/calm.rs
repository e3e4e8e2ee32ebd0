//! Windows in which PFC has nothing to do at a switch: nobody is paused, and nobody asks for a pause. The ports of the
//! switch are independent then.

use super::QueuePorts;
use crate::event::Event;
use crate::packet::flag;
use crate::partition::{OutPort, OwnSwitch};
use crate::ports::interface::Window;
use weft_units::Time;

impl QueuePorts {
    /// Whether nobody asks `switch` for a pause before `window` is over, nor waits for the end of one. If so it takes what
    /// comes, by these ingresses, into its memory.
    pub(super) fn is_calm<'e>(
        &mut self,
        window: &Window,
        switch: OwnSwitch,
        arrivals: impl Iterator<Item = (OutPort, &'e Event)> + Clone,
    ) -> bool {
        let shared = &self.switches[switch];
        if !self.rules.is_lossless() || shared.pausing > 0 || !self.shut.is_empty() {
            return false;
        }
        if shared.leaving.len() >= shared.most_leaving {
            // Nobody waits for the end of a pause.
            self.note_departed(switch, window.start, |_, _| ());
        }
        let spared = flag::PFC | self.spared;
        let data = arrivals.clone().filter(|(_, event)| !event.packet().is(spared));
        self.coming.add_up(data.map(|(ingress, event)| (ingress, event.packet().size)));
        let memory = &mut self.switches[switch].memory;
        self.rules.take_in_all(memory, &mut self.ports, &self.coming.bytes)
            || self.ahead == 0 && self.stays_calm(window, switch, arrivals)
    }

    /// The same, where there is no room for all at once, by what leaves meanwhile for sure: what waits already, where nothing
    /// holds it back.
    #[inline(never)]
    fn stays_calm<'e>(
        &mut self,
        window: &Window,
        switch: OwnSwitch,
        arrivals: impl Iterator<Item = (OutPort, &'e Event)> + Clone,
    ) -> bool {
        self.note_departed(switch, window.start, |_, _| ());
        let QueuePorts { ports, slices, waiting, switches, .. } = self;
        let shared = &mut switches[switch];
        slices.start(window, shared.ports);
        for (ingress, event) in arrivals {
            let packet = event.packet();
            match packet.is(flag::PFC) {
                // Where a frame goes nothing more may begin to leave.
                true => slices.hold(event.time, ingress),
                false => slices.come(event.time, ingress, packet.size),
            }
        }
        shared.leaving.iter().for_each(|packet| slices.go(packet.at, packet.ingress, packet.size));
        let (first, count) = shared.ports;
        for port in (first.0..first.0 + count).map(OutPort) {
            let queue = &ports[port];
            let mut at = queue.busy_until;
            if !queue.told || at >= window.end {
                continue;
            }
            if queue.service_size > 0 {
                slices.go(at, queue.service_ingress, queue.service_size);
            }
            let until = if queue.is_in_order() { slices.free_until(port) } else { Time::ZERO };
            for entry in waiting.iter(queue.data) {
                if at >= until {
                    break;
                }
                let size = entry.packet().size;
                at += queue.line.wire.time(u32::from(size));
                slices.go(at, entry.ingress(), size);
            }
        }
        let coming = &self.coming.bytes;
        self.rules.take_in_meanwhile(&mut shared.memory, ports, coming, slices)
    }
}
