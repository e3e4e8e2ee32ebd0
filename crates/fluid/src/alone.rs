//! Whether rates tell what packets do: hosts send as if they were alone, or share links for so long at a
//! time that it does not matter how they come to their shares.
//!
//! What a host that is alone has to send leaves at the rate of its NIC: queues in the network stay as short as
//! chance makes them, and congestion control has nothing to do. A host loses time where its NIC could send
//! more than the network takes (half the time, where a flow of another takes half of the link), and where
//! its subflows have unequal rates, by how much these differ: what they meet elsewhere has told them apart.
//! And its packets wait behind those that come to a link at the same instant: half a packet of each other
//! subflow there, but for those of one host, which leave one after the other.
//!
//! Who shares a full link for many round trips gets his share of it, but for what congestion control takes
//! to find it, and for some who get more than others. So what is lost in the first round trip after a
//! change of rates counts in full. Where that is little, completion times were off by a tenth of what is lost
//! later and half a percent at most (experiments/fidelity).
//!
//! A host that has several messages for one other to send at once counts as losing all of that time, and chains that are
//! more than half a percent of a run are left to packets: which message is first matters there.
//!
//! Chance has packets of several hosts come to a link at the same instant. If switches mark queues that are as long as
//! that, windows shrink though nobody is in the way, and rates do not tell how far.

use crate::engine::Engine;
use crate::flows::{Flow, speed};
use std::sync::atomic::AtomicBool;
use weft_balance::scheme::PathUse;
use weft_fabric::Service;
use weft_sim::{Halt, JobConfig, Outcome, RunConfig};
use weft_transport::{CongestionConfig, RecoveryConfig};
use weft_units::{HostId, Time};
use weft_workload::job::Job;

/// How much of a run a host may lose to others: half of what its completion time may be off by.
const MOST_LOST: f64 = 0.005;
/// The same of what it loses before rates are found again, and of what it loses from then on, if the two
/// together are more than that.
const MOST_UNSETTLED: f64 = 0.0025;
const MOST_SHARED: f64 = 0.09;

/// A rate takes about as long to find as three packets to cross a link: an attempt costs a run about a
/// seventh of what it takes by packets, at most.
const WORTH: u64 = 20;
/// So many are found in no time.
const FEW: u64 = 10_000;

/// Rates that differ by less are equal: acknowledgements take no more of one link than of another.
const EQUAL: f64 = 0.02;

/// The natural logarithm of how seldom chance may make a longer queue than is counted on: a millionth.
const RARE: f64 = 13.8;

/// A run takes at least so many round trips: what each message is off by does not count then, and packets of shorter
/// ones take no time.
const LEAST_ROUND_TRIPS: u64 = 25;

/// A full packet has at least so many times as many bytes as an acknowledgement: these are in nobody's way.
const LEAST_ACKS: u32 = 20;

/// What one host sends, and what it has lost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sending {
    /// Subflows with a rate, the rates of all and their squares, and what they would be on a network for
    /// themselves; in bytes a picosecond.
    subflows: u32,
    rate: f64,
    squares: f64,
    wanted: f64,
    since: Time,
    /// In picoseconds: within a round trip of a change of rates, or in queues; and from then on.
    lost: f64,
    shared: f64,
}

/// The hosts of a run that is given up when one of them has lost too much.
#[derive(Debug)]
pub(crate) struct Watch {
    hosts: Vec<Sending>,
    /// What the run takes at the least, and a round trip; in picoseconds.
    bound: f64,
    rtt: f64,
    /// What acknowledgements may take of a link.
    acks: f64,
    /// So many packets that wait, each behind an acknowledgement, are not marked.
    unmarked: f64,
    /// What packets would have to cross of all that has begun.
    pub(crate) packet_hops: u64,
    is_over: bool,
}

impl Sending {
    /// Which share of the time the host loses now, if its NIC can send at `line`.
    fn losing(&self, line: f64) -> f64 {
        let could = self.wanted.min(line);
        if could <= 0.0 {
            return 0.0;
        }
        let idle = (1.0 - self.rate / could).max(0.0);
        // The coefficient of variation.
        let unequal = f64::from(self.subflows) * self.squares / (self.rate * self.rate) - 1.0;
        let unequal = unequal.max(0.0).sqrt();
        (idle + if unequal > EQUAL { unequal } else { 0.0 }).min(1.0)
    }

    /// Whether it has lost too much of a run that takes `bound` at least.
    fn has_lost(&self, bound: f64) -> bool {
        let (lost, shared) = (self.lost / bound, self.shared / bound);
        lost + shared > MOST_LOST && (lost > MOST_UNSETTLED || shared > MOST_SHARED)
    }
}

impl Watch {
    /// Of a run that takes `bound` at least, where a round trip takes `rtt`.
    fn new(config: &RunConfig<'_>, bound: Time, rtt: Time) -> Watch {
        let packet = f64::from(config.packet.mtu + config.packet.header);
        let ack = f64::from(config.packet.ack);
        let acks = ack / packet;
        let reacts = matches!(config.transport.congestion, CongestionConfig::Dctcp(_));
        let marked = config.switch.ecn.filter(|_| reacts).map(|ecn| ecn.kmin as f64);
        let unmarked = marked.map_or(f64::INFINITY, |bytes| bytes / (packet + ack));
        let hosts = vec![Sending::default(); config.fabric.hosts() as usize];
        Watch {
            hosts,
            bound: bound.0 as f64,
            rtt: rtt.0 as f64,
            acks,
            unmarked,
            packet_hops: 0,
            is_over: false,
        }
    }

    /// Whether the run is given up: a host has lost too much, or `found` rates have been found, which is so
    /// much work that packets are better.
    pub(crate) fn is_over(&self, found: u64) -> bool {
        self.is_over || found > FEW + self.packet_hops / WORTH
    }

    /// A flow of a host whose NIC sends at `line` has another rate from now on; none, if it ends.
    pub(crate) fn set_rate(
        &mut self,
        now: Time,
        flow: &Flow,
        (limit, line): (f64, f64),
        rate: f64,
    ) {
        let host = &mut self.hosts[flow.src.0 as usize];
        let losing = host.losing(line * (1.0 - 2.0 * self.acks));
        let passed = host.since.until(now).0 as f64;
        host.lost += losing * passed.min(self.rtt);
        host.shared += losing * (passed - self.rtt).max(0.0);
        self.is_over |= host.has_lost(self.bound);
        host.since = now;
        let count = flow.subflows;
        if flow.rate > 0.0 {
            host.subflows -= count;
            host.rate -= flow.rate;
            host.squares -= flow.rate * flow.rate / f64::from(count);
            host.wanted -= limit;
        }
        if host.subflows == 0 {
            // So that what floating-point numbers leave does not add up.
            (host.rate, host.squares, host.wanted) = (0.0, 0.0, 0.0);
        }
        if rate > 0.0 {
            host.subflows += count;
            host.rate += rate;
            host.squares += rate * rate / f64::from(count);
            host.wanted += limit;
        }
    }

    /// Packets of a flow, which makes up `share` of what its host sends, wait for so long.
    pub(crate) fn wait(&mut self, flow: &Flow, share: f64, wait: f64) {
        let host = &mut self.hosts[flow.src.0 as usize];
        host.lost += share * wait;
        self.is_over |= host.has_lost(self.bound);
    }

    /// For so long rates do not tell which messages of a host come first.
    pub(crate) fn lose(&mut self, host: HostId, passed: Time) {
        let host = &mut self.hosts[host.0 as usize];
        host.lost += passed.0 as f64;
        self.is_over |= host.has_lost(self.bound);
    }

    /// So many subflows share a link, each `own` of them of one message, which leave their host one after the other.
    ///
    /// At the worst a packet of each comes at once, and those of one message take as long as they leave apart.
    /// Of `n` sources that send in turn, more than `q` packets wait with probability `exp(-2 q^2 / n)` on a link that
    /// is full (Roberts and Virtamo 1991, for n D/D/1 queues); where each sends `own` at a time, as many times more.
    pub(crate) fn meet(&mut self, subflows: f64, own: f64) {
        let seldom = (subflows * own * RARE / 2.0).sqrt();
        self.is_over |= (subflows - own).min(seldom) > self.unmarked;
    }

    /// Messages of a ring, all of which go on so, take `took` in the mean instead of `alone`; or it could
    /// go on at rate `took`, and does at `alone`.
    pub(crate) fn look_at_ring(&mut self, took: f64, alone: f64) {
        self.is_over |= took > alone * (1.0 + MOST_LOST);
    }
}

/// Runs `config`, which takes `bound` at least, by rates as long as no host loses too much of that to others.
/// `None`: one does, or only packets tell: of spraying, which is random, of failures, and of windows
/// that are too small for a link at first.
///
/// # Errors
/// [`Halt::Cancelled`].
pub fn run_alone(
    config: &RunConfig<'_>,
    bound: Time,
    cancel: &AtomicBool,
) -> Result<Option<Outcome>, Halt> {
    if !may_be_alone(config, bound) {
        return Ok(None);
    }
    let mut engine = Engine::new(config);
    engine.watch = Some(Watch::new(config, bound, engine.capacities.rtt()));
    // Who waits long is given up.
    engine.queues.leave_out();
    engine.capacities.take_packets_for_full();
    engine.start();
    engine.work(cancel)?;
    let found = engine.rates.found();
    let is_over = engine.watch.as_ref().is_some_and(|watch| watch.is_over(found));
    Ok((!is_over).then(|| engine.outcome()))
}

/// Whether rates may tell what packets do in a run that takes `bound` at least, if hosts are not in each other's way.
fn may_be_alone(config: &RunConfig<'_>, bound: Time) -> bool {
    let fabric = config.fabric;
    let (data, ack) = (config.packet.mtu + config.packet.header, config.packet.ack);
    let rtt = fabric.base_rtt(u64::from(data), u64::from(ack));
    let line = fabric.ports()[fabric.nic(HostId(0))].rate;
    let bdp = speed(line.as_bps()) * rtt.0 as f64;
    // The first window is a bandwidth-delay product, in whole packets.
    let is_small = |window: u64| window as f64 + f64::from(data) < bdp;
    one_path(config)
        && sends_plainly(config)
        && config.failures.is_empty()
        && bound.0 >= rtt.0.saturating_mul(LEAST_ROUND_TRIPS)
        && !config.transport.congestion.initial_window().is_some_and(is_small)
        && !is_chain(config, bound.0 as f64 * speed(line.as_bps()))
}

/// Whether what ranks pass on along chains is no little part of what a NIC sends in the meantime. The first
/// ranks of a chain fill links, in whose queues acknowledgements to the next ones wait: these fall behind.
fn is_chain(config: &RunConfig<'_>, sends: f64) -> bool {
    let passed_on = |job: &JobConfig<'_>| job.jobs.iter().map(Job::along_chains).max();
    config.job.as_ref().and_then(passed_on).unwrap_or(0) as f64 > MOST_LOST * sends
}

/// Whether each flow takes one path of a network whose links rates know.
fn one_path(config: &RunConfig<'_>) -> bool {
    let fabric = config.fabric;
    config.balance.scheme.info().paths == PathUse::One
        && fabric.clos().is_some_and(|clos| clos.rails().is_none())
        && fabric.nic_ports() == 1
        && config.job.as_ref().is_none_or(|job| job.relays.is_none() && has_own_nics(job))
}

/// Whether no two ranks share a NIC. What they post at almost the same instant would be one batch by rates and two by
/// packets, or the other way round.
fn has_own_nics(job: &JobConfig<'_>) -> bool {
    let mut nics = job.hosts.clone();
    nics.sort_unstable();
    nics.windows(2).all(|pair| pair[0] != pair[1])
}

/// Whether a flow that is alone is as many packets as its payload takes and as many acknowledgements, one after the other
/// at line rate or the one that it is told, beside those of other flows: what has been compared with packets.
fn sends_plainly(config: &RunConfig<'_>) -> bool {
    let RunConfig { transport, pacing, service, .. } = config;
    let is_even = match transport.congestion {
        CongestionConfig::Dctcp(_) => true,
        CongestionConfig::FixedRate(_) => pacing.start_gaps == 0.0 && pacing.gap_jitter == 0.0,
        _ => false,
    };
    let answers_each = matches!(
        transport.recovery,
        RecoveryConfig::GoBackN(_) | RecoveryConfig::SelectiveRepeat(_)
    );
    let (data, ack) = (config.packet.mtu + config.packet.header, config.packet.ack);
    let is_small = ack <= data / LEAST_ACKS;
    is_even && answers_each && is_small && pacing.subflows == 1 && *service != Service::OldestFirst
}
