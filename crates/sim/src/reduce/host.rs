//! Operations at hosts: they begin, send in the rounds of their NICs, and get results.

use super::contribution::Contribution;
use super::state::{OPERATIONS, Operation};
use crate::config::Service;
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::packet::{Packet, Segment};
use crate::partition::OwnHost;
use crate::ports::Ports;
use crate::queue::EventQueue;
use std::sync::Arc;
use weft_units::Time;
use weft_workload::job::{Joined, Receipt};

/// Time-outs double up to so many times.
const MOST_BACKED_OFF: u64 = 64;

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Rank `rank` of a job takes part in what switches of the fabric do. Returns whether they do: else its
    /// server's own switches have to.
    pub(crate) fn join_tree(
        &mut self,
        job: u32,
        rank: u32,
        joined: &Joined,
        receipt: Receipt,
    ) -> bool {
        let world = Arc::clone(&self.world);
        let Some(trees) = &world.trees else { return false };
        let Some(set) = trees.number(job, &joined.set) else { return false };
        let jobs = self.config.job.as_ref().expect("a job");
        let host = world.partitioning.hosts[jobs.hosts[rank as usize]].own;
        let Joined { place, number, .. } = *joined;
        let segments = trees.segments(jobs, set, number);
        let age = self.nics.opened_by(host);
        let state = self.reduction.as_mut().expect("trees have states");
        let patience = if state.is_lossy { self.config.transport.rto } else { Time::MAX };
        let own = Contribution::new(segments, trees.window(set), patience);
        let rank = Some((rank, receipt));
        let (queued, slot) = (None, None);
        let one = Operation { host, set, number, place, rank, own, queued, age, slot };
        let id = state.begin(one);
        self.line_up_operation(id);
        self.wake_later(host);
        true
    }

    /// Puts an operation into the round of its NIC, if it can send.
    pub(super) fn line_up_operation(&mut self, id: u32) {
        let trees = self.world.trees.as_ref().expect("operations have trees");
        let state = self.reduction.as_mut().expect("trees have states");
        let tree = |set: u32| trees.tree(state.current[set as usize]);
        let Some(one) = &mut state.operations[id as usize] else { return };
        let Some(tree) = tree(one.set) else { return };
        if one.queued.is_some() || one.slot.is_some_and(|at| at > self.now) {
            return;
        }
        if one.own.ready().is_some() {
            let nic = self.world.partitioning.ports[tree.nic(one.place)].own;
            let (host, plane) = self.nics.owner(nic);
            one.queued = Some(plane);
            self.line_up_in_plane(host, OPERATIONS + id, plane);
        }
    }

    /// Takes an operation out of the round of its NIC: its tree is another one.
    pub(super) fn leave_round(&mut self, host: OwnHost, id: u32) {
        let one = self.reduction.as_mut().expect("trees have states").operation(id);
        if let Some(plane) = one.queued.take() {
            self.nics.round(host, plane).remove(OPERATIONS + id);
        }
    }

    /// How old what stands in a round as `id` is, among what its host has begun.
    pub(crate) fn age_of_operation(&self, id: u32) -> u32 {
        let operation = self
            .reduction
            .as_ref()
            .and_then(|state| state.operations[(id - OPERATIONS) as usize].as_ref());
        operation.map_or(0, |one| one.age)
    }

    /// It is the turn of an operation at the port of its NIC. Returns whether it has sent a packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn pull_operation(&mut self, host: OwnHost, id: u32, plane: u32) -> bool {
        let world = Arc::clone(&self.world);
        let (trees, id) = (world.trees.as_ref().expect("operations have trees"), id - OPERATIONS);
        let state = self.reduction.as_mut().expect("trees have states");
        state.operation(id).queued = None;
        if state.is_over(id) {
            state.end(id);
            return false;
        }
        let set = state.operation(id).set;
        let number = state.current[set as usize];
        let place = state.operation(id).place;
        let tree = trees.tree(number).expect("who is in a round has a tree");
        let nic = world.partitioning.ports[tree.nic(place)].own;
        let Some((turn, segment)) = self.next_of_set(host, id) else { return false };
        let one = self.reduction.as_mut().expect("trees have states").operation(turn);
        let has_payload = one.own.segments.gives(segment, one.place);
        let size = size(self.config, has_payload, one.own.segments.bytes(segment));
        if !self.has_slot(turn, size) {
            return false;
        }
        let (popped, id) = (id, turn);
        let one = self.reduction.as_mut().expect("trees have states").operation(id);
        let is_again = one.own.send();
        let said = Segment { tree: number, number: one.number, segment, ranks: 1 };
        let packet = Packet::segment(size, said);
        if one.own.deadline == Time::MAX && one.own.patience < Time::MAX {
            one.own.deadline = self.now.saturating_add(one.own.patience);
        }
        let (deadline, is_repeated) = (one.own.deadline, one.rank.is_none());
        if has_payload {
            self.counts.totals.packets += 1;
            self.counts.totals.retransmits += u64::from(is_again);
        } else {
            self.counts.totals.control_packets += 1;
        }
        let state = self.reduction.as_mut().expect("trees have states");
        if is_repeated && state.operation(id).own.has_left() {
            state.end(id);
        } else {
            self.line_up_operation(id);
        }
        if popped != id {
            self.line_up_operation(popped);
        }
        self.set_host_alarm(host, deadline);
        let more = !self.nics.round(host, plane).is_empty();
        self.ports.send(self.now, nic, packet, more, &mut self.agenda);
        true
    }

    /// Whose turn it is where that of operation `id` is, and which segment leaves: where messages follow each
    /// other on connections, operations of the same ranks do, too, as far as their windows let them.
    fn next_of_set(&mut self, host: OwnHost, id: u32) -> Option<(u32, u32)> {
        let now = self.now;
        let state = self.reduction.as_mut().expect("trees have states");
        if self.config.service != Service::InOrder {
            return Some((id, state.operation(id).own.ready()?));
        }
        let set = state.operation(id).set;
        let mut first: Option<(u32, u32, u32)> = None;
        for at in 0..state.hosts[host].operations.len() {
            let other = state.hosts[host].operations[at];
            let one = state.operation(other);
            let may = one.set == set && one.slot.is_none_or(|at| at <= now);
            let Some(segment) = may.then(|| one.own.ready()).flatten() else { continue };
            if first.is_none_or(|(number, ..)| one.number < number) {
                first = Some((one.number, other, segment));
            }
        }
        first.map(|(_, id, segment)| (id, segment))
    }

    /// Whether the next packet of an operation, of `size` bytes, may leave its GPU now; if not, it waits for its slot.
    fn has_slot(&mut self, id: u32, size: u16) -> bool {
        let one = self.reduction.as_mut().expect("trees have states").operation(id);
        let (Some((rank, _)), None) = (one.rank, one.slot.take()) else { return true };
        let jobs = self.jobs.as_mut().expect("operations are those of ranks");
        let slot = jobs.next_slot_of_rank(self.now, rank, u64::from(size));
        if slot <= self.now {
            return true;
        }
        let host = one.host;
        one.slot = Some(slot);
        self.set_host_alarm(host, slot);
        false
    }

    /// A packet of a tree has reached a host.
    pub(super) fn get_result(&mut self, host: OwnHost, packet: Packet) {
        self.counts.deliver(self.now, &packet);
        let world = Arc::clone(&self.world);
        let trees = world.trees.as_ref().expect("operations have trees");
        let Segment { tree, number, segment, ranks } = packet.as_segment();
        let set = trees.set_of(tree);
        let state = self.reduction.as_mut().expect("trees have states");
        if state.current[set as usize] != tree {
            return;
        }
        let known = state.known.get(&(host, set, number)).copied();
        if segment == Segment::CALL {
            match known {
                None if state.finished.contains(&(host, set, number)) => {
                    self.repeat(host, set, number);
                }
                // Again: somebody lacks what may have got lost since the tree was built.
                Some(id) if ranks > 0 => {
                    state.operation(id).own.rewind();
                    self.line_up_operation(id);
                    self.pull(host);
                }
                _ => {}
            }
            return;
        }
        let Some(id) = known else { return };
        let one = state.operation(id);
        let all = one.own.segments.ranks();
        assert_eq!(u32::from(ranks), all, "the sum of segment {segment} is not of all ranks");
        if !one.own.receive(segment) {
            return;
        }
        if self.config.packet.ack as u16 == packet.size {
            self.counts.progress.make(self.now);
        } else {
            self.counts.accept(self.now, &packet);
        }
        let one = self.reduction.as_mut().expect("trees have states").operation(id);
        if one.own.patience < Time::MAX {
            one.own.patience = self.config.transport.rto;
            one.own.deadline = self.now.saturating_add(one.own.patience);
        }
        let (deadline, is_complete) = (one.own.deadline, one.own.is_complete());
        if is_complete {
            return self.complete(host, id);
        }
        // It may be sooner than before: nothing has to wait longer any more.
        self.set_host_alarm(host, deadline);
        self.line_up_operation(id);
        self.pull(host);
    }

    /// All results of an operation are here.
    fn complete(&mut self, host: OwnHost, id: u32) {
        let changes = self.world.trees.as_ref().is_some_and(|trees| trees.change());
        let state = self.reduction.as_mut().expect("trees have states");
        let one = state.operation(id);
        let (rank, key) = (one.rank, (host, one.set, one.number));
        state.end(id);
        if changes {
            state.finished.insert(key);
        }
        if let Some((rank, receipt)) = rank {
            self.tell_received(rank, receipt);
        }
    }

    /// Sees to it that a host has an event at `at`.
    fn set_host_alarm(&mut self, host: OwnHost, at: Time) {
        let alarms = &mut self.reduction.as_mut().expect("trees have states").hosts[host].alarms;
        if at < Time::MAX && alarms.last().is_none_or(|next| at < *next) {
            alarms.push(at);
            self.agenda.push_at_host(Event::new(at, Class::Resend, host.0), host);
        }
    }

    /// A `Resend` event: operations send again what timed out, or have their slot.
    pub(crate) fn operations_due(&mut self, host: OwnHost) {
        let state = self.reduction.as_mut().expect("trees have states");
        state.hosts[host].alarms.pop();
        let mut next = Time::MAX;
        for id in state.hosts[host].operations.clone() {
            let one = self.reduction.as_mut().expect("trees have states").operation(id);
            if one.own.deadline <= self.now {
                self.counts.progress.wait(self.now, Time::ZERO);
                let most = Time(self.config.transport.rto.0.saturating_mul(MOST_BACKED_OFF));
                one.own.resend();
                one.own.patience = Time(one.own.patience.0.saturating_mul(2)).min(most);
                one.own.deadline = self.now.saturating_add(one.own.patience);
            }
            next = next.min(one.own.deadline);
            if let Some(at) = one.slot.filter(|at| *at > self.now) {
                next = next.min(at);
            }
            self.line_up_operation(id);
        }
        self.set_host_alarm(host, next);
        self.pull(host);
    }
}

/// What a packet takes on the wire: empty ones are as large as an acknowledgement.
pub(super) fn size(config: &crate::config::RunConfig, has_payload: bool, bytes: u64) -> u16 {
    match has_payload && bytes > 0 {
        true => (bytes as u32 + config.packet.header) as u16,
        false => config.packet.ack as u16,
    }
}
