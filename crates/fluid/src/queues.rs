//! How long packets wait at each link, by what the flows that meet there send.
//!
//! A flow comes to a link with what its window lets it send in a round trip, `w / (t + d)` where packets
//! wait `d` there and take `t` on the rest of the way and back, but no faster than its share of its NIC
//! or than other links let it. As long as all together are more than the link carries, the wait grows by
//! what is too much, and each flow gets the share of the link that it has of all that comes, since a
//! queue is first in, first out; who comes later has it when what was there has left. That ends where
//! windows just fill the link: `sum min(x, w / (t + d)) = C`. If a flow ends, what waits keeps the link
//! busy while the others become faster; if flows send less than the link carries, the queue drains.
//!
//! What a flow sends until its window is out, and what has left its NIC for good, is there whatever others do. Where it
//! fills the buffer of a switch that pauses its links, it waits before these ([`crate::buffers`]).
//!
//! Acknowledgements wait in the same queues on their way back, unless control has priority.
//!
//! Only links behind switches have queues: a NIC sends when its turn has come. The links of a cut over
//! which all flows spread alike have one. Where packets are sprayed over all links alike, the wait there
//! is in [`crate::capacities`].

use crate::agenda::What;
use crate::capacities::marked_from;
use crate::engine::Engine;
use crate::flows::Flow;
use crate::paths::Layout;
use crate::rates::Rates;
use crate::rounds::RING;
use crate::sent::{SENDING, Unsent};
use rustc_hash::FxHashMap;
use weft_balance::scheme::PathUse;
use weft_sim::RunConfig;
use weft_units::Time;

/// Waits are taken into account where they changed by this share of themselves and of a round trip.
const STEP: f64 = 0.04;
/// A queue that grows or drains is looked at each round trip, or as often in the time that packets wait.
const LOOKS: f64 = 4.0;
/// What comes to a link is too much if it is this many times what the link carries.
const OVERLOAD: f64 = 1.02;
/// No wait is longer than so many of the largest windows take.
const MOST_WINDOWS: f64 = 64.0;
/// Waits are found to this share of a round trip.
const EXACT: f64 = 0.001;

/// The queue before a link, but for how long packets wait there.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// How many queues it stands for: those of the links of a cut; none, if these differ.
    queues: u32,
    /// Switches mark if it is as long.
    marked_at: f64,
    /// For how long packets have been marked until `since`, in picoseconds.
    marked: f64,
    since: Time,
    /// How many times what the link carries comes; 1 if that is not too much.
    overload: f64,
    /// Flows whose acknowledgements come by, and which of the links on their way back that is.
    back: Vec<(u32, u8)>,
    /// Whether it is to be looked at, and when it was.
    is_touched: bool,
    looked_at: Time,
}

/// What waits before a link that is paused, since the buffer behind it is full.
#[derive(Clone, Copy, Debug)]
struct HeldBack {
    /// The link whose queue fills that.
    by: u32,
    /// Bytes, and how many of them are let in in a picosecond.
    bytes: f64,
    drain: f64,
}

/// All queues.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Of each resource; empty, if queues delay nobody.
    of: Vec<Queue>,
    /// How long packets wait at each, in picoseconds; apart, since it is looked up most.
    waits: Vec<f64>,
    /// At links that are paused. Never iterated.
    held_back: FxHashMap<u32, Vec<HeldBack>>,
    /// Links where that has changed.
    paused: Vec<u32>,
    /// Bytes at which switches mark.
    mark_bytes: f64,
    rtt: Time,
    /// Queues to be looked at, and those that flows have just left.
    touched: Vec<u32>,
    left: Vec<u32>,
    /// Flows whose rates have changed, and those to be looked at.
    pub(crate) changed: Vec<u32>,
    flows: Vec<u32>,
    /// When the next look is due.
    due: Time,
    arrivals: Vec<Arrival>,
}

/// What a flow, or a ring, brings to a link.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// How many times its rate, and its rate at most.
    weight: f64,
    most: f64,
    window: f64,
    /// What has not left the queue yet: no more than that waits there.
    left: f64,
    /// Whether its NIC has sent all of it, so that what is left waits here.
    has_left: bool,
    /// For how long it has been sending, in picoseconds.
    age: f64,
    /// The round trip without this wait, and how much of the wait adds to it.
    trip: f64,
    share: f64,
}

impl Arrival {
    /// What it brings if packets wait so long.
    fn rate(&self, wait: f64) -> f64 {
        let allowed = self.window / (self.trip + self.share * wait);
        self.weight * self.most.min(allowed).min(self.left / wait)
    }
    /// What it has brought in the mean since `passed` if packets waited so long: until its window was out nothing held
    /// it up.
    fn has_brought(&self, wait: f64, passed: f64) -> f64 {
        let out = self.window.min(self.left) / self.most;
        let burst = ((out - self.age + passed) / passed).clamp(0.0, 1.0).min(self.age / passed);
        burst * self.weight * self.most + (1.0 - burst) * self.rate(wait)
    }
}

impl Queues {
    /// Of a fabric where a round trip takes `rtt`; `are_used`: they delay flows.
    pub(crate) fn new(
        config: &RunConfig<'_>,
        layout: &Layout<'_>,
        rtt: Time,
        are_used: bool,
    ) -> Queues {
        let all = if are_used { layout.len() } else { 0 };
        let is_sprayed = config.balance.scheme.info().paths != PathUse::One;
        let queue = |resource: u32| {
            let is_none = layout.is_nic(resource) || is_sprayed && layout.is_cut(resource);
            let queues = if is_none { 0 } else { layout.count(resource) as u32 };
            Queue { queues, marked_at: f64::INFINITY, overload: 1.0, ..Queue::default() }
        };
        Queues {
            of: (0..all).map(queue).collect(),
            waits: vec![0.0; all as usize],
            held_back: FxHashMap::default(),
            paused: Vec::new(),
            mark_bytes: marked_from(config),
            rtt,
            touched: Vec::new(),
            left: Vec::new(),
            changed: Vec::new(),
            flows: Vec::new(),
            due: Time::MAX,
            arrivals: Vec::new(),
        }
    }

    /// Whether queues delay flows.
    pub(crate) fn are_used(&self) -> bool {
        !self.of.is_empty()
    }
    /// Queues delay nobody.
    pub(crate) fn leave_out(&mut self) {
        self.of.clear();
        self.waits.clear();
    }

    /// A resource carries so many bytes a picosecond from now on.
    pub(crate) fn set_capacity(
        &mut self,
        resource: u32,
        (before, capacity): (f64, f64),
        now: Time,
    ) {
        let Some(queue) = self.of.get_mut(resource as usize) else { return };
        queue.marked_at = self.mark_bytes * f64::from(queue.queues) / capacity;
        let wait = self.waits[resource as usize];
        if wait > 0.0 && before > 0.0 && capacity > 0.0 && capacity != before {
            // As many bytes as before.
            self.set_wait(resource, wait * before / capacity, now);
            self.touch(resource);
            self.left.push(resource);
        }
    }
    /// The queues of the links of a cut may differ from now on.
    pub(crate) fn divide(&mut self, resource: u32, links: &[u32], now: Time) {
        if !self.has(resource) {
            return;
        }
        let marked = self.marked_until(resource, now);
        let queue = &mut self.of[resource as usize];
        queue.queues = 0;
        let (wait, overload, looked_at) =
            (self.waits[resource as usize], queue.overload, queue.looked_at);
        self.waits[resource as usize] = 0.0;
        for link in links {
            let queue = &mut self.of[*link as usize];
            (queue.marked, queue.since) = (marked, now);
            (queue.overload, queue.looked_at) = (overload, looked_at);
            self.waits[*link as usize] = wait;
            if wait > 0.0 {
                self.touch(*link);
            }
        }
    }

    fn has(&self, link: u32) -> bool {
        self.of.get(link as usize).is_some_and(|queue| queue.queues > 0)
    }
    /// Links with queues that packets of a flow come by, with how many of them do.
    fn forward(&self, flow: &Flow) -> impl Iterator<Item = (u32, f64)> {
        flow.forward_links().filter(|(link, _)| self.has(*link))
    }
    /// How long packets of a flow and their acknowledgements wait in the mean, in picoseconds.
    pub(crate) fn wait(&self, flow: &Flow) -> f64 {
        let back = flow.back.as_slice().iter().map(|link| self.wait_of(flow, *link));
        self.wait_there(flow) + back.sum::<f64>()
    }
    /// The same without acknowledgements.
    pub(crate) fn wait_there(&self, flow: &Flow) -> f64 {
        flow.forward_links().map(|(link, share)| self.wait_of(flow, link) * share).sum()
    }
    /// How long packets or acknowledgements of a flow wait at a link, in picoseconds. What it brings to a full buffer
    /// itself waits where that link's queue is.
    fn wait_of(&self, flow: &Flow, link: u32) -> f64 {
        let own = self.wait_at(link);
        match self.held_back.get(&link) {
            None => own,
            Some(all) => {
                let others = all.iter().filter(|one| !flow.forward.as_slice().contains(&one.by));
                let bytes: f64 = others.map(|one| one.bytes).sum();
                own + bytes / all.iter().map(|one| one.drain).sum::<f64>()
            }
        }
    }
    /// So many bytes wait before a link that is paused, since the queue of link `by` fills the buffer behind it, which
    /// lets in `drain` of them in a picosecond.
    pub(crate) fn hold_back(&mut self, link: u32, by: u32, (bytes, drain): (f64, f64), now: Time) {
        let marked = self.marked_until(link, now);
        let all = self.held_back.entry(link).or_default();
        let place = all.iter().position(|one| one.by == by);
        let old = place.map_or(0.0, |place| all[place].bytes / all[place].drain);
        let wait = if bytes > 0.0 { bytes / drain } else { 0.0 };
        let moves = (wait - old).abs() > STEP * (self.rtt.0 as f64).max(old);
        if moves || (wait == 0.0) != (old == 0.0) {
            place.map(|place| all.swap_remove(place));
            if wait > 0.0 {
                all.push(HeldBack { by, bytes, drain });
            }
            let queue = &mut self.of[link as usize];
            (queue.marked, queue.since) = (marked, now);
            self.paused.push(link);
        }
        if self.held_back.get(&link).is_some_and(Vec::is_empty) {
            self.held_back.remove(&link);
        }
    }
    /// How long packets wait at a link, in picoseconds.
    pub(crate) fn wait_at(&self, link: u32) -> f64 {
        self.waits.get(link as usize).copied().unwrap_or(0.0)
    }
    /// Whether packets of a flow are marked now.
    pub(crate) fn marks(&self, flow: &Flow) -> bool {
        self.forward(flow).any(|(link, _)| self.is_marking(link))
    }
    /// For how long packets of a flow would have been marked until `now`, had it always been there; as many
    /// times less as only some of them are.
    pub(crate) fn marked(&self, flow: &Flow, now: Time) -> f64 {
        self.forward(flow).map(|(link, share)| share * self.marked_until(link, now)).sum()
    }
    /// How many times too much comes to the link of a flow where that is most.
    pub(crate) fn overload(&self, flow: &Flow) -> f64 {
        let overload = |(link, _): (u32, f64)| self.of[link as usize].overload;
        self.forward(flow).map(overload).fold(1.0, f64::max)
    }
    fn is_marking(&self, link: u32) -> bool {
        let marks =
            |all: &Vec<HeldBack>| all.iter().map(|one| one.bytes).sum::<f64>() >= self.mark_bytes;
        self.waits[link as usize] >= self.of[link as usize].marked_at
            || self.held_back.get(&link).is_some_and(marks)
    }
    fn marked_until(&self, link: u32, now: Time) -> f64 {
        let queue = &self.of[link as usize];
        let more = if self.is_marking(link) { queue.since.until(now).0 as f64 } else { 0.0 };
        queue.marked + more
    }

    /// Acknowledgements of a flow come by from now on; it is told its places among those on each link.
    pub(crate) fn enter(&mut self, id: u32, flow: &mut Flow) {
        for (number, link) in (0..).zip(flow.back.as_slice()) {
            if let Some(queue) = self.of.get_mut(*link as usize) {
                flow.window.places[usize::from(number)] = queue.back.len() as u32;
                queue.back.push((id, number));
            }
        }
    }
    /// A flow is gone, and its acknowledgements.
    pub(crate) fn leave(&mut self, id: u32, flows: &mut [Flow]) {
        let flow = &flows[id as usize];
        let links: Vec<u32> = self.forward(flow).map(|one| one.0).collect();
        self.left.extend(&links);
        links.into_iter().for_each(|link| self.touch(link));
        let (back, places) = (flow.back, flow.window.places);
        for ((number, place), link) in (0..).zip(places).zip(back.as_slice()) {
            let Some(queue) = self.of.get_mut(*link as usize) else { continue };
            let gone = queue.back.swap_remove(place as usize);
            debug_assert_eq!(gone, (id, number), "another flow's place");
            if let Some((moved, number)) = queue.back.get(place as usize) {
                flows[*moved as usize].window.places[usize::from(*number)] = place;
            }
        }
    }
    /// What a flow brings to its links may change.
    pub(crate) fn touch_all(&mut self, flow: &Flow, rates: &Rates) {
        for (link, _) in flow.forward_links() {
            if self.has(link) && (self.waits[link as usize] > 0.0 || rates.is_scarce(link)) {
                self.touch(link);
            }
        }
    }
    fn touch(&mut self, link: u32) {
        if !self.of[link as usize].is_touched {
            self.of[link as usize].is_touched = true;
            self.touched.push(link);
        }
    }
    fn set_wait(&mut self, link: u32, wait: f64, now: Time) {
        let marked = self.marked_until(link, now);
        let queue = &mut self.of[link as usize];
        (queue.marked, queue.since) = (marked, now);
        self.waits[link as usize] = wait;
    }
    /// When a queue that was looked at may have changed.
    fn due(&self, link: u32) -> Time {
        let after = self.rtt.0.max((self.waits[link as usize] / LOOKS) as u64);
        self.of[link as usize].looked_at.saturating_add(Time(after))
    }
}

impl Engine<'_> {
    /// Flows have ended: what waits keeps their links busy, and others are as fast as that makes them.
    pub(crate) fn drain_queues(&mut self) {
        let mut left = std::mem::take(&mut self.queues.left);
        left.sort_unstable();
        left.dedup();
        for link in left.drain(..) {
            let old = self.queues.waits[link as usize];
            let was_overloaded = self.queues.of[link as usize].overload > 1.0;
            if old == 0.0 && !was_overloaded {
                continue;
            }
            let wait = self.find_wait(link, 0.0).0.min(old);
            if wait < old || was_overloaded {
                self.queues.set_wait(link, wait, self.now);
                self.note_queue(link);
                self.queues.of[link as usize].overload = 1.0;
                for id in self.flows_on(link) {
                    self.allow(id);
                }
                let Queues { flows, of, .. } = &mut self.queues;
                flows.extend(of[link as usize].back.iter().map(|one| one.0));
            }
        }
        self.queues.left = left;
        let mut flows = Vec::new();
        self.flows_at_paused(&mut flows);
        flows.iter().for_each(|id| {
            self.allow(*id);
        });
        self.queues.flows.append(&mut flows);
    }

    /// Adds the flows, and those of acknowledgements, on links that are paused for longer or shorter now.
    fn flows_at_paused(&mut self, flows: &mut Vec<u32>) {
        let mut paused = std::mem::take(&mut self.queues.paused);
        paused.sort_unstable();
        paused.dedup();
        for link in paused.drain(..) {
            flows.extend(self.queues.of[link as usize].back.iter().map(|one| one.0));
            flows.extend(self.flows_on(link));
        }
        self.queues.paused = paused;
    }

    /// Flows with windows on a link.
    pub(crate) fn flows_on(&self, link: u32) -> Vec<u32> {
        let flows = self.rates.members(link).map(|(rates, _)| self.by_rates[rates as usize]);
        flows.filter(|id| id & RING == 0).map(|id| id & !SENDING).collect()
    }

    /// Queues follow what rates have become, a round trip later.
    pub(crate) fn expect_queues(&mut self) {
        let mut changed = std::mem::take(&mut self.queues.changed);
        let mut held_up = Vec::new();
        for id in changed.drain(..) {
            if self.flows[id as usize].is_running {
                if self.is_held_up(id) {
                    held_up.push(id);
                }
                self.expect_last_bytes(id);
                let flow = &self.flows[id as usize];
                if flow.window.is_short(self.limit(id)) || self.queues.wait(flow) > 0.0 {
                    self.queues.flows.push(id);
                }
                self.queues.touch_all(flow, &self.rates);
            }
        }
        self.queues.changed = changed;
        held_up.into_iter().for_each(|id| self.send_apart(id));
        let queues = &self.queues;
        let soon = self.now.saturating_add(queues.rtt);
        let due = match queues.flows.is_empty() {
            true => queues.touched.iter().map(|link| queues.due(*link)).min(),
            false => Some(soon),
        };
        let due = due.unwrap_or(Time::MAX).min(self.windows_due()).max(soon);
        if due < queues.due && due < Time::MAX {
            self.queues.due = due;
            self.agenda.push(due, What::Queues);
        }
    }

    /// Finds how long packets wait now, and what windows allow then.
    pub(crate) fn look_at_queues(&mut self) {
        if self.now < self.queues.due {
            return;
        }
        self.queues.due = Time::MAX;
        let mut flows = std::mem::take(&mut self.queues.flows);
        self.windows_at_end(&mut flows);
        flows.sort_unstable();
        flows.dedup();
        flows.iter().for_each(|id| self.move_window(*id));
        let mut touched = std::mem::take(&mut self.queues.touched);
        touched.sort_unstable();
        let mut later = Vec::new();
        for link in touched.drain(..) {
            if self.queues.due(link) > self.now {
                later.push(link);
                continue;
            }
            self.queues.of[link as usize].is_touched = false;
            if self.look_at_queue(link) {
                flows.extend(self.queues.of[link as usize].back.iter().map(|one| one.0));
                flows.extend(self.flows_on(link));
            }
        }
        self.flows_at_paused(&mut flows);
        later.append(&mut self.queues.touched);
        self.queues.touched = later;
        flows.sort_unstable();
        flows.dedup();
        let mut has_changed = false;
        for id in flows.drain(..) {
            self.move_window(id);
            has_changed |= self.allow(id);
        }
        self.queues.flows = flows;
        match has_changed {
            true => self.unsettle(Time::ZERO),
            false => self.expect_queues(),
        }
    }

    /// Returns whether packets wait longer at a link, or not as long, as when it was looked at.
    fn look_at_queue(&mut self, link: u32) -> bool {
        let rtt = self.queues.rtt.0 as f64;
        let queue = &self.queues.of[link as usize];
        let (old, was) = (self.queues.waits[link as usize], queue.overload);
        let passed = queue.looked_at.until(self.now).0 as f64;
        // Before it was touched nothing changed.
        let passed = passed.min(rtt.max(old / LOOKS));
        let (wait, overload) = self.find_wait(link, passed);
        let queue = &mut self.queues.of[link as usize];
        (queue.overload, queue.looked_at) = (overload, self.now);
        let moves = (wait - old).abs() > STEP * rtt.max(old);
        let has_changed = moves || (wait == 0.0) != (old == 0.0);
        if has_changed {
            self.queues.set_wait(link, wait, self.now);
            self.note_queue(link);
        }
        if moves {
            self.queues.touch(link);
        }
        has_changed || overload != was
    }

    /// How long packets wait at a link after so many picoseconds more, and the overload.
    fn find_wait(&mut self, link: u32, passed: f64) -> (f64, f64) {
        let capacity = self.rates.capacity(link);
        let old = self.queues.waits[link as usize];
        let flows = self.rates.flows_on(link);
        if capacity <= 0.0 || flows == 0 || (old == 0.0 && !self.rates.is_scarce(link)) {
            return (0.0, 1.0);
        }
        let mut arrivals = std::mem::take(&mut self.queues.arrivals);
        arrivals.clear();
        let all = self.rates.members(link).map(|(rates, weight)| self.arrival(link, rates, weight));
        arrivals.extend(all);
        let load = |wait: f64| arrivals.iter().map(|one| one.rate(wait)).sum::<f64>() / capacity;
        let brought = |one: &Arrival| one.has_brought(old, passed.max(1.0));
        let slope = arrivals.iter().map(brought).sum::<f64>() / capacity - 1.0;
        let queues = f64::from(self.queues.of[link as usize].queues);
        let most = MOST_WINDOWS * self.control.most * queues / capacity;
        let gone = arrivals.iter().filter(|one| one.has_left).map(|one| one.weight * one.left);
        let grown = (old + passed * slope.max(0.0)).max(gone.sum::<f64>() / capacity).min(most);
        let wait = if load(0.0) < 1.0 {
            (old + passed * slope.min(0.0)).max(0.0)
        } else if load(grown) >= 1.0 {
            grown
        } else {
            let (mut low, mut high) = (0.0, grown);
            while high - low > EXACT * self.queues.rtt.0 as f64 {
                let middle = (low + high) / 2.0;
                match load(middle) >= 1.0 {
                    true => low = middle,
                    false => high = middle,
                }
            }
            low
        };
        let comes = load(wait);
        self.queues.arrivals = arrivals;
        (wait, if comes > OVERLOAD { comes } else { 1.0 })
    }

    /// What a flow of [`crate::rates::Rates`] brings to a link.
    fn arrival(&self, link: u32, rates: u32, weight: f64) -> Arrival {
        let is_held_here = self.rates.bottleneck(rates).is_none_or(|other| other == link);
        let rate = self.rates.rate(rates);
        let id = self.by_rates[rates as usize];
        if id & RING != 0 {
            // As many flows as its ranks have on this link.
            let most = if is_held_here { self.rates.limit(rates) } else { rate };
            let trip = self.queues.rtt.0 as f64;
            let (window, left) = (self.control.first, f64::INFINITY);
            return Arrival {
                weight,
                most,
                window,
                left,
                has_left: false,
                age: f64::INFINITY,
                trip,
                share: 1.0,
            };
        }
        let flow = &self.flows[id as usize];
        let most = match is_held_here {
            false => rate,
            true => match self.pace(flow) {
                None => self.limit(id),
                Some(pace) => pace.max(rate).min(self.limit(id)),
            },
        };
        let share = weight / f64::from(flow.subflows);
        let here = share * self.queues.waits[link as usize];
        let trip = flow.window.trip + self.queues.wait(flow) - here;
        let left = flow.left_at(self.now) / f64::from(flow.subflows);
        let age = flow.began.until(self.now).0 as f64;
        let has_left = is_held_here && matches!(flow.unsent, Unsent::Nothing);
        Arrival { weight, most, window: flow.window.size, left, has_left, age, trip, share }
    }

    /// What each subflow at the NIC of a flow gets if all have as much to send.
    pub(crate) fn fair_of_nic(&self, flow: &Flow) -> f64 {
        let nic = flow.forward.as_slice()[0];
        self.rates.capacity(nic) / self.rates.weight_on(nic)
    }
}
