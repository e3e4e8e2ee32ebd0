//! Probes: packets without data by which a queue pair asks what has arrived (`weft_transport::Probing`).

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_transport::{ProbeDue, Window};
use weft_units::Time;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Queue pair `id` has heard of its receiver: the next probe waits. `probe`: it was the answer to one that left so
    /// long ago.
    pub(super) fn put_off_probe(&mut self, id: u32, probe: Option<Time>) {
        let flow = &mut self.nics.senders[id as usize];
        let all_left = flow.sender.has_left();
        let is_done = flow.sender.is_done();
        let Some(delays) = flow.congestion.delays() else { return };
        let Some(probing) = flow.sender.probing() else { return };
        if is_done {
            return probing.stop();
        }
        let host = flow.src;
        if let Some(at) = probing.put_off(self.now, delays, all_left) {
            self.agenda.push_at_host(Event::new(at, Class::Probe, id), host);
        }
        if probe.is_some_and(|age| delays.base_rtt.until(age) < delays.target) {
            let flow = &mut self.nics.senders[id as usize];
            let (now, most) = (flow.congestion.window(), flow.congestion.largest_window());
            flow.sender.on_quick_probe(Window { now, most });
        }
    }

    /// A `Probe` event.
    pub(crate) fn probe_due(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        let host = flow.src;
        let Some(delays) = flow.congestion.delays() else { return };
        let Some(probing) = flow.sender.probing() else { return };
        let next = match probing.look(self.now, delays) {
            ProbeDue::No => return,
            ProbeDue::At(next) => next,
            ProbeDue::Now(number, next) => {
                self.request(host, id, number);
                next
            }
        };
        self.agenda.push_at_host(Event::new(next, Class::Probe, id), host);
    }
}
