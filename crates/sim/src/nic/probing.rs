//! Probes: packets without data by which a queue pair asks what has arrived (`weft_transport::Probing`), or whether a path
//! is good again (`weft_balance::steer::Steer::probe`).

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::headers::Ask;
use crate::partition::OutPort;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_transport::Window;
use weft_units::{Ring, Time};

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
        let next = probing.put_off(self.now, delays, all_left);
        self.probe_again(id, next);
        if probe.is_some_and(|age| delays.base_rtt.until(age) < delays.target) {
            let flow = &mut self.nics.senders[id as usize];
            let (now, most) = (flow.congestion.window(), flow.congestion.largest_window());
            flow.sender.on_quick_probe(Window { now, most });
        }
    }

    /// A `Probe` event.
    pub(crate) fn probe_due(&mut self, id: u32) {
        let flow = &mut self.nics.senders[id as usize];
        if flow.is_done() {
            return;
        }
        if let (Some(delays), Some(probing)) = (flow.congestion.delays(), flow.sender.probing()) {
            let next = match probing.look(self.now) {
                Ring::No => None,
                Ring::At(next) => Some(next),
                Ring::Now => {
                    let (number, next) = probing.leave(self.now, delays);
                    self.request(id, Ask::Probe(number));
                    next
                }
            };
            self.probe_again(id, next);
        }
        if self.nics.senders[id as usize].hooks.names_losses() {
            self.probe_paths(id);
        }
    }

    /// The paths of queue pair `id` of which the scheme wants to know whether they are good again.
    fn probe_paths(&mut self, id: u32) {
        let (mut routes, now) = (Vec::new(), self.now);
        for plane in 0..self.planes() {
            let next = self.steering_of(id, plane).probe(now, &mut routes);
            for route in routes.drain(..) {
                self.request_by(id, plane, route, Ask::Path);
            }
            self.probe_again(id, next);
        }
    }

    /// The scheme has heard of losses of queue pair `id`, and may want to probe.
    pub(super) fn plan_path_probes(&mut self, id: u32) {
        for plane in 0..self.planes() {
            let next = self.steering_of(id, plane).probe_at();
            self.probe_again(id, next);
        }
    }

    /// The answer to a probe of a path has come by `port`.
    pub(super) fn hear_of_path(&mut self, id: u32, port: OutPort, entropy: u16) {
        let plane = self.nics.ports.plane(port);
        self.steering_of(id, plane).on_probe(entropy);
    }

    fn probe_again(&mut self, id: u32, at: Option<Time>) {
        if let Some(at) = at {
            let host = self.nics.senders[id as usize].src;
            self.agenda.push_at_host(Event::new(at, Class::Probe, id), host);
        }
    }
}
