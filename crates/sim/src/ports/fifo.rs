//! Plain FIFO ports: a packet's departure is known when it arrives, so that a hop is one
//! event. They serve where nothing can change a departure afterwards: drop-tail buffers of
//! their own, one class, no PFC; also where PFC pauses nobody, and where switches would trim but have room for
//! all. The first packet for which that does not hold ends it ([`Ports::overflowed`]).

use super::commons::Commons;
use super::interface::{Ports, Ready, Window};
use super::limits::{Limits, Line, mark_bits, unmarked};
use super::record::Record;
use super::whole_packets::WholePackets;
use crate::agenda::Agenda;
use crate::config::{Buffer, RunConfig, SwitchConfig};
use crate::event::{Class, Event};
use crate::losses::Losses;
use crate::outcome::PortResult;
use crate::packet::{LostPacket, Packet, flag};
use crate::partition::{Exit, OutPort, OwnSwitch, Partition, Partitioning};
use crate::queue::{EventQueue, Row};
use weft_units::prefetch::prefetch;
use weft_units::{Draw, IdVec, Rate, Time};

/// All ports of a partition.
#[derive(Debug)]
pub struct FifoPorts {
    ports: IdVec<OutPort, Fifo>,
    /// What marks and drops, by kind of port; few.
    limits: Vec<Limits>,
    /// Where switches have memory that their ports share.
    commons: Option<Commons>,
    /// Where a packet counts in full until it has left.
    whole: Option<WholePackets>,
    records: IdVec<OutPort, Record>,
    losses: Losses,
    marks: Draw,
    /// Kinds of packet that are never marked.
    unmarked: u32,
    /// Data that finds no room would be trimmed.
    trims: bool,
    /// Some would have been.
    trimmed: bool,
}

/// Whether admission asks more than how long a queue is.
fn has_account(config: &SwitchConfig) -> bool {
    matches!(config.buffer, Buffer::Shared { .. }) || config.pfc.is_some()
}

/// What every packet touches: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Fifo {
    line: Line,
    exit: Exit,
    /// When the last bit of all that is queued will have left.
    free_at: Time,
    bytes: u64,
    packets: u64,
    /// The longest backlog so far.
    peak: Time,
    /// Index into `limits`.
    limits: u32,
    /// A `Transmitted` event is under way; NICs only.
    told: bool,
}

impl FifoPorts {
    /// The ports of a partition.
    pub(crate) fn new(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
    ) -> FifoPorts {
        let mut limits = Vec::new();
        let ports = partition.ports.enumerate().map(|(own, id)| {
            let port = config.port_at_start(*id);
            let limits = Limits::index_of(&port, &config.switch, &config.packet, &mut limits);
            Fifo::new(Line::new(&port), partition.exits[own], limits)
        });
        FifoPorts {
            ports: ports.collect(),
            limits,
            commons: has_account(&config.switch)
                .then(|| Commons::new(config, partitioning, partition)),
            whole: config.switch.whole_packets.then(|| WholePackets::new(partition.ports.len())),
            records: Record::all(config, partition),
            losses: Losses::new(config),
            marks: Draw::new(config.seed, "ecn-mark"),
            unmarked: unmarked(&config.switch),
            trims: config.switch.trim.is_some(),
            trimmed: false,
        }
    }

    #[cold]
    fn drop(&mut self, port: OutPort, packet: LostPacket) {
        self.records[port].drop(packet);
        self.losses.add(packet);
    }

    /// There is no room for `packet` at `port`.
    #[cold]
    fn refuse(&mut self, port: OutPort, packet: Packet) {
        self.trimmed |= self.trims && !packet.is(flag::CONTROL);
        self.drop(port, packet.lost());
    }

    /// Queues `packet` at a switch's `port` if there is room; in memory that ports share, if there is
    /// an `ingress` to account it to.
    #[inline(always)]
    fn take_in<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: Option<OutPort>,
        mut packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        let fifo = &mut self.ports[port];
        let limits = &self.limits[fifo.limits as usize];
        let backlog = match &mut self.whole {
            None => fifo.backlog(now),
            Some(whole) => whole.drain(now, port),
        };
        let size = fifo.line.wire.time(u32::from(packet.size));
        if !limits.fits(backlog, size) {
            return self.refuse(port, packet);
        }
        if let Some(ingress) = ingress
            && let Some(commons) = &mut self.commons
        {
            let queued = match commons.drops_by_queue() {
                true => self.records[port].bytes_of(backlog),
                false => 0,
            };
            let at = fifo.free_at.max(now) + size;
            if !commons.admit(now, (port, ingress), (queued, packet.size), at) {
                return self.drop(port, packet.lost());
            }
        }
        if limits.marks(backlog, || mark_bits(self.marks, self.records[port].id, fifo.packets))
            && !packet.is(self.unmarked)
        {
            packet.mark();
            self.records[port].mark();
        }
        fifo.append(now, size, packet, agenda);
        if let Some(whole) = &mut self.whole {
            whole.join(port, fifo.free_at, size);
        }
    }

    /// Appends a packet that always has room, as those of a NIC, and tells its arrival.
    #[inline(always)]
    fn append<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        let fifo = &mut self.ports[port];
        let size = fifo.line.wire.time(u32::from(packet.size));
        fifo.append(now, size, packet, agenda);
        if let Some(whole) = &mut self.whole {
            whole.join(port, fifo.free_at, size);
        }
    }
}

impl Fifo {
    fn new(line: Line, exit: Exit, limits: u32) -> Fifo {
        Fifo {
            line,
            exit,
            free_at: Time::ZERO,
            bytes: 0,
            packets: 0,
            peak: Time::ZERO,
            limits,
            told: false,
        }
    }
    /// Appends `packet`, of serialisation time `size`, to a queue that has room, and tells its
    /// arrival.
    #[inline(always)]
    fn append<Q: EventQueue>(
        &mut self,
        now: Time,
        size: Time,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        self.join(now, size, packet.size);
        agenda.arrive(self.free_at + self.line.delay, self.exit, packet);
    }
    /// A packet of so many bytes, which take `size`, joins the queue.
    #[inline(always)]
    fn join(&mut self, now: Time, size: Time, bytes: u16) {
        self.free_at = self.free_at.max(now) + size;
        self.peak = self.peak.max(self.free_at - now);
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }
    #[inline(always)]
    fn backlog(&self, now: Time) -> Time {
        now.until(self.free_at)
    }
    /// Has a `Transmitted` event of this `port`, a NIC, come when all that is queued has left.
    #[inline(always)]
    fn tell_end<Q: EventQueue>(&self, port: OutPort, agenda: &mut Agenda<Q>) {
        // NICs are numbered like their hosts.
        let end = Event::new(self.free_at, Class::Transmitted, port.0);
        agenda.push_at_nic(end, port);
    }
}

impl Ports for FifoPorts {
    const KEEP: bool = false;

    #[inline(always)]
    fn forward<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        self.take_in(now, port, Some(ingress), packet, agenda);
    }

    fn take_windows(&self) -> bool {
        self.commons.as_ref().is_none_or(|commons| commons.admits_all() && self.whole.is_none())
    }

    #[inline(always)]
    fn are_independent<'e>(
        &mut self,
        window: &Window,
        switch: OwnSwitch,
        arrivals: impl Iterator<Item = (OutPort, &'e Event)> + Clone,
    ) -> bool {
        let arrivals = arrivals.map(|(ingress, event)| (ingress, event.packet().size));
        let commons = self.commons.as_mut();
        commons.is_none_or(|commons| commons.admit_all(window.start, switch, arrivals))
    }

    #[inline(always)]
    fn relay<'e, Q: EventQueue>(
        &mut self,
        port: OutPort,
        arrivals: impl Iterator<Item = &'e Event>,
        ingress: impl Fn(&Event) -> OutPort,
        _: &mut Window,
        agenda: &mut Agenda<Q>,
    ) {
        if self.whole.is_some() {
            return arrivals.for_each(|event| {
                self.take_in(event.time, port, None, event.packet(), agenda);
            });
        }
        let at = &mut self.ports[port];
        // What changes by value, so that it stays in registers.
        let mut fifo = *at;
        let (limits, line) = (self.limits[fifo.limits as usize], fifo.line);
        let (marks, unmarked) = (self.marks, self.unmarked);
        let mut leaving = self.commons.as_mut().map(|commons| commons.leaving(port));
        let mut row = Row::default();
        for event in arrivals {
            let (now, packet) = (event.time, event.packet());
            let (backlog, length) = (fifo.backlog(now), packet.size);
            let size = line.wire.time(u32::from(length));
            if !limits.fits(backlog, size) {
                self.trimmed |= self.trims && !packet.is(flag::CONTROL);
                let lost = packet.lost();
                self.records[port].drop(lost);
                self.losses.add(lost);
                continue;
            }
            let mut marked = false;
            if limits.marks(backlog, || mark_bits(marks, self.records[port].id, fifo.packets))
                && !packet.is(unmarked)
            {
                marked = true;
                self.records[port].mark();
            }
            fifo.join(now, size, length);
            if let Some(leaving) = &mut leaving {
                leaving.push((fifo.free_at, ingress(event), length));
            }
            let next = event.forwarded(fifo.free_at + line.delay, fifo.exit.link, marked);
            agenda.arrive_in_row(&mut row, fifo.exit, next);
        }
        at.free_at = fifo.free_at;
        at.bytes = fifo.bytes;
        at.packets = fifo.packets;
        at.peak = fifo.peak;
    }

    fn relay_in_order<'e, Q: EventQueue>(
        &mut self,
        _: (OutPort, u32),
        arrivals: impl Iterator<Item = (&'e Event, OutPort)>,
        ingress: impl Fn(&Event) -> OutPort,
        _: &mut Window,
        agenda: &mut Agenda<Q>,
    ) {
        for (event, port) in arrivals {
            self.take_in(event.time, port, Some(ingress(event)), event.packet(), agenda);
        }
    }

    fn emit<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        mut packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        let backlog = match &mut self.whole {
            None => self.ports[port].backlog(now),
            Some(whole) => whole.drain(now, port),
        };
        let fifo = &mut self.ports[port];
        if let Some(commons) = &mut self.commons {
            let at = fifo.free_at.max(now) + fifo.line.wire.time(u32::from(packet.size));
            commons.spare(now, port, packet.size, at);
        }
        let bits = || mark_bits(self.marks, self.records[port].id, fifo.packets);
        if !packet.is(self.unmarked) && self.limits[fifo.limits as usize].marks(backlog, bits) {
            packet.mark();
            self.records[port].mark();
        }
        self.append(now, port, packet, agenda);
    }

    #[inline(always)]
    fn answer<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        self.append(now, port, packet, agenda);
    }

    fn prefetch(&self, port: OutPort) {
        prefetch(&self.ports[port]);
    }

    #[inline(always)]
    fn ready<Q: EventQueue>(&mut self, now: Time, port: OutPort, agenda: &mut Agenda<Q>) -> Ready {
        let fifo = &mut self.ports[port];
        if fifo.told {
            return Ready::Told;
        }
        if fifo.free_at > now {
            fifo.told = true;
            fifo.tell_end(port, agenda);
            return Ready::Told;
        }
        Ready::Now
    }

    #[inline(always)]
    fn send<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        more: bool,
        agenda: &mut Agenda<Q>,
    ) {
        self.append(now, port, packet, agenda);
        if more {
            let fifo = &mut self.ports[port];
            fifo.told = true;
            fifo.tell_end(port, agenda);
        }
    }

    #[inline(always)]
    fn transmitted<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        agenda: &mut Agenda<Q>,
    ) -> bool {
        let fifo = &mut self.ports[port];
        // Acknowledgements have slipped in: look again when they are out.
        fifo.told = fifo.free_at > now;
        if fifo.told {
            fifo.tell_end(port, agenda);
        }
        !fifo.told
    }

    fn pause<Q: EventQueue>(&mut self, _: Time, port: OutPort, _: bool, _: &mut Agenda<Q>) -> bool {
        unreachable!("{port:?} was paused, but FIFO ports serve only where there is no PFC")
    }

    fn set_rate(&mut self, _: Time, port: OutPort, _: Rate) {
        unreachable!("{port:?} changes its rate, but FIFO ports have promised departures")
    }

    fn flush<Q: EventQueue>(&mut self, _: Time, port: OutPort, _: Time, _: &mut Agenda<Q>) {
        unreachable!("{port:?} is flushed, but FIFO ports have promised departures")
    }

    fn queued_bytes(&self, now: Time, port: OutPort) -> u64 {
        self.records[port].bytes_of(match &self.whole {
            None => self.ports[port].backlog(now),
            Some(whole) => whole.queued(now, port),
        })
    }

    fn sent_bytes(&self, now: Time, port: OutPort) -> u64 {
        let fifo = &self.ports[port];
        self.records[port].sent(fifo.bytes, fifo.backlog(now))
    }

    fn shared_bytes(&self, now: Time, switch: OwnSwitch) -> Option<u64> {
        self.commons.as_ref().and_then(|commons| commons.bytes(now, switch))
    }

    fn overflowed(&self) -> bool {
        self.trimmed || self.commons.as_ref().is_some_and(Commons::overflowed)
    }

    fn results(&self, end: Time) -> IdVec<OutPort, PortResult> {
        let result = |(fifo, record): (&Fifo, &Record)| {
            record.result(end, fifo.bytes, fifo.packets, fifo.peak)
        };
        self.ports.iter().zip(self.records.iter()).map(result).collect()
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn losses_mut(&mut self) -> &mut Losses {
        &mut self.losses
    }

    fn pauses_sent(&self) -> u64 {
        0
    }
}

const _: () = assert!(size_of::<Fifo>() == 64, "a FIFO port is one cache line");
