//! The loop of one partition, and the parts that it has.
//!
//! `Engine` is generic over the kind of ports and the event queue, and nothing else: schemes,
//! congestion control and recovery are enums.

use crate::agenda::Agenda;
use crate::bulk::Bulk;
use crate::config::RunConfig;
use crate::counts::Counts;
use crate::event::{Class, Event};
use crate::halt::{Ending, Halt};
use crate::headers::Headers;
use crate::jobs::Jobs;
use crate::mail::Mail;
use crate::messages::Messages;
use crate::nic::Nics;
use crate::partition::{InLink, OutPort, OwnHost, OwnSwitch};
use crate::ports::Ports;
use crate::probes::{Gauge, Probes};
use crate::queue::EventQueue;
use crate::reduce::Reduction;
use crate::switches::Switches;
use crate::tor::Tags;
use crate::world::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_units::{MessageId, Time};

/// One partition of a running simulation. What its parts do together is in `forward`, `faults`,
/// `nic`, `posts`, `jobs` and `tor`.
#[derive(Debug)]
pub(crate) struct Engine<'a, Q, P> {
    pub(crate) config: &'a RunConfig<'a>,
    pub(crate) world: Arc<World<'a>>,
    /// The number of the partition.
    pub(crate) own: u16,
    pub(crate) now: Time,
    /// The time of the latest event so far, of whatever logical process.
    pub(crate) latest: Time,
    pub(crate) agenda: Agenda<Q>,
    pub(crate) ports: P,
    pub(crate) switches: Switches,
    pub(crate) nics: Nics,
    pub(crate) messages: Messages,
    /// Ranks at work, if there is a job.
    pub(crate) jobs: Option<Jobs<'a>>,
    pub(crate) counts: Counts,
    pub(crate) probes: Probes,
    pub(crate) bulk: Bulk,
    /// What switches add up for ranks, if they do.
    pub(crate) reduction: Option<Box<Reduction>>,
    /// When so many events are handled, it is time to look up.
    next_look: u64,
}

/// How many events between two looks at the cancel flag.
const CANCEL_EVERY: u64 = 1 << 14;

impl<'a, Q: EventQueue, P: Ports> Engine<'a, Q, P> {
    /// Partition `own`, with its messages and everything else that it owns.
    pub(crate) fn new(
        world: &Arc<World<'a>>,
        own: u16,
        messages: Messages,
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
            latest: Time::ZERO,
            agenda: Agenda::new(
                events,
                own,
                (partition, partitions),
                (config.tags().then(Tags::default), Headers::new(config)),
            ),
            ports,
            switches: Switches::new(config, &world.partitioning, partition, world.trees.is_some()),
            nics: Nics::new(config, partition, partitions),
            messages,
            jobs: Jobs::new(world, own),
            counts: Counts::new(config, partition),
            probes: Probes::new(config, &world.partitioning, own),
            bulk: Bulk::default(),
            reduction: Reduction::new(world, partition),
            next_look: CANCEL_EVERY,
        };
        engine.agenda.announce();
        if engine.may_relay_in_bulk() {
            let processes = engine.agenda.processes();
            engine.bulk = Bulk::new(processes.switches(), processes.most_links());
            engine.agenda.hand_out_whole(engine.bulk.processes.clone());
        }
        // Before ranks post: hosts know then what is known from the start.
        engine.schedule_faults();
        engine.start_ranks();
        if engine.probes.are_any() {
            engine.agenda.push_for_all(Event::new(Time::ZERO, Class::Sample, 0));
        }
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
            self.agenda.take_in(*event, &mail.tags, &mail.headers);
        }
        mail.clear();
    }

    /// Handles all events before `end`.
    ///
    /// # Errors
    /// What ends the run.
    pub(crate) fn run_before(&mut self, end: Time, cancel: &AtomicBool) -> Result<(), Ending> {
        loop {
            while let Some(event) = self.agenda.pop_before(end) {
                self.now = event.time;
                self.counts.totals.events += 1;
                self.handle(event);
                if self.counts.totals.events >= self.next_look {
                    self.look_up(cancel)?;
                }
            }
            self.latest = self.latest.max(self.now);
            if !self.relay_whole() && !self.look_ahead() {
                return self.may_go_on();
            }
        }
    }

    /// Has the cache fetch the queue pairs and ports of what comes next, if that is why the agenda had no event.
    #[inline(never)]
    fn look_ahead(&mut self) -> bool {
        let Some(events) = self.agenda.next_ones() else { return false };
        if self.nics.are_many() {
            let has_many_ports = self.nics.have_many_ports();
            for event in events {
                if event.target().is(Class::Arrive) {
                    self.nics.expect(event.packet());
                    if has_many_ports {
                        self.ports.prefetch(self.switches.ingress(event));
                    }
                } else if event.target().is(Class::Start) {
                    self.nics.expect_start(event.target().id());
                }
            }
        }
        true
    }

    /// What is done once in a while.
    #[cold]
    fn look_up(&mut self, cancel: &AtomicBool) -> Result<(), Ending> {
        self.next_look = self.counts.totals.events + CANCEL_EVERY;
        self.tell_accepted();
        if cancel.load(Ordering::Relaxed) {
            return Err(Ending::Halted(Halt::Cancelled));
        }
        self.may_go_on()
    }

    /// Whether there is a reason to stop.
    #[cold]
    fn may_go_on(&self) -> Result<(), Ending> {
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
        self.world.accepted.fetch_add(self.counts.newly_accepted(), Ordering::Relaxed);
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
                self.pull_port(OutPort(id));
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
            Class::Credit => self.grant(OwnHost(id)),
            Class::Probe => self.probe_due(id),
            Class::Resend => self.operations_due(OwnHost(id)),
            Class::Sum => self.sums_due(OwnSwitch(id)),
        }
    }

    /// Samples the probes, and comes back while there is something left to do.
    #[cold]
    fn sample(&mut self) {
        let mut probes = std::mem::take(&mut self.probes);
        probes.sample(|gauge| match gauge {
            Gauge::Queue(port) => self.ports.queued_bytes(self.now, port),
            Gauge::Memory(switch) => self.buffered_bytes(switch),
            Gauge::Sent(port) => self.ports.sent_bytes(self.now, port),
            Gauge::Received => self.counts.goodput(self.config.packet.header),
        });
        // Not counted: several partitions with probes sample more often than one with all of them.
        self.counts.totals.events -= 1;
        if (self.is_unfinished() || probes.others_unfinished)
            && let Some(at) = probes.next(self.now)
        {
            self.agenda.push_for_all(Event::new(at, Class::Sample, 0));
        }
        self.probes = probes;
    }

    /// Bytes in the memory of `switch`; the sum of its queues where they share none.
    fn buffered_bytes(&self, switch: OwnSwitch) -> u64 {
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
        self.messages.unfinished() > 0 || self.jobs.as_ref().is_some_and(Jobs::is_unfinished)
    }
}
