//! New queue pairs: how many, at what rate, from when on.

use super::flow::{Care, ReceiveFlow, SendFlow, Stage, packets_of, parts, stretched};
use crate::config::Service;
use crate::cut::OwnHost;
use crate::engine::Engine;
use crate::event::{Class, Event, ReceiverId, Target, flag};
use crate::jobs::SendingId;
use crate::mail::Opening;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::plan::{Carrier, Piece, QueuePairId};
use weft_balance::steer::Steering;
use weft_transport::{Congestion, FlowPace, Sender};
use weft_units::{Draw, HostId, Rate, Time, random};

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Opens a queue pair, or the configured number of them, for every piece that the planner
    /// of `host` has put out.
    pub(crate) fn open_flows(&mut self, host: OwnHost) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in pieces.drain(..) {
            for (part, bytes) in parts(self.config, piece.bytes) {
                self.jobs.add_piece(SendingId(piece.tag));
                self.open_flow(host, Piece { bytes, ..piece }, part);
            }
        }
        self.pieces = pieces;
    }

    /// Opens a queue pair for the `subflow`-th part of a piece.
    fn open_flow(&mut self, host: OwnHost, piece: Piece, subflow: u32) {
        let config = self.config;
        let queue_pair = piece.carrier.standing();
        let packets = packets_of(config, piece.bytes);
        let sender = Sender::new(&config.transport.recovery, packets);
        let mtu = u64::from(config.packet.mtu);
        let (packets, last_payload) = match sender.is_rateless() {
            true => (0, piece.bytes.min(mtu)),
            false => (packets, piece.bytes - u64::from(packets - 1) * mtu),
        };
        let name = Draw::new(config.seed, "flow-key");
        // The parts of a piece have its addresses, and random numbers of their own.
        let key = match queue_pair {
            None => name.at(u64::from(piece.message.0), u64::from(piece.part)),
            Some(id) => self.address(host, id, piece.dst),
        };
        let part = u64::from(subflow) << 32 | u64::from(piece.part);
        let own = name.at(u64::from(piece.message.0), part);
        let free = self.hosts[host].free.pop();
        let id = free.unwrap_or(self.senders.len() as u32);
        assert!(id < Target::LIMIT, "{id} queue pairs at once are too many");
        let receiver = self.open_receiver(host, id, &piece);
        let steering = Steering::new(&config.balance, own, config.seed, config.packet.mtu);
        let pace = self.pace(host, &piece);
        let before = self.hosts[host].take_over(queue_pair);
        let congestion = before
            .congestion
            .unwrap_or_else(|| Congestion::new(&config.transport.congestion, &pace));
        let is_timed = steering.is_timed() || congestion.wants_rtt();
        let size = piece.bytes.min(u64::from(config.packet.mtu)) as u32 + config.packet.header;
        let gap = congestion.pacing(size).unwrap_or(Time::ZERO);
        let delay = piece.delay + self.start_delay(gap, own);
        let delay = delay.max(self.now.until(before.due));
        let is_awaited = queue_pair.is_some() || self.awaits_departures();
        let care = Care::new(is_timed || !steering.is_fixed(), is_awaited);
        let flow = SendFlow {
            sender,
            congestion,
            steering,
            queue_pair,
            route: piece.route,
            key: self.hash_key(host, key as u32),
            src: host,
            dst: piece.dst,
            receiver,
            message: SendingId(piece.tag),
            packets,
            last_payload: last_payload as u16,
            care,
            queued: false,
            waiting: true,
            stage: Stage::New,
            timed: free.is_some_and(|place| self.senders[place as usize].timed),
            out: 0,
            shaken: false,
            granted: false,
            due: Time::ZERO,
            departures: is_timed.then(Box::default),
            bytes: piece.bytes,
        };
        match free {
            Some(_) => self.senders[id as usize] = flow,
            None => self.senders.push(flow),
        }
        self.hosts[host].open_queue_pair(queue_pair);
        if config.service == Service::OldestFirst {
            self.births.resize(self.senders.len(), 0);
            self.births[id as usize] = self.hosts[host].opened;
        }
        if delay > Time::ZERO {
            self.agenda.push(Event::new(self.now + delay, Class::Start, id));
        } else {
            self.enter_round(id);
            self.wake_later(host);
        }
    }

    /// What congestion control is told of the queue pair that carries `piece`.
    fn pace(&self, host: OwnHost, piece: &Piece) -> FlowPace {
        let config = self.config;
        FlowPace {
            mtu: config.packet.mtu,
            rate: self.fixed_rate(host, piece),
            share: piece.carrier.share(),
            hops: config.fabric.hops(self.hosts[host].id, piece.dst),
        }
    }

    /// What packets of `host` carry for switches to hash: `drawn`, or where they hash addresses that
    /// of the host, with some of the draw to tell its flows apart.
    fn hash_key(&self, host: OwnHost, drawn: u32) -> u32 {
        match self.config.switch.hash {
            None => drawn,
            Some(_) => drawn & !flag::HOST | self.hosts[host].id.0,
        }
    }

    /// What switches hash of the addresses of a standing queue pair of `host`.
    fn address(&self, host: OwnHost, id: QueuePairId, dst: HostId) -> u64 {
        let queue_pair = u64::from(self.hosts[host].id.0) << 32 | u64::from(id.0);
        Draw::new(self.config.seed, "queue-pair-key").at(queue_pair, u64::from(dst.0))
    }

    /// The rate of the queue pair that carries `piece`, if congestion control leaves that to others:
    /// its part of the message's, by bytes or among those that carry it side by side, and no more
    /// than its share of the line rate.
    fn fixed_rate(&self, host: OwnHost, piece: &Piece) -> Option<Rate> {
        let whole = self.jobs.sending(SendingId(piece.tag)).bytes;
        let part = |rate: Rate| {
            let bits = u128::from(rate.as_bps()) * u128::from(piece.bytes);
            Rate::bps(((bits / u128::from(whole)) as u64).max(1))
        };
        let rate = self.config.pacing.rates.of(piece.message);
        let Carrier::Standing { share, beside, .. } = piece.carrier else {
            return rate.map(part);
        };
        let rate = rate.map(|rate| Rate::bps((rate.as_bps() / u64::from(beside)).max(1)));
        if share == 1 {
            return rate;
        }
        let nic = self.world.cut.territories[usize::from(self.own)].ports[host.nic()];
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
    fn open_receiver(&mut self, host: OwnHost, sender: u32, piece: &Piece) -> ReceiverId {
        let Piece { bytes, dst, tag, .. } = *piece;
        let message = self.jobs.sending(SendingId(tag)).receiving;
        let domain = self.world.cut.hosts[dst].domain;
        let free = self.free_receivers[usize::from(domain)].pop();
        let number = free.unwrap_or_else(|| {
            let opened = &mut self.opened[usize::from(domain)];
            *opened += 1;
            *opened - 1
        });
        let opening = Opening { src: self.hosts[host].id, sender, number, message, bytes };
        if domain == self.own {
            self.open_receiving(usize::from(domain), &opening);
        } else {
            self.agenda.mail_to(domain).openings.push(opening);
        }
        ReceiverId::new(self.own, number)
    }

    /// Takes in the receiving half of a queue pair that a host of domain `from` has opened.
    pub(crate) fn open_receiving(&mut self, from: usize, opening: &Opening) {
        let flow = ReceiveFlow::new(self.config, opening);
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
