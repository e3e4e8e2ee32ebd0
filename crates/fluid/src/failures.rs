//! Failures: links that carry less or nothing, what routing learns of it and when, and flows that lose
//! packets until they notice.
//!
//! A flow whose link dies loses what has not crossed it, sends until its window is out, and hears nothing.
//! If the link comes back before that, or routing finds another way, packets behind the gap tell the receiver,
//! and the flow goes on a round trip later; else it waits for its time-out. Receivers that keep what comes
//! out of order lose no more than the link has lost. Only flows that take one path are modelled so.

use crate::agenda::What;
use crate::engine::Engine;
use crate::flows::{Flow, speed};
use std::collections::BTreeMap;
use weft_balance::plan::{ActiveFlow, FlowInfo, LossSignal};
use weft_plan::{Hashes, PlannedFabric};
use weft_sim::{Halt, RunConfig, Silence, Stall};
use weft_transport::{GoBackN, MOST_BACKED_OFF, RecoveryConfig, Rewind};
use weft_units::{PortId, Time};

/// The load of a link, over its capacity, from which on packets wait at it.
const FULL: f64 = 0.9;

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

/// What a flow loses at a link of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// What comes to the end of the link from then on is lost, as long as the link is dead; the last packet that
    /// the flow sends without an answer would be there at `until`.
    since: Time,
    until: Time,
    /// How long a packet takes from its NIC to there, and for how long packets wait at the link.
    away: Time,
    waits: Time,
    /// How many bytes of the wire are lost in a picosecond.
    rate: f64,
}

/// What a flow has lost and does not know yet, though it goes on: it hears of nothing but its timers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owed {
    bytes: f64,
    /// When the first of them times out.
    due: Time,
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
            if !is_first {
                self.move_on_the_way(*port, capacity);
            }
            self.set_capacity(port.0, capacity);
        }
        for cut in self.layout.cuts().collect::<Vec<_>>() {
            let capacity = speed(self.layout.capacity(cut, failures, now));
            self.set_capacity(self.layout.cut(cut), capacity);
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

    fn set_capacity(&mut self, resource: u32, capacity: f64) {
        let before = self.capacities.whole(resource);
        self.capacities.set_whole(resource, capacity);
        self.queues.set_capacity(resource, (before, capacity), self.now);
    }

    /// The links between switches and hosts of a flow's path, and how long after it has left its NIC a
    /// packet is at the end of each.
    fn arrivals(&self, id: u32) -> impl Iterator<Item = (PortId, Time)> {
        let flow = &self.flows[id as usize];
        let (ports, bytes) = (self.config.fabric.ports(), self.packet_bytes(flow));
        let links = flow.forward.as_slice().iter().filter(|one| (**one as usize) < ports.len());
        links.map(|one| PortId(*one)).scan(None, move |passed, port| {
            let sends = ports[port].rate.serialize(bytes);
            let before = passed.map_or(Time::ZERO, |before: Time| before + sends);
            *passed = Some(before + ports[port].delay);
            passed.map(|at| (port, at))
        })
    }

    /// How far away the first link is at which all that a flow sends now is lost, if there is one.
    fn lost_at(&self, id: u32) -> Option<Time> {
        if self.config.failures.is_empty() || self.spreads {
            return None;
        }
        if self.flows[id as usize].forward.as_slice().is_empty() {
            return Some(Time::ZERO);
        }
        let is_down = |(port, at): &(PortId, Time)| {
            self.config.failures.is_down(*port, self.now.saturating_add(*at))
        };
        self.arrivals(id).find(is_down).map(|(_, at)| at)
    }

    /// What crosses `port` is lost from now on.
    fn lose(&mut self, port: PortId) {
        for id in 0..self.flows.len() as u32 {
            let flow = &self.flows[id as usize];
            if flow.is_running && flow.forward.as_slice().contains(&port.0) {
                let arrival = self.arrivals(id).find(|(link, _)| *link == port);
                let away = arrival.map_or(Time::ZERO, |(_, at)| at);
                let rate = self.flows[id as usize].rate;
                let waits = Time(self.queues.wait_at(port.0) as u64);
                self.leave(id);
                self.lose_on_the_way(id, rate * away.0 as f64);
                self.block(id, Gap { since: self.now, until: self.now, away, waits, rate });
            }
        }
        self.unsettle(Time::ZERO);
    }

    /// `port` has another `capacity` from now on, in bytes of the wire a picosecond: what flows have on the way to it
    /// crosses it at that, though it left at the rate before.
    fn move_on_the_way(&mut self, port: PortId, capacity: f64) {
        let before = self.capacities.whole(port.0);
        if self.spreads || capacity <= 0.0 || before <= 0.0 || capacity == before {
            return;
        }
        let crosses = |flow: &Flow| flow.rate > 0.0 && flow.forward.as_slice().contains(&port.0);
        let rates = self.flows.iter().filter(|flow| crosses(flow)).map(|flow| flow.rate);
        let load = rates.sum::<f64>();
        // A link that was not full has nothing waiting that could go faster, and may carry all with less.
        let was_full = load > before * FULL;
        if load <= capacity && !was_full {
            return;
        }
        for id in 0..self.flows.len() as u32 {
            if !crosses(&self.flows[id as usize]) {
                continue;
            }
            let there = self.arrivals(id).find(|(link, _)| *link == port);
            let away = there.map_or(0, |(_, at)| (at - self.config.fabric.ports()[port].delay).0);
            let flow = &self.flows[id as usize];
            let nic = flow.forward.as_slice().first();
            let most = nic.map_or(f64::INFINITY, |nic| self.rates.capacity(*nic));
            let (rate, now) = (flow.rate, self.now);
            let then = (rate * capacity / load).min(most);
            self.flows[id as usize].hold_up((rate - then) * away as f64, now);
        }
    }

    /// So many bytes of a flow had left and are lost all the same.
    fn lose_on_the_way(&mut self, id: u32, bytes: f64) {
        let flow = &mut self.flows[id as usize];
        flow.left = (flow.left + bytes).min(flow.wire as f64);
    }

    /// A flow shares its links from now on, unless it loses all that it sends there.
    pub(crate) fn enter_unless_lost(&mut self, id: u32) {
        match self.lost_at(id) {
            None => self.enter(id),
            Some(away) => {
                let since = self.now.saturating_add(away);
                let rate = self.rate_of_newcomer(id);
                self.block(id, Gap { since, until: since, away, waits: Time::ZERO, rate });
            }
        }
    }

    /// What the NIC of a flow gives it if it shares that with those that are there.
    fn rate_of_newcomer(&self, id: u32) -> f64 {
        let limit = self.limit(id);
        let nic = self.flows[id as usize].forward.as_slice().first();
        let share = nic.map(|nic| self.rates.capacity(*nic) / (self.rates.weight_on(*nic) + 1.0));
        share.filter(|share| *share > 0.0).map_or(limit, |share| share.min(limit))
    }

    /// The last bytes of a flow have left its NIC. If a link fails before they have crossed it, the flow is not
    /// through: returns whether that is so.
    pub(crate) fn loses_last_bytes(&mut self, id: u32) -> bool {
        let (config, now) = (self.config, self.now);
        if config.failures.is_empty() || self.spreads {
            return false;
        }
        // When a link fails before all have crossed it, and for how long they still come there.
        let gap = |(port, away): (PortId, Time)| {
            let last = now.saturating_add(away);
            let turns = config.failures.turning_points(port).into_iter();
            let mut turns = turns.filter(|at| *at > now && *at <= last);
            turns.find(|at| config.failures.is_down(port, *at)).map(|at| (at.until(last), at, away))
        };
        let Some((lost, since, away)) = self.arrivals(id).filter_map(gap).max() else {
            return false;
        };
        let rate = self.flows[id as usize].rate;
        self.leave(id);
        self.lose_on_the_way(id, (rate * lost.0 as f64).max(1.0));
        self.block(id, Gap { since, until: since, away, waits: Time::ZERO, rate });
        self.unsettle(self.latest);
        true
    }

    /// What a flow sends is lost from the beginning of a gap on: it sends what its window lets it, and then waits
    /// for its time-out.
    fn block(&mut self, id: u32, mut gap: Gap) {
        let backs_off = self.config.transport.backs_off;
        let flow = &self.flows[id as usize];
        let longer = match backs_off {
            // As `BackOff`: the second time-out without progress makes the next one longer, not the first.
            true => 1 << flow.time_outs.saturating_sub(1).min(MOST_BACKED_OFF.ilog2()),
            false => 1,
        };
        let rto = Time(self.config.transport.rto.0.saturating_mul(longer));
        if gap.rate <= 0.0 {
            gap.rate = self.rate_of_newcomer(id);
        }
        let lasts = flow.left.min(self.window_of(flow)) / gap.rate;
        gap.until = gap.since.saturating_add(Time(lasts as u64));
        // Where each packet has a timer, the first one counts.
        let from = if self.hears_of_gaps() { gap.until } else { gap.since };
        let sent = gap.away.until(from).max(self.now);
        let what = What::TimeOut { flow: id, version: flow.version };
        self.flows[id as usize].blocked = Some(gap);
        self.agenda.push(sent.saturating_add(rto), what);
    }

    /// Whether what comes after a loss tells the sender of it.
    fn hears_of_gaps(&self) -> bool {
        let recovery = &self.config.transport.recovery;
        let info = recovery.info();
        info.resends_overtaken || info.rateless || recovery.reports()
    }

    /// What a flow may have out without an answer, in bytes of the wire.
    fn window_of(&self, flow: &Flow) -> f64 {
        match self.queues.are_used() {
            true if flow.window.size > 0.0 => flow.window.size,
            true => self.known_window(flow).0,
            false => {
                let window = self.config.transport.congestion.initial_window();
                window.map_or(f64::INFINITY, |bytes| bytes as f64)
            }
        }
    }

    /// Packets pass `port` again.
    fn find_again(&mut self, port: PortId) {
        for id in 0..self.flows.len() as u32 {
            if self.flows[id as usize].forward.as_slice().contains(&port.0) {
                self.hear_of_gap(id, Time::ZERO);
            }
        }
    }

    /// What a flow sends gets through again, what comes so much later to the place of its gap. If it still sends
    /// anything then, its receiver sees the gap, and tells it.
    fn hear_of_gap(&mut self, id: u32, later: Time) {
        let flow = &self.flows[id as usize];
        let (Some(gap), version) = (flow.blocked, flow.version) else { return };
        let at = self.now.saturating_add(later);
        if at < gap.since || at >= gap.until || self.lost_at(id).is_some() {
            return;
        }
        let trip = self.capacities.rtt() + Time(self.queues.wait(flow) as u64);
        let news = gap.away.until(trip);
        // A receiver that keeps what comes out of order misses only what was lost: as if the flow went on at once.
        let kept = match self.config.transport.recovery.info().keeps_order {
            true if self.hears_of_gaps() => at.until(gap.until).min(news),
            true => news,
            false => Time::ZERO,
        };
        self.agenda.push(at + kept.until(news), What::Resume { flow: id, version });
    }

    /// A flow has heard of the gap, or its packets get through again.
    pub(crate) fn resume(&mut self, id: u32, version: u32) {
        if !self.is_blocked(id, version) || self.lost_at(id).is_some() {
            return;
        }
        if !self.hears_of_gaps() {
            return self.go_on_owing(id);
        }
        if let RecoveryConfig::GoBackN(GoBackN { rewind: Rewind::Message, .. }) =
            self.config.transport.recovery
        {
            let flow = &mut self.flows[id as usize];
            flow.left = flow.wire as f64;
        }
        self.reroute(id, LossSignal::Nack);
    }

    /// Only timers tell a flow what it has lost: it goes on with the rest.
    fn go_on_owing(&mut self, id: u32) {
        let rto = self.config.transport.rto;
        let flow = &mut self.flows[id as usize];
        let Some(gap) = flow.blocked.take() else { return };
        let lost = (gap.rate * gap.since.until(self.now).0 as f64).min(flow.left);
        let due = gap.away.until(gap.since).saturating_add(rto);
        let before = flow.owed.unwrap_or(Owed { bytes: 0.0, due });
        flow.owed = Some(Owed { bytes: before.bytes + lost, due: before.due });
        flow.left -= lost;
        flow.version += 1;
        self.enter(id);
    }

    /// All of a flow is through but for what was lost and has not timed out: returns whether there is any.
    pub(crate) fn awaits_timers(&mut self, id: u32) -> bool {
        let Some(Owed { bytes, due }) = self.flows[id as usize].owed.take() else { return false };
        self.leave(id);
        let now = self.now;
        let flow = &mut self.flows[id as usize];
        flow.left = bytes;
        let gap = Gap { since: now, until: now, away: Time::ZERO, waits: Time::ZERO, rate: 1.0 };
        flow.blocked = Some(gap);
        let what = What::TimeOut { flow: id, version: flow.version };
        self.agenda.push(due.max(now), what);
        self.unsettle(self.latest);
        true
    }

    fn is_blocked(&self, id: u32, version: u32) -> bool {
        let flow = &self.flows[id as usize];
        flow.version == version && flow.blocked.is_some()
    }

    /// Nothing of a flow gets through.
    pub(crate) fn time_out(&mut self, id: u32, version: u32) {
        if self.is_blocked(id, version) {
            self.flows[id as usize].time_outs += 1;
            self.reroute(id, LossSignal::TimeOut);
        }
    }

    /// A flow that has lost packets sends them again: its planner may know another path.
    fn reroute(&mut self, id: u32, signal: LossSignal) {
        let flow = &self.flows[id as usize];
        let src = flow.src;
        let info = FlowInfo::from(&flow.subflow);
        let planner = &mut self.hosts[src.0 as usize].planner;
        let route = planner.on_loss(self.now, &info, signal, self.config.fabric);
        let flow = &mut self.flows[id as usize];
        flow.subflow.route = route.unwrap_or(flow.subflow.route);
        flow.version += 1;
        self.find_path(id);
        self.rebalance(src.0);
        if self.lost_at(id).is_none() {
            let flow = &mut self.flows[id as usize];
            (flow.blocked, flow.time_outs) = (None, 0);
            flow.version += 1;
        }
        self.enter_unless_lost(id);
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
            self.follow_routing(id);
        }
    }

    /// A flow under way takes the path that its route leads to now.
    fn follow_routing(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        let is_running = flow.is_running;
        if !is_running && flow.blocked.is_none() {
            return;
        }
        let (path, flow) = (self.path_of(id), &self.flows[id as usize]);
        let is_same = path.forward == flow.forward && path.back == flow.back;
        if is_running && !is_same {
            self.leave(id);
        }
        self.take_path(id, path);
        match is_running {
            _ if is_same => {}
            true => self.enter_unless_lost(id),
            false => {
                let waits = self.flows[id as usize].blocked.map_or(Time::ZERO, |gap| gap.waits);
                self.hear_of_gap(id, waits);
            }
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
            self.follow_routing(own[index]);
        }
    }
}
