//! Messages become queue pairs: what planners are told; how many, at what rate, from when on.

use super::flow::{PacketHooks, ReceivingQp, SendingQp, Stage, packets_of, parts, stretched};
use super::planes::{MOST as MOST_PLANES, Plane, in_turn};
use crate::config::Service;
use crate::engine::Engine;
use crate::event::{Class, Event, Target};
use crate::mail::Opening;
use crate::packet::HashFields;
use crate::partition::{OwnHost, ReceiverId, SendingId};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::Steering;
use weft_balance::plan::{Carrier, Chunk, Post, QueuePairId, Subflow};
use weft_balance::steer::FlowContext;
use weft_transport::{Congestion, FlowPace, Sender};
use weft_units::{Draw, HostId, Time, random};

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// The planner of `host` takes a message.
    pub(crate) fn plan(&mut self, host: OwnHost, post: Post) {
        let planner = &mut self.nics.hosts[host].planner;
        planner.post(self.now, post, self.config.fabric, &mut self.nics.subflows);
        let deadline = planner.deadline();
        self.flush_by(host, deadline);
        self.open_flows(host);
    }

    /// Sees to it that a `Flush` event comes at `deadline`.
    pub(crate) fn flush_by(&mut self, host: OwnHost, deadline: Option<Time>) {
        let state = &mut self.nics.hosts[host];
        if let Some(at) = deadline
            && state.flush_at != deadline
        {
            state.flush_at = deadline;
            self.agenda.push_at_host(Event::new(at, Class::Flush, host.0), host);
        }
    }

    /// A planner's batch is complete.
    pub(crate) fn flush(&mut self, host: OwnHost) {
        let state = &mut self.nics.hosts[host];
        state.flush_at = None;
        state.planner.flush(self.now, self.config.fabric, &mut self.nics.subflows);
        let deadline = state.planner.deadline();
        self.flush_by(host, deadline);
        self.open_flows(host);
    }

    /// Opens a queue pair, or the configured number of them, for every subflow that the planner
    /// of `host` has put out.
    pub(crate) fn open_flows(&mut self, host: OwnHost) {
        let mut subflows = std::mem::take(&mut self.nics.subflows);
        for subflow in subflows.drain(..) {
            let count = match subflow.carrier {
                Carrier::Chunk(_) => 1,
                _ => self.config.pacing.subflows * self.planes_of_flow(host, &subflow),
            };
            for (part, bytes) in parts(self.config, subflow.bytes, count) {
                self.messages.add_subflow(SendingId(subflow.tag));
                self.open_flow(host, Subflow { bytes, ..subflow }, part);
            }
        }
        self.nics.subflows = subflows;
    }

    /// Opens a queue pair for the `unit`-th unit of accounting of a subflow.
    fn open_flow(&mut self, host: OwnHost, subflow: Subflow, unit: u32) {
        let config = self.config;
        let queue_pair = subflow.carrier.persistent();
        let chunk = subflow.carrier.chunk();
        let packets = packets_of(config, subflow.bytes);
        let sender = Sender::new(&config.transport.recovery, packets);
        let mtu = u64::from(config.packet.mtu);
        let (packets, last_payload) = match sender.is_rateless() {
            true => (0, subflow.bytes.min(mtu)),
            false => (packets, subflow.bytes - u64::from(packets - 1) * mtu),
        };
        let name = Draw::new(config.seed, "flow-key");
        // The parts of a subflow have its addresses, and random numbers of their own.
        let key = match queue_pair {
            None => name.at(u64::from(subflow.message.0), u64::from(subflow.part)),
            Some(id) => self.address(host, id, subflow.dst),
        };
        let part = u64::from(unit) << 32 | u64::from(subflow.part);
        let own = name.at(u64::from(subflow.message.0), part);
        let free = self.nics.hosts[host].free.pop();
        let id = free.unwrap_or(self.nics.senders.len() as u32);
        assert!(id < Target::LIMIT, "{id} queue pairs at once are too many");
        let receiver = self.open_receiver(host, id, &subflow);
        let before = queue_pair.map(|id| self.nics.hosts[host].persistent.take_over(id));
        let before = before.unwrap_or_default();
        let context = self.flow_context(host, &subflow, own);
        let steering = Steering::new(&config.balance, &context);
        let dead = self.dead_between(host, subflow.dst);
        let plane = match chunk {
            Some(Chunk { port: Some(port), .. }) => u32::from(port),
            // Chunks of a queue pair are packets of one connection, which a bond hashes alike.
            Some(Chunk { queue_pair, .. }) => {
                let address = self.address(host, queue_pair, subflow.dst);
                in_turn(self.live_ports(dead), address as u32)
            }
            None => in_turn(self.live_ports(dead), unit.wrapping_add(key as u32)),
        };
        let planes = match steering.is_fixed() {
            true => 1 << plane,
            false => u8::MAX >> (MOST_PLANES as u32 - self.planes()),
        };
        let pace = self.pace(host, &subflow);
        let congestion = before
            .congestion
            .unwrap_or_else(|| Congestion::new(&config.transport.congestion, &pace));
        let is_timed = steering.is_timed() || congestion.wants_rtt() || steering.names_losses();
        let size = subflow.bytes.min(u64::from(config.packet.mtu)) as u32 + config.packet.header;
        let gap = congestion.pacing(size).unwrap_or(Time::ZERO);
        let delay = subflow.delay + self.start_delay(gap, own);
        let delay = delay.max(self.now.until(before.due));
        let is_awaited = queue_pair.is_some() || self.awaits_departures();
        let is_reported = config.transport.recovery.reports();
        let care = PacketHooks::new(&steering, is_timed, is_awaited, is_reported);
        let (care, steering) = match self.planes() {
            1 => (care, steering),
            _ => {
                let known = Plane::all(config, &context, steering);
                let first = self.nics.ports.index(id, 0);
                let end = self.nics.planes.len().min(first + known.len());
                self.nics.planes.splice(first..end, known);
                (care.in_planes(), Steering::Fixed)
            }
        };
        self.nics.need_all |= congestion.is_paced() || !care.is_plain();
        let flow = SendingQp {
            sender,
            congestion,
            steering,
            queue_pair,
            route: subflow.route,
            key: self.hash_key(host, key as u32),
            src: host,
            dst: subflow.dst,
            receiver,
            message: SendingId(subflow.tag),
            packets,
            last_payload: last_payload as u16,
            hooks: care,
            queued: 0,
            planes,
            dead,
            waiting: true,
            stage: Stage::New,
            // The timer of whoever had the place before may come too late for a chunk.
            timed: chunk.is_none()
                && free.is_some_and(|place| self.nics.senders[place as usize].timed),
            out: 0,
            nacked: false,
            granted: false,
            due: Time::ZERO,
            departures: is_timed.then(Box::default),
            bytes: subflow.bytes,
        };
        match free {
            Some(_) => self.nics.senders[id as usize] = flow,
            None => self.nics.senders.push(flow),
        }
        let senders = &self.nics.senders;
        let has_left = |id: u32| !senders[id as usize].sender.has_work();
        self.nics.chunks.open(id, host, chunk, has_left);
        let counted = queue_pair.or(chunk.map(|chunk| chunk.queue_pair));
        self.nics.hosts[host].open_queue_pair(counted);
        if config.service == Service::OldestFirst {
            self.nics.opening_order.resize(self.nics.senders.len(), 0);
            self.nics.opening_order[id as usize] = self.nics.hosts[host].opened;
        }
        if delay > Time::ZERO {
            self.agenda.push_at_host(Event::new(self.now + delay, Class::Start, id), host);
        } else {
            self.enter_round(id);
            self.wake_later(host);
        }
    }

    /// In how many planes a subflow has queue pairs of its own: in all, if its packets take the same path.
    fn planes_of_flow(&self, host: OwnHost, subflow: &Subflow) -> u32 {
        match self.planes() {
            1 => 1,
            // A bond hashes a flow to one of its ports.
            _ if self.config.fabric.homes() > 1 => 1,
            planes => {
                let steering =
                    Steering::new(&self.config.balance, &self.flow_context(host, subflow, 0));
                if steering.is_fixed() { planes } else { 1 }
            }
        }
    }

    /// What a queue pair's steering is told, where the flow has such random numbers.
    fn flow_context(&self, host: OwnHost, subflow: &Subflow, own: u64) -> FlowContext<'_> {
        let config = self.config;
        FlowContext {
            flow: own,
            seed: config.seed,
            mtu: config.packet.mtu,
            bdp: config.balance.bdp,
            wire_bytes: (config.packet.mtu + config.packet.header, config.packet.ack),
            trims: config.switch.trim.is_some(),
            probes: config.transport.recovery.reports(),
            fabric: config.fabric,
            hosts: (self.nics.hosts[host].id, subflow.dst),
            hashing: config.hashing(),
        }
    }

    /// What congestion control is told of the queue pair that carries `subflow`.
    fn pace(&self, host: OwnHost, subflow: &Subflow) -> FlowPace {
        let config = self.config;
        let src = self.nics.hosts[host].id;
        let whole = self.messages.sending(SendingId(subflow.tag)).bytes;
        let line = config.fabric.ports()[config.fabric.nic(src)].rate;
        FlowPace {
            mtu: config.packet.mtu,
            rate: config.pacing.rate_of(subflow, whole, line),
            share: subflow.carrier.share(),
            hops: config.fabric.hops(src, subflow.dst),
            header: config.packet.header,
            trims: config.switch.trim.is_some(),
        }
    }

    /// What packets of `host` carry for switches to hash: `drawn`, unless they hash addresses.
    fn hash_key(&self, host: OwnHost, drawn: u32) -> u32 {
        match self.config.switch.hash {
            None => drawn,
            Some(_) => HashFields::key_of(self.nics.hosts[host].id, drawn),
        }
    }

    /// What switches hash of the addresses of a persistent queue pair of `host`.
    fn address(&self, host: OwnHost, id: QueuePairId, dst: HostId) -> u64 {
        let queue_pair = u64::from(self.nics.hosts[host].id.0) << 32 | u64::from(id.0);
        Draw::new(self.config.seed, "queue-pair-key").at(queue_pair, u64::from(dst.0))
    }

    /// How much later a queue pair starts whose packets leave every `gap`.
    fn start_delay(&self, gap: Time, flow: u64) -> Time {
        let share = self.config.pacing.start_gaps;
        if share == 0.0 {
            return Time::ZERO;
        }
        let bits = Draw::new(self.config.seed, "pacing-start").at(flow, 0);
        stretched(gap, share * random::unit(bits))
    }

    /// Makes the receiving half of the queue pair that `host` opens as its `sender`.
    fn open_receiver(&mut self, host: OwnHost, sender: u32, subflow: &Subflow) -> ReceiverId {
        let Subflow { bytes, dst, tag, .. } = *subflow;
        let message = self.messages.sending(SendingId(tag)).receiving;
        let partition = self.world.partitioning.hosts[dst].partition;
        let free = self.nics.free_receivers[usize::from(partition)].pop();
        let number = free.unwrap_or_else(|| {
            let opened = &mut self.nics.opened[usize::from(partition)];
            *opened += 1;
            *opened - 1
        });
        let opening = Opening { src: self.nics.hosts[host].id, sender, number, message, bytes };
        if partition == self.own {
            self.open_receiving(usize::from(partition), &opening);
        } else {
            self.agenda.mail_to(partition).openings.push(opening);
        }
        ReceiverId::new(self.own, number)
    }

    /// Takes in the receiving half of a queue pair that a host of partition `from` has opened.
    pub(crate) fn open_receiving(&mut self, from: usize, opening: &Opening) {
        let flow = ReceivingQp::new(self.config, opening);
        let flows = &mut self.nics.receivers[from];
        let over = match flows.get_mut(opening.number as usize) {
            Some(place) => Some(std::mem::replace(place, flow)),
            None => {
                flows.push(flow);
                None
            }
        };
        match (&mut self.jobs, over) {
            (Some(jobs), over) => {
                let over = over.map(|over| over.reordering);
                let message = self.messages.receiving(opening.message).message;
                jobs.records.serve(from, opening.number, message, over);
            }
            (None, Some(over)) => self.messages.add_reordering(over.message, &over.reordering),
            (None, None) => {}
        }
    }
}
