//! Failures: links that carry less or nothing, what routing learns of it and when, and flows that lose
//! packets until they notice.
//!
//! A flow whose link dies sends until its window is out, and hears nothing. If the link comes back
//! before that, packets behind the gap tell the receiver, and the flow goes on a round trip later;
//! else it waits for its time-out. Only flows that take one path are modelled so.

use crate::agenda::What;
use crate::engine::Engine;
use crate::flows::{Flow, speed};
use std::collections::BTreeMap;
use weft_balance::plan::{ActiveFlow, FlowInfo, LossSignal};
use weft_plan::{Hashes, PlannedFabric};
use weft_sim::{Halt, RunConfig, Silence, Stall};
use weft_transport::MOST_BACKED_OFF;
use weft_units::{PortId, Time};

/// What routing learns at some time.
#[derive(Debug)]
struct Learning {
    at: Time,
    /// Links known to be dead from then on, sorted.
    dead: Vec<PortId>,
}

/// What routing learns of failures.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    learning: Vec<Learning>,
}

impl Trouble {
    pub(crate) fn new(config: &RunConfig<'_>) -> Trouble {
        let failures = &config.failures;
        let learnt = failures.detected().into_iter();
        let mut learning: Vec<Learning> =
            learnt.map(|one| Learning { at: one.at, dead: one.dead }).collect();
        let info = config.balance.scheme.info();
        if info.weighted || info.informed {
            for change in failures.rate_changes(config.fabric) {
                let before = learning.iter().rfind(|one| one.at <= change.at);
                let dead = before.map(|one| one.dead.clone()).unwrap_or_default();
                learning.push(Learning { at: change.at, dead });
                learning.sort_by_key(|one| one.at);
            }
        }
        learning.dedup_by_key(|one| one.at);
        Trouble { learning }
    }

    /// What hosts and routing know of the fabric at `at`.
    pub(crate) fn network<'a>(&self, config: &RunConfig<'a>, at: Time) -> PlannedFabric<'a> {
        let hashes = Hashes {
            seed: config.seed,
            same_salt: config.switch.same_salt,
            function: config.switch.hash,
        };
        let known = self.learning.iter().rfind(|one| one.at <= at);
        let rate = |port| rate_known(config, known, port, at);
        let capacities = config.fabric.ports().ids().map(rate).collect();
        PlannedFabric::new(config.fabric, capacities, &config.balance, hashes)
    }
}

/// What routing takes a link's rate for, in bits per second.
fn rate_known(config: &RunConfig<'_>, known: Option<&Learning>, port: PortId, at: Time) -> u64 {
    match known {
        None => config.fabric.ports()[port].rate.as_bps(),
        Some(known) if known.dead.binary_search(&port).is_ok() => 0,
        Some(_) => config.failures.rate(config.fabric, port, at).as_bps(),
    }
}

impl Engine<'_> {
    /// Puts all that fails on the agenda.
    pub(crate) fn start_failures(&mut self) {
        let failures = &self.config.failures;
        let mut turns: Vec<Time> =
            failures.ports().flat_map(|port| failures.turning_points(port)).collect();
        turns.sort_unstable();
        turns.dedup();
        for at in turns.into_iter().filter(|at| *at > Time::ZERO) {
            self.agenda.push(at, What::Turn);
        }
        for number in 0..self.trouble.learning.len() as u32 {
            self.agenda.push(self.trouble.learning[number as usize].at, What::Learn(number));
        }
    }

    /// What routing knows from the start, hosts know before they post the first message.
    pub(crate) fn know_from_start(&mut self) {
        if self.trouble.learning.first().is_some_and(|first| first.at == Time::ZERO) {
            self.learn(0);
        }
    }

    /// Links carry what failures leave of them now.
    pub(crate) fn set_capacities(&mut self) {
        let (fabric, failures, now) = (self.config.fabric, &self.config.failures, self.now);
        let is_first = now == Time::ZERO;
        let ports: Vec<PortId> = match is_first {
            true => fabric.ports().ids().collect(),
            false => failures.ports().collect(),
        };
        for port in &ports {
            let capacity = speed(failures.capacity(fabric, *port, now));
            self.capacities.set_whole(port.0, capacity);
            self.queues.set_capacity(port.0, capacity);
        }
        for cut in self.layout.cuts().collect::<Vec<_>>() {
            let capacity = speed(self.layout.capacity(cut, failures, now));
            self.capacities.set_whole(self.layout.cut(cut), capacity);
            self.queues.set_capacity(self.layout.cut(cut), capacity);
        }
        if is_first
            && let Some(job) = &self.config.job
            && let Some(pcie) = job.pcie
        {
            for rank in 0..job.hosts.len() as u32 {
                self.capacities.set_whole(self.layout.pcie(rank), speed(pcie.as_bps()));
            }
        }
        self.unsettle(Time::ZERO);
        for port in ports.into_iter().filter(|_| !is_first) {
            match failures.is_down(port, now) {
                true => self.lose(port),
                false => self.find_again(port),
            }
        }
    }

    fn is_dead(&self, port: PortId) -> bool {
        self.config.failures.is_down(port, self.now)
    }

    /// Whether a link of its path loses everything now.
    pub(crate) fn is_lost(&self, id: u32) -> bool {
        if self.config.failures.is_empty() || self.spreads {
            return false;
        }
        let ports = self.config.fabric.ports().len() as u32;
        let links = self.flows[id as usize].forward.as_slice().iter();
        let mut links = links.filter(|one| **one < ports);
        self.flows[id as usize].forward.as_slice().is_empty()
            || links.any(|one| self.is_dead(PortId(*one)))
    }

    /// What crosses `port` is lost from now on.
    fn lose(&mut self, port: PortId) {
        for id in 0..self.flows.len() as u32 {
            let flow = &self.flows[id as usize];
            if flow.is_running && flow.forward.as_slice().contains(&port.0) {
                self.leave(id);
                self.block(id);
            }
        }
        self.unsettle(Time::ZERO);
    }

    /// A flow sends what its window lets it, and then waits for its time-out.
    pub(crate) fn block(&mut self, id: u32) {
        let backs_off = self.config.transport.backs_off;
        let flow = &self.flows[id as usize];
        let longer = match backs_off {
            true => 1 << flow.time_outs.min(MOST_BACKED_OFF.ilog2()),
            false => 1,
        };
        let rto = Time(self.config.transport.rto.0.saturating_mul(longer));
        let what = What::TimeOut { flow: id, version: flow.version };
        self.flows[id as usize].blocked = Some(self.now);
        self.agenda.push(self.now.saturating_add(rto), what);
    }

    /// Packets pass `port` again: flows whose windows were not out yet hear of the gap.
    fn find_again(&mut self, port: PortId) {
        let reach = self.capacities.window_lasts();
        for id in 0..self.flows.len() as u32 {
            let flow = &self.flows[id as usize];
            let (Some(since), version) = (flow.blocked, flow.version) else { continue };
            let is_here = flow.forward.as_slice().contains(&port.0);
            if is_here && flow.time_outs == 0 && since.until(self.now) < reach {
                let at = self.now + self.capacities.rtt();
                self.agenda.push(at, What::Resume { flow: id, version });
            }
        }
    }

    /// A flow has heard of the gap: it goes on from there.
    pub(crate) fn resume(&mut self, id: u32, version: u32) {
        let flow = &self.flows[id as usize];
        if flow.version == version && flow.blocked.is_some() && !self.is_lost(id) {
            self.go_on(id);
        }
    }

    fn go_on(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        (flow.blocked, flow.time_outs) = (None, 0);
        flow.version += 1;
        self.enter(id);
    }

    /// Nothing of a flow gets through: its planner may know another path.
    pub(crate) fn time_out(&mut self, id: u32, version: u32) {
        let flow = &self.flows[id as usize];
        if flow.version != version || flow.blocked.is_none() {
            return;
        }
        let src = flow.src;
        let info = FlowInfo::from(&flow.subflow);
        let planner = &mut self.hosts[src.0 as usize].planner;
        let route = planner.on_loss(self.now, &info, LossSignal::TimeOut, self.config.fabric);
        let flow = &mut self.flows[id as usize];
        flow.subflow.route = route.unwrap_or(flow.subflow.route);
        flow.version += 1;
        self.find_path(id);
        self.rebalance(src.0);
        match self.is_lost(id) {
            true => {
                self.flows[id as usize].time_outs += 1;
                self.block(id);
            }
            false => self.go_on(id),
        }
    }

    /// Whether flows have heard nothing for too long, and nothing else has happened.
    pub(crate) fn has_stalled(&self) -> bool {
        self.running == 0
            && self.moved_at.until(self.now) >= self.config.stall_after
            && self.rests.iter().all(Option::is_none)
            && self.flows.iter().any(|flow| flow.blocked.is_some())
    }

    /// Who waits for what, of a run that goes no further.
    pub(crate) fn stall(&self) -> Halt {
        const SHOWN: usize = 4;
        let mut missing: BTreeMap<u32, u64> = BTreeMap::new();
        for flow in self.flows.iter().filter(|flow| flow.blocked.is_some()) {
            *missing.entry(flow.subflow.tag).or_default() += flow.subflow.bytes;
        }
        let one = |(tag, bytes): (&u32, &u64)| {
            let message = &self.messages[*tag as usize];
            let ranks = message.owner.map(|owner| (owner.src, owner.dst));
            let name = self.config.message_name(message.name, ranks);
            format!("{name} misses {bytes} of {} bytes", message.bytes)
        };
        let mut lines: Vec<String> = missing.iter().take(SHOWN).map(one).collect();
        let rest = missing.len().saturating_sub(SHOWN);
        lines.extend((rest > 0).then(|| format!("and {rest} more")));
        let silence = Silence { since: self.moved_at, now: self.now, packets: None };
        Halt::Stalled(Box::new(Stall::new(self.config, silence, &lines, self.totals)))
    }

    /// Routing has learnt of links: switches avoid those that are dead, hosts are told, and may spread their
    /// flows anew.
    pub(crate) fn learn(&mut self, number: u32) {
        let (config, now) = (self.config, self.now);
        self.network = self.trouble.network(config, now);
        let known = config.known(now, &self.trouble.learning[number as usize].dead);
        for host in &mut self.hosts {
            known.tell(now, &mut host.planner, config.fabric);
        }
        (0..self.hosts.len() as u32).for_each(|host| self.rebalance(host));
        for id in 0..self.flows.len() as u32 {
            if self.flows[id as usize].is_running {
                self.follow_routing(id);
            }
        }
    }

    /// A flow under way takes the path that its route leads to now.
    fn follow_routing(&mut self, id: u32) {
        let before = self.flows[id as usize].forward;
        self.find_path(id);
        if before.as_slice() == self.flows[id as usize].forward.as_slice() {
            return;
        }
        self.leave(id);
        match self.is_lost(id) {
            true => self.block(id),
            false => self.enter(id),
        }
    }

    /// Lets the planner of a host spread its flows anew, if it asks for that.
    fn rebalance(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        if !state.planner.wants_rebalance() {
            return;
        }
        let is_own =
            |flow: &Flow| flow.src.0 == host && (flow.is_running || flow.blocked.is_some());
        let own: Vec<u32> =
            (0..self.flows.len() as u32).filter(|id| is_own(&self.flows[*id as usize])).collect();
        let active = |id: &u32| {
            let flow = &self.flows[*id as usize];
            let flow_info = FlowInfo::from(&flow.subflow);
            ActiveFlow { flow: flow_info, left: flow.payload_left(self.now) }
        };
        let flows: Vec<ActiveFlow> = own.iter().map(active).collect();
        let mut moved = Vec::new();
        let fabric = self.config.fabric;
        self.hosts[host as usize].planner.rebalance(self.now, &flows, fabric, &mut moved);
        for (index, route) in moved {
            self.flows[own[index] as usize].subflow.route = route;
            if self.flows[own[index] as usize].is_running {
                self.follow_routing(own[index]);
            }
        }
    }
}
