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

/// The ports of a NIC.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Several {
    /// Those that are sure to ask for data, a bit each: nothing is to be sent before.
    told: u8,
    /// The one that sent last.
    pub(super) last: u8,
}

/// What a queue pair knows of one of its planes.
#[derive(Debug)]
pub(super) struct Plane {
    /// Fixed where packets keep their order.
    steering: Steering,
    /// When the first packet left that nothing has come since; [`Time::MAX`]: there is none.
    silent_since: Time,
    /// Until when it is left alone.
    barred_until: Time,
}

impl Plane {
    /// Those of a new flow; `first` is what steers in the first one.
    pub(super) fn all(config: &RunConfig, flow: &FlowContext<'_>, first: Steering) -> Vec<Plane> {
        let name = Draw::new(config.seed, "plane");
        let is_fixed = first.is_fixed();
        let others = (1..config.fabric.nic_ports()).map(|plane| match is_fixed {
            true => Steering::Fixed,
            false => {
                let flow = FlowContext { flow: name.at(flow.flow, u64::from(plane)), ..*flow };
                Steering::new(&config.balance, &flow)
            }
        });
        let plane =
            |steering| Plane { steering, silent_since: Time::MAX, barred_until: Time::ZERO };
        std::iter::once(first).chain(others).map(plane).collect()
    }
    #[inline(always)]
    pub(super) fn is_barred(&self, now: Time) -> bool {
        now < self.barred_until
    }
    /// Packet `seq` of `flow` leaves into it, number `plane`: by which route?
    #[inline(always)]
    pub(super) fn route(
        &mut self,
        flow: &mut SendingQp,
        plane: u32,
        seq: u32,
        at: Departure,
    ) -> Route {
        self.silent_since = at.now.min(self.silent_since);
        if flow.hooks.is_plain() {
            return flow.route;
        }
        flow.note_departure(at.now, seq);
        let route = self.steering.route(flow.route, at);
        if flow.hooks.names_losses() {
            flow.note_way(seq, plane, route);
        }
        route
    }
    #[inline(always)]
    pub(super) fn hear(&mut self) {
        (self.silent_since, self.barred_until) = (Time::MAX, Time::ZERO);
    }
    /// Whether a queue pair that is bound to it leaves it: not for a single loss, nor when the
    /// packets that it sent into the plane before run out one by one. Half the time-out, since a timer may have begun
    /// before the first packet that nothing came back for.
    fn is_left(&mut self, TimeOut { now, after }: TimeOut) -> bool {
        let is_left = self.silent_since.saturating_add(Time(after.0 / 2)) <= now;
        if is_left {
            self.silent_since = Time::MAX;
        }
        is_left
    }
    fn is_silent(&self, time_out: TimeOut) -> bool {
        time_out.reaches(self.silent_since)
    }
    /// Bars those of `planes` that are silent; not all of them.
    fn time_out(planes: &mut [Plane], at: TimeOut) {
        if planes.iter().all(|plane| plane.is_barred(at.now) || plane.is_silent(at)) {
            planes.iter_mut().for_each(|plane| plane.barred_until = Time::ZERO);
            return;
        }
        for plane in planes.iter_mut().filter(|plane| plane.is_silent(at)) {
            plane.silent_since = Time::MAX;
            plane.barred_until = at.now + at.after * BARRED;
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
        if self.planes() == 1 {
            self.pull_in_plane::<false>(host, 0);
            return;
        }
        let open = self.nics.ports.all & !self.nics.several[host].told;
        if open != 0 {
            self.pull_in_planes(host, open);
        }
    }
    /// On its own, so that the loop has registers to spare. The port behind the one that sent last is first: if several are
    /// free, none of them gets more than others.
    #[inline(never)]
    fn pull_in_planes(&mut self, host: OwnHost, open: u8) {
        let mut told = 0;
        let first = u32::from(self.nics.several[host].last) + 1;
        let mut open = open.rotate_right(first);
        while open != 0 {
            let plane = (open.trailing_zeros() + first) % u8::BITS;
            told |= u8::from(self.pull_in_plane::<true>(host, plane)) << plane;
            open &= open - 1;
        }
        self.nics.several[host].told |= told;
    }
    /// A port of a NIC asks for data.
    #[inline(always)]
    pub(crate) fn pull_port(&mut self, port: OutPort) {
        if self.planes() == 1 {
            // NICs are numbered as their hosts.
            self.pull_in_plane::<false>(OwnHost(port.0), 0);
            return;
        }
        let (host, plane) = self.nics.ports.owner(port);
        let told = self.pull_in_plane::<true>(host, plane);
        // Without a jump: whether somebody waits is a coin.
        let all = &mut self.nics.several[host].told;
        *all = *all & !(1 << plane) | u8::from(told) << plane;
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
            self.steering_of(id, plane).on_lost(now, entropy);
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
        let plane = nics.ports.plane(port);
        nics.plane(id, plane).steering.on_ack(feedback);
    }
    /// What steers queue pair `id` in a plane.
    pub(super) fn steering_of(&mut self, id: u32, plane: u32) -> &mut Steering {
        match self.planes() {
            1 => &mut self.nics.senders[id as usize].steering,
            _ => &mut self.nics.plane(id, plane).steering,
        }
    }
    /// Something came back to queue pair `id` by `port`.
    #[inline(always)]
    pub(super) fn hear_from_plane(&mut self, id: u32, port: OutPort) {
        if self.planes() > 1 {
            let plane = self.nics.ports.plane(port);
            self.nics.plane(id, plane).hear();
        }
    }
    /// Queue pair `id` timed out.
    pub(super) fn steer_time_out(&mut self, id: u32, time_out: TimeOut) {
        let count = self.planes();
        let nics = &mut self.nics;
        let flow = &mut nics.senders[id as usize];
        flow.steering.on_time_out(time_out);
        if count == 1 {
            return;
        }
        let planes = &mut nics.planes[nics.ports.index(id, 0)..][..count as usize];
        planes.iter_mut().for_each(|plane| plane.steering.on_time_out(time_out));
        if flow.planes.count_ones() > 1 {
            Plane::time_out(planes, time_out);
        } else if self.config.fabric.homes() == 1 && nics.chunks.number(id).is_none() {
            // Its packets keep their order in one plane: that is another one, if this one is silent.
            let own = flow.planes.trailing_zeros();
            if planes[own as usize].is_left(time_out) {
                let mut others = (1..count).map(|step| (own + step) % count);
                let next = others.find(|plane| flow.dead >> plane & 1 == 0);
                flow.planes = 1 << next.unwrap_or(own);
            }
        }
    }
    /// Those of whose links none is in `dead`, if there are such.
    pub(super) fn live_ports(&self, dead: u8) -> u8 {
        let all = self.nics.ports.all;
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
            self.nics.senders[id as usize].dead = dead;
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
