//! What each resource carries for data: what failures leave of it, less what acknowledgements take, and
//! for links over which packets are sprayed what random arrivals let them carry.
//!
//! Packets that choose one of `n` equal links at random leave some of them idle, unless enough wait at
//! all. Flows put out a window each, so what waits is what their windows have beyond the round trip. A
//! queue that random arrivals load to `r` holds `r^2 / (2 (1 - r))` packets in the mean where all take
//! equally long (Pollaczek and Khinchine for M/D/1; the packet in service is part of the round trip).
//! So the load solves `w = r p + s r^2 / (2 (1 - r))`: `w` packets of windows a link, `p` packets in a
//! round trip at the rate of the link, `s` places where packets choose. A window begins at
//! its first size and grows by a packet each round trip until links mark (DCTCP, section 3.3 of
//! Alizadeh et al. 2010).

use crate::flows::Flow;
use crate::paths::{Cut, Layout};
use crate::rates::Rates;
use weft_sim::RunConfig;
use weft_units::{Draw, Time, random};

/// Loads of acknowledgements are taken into account where they changed by this share of a link.
const ACK_STEP: f64 = 0.004;
/// The same of what random arrivals let links carry.
const LOAD_STEP: f64 = 0.002;
/// A step of growth is this many round trips.
const STEP: u64 = 2;

/// Of all resources, by their numbers.
#[derive(Debug)]
pub(crate) struct Capacities {
    /// What failures leave.
    whole: Vec<f64>,
    /// What acknowledgements take of each, and how much of that is taken into account.
    acks: Vec<(f64, f64)>,
    /// Bytes of an acknowledgement; and its share of those of its packet, if all are taken to be full.
    ack: f64,
    share_of_full: Option<f64>,
    /// Resources whose capacity is to be told anew.
    stale: Vec<u32>,
    /// Cuts, from the first one's number on.
    first_cut: u32,
    cuts: Vec<Spray>,
    spraying: Spraying,
    flows: u32,
    grows: bool,
}

/// What is the same for all cuts.
#[derive(Clone, Copy, Debug)]
struct Spraying {
    rtt: Time,
    /// Bytes of a packet on the wire.
    packet: f64,
    first_window: f64,
    most: f64,
    /// Places on a path where packets choose, or meet others that have chosen.
    places: f64,
}

/// How long a queue is where switches mark all, in bytes.
pub(crate) fn marked_from(config: &RunConfig<'_>) -> f64 {
    config.switch.ecn.map_or(f64::INFINITY, |ecn| ecn.kmax as f64)
}

/// The flows over a cut.
#[derive(Clone, Copy, Debug)]
struct Spray {
    links: u32,
    /// How many of them a packet chooses from at random: those of a plane. To planes NICs deal packets out evenly.
    choices: u32,
    flows: u32,
    /// The sum of the times at which they began.
    began: u128,
    /// What they load it with, in bytes a picosecond.
    load: f64,
    /// What they did before some of them ended, and until when what waits is of then.
    before: f64,
    fades: Time,
    /// How often some have ended.
    endings: u64,
    /// The share of the links that they can load.
    share: f64,
}

impl Capacities {
    pub(crate) fn new(
        config: &RunConfig<'_>,
        layout: &Layout<'_>,
        rtt: Time,
        all: usize,
    ) -> Capacities {
        let spray = |cut: Cut| {
            let links = layout.ports_of(cut).len() as u32;
            Spray {
                links,
                choices: links / config.fabric.planes(),
                flows: 0,
                began: 0,
                load: 0.0,
                before: 0.0,
                fades: Time::ZERO,
                endings: 0,
                share: 1.0,
            }
        };
        let packet = f64::from(config.packet.mtu + config.packet.header);
        let bdp = config.fabric.line_rate().as_bps() as f64 / 8e12 * rtt.0 as f64;
        let first_window =
            config.transport.congestion.initial_window().map_or(bdp, |bytes| bytes as f64);
        let tiers = if config.fabric.pods() > 1 { 4.0 } else { 2.0 };
        Capacities {
            whole: vec![0.0; all],
            acks: vec![(0.0, 0.0); all],
            ack: f64::from(config.packet.ack),
            share_of_full: None,
            stale: Vec::new(),
            first_cut: layout.first_cut(),
            cuts: layout.cuts().map(spray).collect(),
            spraying: Spraying {
                rtt,
                packet,
                first_window,
                most: bdp + marked_from(config),
                places: tiers,
            },
            flows: 0,
            grows: false,
        }
    }

    /// What failures leave of a resource from now on, in bytes a picosecond.
    pub(crate) fn set_whole(&mut self, resource: u32, capacity: f64) {
        if self.whole[resource as usize] != capacity {
            self.whole[resource as usize] = capacity;
            self.stale.push(resource);
        }
    }
    /// What failures leave of a resource, in bytes a picosecond.
    pub(crate) fn whole(&self, resource: u32) -> f64 {
        self.whole[resource as usize]
    }
    /// Acknowledgements are in nobody's way: all packets are taken to be full, so that rates stay as they are.
    pub(crate) fn take_packets_for_full(&mut self) {
        self.share_of_full = Some(self.ack / self.spraying.packet);
    }
    /// A flow is so much faster from now on: it loads its cuts, and its acknowledgements the way back.
    pub(crate) fn load(&mut self, now: Time, flow: &Flow, layout: &Layout<'_>, faster: f64) {
        let each = || self.ack * flow.packets as f64 / flow.wire.max(1) as f64;
        let acks = self.share_of_full.unwrap_or_else(each) * faster;
        if flow.is_split() {
            for (resource, share) in layout.links(&flow.back) {
                self.acknowledge(resource, share * acks);
            }
            return;
        }
        for resource in flow.back.as_slice() {
            self.acknowledge(*resource, acks);
        }
        for resource in flow.forward.as_slice() {
            if let Some(cut) = cut_of(&mut self.cuts, self.first_cut, *resource) {
                let whole = self.whole[*resource as usize];
                if faster < 0.0 && now > cut.fades && whole > 0.0 {
                    let waits = cut.waiting(cut.load, whole) * cut.slot(&self.spraying, whole);
                    (cut.before, cut.fades) = (cut.load, Time(now.0 + waits as u64));
                    cut.endings += 1;
                }
                cut.load += faster;
            }
        }
    }
    /// Acknowledgements that come by a resource load it with so much more.
    fn acknowledge(&mut self, resource: u32, more: f64) {
        let (load, known) = &mut self.acks[resource as usize];
        *load += more;
        if (*load - *known).abs() > ACK_STEP * self.whole[resource as usize] {
            self.stale.push(resource);
        }
    }
    /// What acknowledgements take of a resource they take of each of `links` from now on, at equal shares.
    pub(crate) fn divide(&mut self, resource: u32, links: &[u32]) {
        let (load, known) = std::mem::take(&mut self.acks[resource as usize]);
        if load == 0.0 && known == 0.0 {
            return;
        }
        for link in links {
            self.acks[*link as usize].0 += load / links.len() as f64;
        }
        self.stale.extend(links);
        self.stale.push(resource);
    }
    /// A flow spreads over its cuts from now on.
    pub(crate) fn enter(&mut self, flow: &Flow) {
        self.count(flow, true);
    }
    /// It does so no more.
    pub(crate) fn leave(&mut self, flow: &Flow) {
        self.count(flow, false);
    }
    fn count(&mut self, flow: &Flow, enters: bool) {
        if flow.is_split() {
            return;
        }
        let mut spreads = false;
        for resource in flow.forward.as_slice() {
            let Some(cut) = cut_of(&mut self.cuts, self.first_cut, *resource) else { continue };
            let began = u128::from(flow.began.0);
            match enters {
                true => (cut.flows, cut.began) = (cut.flows + 1, cut.began + began),
                false => (cut.flows, cut.began) = (cut.flows - 1, cut.began - began),
            }
            self.stale.push(*resource);
            spreads = true;
        }
        match enters {
            true => self.flows += u32::from(spreads),
            false => self.flows -= u32::from(spreads),
        }
    }

    /// How much longer than alone a flow takes until its last packet has come.
    ///
    /// A packet that leaves `j` packets before the last one is late if it waits longer than these take.
    /// So if packets wait longer than `x` with probability `P(x)`, none is later than `x` with probability
    /// `exp(-H)`, where `H` is the integral of `P` from `x` on. In a queue that random arrivals load for
    /// long, `P` is close to exponential. A queue that was empty when the flow began is no longer than
    /// a random walk, reflected where it is empty, of as many steps as a link could carry packets since then:
    /// no more than the flow has, and fewer where its NIC is faster than a link.
    ///
    /// Flows that spread over the same links and end together meet the same queues.
    pub(crate) fn tail(&self, now: Time, (flow, bytes): (&Flow, u64), draw: Draw) -> Time {
        let (mut tail, part) = (0.0, bytes as f64 / self.spraying.packet);
        for resource in flow.forward.as_slice() {
            let Some(number) = resource.checked_sub(self.first_cut) else { continue };
            let Some(cut) = self.cuts.get(number as usize) else { continue };
            let whole = self.whole[*resource as usize];
            if cut.choices > 1 && whole > 0.0 {
                let at = random::unit(draw.at(u64::from(*resource), cut.endings));
                let beyond = -libm::log(at.max(f64::MIN_POSITIVE));
                let load = if now <= cut.fades { cut.load.max(cut.before) } else { cut.load };
                let mean = cut.waiting(load, whole);
                if mean > beyond {
                    let slot = cut.slot(&self.spraying, whole);
                    let carried = flow.began.until(now).0 as f64 / slot;
                    let walk = libm::sqrt(cut.random() * carried.min(flow.packets as f64));
                    let steady = mean * libm::log(mean / beyond);
                    tail += steady.min(walked(walk, beyond)) * part * slot;
                }
            }
        }
        Time(tail as u64)
    }

    /// Whether windows begin to grow now: flows spread, and nobody has looked after it yet.
    pub(crate) fn begins_to_grow(&mut self) -> bool {
        let begins = self.flows > 0 && !self.grows;
        self.grows |= begins;
        begins
    }
    /// How long until windows have grown so much that loads are to be looked at.
    pub(crate) fn step(&self) -> Time {
        Time(self.spraying.rtt.0 * STEP)
    }
    /// Windows have grown. Returns whether they go on growing.
    pub(crate) fn grow(&mut self) -> bool {
        let used = (0..).zip(&self.cuts).filter(|(_, cut)| cut.flows > 0);
        self.stale.extend(used.map(|(number, _): (u32, _)| self.first_cut + number));
        self.grows = self.flows > 0;
        self.grows
    }

    /// How long a host may send before it hears of a packet, in a fabric without load.
    pub(crate) fn rtt(&self) -> Time {
        self.spraying.rtt
    }

    /// Whether some capacity is to be told anew.
    pub(crate) fn has_changed(&self) -> bool {
        !self.stale.is_empty()
    }
    /// Tells all that has changed.
    pub(crate) fn update(&mut self, now: Time, rates: &mut Rates) {
        self.stale.sort_unstable();
        self.stale.dedup();
        for resource in std::mem::take(&mut self.stale) {
            let (load, known) = &mut self.acks[resource as usize];
            *known = *load;
            let left = (self.whole[resource as usize] - *load).max(0.0);
            let share = self.share(resource, now);
            rates.set_capacity(resource, left * share);
        }
    }

    /// What random arrivals let flows use of a resource.
    fn share(&mut self, resource: u32, now: Time) -> f64 {
        let Some(number) = resource.checked_sub(self.first_cut) else { return 1.0 };
        let whole = self.whole[resource as usize];
        let spraying = self.spraying;
        let Some(cut) = self.cuts.get_mut(number as usize) else { return 1.0 };
        if cut.choices <= 1 || cut.flows == 0 {
            return 1.0;
        }
        let share = cut.load(&spraying, whole, now);
        if (share - cut.share).abs() > LOAD_STEP {
            cut.share = share;
        }
        cut.share
    }
}

impl Spray {
    /// How many packets wait at one place in the mean under a load that flows can keep up.
    fn waiting(&self, load: f64, whole: f64) -> f64 {
        let load = (load / whole).clamp(0.0, self.share.min(0.999));
        load * load / (2.0 * (1.0 - load)) * self.random()
    }
    /// How long one of the links, which carry `whole`, takes for a packet.
    fn slot(&self, spraying: &Spraying, whole: f64) -> f64 {
        spraying.packet * f64::from(self.links) / whole
    }
    /// The variance of how many packets come to a link, over the mean.
    fn random(&self) -> f64 {
        1.0 - 1.0 / f64::from(self.choices)
    }
    /// The load that the windows of all flows can keep up, between 0 and 1.
    fn load(&self, spraying: &Spraying, whole: f64, now: Time) -> f64 {
        let Spraying { rtt, packet, first_window, most, places, .. } = *spraying;
        let flows = f64::from(self.flows);
        let mean = self.began as f64 / flows;
        let trips = (now.0 as f64 - mean).max(0.0) / rtt.0 as f64;
        let window = (first_window + trips * packet).min(most.max(first_window));
        let links = f64::from(self.links);
        let waiting = flows * window / packet / links;
        let trip = whole / links * rtt.0 as f64 / packet;
        solve(waiting, trip, places * self.random())
    }
}

fn cut_of(cuts: &mut [Spray], first: u32, resource: u32) -> Option<&mut Spray> {
    cuts.get_mut(resource.checked_sub(first)? as usize)
}

/// The `x` from which on the integral of the probability that a random walk, reflected at zero, of standard
/// deviation `walk` is beyond is `beyond`; zero if it never is as much.
fn walked(walk: f64, beyond: f64) -> f64 {
    let over = |z: f64| {
        let density = libm::exp(-z * z / 2.0) / (2.0 * core::f64::consts::PI).sqrt();
        density - z * libm::erfc(z / core::f64::consts::SQRT_2) / 2.0
    };
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        match 2.0 * walk * over(middle) > beyond {
            true => low = middle,
            false => high = middle,
        }
    }
    low * walk
}

/// The `r` between 0 and 1 at which `r trip + places r^2 / (2 (1 - r))` is `waiting`.
fn solve(waiting: f64, trip: f64, places: f64) -> f64 {
    // (places/2 - trip) r^2 + (trip + waiting) r - waiting = 0
    let (a, b) = (places / 2.0 - trip, trip + waiting);
    if a.abs() < 1e-12 {
        return waiting / b;
    }
    let root = (b * b + 4.0 * a * waiting).max(0.0).sqrt();
    // The root between 0 and 1, in the form that does not cancel.
    2.0 * waiting / (b + root)
}

#[cfg(test)]
mod tests {
    use super::{solve, walked};

    #[test]
    fn a_walk_goes_as_far_as_its_integral_says() {
        let beyond_zero = |walk: f64| 2.0 * walk / (2.0 * core::f64::consts::PI).sqrt();
        for walk in [1.0, 4.0, 50.0] {
            for share in [0.9, 0.1, 1e-4] {
                let (x, sum) = (walked(walk, share * beyond_zero(walk)), 1000);
                // The probability that the absolute value of a normal variable is beyond, by steps.
                let step = 10.0 * walk / f64::from(sum);
                let beyond = (0..sum).map(|at| x + (f64::from(at) + 0.5) * step);
                let integral: f64 =
                    beyond.map(|x| libm::erfc(x / walk / core::f64::consts::SQRT_2) * step).sum();
                let error = integral / (share * beyond_zero(walk)) - 1.0;
                assert!(error.abs() < 1e-3, "{walk} {share}: {x}, {error}");
            }
        }
        assert_eq!(walked(4.0, beyond_zero(4.0) * 1.01), 0.0);
    }

    #[test]
    fn a_load_solves_its_equation() {
        for waiting in [0.5, 4.0, 64.0, 1000.0] {
            for trip in [0.1, 8.0, 64.0] {
                for places in [1.0, 2.0, 4.0] {
                    let r: f64 = solve(waiting, trip, places);
                    assert!((0.0..1.0).contains(&r), "{waiting} {trip} {places}: {r}");
                    let again = r * trip + places * r * r / (2.0 * (1.0 - r));
                    assert!((again - waiting).abs() < 1e-6 * waiting, "{again} for {waiting}");
                }
            }
        }
    }
}
