//! Packets of trees at switches: added up on the way up, copied on the way down.

use super::accumulators::{Accumulators, Came};
use super::host::size;
use super::state::{Adder, Sum, Sums};
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::packet::{Packed, Packet, Segment, flag};
use crate::partition::{OutPort, OwnHost, OwnSwitch};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::switches::Link;
use std::sync::Arc;
use weft_fabric::{Branch, Node};
use weft_units::{PortId, Time};

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet, beside the port that leads back, has reached the end of a link that is watched; `peer` says
    /// whose that is ([`Link`]).
    #[cold]
    #[inline(never)]
    pub(crate) fn watched(&mut self, peer: u32, packed: Packed) {
        let (packet, ingress) = (packed.packet(), OutPort(packed.beside()));
        let (is_switch, own) = (peer & Link::SWITCH != 0, peer & Link::NUMBER);
        match (is_switch, packet.is_segment()) {
            (true, true) => self.reduce(OwnSwitch(own), ingress, packet),
            (true, false) if self.switches.keeps(OwnSwitch(own)) => {
                self.enter(OwnSwitch(own), packed);
            }
            (true, false) => self.pass(OwnSwitch(own), ingress, packet),
            (false, true) => self.get_result(OwnHost(own), packet),
            (false, false) => {
                self.counts.deliver(self.now, &packet);
                match packet.is(flag::CONTROL) {
                    true => self.answered(OwnHost(own), ingress, packet),
                    false => self.receive(OwnHost(own), ingress, packet),
                }
            }
        }
    }

    /// A packet of a tree has reached a switch, which takes it in.
    fn reduce(&mut self, switch: OwnSwitch, ingress: OutPort, packet: Packet) {
        self.counts.end(self.now, ingress, packet.lost());
        let world = Arc::clone(&self.world);
        let trees = world.trees.as_ref().expect("operations have trees");
        let said = packet.as_segment();
        let state = self.reduction.as_mut().expect("trees have states");
        state.count_taken(&packet);
        // What was on its way over a tree that is no more; and what is told of a failed one only.
        if state.current[trees.set_of(said.tree) as usize] != said.tree {
            return;
        }
        let here = self.switches[switch].id;
        let Some(branch) = trees.tree(said.tree).and_then(|tree| tree.at(here)) else { return };
        let from = world.partitioning.partitions[usize::from(self.own)].ports[ingress];
        let is_above = branch.up == Some(from);
        if said.segment == Segment::CALL {
            let now = self.now;
            if let Some(sums) = self.sums(switch, said, branch) {
                sums.called_at = Some(now);
            }
            self.call(switch, said, branch, from);
        } else if is_above {
            self.copy_down(switch, said, branch, ingress);
        } else if let Ok(child) = branch.down.binary_search(&from) {
            self.add(switch, packet, branch, (child as u32, ingress));
        }
    }

    /// The sums of an operation at a switch; `None`: it has passed on all results.
    fn sums(&mut self, switch: OwnSwitch, said: Segment, branch: &Branch) -> Option<&mut Sums> {
        let trees = self.world.trees.as_ref().expect("operations have trees");
        let jobs = self.config.job.as_ref().expect("operations are those of ranks");
        let state = self.reduction.as_mut().expect("trees have states");
        let key = (switch, said.tree, said.number);
        if state.passed.contains(&key) {
            return None;
        }
        Some(state.sums.entry(key).or_insert_with(|| {
            let set = trees.set_of(said.tree);
            let segments = trees.segments(jobs, set, said.number);
            let (children, window) = (branch.down.len() as u32, trees.window(set));
            let own = Accumulators::new(children, segments.count(), window);
            Sums { segments, own, called_at: None }
        }))
    }

    /// The `child`-th of those below has contributed.
    fn add(
        &mut self,
        switch: OwnSwitch,
        packet: Packet,
        branch: &Branch,
        (child, ingress): (u32, OutPort),
    ) {
        let said = packet.as_segment();
        let Segment { tree, number, segment, ranks } = said;
        let below = self.config.fabric.ports()[branch.down[child as usize]].peer;
        let is_data = packet.size != self.config.packet.ack as u16;
        let is_sent_by_host = is_data && matches!(below, Node::Host(_));
        let Some(sums) = self.sums(switch, said, branch) else {
            // All results went down, of all ranks.
            self.counts.totals.spurious += u64::from(is_sent_by_host);
            return self.answer_child(switch, said, branch, (child, ingress));
        };
        let came = sums.own.contribute(segment, child, u32::from(ranks));
        let is_known = !matches!(came, Came::First | Came::Complete(_));
        self.counts.totals.spurious += u64::from(is_sent_by_host && is_known);
        if self.world.trees.as_ref().is_some_and(|trees| trees.is_rebuilt(tree)) {
            self.call_for(switch, said, branch, (child, came));
        }
        let reduction = &self.config.switch.reduction;
        let state = self.reduction.as_mut().expect("trees have states");
        let adds = branch.down.len() > 1;
        let taken = match adds {
            true => state.adders[switch].take(self.now, packet.size, reduction.rate),
            false => self.now,
        };
        let sum = |ranks| Sum { tree, number, segment, ranks, ingress };
        match came {
            Came::First | Came::Duplicate | Came::Late => {}
            Came::Complete(ranks) => {
                let ready = if adds { taken + reduction.latency } else { taken };
                match ready <= self.now {
                    true => self.send_sum(switch, sum(ranks)),
                    false => self.send_sum_at(switch, ready, sum(ranks)),
                }
            }
            Came::Again(ranks) if branch.up.is_some() => self.send_sum(switch, sum(ranks)),
            Came::Again(_) => {}
            Came::Answer(ranks) => {
                let said = Segment { ranks: ranks as u16, ..said };
                self.answer_child(switch, said, branch, (child, ingress));
            }
        }
    }

    fn send_sum_at(&mut self, switch: OwnSwitch, at: Time, sum: Sum) {
        self.adder(switch).put(at, sum);
        self.set_adder_alarm(switch, at);
    }

    /// A `Sum` event: what the adder of a switch is through with leaves.
    pub(crate) fn sums_due(&mut self, switch: OwnSwitch) {
        self.adder(switch).alarms.pop();
        loop {
            let now = self.now;
            let adder = self.adder(switch);
            let Some(first) = adder.pending.first_entry() else { return };
            let (at, _) = *first.key();
            if at > now {
                return self.set_adder_alarm(switch, at);
            }
            let sum = first.remove();
            self.send_sum(switch, sum);
        }
    }

    fn adder(&mut self, switch: OwnSwitch) -> &mut Adder {
        &mut self.reduction.as_mut().expect("trees have states").adders[switch]
    }

    /// Sees to it that a switch has an event at `at`.
    fn set_adder_alarm(&mut self, switch: OwnSwitch, at: Time) {
        let adder = self.adder(switch);
        if adder.alarms.last().is_none_or(|next| at < *next) {
            adder.alarms.push(at);
            self.agenda.push_at_switch(Event::new(at, Class::Sum, switch.0), switch);
        }
    }

    /// A sum that is complete goes up, or turns round at the root.
    fn send_sum(&mut self, switch: OwnSwitch, sum: Sum) {
        let world = Arc::clone(&self.world);
        let trees = world.trees.as_ref().expect("operations have trees");
        let Sum { tree, number, segment, ranks, ingress } = sum;
        let state = self.reduction.as_mut().expect("trees have states");
        if state.current[trees.set_of(tree) as usize] != tree {
            return;
        }
        let here = self.switches[switch].id;
        let branch = trees.tree(tree).and_then(|tree| tree.at(here)).expect("it was added there");
        let said = Segment { tree, number, segment, ranks: ranks as u16 };
        let Some(up) = branch.up else {
            return self.copy_down(switch, said, branch, ingress);
        };
        let Some(sums) = state.sums.get(&(switch, tree, number)) else { return };
        let has_payload = sums.segments.gives_below(segment, branch);
        let size = size(self.config, has_payload, sums.segments.bytes(segment));
        self.put(switch, up, ingress, Packet::segment(size, said));
    }

    /// A result goes down to all children.
    fn copy_down(&mut self, switch: OwnSwitch, said: Segment, branch: &Branch, ingress: OutPort) {
        let Some(sums) = self.sums(switch, said, branch) else { return };
        if !sums.own.give(said.segment, u32::from(said.ranks)) {
            return;
        }
        let (segments, is_last) = (sums.segments, sums.own.results == sums.segments.count());
        for (child, port) in (0..).zip(&branch.down) {
            let has_payload = segments.gets_below(said.segment, branch, child);
            let size = size(self.config, has_payload, segments.bytes(said.segment));
            self.put(switch, *port, ingress, Packet::segment(size, said));
        }
        let trees = self.world.trees.as_ref().expect("operations have trees");
        if is_last && !trees.is_rebuilt(said.tree) {
            let state = self.reduction.as_mut().expect("trees have states");
            let key = (switch, said.tree, said.number);
            state.sums.remove(&key);
            if state.is_lossy {
                state.passed.insert(key);
            }
        }
    }

    /// A child asks for a result that went down.
    fn answer_child(
        &mut self,
        switch: OwnSwitch,
        said: Segment,
        branch: &Branch,
        (child, ingress): (u32, OutPort),
    ) {
        let trees = self.world.trees.as_ref().expect("operations have trees");
        let jobs = self.config.job.as_ref().expect("operations are those of ranks");
        let segments = trees.segments(jobs, trees.set_of(said.tree), said.number);
        let said = Segment { ranks: segments.ranks() as u16, ..said };
        let has_payload = segments.gets_below(said.segment, branch, child);
        let size = size(self.config, has_payload, segments.bytes(said.segment));
        self.put(switch, branch.down[child as usize], ingress, Packet::segment(size, said));
    }

    /// On a tree that stands for another one: tells all others when the first contribution to an operation
    /// comes; and once in a time-out when one comes again while others are missing, whose senders may have
    /// results that the others lack.
    fn call_for(
        &mut self,
        switch: OwnSwitch,
        said: Segment,
        branch: &Branch,
        (child, came): (u32, Came),
    ) {
        let (now, rto) = (self.now, self.config.transport.rto);
        let Some(sums) = self.sums(switch, said, branch) else { return };
        let is_again = match sums.called_at {
            None => false,
            Some(at) if came == Came::Duplicate && at.saturating_add(rto) <= now => true,
            Some(_) => return,
        };
        sums.called_at = Some(now);
        let said = Segment { ranks: u16::from(is_again), ..said };
        self.call(switch, said, branch, branch.down[child as usize]);
    }

    /// Passes a call on to all of a tree but for where it came `from`.
    fn call(&mut self, switch: OwnSwitch, said: Segment, branch: &Branch, from: PortId) {
        let said = Segment { segment: Segment::CALL, ..said };
        let packet = Packet::segment(self.config.packet.ack as u16, said);
        let ingress = self.switches[switch].own(from);
        let ports = branch.up.iter().chain(&branch.down).filter(|port| **port != from);
        ports.for_each(|port| self.put(switch, *port, ingress, packet));
    }

    /// A switch puts a packet of its own on a port.
    fn put(&mut self, switch: OwnSwitch, port: PortId, ingress: OutPort, packet: Packet) {
        let port = self.switches[switch].own(port);
        self.counts.make(port, packet.size);
        self.reduction.as_mut().expect("trees have states").count_made(&packet);
        // Sums are in memory of their own, which is there: only without PFC does the port refuse them.
        match self.config.switch.pfc.is_some() || self.config.switch.trim.is_some() {
            true => self.ports.emit(self.now, port, packet, &mut self.agenda),
            false => self.ports.forward(self.now, port, ingress, packet, &mut self.agenda),
        }
    }
}
