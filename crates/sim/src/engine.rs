//! The loop, and the state that its parts share.
//!
//! [`Simulation`] picks the kind of ports that a run needs; `Engine` is generic over it and
//! over the event queue, and nothing else: schemes, congestion control and recovery are enums.

use crate::audit::Audit;
use crate::config::{Buffer, RunConfig};
use crate::event::{Class, Event, Packet, Target};
use crate::forward::Link;
use crate::jobs::Jobs;
use crate::nic::{Host, ReceiveFlow, SendFlow};
use crate::outcome::{Outcome, PortResult, Series, Totals};
use crate::ports::{FifoPorts, Ports, QueuePorts};
use crate::queue::{EventQueue, Heap, Wheel};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_balance::plan::Piece;
use weft_units::{HostId, IdVec, PortId, SwitchId, Time};

/// Why a run ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Somebody asked for it.
    Cancelled,
    /// Nothing can make progress any more: which messages wait for what.
    Stalled(String),
    /// The probes have taken more samples than a result can reasonably hold.
    TooManySamples,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Halt::Cancelled => write!(f, "cancelled"),
            Halt::Stalled(who) => write!(f, "the run stalled: {who}"),
            Halt::TooManySamples => write!(f, "more than {MOST_SAMPLES} samples of queues"),
        }
    }
}
impl std::error::Error for Halt {}

/// A run that is set up and ready to go.
#[derive(Debug)]
pub struct Simulation<'a>(Kind<'a>);

#[derive(Debug)]
enum Kind<'a> {
    Fifo(Box<Engine<'a, Wheel, FifoPorts>>),
    Queued(Box<Engine<'a, Wheel, QueuePorts>>),
    Oracle(Box<Engine<'a, Heap, QueuePorts>>),
}

impl<'a> Simulation<'a> {
    /// Sets `config` up.
    ///
    /// # Panics
    /// If a packet or the number of messages is too large for the engine to count.
    pub fn new(config: &'a RunConfig<'a>) -> Simulation<'a> {
        let largest = config.packet.largest();
        assert!(largest <= u64::from(u16::MAX), "packets of {largest} bytes are too large");
        let messages = config.workload.messages().len();
        assert!(messages < Target::LIMIT as usize, "{messages} messages are too many");
        let wheel = Wheel::new(slot_length(config));
        Simulation(if needs_queues(config) {
            Kind::Queued(Box::new(Engine::new(config, wheel, queue_ports(config))))
        } else {
            let ports = FifoPorts::new(config.fabric, &config.switch, &config.packet, config.seed);
            Kind::Fifo(Box::new(Engine::new(config, wheel, ports)))
        })
    }

    /// Sets `config` up on a plain heap and real queues: slow, and what the others must equal.
    pub fn oracle(config: &'a RunConfig<'a>) -> Simulation<'a> {
        let ports = queue_ports(config);
        Simulation(Kind::Oracle(Box::new(Engine::new(config, Heap::default(), ports))))
    }

    /// Runs to the end. `cancel` is looked at every few thousand events.
    ///
    /// # Errors
    /// [`Halt`], if the run was cancelled or stalled.
    pub fn run(self, cancel: &AtomicBool) -> Result<Outcome, Halt> {
        match self.0 {
            Kind::Fifo(engine) => engine.run(cancel),
            Kind::Queued(engine) => engine.run(cancel),
            Kind::Oracle(engine) => engine.run(cancel),
        }
    }
}

fn needs_queues(config: &RunConfig) -> bool {
    config.force_queues
        || config.switch.pfc.is_some()
        || config.switch.control_priority
        || matches!(config.switch.buffer, Buffer::Shared { .. })
}

fn queue_ports(config: &RunConfig) -> QueuePorts {
    QueuePorts::new(config.fabric, &config.switch, &config.packet, config.seed)
}

/// A slot of the wheel that holds some ten events when all ports are busy.
fn slot_length(config: &RunConfig) -> Time {
    let ports = config.fabric.ports();
    let fastest = ports.iter().map(|port| port.rate).max().expect("a fabric has ports");
    let packet = fastest.serialize(u64::from(config.packet.mtu));
    Time((packet.0 * 6 / ports.len() as u64).clamp(128, 16_384))
}

/// A running simulation. The parts are in `forward`, `nic` and `jobs`.
#[derive(Debug)]
pub(crate) struct Engine<'a, Q, P> {
    pub(crate) config: &'a RunConfig<'a>,
    pub(crate) now: Time,
    pub(crate) events: Q,
    pub(crate) ports: P,
    pub(crate) links: IdVec<PortId, Link>,
    /// Hash salt of each switch.
    pub(crate) salts: IdVec<SwitchId, u64>,
    pub(crate) hosts: IdVec<HostId, Host>,
    /// Both halves of the queue pairs, at the same index.
    pub(crate) senders: Vec<SendFlow>,
    pub(crate) receivers: Vec<ReceiveFlow>,
    pub(crate) jobs: Jobs,
    /// Scratch for planners.
    pub(crate) pieces: Vec<Piece>,
    /// The last time that any receiver accepted a packet.
    pub(crate) progress: Time,
    pub(crate) totals: Totals,
    /// What reached a host.
    pub(crate) delivered: Delivered,
    pub(crate) audit: Option<Audit>,
    /// Something that ends the run.
    pub(crate) halt: Option<Halt>,
    series: Vec<Series>,
    /// Numbers in all of `series`.
    samples: usize,
}

/// Half a gigabyte of samples.
const MOST_SAMPLES: usize = 1 << 26;

/// Packets and bytes that reached hosts, of all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    packets: u64,
    bytes: u64,
}

impl Delivered {
    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
}

/// How many events between two looks at the cancel flag.
const CANCEL_EVERY: u64 = 1 << 14;

impl<'a, Q: EventQueue, P: Ports> Engine<'a, Q, P> {
    fn new(config: &'a RunConfig<'a>, events: Q, ports: P) -> Self {
        let probes = config.probes.ports.len() + config.probes.switches.len();
        Engine {
            config,
            now: Time::ZERO,
            events,
            ports,
            links: Link::all(config.fabric),
            salts: crate::forward::salts(config),
            hosts: Host::all(config),
            senders: Vec::new(),
            receivers: Vec::new(),
            jobs: Jobs::new(config.workload),
            pieces: Vec::new(),
            progress: Time::ZERO,
            totals: Totals::default(),
            delivered: Delivered::default(),
            audit: config.audit.then(|| Audit::new(config.fabric)),
            halt: None,
            series: vec![Series::default(); probes],
            samples: 0,
        }
    }

    fn run(mut self, cancel: &AtomicBool) -> Result<Outcome, Halt> {
        self.start_jobs();
        if self.config.probes.interval.is_some() {
            self.events.push(Event::new(Time::ZERO, Class::Sample, 0));
        }
        let mut last = None;
        while let Some(event) = self.events.pop() {
            debug_assert!(last < Some(event.key()), "{event:?} is not after {last:?}");
            last = Some(event.key());
            self.now = event.time;
            self.totals.events += 1;
            self.handle(event);
            if self.totals.events.is_multiple_of(CANCEL_EVERY) && cancel.load(Ordering::Relaxed) {
                return Err(Halt::Cancelled);
            }
            if self.halt.is_some() {
                break;
            }
        }
        self.finish()
    }

    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let id = event.target.id();
        match event.target.class() {
            Class::Arrive => self.arrive(PortId(id), event.packet),
            Class::Transmitted => {
                if self.ports.transmitted(self.now, PortId(id), &mut self.events) {
                    self.pull(HostId(id));
                }
            }
            Class::Start => self.start_flow(id),
            Class::Timer => self.flow_timer(id),
            Class::Post => self.post(weft_units::MessageId(id)),
            Class::Flush => self.flush(HostId(id)),
            Class::Wake => self.wake(HostId(id)),
            Class::Sample => self.sample(),
        }
    }

    /// Samples the probes, and comes back while there is something left to do.
    #[cold]
    fn sample(&mut self) {
        let probes = &self.config.probes;
        let mut series = std::mem::take(&mut self.series);
        let ports = probes.ports.iter().map(|port| self.ports.queued_bytes(self.now, *port));
        let switches = probes.switches.iter().map(|switch| self.buffered_bytes(*switch));
        for (series, bytes) in series.iter_mut().zip(ports.chain(switches)) {
            series.bytes.push(bytes);
        }
        self.series = series;
        self.samples += self.series.len();
        if self.samples > MOST_SAMPLES {
            self.halt = Some(Halt::TooManySamples);
        }
        if let Some(interval) = probes.interval
            && self.jobs.unfinished() > 0
        {
            self.events.push(Event::new(self.now + interval, Class::Sample, 0));
        }
    }

    /// Bytes in the memory of `switch`; the sum of its queues where they share none.
    fn buffered_bytes(&self, switch: SwitchId) -> u64 {
        self.ports.shared_bytes(switch).unwrap_or_else(|| {
            let ports = self.config.fabric.ports_of(switch).ids();
            ports.map(|port| self.ports.queued_bytes(self.now, port)).sum()
        })
    }

    fn finish(mut self) -> Result<Outcome, Halt> {
        if let Some(halt) = self.halt.take() {
            return Err(halt);
        }
        if self.jobs.unfinished() > 0 {
            return Err(Halt::Stalled(self.diagnose()));
        }
        let ports = self.ports.results(self.now);
        self.check_conservation(&ports);
        let mut totals = self.totals;
        for port in &ports {
            totals.packet_hops += port.packets;
            totals.drops += port.drops;
            totals.marks += port.marks;
        }
        totals.pauses = self.ports.pauses_sent();
        for host in self.hosts.iter() {
            totals.max_qps = totals.max_qps.max(host.most_active());
            totals.established_qps = totals.established_qps.max(host.established());
        }
        let messages = self.jobs.into_results();
        totals.cct = messages.iter().map(|m| m.received).max().unwrap_or(Time::ZERO);
        Ok(Outcome { messages, ports: ports.into(), series: self.series, totals })
    }

    /// Every run accounts for every packet: what the NICs sent reached a host or was dropped.
    ///
    /// # Panics
    /// If it did not: the engine is wrong, and so would be its result.
    fn check_conservation(&self, ports: &[PortResult]) {
        let nics = &ports[..self.hosts.len()];
        let sent = Delivered {
            packets: nics.iter().map(|nic| nic.packets).sum(),
            bytes: nics.iter().map(|nic| nic.bytes).sum(),
        };
        let accounted = Delivered {
            packets: self.delivered.packets + ports.iter().map(|port| port.drops).sum::<u64>(),
            bytes: self.delivered.bytes + ports.iter().map(|port| port.dropped_bytes).sum::<u64>(),
        };
        assert_eq!(sent, accounted, "sent against delivered and dropped");
        assert_eq!(sent.packets, self.totals.packets + self.totals.control_packets);
        if let Some(audit) = &self.audit {
            audit.check(self.config.fabric, ports);
        }
    }
}
