//! A run from outside: set up, run on any number of threads, gathered into its outcome.
//!
//! [`Simulation`] picks the kind of ports and of event queue that a run needs.

use crate::config::{Buffer, RunConfig};
use crate::cut::{Cut, Territory};
use crate::engine::Engine;
use crate::event::Target;
use crate::gather;
use crate::jobs::{self, Jobs};
use crate::outcome::Outcome;
use crate::ports::{FifoPorts, Ports, QueuePorts};
use crate::probes::MOST_SAMPLES;
use crate::queue::{EventQueue, Heap, Wheel};
use crate::windows::{self, Ending};
use crate::world::World;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weft_units::Time;

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
pub struct Simulation<'a> {
    world: Arc<World<'a>>,
    engines: Engines<'a>,
}

/// One engine for each domain, all of one kind.
#[derive(Debug)]
enum Engines<'a> {
    Fifo(Vec<Engine<'a, Wheel, FifoPorts>>),
    Queued(Vec<Engine<'a, Wheel, QueuePorts>>),
    Oracle(Vec<Engine<'a, Heap, QueuePorts>>),
}

impl<'a> Simulation<'a> {
    /// Sets `config` up.
    ///
    /// # Panics
    /// If a packet, or the number of messages or dependencies, is too large for the engine to
    /// count.
    pub fn new(config: &'a RunConfig<'a>) -> Simulation<'a> {
        Simulation::in_domains(config, Cut::suits(config))
    }

    /// Sets `config` up in `domains` domains, or as many as its fabric can be cut into. The
    /// outcome is the same for any number of them.
    ///
    /// # Panics
    /// As [`Simulation::new`].
    pub fn in_domains(config: &'a RunConfig<'a>, domains: u32) -> Simulation<'a> {
        let world = world(config, domains);
        let wheel = |territory: &Territory| Wheel::new(slot_length(config, territory));
        let engines = match needs_queues(config) {
            true => Engines::Queued(engines(&world, wheel, QueuePorts::new)),
            false => Engines::Fifo(engines(&world, wheel, FifoPorts::new)),
        };
        Simulation { world, engines }
    }

    /// Sets `config` up in one domain on a plain heap and real queues: slow, and what all
    /// others must equal.
    pub fn oracle(config: &'a RunConfig<'a>) -> Simulation<'a> {
        let world = world(config, 1);
        let engines = engines(&world, |_| Heap::default(), QueuePorts::new);
        Simulation { world, engines: Engines::Oracle(engines) }
    }

    /// The most threads that are worth while for this run; at least one.
    pub fn useful_threads(&self) -> u32 {
        let domains = self.world.cut.territories.len() as u32;
        match least_hops(self.world.config) < WORTH_A_THREAD {
            true => 1,
            false => domains.div_ceil(2),
        }
    }

    /// Runs to the end on one thread. `cancel` is looked at every few thousand events.
    ///
    /// # Errors
    /// [`Halt`], if the run was cancelled or stalled.
    pub fn run(self, cancel: &AtomicBool) -> Result<Outcome, Halt> {
        self.run_on(1, cancel)
    }

    /// Runs to the end on `threads` threads; the outcome is the same for any number.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_on(self, threads: u32, cancel: &AtomicBool) -> Result<Outcome, Halt> {
        let world = &self.world;
        match self.engines {
            Engines::Fifo(engines) => run(world, engines, threads, cancel),
            Engines::Queued(engines) => run(world, engines, threads, cancel),
            Engines::Oracle(engines) => run(world, engines, threads, cancel),
        }
    }
}

/// A run of fewer packet-hops is over before a second thread is of use.
const WORTH_A_THREAD: u64 = 200_000;

/// Packet-hops if every packet crosses two links, and its acknowledgement too.
fn least_hops(config: &RunConfig) -> u64 {
    let messages = config.workload.messages().iter();
    let packets = messages.map(|message| message.bytes.div_ceil(u64::from(config.packet.mtu)));
    packets.fold(0, |sum, packets| sum.saturating_add(packets.saturating_mul(4)))
}

fn world<'a>(config: &'a RunConfig<'a>, domains: u32) -> Arc<World<'a>> {
    let largest = config.packet.largest();
    assert!(largest <= u64::from(u16::MAX), "packets of {largest} bytes are too large");
    let messages = config.workload.messages().len();
    assert!(messages < Target::LIMIT as usize, "{messages} messages are too many");
    let dependencies = config.workload.dependency_count();
    assert!(dependencies < Target::LIMIT as usize, "{dependencies} dependencies are too many");
    Arc::new(World::new(config, domains))
}

fn engines<'a, Q: EventQueue, P: Ports>(
    world: &Arc<World<'a>>,
    queue: impl Fn(&Territory) -> Q,
    ports: impl Fn(&RunConfig<'a>, &Cut, &Territory) -> P,
) -> Vec<Engine<'a, Q, P>> {
    let territories = world.cut.territories.iter().zip(0..).zip(Jobs::all(world));
    let engine = |((territory, own), jobs)| {
        let ports = ports(world.config, &world.cut, territory);
        Engine::new(world, own, jobs, queue(territory), ports)
    };
    territories.map(engine).collect()
}

fn needs_queues(config: &RunConfig) -> bool {
    config.force_queues
        || config.switch.pfc.is_some()
        || config.switch.control_priority
        || matches!(config.switch.buffer, Buffer::Shared { .. })
}

/// A slot of the wheel that holds some ten events when all ports are busy.
fn slot_length(config: &RunConfig, territory: &Territory) -> Time {
    let fabric = config.fabric.ports();
    let fastest = territory.ports.iter().map(|port| fabric[*port].rate).max();
    let fastest = fastest.expect("a domain has ports");
    let packet = fastest.serialize(u64::from(config.packet.mtu));
    Time((packet.0 * 6 / territory.ports.len() as u64).clamp(128, 16_384))
}

fn run<'a, Q, P>(
    world: &World<'a>,
    engines: Vec<Engine<'a, Q, P>>,
    threads: u32,
    cancel: &AtomicBool,
) -> Result<Outcome, Halt>
where
    Q: EventQueue + Send,
    P: Ports + Send,
{
    let (engines, ending) = windows::run(engines, world, threads, cancel);
    match ending {
        Ending::Done => gather::outcome(world, engines),
        Ending::Stalled(now) => Err(Halt::Stalled(jobs::diagnose(world, &engines, now))),
        Ending::Halted(halt) => Err(halt),
    }
}
