//! Plain FIFO ports: a packet's departure is known when it arrives, so that a hop is one
//! event. They serve where nothing can change a departure afterwards: drop-tail buffers of
//! their own, one class, no PFC.

use super::limits::{Limits, Line, mark_bits};
use super::record::Record;
use super::{Ports, Ready};
use crate::config::{PacketConfig, SwitchConfig};
use crate::event::{Class, Event, Packet, flag};
use crate::outcome::PortResult;
use crate::queue::EventQueue;
use weft_fabric::Fabric;
use weft_units::{Draw, IdVec, PortId, Time};

/// All ports of a fabric.
#[derive(Debug)]
pub struct FifoPorts {
    ports: IdVec<PortId, Fifo>,
    /// What marks and drops, by kind of port; few.
    limits: Vec<Limits>,
    records: IdVec<PortId, Record>,
    marks: Draw,
}

/// What every packet touches: one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Fifo {
    line: Line,
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
    /// The ports of `fabric`; `seed` draws the random marks.
    pub fn new(
        fabric: &Fabric,
        config: &SwitchConfig,
        packet: &PacketConfig,
        seed: u64,
    ) -> FifoPorts {
        let mut limits = Vec::new();
        let ports = fabric.ports().iter().map(|port| {
            Fifo::new(Line::new(port), Limits::index_of(port, config, packet, &mut limits))
        });
        let ports = ports.collect();
        FifoPorts {
            ports,
            limits,
            records: Record::all(fabric),
            marks: Draw::new(seed, "ecn-mark"),
        }
    }

    /// Appends `packet` to a queue that has room, and tells its arrival.
    #[inline(always)]
    fn append<Q: EventQueue>(&mut self, now: Time, port: PortId, packet: Packet, events: &mut Q) {
        let fifo = &mut self.ports[port];
        let size = fifo.line.wire.time(u32::from(packet.size));
        fifo.free_at = fifo.free_at.max(now) + size;
        fifo.peak = fifo.peak.max(fifo.free_at - now);
        fifo.bytes += u64::from(packet.size);
        fifo.packets += 1;
        events.push(Event::arrival(fifo.free_at + fifo.line.delay, port, packet));
    }
}

impl Fifo {
    fn new(line: Line, limits: u32) -> Fifo {
        Fifo {
            line,
            free_at: Time::ZERO,
            bytes: 0,
            packets: 0,
            peak: Time::ZERO,
            limits,
            told: false,
        }
    }
    #[inline(always)]
    fn backlog(&self, now: Time) -> Time {
        now.until(self.free_at)
    }
}

impl Ports for FifoPorts {
    #[inline(always)]
    fn forward<Q: EventQueue>(
        &mut self,
        now: Time,
        port: PortId,
        _ingress: PortId,
        mut packet: Packet,
        events: &mut Q,
    ) {
        let fifo = &self.ports[port];
        let limits = &self.limits[fifo.limits as usize];
        let backlog = fifo.backlog(now);
        let size = fifo.line.wire.time(u32::from(packet.size));
        if !limits.fits(backlog, size) {
            return self.records[port].drop(&packet);
        }
        if limits.marks(backlog, || mark_bits(self.marks, port, fifo.packets))
            && !packet.is(flag::CONTROL)
        {
            packet.to |= flag::MARKED;
            self.records[port].mark();
        }
        self.append(now, port, packet, events);
    }

    #[inline(always)]
    fn answer<Q: EventQueue>(&mut self, now: Time, port: PortId, packet: Packet, events: &mut Q) {
        self.append(now, port, packet, events);
    }

    #[inline(always)]
    fn ready<Q: EventQueue>(&mut self, now: Time, port: PortId, events: &mut Q) -> Ready {
        let fifo = &mut self.ports[port];
        if fifo.told {
            return Ready::Told;
        }
        if fifo.free_at > now {
            fifo.told = true;
            events.push(Event::new(fifo.free_at, Class::Transmitted, port.0));
            return Ready::Told;
        }
        Ready::Now
    }

    #[inline(always)]
    fn send<Q: EventQueue>(
        &mut self,
        now: Time,
        port: PortId,
        packet: Packet,
        more: bool,
        events: &mut Q,
    ) {
        self.append(now, port, packet, events);
        if more {
            let fifo = &mut self.ports[port];
            fifo.told = true;
            events.push(Event::new(fifo.free_at, Class::Transmitted, port.0));
        }
    }

    #[inline(always)]
    fn transmitted<Q: EventQueue>(&mut self, now: Time, port: PortId, events: &mut Q) -> bool {
        let fifo = &mut self.ports[port];
        // Acknowledgements have slipped in: look again when they are out.
        fifo.told = fifo.free_at > now;
        if fifo.told {
            events.push(Event::new(fifo.free_at, Class::Transmitted, port.0));
        }
        !fifo.told
    }

    fn pause<Q: EventQueue>(&mut self, _: Time, port: PortId, _: bool, _: &mut Q) -> bool {
        unreachable!("{port:?} was paused, but FIFO ports serve only where there is no PFC")
    }

    fn queued_bytes(&self, now: Time, port: PortId) -> u64 {
        self.records[port].bytes_of(self.ports[port].backlog(now))
    }

    fn results(&self, end: Time) -> Vec<PortResult> {
        let result = |(fifo, record): (&Fifo, &Record)| {
            record.result(end, fifo.bytes, fifo.packets, fifo.peak)
        };
        self.ports.iter().zip(self.records.iter()).map(result).collect()
    }

    fn pauses_sent(&self) -> u64 {
        0
    }
}

const _: () = assert!(size_of::<Fifo>() == 64, "a FIFO port is one cache line");
