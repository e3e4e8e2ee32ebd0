//! Subflows under way: which links they use, at what rate, and until when.

use crate::agenda::What;
use crate::engine::Engine;
use crate::failures::{Gap, Owed};
use crate::paths::Resources;
use crate::rounds::RING;
use crate::sent::{SENDING, Unsent};
use crate::windows::Window;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use weft_balance::Steering;
use weft_balance::plan::{Carrier, Route, Subflow};
use weft_balance::steer::FlowContext;
use weft_sim::{JobConfig, RunConfig, parts};
use weft_transport::CongestionConfig;
use weft_units::{Draw, HostId, MessageId, PortId, Rate, Time};

/// How late what a flow leaves behind may be given to others, as a share of how long it took.
const TOLERANCE: f64 = 0.002;

/// What a queue pair is to carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The subflow, with the payload of this part.
    pub(crate) subflow: Subflow,
    /// The plane that it stays in; `None`: its packets take all.
    pub(crate) plane: Option<u32>,
}

/// A subflow under way; its rate is in [`crate::rates::Rates`] while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) subflow: Subflow,
    /// How many subflows of its message it stands for: one, or as many as there are paths, which they
    /// load alike. `subflow` then is the first, with the payload of all.
    pub(crate) subflows: u32,
    /// Payload of the largest of them.
    part: u64,
    pub(crate) src: HostId,
    /// The plane that it stays in; `None`: it is in all alike.
    pub(crate) plane: Option<u32>,
    /// Bytes of the wire that had not crossed as of `since`, and how fast they do.
    pub(crate) left: f64,
    since: Time,
    pub(crate) rate: f64,
    /// Its number in [`crate::rates::Rates`].
    pub(crate) rates: u32,
    pub(crate) window: Window,
    /// What does not name this version is no longer true.
    pub(crate) version: u32,
    /// When it will be through, and the earliest [`What::Finish`] that is on the agenda.
    due: Time,
    looked_at: Time,
    pub(crate) began: Time,
    pub(crate) packets: u64,
    pub(crate) wire: u64,
    /// How many of its bytes are counted on the links that they crossed.
    counted: u64,
    pub(crate) forward: Resources,
    /// What share of it each link between switches carries, where it spreads over few values
    /// ([`Engine::link_shares`]), or where it stands for subflows on all paths, queues delay it and links of a
    /// cut may differ.
    pub(crate) shares: Vec<(u32, f64)>,
    pub(crate) back: Resources,
    latency: Time,
    pub(crate) is_running: bool,
    /// What its NIC has to send of it.
    pub(crate) unsent: Unsent,
    /// The earliest [`What::Sent`] that is on the agenda, if it leaves as it crosses.
    pub(crate) sent_look: Time,
    /// What it has lost, until it sends that again.
    pub(crate) blocked: Option<Gap>,
    /// What it sends again when all else is through.
    pub(crate) owed: Option<Owed>,
    /// How often in a row it has timed out.
    pub(crate) time_outs: u32,
}

/// Which links a flow uses, on its way and back: as [`Flow`] has them.
#[derive(Debug)]
pub(crate) struct FlowPath {
    pub(crate) forward: Resources,
    pub(crate) back: Resources,
    latency: Time,
    shares: Vec<(u32, f64)>,
}

/// How hosts steer a flow between `hosts` with these random numbers.
fn steering(config: &RunConfig<'_>, hosts: (HostId, HostId), flow: u64) -> Steering {
    let context = FlowContext {
        flow,
        seed: config.seed,
        mtu: config.packet.mtu,
        bdp: config.balance.bdp,
        wire_bytes: (config.packet.mtu + config.packet.header, config.packet.ack),
        trims: config.switch.trim.is_some(),
        probes: false,
        fabric: config.fabric,
        hosts,
        hashing: config.hashing(),
    };
    Steering::new(&config.balance, &context)
}

/// The entropy values that packets of a flow between `hosts` take in turn; `None`: any, or one.
pub(crate) fn few_entropies(
    config: &RunConfig<'_>,
    hosts: (HostId, HostId),
    flow: u64,
) -> Option<RangeInclusive<u16>> {
    steering(config, hosts, flow).entropies()
}

/// Bytes in a picosecond.
pub(crate) fn speed(bits: u64) -> f64 {
    bits as f64 / 8e12
}

impl Flow {
    /// What has not crossed its links by `now`.
    pub(crate) fn left_at(&self, now: Time) -> f64 {
        (self.left - self.rate * now.0.saturating_sub(self.since.0) as f64).max(0.0)
    }
    /// So many bytes more have not crossed its links by `now`; below zero: fewer.
    pub(crate) fn hold_up(&mut self, bytes: f64, now: Time) {
        self.left = (self.left_at(now) + bytes).clamp(0.0, self.wire as f64);
        self.since = now;
    }
    /// Whether it stands for subflows on all paths.
    pub(crate) fn is_split(&self) -> bool {
        self.subflows > 1
    }
    /// The rate of one of its subflows.
    pub(crate) fn rate_of_each(&self) -> f64 {
        self.rate / f64::from(self.subflows)
    }
    /// Resources that it uses, with the share of it that each carries.
    pub(crate) fn forward_links(&self) -> impl Iterator<Item = (u32, f64)> {
        let links = self.forward.as_slice().iter().map(|link| (*link, 1.0));
        links.chain(self.shares.iter().copied())
    }
    /// Payload that is left at `now`.
    pub(crate) fn payload_left(&self, now: Time) -> u64 {
        let share = self.left_at(now) / self.wire.max(1) as f64;
        (share * self.subflow.bytes as f64).ceil() as u64
    }
}

impl Engine<'_> {
    /// Adds what carries a subflow: where the packets of one keep to a path, a queue pair in each plane.
    pub(crate) fn divide(&self, src: HostId, subflow: &Subflow, out: &mut Vec<Part>) {
        let config = self.config;
        let planes = config.fabric.planes();
        let hosts = (src, subflow.dst);
        let count = match planes {
            1 => 1,
            _ if steering(config, hosts, 0).is_fixed() => planes,
            _ => 1,
        };
        let plane_of = |unit: u32| unit.wrapping_add(self.hash_key(src, subflow) as u32) % planes;
        out.extend(parts(config, subflow.bytes, count).map(|(unit, bytes)| Part {
            subflow: Subflow { bytes, ..*subflow },
            plane: (!self.spreads).then(|| if planes == 1 { 0 } else { plane_of(unit) }),
        }));
    }

    /// What switches hash of the addresses of a subflow.
    fn hash_key(&self, src: HostId, subflow: &Subflow) -> u64 {
        let Subflow { dst, message, part, carrier, .. } = *subflow;
        match carrier.persistent() {
            None => self.flow_key(message, part),
            Some(pair) => Draw::new(self.config.seed, "queue-pair-key")
                .at(u64::from(src.0) << 32 | u64::from(pair.0), u64::from(dst.0)),
        }
    }
    fn flow_key(&self, message: MessageId, part: u32) -> u64 {
        Draw::new(self.config.seed, "flow-key").at(u64::from(message.0), u64::from(part))
    }

    /// How many of the first of `parts`, which `src` opens now, are one flow: as many as there are
    /// paths, if they are parts of one message that load all paths alike; else one.
    pub(crate) fn even_split(&self, src: HostId, parts: &[Part]) -> usize {
        let (first, fabric) = (parts[0].subflow, self.config.fabric);
        let Route::Pinned(_) = first.route else { return 1 };
        let paths = (fabric.path_set(src, first.dst).len() * fabric.planes()) as usize;
        if paths < 2 || parts.len() < paths || self.spreads || !self.config.failures.is_empty() {
            return 1;
        }
        let these = &parts[..paths];
        let is_alike = |Part { subflow: one, .. }: &Part| {
            let own = one.carrier == Carrier::Own && one.delay <= self.latest;
            own && one.tag == first.tag && one.bytes.abs_diff(first.bytes) <= 1
        };
        if !these.iter().all(is_alike) {
            return 1;
        }
        let mut routes: Vec<(Option<u32>, u16)> =
            these.iter().map(|one| (one.plane, one.subflow.route.number())).collect();
        routes.sort_unstable();
        routes.dedup();
        if routes.len() == paths { paths } else { 1 }
    }

    /// A flow that stands for all of `parts`, one or an even split.
    pub(crate) fn new_flow(&mut self, src: HostId, parts: &[Part]) -> u32 {
        let packet = &self.config.packet;
        let bytes = || parts.iter().map(|one| one.subflow.bytes);
        let packets = bytes().map(|bytes| bytes.div_ceil(u64::from(packet.mtu))).sum();
        let (part, bytes) = (bytes().max().unwrap_or(0), bytes().sum());
        let wire = bytes + packets * u64::from(packet.header);
        let flow = Flow {
            subflow: Subflow { bytes, ..parts[0].subflow },
            subflows: parts.len() as u32,
            part,
            src,
            plane: parts[0].plane.filter(|_| parts.len() == 1),
            left: wire as f64,
            since: self.now,
            rate: 0.0,
            rates: u32::MAX,
            window: Window::default(),
            version: 0,
            due: Time::MAX,
            looked_at: Time::MAX,
            began: self.now,
            packets,
            wire,
            counted: 0,
            forward: Resources::default(),
            shares: Vec::new(),
            back: Resources::default(),
            latency: Time::ZERO,
            is_running: false,
            unsent: Unsent::AsItCrosses,
            sent_look: Time::MAX,
            blocked: None,
            owed: None,
            time_outs: 0,
        };
        match self.free_flows.pop() {
            Some(id) => {
                let version = self.flows[id as usize].version + 1;
                self.flows[id as usize] = Flow { version, ..flow };
                id
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        }
    }

    /// The first packet of a flow leaves. Those in the queues on its way keep their links until it has
    /// waited there.
    pub(crate) fn begin(&mut self, id: u32) {
        self.find_path(id);
        let flow = &mut self.flows[id as usize];
        flow.began = self.now;
        self.totals.packets += flow.packets;
        self.totals.control_packets += flow.packets;
        if let Some(watch) = &mut self.watch {
            let links = self.config.fabric.hops(flow.src, flow.subflow.dst);
            // Each of its acknowledgements crosses as many.
            watch.packet_hops += 2 * flow.packets * u64::from(links);
        }
        match self.queues.wait_there(&self.flows[id as usize]) as u64 {
            0 => self.enter_unless_lost(id),
            wait => {
                self.send_while_it_waits(id);
                self.agenda.push(self.now + Time(wait), What::Waited(id));
            }
        }
    }

    /// The first packet of a flow has waited in queues.
    pub(crate) fn waited(&mut self, id: u32) {
        if !self.config.failures.is_empty() || self.flows[id as usize].is_split() {
            // Routing may have learnt of links meanwhile, and links of a cut may be told apart.
            self.find_path(id);
        }
        self.enter_unless_lost(id);
    }

    /// A flow that uses no links yet, or no longer, takes those that its route leads to.
    pub(crate) fn find_path(&mut self, id: u32) {
        let path = self.path_of(id);
        self.take_path(id, path);
    }

    pub(crate) fn take_path(&mut self, id: u32, path: FlowPath) {
        let flow = &self.flows[id as usize];
        self.count_until(id, flow.wire.saturating_sub(flow.left.ceil() as u64));
        let flow = &mut self.flows[id as usize];
        (flow.forward, flow.back, flow.latency) = (path.forward, path.back, path.latency);
        flow.shares = path.shares;
    }

    /// Which links a flow would use now.
    pub(crate) fn path_of(&mut self, id: u32) -> FlowPath {
        let config = self.config;
        let flow = &self.flows[id as usize];
        let (src, Subflow { dst, route, tag, .. }) = (flow.src, flow.subflow);
        let is_split = flow.is_split();
        let (mut forward, back) = match flow.plane {
            None => (self.layout.of_spread(src, dst), self.layout.of_spread(dst, src)),
            Some(plane) => {
                let key = self.hash_key(src, &flow.subflow);
                self.ways(plane, (src, dst), route, key as u32).unwrap_or_default()
            }
        };
        if let Some(JobConfig { pcie: Some(_), .. }) = &config.job
            && let Some(owner) = self.messages[tag as usize].owner
        {
            forward.push(self.layout.pcie(owner.src));
        }
        let shares = match self.spreads {
            true => self.link_shares(id),
            false if is_split && self.queues.are_used() => self.layout.links_of_cuts(&forward),
            false => Vec::new(),
        };
        let last = self.packet_bytes(&self.flows[id as usize]);
        let latency = self.latency((src, dst), &forward, last);
        FlowPath { forward, back, latency, shares }
    }

    /// The links of a flow that keeps to a path in a plane, and those that its acknowledgements come back by.
    fn ways(
        &mut self,
        plane: u32,
        (src, dst): (HostId, HostId),
        route: Route,
        key: u32,
    ) -> Option<(Resources, Resources)> {
        let path = self.network.way_in_plane(plane, (src, dst), route, key)?;
        self.tell_links_apart(src, dst);
        let back = match route {
            Route::Pinned(_) => Some(self.layout.back_along(&path)),
            // Acknowledgements hash by where they go, and the entropy that they echo.
            Route::Hashed(_) => {
                let back = self.network.way_in_plane(plane, (dst, src), route, src.0);
                back.map(|path| self.layout.of_path(&path))
            }
        };
        Some((self.layout.of_path(&path), back.unwrap_or_default()))
    }

    /// Bytes of the last packet of a flow, or of each of its subflows, on the wire.
    pub(crate) fn last_packet(&self, flow: &Flow) -> u64 {
        let packet = self.config.packet;
        (flow.part.max(1) - 1) % u64::from(packet.mtu) + 1 + u64::from(packet.header)
    }

    /// Bytes of the largest packet of a flow on the wire.
    pub(crate) fn packet_bytes(&self, flow: &Flow) -> u64 {
        let packet = self.config.packet;
        flow.part.min(u64::from(packet.mtu)) + u64::from(packet.header)
    }

    /// How long after its last bit has crossed the slowest link, or its NIC, a packet of `bytes` is there.
    fn latency(&self, ends: (HostId, HostId), forward: &Resources, bytes: u64) -> Time {
        let RunConfig { fabric, failures, .. } = self.config;
        let mut all = fabric.one_way(ends.0, ends.1, bytes);
        let mut slowest = fabric.ports()[fabric.nic(ends.0)].rate.serialize(bytes);
        let ports = forward.as_slice().iter().map(|port| PortId(*port));
        for port in ports.filter(|port| (port.0 as usize) < fabric.ports().len()) {
            let takes = failures.rate(fabric, port, self.now).serialize(bytes);
            all += Time(takes.0.saturating_sub(fabric.ports()[port].rate.serialize(bytes).0));
            slowest = slowest.max(takes);
        }
        Time(all.0.saturating_sub(slowest.0))
    }

    /// A flow takes one link of each cut on its way and back: these may differ from now on.
    fn tell_links_apart(&mut self, src: HostId, dst: HostId) {
        let ways = [self.layout.of_spread(src, dst), self.layout.of_spread(dst, src)];
        for resource in ways.iter().flat_map(Resources::as_slice) {
            let Some(links) = self.layout.tell_apart(*resource) else { continue };
            self.rates.divide(*resource, &links);
            self.capacities.divide(*resource, &links);
            self.queues.divide(*resource, &links, self.now);
            links.iter().chain([resource]).for_each(|link| self.note_queue(*link));
            for id in self.flows_on(links[0]) {
                let forward = self.flows[id as usize].forward;
                self.flows[id as usize].shares = self.layout.links_of_cuts(&forward);
            }
        }
    }

    /// What share of a flow each link between switches carries, if its packets take some entropy values
    /// in turn: switches hash these onto some links more often than onto others. Empty: onto all alike,
    /// or within a rack, or hosts may have learnt of failures which to leave out.
    fn link_shares(&mut self, id: u32) -> Vec<(u32, f64)> {
        let config = self.config;
        let flow = &self.flows[id as usize];
        let (src, Subflow { dst, message, part, .. }) = (flow.src, flow.subflow);
        if !config.failures.is_empty() || config.fabric.hops(src, dst) < 4 {
            return Vec::new();
        }
        let (key, planes) = (self.flow_key(message, part), config.fabric.planes());
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        for plane in 0..planes {
            // Of each plane it steers as if there were no other.
            let own = Draw::new(config.seed, "plane").at(key, u64::from(plane));
            let Some(entropies) =
                few_entropies(config, (src, dst), if plane == 0 { key } else { own })
            else {
                return Vec::new();
            };
            let share = 1.0 / entropies.len() as f64 / f64::from(planes);
            for entropy in entropies {
                let route = Route::Hashed(entropy);
                let way = self.network.way_in_plane(plane, (src, dst), route, key as u32);
                let links = way.iter().flat_map(|way| {
                    let links = way.ports();
                    &links[1..links.len() - 1]
                });
                links.for_each(|link| *shares.entry(link.0).or_default() += share);
            }
        }
        shares.into_iter().collect()
    }

    /// The flow shares its links from now on.
    pub(crate) fn enter(&mut self, id: u32) {
        let limit = self.open_window(id, self.limit(id));
        let flow = &mut self.flows[id as usize];
        (flow.rate, flow.since, flow.is_running) = (0.0, self.now, true);
        self.running += 1;
        self.capacities.enter(&self.flows[id as usize]);
        if self.spreads && self.capacities.begins_to_grow() {
            self.agenda.push(self.now + self.capacities.step(), What::Grow);
        }
        self.share_links(id, limit);
        self.watch_bursts(id);
    }

    /// A flow has its share of its links, and sends at `limit` at most.
    pub(crate) fn share_links(&mut self, id: u32, limit: f64) {
        let flow = &self.flows[id as usize];
        // Of several subflows each one has a share of what they meet.
        let count = f64::from(flow.subflows);
        let rates = match flow.is_split() {
            false if flow.shares.is_empty() => {
                let leaves_apart = !matches!(flow.unsent, Unsent::AsItCrosses);
                self.rates.add(&flow.forward.as_slice()[usize::from(leaves_apart)..], limit)
            }
            false => self.rates.add_weighted(flow.forward_links(), limit),
            true => {
                let links = self.layout.links(&flow.forward);
                let uses = links.map(|(link, share)| (link, share * count));
                self.rates.add_weighted(uses, limit)
            }
        };
        self.flows[id as usize].rates = rates;
        self.know(rates, id);
        match self.rates.grant(rates) {
            Some(rate) => self.set_rate(id, rate),
            None => self.unsettle(self.latest),
        }
    }

    /// Notes who is which of [`crate::rates::Rates`].
    pub(crate) fn know(&mut self, rates: u32, id: u32) {
        if self.by_rates.len() <= rates as usize {
            self.by_rates.resize(rates as usize + 1, u32::MAX);
        }
        self.by_rates[rates as usize] = id;
    }

    /// The rate that each subflow of a flow is told, if it is; its share of its NIC's at most.
    pub(crate) fn limit(&self, id: u32) -> f64 {
        let flow = &self.flows[id as usize];
        let config = self.config;
        let line = match flow.plane {
            Some(_) => config.fabric.ports()[config.fabric.nic(flow.src)].rate,
            None => config.fabric.line_rate(),
        };
        let own = match flow.subflow.carrier {
            Carrier::Persistent { share, .. } => {
                Rate::bps((line.as_bps() / u64::from(share)).max(1))
            }
            _ => line,
        };
        let own = speed(own.as_bps()) / f64::from(flow.subflows);
        let CongestionConfig::FixedRate(fixed) = config.transport.congestion else { return own };
        let (each, whole) = (
            Subflow { bytes: flow.part, ..flow.subflow },
            self.messages[flow.subflow.tag as usize].bytes,
        );
        let told = config.pacing.rate_of(&each, whole, line).or(fixed.rate);
        // Gaps are longer by half of the most in the mean.
        let gaps = 1.0 + config.pacing.gap_jitter / 2.0;
        told.map_or(own, |told| own.min(speed(told.as_bps()) / gaps))
    }

    /// The flow shares its links no more.
    pub(crate) fn leave(&mut self, id: u32) {
        self.running -= 1;
        self.capacities.leave(&self.flows[id as usize]);
        self.close_window(id);
        self.load_acks(id, 0.0);
        self.watch_rate(id, 0.0);
        let now = self.now;
        self.rates.remove(self.flows[id as usize].rates);
        if !self.queues.are_used() {
            self.forget_windows(id);
        }
        let flow = &mut self.flows[id as usize];
        flow.left = flow.left_at(now);
        (flow.rate, flow.since, flow.is_running, flow.looked_at) = (0.0, now, false, Time::MAX);
        flow.version += 1;
    }

    /// Windows have grown, and so has what spraying makes of links.
    pub(crate) fn grow(&mut self) {
        if self.capacities.grow() {
            self.agenda.push(self.now + self.capacities.step(), What::Grow);
        }
        self.unsettle(Time::ZERO);
    }

    /// Gives all flows the rates that follow from who is there.
    pub(crate) fn settle(&mut self) {
        self.settle_by = Time::MAX;
        self.drain_queues();
        for _ in 0..3 {
            self.update_capacities();
            let mut rates = std::mem::take(&mut self.rates);
            rates.settle(|id, _, rate| match self.by_rates[id as usize] {
                ring if ring & RING != 0 => self.set_ring_rate(ring & !RING, rate),
                flow if flow & SENDING != 0 => self.set_sending_rate(flow & !SENDING, rate),
                flow => self.set_rate(flow, rate),
            });
            self.rates = rates;
            if !self.capacities.has_changed() {
                break;
            }
        }
        self.expect_queues();
        self.note_windows();
    }

    /// Tells [`crate::rates::Rates`] what acknowledgements leave of each resource.
    fn update_capacities(&mut self) {
        let Engine { capacities, rates, now, .. } = self;
        capacities.update(*now, rates);
    }

    /// Each subflow of a flow has this rate from now on.
    fn set_rate(&mut self, id: u32, rate: f64) {
        let now = self.now;
        let flow = &self.flows[id as usize];
        let rate = rate * f64::from(flow.subflows);
        if (flow.rate - rate).abs() <= rate * 1e-12 && flow.rate > 0.0 {
            return;
        }
        match self.queues.are_used() {
            true => self.queues.changed.push(id),
            false if self.watch.is_none() && flow.rate == 0.0 => self.buffers.begins(id),
            false => {}
        }
        self.load_acks(id, rate);
        self.watch_rate(id, rate);
        let spared = self.most_spared(&self.flows[id as usize]);
        let flow = &mut self.flows[id as usize];
        let is_fresh = flow.rate == 0.0;
        flow.left = flow.left_at(now);
        if is_fresh {
            // It has sent since it began: rates come a little late.
            flow.left -= rate * now.0.saturating_sub(flow.since.0) as f64;
        }
        (flow.rate, flow.since, flow.due) = (rate, now, Time::MAX);
        if rate > 0.0 {
            flow.due = Time(now.0 + ((flow.left - spared).max(0.0) / rate).ceil() as u64);
            if flow.due < flow.looked_at {
                flow.looked_at = flow.due;
                let what = What::Finish { flow: id, version: flow.version };
                self.agenda.push(flow.due, what);
            }
        }
    }

    /// Who watches hosts hears that a flow has another rate.
    fn watch_rate(&mut self, id: u32, rate: f64) {
        if self.watch.is_none() {
            return;
        }
        let limit = self.limit(id) * f64::from(self.flows[id as usize].subflows);
        let flow = &self.flows[id as usize];
        let fabric = self.config.fabric;
        let line = speed(fabric.ports()[fabric.nic(flow.src)].rate.as_bps());
        if let Some(watch) = &mut self.watch {
            watch.set_rate(self.now, flow, (limit, line), rate);
        }
    }

    /// Who watches hosts hears how long packets of a flow wait where other flows share its links: at one
    /// of these, behind which they are as far apart as they leave there.
    fn watch_queues(&mut self, id: u32) {
        if self.watch.is_none() {
            return;
        }
        let fabric = self.config.fabric;
        let flow = &self.flows[id as usize];
        let line = fabric.ports()[fabric.nic(flow.src)].rate;
        let feeding = fabric.hosts_of_leaf(fabric.leaf_of(flow.src)).len();
        let others = |resource: &u32| {
            // All links of a cut are alike to a flow that spreads over them.
            let link = self.layout.first_link(*resource);
            self.rates.flows_on(link).min(feeding).saturating_sub(1)
        };
        let most = flow.forward.as_slice().iter().skip(1).map(others).max().unwrap_or(0);
        // Messages that meet are about as long.
        let each = line.serialize(self.packet_bytes(flow)).0 as f64;
        let share = (flow.rate / speed(line.as_bps())).min(1.0);
        if let Some(watch) = &mut self.watch {
            watch.wait(flow, share, most as f64 * each / 2.0);
        }
    }

    /// Who watches hosts hears what a flow has lost that its first window holds up: acknowledgements wait for half a packet
    /// wherever others send data on their way back, and a window grows by a packet a round trip until it makes up for
    /// what it is short of.
    fn watch_acks(&mut self, id: u32) {
        let first = self.config.transport.congestion.initial_window();
        let (Some(first), true) = (first, self.watch.is_some()) else { return };
        let (fabric, packet) = (self.config.fabric, self.config.packet);
        let flow = &self.flows[id as usize];
        let count = f64::from(flow.subflows);
        let is_busy = |resource: &&u32| self.rates.flows_on(self.layout.first_link(**resource)) > 0;
        let behind = flow.back.as_slice().iter().filter(is_busy).count() as f64 / 2.0;
        let line = fabric.ports()[fabric.nic(flow.src)].rate;
        let data = u64::from(packet.mtu + packet.header);
        let full = line.serialize(data).0 as f64;
        let there = fabric.one_way(flow.src, flow.subflow.dst, data);
        let back = fabric.one_way(flow.subflow.dst, flow.src, u64::from(packet.ack));
        let round_trip = (there + back).0 as f64 + behind * full;
        // In packets.
        let window = (first / u64::from(packet.mtu)) as f64;
        let short = flow.rate / count * round_trip / data as f64 - window;
        if short <= 0.0 || flow.packets as f64 / count <= window {
            return;
        }
        let share = (flow.rate / speed(line.as_bps())).min(1.0);
        if let Some(watch) = &mut self.watch {
            watch.wait(flow, share, short * (short + 1.0) / 2.0 * full);
        }
    }

    /// Who watches hosts hears how many subflows share each link of a flow that marks would slow down.
    fn watch_bursts(&mut self, id: u32) {
        let Some(watch) = &mut self.watch else { return };
        let flow = &self.flows[id as usize];
        let first = self.config.transport.congestion.initial_window().unwrap_or(u64::MAX);
        if flow.part <= first {
            return;
        }
        let own = f64::from(self.messages[flow.subflow.tag as usize].subflows);
        let links = flow.forward.as_slice()[1..].iter().filter(|one| **one < self.layout.len());
        for resource in links {
            let link = self.layout.first_link(*resource);
            let links = self.layout.count(link) as f64;
            watch.meet(self.rates.weight_on(link) / links, own);
        }
    }

    /// What acknowledgements of a flow at `rate` take on its way back.
    fn load_acks(&mut self, id: u32, rate: f64) {
        let flow = &self.flows[id as usize];
        self.capacities.load(self.now, flow, &self.layout, rate - flow.rate);
    }

    /// If it is through indeed, and not slower than it was.
    pub(crate) fn finish_if_due(&mut self, id: u32, version: u32) {
        let now = self.now;
        let flow = &self.flows[id as usize];
        if flow.version != version || !flow.is_running {
            return;
        }
        if flow.due <= now
            && let Some(due) = self.goes_on_until(&self.flows[id as usize])
        {
            self.flows[id as usize].due = due;
        }
        let flow = &mut self.flows[id as usize];
        if flow.due > now {
            flow.looked_at = flow.due;
            if flow.due < Time::MAX {
                self.agenda.push(flow.due, What::Finish { flow: id, version });
            }
            return;
        }
        self.finish(id);
    }

    /// All of a flow has crossed its links.
    fn finish(&mut self, id: u32) {
        if self.loses_last_bytes(id) || self.awaits_timers(id) {
            let Flow { src, subflow, .. } = self.flows[id as usize];
            if self.stop_sending(id) {
                self.sent_all(src, &subflow);
            }
            return;
        }
        let tail = self.tail(id);
        self.keep_gap(id);
        self.watch_queues(id);
        self.watch_acks(id);
        self.leave(id);
        let flow = &self.flows[id as usize];
        let slack = Time((flow.began.until(self.now).0 as f64 * TOLERANCE) as u64);
        let (src, latency, packets, wire) = (flow.src, flow.latency, flow.packets, flow.wire);
        let (forward, back, subflow) = (flow.forward, flow.back, flow.subflow);
        self.unsettle(slack.max(self.latest));
        self.count_until(id, wire);
        let acks = u64::from(self.config.packet.ack) * packets;
        if !self.rings.is_empty()
            && let Some(owner) = self.messages[subflow.tag as usize].owner
        {
            let crossed = [(wire, packets), (acks, packets)];
            self.ring_crossed(&owner, [forward, back], crossed);
        }
        let there = self.now + latency + tail;
        let ack = self.config.fabric.one_way(subflow.dst, src, u64::from(self.config.packet.ack));
        self.agenda.push(there + ack, What::Acknowledged(id));
        self.arrives(&subflow, there);
        if self.stop_sending(id) {
            self.sent_all(src, &subflow);
        }
    }

    /// How much later than it would without queues the last packet arrives.
    fn tail(&self, id: u32) -> Time {
        let flow = &self.flows[id as usize];
        if !self.spreads {
            return Time::ZERO;
        }
        let draw = Draw::new(self.config.seed, "spray-tail");
        self.capacities.tail(self.now, (flow, self.packet_bytes(flow)), draw)
    }

    /// Counts what of the first `crossed` bytes of a flow has not been counted yet, on the path that it has.
    fn count_until(&mut self, id: u32, crossed: u64) {
        let flow = &mut self.flows[id as usize];
        let (wire, before) = (flow.wire.max(1), flow.counted);
        if crossed <= before {
            return;
        }
        flow.counted = crossed;
        let packets_of =
            |bytes: u64| (u128::from(flow.packets) * u128::from(bytes) / u128::from(wire)) as u64;
        let packets = packets_of(crossed) - packets_of(before);
        let (forward, back) = (flow.forward, flow.back);
        self.count(forward, crossed - before, packets);
        self.count(back, u64::from(self.config.packet.ack) * packets, packets);
    }

    fn count(&mut self, resources: Resources, bytes: u64, packets: u64) {
        for resource in resources.as_slice().iter().filter(|one| **one < self.layout.len()) {
            self.bytes[*resource as usize] += bytes;
            self.packets[*resource as usize] += packets;
        }
    }
}
