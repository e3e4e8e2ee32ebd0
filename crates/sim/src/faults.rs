//! Links that fail: how slow they get, and when routing goes around them.
//!
//! All of it is known before the run (`weft_fabric::Failures`), so that every partition sees to its
//! own part by its own clock. A dead or flaky link takes what its port puts on it and delivers
//! nothing (`lossy`); PFC frames are spared, which keeps a lost resume from holding a port for ever. Where
//! the switch throws its queue away instead, the port does so.

use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::partition::OutPort;
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::{Fault, Routes};
use std::sync::Arc;
use weft_fabric::{Flush, RateChange};
use weft_units::Time;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Schedules what happens to this partition's ports, and to its knowledge of others.
    pub(crate) fn schedule_faults(&mut self) {
        let world = Arc::clone(&self.world);
        for (number, (at, fault)) in world.faults.iter().enumerate() {
            let is_ours = match fault {
                Fault::Rate(RateChange { port, .. }) | Fault::Flush(Flush { port, .. }) => {
                    world.partitioning.ports[*port].partition == self.own
                }
                Fault::Routes(_) => true,
            };
            // What is known from the start, hosts know before they post the first message.
            if let Fault::Routes(routes) = fault
                && *at == Time::ZERO
            {
                self.tell_hosts(routes);
                self.learn_nic_ports(&routes.nic_ports);
            }
            if is_ours {
                self.agenda.push_for_all(Event::new(*at, Class::Fault, number as u32));
            }
        }
    }

    /// A `Fault` event.
    #[cold]
    pub(crate) fn fault(&mut self, number: u32) {
        let world = Arc::clone(&self.world);
        match &world.faults[number as usize].1 {
            Fault::Rate(change) => {
                let port: OutPort = world.partitioning.ports[change.port].own;
                self.ports.set_rate(self.now, port, change.rate);
                self.switches.set_rate(&world, change.port, change.rate);
            }
            Fault::Flush(flush) => {
                let port = world.partitioning.ports[flush.port].own;
                self.ports.flush(self.now, port, flush.until, &mut self.agenda);
            }
            Fault::Routes(routes) => {
                self.switches.learn(routes);
                self.rebuild_trees();
                if !self.may_relay_in_bulk() {
                    self.agenda.hand_out_whole(0..0);
                }
                if self.now > Time::ZERO {
                    self.learn_nic_ports(&routes.nic_ports);
                    self.tell_hosts(routes);
                    self.rebalance_all();
                }
                // Not counted: every partition hears of it.
                self.counts.totals.events -= 1;
            }
        }
    }

    /// Hosts hear what they are told of what routing has learnt.
    fn tell_hosts(&mut self, routes: &Routes) {
        self.nics.learn(self.now, &routes.known, self.config.fabric);
    }
}
