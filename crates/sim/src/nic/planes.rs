//! NICs with several ports, each in a plane of its own.
//!
//! A queue pair that sprays sends by whatever port is free, and steers in each plane as if there were no
//! other: a scheme has one state a plane, with entropy values that stay there. One whose packets must keep
//! their order is bound to a plane; a flow of such a scheme is a queue pair in every plane, with equal shares.
//!
//! Ports at several homes in one network are like planes, but for this: a flow whose packets keep their order is hashed to
//! one of the ports that are alive, as a bond does (LAG, layer 3 and 4), and stays there until the link is known to be
//! dead; then it is hashed among the others.
//!
//! A port whose link is dead is known to be so after some time, and in planes to all who send there; nobody uses it.
//! Before that a plane from which nothing comes back is left alone for a while: of a queue pair that timed out,
//! each plane into which something left so long ago, and from which nothing has come since. If that is so of all
//! planes, it says nothing of any.

use super::flow::SendingQp;
use crate::config::RunConfig;
use crate::engine::Engine;
use crate::partition::{OutPort, OwnHost};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::Steering;
use weft_balance::plan::Route;
use weft_balance::steer::{Departure, Feedback, FlowContext, TimeOut};
use weft_units::{Draw, HostId, Time};

/// The most planes: bits of a byte.
pub(super) const MOST: usize = 8;
/// For so many time-outs a silent plane is not tried again.
const BARRED: u64 = 8;

/// What a queue pair knows of its planes: of up to five, what packets touch is in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Planes {
    /// Of each plane; none where packets keep their order.
    steerings: Box<[Steering]>,
    /// Those in which a port at either end is known to be dead, a bit each.
    dead: u8,
    /// Those that are, or were, left alone, a bit each.
    barred: u8,
    /// When the first packet left into each that nothing has come from since; [`Time::MAX`]: there is none.
    silent_since: [Time; MOST],
    /// Until when each is left alone.
    barred_until: [Time; MOST],
}

impl Planes {
    /// Of a new flow; `first` is what steers in the first plane.
    pub(super) fn new(
        config: &RunConfig,
        flow: &FlowContext<'_>,
        first: Steering,
        dead: u8,
    ) -> Planes {
        let name = Draw::new(config.seed, "plane");
        let (first, others) = match first.is_fixed() {
            true => (None, 1..1),
            false => (Some(first), 1..config.fabric.nic_ports()),
        };
        let steering = |plane: u32| {
            let flow = FlowContext { flow: name.at(flow.flow, u64::from(plane)), ..*flow };
            Steering::new(&config.balance, &flow)
        };
        Planes {
            steerings: first.into_iter().chain(others.map(steering)).collect(),
            dead,
            barred: 0,
            silent_since: [Time::MAX; MOST],
            barred_until: [Time::ZERO; MOST],
        }
    }
    /// All is acknowledged: nothing is left to steer.
    pub(super) fn forget(&mut self) {
        self.steerings = Box::default();
    }
    /// Whether `flow`, whose planes these are, sends into `plane` for now.
    #[inline(always)]
    pub(super) fn are_open(&self, now: Time, flow: &SendingQp, plane: u32) -> bool {
        (flow.planes & !self.dead) >> plane & 1 == 1 && !self.is_barred(now, plane)
    }
    /// Packet `seq` of `flow`, whose planes these are, leaves into `plane`: by which route?
    #[inline(always)]
    pub(super) fn route(
        &mut self,
        flow: &mut SendingQp,
        plane: u32,
        seq: u32,
        at: Departure,
    ) -> Route {
        self.leave(at.now, plane);
        if flow.hooks.is_plain() {
            return flow.route;
        }
        flow.note_departure(at.now, seq);
        let route = match self.steering_in(plane) {
            Some(steering) => steering.route(flow.route, at),
            None => flow.route,
        };
        if flow.hooks.names_losses() {
            flow.note_way(seq, plane, route);
        }
        route
    }
    /// What steers in a plane, unless packets keep their order.
    #[inline(always)]
    fn steering_in(&mut self, plane: u32) -> Option<&mut Steering> {
        self.steerings.get_mut(plane as usize)
    }
    #[inline(always)]
    fn leave(&mut self, now: Time, plane: u32) {
        let since = &mut self.silent_since[plane as usize % MOST];
        *since = now.min(*since);
    }
    #[inline(always)]
    fn hear(&mut self, plane: u32) {
        self.silent_since[plane as usize % MOST] = Time::MAX;
        self.barred &= !(1 << plane);
    }
    #[inline(always)]
    fn is_barred(&self, now: Time, plane: u32) -> bool {
        self.barred >> plane & 1 == 1 && now < self.barred_until[plane as usize]
    }
    /// Whether a queue pair that is bound to plane `own` leaves it: not for a single loss, nor when the
    /// packets that it sent into the plane before run out one by one. Half the time-out, since a timer may have begun
    /// before the first packet that nothing came back for.
    fn is_left(&mut self, TimeOut { now, after }: TimeOut, own: u32) -> bool {
        let since = &mut self.silent_since[own as usize];
        let is_left = since.saturating_add(Time(after.0 / 2)) <= now;
        if is_left {
            *since = Time::MAX;
        }
        is_left
    }
    /// Bars those of `planes`, a bit each, that are silent; not all of them.
    fn time_out(&mut self, TimeOut { now, after }: TimeOut, planes: u32) {
        let is_silent = |since: Time| since.saturating_add(after) <= now;
        let all = 0..planes as usize;
        if all
            .clone()
            .all(|plane| self.is_barred(now, plane as u32) || is_silent(self.silent_since[plane]))
        {
            self.barred = 0;
            return;
        }
        for plane in all {
            if !is_silent(self.silent_since[plane]) {
                continue;
            }
            self.silent_since[plane] = Time::MAX;
            self.barred_until[plane] = now + after * BARRED;
            self.barred |= 1 << plane;
        }
    }
}

/// One of `planes`, a bit each: another one at each turn.
pub(super) fn in_turn(planes: u8, turn: u32) -> u32 {
    let mut all = (0..MOST as u32).filter(|plane| planes >> plane & 1 == 1);
    all.nth((turn % planes.count_ones().max(1)) as usize).unwrap_or(0)
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// How many planes there are.
    #[inline(always)]
    pub(super) fn planes(&self) -> u32 {
        self.nics.ports.planes
    }
    /// If the ports of the NIC of `host` are free, sends the next packets in turn.
    #[inline(always)]
    pub(crate) fn pull(&mut self, host: OwnHost) {
        match self.planes() {
            1 => self.pull_in_plane::<false>(host, 0),
            _ => match self.all_ports() & !self.nics.hosts[host].told {
                0 => {}
                open => self.pull_in_planes(host, open),
            },
        }
    }
    #[inline(never)]
    fn pull_in_planes(&mut self, host: OwnHost, mut open: u8) {
        while open != 0 {
            self.pull_in_plane::<true>(host, open.trailing_zeros());
            open &= open - 1;
        }
    }
    #[inline(always)]
    fn pull_by_port(&mut self, port: OutPort) {
        let (host, plane) = self.nics.ports.owner(port);
        self.nics.hosts[host].told &= !(1 << plane);
        self.pull_in_planes(host, 1 << plane);
    }
    /// A port of a NIC asks for data.
    #[inline(always)]
    pub(crate) fn pull_port(&mut self, port: OutPort) {
        match self.planes() {
            // NICs are numbered as their hosts.
            1 => self.pull_in_plane::<false>(OwnHost(port.0), 0),
            _ => self.pull_by_port(port),
        }
    }
    /// What timed out at queue pair `id` is told to the states that steered it, if they ask.
    pub(super) fn name_losses(&mut self, id: u32, TimeOut { now, after }: TimeOut) {
        let nics = &mut self.nics;
        let flow = &mut nics.senders[id as usize];
        if !flow.hooks.names_losses() {
            return;
        }
        let mut ways = Vec::new();
        let by = Time(now.0.saturating_sub(after.0));
        if let Some(departures) = &flow.departures {
            flow.sender.each_lost(&mut |seq| ways.extend(departures.way_until(seq, by)));
        }
        for way in ways {
            let (plane, entropy) = (way >> u16::BITS, way as u16);
            if let Some(steering) = self.steering_of(id, plane) {
                steering.on_lost(now, entropy);
            }
        }
        self.plan_path_probes(id);
    }
    /// What came back to queue pair `id` by `port`, for the state that steers there.
    #[inline(always)]
    pub(super) fn steer(&mut self, id: u32, port: OutPort, feedback: Feedback) {
        let flow = &mut self.nics.senders[id as usize];
        match flow.hooks.is_planed() {
            false => flow.steering.on_ack(feedback),
            true => self.steer_in_plane(id, port, feedback),
        }
    }
    #[inline(never)]
    pub(super) fn steer_in_plane(&mut self, id: u32, port: OutPort, feedback: Feedback) {
        let nics = &mut self.nics;
        let (_, plane) = nics.ports.owner(port);
        if let Some(steering) = nics.planes[id as usize].steering_in(plane) {
            steering.on_ack(feedback);
        }
    }
    /// What steers queue pair `id` in a plane, unless its packets keep their order there.
    pub(super) fn steering_of(&mut self, id: u32, plane: u32) -> Option<&mut Steering> {
        let flow = &mut self.nics.senders[id as usize];
        match flow.hooks.is_planed() {
            false => Some(&mut flow.steering),
            true => self.nics.planes[id as usize].steering_in(plane),
        }
    }
    /// Something came back to queue pair `id` by `port`.
    #[inline(always)]
    pub(super) fn hear_from_plane(&mut self, id: u32, port: OutPort) {
        if self.planes() > 1 {
            let (_, plane) = self.nics.ports.owner(port);
            self.nics.planes[id as usize].hear(plane);
        }
    }
    /// Queue pair `id` timed out.
    pub(super) fn steer_time_out(&mut self, id: u32, time_out: TimeOut) {
        let nics = &mut self.nics;
        let flow = &mut nics.senders[id as usize];
        flow.steering.on_time_out(time_out);
        let count = nics.ports.planes;
        if count == 1 {
            return;
        }
        let planes = &mut nics.planes[id as usize];
        planes.steerings.iter_mut().for_each(|steering| steering.on_time_out(time_out));
        if flow.planes.count_ones() > 1 {
            planes.time_out(time_out, count);
        } else if self.config.fabric.homes() == 1 && nics.chunks.number(id).is_none() {
            // Its packets keep their order in one plane: that is another one, if this one is silent.
            let own = flow.planes.trailing_zeros();
            if planes.is_left(time_out, own) {
                let mut others = (1..count).map(|step| (own + step) % count);
                let next = others.find(|plane| planes.dead >> plane & 1 == 0);
                flow.planes = 1 << next.unwrap_or(own);
            }
        }
    }
    /// All ports of a NIC, a bit each.
    #[inline(always)]
    fn all_ports(&self) -> u8 {
        u8::MAX >> (u8::BITS - self.planes())
    }
    /// Those of whose links none is in `dead`, if there are such.
    pub(super) fn live_ports(&self, dead: u8) -> u8 {
        let all = self.all_ports();
        if all & !dead == 0 { all } else { all & !dead }
    }
    /// The ports by which nothing reaches `dst` from `src`, by what is known of their links: those of `src`, and in planes
    /// those of `dst`, which tells its peers (MRC 1.0: port bitmap, port status updates).
    pub(super) fn dead_between(&self, src: OwnHost, dst: HostId) -> u8 {
        let dead = &self.nics.dead;
        if dead.is_empty() {
            return 0;
        }
        let src = self.world.partitioning.partitions[usize::from(self.own)].hosts[src];
        let of = |host: HostId| dead.get(&host).copied().unwrap_or(0);
        of(src) | if self.config.fabric.homes() == 1 { of(dst) } else { 0 }
    }
    /// It is known now which ports of NICs have dead links: what goes by these goes on by others.
    #[cold]
    pub(crate) fn learn_nic_ports(&mut self, known: &[(HostId, u8)]) {
        if self.planes() == 1 {
            return;
        }
        self.nics.dead = known.iter().copied().collect();
        for id in 0..self.nics.senders.len() as u32 {
            let flow = &self.nics.senders[id as usize];
            let (host, key, planes) = (flow.src, flow.key, flow.planes);
            let dead = self.dead_between(host, flow.dst);
            self.nics.planes[id as usize].dead = dead;
            if planes.count_ones() == 1 && planes & dead != 0 {
                let port = in_turn(self.live_ports(dead), key);
                self.nics.senders[id as usize].planes = 1 << port;
            }
            if dead != 0 {
                self.rejoin(id);
                self.wake_later(host);
            }
        }
    }
}
