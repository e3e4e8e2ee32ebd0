//! Max-min fair rates of flows that share resources, kept up to date as flows come and go.
//!
//! A resource is a link, or links over which all flows spread alike. A flow uses each of its
//! resources at its rate, and no faster than its limit. Nobody's rate can be raised without lowering
//! that of somebody who has no more (Bertsekas and Gallager, Data Networks, section 6.5.2).
//!
//! A change touches what it can reach: from the resources of the flows that came or went to all flows on
//! them, and on from there. Resources that could carry all their flows at their limits reach nobody.
//!
//! Rates are bytes of the wire in a picosecond.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The most resources that a flow uses.
pub(crate) const MOST: usize = 7;

/// All flows and resources.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    resources: Vec<Resource>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// What changed since the last [`Rates::settle`].
    touched: Vec<u32>,
    fresh: Vec<u32>,
    /// The number of this settling: what has it was reached.
    round: u32,
    /// Rates found so far.
    found: u64,
    heap: BinaryHeap<Level>,
    reached: Vec<u32>,
    affected: Vec<u32>,
}

#[derive(Debug, Default)]
struct Resource {
    capacity: f64,
    /// What its flows would take at their limits, and how many times the rate of one if all were equal.
    wanted: f64,
    weight: f64,
    flows: Vec<Member>,
    round: u32,
    /// While rates are found: what is left, and how many times the rate of those that have none yet.
    left: f64,
    open: f64,
}

/// A flow on a resource: which of its uses that is, and how many times its rate it takes.
#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    number: u32,
    weight: f64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    uses: [Use; MOST],
    count: u8,
    /// Uses of a flow that stands for many: more than fit in `uses`, which are then not used.
    many: Vec<Use>,
    limit: f64,
    rate: f64,
    /// The resource that holds it back, if it is not its limit.
    bottleneck: Option<u32>,
    round: u32,
    is_open: bool,
    is_fresh: bool,
}

/// A resource of a flow, and where the flow stands among those of the resource.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    resource: u32,
    place: u32,
    /// How many times the flow's rate the resource carries for it.
    weight: f64,
}

/// At `rate`, `what` is full or at its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    rate: f64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Resource(u32),
    Flow(u32),
}

impl Eq for Level {}
impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Level) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Level {
    /// The lowest rate is the greatest: it comes first.
    fn cmp(&self, other: &Level) -> Ordering {
        other.rate.total_cmp(&self.rate).then_with(|| other.what.cmp(&self.what))
    }
}

/// What is less than this share of a capacity is nothing: sums of floating-point numbers come so close.
const NOTHING: f64 = 1e-9;

impl Rates {
    /// So many resources, which carry nothing until [`Rates::set_capacity`].
    pub(crate) fn new(resources: usize) -> Rates {
        let resource = |_| Resource::default();
        Rates { resources: (0..resources).map(resource).collect(), ..Rates::default() }
    }

    /// A flow over `resources` that sends at `limit` at most. Its rate is zero until the next
    /// [`Rates::settle`].
    pub(crate) fn add(&mut self, resources: &[u32], limit: f64) -> u32 {
        let uses = resources.iter().map(|resource| (*resource, 1.0));
        self.add_weighted(uses, limit)
    }

    /// As [`Rates::add`], where each resource carries the rate of the flow so many times.
    pub(crate) fn add_weighted(
        &mut self,
        uses: impl Iterator<Item = (u32, f64)>,
        limit: f64,
    ) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() as u32 - 1
        });
        self.flows[id as usize] = Flow { is_fresh: true, limit, ..Flow::default() };
        for (resource, weight) in uses {
            let number = self.flows[id as usize].uses().len() as u32;
            let one = self.resources[resource as usize].join(resource, (id, number), weight, limit);
            self.flows[id as usize].push(one);
        }
        id
    }

    /// Flows on a resource are on each of `links` instead from now on, at equal shares.
    pub(crate) fn divide(&mut self, resource: u32, links: &[u32]) {
        let state = &mut self.resources[resource as usize];
        let members = std::mem::take(&mut state.flows);
        (state.wanted, state.weight) = (0.0, 0.0);
        let Some((first, others)) = links.split_first().filter(|_| !members.is_empty()) else {
            return;
        };
        for Member { flow: id, number, weight } in members {
            let weight = weight / links.len() as f64;
            let flow = &mut self.flows[id as usize];
            if flow.bottleneck == Some(resource) {
                flow.bottleneck = Some(*first);
            }
            let (limit, resources) = (flow.limit, &mut self.resources);
            let mut join = |link: u32, number: u32| {
                resources[link as usize].join(link, (id, number), weight, limit)
            };
            flow.uses_mut()[number as usize] = join(*first, number);
            for link in others {
                let one = join(*link, flow.uses().len() as u32);
                flow.push(one);
            }
        }
        self.touched.extend(links);
    }

    /// The rate of a flow that has just been added, if nobody else has to give way to it; else
    /// [`Rates::settle`] finds it.
    pub(crate) fn grant(&mut self, id: u32) -> Option<f64> {
        let mut rate = self.flows[id as usize].limit;
        for one in self.flows[id as usize].uses() {
            let state = &self.resources[one.resource as usize];
            match (state.is_scarce(), state.flows.len()) {
                (false, _) => {}
                (true, 1) => rate = rate.min(state.capacity / one.weight),
                (true, _) => {
                    let flow = &self.flows[id as usize];
                    self.touched.extend(flow.uses().iter().map(|one| one.resource));
                    self.fresh.push(id);
                    return None;
                }
            }
        }
        let flow = &mut self.flows[id as usize];
        (flow.rate, flow.is_fresh) = (rate, false);
        Some(rate)
    }

    /// The flow ends.
    pub(crate) fn remove(&mut self, id: u32) {
        let flow = std::mem::take(&mut self.flows[id as usize]);
        for one in flow.uses() {
            let state = &mut self.resources[one.resource as usize];
            if state.flows.len() > 1 && state.is_scarce() {
                self.touched.push(one.resource);
            }
            state.flows.swap_remove(one.place as usize);
            state.wanted -= flow.limit * one.weight;
            state.weight -= one.weight;
            if let Some(moved) = state.flows.get(one.place as usize) {
                let uses = self.flows[moved.flow as usize].uses_mut();
                uses[moved.number as usize].place = one.place;
            } else if state.flows.is_empty() {
                (state.wanted, state.weight) = (0.0, 0.0);
            }
        }
        self.free.push(id);
    }

    /// How often a rate was found so far.
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    /// Whether the flows on a resource at their limits would be too much for it.
    pub(crate) fn is_scarce(&self, resource: u32) -> bool {
        self.resources[resource as usize].is_scarce()
    }
    /// What share of a resource of a flow is taken where all go at their limits, of the one that is fullest.
    pub(crate) fn fullest(&self, id: u32) -> f64 {
        let of = |one: &Use| {
            let state = &self.resources[one.resource as usize];
            state.wanted / state.capacity
        };
        self.flows[id as usize].uses().iter().map(of).fold(0.0, f64::max)
    }
    /// How many flows use a resource.
    pub(crate) fn flows_on(&self, resource: u32) -> usize {
        self.resources[resource as usize].flows.len()
    }

    /// The flows on a resource, and how many times its rate each takes.
    pub(crate) fn members(&self, resource: u32) -> impl Iterator<Item = (u32, f64)> {
        self.resources[resource as usize].flows.iter().map(|one| (one.flow, one.weight))
    }
    pub(crate) fn weight_on(&self, resource: u32) -> f64 {
        self.resources[resource as usize].weight
    }
    pub(crate) fn capacity(&self, resource: u32) -> f64 {
        self.resources[resource as usize].capacity
    }
    /// The rate of a flow, as of the last [`Rates::settle`].
    pub(crate) fn rate(&self, id: u32) -> f64 {
        self.flows[id as usize].rate
    }
    /// What a flow sends at most.
    pub(crate) fn limit(&self, id: u32) -> f64 {
        self.flows[id as usize].limit
    }
    /// The resource that holds a flow back; `None`: its limit.
    pub(crate) fn bottleneck(&self, id: u32) -> Option<u32> {
        self.flows[id as usize].bottleneck
    }
    /// A flow sends at `limit` at most from now on. Returns whether rates may follow.
    pub(crate) fn set_limit(&mut self, id: u32, limit: f64) -> bool {
        let flow = &mut self.flows[id as usize];
        let more = limit - std::mem::replace(&mut flow.limit, limit);
        let matters = flow.rate > limit || flow.bottleneck.is_none();
        if matters && !flow.is_fresh {
            flow.is_fresh = true;
            self.fresh.push(id);
        }
        for one in self.flows[id as usize].uses() {
            let state = &mut self.resources[one.resource as usize];
            let was_scarce = state.is_scarce();
            state.wanted += more * one.weight;
            if matters && (was_scarce || state.is_scarce()) {
                self.touched.push(one.resource);
            }
        }
        matters
    }

    /// The resource carries so much from now on.
    pub(crate) fn set_capacity(&mut self, resource: u32, capacity: f64) {
        let state = &mut self.resources[resource as usize];
        if state.capacity != capacity {
            state.capacity = capacity;
            if !state.flows.is_empty() {
                self.touched.push(resource);
            }
        }
    }
    /// Finds the rates anew, and gives every flow whose rate may have changed to `each`, with the
    /// old one and the new one.
    pub(crate) fn settle(&mut self, mut each: impl FnMut(u32, f64, f64)) {
        self.round += 1;
        self.reach();
        self.found += self.affected.len() as u64;
        self.heap.clear();
        for id in &self.reached {
            let state = &mut self.resources[*id as usize];
            state.left = state.capacity;
            state.open = state.flows.iter().map(|one| one.weight).sum();
        }
        // What flows that were not reached take stays theirs: they are on none of these.
        for id in &self.affected {
            let flow = &mut self.flows[*id as usize];
            flow.is_open = true;
            // A resource of its own that is as narrow stops it as soon.
            let is_stopped = |one: &Use| {
                let state = &self.resources[one.resource as usize];
                state.round == self.round && state.capacity <= flow.limit * one.weight
            };
            if !flow.uses().iter().any(is_stopped) {
                self.heap.push(Level { rate: flow.limit, what: What::Flow(*id) });
            }
        }
        for id in &self.reached {
            if let Some(level) = self.resources[*id as usize].level(*id) {
                self.heap.push(level);
            }
        }
        while let Some(Level { rate, what }) = self.heap.pop() {
            match what {
                What::Flow(id) => self.close(id, rate, None, &mut each),
                What::Resource(id) => {
                    let state = &self.resources[id as usize];
                    let Some(now) = state.level(id) else { continue };
                    if now.rate > rate * (1.0 + NOTHING) {
                        self.heap.push(now);
                        continue;
                    }
                    for place in 0..self.resources[id as usize].flows.len() {
                        let one = self.resources[id as usize].flows[place];
                        self.close(one.flow, now.rate, Some(id), &mut each);
                    }
                }
            }
        }
        self.touched.clear();
        self.fresh.clear();
    }

    /// Gives an open flow its rate.
    fn close(
        &mut self,
        id: u32,
        rate: f64,
        bottleneck: Option<u32>,
        each: &mut impl FnMut(u32, f64, f64),
    ) {
        let flow = &mut self.flows[id as usize];
        if !flow.is_open {
            return;
        }
        flow.is_open = false;
        flow.bottleneck = bottleneck;
        let old = std::mem::replace(&mut flow.rate, rate);
        for one in self.flows[id as usize].uses() {
            let state = &mut self.resources[one.resource as usize];
            if state.round == self.round {
                state.left -= rate * one.weight;
                state.open -= one.weight;
            }
        }
        each(id, old, rate);
    }

    /// The resources that matter and the flows on them, from what was touched on.
    fn reach(&mut self) {
        self.reached.clear();
        self.affected.clear();
        let round = self.round;
        for resource in &self.touched {
            let state = &mut self.resources[*resource as usize];
            if state.round != round && state.is_scarce() {
                state.round = round;
                self.reached.push(*resource);
            }
        }
        for id in &self.fresh {
            let flow = &mut self.flows[*id as usize];
            if flow.is_fresh && flow.round != round {
                (flow.round, flow.is_fresh) = (round, false);
                self.affected.push(*id);
            }
        }
        // Those on resources that have just become plentiful may have been held back there.
        for resource in &self.touched {
            let state = &self.resources[*resource as usize];
            if state.round != round {
                for one in &state.flows {
                    let flow = &mut self.flows[one.flow as usize];
                    if flow.round != round && flow.rate < flow.limit * (1.0 - NOTHING) {
                        flow.round = round;
                        self.affected.push(one.flow);
                    }
                }
            }
        }
        let (mut resource, mut flow) = (0, 0);
        loop {
            if let Some(id) = self.reached.get(resource) {
                resource += 1;
                for one in &self.resources[*id as usize].flows {
                    let flow = &mut self.flows[one.flow as usize];
                    if flow.round != round {
                        flow.round = round;
                        self.affected.push(one.flow);
                    }
                }
            } else if let Some(id) = self.affected.get(flow) {
                flow += 1;
                for one in self.flows[*id as usize].uses() {
                    let state = &mut self.resources[one.resource as usize];
                    if state.round != round && state.is_scarce() {
                        state.round = round;
                        self.reached.push(one.resource);
                    }
                }
            } else {
                break;
            }
        }
    }
}

impl Resource {
    /// A flow uses it, which has the number of `resource`, so many times. Returns that use.
    fn join(&mut self, resource: u32, (flow, number): (u32, u32), weight: f64, limit: f64) -> Use {
        let place = self.flows.len() as u32;
        self.flows.push(Member { flow, number, weight });
        self.wanted += limit * weight;
        self.weight += weight;
        Use { resource, place, weight }
    }
    /// Whether its flows at their limits would be too much for it.
    fn is_scarce(&self) -> bool {
        self.wanted > self.capacity * (1.0 + NOTHING)
    }
    /// When it is full, if its open flows grow alike.
    fn level(&self, id: u32) -> Option<Level> {
        let rate = (self.left / self.open).max(0.0);
        (self.open > NOTHING).then_some(Level { rate, what: What::Resource(id) })
    }
}

impl Flow {
    fn push(&mut self, one: Use) {
        if self.many.is_empty() && usize::from(self.count) < MOST {
            self.uses[usize::from(self.count)] = one;
            self.count += 1;
        } else {
            if self.many.is_empty() {
                self.many.extend_from_slice(&self.uses);
            }
            self.many.push(one);
        }
    }
    fn uses(&self) -> &[Use] {
        match self.many.is_empty() {
            true => &self.uses[..usize::from(self.count)],
            false => &self.many,
        }
    }
    fn uses_mut(&mut self) -> &mut [Use] {
        match self.many.is_empty() {
            true => &mut self.uses[..usize::from(self.count)],
            false => &mut self.many,
        }
    }
}

#[cfg(test)]
mod tests;
