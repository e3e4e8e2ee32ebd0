//! Ports with real queues: for shared buffers, PFC and priority, where a packet's departure
//! is not known when it arrives. A hop is two events: arrival, and end of transmission.
//!
//! A packet occupies the switch's memory until its last bit has left.

use super::limits::{Limits, Line, mark_bits};
use super::record::Record;
use super::shared::{Admission, Ingress, Memory, PAUSE_FRAME_BYTES, Rules, headroom, set_aside};
use super::{Ports, Ready};
use crate::agenda::Agenda;
use crate::config::RunConfig;
use crate::cut::{Cut, Exit, OutPort, OwnSwitch, Territory};
use crate::event::{Class, Event, Packed, Packet, flag};
use crate::outcome::PortResult;
use crate::queue::EventQueue;
use std::collections::VecDeque;
use weft_fabric::Node;
use weft_units::{Draw, IdVec, Time};

/// All ports of a domain.
#[derive(Debug)]
pub struct QueuePorts {
    ports: IdVec<OutPort, Queued>,
    limits: Vec<Limits>,
    /// What came in by each port's reverse link.
    ingress: IdVec<OutPort, Ingress>,
    memory: IdVec<OwnSwitch, Memory>,
    rules: Rules,
    control_priority: bool,
    records: IdVec<OutPort, Record>,
    marks: Draw,
    pauses_sent: u64,
}

/// A packet that waits, beside the port that it came in by (the NIC itself at a host, [`SPARED`]
/// for control that PFC does not account for).
#[derive(Clone, Copy, Debug)]
struct Entry(Packed);

impl Entry {
    #[inline(always)]
    fn new(packet: Packet, ingress: OutPort) -> Entry {
        Entry(Packed::new(packet, ingress.0))
    }
    #[inline(always)]
    fn packet(self) -> Packet {
        self.0.packet()
    }
    #[inline(always)]
    fn ingress(self) -> OutPort {
        OutPort(self.0.beside())
    }
}

/// What is on the wire.
#[derive(Clone, Copy, Debug)]
enum Service {
    Idle,
    Packet(Entry),
    Frame,
}

#[derive(Debug)]
struct Queued {
    line: Line,
    exit: Exit,
    /// When the packet in service will have left.
    busy_until: Time,
    /// Serialisation time of all that waits.
    waiting: Time,
    service: Service,
    paused: bool,
    /// What the upstream port of the reverse link was last told.
    told_pause: bool,
    limits: u32,
    /// The switch that owns the port; `u32::MAX` for a NIC.
    switch: u32,
    control: VecDeque<Entry>,
    data: VecDeque<Entry>,
    bytes: u64,
    packets: u64,
    peak: Time,
}

const NIC: u32 = u32::MAX;
/// Instead of an ingress.
const SPARED: OutPort = OutPort(u32::MAX);

impl Queued {
    #[inline(always)]
    fn backlog(&self, now: Time) -> Time {
        now.until(self.busy_until) + self.waiting
    }
    #[inline(always)]
    fn is_idle(&self) -> bool {
        matches!(self.service, Service::Idle)
    }
    /// Packets that were ever admitted.
    fn admitted(&self) -> u64 {
        self.packets + (self.control.len() + self.data.len()) as u64
    }
}

impl QueuePorts {
    /// The ports of a domain.
    pub(crate) fn new(config: &RunConfig, cut: &Cut, territory: &Territory) -> QueuePorts {
        let RunConfig { fabric, packet, .. } = config;
        let pfc = config.switch.pfc;
        let mut limits = Vec::new();
        let ports = territory.ports.enumerate().map(|(own, id)| {
            let port = &fabric.ports()[*id];
            let switch = match port.owner {
                Node::Host(_) => NIC,
                Node::Switch(switch) => cut.switches[switch].own.0,
            };
            let limits = Limits::index_of(port, &config.switch, packet, &mut limits);
            Queued::new(Line::new(port), territory.exits[own], limits, switch)
        });
        let ingress = territory.ports.iter().map(|port| {
            let bytes = |pfc| headroom(fabric, *port, packet, &pfc);
            Ingress::new(pfc.map_or(0, bytes))
        });
        let memory = territory.switches.iter().map(|switch| {
            let aside = |pfc| set_aside(fabric, *switch, packet, &pfc);
            Memory::new(&config.switch, pfc.map_or(0, aside))
        });
        QueuePorts {
            ports: ports.collect(),
            limits,
            ingress: ingress.collect(),
            memory: memory.collect(),
            rules: Rules::new(&config.switch),
            control_priority: config.switch.control_priority,
            records: Record::all(fabric, territory),
            marks: Draw::new(config.seed, "ecn-mark"),
            pauses_sent: 0,
        }
    }

    /// Marks, queues and starts a packet that has been admitted.
    #[inline(always)]
    fn enqueue<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        entry: Entry,
        first: bool,
        agenda: &mut Agenda<Q>,
    ) {
        let queue = &mut self.ports[port];
        let held = queue.paused && !(first && self.control_priority);
        if queue.is_idle() && !held {
            return self.serve(now, port, entry, agenda);
        }
        queue.waiting += queue.line.wire.time(u32::from(entry.packet().size));
        queue.peak = queue.peak.max(queue.backlog(now));
        if first {
            queue.control.push_back(entry);
        } else {
            queue.data.push_back(entry);
        }
    }

    /// Puts a packet on the wire.
    #[inline(always)]
    fn serve<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        entry: Entry,
        agenda: &mut Agenda<Q>,
    ) {
        let queue = &mut self.ports[port];
        let size = queue.line.wire.time(u32::from(entry.packet().size));
        queue.busy_until = now + size;
        queue.service = Service::Packet(entry);
        queue.bytes += u64::from(entry.packet().size);
        queue.packets += 1;
        queue.peak = queue.peak.max(queue.backlog(now));
        agenda.push(Event::new(queue.busy_until, Class::Transmitted, port.0));
    }

    /// Starts the next transmission of an idle port. Returns whether it found nothing, and
    /// the port is a NIC that may send data.
    #[inline(always)]
    fn serve_next<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        agenda: &mut Agenda<Q>,
    ) -> bool {
        let queue = &mut self.ports[port];
        if self.ingress[port].pause != queue.told_pause {
            self.send_frame(now, port, agenda);
            return false;
        }
        // Where control has a class of its own, a pause holds back data only.
        let control = !queue.paused || self.control_priority;
        let entry = if control { queue.control.pop_front() } else { None };
        let data = || if queue.paused { None } else { queue.data.pop_front() };
        let Some(entry) = entry.or_else(data) else {
            return queue.switch == NIC && !queue.paused;
        };
        queue.waiting -= queue.line.wire.time(u32::from(entry.packet().size));
        self.serve(now, port, entry, agenda);
        false
    }

    /// Tells the upstream port of `port`'s reverse link to pause or to resume.
    fn send_frame<Q: EventQueue>(&mut self, now: Time, port: OutPort, agenda: &mut Agenda<Q>) {
        let pause = self.ingress[port].pause;
        let queue = &mut self.ports[port];
        queue.told_pause = pause;
        queue.service = Service::Frame;
        queue.busy_until = now + queue.line.wire.time(u32::from(PAUSE_FRAME_BYTES));
        let to = if pause { flag::PAUSE } else { flag::RESUME };
        let frame = Packet { to, size: PAUSE_FRAME_BYTES, ..Packet::default() };
        agenda.push(Event::new(queue.busy_until, Class::Transmitted, port.0));
        agenda.arrive(queue.busy_until + queue.line.delay, queue.exit, frame);
        self.pauses_sent += u64::from(pause);
    }

    /// The wish to pause the upstream port of `ingress` has changed: tell it at once if the
    /// port back is idle, else after the packet in service.
    fn tell<Q: EventQueue>(&mut self, now: Time, ingress: OutPort, agenda: &mut Agenda<Q>) {
        let queue = &self.ports[ingress];
        if queue.is_idle() && self.ingress[ingress].pause != queue.told_pause {
            self.send_frame(now, ingress, agenda);
        }
    }

    /// The last bit of `entry` has left `port`: frees its memory and lets upstream resume.
    #[inline(always)]
    fn depart<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        entry: Entry,
        agenda: &mut Agenda<Q>,
    ) {
        let queue = &self.ports[port];
        agenda.arrive(now + queue.line.delay, queue.exit, entry.packet());
        if queue.switch == NIC {
            return;
        }
        let memory = &mut self.memory[OwnSwitch(queue.switch)];
        let size = u64::from(entry.packet().size);
        if entry.ingress() == SPARED {
            memory.total -= size;
        } else if self.rules.release(memory, &mut self.ingress[entry.ingress()], size)
            && entry.ingress() != port
        {
            self.tell(now, entry.ingress(), agenda);
        }
    }

    /// Takes `packet`, which came by `ingress`, into the memory of the switch of `port`, or
    /// drops it; pauses the upstream port if need be. Returns what to account it to.
    #[inline(always)]
    fn admit<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: &Packet,
        agenda: &mut Agenda<Q>,
    ) -> Option<OutPort> {
        let queue = &self.ports[port];
        let size = u64::from(packet.size);
        let memory = &mut self.memory[OwnSwitch(queue.switch)];
        if self.control_priority && self.rules.is_lossless() && packet.is(flag::CONTROL) {
            memory.total += size;
            return Some(SPARED);
        }
        let backlog = queue.backlog(now);
        let queued = match self.rules.drops_by_queue() {
            true => self.records[port].bytes_of(backlog),
            false => 0,
        };
        let limits = &self.limits[queue.limits as usize];
        let admission = match limits.fits(backlog, queue.line.wire.time(u32::from(packet.size))) {
            true => self.rules.admit(memory, &mut self.ingress[ingress], queued, size),
            false => Admission::Drop,
        };
        if matches!(admission, Admission::AdmitAndPause | Admission::DropAndPause) {
            self.tell(now, ingress, agenda);
        }
        matches!(admission, Admission::Admit | Admission::AdmitAndPause).then_some(ingress)
    }
}

impl Queued {
    fn new(line: Line, exit: Exit, limits: u32, switch: u32) -> Queued {
        Queued {
            line,
            exit,
            busy_until: Time::ZERO,
            waiting: Time::ZERO,
            service: Service::Idle,
            paused: false,
            told_pause: false,
            limits,
            switch,
            control: VecDeque::new(),
            data: VecDeque::new(),
            bytes: 0,
            packets: 0,
            peak: Time::ZERO,
        }
    }
}

impl Ports for QueuePorts {
    #[inline(always)]
    fn forward<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        mut packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        let Some(ingress) = self.admit(now, port, ingress, &packet, agenda) else {
            return self.records[port].drop(&packet);
        };
        let control = packet.is(flag::CONTROL);
        let queue = &self.ports[port];
        let limits = &self.limits[queue.limits as usize];
        let bits = || mark_bits(self.marks, self.records[port].id, queue.admitted());
        if !control && limits.marks(queue.backlog(now), bits) {
            packet.to |= flag::MARKED;
            self.records[port].mark();
        }
        let first = self.control_priority && control;
        self.enqueue(now, port, Entry::new(packet, ingress), first, agenda);
    }

    #[inline(always)]
    fn answer<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        self.enqueue(now, port, Entry::new(packet, port), true, agenda);
    }

    #[inline(always)]
    fn ready<Q: EventQueue>(
        &mut self,
        _now: Time,
        port: OutPort,
        _agenda: &mut Agenda<Q>,
    ) -> Ready {
        let queue = &self.ports[port];
        if queue.is_idle() && !queue.paused { Ready::Now } else { Ready::Told }
    }

    #[inline(always)]
    fn send<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        packet: Packet,
        _more: bool,
        agenda: &mut Agenda<Q>,
    ) {
        self.serve(now, port, Entry::new(packet, port), agenda);
    }

    #[inline(always)]
    fn transmitted<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        agenda: &mut Agenda<Q>,
    ) -> bool {
        let service = std::mem::replace(&mut self.ports[port].service, Service::Idle);
        if let Service::Packet(entry) = service {
            self.depart(now, port, entry, agenda);
        }
        self.serve_next(now, port, agenda)
    }

    fn pause<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        paused: bool,
        agenda: &mut Agenda<Q>,
    ) -> bool {
        self.records[port].pause(now, paused);
        let queue = &mut self.ports[port];
        queue.paused = paused;
        !paused && queue.is_idle() && self.serve_next(now, port, agenda)
    }

    fn queued_bytes(&self, now: Time, port: OutPort) -> u64 {
        self.records[port].bytes_of(self.ports[port].backlog(now))
    }

    fn shared_bytes(&self, switch: OwnSwitch) -> Option<u64> {
        self.rules.is_shared().then(|| self.memory[switch].total)
    }

    fn results(&self, end: Time) -> IdVec<OutPort, PortResult> {
        let result = |(queue, record): (&Queued, &Record)| {
            record.result(end, queue.bytes, queue.packets, queue.peak)
        };
        self.ports.iter().zip(self.records.iter()).map(result).collect()
    }

    fn pauses_sent(&self) -> u64 {
        self.pauses_sent
    }
}
