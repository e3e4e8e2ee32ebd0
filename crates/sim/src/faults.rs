//! Links that fail: what they lose, how slow they get, and when routing goes around them.
//!
//! All of it is known before the run (`weft_fabric::Failures`), so that every partition sees to its
//! own part by its own clock. A dead or flaky link takes what its port puts on it and delivers
//! nothing; PFC frames are spared, which keeps a lost resume from holding a port for ever. Where
//! the switch throws its queue away instead, the port does so.

use crate::config::RunConfig;
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::packet::LostPacket;
use crate::partition::{InLink, OutPort, Partition};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::{Fault, Routes};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weft_fabric::{Flush, Losses, Port, RateChange};
use weft_units::{Time, Wire};

/// The links that end in a partition and may lose packets.
#[derive(Debug)]
pub(crate) struct Faults {
    links: FxHashMap<InLink, Lossy>,
}

/// A link that may lose packets.
#[derive(Debug)]
struct Lossy {
    losses: Losses,
    wire: Wire,
    delay: Time,
    /// The start of the last transmission that was looked at.
    asked: Time,
}

impl Faults {
    /// The links that end in a partition.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> Faults {
        let links = partition.links.enumerate().filter_map(|(own, id)| {
            let Port { rate, delay, .. } = config.port_at_start(*id);
            let losses = config.failures.losses(*id)?;
            Some((own, Lossy { losses, wire: Wire::new(rate), delay, asked: Time::ZERO }))
        });
        Faults { links: links.collect() }
    }

    /// Whether a packet of `size` bytes, which should arrive by `link` now, was lost on it.
    #[cold]
    pub(crate) fn is_lost(&mut self, now: Time, link: InLink, size: u16) -> bool {
        let Some(lossy) = self.links.get_mut(&link) else { return false };
        let left = now - lossy.delay;
        let began = left.0.saturating_sub(lossy.wire.time(u32::from(size)).0);
        // Where the rate changed in between, the start is not exact, and must not run back.
        lossy.asked = lossy.asked.max(Time(began));
        lossy.losses.is_lost(lossy.asked, left.max(lossy.asked))
    }
}

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
            }
            if is_ours {
                self.agenda.push(Event::new(*at, Class::Fault, number as u32));
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
                self.tell_rate(change.port, change.rate);
            }
            Fault::Flush(flush) => {
                let port = world.partitioning.ports[flush.port].own;
                self.ports.flush(self.now, port, flush.until, &mut self.agenda);
            }
            Fault::Routes(routes) => {
                self.routing.learn(routes);
                if self.now > Time::ZERO {
                    self.tell_hosts(routes);
                    self.rebalance_all();
                }
                // Not counted: every partition hears of it.
                self.totals.events -= 1;
            }
        }
    }

    /// Hosts hear what routing has learnt, if their scheme asks.
    fn tell_hosts(&mut self, routes: &Routes) {
        let Some(view) = &routes.view else { return };
        for host in self.hosts.iter_mut() {
            host.planner.learn(self.now, view, self.config.fabric);
        }
    }

    /// A packet, which came by the link that `reverse` leads back, is gone: that lost it, or no
    /// way is left to where it goes.
    #[cold]
    pub(crate) fn lose(&mut self, reverse: OutPort, packet: LostPacket) {
        if let Some(audit) = &mut self.audit {
            audit.lost(reverse, packet);
        }
        self.totals.end = self.now;
        self.totals.wire_drops += 1;
        self.totals.wire_dropped_bytes += u64::from(packet.size);
        self.losses.add(packet);
    }
}
