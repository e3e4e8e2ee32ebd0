//! Which switches run out of buffer, and what waits before them then.
//!
//! What waits at all ports of a switch fills its buffer. With PFC the switch pauses the links by which most of it came,
//! so that what does not fit waits before these, and so does everybody else who goes by them: behind it, first in, first
//! out ([`crate::queues::Queues::hold_back`]). What that fills farther up, and what is lost without PFC, rates do not tell: a
//! run says how many switches have been full.
//!
//! Where queues do not follow windows ([`crate::queues`]), as with
//! packets that are sprayed, a flow that a link holds up behind its NIC goes on sending until the next one is through: what
//! waits then is what it sends more than the link takes of it, and no more than its window is beyond a round trip. Nobody
//! waits for it.

use crate::engine::Engine;
use crate::flows::Flow;
use crate::paths::Layout;
use crate::rounds::RING;
use crate::sent::{HELD_UP, SENDING};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use weft_fabric::Node;
use weft_sim::{Buffer, RunConfig, ports};
use weft_units::PortId;

/// The threshold of a pause is found to this share of a buffer.
const EXACT: f64 = 1e-4;
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
    /// The links that the queue of each keeps paused. Never iterated.
    pauses: FxHashMap<u32, Vec<u32>>,
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
            // What finds no room is trimmed, and asked for again at once.
            _ if switch.trim.is_some() => Room::Queue(f64::INFINITY),
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

    /// Whether a switch that holds `held` bytes, `queued` of them in one queue, has room for all, by whichever ingress
    /// they came.
    fn is_enough(self, held: f64, queued: f64) -> bool {
        match self {
            Room::Queue(most) => queued <= most,
            Room::QueueShare { shared, alpha } => queued <= alpha * (shared - held),
            Room::Ingress(most) => held <= most,
            Room::IngressShare { shared, alpha, reserve } => {
                held - reserve <= alpha * (shared - (held - reserve))
            }
        }
    }

    /// How many bytes an ingress holds when it pauses its link, if others bring that to the switch what they have here:
    /// bytes, and how many of them do. `None`: there are no pauses.
    fn paused_at(self, brought: &[(f64, f64)]) -> Option<f64> {
        let (shared, alpha, reserve) = match self {
            Room::Queue(_) | Room::QueueShare { .. } => return None,
            Room::Ingress(most) => return Some(most),
            Room::IngressShare { shared, alpha, reserve } => (shared, alpha, reserve),
        };
        let used = |most: f64| -> f64 {
            brought.iter().map(|(bytes, count)| count * (bytes.min(most) - reserve).max(0.0)).sum()
        };
        let (mut low, mut high) = (reserve, reserve + alpha * shared);
        while high - low > EXACT * shared {
            let middle = (low + high) / 2.0;
            match middle - reserve < alpha * (shared - used(middle)) {
                true => low = middle,
                false => high = middle,
            }
        }
        Some(low)
    }
}

/// A way by which flows come to a link: links that carry alike.
#[derive(Clone, Copy, Debug)]
struct Ingress {
    resource: u32,
    links: f64,
    /// What each of them carries, of all that comes.
    share: f64,
}

impl Buffers {
    pub(crate) fn new(config: &RunConfig<'_>, layout: &Layout<'_>) -> Buffers {
        let (resources, switches) = (layout.len() as usize, config.fabric.switches() as usize);
        Buffers {
            room: Room::new(config),
            queued: vec![0.0; resources],
            held: vec![0.0; switches],
            is_full: vec![false; switches],
            pauses: FxHashMap::default(),
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
            self.note_full(resource, switch, bytes);
        }
    }

    /// `queued` bytes wait at a switch before a link of a resource. If that is more than there is room for, what is
    /// beyond waits before the switch, at links which it pauses.
    fn note_full(&mut self, resource: u32, switch: usize, queued: f64) {
        let (room, held) = (self.buffers.room, self.buffers.held[switch]);
        let was = self.buffers.pauses.remove(&resource).unwrap_or_default();
        let mut paused = Vec::new();
        if !room.is_enough(held, queued) {
            let all = self.ingress(resource);
            let brought: Vec<(f64, f64)> =
                all.iter().map(|one| (held * one.share, one.links)).collect();
            let most = room.paused_at(&brought);
            let beyond = |one: &Ingress| held * one.share - most.unwrap_or(0.0);
            self.buffers.is_full[switch] |= all.iter().any(|one| beyond(one) > 0.0);
            if most.is_some() && self.queues.are_used() && !self.layout.is_cut(resource) {
                let is_paused = |one: &&Ingress| beyond(one) > 0.0 && one.resource != resource;
                for one in all.iter().filter(is_paused) {
                    let bytes = beyond(one) * queued / held;
                    let drain = self.rates.capacity(resource) * one.share;
                    self.queues.hold_back(one.resource, resource, (bytes, drain), self.now);
                    paused.push(one.resource);
                }
            }
        }
        for link in was.into_iter().filter(|link| !paused.contains(link)) {
            self.queues.hold_back(link, resource, (0.0, 0.0), self.now);
        }
        if !paused.is_empty() {
            self.buffers.pauses.insert(resource, paused);
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

    /// The ways by which flows come to a resource.
    fn ingress(&self, resource: u32) -> Vec<Ingress> {
        let (mut by, mut all): (BTreeMap<u32, f64>, f64) = (BTreeMap::new(), 0.0);
        for (rates, weight) in self.rates.members(resource) {
            let (rate, before) =
                (self.rates.rate(rates) * weight, self.link_before(rates, resource));
            all += rate;
            match self.layout.links_apart(before) {
                None => *by.entry(before).or_default() += rate,
                Some(links) => {
                    let each = rate / links.len() as f64;
                    links.iter().for_each(|link| *by.entry(link.0).or_default() += each);
                }
            }
        }
        let ingress = |(resource, rate): (u32, f64)| {
            let links = self.layout.count(resource) as f64;
            Ingress { resource, links, share: rate / links / all }
        };
        by.into_iter().filter(|(_, rate)| *rate > 0.0).map(ingress).collect()
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
        // Of 64 bytes one ingress may hold half, each of two a third, at `alpha` 1.
        let share = Room::IngressShare { shared: 64.0, alpha: 1.0, reserve: 0.0 };
        let pauses = |room: Room, brought: &[(f64, f64)], most: f64| {
            let found = room.paused_at(brought).expect("a pause");
            assert!((found - most).abs() < 0.01, "{room:?} {brought:?}: {found}, not {most}");
        };
        pauses(share, &[(60.0, 1.0)], 32.0);
        pauses(share, &[(60.0, 2.0)], 64.0 / 3.0);
        pauses(share, &[(60.0, 1.0), (4.0, 1.0)], 30.0);
        pauses(share, &[(10.0, 1.0)], 54.0);
        assert!(share.is_enough(31.9, 31.9) && !share.is_enough(32.1, 32.1));
        // Each has four of its own.
        pauses(
            Room::IngressShare { shared: 64.0, alpha: 1.0, reserve: 4.0 },
            &[(60.0, 2.0)],
            64.0 / 3.0 + 4.0,
        );
        pauses(Room::Ingress(10.0), &[(60.0, 2.0)], 10.0);
        // A queue that finds others there may hold less.
        let queue = Room::QueueShare { shared: 64.0, alpha: 1.0 };
        assert!(queue.is_enough(31.0, 31.0) && !queue.is_enough(50.0, 15.0));
        assert!(
            Room::Queue(10.0).is_enough(50.0, 10.0) && !Room::Queue(10.0).is_enough(11.0, 11.0)
        );
        assert_eq!(queue.paused_at(&[(60.0, 1.0)]), None);
    }
}
