//! What all partitions of a run read and none changes.

use crate::config::RunConfig;
use crate::partition::{Partitioning, ReceivingId, SendingId};
use crate::processes::splits_server;
use crate::reduce::Trees;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weft_balance::known::Known;
use weft_fabric::{Detours, Flush, LinkShares, RateChange, Weights};
use weft_units::{HostId, IdVec, MessageId, PortId, SwitchId, Time};
use weft_workload::Dependents;

/// The run, its partitioning, and where each message's state is found.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) config: &'a RunConfig<'a>,
    pub(crate) partitioning: Partitioning,
    /// How long it takes until a host hears that a dependency was met at another: the smallest
    /// link delay.
    pub(crate) news_delay: Time,
    pub(crate) dependents: Dependents,
    /// In the partition of its sender.
    pub(crate) sending: IdVec<MessageId, SendingId>,
    /// In the partition of its receiver.
    pub(crate) receiving: IdVec<MessageId, ReceivingId>,
    /// What links that fail change besides what they lose, in the order of time.
    pub(crate) faults: Vec<(Time, Fault)>,
    /// Of switches that add up for ranks, if there are any.
    pub(crate) trees: Option<Trees>,
    /// From then on the fabric stays as it is.
    pub(crate) last_change: Time,
    /// Data packets that were new to their receivers, as of the last looks of all partitions; for
    /// whoever wants to know how far the run is. No partition reads it.
    pub(crate) accepted: Arc<AtomicU64>,
}

/// Something that changes at some time.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The rate of a port.
    Rate(RateChange),
    /// The queue of a port is thrown away.
    Flush(Flush),
    /// What routing knows.
    Routes(Arc<Routes>),
}

/// What routing knows, where it is not as usual.
#[derive(Debug)]
pub(crate) struct Routes {
    /// Around dead links.
    pub(crate) detours: Detours,
    /// None unless the scheme asks for them.
    pub(crate) weights: Option<Weights>,
    /// Ports of NICs whose links are dead, a bit each, of hosts that have other ones.
    pub(crate) nic_ports: Vec<(HostId, u8)>,
    /// What hosts are told.
    pub(crate) known: Known,
}

impl Routes {
    /// From `at` on, when these links, sorted, are known to be dead.
    fn new(config: &RunConfig, at: Time, dead: &[PortId]) -> Routes {
        let RunConfig { fabric, failures, .. } = config;
        let rate = |port: PortId| match dead.binary_search(&port) {
            Ok(_) => 0,
            Err(_) => failures.rate(fabric, port, at).as_bps(),
        };
        let weighted = config.balance.scheme.info().weighted;
        Routes {
            detours: Detours::new(fabric, dead),
            nic_ports: fabric.dead_nic_ports(dead),
            weights: weighted.then(|| Weights::by_shares(fabric, &LinkShares::new(fabric, rate))),
            known: config.known(at, dead),
        }
    }
    /// The hops of `switch` that are left towards `dst`, if some are not, and their weights, if
    /// they differ.
    pub(crate) fn of(&self, switch: SwitchId, dst: HostId) -> (Option<&[PortId]>, Option<&[u32]>) {
        let weights = self.weights.as_ref().and_then(|weights| weights.of(switch, dst));
        (self.detours.next_hops(switch, dst), weights)
    }
    pub(crate) fn is_as_usual(&self) -> bool {
        self.detours.is_empty() && self.weights.as_ref().is_none_or(Weights::is_empty)
    }
}

impl<'a> World<'a> {
    /// For a run in `partitions` partitions, or as many as its fabric can be cut into.
    pub(crate) fn new(config: &'a RunConfig<'a>, partitions: u32) -> World<'a> {
        // A switch that returns a header must know its sender, whose partition may be another.
        let returns = config.switch.trim.is_some_and(|trim| trim.return_to_sender);
        // A rank that learns of an acknowledgement at another host does so at once.
        let learns = config.job.as_ref().is_some_and(|job| job.at_acknowledgement);
        let partitions = if returns || learns { 1 } else { partitions };
        let partitioning = Partitioning::new(config, partitions);
        // Ranks of one server talk faster than partitions may.
        let partitioning =
            match splits_server(config, |host| u32::from(partitioning.hosts[host].partition)) {
                true => Partitioning::new(config, 1),
                false => partitioning,
            };
        let partitions = partitioning.partitions.len();
        let mut sent = vec![0; partitions];
        let mut between = vec![vec![0; partitions]; partitions];
        let next = |count: &mut u32| {
            *count += 1;
            *count - 1
        };
        let (mut sending, mut receiving) = (IdVec::new(), IdVec::new());
        for message in config.workload.messages().iter() {
            let (src, dst) = (
                partitioning.hosts[message.src].partition,
                partitioning.hosts[message.dst].partition,
            );
            sending.push(SendingId(next(&mut sent[usize::from(src)])));
            let number = next(&mut between[usize::from(src)][usize::from(dst)]);
            receiving.push(ReceivingId::new(src, number));
        }
        let news_delay = config.fabric.min_delay();
        let dependents = config.workload.dependents();
        let faults = faults(config);
        let last_change = last_change(config, &faults);
        let accepted = Arc::default();
        World {
            config,
            partitioning,
            news_delay,
            dependents,
            sending,
            receiving,
            faults,
            trees: Trees::new(config),
            last_change,
            accepted,
        }
    }
}

/// When a link fails, comes back or is learnt of for the last time, or changes its rate.
fn last_change(config: &RunConfig, faults: &[(Time, Fault)]) -> Time {
    let failures = &config.failures;
    let turns = failures.ports().flat_map(|port| failures.turning_points(port));
    turns.chain(faults.iter().map(|(at, _)| *at)).max().unwrap_or(Time::ZERO)
}

/// All that changes after the start, and what routing learns, then or at the start.
fn faults(config: &RunConfig) -> Vec<(Time, Fault)> {
    let changes = config.failures.rate_changes(config.fabric);
    let rates = changes.iter().filter(|change| change.at > Time::ZERO);
    let rates = rates.map(|change| (change.at, Fault::Rate(*change)));
    let flushes = config.failures.flushes(config.fabric);
    let flushes = flushes.into_iter().map(|flush| (flush.at, Fault::Flush(flush)));
    let mut known: BTreeMap<Time, Vec<PortId>> = config
        .failures
        .detected()
        .into_iter()
        .map(|detected| (detected.at, detected.dead))
        .collect();
    let info = config.balance.scheme.info();
    if info.weighted || info.informed {
        for RateChange { at, .. } in &changes {
            let dead = known.range(..=*at).next_back().map(|(_, dead)| dead.clone());
            known.insert(*at, dead.unwrap_or_default());
        }
    }
    let routes = known
        .into_iter()
        .map(|(at, dead)| (at, Fault::Routes(Arc::new(Routes::new(config, at, &dead)))));
    let mut all: Vec<_> = rates.chain(flushes).chain(routes).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}
