//! The loop of one partition, and the state that its parts share.
//!
//! `Engine` is generic over the kind of ports and the event queue, and nothing else: schemes,
//! congestion control and recovery are enums.

use crate::agenda::Agenda;
use crate::audit::Audit;
use crate::config::RunConfig;
use crate::epochs::Ending;
use crate::event::{Class, Event};
use crate::faults::Faults;
use crate::forward::{Link, Routing, Switch};
use crate::jobs::Jobs;
use crate::losses::Losses;
use crate::mail::Mail;
use crate::messages::Messages;
use crate::nic::{BackOffs, Host, ReceivingQp, SendingQp};
use crate::outcome::Totals;
use crate::packet::Packet;
use crate::partition::{InLink, OutPort, OwnHost, OwnSwitch};
use crate::ports::Ports;
use crate::probes::Probes;
use crate::progress::Progress;
use crate::queue::EventQueue;
use crate::simulation::Halt;
use crate::tor::Tors;
use crate::world::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_balance::plan::Subflow;
use weft_units::{IdVec, MessageId, Time};

/// One partition of a running simulation. The parts are in `forward`, `nic` and `jobs`.
#[derive(Debug)]
pub(crate) struct Engine<'a, Q, P> {
    pub(crate) config: &'a RunConfig<'a>,
    pub(crate) world: Arc<World<'a>>,
    /// Which partition.
    pub(crate) own: u16,
    pub(crate) now: Time,
    pub(crate) agenda: Agenda<Q>,
    pub(crate) ports: P,
    pub(crate) links: IdVec<InLink, Link>,
    pub(crate) switches: IdVec<OwnSwitch, Switch>,
    pub(crate) routing: Routing,
    /// What switches keep, under schemes that have them do so.
    pub(crate) tors: Option<Tors>,
    /// Links that may lose what they carry.
    pub(crate) faults: Faults,
    pub(crate) hosts: IdVec<OwnHost, Host>,
    /// Sending halves of the queue pairs of this partition's hosts.
    pub(crate) senders: Vec<SendingQp>,
    /// Which queue pair of its host each of them is, if that decides whose turn it is.
    pub(crate) opening_order: Vec<u32>,
    pub(crate) back_offs: BackOffs,
    /// Receiving halves, by the partition of the sender.
    pub(crate) receivers: Vec<Vec<ReceivingQp>>,
    /// How many receiving halves the queue pairs to hosts of each partition take, and which of their
    /// places are free again.
    pub(crate) opened: Vec<u32>,
    pub(crate) free_receivers: Vec<Vec<u32>>,
    pub(crate) jobs: Messages,
    /// Ranks at work, if there is a job.
    pub(crate) ranks: Option<Jobs<'a>>,
    /// Packets of ranks leave in slots of their GPUs.
    pub(crate) has_slots: bool,
    /// Scratch for planners.
    pub(crate) subflows: Vec<Subflow>,
    pub(crate) progress: Progress,
    pub(crate) totals: Totals,
    /// What links that had failed lost, by queue pair.
    pub(crate) losses: Losses,
    /// What reached a host.
    pub(crate) delivered: Delivered,
    /// Of that, data that its receiver did not have yet.
    pub(crate) accepted: Delivered,
    /// How many of those the world has heard of.
    told: u64,
    pub(crate) audit: Option<Audit>,
    pub(crate) probes: Probes,
    /// Some other partition has messages that are not acknowledged to the end.
    pub(crate) others_unfinished: bool,
}

/// Packets and bytes that reached hosts, of all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Delivered {
    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
    /// Both together.
    pub(crate) fn and(self, other: Delivered) -> Delivered {
        Delivered { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// How many events between two looks at the cancel flag.
const CANCEL_EVERY: u64 = 1 << 14;

impl<'a, Q: EventQueue, P: Ports> Engine<'a, Q, P> {
    /// Partition `own`, with its messages and everything else that it owns.
    pub(crate) fn new(
        world: &Arc<World<'a>>,
        own: u16,
        jobs: Messages,
        events: Q,
        ports: P,
    ) -> Self {
        let config = world.config;
        let partitions = world.partitioning.partitions.len();
        let partition = &world.partitioning.partitions[usize::from(own)];
        let mut engine = Engine {
            config,
            world: Arc::clone(world),
            own,
            now: Time::ZERO,
            agenda: Agenda::new(events, own, partitions, config.tags()),
            ports,
            links: Link::all(config, &world.partitioning, partition),
            switches: Switch::all(config, &world.partitioning, partition),
            routing: Routing::new(config, partition),
            tors: Tors::new(config, partition),
            faults: Faults::new(config, partition),
            hosts: Host::all(config, partition),
            senders: Vec::new(),
            opening_order: Vec::new(),
            back_offs: BackOffs::default(),
            receivers: (0..partitions).map(|_| Vec::new()).collect(),
            opened: vec![0; partitions],
            free_receivers: vec![Vec::new(); partitions],
            jobs,
            ranks: Jobs::new(world, own),
            subflows: Vec::new(),
            progress: Progress::START,
            has_slots: config.job.as_ref().is_some_and(|job| job.pcie.is_some()),
            totals: Totals::default(),
            losses: Losses::new(config.tags()),
            delivered: Delivered::default(),
            accepted: Delivered::default(),
            told: 0,
            audit: config.audit.then(|| Audit::new(config, partition)),
            probes: Probes::new(config, &world.partitioning, own),
            others_unfinished: partitions > 1,
        };
        engine.start_ranks();
        engine.start_probes();
        engine.schedule_faults();
        engine
    }

    /// Takes in what another partition sent in the last epoch, and empties it.
    pub(crate) fn take_in(&mut self, from: usize, mail: &mut Mail) {
        for announcement in &mail.announcements {
            self.hear(from, announcement);
        }
        for opening in &mail.openings {
            self.open_receiving(from, opening);
        }
        for event in &mail.events {
            self.agenda.take_in(*event, &mail.tags);
        }
        mail.clear();
    }

    /// Handles all events before `end`.
    ///
    /// # Errors
    /// What ends the run.
    pub(crate) fn run_before(&mut self, end: Time, cancel: &AtomicBool) -> Result<(), Ending> {
        let mut last = None;
        while let Some(event) = self.agenda.pop_before(end) {
            debug_assert!(last < Some(event.key()), "{event:?} is not after {last:?}");
            last = Some(event.key());
            self.now = event.time;
            self.totals.events += 1;
            self.handle(event);
            if self.totals.events.is_multiple_of(CANCEL_EVERY) {
                self.look_up()?;
                self.tell_accepted();
                if cancel.load(Ordering::Relaxed) {
                    return Err(Ending::Halted(Halt::Cancelled));
                }
            }
        }
        self.look_up()
    }

    /// Whether there is a reason to stop.
    #[cold]
    fn look_up(&self) -> Result<(), Ending> {
        if self.ports.overflowed() {
            return Err(Ending::Overflowed);
        }
        if self.probes.are_too_many() {
            return Err(Ending::Halted(Halt::TooManySamples));
        }
        Ok(())
    }

    /// Lets whoever watches the run know how far it is.
    #[cold]
    fn tell_accepted(&mut self) {
        let new = self.accepted.packets - self.told;
        self.world.accepted.fetch_add(new, Ordering::Relaxed);
        self.told = self.accepted.packets;
    }

    /// Nearly all events are arrivals, and most of the others tell of a transmission.
    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let target = event.target();
        let id = target.id();
        if target.is(Class::Arrive) {
            return self.arrive(InLink(id), event.packet());
        }
        if target.is(Class::Transmitted) {
            if self.ports.transmitted(self.now, OutPort(id), &mut self.agenda) {
                self.pull(OwnHost(id));
            }
            return;
        }
        self.handle_rare(event);
    }

    /// By itself, so that the compiler leaves the two questions above alone, which are easier to
    /// predict than a jump to one of all classes, and keeps packets in registers.
    #[inline(never)]
    fn handle_rare(&mut self, event: Event) {
        let target = event.target();
        let id = target.id();
        match target.class() {
            Class::Arrive | Class::Transmitted => unreachable!("handled above"),
            Class::Leaf => self.leaf_time(OwnSwitch(id)),
            Class::Start => self.start_flow(id),
            Class::Timer => self.flow_timer(id),
            Class::DependencyMet => self.dependency_met(id),
            Class::Post => self.post(MessageId(id)),
            Class::Flush => self.flush(OwnHost(id)),
            Class::Wake => self.wake(OwnHost(id)),
            Class::Sample => self.sample(),
            Class::Fault => self.fault(id),
            Class::Rank => self.rank(id),
        }
    }

    /// Bytes in the memory of `switch`; the sum of its queues where they share none.
    pub(crate) fn buffered_bytes(&self, switch: OwnSwitch) -> u64 {
        self.ports.shared_bytes(self.now, switch).unwrap_or_else(|| {
            let id = self.world.partitioning.partitions[usize::from(self.own)].switches[switch];
            let ports = self.config.fabric.ports_of(id).ids();
            let own = ports.map(|port| self.world.partitioning.ports[port].own);
            own.map(|port| self.ports.queued_bytes(self.now, port)).sum()
        })
    }
}

impl<Q, P> Engine<'_, Q, P> {
    /// Whether something is to come: messages under way, or ranks at work.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.jobs.unfinished() > 0 || self.ranks.as_ref().is_some_and(Jobs::is_unfinished)
    }
}
