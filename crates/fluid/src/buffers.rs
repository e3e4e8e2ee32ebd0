//! Which switches would run out of buffer. By packets they would pause ports (PFC) or lose packets there;
//! by rates they do neither, so that a run has to say how many there are.
//!
//! What waits at all ports of a switch fills its buffer. Where queues do not follow windows ([`crate::queues`]), as with
//! packets that are sprayed, a flow that a link holds up behind its NIC goes on sending until the next one is through: what
//! waits then is what it sends more than the link takes of it, and no more than its window is beyond a round trip.

use crate::engine::Engine;
use crate::flows::Flow;
use crate::paths::Layout;
use crate::rounds::RING;
use crate::sent::{HELD_UP, SENDING};
use std::collections::BTreeMap;
use weft_fabric::Node;
use weft_sim::{Buffer, RunConfig, ports};
use weft_units::PortId;

/// What flows leave at a link is added up anew when it has so many times as many of them, or as few.
const MORE: f64 = 1.25;

/// What waits at each switch, and which of them have been full.
#[derive(Debug)]
pub(crate) struct Buffers {
    room: Room,
    /// Bytes that wait before each link of a resource, and at each switch.
    queued: Vec<f64>,
    held: Vec<f64>,
    is_full: Vec<bool>,
    /// Flows that have begun since rates were found, where queues do not follow windows.
    fresh: Vec<u32>,
    /// How many flows a resource had when what they leave there was added up.
    counted: Vec<f64>,
}

/// What a flow, or each of its subflows, sends to a resource.
#[derive(Clone, Copy, Debug)]
struct Sends {
    /// How many times its rate the resource carries.
    weight: f64,
    /// Bytes in a picosecond: what it has, and what its NIC could send.
    rate: f64,
    pace: f64,
    /// Bytes that have not crossed yet.
    left: f64,
    is_held_here: bool,
}

/// What a switch has room for, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Room {
    /// A queue drops what is beyond.
    Queue(f64),
    /// A queue drops what is beyond `alpha` times what is free of `shared`.
    QueueShare { shared: f64, alpha: f64 },
    /// An ingress that holds more pauses its link.
    Ingress(f64),
    /// An ingress pauses its link if it holds more, beyond its reserve, than `alpha` times what is free of `shared`.
    IngressShare { shared: f64, alpha: f64, reserve: f64 },
}

impl Room {
    fn new(config: &RunConfig<'_>) -> Room {
        let RunConfig { fabric, failures, packet, switch, .. } = config;
        match (switch.buffer, &switch.pfc) {
            (Buffer::Shared { bytes, .. }, Some(pfc)) if pfc.threshold.is_none() => {
                let aside = ports::pfc_set_aside(fabric, failures, packet, pfc);
                let (shared, reserve) =
                    (bytes.saturating_sub(aside) as f64, pfc.own_bytes() as f64);
                Room::IngressShare { shared, alpha: pfc.alpha, reserve }
            }
            (_, Some(pfc)) => Room::Ingress(pfc.own_bytes() as f64),
            (Buffer::Shared { bytes, alpha }, None) => {
                Room::QueueShare { shared: bytes as f64, alpha }
            }
            (Buffer::PerPort { bytes }, None) => Room::Queue(bytes as f64),
        }
    }

    /// Whether a switch that holds `held` bytes, `queued` of them in one queue, has less room than that, if `share`
    /// of them came by one ingress and as much by each of the others.
    fn is_exceeded(self, held: f64, queued: f64, share: f64) -> bool {
        match self {
            Room::Queue(most) => queued > most,
            Room::QueueShare { shared, alpha } => queued > alpha * (shared - held),
            Room::Ingress(most) => held * share > most,
            Room::IngressShare { shared, alpha, reserve } => {
                let used = (held - reserve / share).max(0.0);
                used * share > alpha * (shared - used)
            }
        }
    }
}

impl Buffers {
    pub(crate) fn new(config: &RunConfig<'_>, layout: &Layout<'_>) -> Buffers {
        let (resources, switches) = (layout.len() as usize, config.fabric.switches() as usize);
        Buffers {
            room: Room::new(config),
            queued: vec![0.0; resources],
            held: vec![0.0; switches],
            is_full: vec![false; switches],
            fresh: Vec::new(),
            counted: vec![0.0; resources],
        }
    }

    /// How many switches have been full.
    pub(crate) fn full(&self) -> u32 {
        self.is_full.iter().filter(|is_full| **is_full).count() as u32
    }
    /// A flow begins whose windows no queue follows.
    pub(crate) fn begins(&mut self, flow: u32) {
        self.fresh.push(flow);
    }
}

impl Engine<'_> {
    /// The queue of a resource has become longer or shorter.
    pub(crate) fn note_queue(&mut self, resource: u32) {
        let links = self.layout.count(resource) as f64;
        self.note(resource, self.queues.wait_at(resource) * self.rates.capacity(resource) / links);
    }

    /// Flows have begun, and rates are found.
    pub(crate) fn note_windows(&mut self) {
        let mut fresh = std::mem::take(&mut self.buffers.fresh);
        for id in fresh.drain(..) {
            let (links, all) = (self.flows[id as usize].forward, self.layout.len());
            for resource in links.as_slice().iter().filter(|one| **one < all) {
                let flows = self.rates.flows_on(*resource) as f64;
                let counted = &mut self.buffers.counted[*resource as usize];
                let is_known = (*counted / MORE..*counted * MORE).contains(&flows);
                if !is_known && self.rates.is_scarce(*resource) && !self.layout.is_nic(*resource) {
                    *counted = flows;
                    let links = self.layout.count(*resource) as f64;
                    self.note(*resource, self.held_up_at(*resource) / links);
                }
            }
        }
        self.buffers.fresh = fresh;
    }

    /// A flow has left its links, where queues do not follow windows: what it left there goes with it.
    pub(crate) fn forget_windows(&mut self, id: u32) {
        let (links, all) = (self.flows[id as usize].forward, self.layout.len());
        for resource in links.as_slice().iter().filter(|one| **one < all) {
            let queued = self.buffers.queued[*resource as usize];
            if queued > 0.0 {
                let left = self.rates.flows_on(*resource) as f64;
                self.note(*resource, queued * left / (left + 1.0));
            }
        }
    }

    /// So many bytes wait before each link of a resource.
    fn note(&mut self, resource: u32, bytes: f64) {
        let more = bytes - std::mem::replace(&mut self.buffers.queued[resource as usize], bytes);
        for switch in self.switches_before(resource) {
            self.buffers.held[switch] += more;
            if more > 0.0 {
                self.note_held(resource, switch, self.buffers.held[switch], bytes);
            }
        }
    }

    /// A switch holds `held` bytes, `queued` of them before a link of `resource`.
    fn note_held(&mut self, resource: u32, switch: usize, held: f64, queued: f64) {
        let room = self.buffers.room;
        if !self.buffers.is_full[switch]
            && room.is_exceeded(held, queued, 1.0)
            && room.is_exceeded(held, queued, self.ingress_share(resource))
        {
            self.buffers.is_full[switch] = true;
        }
    }

    /// Bytes that wait at a resource when the first of its flows is through.
    fn held_up_at(&self, resource: u32) -> f64 {
        let window = self.config.transport.congestion.initial_window();
        let window = window.map_or(f64::INFINITY, |bytes| bytes as f64);
        let trip = self.capacities.rtt().0 as f64;
        let sends = |(rates, weight): (u32, f64)| {
            let flow = self.flow_of(rates)?;
            Some(Sends {
                weight,
                rate: self.rates.rate(rates),
                pace: self.fair_of_nic(flow).min(self.rates.limit(rates)),
                left: flow.left_at(self.now) / f64::from(flow.subflows),
                is_held_here: self.rates.bottleneck(rates) == Some(resource),
            })
        };
        let flows = || self.rates.members(resource).filter_map(sends);
        let first = flows().map(|one| one.left / one.rate).fold(f64::INFINITY, f64::min);
        let comes: f64 = flows().map(|one| one.weight * one.pace).sum();
        let too_much = comes - self.capacities.whole(resource);
        let waiting = |one: Sends| {
            let is_held_up = one.is_held_here && one.rate < HELD_UP * one.pace;
            let sent = (one.pace - one.rate) * first.min(one.left / one.pace);
            let most = (window - one.rate * trip).max(0.0);
            if is_held_up { one.weight * sent.min(most) } else { 0.0 }
        };
        flows().map(waiting).sum::<f64>().min(too_much * first)
    }

    /// Which share of what comes to a resource comes by one ingress, where that is most.
    fn ingress_share(&self, resource: u32) -> f64 {
        let mut by: BTreeMap<u32, f64> = BTreeMap::new();
        for (rates, weight) in self.rates.members(resource) {
            *by.entry(self.link_before(rates, resource)).or_default() +=
                self.rates.rate(rates) * weight;
        }
        let of_each = by.iter().map(|(before, rate)| rate / self.layout.count(*before) as f64);
        of_each.fold(0.0, f64::max) / by.values().sum::<f64>()
    }

    /// What a flow of [`crate::rates::Rates`] crosses before a resource; that itself, if it is a ring.
    fn link_before(&self, rates: u32, resource: u32) -> u32 {
        let Some(flow) = self.flow_of(rates) else { return resource };
        let links = flow.forward.as_slice();
        let is_here = |link: &u32| {
            let of_cut =
                || self.layout.links_of(*link).is_some_and(|all| all.contains(&PortId(resource)));
            *link == resource || of_cut()
        };
        let place = links.iter().position(is_here).unwrap_or(1);
        links.get(place.saturating_sub(1)).copied().unwrap_or(resource)
    }

    fn flow_of(&self, rates: u32) -> Option<&Flow> {
        let id = self.by_rates[rates as usize];
        (id & (RING | SENDING) == 0).then(|| &self.flows[id as usize])
    }

    /// The switches whose ports a resource is; none, if these are of hosts.
    fn switches_before(&self, resource: u32) -> Vec<usize> {
        let ports = self.config.fabric.ports();
        let switch = |port: &PortId| match ports[*port].owner {
            Node::Switch(switch) => Some(switch.0 as usize),
            Node::Host(_) => None,
        };
        let own = [PortId(resource)];
        let links = self.layout.links_of(resource).map_or(&own[..], Vec::as_slice);
        links.iter().filter_map(switch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn a_switch_is_full_where_its_rules_say() {
        // Of 64 bytes one ingress may hold half, two a third each, at `alpha` 1.
        let share = Room::IngressShare { shared: 64.0, alpha: 1.0, reserve: 0.0 };
        assert!(!share.is_exceeded(31.0, 31.0, 1.0) && share.is_exceeded(33.0, 33.0, 1.0));
        assert!(!share.is_exceeded(42.0, 42.0, 0.5) && share.is_exceeded(43.0, 43.0, 0.5));
        // Each has four of its own.
        let own = Room::IngressShare { shared: 64.0, alpha: 1.0, reserve: 4.0 };
        assert!(!own.is_exceeded(50.0, 50.0, 0.5) && own.is_exceeded(51.0, 51.0, 0.5));
        let fixed = Room::Ingress(10.0);
        assert!(!fixed.is_exceeded(20.0, 20.0, 0.5) && fixed.is_exceeded(20.1, 20.1, 0.5));
        // A queue that finds others there may hold less.
        let queue = Room::QueueShare { shared: 64.0, alpha: 1.0 };
        assert!(!queue.is_exceeded(31.0, 31.0, 1.0) && queue.is_exceeded(50.0, 15.0, 1.0));
        assert!(!Room::Queue(10.0).is_exceeded(50.0, 10.0, 1.0));
    }
}
