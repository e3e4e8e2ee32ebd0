//! A run from outside: set up, run on any number of threads, gathered into its outcome.
//!
//! [`Simulation`] picks the kind of ports and of event queue that a run needs.

use crate::config::{JobConfig, MarkAt, RunConfig};
use crate::engine::Engine;
use crate::epochs;
use crate::event::Target;
use crate::gather;
use crate::halt::{Ending, Halt};
use crate::messages::Messages;
use crate::outcome::Outcome;
use crate::partition::{Partition, Partitioning};
use crate::ports::{FifoPorts, Ports, QueuePorts};
use crate::posts;
use crate::queue::{EventQueue, Heap, Wheel};
use crate::world::World;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weft_units::{HostId, Time};

/// A run that is set up and ready to go.
#[derive(Debug)]
pub struct Simulation<'a> {
    world: Arc<World<'a>>,
    engines: Engines<'a>,
    threads: u32,
}

/// One engine for each partition, all of one kind.
#[derive(Debug)]
enum Engines<'a> {
    Fifo(Vec<Engine<'a, Wheel, FifoPorts>>),
    Queued(Vec<Engine<'a, Wheel, QueuePorts>>),
    Oracle(Vec<Engine<'a, Heap, QueuePorts>>),
}

impl<'a> Simulation<'a> {
    /// Sets `config` up for one thread.
    ///
    /// # Panics
    /// If a packet, or the number of messages or dependencies, is too large for the engine to
    /// count.
    pub fn new(config: &'a RunConfig<'a>) -> Simulation<'a> {
        Simulation::on_threads(config, 1)
    }

    /// Sets `config` up for `threads` threads, as far as its fabric can be cut into so many
    /// partitions. The outcome is the same for any number.
    ///
    /// # Panics
    /// As [`Simulation::new`].
    pub fn on_threads(config: &'a RunConfig<'a>, threads: u32) -> Simulation<'a> {
        Simulation::in_partitions(config, Partitioning::suits(config, threads), threads)
    }

    /// Sets `config` up in `partitions` partitions, as far as its fabric can be cut into so many, for
    /// `threads` threads. The outcome is the same for any numbers.
    ///
    /// # Panics
    /// As [`Simulation::new`].
    pub fn in_partitions(
        config: &'a RunConfig<'a>,
        partitions: u32,
        threads: u32,
    ) -> Simulation<'a> {
        let world = world(config, partitions);
        let engines = match needs_queues(config) {
            true => Engines::Queued(queued(&world)),
            false => {
                let wheel = |partition: &Partition| wheel(config, partition, FIFO);
                Engines::Fifo(engines(&world, wheel, FifoPorts::new))
            }
        };
        Simulation { world, engines, threads }
    }

    /// Sets `config` up in one partition on a plain heap and real queues: slow, and what all
    /// others must equal.
    pub fn oracle(config: &'a RunConfig<'a>) -> Simulation<'a> {
        let world = world(config, 1);
        let engines = engines(&world, |_| Heap::default(), QueuePorts::new);
        Simulation { world, engines: Engines::Oracle(engines), threads: 1 }
    }

    /// How many data packets have been new to their receivers, for another thread to look at while
    /// the run goes on: it is brought up to date every few thousand events. [`least_work`] says
    /// how many there will be.
    pub fn accepted(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.world.accepted)
    }

    /// Runs to the end. `cancel` is looked at every few thousand events.
    ///
    /// # Errors
    /// [`Halt`], if the run was cancelled or stalled.
    pub fn run(self, cancel: &AtomicBool) -> Result<Outcome, Halt> {
        self.run_with(cancel, None)
    }

    /// As [`Simulation::run`] on one thread. Says how many events each partition had in each epoch, one
    /// epoch after the other: what threads could do side by side. A run that starts over on real queues
    /// has only those of the second start.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_logging(self, cancel: &AtomicBool) -> Result<(Outcome, EpochLog), Halt> {
        let mut log = EpochLog::new();
        let outcome = self.run_with(cancel, Some(&mut log))?;
        Ok((outcome, log))
    }

    fn run_with(
        self,
        cancel: &AtomicBool,
        mut log: Option<&mut EpochLog>,
    ) -> Result<Outcome, Halt> {
        let (world, threads) = (&self.world, self.threads);
        let outcome = match self.engines {
            Engines::Fifo(engines) => run(world, engines, threads, cancel, log.as_deref_mut()),
            Engines::Queued(engines) => run(world, engines, threads, cancel, log.as_deref_mut()),
            Engines::Oracle(engines) => run(world, engines, threads, cancel, log.as_deref_mut()),
        };
        // PFC that never pauses is no more than an account, and trimming where nothing is trimmed is none; else start
        // over with real queues.
        outcome.unwrap_or_else(|Overflowed| {
            world.accepted.store(0, Ordering::Relaxed);
            let outcome = run(world, queued(world), threads, cancel, log);
            outcome.unwrap_or_else(|Overflowed| unreachable!("queues can pause and trim"))
        })
    }
}

/// How many events each partition had, epoch by epoch.
pub type EpochLog = Vec<Box<[u64]>>;

/// FIFO ports met what only queues can do.
struct Overflowed;

/// In how many partitions a run on `threads` threads is cut ([`Simulation::on_threads`]).
pub fn partitions_for(config: &RunConfig, threads: u32) -> u32 {
    Partitioning::suits(config, threads)
}

/// The most threads that are worth while for a run: one where it is short, or too small for
/// its parts to be kept busy until they must wait for each other.
pub fn useful_threads(config: &RunConfig) -> u32 {
    match least_work(config, WORTH_A_THREAD).hops < WORTH_A_THREAD {
        true => 1,
        false => Partitioning::busy_partitions(config),
    }
}

/// About a tenth of a second on one core: where others use the cores as well, threads that must meet cost more than they
/// gain, and less than that nobody waits for.
const WORTH_A_THREAD: u64 = 3_000_000;

/// How much there is to do in a run, if every packet leaves once: the least that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Data packets.
    pub packets: u64,
    /// Links that they and their acknowledgements cross.
    pub hops: u64,
}

impl Work {
    fn add(&mut self, config: &RunConfig, src: HostId, dst: HostId, bytes: u64, times: u64) {
        let packets = bytes.div_ceil(u64::from(config.packet.mtu)).saturating_mul(times);
        let hops = packets.saturating_mul(2 * u64::from(config.fabric.hops(src, dst)));
        self.packets = self.packets.saturating_add(packets);
        self.hops = self.hops.saturating_add(hops);
    }
}

/// What `config` takes at least. Of jobs, which are long to count, only as much as it takes to see
/// that it is `enough` packet-hops.
pub fn least_work(config: &RunConfig, enough: u64) -> Work {
    let mut work = Work::default();
    for message in config.workload.messages().iter() {
        work.add(config, message.src, message.dst, message.bytes, 1);
    }
    let Some(ranks) = &config.job else { return work };
    let JobConfig { jobs, servers, .. } = ranks;
    let mut first = 0;
    for job in *jobs {
        let _ = job.traffic(|one| {
            let [src, dst] = [one.src, one.dst].map(|rank| first + rank);
            if servers[src as usize] != servers[dst as usize] {
                let (from, to) = ranks.ends(src, dst);
                work.add(config, from, to, one.bytes, one.times);
            }
            match work.hops < enough {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        for rank in 0..job.ranks() {
            // Up to a switch and down again, at the least.
            job.switched(rank, |_, place, part, times| {
                let bytes = part.volume(place).0;
                let packets = bytes.div_ceil(u64::from(config.packet.mtu)).saturating_mul(times);
                work.packets = work.packets.saturating_add(packets);
                work.hops = work.hops.saturating_add(packets.saturating_mul(2));
            });
        }
        first += job.ranks();
    }
    work
}

fn world<'a>(config: &'a RunConfig<'a>, partitions: u32) -> Arc<World<'a>> {
    let largest = config.packet.largest();
    assert!(largest <= u64::from(u16::MAX), "packets of {largest} bytes are too large");
    let messages = config.workload.messages().len();
    assert!(messages < Target::LIMIT as usize, "{messages} messages are too many");
    let dependencies = config.workload.dependency_count();
    assert!(dependencies < Target::LIMIT as usize, "{dependencies} dependencies are too many");
    Arc::new(World::new(config, partitions))
}

fn engines<'a, Q: EventQueue, P: Ports>(
    world: &Arc<World<'a>>,
    queue: impl Fn(&Partition) -> Q,
    ports: impl Fn(&RunConfig<'a>, &Partitioning, &Partition) -> P,
) -> Vec<Engine<'a, Q, P>> {
    let partitions = world.partitioning.partitions.iter().zip(0..).zip(Messages::all(world));
    let engine = |((partition, own), messages)| {
        let ports = ports(world.config, &world.partitioning, partition);
        Engine::new(world, own, messages, queue(partition), ports)
    };
    let mut engines: Vec<_> = partitions.map(engine).collect();
    posts::start(world, &mut engines);
    engines
}

/// Engines with real queues.
fn queued<'a>(world: &Arc<World<'a>>) -> Vec<Engine<'a, Wheel, QueuePorts>> {
    let wheel = |partition: &Partition| wheel(world.config, partition, QUEUED);
    engines(world, wheel, QueuePorts::new)
}

/// Whether the departure of a packet, or its mark, may depend on what comes after it, pauses and trimmed headers apart.
fn needs_queues(config: &RunConfig) -> bool {
    let changes = config.failures.rate_changes(config.fabric);
    let marks_later = config.switch.mark == MarkAt::Dequeue && config.switch.ecn.is_some();
    config.force_queues
        || marks_later
        || config.switch.control_priority
        || !config.failures.flushes(config.fabric).is_empty()
        || changes.iter().any(|change| change.at > Time::ZERO)
}

/// How long a slot of the wheel is: as long as the ports together take for so many full
/// packets. Acknowledgements come on top, and bursts, so that slots hold more events. FIFO ports
/// cause none for the slot being handed out, and large slots sort best; a queue that sends an
/// acknowledgement causes one for soon after, which small slots take better.
const FIFO: u64 = 48;
const QUEUED: u64 = 6;

/// A wheel for a partition, which reaches beyond a hop through short queues.
fn wheel(config: &RunConfig, partition: &Partition, events: u64) -> Wheel {
    let processes = Arc::clone(&partition.processes);
    if let Some(window) = processes.window {
        let windows = (BUCKETS / (u64::from(processes.count) + 1)).clamp(32, 1024);
        return Wheel::of_processes(window, windows, processes);
    }
    let fabric = config.fabric.ports();
    let ports = || partition.ports.iter().map(|port| &fabric[*port]);
    let fastest = ports().map(|port| port.rate).max().expect("a partition has ports");
    let packet = fastest.serialize(u64::from(config.packet.mtu)).0;
    let slot = (packet * events / partition.ports.len() as u64).clamp(128, 16_384);
    let delay = ports().map(|port| port.delay).max().expect("a partition has ports").0;
    let slots = (2 * (delay + 2 * packet) / slot).clamp(1024, 1 << 15);
    // A power of two.
    Wheel::of_processes(Time(1 << slot.ilog2()), slots, processes)
}

/// Of the near level of a wheel with many processes.
const BUCKETS: u64 = 1 << 14;

fn run<'a, Q, P>(
    world: &World<'a>,
    engines: Vec<Engine<'a, Q, P>>,
    threads: u32,
    cancel: &AtomicBool,
    log: Option<&mut EpochLog>,
) -> Result<Result<Outcome, Halt>, Overflowed>
where
    Q: EventQueue + Send,
    P: Ports + Send,
{
    let (engines, ending) = match log {
        None => epochs::run(engines, world, threads, cancel),
        Some(log) => {
            log.clear();
            epochs::run_logging(engines, world, cancel, |events| log.push(events.into()))
        }
    };
    match ending {
        Ending::Done => Ok(gather::outcome(world, engines)),
        Ending::Stalled(silence) => Ok(Err(gather::stalled(world, &engines, silence))),
        Ending::Halted(halt) => Ok(Err(halt)),
        Ending::Overflowed => Err(Overflowed),
    }
}
