//! New queue pairs: how many, at what rate, from when on.

use super::flow::{PacketHooks, ReceivingQp, SendingQp, Stage, packets_of, parts, stretched};
use crate::config::Service;
use crate::engine::Engine;
use crate::event::{Class, Event, Target};
use crate::mail::Opening;
use crate::messages::SendingId;
use crate::packet::HashFields;
use crate::partition::{OwnHost, ReceiverId};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::Steering;
use weft_balance::plan::{Carrier, QueuePairId, Subflow};
use weft_balance::steer::FlowContext;
use weft_transport::{Congestion, FlowPace, Sender};
use weft_units::{Draw, HostId, Rate, Time, random};

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Opens a queue pair, or the configured number of them, for every subflow that the planner
    /// of `host` has put out.
    pub(crate) fn open_flows(&mut self, host: OwnHost) {
        let mut subflows = std::mem::take(&mut self.subflows);
        for subflow in subflows.drain(..) {
            for (part, bytes) in parts(self.config, subflow.bytes) {
                self.jobs.add_subflow(SendingId(subflow.tag));
                self.open_flow(host, Subflow { bytes, ..subflow }, part);
            }
        }
        self.subflows = subflows;
    }

    /// Opens a queue pair for the `unit`-th unit of accounting of a subflow.
    fn open_flow(&mut self, host: OwnHost, subflow: Subflow, unit: u32) {
        let config = self.config;
        let queue_pair = subflow.carrier.persistent();
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
        let free = self.hosts[host].free.pop();
        let id = free.unwrap_or(self.senders.len() as u32);
        assert!(id < Target::LIMIT, "{id} queue pairs at once are too many");
        let receiver = self.open_receiver(host, id, &subflow);
        let steering = Steering::new(
            &config.balance,
            &FlowContext {
                flow: own,
                seed: config.seed,
                mtu: config.packet.mtu,
                bdp: config.balance.bdp,
                fabric: config.fabric,
                hosts: (self.hosts[host].id, subflow.dst),
                hashing: config.hashing(),
            },
        );
        let pace = self.pace(host, &subflow);
        let before = self.hosts[host].take_over(queue_pair);
        let congestion = before
            .congestion
            .unwrap_or_else(|| Congestion::new(&config.transport.congestion, &pace));
        let is_timed = steering.is_timed() || congestion.wants_rtt();
        let size = subflow.bytes.min(u64::from(config.packet.mtu)) as u32 + config.packet.header;
        let gap = congestion.pacing(size).unwrap_or(Time::ZERO);
        let delay = subflow.delay + self.start_delay(gap, own);
        let delay = delay.max(self.now.until(before.due));
        let is_awaited = queue_pair.is_some() || self.awaits_departures();
        let care = PacketHooks::new(is_timed || !steering.is_fixed(), is_awaited);
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
            queued: false,
            waiting: true,
            stage: Stage::New,
            timed: free.is_some_and(|place| self.senders[place as usize].timed),
            out: 0,
            shaken: false,
            granted: false,
            due: Time::ZERO,
            departures: is_timed.then(Box::default),
            bytes: subflow.bytes,
        };
        match free {
            Some(_) => self.senders[id as usize] = flow,
            None => self.senders.push(flow),
        }
        self.hosts[host].open_queue_pair(queue_pair);
        if config.service == Service::OldestFirst {
            self.opening_order.resize(self.senders.len(), 0);
            self.opening_order[id as usize] = self.hosts[host].opened;
        }
        if delay > Time::ZERO {
            self.agenda.push(Event::new(self.now + delay, Class::Start, id));
        } else {
            self.enter_round(id);
            self.wake_later(host);
        }
    }

    /// What congestion control is told of the queue pair that carries `subflow`.
    fn pace(&self, host: OwnHost, subflow: &Subflow) -> FlowPace {
        let config = self.config;
        FlowPace {
            mtu: config.packet.mtu,
            rate: self.fixed_rate(host, subflow),
            share: subflow.carrier.share(),
            hops: config.fabric.hops(self.hosts[host].id, subflow.dst),
        }
    }

    /// What packets of `host` carry for switches to hash: `drawn`, unless they hash addresses.
    fn hash_key(&self, host: OwnHost, drawn: u32) -> u32 {
        match self.config.switch.hash {
            None => drawn,
            Some(_) => HashFields::key_of(self.hosts[host].id, drawn),
        }
    }

    /// What switches hash of the addresses of a persistent queue pair of `host`.
    fn address(&self, host: OwnHost, id: QueuePairId, dst: HostId) -> u64 {
        let queue_pair = u64::from(self.hosts[host].id.0) << 32 | u64::from(id.0);
        Draw::new(self.config.seed, "queue-pair-key").at(queue_pair, u64::from(dst.0))
    }

    /// The rate of the queue pair that carries `subflow`, if congestion control leaves that to others:
    /// its part of the message's, by bytes or among those that carry it side by side, and no more
    /// than its share of the line rate.
    fn fixed_rate(&self, host: OwnHost, subflow: &Subflow) -> Option<Rate> {
        let whole = self.jobs.sending(SendingId(subflow.tag)).bytes;
        let part = |rate: Rate| {
            let bits = u128::from(rate.as_bps()) * u128::from(subflow.bytes);
            Rate::bps(((bits / u128::from(whole)) as u64).max(1))
        };
        let rate = self.config.pacing.rates.of(subflow.message);
        let Carrier::Persistent { share, beside, .. } = subflow.carrier else {
            return rate.map(part);
        };
        let rate = rate.map(|rate| Rate::bps((rate.as_bps() / u64::from(beside)).max(1)));
        if share == 1 {
            return rate;
        }
        let nic = self.world.partitioning.partitions[usize::from(self.own)].ports[host.nic()];
        let line = self.config.fabric.ports()[nic].rate.as_bps();
        let share = Rate::bps((line / u64::from(share)).max(1));
        Some(rate.map_or(share, |rate| rate.min(share)))
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
        let message = self.jobs.sending(SendingId(tag)).receiving;
        let partition = self.world.partitioning.hosts[dst].partition;
        let free = self.free_receivers[usize::from(partition)].pop();
        let number = free.unwrap_or_else(|| {
            let opened = &mut self.opened[usize::from(partition)];
            *opened += 1;
            *opened - 1
        });
        let opening = Opening { src: self.hosts[host].id, sender, number, message, bytes };
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
        let flows = &mut self.receivers[from];
        let over = match flows.get_mut(opening.number as usize) {
            Some(place) => Some(std::mem::replace(place, flow)),
            None => {
                flows.push(flow);
                None
            }
        };
        match (&mut self.ranks, over) {
            (Some(ranks), over) => {
                let over = over.map(|over| over.reordering);
                let message = self.jobs.receiving(opening.message).message;
                ranks.records.serve(from, opening.number, message, over);
            }
            (None, Some(over)) => self.jobs.add_reordering(over.message, &over.reordering),
            (None, None) => {}
        }
    }
}
