//! Ports with real queues: for shared buffers, PFC and priority, where a packet's departure
//! is not known when it arrives. A hop is two events: arrival, and end of transmission. What ends in a
//! window that its switch takes in at once is no event in the queue of events (`window`).
//!
//! A packet occupies the switch's memory until its last bit has left.

mod calm;
mod leaving;
mod list;
mod marking;
mod pausing;
mod port;
mod shut;
mod trim;
mod window;

use super::interface::{Ports, Ready, Window};
use super::limits::{Limits, is_last_hop, unmarked};
use super::record::Record;
use super::shared::{Admission, Coming, Memory, Rules, Slices, set_aside};
use crate::agenda::Agenda;
use crate::config::{MarkAt, PacketConfig, RunConfig, SwitchConfig};
use crate::counts::Delivered;
use crate::event::Event;
use crate::losses::Losses;
use crate::outcome::PortResult;
use crate::packet::{LostPacket, Packet, flag};
use crate::partition::{OutPort, OwnSwitch, Partition, Partitioning};
use crate::queue::EventQueue;
use list::{Entry, Waiting};
use port::{NIC, Queued, SPARED, Shared, narrow};
use rustc_hash::FxHashMap;
use trim::Trimming;
use weft_units::prefetch::prefetch;
use weft_units::{Draw, IdVec, Rate, Time, Wire};
use window::{Ends, Outlet};

/// All ports of a partition.
#[derive(Debug)]
pub struct QueuePorts {
    ports: IdVec<OutPort, Queued>,
    waiting: Waiting,
    limits: Vec<Limits>,
    switches: IdVec<OwnSwitch, Shared>,
    rules: Rules,
    /// Somebody asks what is in the memory of a switch.
    accounts: bool,
    control_priority: bool,
    /// Kinds of packet that go before all others, as flags.
    ahead: u32,
    /// Kinds of packet that PFC does not account for, as flags.
    spared: u32,
    trimming: Option<Trimming>,
    /// Which ports lead to hosts.
    last_hops: IdVec<OutPort, bool>,
    /// Ports that take nothing, since their links are dead, and until when.
    shut: FxHashMap<OutPort, Time>,
    /// Where a packet counts in full until it has left: how long the last one that each port put
    /// on the wire takes.
    in_service: Option<IdVec<OutPort, Time>>,
    records: IdVec<OutPort, Record>,
    losses: Losses,
    marks: Draw,
    /// Packets are marked when they join a queue, or when they leave it.
    marks_joining: bool,
    marks_leaving: bool,
    /// When a packet leaves depends on nothing but what is before it, where nothing goes ahead of it.
    knows_departures: bool,
    /// Somebody asks more of a packet that leaves a queue than how long it takes.
    watches_leaving: bool,
    /// Kinds of packet that are never marked.
    unmarked: u32,
    pauses_sent: u64,
    /// Scratch: of a switch that takes in a window.
    ends: Ends,
    coming: Coming,
    slices: Slices,
    /// For ports whose rates change.
    switch: SwitchConfig,
    packet: PacketConfig,
}

impl QueuePorts {
    /// The ports of a partition.
    pub(crate) fn new(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
    ) -> QueuePorts {
        let RunConfig { fabric, packet, .. } = config;
        let mut limits = Vec::new();
        let both = partition.ports.iter().zip(partition.exits.iter());
        let ports =
            both.map(|(id, exit)| Queued::new(config, partitioning, *id, *exit, &mut limits));
        let switches = partition.switches.iter().map(|switch| {
            let aside = |pfc| set_aside(fabric, &config.failures, *switch, packet, &pfc);
            let memory = Memory::new(&config.switch, config.switch.pfc.map_or(0, aside));
            let ports = fabric.ports_of(*switch);
            let first = partitioning.ports[ports.first].own;
            let most_leaving = 2 * ports.count as usize;
            let ports = (first, ports.count);
            Shared { memory, ports, leaving: Vec::new(), most_leaving, pausing: 0 }
        });
        let SwitchConfig { ecn, mark, trim, whole_packets, .. } = config.switch;
        let rules = Rules::new(&config.switch);
        let marks_leaving = mark == MarkAt::Dequeue && ecn.is_some();
        let control = if config.switch.control_priority { flag::CONTROL } else { 0 };
        QueuePorts {
            ports: ports.collect(),
            waiting: Waiting::new(),
            limits,
            switches: switches.collect(),
            rules,
            accounts: rules.is_shared() || rules.is_lossless(),
            control_priority: config.switch.control_priority,
            ahead: control | if trim.is_some() { flag::TRIMMED } else { 0 },
            spared: if rules.is_lossless() { control } else { 0 },
            knows_departures: !whole_packets && !marks_leaving,
            trimming: Trimming::new(config, partition.ports.len()),
            last_hops: partition.ports.iter().map(|id| is_last_hop(&fabric.ports()[*id])).collect(),
            shut: FxHashMap::default(),
            in_service: whole_packets.then(|| partition.ports.iter().map(|_| Time::ZERO).collect()),
            records: Record::all(config, partition),
            losses: Losses::new(config),
            marks: Draw::new(config.seed, "ecn-mark"),
            marks_joining: mark == MarkAt::Enqueue && ecn.is_some(),
            marks_leaving,
            watches_leaving: whole_packets || trim.is_some() || marks_leaving,
            unmarked: unmarked(&config.switch),
            pauses_sent: 0,
            ends: Ends::default(),
            coming: Coming::new(partition.ports.len()),
            slices: Slices::default(),
            switch: config.switch,
            packet: config.packet,
        }
    }

    /// The limits of a switch's `port` at this `rate`.
    fn limits_at(&self, port: OutPort, rate: Rate) -> Limits {
        Limits::of_switch(&self.switch, &self.packet, rate, self.last_hops[port])
    }

    /// The length of the queue of `port`, as configured, in time.
    #[inline(always)]
    fn queued(&self, now: Time, port: OutPort) -> Time {
        let queue = &self.ports[port];
        match &self.in_service {
            None => queue.backlog(now),
            Some(_) if queue.busy_until <= now => queue.waiting,
            Some(in_service) => queue.waiting + in_service[port],
        }
    }

    /// Queues a packet that has been admitted, or puts it on the wire; `first`: in the lane
    /// that goes before the other.
    #[inline(always)]
    fn enqueue<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        entry: Entry,
        first: bool,
        out: &mut O,
    ) {
        let queue = &mut self.ports[port];
        let size = entry.packet().size;
        let time = queue.line.wire.time(u32::from(size));
        queue.count(size, queue.backlog(now) + time);
        let held = queue.paused && !(first && self.control_priority);
        if queue.is_idle(now) && !held {
            if let Some(in_service) = &mut self.in_service {
                in_service[port] = time;
            }
            return self.put_on_wire(now, port, entry, time, out);
        }
        queue.waiting += time;
        if first && let Some(trimming) = &mut self.trimming {
            trimming.join(port, time);
        }
        self.waiting.push(if first { &mut queue.control } else { &mut queue.data }, entry);
        if queue.busy_until > now {
            queue.tell_end(port, out);
        }
    }

    /// Starts the next transmission of an idle port. Returns whether it found nothing, and
    /// the port is a NIC that may send data.
    #[inline(always)]
    fn serve_next<O: Outlet>(&mut self, now: Time, port: OutPort, out: &mut O) -> bool {
        let queue = &mut self.ports[port];
        if queue.ingress.pause != queue.told_pause {
            self.send_frame(now, port, out);
            return false;
        }
        // Where control has a class of its own, a pause holds back data only.
        let first = !(queue.control.is_empty() || queue.paused && !self.control_priority);
        let lane = match first {
            false if queue.paused => return false,
            false => &mut queue.data,
            true => &mut queue.control,
        };
        let Some(mut entry) = self.waiting.pop(lane) else {
            return queue.switch == NIC;
        };
        let time = queue.line.wire.time(u32::from(entry.packet().size));
        queue.waiting -= time;
        if self.watches_leaving {
            entry = self.watched(port, entry, time, first);
        }
        self.put_on_wire(now, port, entry, time, out);
        false
    }

    #[inline(always)]
    fn put_on_wire<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        entry: Entry,
        time: Time,
        out: &mut O,
    ) {
        let queue = &mut self.ports[port];
        let accounts = self.accounts && queue.switch != NIC;
        let shared = accounts.then(|| &mut self.switches[OwnSwitch(queue.switch)]);
        queue.serve(now, port, (entry, time), shared, out);
    }

    /// Takes `packet`, which came by `ingress`, into the memory of the switch of `port`, or
    /// drops it; pauses the upstream port if need be. Returns what to account it to.
    #[inline(always)]
    fn admit<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: &Packet,
        out: &mut O,
    ) -> Option<OutPort> {
        let queue = &self.ports[port];
        let (switch, size) = (OwnSwitch(queue.switch), u64::from(packet.size));
        if packet.is(self.spared) {
            if self.is_shut(now, port) {
                return None;
            }
            self.switches[switch].memory.total += size;
            return Some(SPARED);
        }
        let backlog = self.queued(now, port);
        let limits = &self.limits[usize::from(queue.limits)];
        let time = queue.line.wire.time(u32::from(packet.size));
        if !limits.fits(backlog, time) && !self.fits_beside_headers(limits, port, backlog, time) {
            return None;
        }
        if O::TAKEN || !self.accounts {
            return Some(ingress);
        }
        let shared = &mut self.switches[switch];
        let queued = match self.rules.drops_by_queue() {
            true => self.records[port].bytes_of(backlog),
            false => 0,
        };
        if shared.leaving.len() >= shared.most_leaving {
            self.free_departed(now, switch, now, out);
        }
        let memory = &mut self.switches[switch].memory;
        if self.rules.take_in(memory, &mut self.ports[ingress].ingress, queued, size) {
            return Some(ingress);
        }
        self.admit_at_limit(now, switch, ingress, (queued, size), out)
    }

    #[cold]
    fn drop(&mut self, port: OutPort, packet: LostPacket) {
        self.records[port].drop(packet);
        self.losses.add(packet);
    }

    /// `size` bytes enter the memory of the switch of `port`, whatever there is.
    fn account(&mut self, port: OutPort, size: u16) {
        if !self.accounts {
            return;
        }
        self.switches[OwnSwitch(self.ports[port].switch)].memory.total += u64::from(size);
    }

    /// As `admit`, where there seems to be no room.
    #[cold]
    fn admit_at_limit<O: Outlet>(
        &mut self,
        now: Time,
        switch: OwnSwitch,
        ingress: OutPort,
        (queued, size): (u64, u64),
        out: &mut O,
    ) -> Option<OutPort> {
        self.free_departed(now, switch, now, out);
        let shared = &mut self.switches[switch];
        let state = &mut self.ports[ingress].ingress;
        if self.rules.take_in(&mut shared.memory, state, queued, size) {
            return Some(ingress);
        }
        let was_pausing = state.pause;
        let admission = self.rules.overflow(&mut shared.memory, state, size);
        if state.pause && !was_pausing {
            shared.pausing += 1;
            if shared.pausing == 1 {
                self.watch_leaving(switch, out);
            }
        }
        if matches!(admission, Admission::AdmitAndPause | Admission::DropAndPause) {
            self.tell(now, ingress, out);
        }
        (admission == Admission::AdmitAndPause).then_some(ingress)
    }

    /// As [`Ports::forward`].
    #[inline(always)]
    fn take<O: Outlet>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        mut packet: Packet,
        out: &mut O,
    ) {
        if packet.is(self.ahead) && self.trimming.is_some() {
            return self.forward_express(now, port, packet, out);
        }
        let Some(ingress) = self.admit(now, port, ingress, &packet, out) else {
            return self.refuse(now, port, ingress, packet, out);
        };
        self.mark(now, port, &mut packet);
        let first = packet.is(self.ahead);
        self.enqueue(now, port, Entry::new(packet, ingress), first, out);
    }

    /// As [`Ports::transmitted`].
    #[inline(always)]
    fn ended<O: Outlet>(&mut self, now: Time, port: OutPort, out: &mut O) -> bool {
        let queue = &mut self.ports[port];
        let switch = OwnSwitch(queue.switch);
        if queue.busy_until > now {
            // It has gone on at this very instant, and only its memory is of interest.
            self.free_departed(now, switch, Time(now.0 + 1), out);
            return false;
        }
        queue.told = false;
        if queue.switch != NIC && self.accounts {
            let (size, ingress) = (std::mem::take(&mut queue.service_size), queue.service_ingress);
            if size > 0 {
                if self.release(switch, ingress, size) && ingress != port {
                    self.tell(now, ingress, out);
                }
            } else if self.switches[switch].pausing > 0 {
                self.free_departed(now, switch, Time(now.0 + 1), out);
            }
        }
        self.ports[port].is_idle(now) && self.serve_next(now, port, out)
    }

    /// As [`Ports::pause`].
    fn hold<O: Outlet>(&mut self, now: Time, port: OutPort, paused: bool, out: &mut O) -> bool {
        self.records[port].pause(now, paused);
        let queue = &mut self.ports[port];
        queue.paused = paused;
        !paused && queue.is_idle(now) && self.serve_next(now, port, out)
    }
}

impl Ports for QueuePorts {
    const KEEP: bool = true;

    #[inline(always)]
    fn forward<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        ingress: OutPort,
        packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        self.take(now, port, ingress, packet, agenda);
    }

    fn take_windows(&self) -> bool {
        !self.trimming.as_ref().is_some_and(Trimming::returns)
    }

    fn are_independent<'e>(
        &mut self,
        window: &Window,
        switch: OwnSwitch,
        arrivals: impl Iterator<Item = (OutPort, &'e Event)> + Clone,
    ) -> bool {
        !self.accounts || self.is_calm(window, switch, arrivals)
    }

    #[inline(always)]
    fn relay<'e, Q: EventQueue>(
        &mut self,
        port: OutPort,
        events: impl Iterator<Item = &'e Event>,
        ingress: impl Fn(&Event) -> OutPort,
        window: &mut Window,
        agenda: &mut Agenda<Q>,
    ) {
        self.relay_at_port(port, events, ingress, window, agenda);
    }

    #[inline(always)]
    fn relay_in_order<'e, Q: EventQueue>(
        &mut self,
        ports: (OutPort, u32),
        events: impl Iterator<Item = (&'e Event, OutPort)>,
        ingress: impl Fn(&Event) -> OutPort,
        window: &mut Window,
        agenda: &mut Agenda<Q>,
    ) {
        self.relay_at_switch(ports, events, ingress, window, agenda);
    }

    fn emit<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        mut packet: Packet,
        agenda: &mut Agenda<Q>,
    ) {
        if self.is_shut(now, port) {
            return self.drop(port, packet.lost());
        }
        self.mark(now, port, &mut packet);
        self.account(port, packet.size);
        let first = packet.is(self.ahead);
        self.enqueue(now, port, Entry::new(packet, SPARED), first, agenda);
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
    fn returned(&mut self) -> Option<Packet> {
        self.trimming.as_mut()?.returned.take()
    }

    fn prefetch(&self, port: OutPort) {
        prefetch(&self.ports[port]);
    }

    #[inline(always)]
    fn ready<Q: EventQueue>(&mut self, now: Time, port: OutPort, _agenda: &mut Agenda<Q>) -> Ready {
        let queue = &self.ports[port];
        if queue.is_idle(now) && !queue.paused { Ready::Now } else { Ready::Told }
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
        self.enqueue(now, port, Entry::new(packet, port), false, agenda);
    }

    #[inline(always)]
    fn transmitted<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        agenda: &mut Agenda<Q>,
    ) -> bool {
        self.ended(now, port, agenda)
    }

    fn pause<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        paused: bool,
        agenda: &mut Agenda<Q>,
    ) -> bool {
        self.hold(now, port, paused, agenda)
    }

    fn set_rate(&mut self, now: Time, port: OutPort, rate: Rate) {
        let limits = self.limits_at(port, rate);
        let queue = &mut self.ports[port];
        self.records[port].set_rate(rate, queue.peak);
        queue.line.wire = Wire::new(rate);
        if queue.switch != NIC && !self.shut.contains_key(&port) {
            queue.limits = narrow(limits.index_in(&mut self.limits));
        }
        let time = |lane| {
            let packets = self.waiting.iter(lane).map(Entry::packet);
            packets
                .fold(Time::ZERO, |sum, packet| sum + queue.line.wire.time(u32::from(packet.size)))
        };
        let (data, control) = (time(queue.data), time(queue.control));
        queue.waiting = data + control;
        queue.peak = queue.backlog(now);
        if let Some(trimming) = &mut self.trimming {
            trimming.set_waiting(port, control);
        }
    }

    fn flush<Q: EventQueue>(
        &mut self,
        now: Time,
        port: OutPort,
        until: Time,
        agenda: &mut Agenda<Q>,
    ) {
        self.shut_until(now, port, until, agenda);
    }

    fn queued_bytes(&self, now: Time, port: OutPort) -> u64 {
        self.records[port].bytes_of(self.queued(now, port))
    }

    fn sent_bytes(&self, now: Time, port: OutPort) -> u64 {
        let queue = &self.ports[port];
        self.records[port].sent(queue.bytes, queue.backlog(now))
    }

    fn shared_bytes(&self, now: Time, switch: OwnSwitch) -> Option<u64> {
        let shared = &self.switches[switch];
        let left = shared.leaving.iter().filter(|packet| packet.at <= now);
        let left: u64 = left.map(|packet| u64::from(packet.size)).sum();
        self.rules.is_shared().then(|| shared.memory.total - left)
    }

    fn results(&self, end: Time) -> IdVec<OutPort, PortResult> {
        let result = |(queue, record): (&Queued, &Record)| {
            record.result(end, queue.bytes, queue.packets, queue.peak)
        };
        self.ports.iter().zip(self.records.iter()).map(result).collect()
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn losses_mut(&mut self) -> &mut Losses {
        &mut self.losses
    }

    fn held(&self) -> Delivered {
        let mut held = Delivered::default();
        for queue in self.ports.iter().filter(|queue| queue.paused) {
            let lanes = [queue.control, queue.data].map(|lane| self.waiting.iter(lane));
            lanes.into_iter().flatten().for_each(|entry| held.add(&entry.packet()));
        }
        held
    }

    fn pauses_sent(&self) -> u64 {
        self.pauses_sent
    }
}
