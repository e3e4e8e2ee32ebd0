//! The state of a run, and its loop: something happens, rates follow from it.

use crate::agenda::{Agenda, What};
use crate::alone::Watch;
use crate::buffers::Buffers;
use crate::capacities::Capacities;
use crate::failures::Trouble;
use crate::flows::{Flow, Part};
use crate::messages::Message;
use crate::paths::Layout;
use crate::queues::Queues;
use crate::ranks::Ranks;
use crate::rates::Rates;
use crate::rounds::{Key, Rest, Ring};
use crate::windows::{Changing, Control};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_balance::Planner;
use weft_balance::plan::{QueuePairId, Subflow};
use weft_balance::scheme::PathUse;
use weft_plan::PlannedFabric;
use weft_sim::{Halt, JobConfig, MessageResult, Outcome, RunConfig, Totals};
use weft_units::{HostId, IdVec, MessageId, Time};
use weft_workload::Dependents;

/// How many things happen between two looks at whether the run is to end.
const LOOK_EVERY: u64 = 4096;
/// Rates follow what happens this much later at most, as a share of a round trip: no host hears of it
/// any sooner.
const LATEST: f64 = 0.02;

/// The planner of a host, and its queue pairs.
pub(crate) struct Host {
    pub(crate) planner: Planner,
    pub(crate) flush_at: Option<Time>,
    /// Queue pairs that carry something, and the most there were.
    pub(crate) active: u32,
    pub(crate) most: u32,
    pub(crate) established: u32,
    /// Subflows on each persistent queue pair.
    pub(crate) queue_pairs: FxHashMap<QueuePairId, u32>,
    /// Their windows, as they were left, and the moving averages of marks.
    pub(crate) windows: FxHashMap<QueuePairId, (f64, f64)>,
    /// When their gaps are over, where packets are paced.
    pub(crate) gaps: FxHashMap<QueuePairId, Time>,
}

/// All of a run.
pub(crate) struct Engine<'a> {
    pub(crate) config: &'a RunConfig<'a>,
    /// As hosts and routing know it now.
    pub(crate) network: PlannedFabric<'a>,
    pub(crate) layout: Layout<'a>,
    pub(crate) spreads: bool,
    pub(crate) rates: Rates,
    pub(crate) capacities: Capacities,
    pub(crate) queues: Queues,
    pub(crate) buffers: Buffers,
    /// What windows are told, where queues delay them.
    pub(crate) control: Control,
    pub(crate) changing: Changing,
    pub(crate) hosts: Vec<Host>,
    pub(crate) messages: Vec<Message>,
    pub(crate) free_messages: Vec<u32>,
    pub(crate) results: IdVec<MessageId, MessageResult>,
    pub(crate) unmet: Vec<u32>,
    pub(crate) dependents: Dependents,
    pub(crate) flows: Vec<Flow>,
    pub(crate) free_flows: Vec<u32>,
    /// Which flow each one of [`Rates`] is.
    pub(crate) by_rates: Vec<u32>,
    pub(crate) agenda: Agenda,
    pub(crate) now: Time,
    /// Rates are to be found by then.
    pub(crate) settle_by: Time,
    /// So much later than something happened.
    pub(crate) latest: Time,
    pub(crate) subflows: Vec<Subflow>,
    pub(crate) parts: Vec<Part>,
    pub(crate) ranks: Option<Ranks<'a>>,
    /// Rings whose first rounds are simulated. Never iterated.
    pub(crate) rings: FxHashMap<Key, Ring>,
    /// What is left of others.
    pub(crate) rests: Vec<Option<Rest>>,
    pub(crate) ring_version: u64,
    /// What crossed each resource.
    pub(crate) bytes: Vec<u64>,
    pub(crate) packets: Vec<u64>,
    pub(crate) totals: Totals,
    pub(crate) trouble: Trouble,
    pub(crate) watch: Option<Watch>,
    /// Flows that run, and when something last happened but that flows heard nothing.
    pub(crate) running: u32,
    pub(crate) moved_at: Time,
}

/// Runs `config` by rates. It ends early where `cancel` says so.
///
/// # Errors
/// [`Halt::Cancelled`]; [`Halt::Stalled`], if flows that lost their paths find none.
pub fn run(config: &RunConfig<'_>, cancel: &AtomicBool) -> Result<Outcome, Halt> {
    let mut engine = Engine::new(config);
    engine.start();
    engine.work(cancel)?;
    Ok(engine.outcome())
}

impl<'a> Engine<'a> {
    pub(crate) fn new(config: &'a RunConfig<'a>) -> Engine<'a> {
        let fabric = config.fabric;
        let layout = Layout::new(fabric, config.balance.scheme.info().paths);
        let host = |id: u32| Host {
            planner: Planner::knowing(
                config.hashing(),
                &config.balance,
                HostId(id),
                config.seed,
                config.packet.mtu,
            ),
            flush_at: None,
            active: 0,
            most: 0,
            established: 0,
            queue_pairs: FxHashMap::default(),
            windows: FxHashMap::default(),
            gaps: FxHashMap::default(),
        };
        let dependents = config.workload.dependents();
        let trouble = Trouble::new(config);
        let (data, ack) = (config.packet.mtu + config.packet.header, config.packet.ack);
        let rtt = fabric.base_rtt(u64::from(data), u64::from(ack));
        let control = Control::new(config);
        let ranks = config.job.as_ref().map_or(0, |job| job.hosts.len());
        let has_pcie = matches!(&config.job, Some(JobConfig { pcie: Some(_), .. }));
        let resources = layout.len() as usize + if has_pcie { ranks } else { 0 };
        Engine {
            network: trouble.network(config, Time::ZERO),
            capacities: Capacities::new(config, &layout, rtt, resources),
            rates: Rates::new(resources),
            queues: Queues::new(config, &layout, rtt, control.is_some()),
            buffers: Buffers::new(config, &layout),
            control: control.unwrap_or_default(),
            changing: Changing::default(),
            hosts: (0..fabric.hosts()).map(host).collect(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            results: config.workload.messages().iter().map(|_| MessageResult::default()).collect(),
            unmet: dependents.unmet().iter().copied().collect(),
            dependents,
            flows: Vec::new(),
            free_flows: Vec::new(),
            by_rates: Vec::new(),
            agenda: Agenda::default(),
            now: Time::ZERO,
            settle_by: Time::MAX,
            latest: Time((rtt.0 as f64 * LATEST) as u64),
            subflows: Vec::new(),
            parts: Vec::new(),
            spreads: config.balance.scheme.info().paths != PathUse::One,
            ranks: config.job.as_ref().map(|job| Ranks::new(config, job)),
            rings: FxHashMap::default(),
            rests: Vec::new(),
            ring_version: 0,
            bytes: vec![0; layout.len() as usize],
            packets: vec![0; layout.len() as usize],
            layout,
            totals: Totals::default(),
            trouble,
            watch: None,
            running: 0,
            moved_at: Time::ZERO,
            config,
        }
    }

    pub(crate) fn start(&mut self) {
        self.set_capacities();
        self.start_failures();
        self.know_from_start();
        for (id, message) in self.config.workload.messages().enumerate() {
            if self.unmet[id.0 as usize] == 0 {
                self.agenda.push(message.start, What::Post(id));
            }
        }
        if self.ranks.is_some() {
            self.start_ranks();
        }
    }

    pub(crate) fn work(&mut self, cancel: &AtomicBool) -> Result<(), Halt> {
        while !self.watch.as_ref().is_some_and(|watch| watch.is_over(self.rates.found())) {
            let next = self.agenda.next_at();
            if self.settle_by <= next.unwrap_or(Time::MAX) && self.settle_by < Time::MAX {
                self.now = self.now.max(self.settle_by.min(next.unwrap_or(self.settle_by)));
                self.settle();
                continue;
            }
            if self.agenda.is_over() {
                assert_eq!(self.running, 0, "flows that wait for nothing");
                return Ok(());
            }
            let Some((at, what)) = self.agenda.pop() else { return Ok(()) };
            self.now = self.now.max(at);
            self.totals.events += 1;
            self.handle(what);
            if self.has_stalled() {
                return Err(self.stall());
            }
            if self.capacities.has_changed() {
                self.unsettle(self.latest);
            }
            if self.totals.events.is_multiple_of(LOOK_EVERY) && cancel.load(Ordering::Relaxed) {
                return Err(Halt::Cancelled);
            }
        }
        Ok(())
    }

    fn handle(&mut self, what: What) {
        let moves = !matches!(
            what,
            What::TimeOut { .. } | What::Learn(_) | What::Turn | What::Grow | What::Queues
        );
        if moves {
            self.moved_at = self.now;
        }
        match what {
            What::Post(id) => self.post(id),
            What::Flush(host) => self.flush(host),
            What::Start(flow) => self.begin(flow),
            What::Waited(flow) => self.waited(flow),
            What::Sent { flow, version } => self.sent_if_due(flow, version),
            What::Finish { flow, version } => self.finish_if_due(flow, version),
            What::Acknowledged(flow) => self.acknowledged(flow),
            What::Received(message) => self.received(message),
            What::Rank(rank) => self.rank(rank),
            What::RingDone { ring, version } => self.ring_done(ring, version),
            What::Grow => self.grow(),
            What::Queues => self.look_at_queues(),
            What::Learn(number) => self.learn(number),
            What::Turn => self.set_capacities(),
            What::TimeOut { flow, version } => self.time_out(flow, version),
            What::Resume { flow, version } => self.resume(flow, version),
        }
    }

    /// Rates are to be found anew, `slack` from now at the latest.
    pub(crate) fn unsettle(&mut self, slack: Time) {
        self.settle_by = self.settle_by.min(self.now.saturating_add(slack));
    }
}
