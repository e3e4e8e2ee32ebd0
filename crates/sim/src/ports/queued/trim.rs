//! Trimming (NDP, SIGCOMM 2017; McClure et al. 2025, section 4): where a queue is full, a packet loses its
//! payload instead of its life. What is left of it, the header, goes ahead of all data in a lane
//! of its own, and tells the receiver at once what it must ask for again; or it turns round and
//! tells the sender. A header that finds its lane full is dropped.

use super::list::Entry;
use super::window::Outlet;
use super::{QueuePorts, SPARED};
use crate::config::{RunConfig, TrimConfig, Victim};
use crate::packet::{Packet, flag};
use crate::partition::OutPort;
use crate::ports::limits::{Limits, Line};
use weft_units::{Draw, IdVec, PortId, Time};

/// What trimming needs to know of the ports of a partition.
#[derive(Debug)]
pub(super) struct Trimming {
    config: TrimConfig,
    /// Serialisation time of what waits in the lane ahead of data.
    waiting: IdVec<OutPort, Time>,
    coins: Draw,
    /// A header on its way back to its sender, which somebody must take now.
    pub(super) returned: Option<Packet>,
}

impl Trimming {
    /// For `ports` ports; `None` if switches do not trim.
    pub(super) fn new(config: &RunConfig, ports: usize) -> Option<Trimming> {
        config.switch.trim.map(|trim| Trimming {
            config: trim,
            waiting: (0..ports).map(|_| Time::ZERO).collect(),
            coins: Draw::new(config.seed, "trim-victim"),
            returned: None,
        })
    }
    /// Whether headers turn round.
    pub(super) fn returns(&self) -> bool {
        self.config.return_to_sender
    }
    pub(super) fn waiting(&self, port: OutPort) -> Time {
        self.waiting[port]
    }
    /// A packet that takes `time` joins the lane of `port`, or has left it.
    pub(super) fn join(&mut self, port: OutPort, time: Time) {
        self.waiting[port] += time;
    }
    pub(super) fn leave(&mut self, port: OutPort, time: Time) {
        self.waiting[port] -= time;
    }
    /// What waits takes as long as that at a new rate.
    pub(super) fn set_waiting(&mut self, port: OutPort, time: Time) {
        self.waiting[port] = time;
    }
    /// Whether a packet of `size` bytes fits into the lane of a port that sends over `line`.
    fn fits(&self, port: OutPort, line: &Line, size: u16) -> bool {
        // As long as that many packets of its size take, each rounded up, and what is left over.
        let (queue, size) = (self.config.queue.min(MOST_QUEUED) as u32, u32::from(size.max(1)));
        let time = line.wire.time(size);
        let room = time * u64::from(queue / size) + line.wire.time(queue % size);
        self.waiting[port] + time <= room
    }
    /// What is left of `packet`; `last_hop`: at a port that leads to its host.
    fn trimmed(&self, packet: Packet, last_hop: bool) -> Packet {
        let size = self.config.size.map_or(packet.size, |size| size.min(packet.size));
        packet.trimmed(size, last_hop)
    }
    /// Whether to trim the packet that arrives at `port` rather than the last in its queue,
    /// the `count`-th time that it comes to that.
    fn takes_arriving(&self, port: PortId, count: u64) -> bool {
        match self.config.victim {
            Victim::Arriving => true,
            Victim::Tail => false,
            Victim::Either => self.coins.at(u64::from(port.0), count) >> 63 == 0,
        }
    }
}

/// More than any port can hold.
const MOST_QUEUED: u64 = u32::MAX as u64;

impl QueuePorts {
    /// What becomes of a packet that was not admitted.
    #[cold]
    pub(super) fn refuse<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: Packet,
        out: &mut O,
    ) {
        if self.shut.contains_key(&port) {
            return match self.is_shut(now, port) {
                true => self.drop(port, packet.lost()),
                false => self.take(now, port, ingress, packet, out),
            };
        }
        if self.trimming.is_some() && !packet.is(flag::CONTROL) {
            self.trim(now, port, Entry::new(packet, ingress), out);
        } else {
            self.drop(port, packet.lost());
        }
    }

    /// A data packet found no room at `port`: it is trimmed, or the last in the queue is and
    /// leaves its place.
    pub(super) fn trim<O: Outlet>(&mut self, now: Time, port: OutPort, entry: Entry, out: &mut O) {
        let packet = entry.packet();
        let record = &self.records[port];
        let trimming = self.trimming.as_ref().expect("switches trim");
        let last = self.waiting.last(self.ports[port].data);
        let victim = match last {
            Some(last)
                // Of one size, so that the port's counts for the one stand for the other.
                if last.packet().size == packet.size
                    && !last.packet().is(flag::CONTROL)
                    && !trimming.takes_arriving(record.id, record.trims()) =>
            {
                let mut queued = packet;
                self.mark(now, port, &mut queued);
                let entry = Entry::new(queued, entry.ingress());
                self.waiting.replace_last(self.ports[port].data, entry);
                last.packet()
            }
            _ => packet,
        };
        let trimming = self.trimming.as_ref().expect("switches trim");
        let header = trimming.trimmed(victim, self.last_hops[port]);
        self.records[port].trim(&victim, header.size);
        if trimming.config.return_to_sender {
            let trimming = self.trimming.as_mut().expect("switches trim");
            trimming.returned = Some(header);
            return;
        }
        self.forward_express(now, port, header, out);
    }

    /// Queues `packet` at `port` ahead of all data.
    pub(super) fn forward_express<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        out: &mut O,
    ) {
        let trimming = self.trimming.as_ref().expect("switches trim");
        let fits = trimming.fits(port, &self.ports[port].line, packet.size);
        if !fits || self.is_shut(now, port) {
            return self.drop(port, packet.lost());
        }
        self.account(port, packet.size);
        self.enqueue(now, port, Entry::new(packet, SPARED), true, out);
    }

    /// Whether a data packet that takes `time` fits behind the data that waits at `port`.
    pub(super) fn fits_beside_headers(
        &self,
        limits: &Limits,
        port: OutPort,
        backlog: Time,
        time: Time,
    ) -> bool {
        let headers = self.trimming.as_ref().map_or(Time::ZERO, |trim| trim.waiting(port));
        limits.fits(backlog - headers, time)
    }
}
