//! `weft plan`: which way every subflow of a job takes, what that puts on every link, and the least
//! that anybody could.
//!
//! Links are as they are at time zero of the experiment, failures included, and everybody knows.
//! Steps are planned and bounded one by one; what the whole job takes at the least is
//! [`mod@crate::bound`]'s to say, since steps may overlap.
//! Hosts run the planners that they run in simulations, each step by itself: a host posts its
//! messages of a step at one instant. `file` makes the plan file of a cluster and a job, which is
//! written and read by [`weft_config::plan_file`].

use crate::bound::bound;
use crate::experiment::Resolved;
use crate::traffic::Traffic;
use std::collections::BTreeSet;
use weft_balance::enforce::Enforce;
use weft_balance::plan::Route;
use weft_balance::scheme::SchemeInfo;
use weft_balance::scheme::platform::Platform;
use weft_capacity::Bottleneck;
use weft_config::plan_file::{self, Certificate, Links, NONE, Subflows};
use weft_config::{ExperimentError, Origin};
use weft_fabric::{Fabric, Failures};
use weft_plan::steps::{self, Ranks};
use weft_plan::{
    Bound, Busiest, Hashes, Hosts, Loads, PathShares, Placed, PlannedFabric, Step, Unreachable,
    assign,
};
use weft_sim::SwitchConfig;
use weft_units::{HostId, IdVec, Time};

mod file;
mod found_ports;
mod given;
mod hosts;
mod needs;
mod ports;

pub use file::{PlanRequest, Text, enforced, host_table, make, segments_for};
pub use given::{Given, GivenStep, given};
pub use needs::{PathNeeds, path_needs};
pub use ports::{QueuePairs, port_loads};

type Result<T> = std::result::Result<T, ExperimentError>;

/// A plan of a job.
#[derive(Debug)]
pub struct Planned {
    /// Its steps, equal ones once.
    pub steps: Vec<plan_file::Step>,
    /// Every link: its name as failures have it, its rate and what is left of that.
    pub links: Links,
    /// The least that the job can take, whoever plans: the bound of its runs.
    pub bound: Time,
}

/// Plans the job of `experiment` under `seed`. Steps of more than `most` subflows are planned, but
/// their subflows are not kept: [`subflows`] has them.
///
/// # Errors
/// If its scheme decides packet by packet, if some host cannot be reached, or the workload does
/// not fit.
pub fn plan(experiment: &Resolved, seed: u64, most: u64) -> Result<Planned> {
    let mut network = network(experiment, seed)?;
    let (steps, bound) = job(experiment, seed)?;
    let planned = steps.iter().map(|step| plan_step(experiment, seed, most, &mut network, step));
    Ok(Planned { steps: planned.collect::<Result<_>>()?, links: links(&network), bound })
}

/// What to say of a job all of whose traffic takes the only path that there is, as runs of it say.
///
/// # Errors
/// If the workload does not fit.
pub fn stays(experiment: &Resolved, seed: u64) -> Result<Option<String>> {
    Ok(planned(experiment, seed)?.stays(&experiment.fabric))
}

/// The subflows of the step `step` that hosts from `first` to before `end` send.
///
/// # Errors
/// As [`plan`]; and if there is no such step.
pub fn subflows(
    experiment: &Resolved,
    seed: u64,
    step: usize,
    hosts: (u32, u32),
) -> Result<Subflows> {
    let mut network = network(experiment, seed)?;
    let steps = steps_of(&planned(experiment, seed)?);
    let Some(step) = steps.get(step) else {
        return Err(wrong("step", format!("there are {}, numbered from 0", steps.len())));
    };
    let before = |host: u32| step.messages.partition_point(|one| one.src.0 < host);
    let (first, end) = (before(hosts.0), before(hosts.1));
    let meant = (first as u32, &step.messages[first..end.max(first)]);
    let mut kept = Subflows::default();
    let least = || Bound::of(&network, &step.messages).seconds;
    let hosts = hosts_for(experiment, seed, &network, step, least)?;
    assign(&mut network, &hosts, meant, |one| add(&mut kept, one))
        .map_err(|lost| unreachable(&network, lost))?;
    Ok(kept)
}

fn network(experiment: &Resolved, seed: u64) -> Result<PlannedFabric<'_>> {
    let fabric = &experiment.fabric;
    experiment.clos("plans are made for")?;
    check_scheme(experiment.balance.scheme.info())?;
    let segments = experiment.balance.scheme.enforce() == Some(Enforce::Segments);
    if fabric.tiers() == 3 && !segments {
        // Ways are named as path ids name them, also where switches hash. Under segments packets
        // go down by the member of a bundle that they came up by.
        fabric.check_path_ids().map_err(|error| wrong("fabric", error.0))?;
    }
    let capacities = failures(experiment, seed)?.capacities(fabric, Time::ZERO);
    let balance = &experiment.balance;
    let network = PlannedFabric::new(fabric, capacities, balance, hashes(experiment, seed));
    Ok(network.with_rules(balance, seed))
}

fn failures(experiment: &Resolved, seed: u64) -> Result<Failures> {
    Failures::new(&experiment.fabric, &experiment.failures, seed)
        .map_err(|error| wrong("failures", error.0))
}

fn hashes(experiment: &Resolved, seed: u64) -> Hashes {
    let SwitchConfig { same_salt, hash: function, .. } = experiment.switch;
    Hashes { seed, same_salt, function }
}

/// Only what is decided as messages are posted can be planned.
fn check_scheme(info: &SchemeInfo) -> Result<()> {
    if info.needs_beyond(Platform::Planner).is_none() {
        return Ok(());
    }
    let what = format!(
        "{} decides packet by packet, so nothing can be planned; use one of {}",
        info.name,
        Platform::Planner.schemes()
    );
    Err(wrong("balance.scheme", what))
}

/// What is planned: messages from host to host.
fn planned(experiment: &Resolved, seed: u64) -> Result<Traffic> {
    let Some(name) = experiment.workload.in_network() else { return experiment.traffic(seed) };
    let what = format!(
        "{name:?} has switches add up and copy, on trees that are no paths from host to host, so \
         nothing can be planned; use \"ring\" or another algorithm of hosts"
    );
    Err(wrong("workload.algorithm", what))
}

/// The steps of the job, and the least that all of it can take.
fn job(experiment: &Resolved, seed: u64) -> Result<(Vec<Step>, Time)> {
    let traffic = planned(experiment, seed)?;
    let failures = failures(experiment, seed)?;
    let least = bound(&experiment.fabric, &failures, &traffic, &experiment.packet);
    Ok((steps_of(&traffic), least))
}

fn steps_of(traffic: &Traffic) -> Vec<Step> {
    match &traffic.ranks {
        None => steps::of_messages(&traffic.workload),
        Some(ranks) => {
            let (jobs, hosts, servers) = (&ranks.jobs[..], &ranks.hosts[..], &ranks.servers[..]);
            let relays = ranks.relays.as_ref();
            steps::of_ranks(&Ranks { jobs, hosts, servers, relays })
        }
    }
}

/// The hosts of a step: those that are told of links know what each path should carry of this very
/// step, whose lower bound in seconds is `least`.
fn hosts_for(
    experiment: &Resolved,
    seed: u64,
    network: &PlannedFabric<'_>,
    step: &Step,
    least: impl FnOnce() -> f64,
) -> Result<Hosts> {
    let hosts =
        Hosts::new(network, &experiment.balance, hashes(experiment, seed), experiment.packet.mtu);
    if !experiment.balance.scheme.info().informed || network.is_whole() {
        return Ok(hosts);
    }
    let host = |leaf: u32| network.fabric.first_host(leaf);
    let spread = PathShares::new(network, &step.messages, least()).map_err(|(from, to)| {
        unreachable(network, Unreachable { src: host(from), dst: host(to) })
    })?;
    Ok(hosts.knowing(&spread))
}

fn plan_step(
    experiment: &Resolved,
    seed: u64,
    most: u64,
    network: &mut PlannedFabric<'_>,
    step: &Step,
) -> Result<plan_file::Step> {
    let fabric = network.fabric;
    let bound = Bound::of(network, &step.messages);
    let hosts = hosts_for(experiment, seed, network, step, || bound.seconds)?;
    let mut loads = Loads::none(fabric);
    let mut kept = Some(Subflows::default());
    let mut parts = vec![0u32; step.messages.len()];
    let mut count = Counts::new(fabric);
    let mut each = |one: &Placed| {
        loads.add(one.way.ports(), one.bytes);
        parts[one.message as usize] += 1;
        count.add(one);
        match &mut kept {
            Some(all) if count.subflows <= most => add(all, one),
            _ => kept = None,
        }
    };
    let all = (0, &step.messages[..]);
    assign(network, &hosts, all, &mut each).map_err(|lost| unreachable(network, lost))?;
    let busiest = loads.busiest(network).map(|Busiest { port, bytes, seconds }| {
        plan_file::Busiest { link: Some(fabric.port_name(port)), bytes, seconds }
    });
    let name = if step.name.is_empty() { "messages" } else { &step.name };
    Ok(plan_file::Step {
        name: name.to_owned(),
        times: step.times,
        messages: step.messages.len() as u64,
        bytes: step.messages.iter().map(|one| one.bytes).sum(),
        subflows: count.subflows,
        split: parts.iter().filter(|parts| **parts > 1).count() as u64,
        queue_pairs: count.most(),
        congestion: busiest.unwrap_or_default(),
        bound_s: bound.seconds,
        reached_s: bound.reached,
        certificate: bound.bottleneck.as_ref().map(certificate),
        loads: loads.0.iter().copied().collect(),
        placed: kept,
    })
}

/// How many queue pairs hosts send on: one a subflow, unless they are persistent.
struct Counts {
    subflows: u64,
    own: IdVec<HostId, u64>,
    persistent: BTreeSet<(HostId, u32)>,
}

impl Counts {
    fn new(fabric: &Fabric) -> Counts {
        let own = (0..fabric.hosts()).map(|_| 0).collect();
        Counts { subflows: 0, own, persistent: BTreeSet::new() }
    }
    fn add(&mut self, one: &Placed) {
        self.subflows += 1;
        let is_new = one.queue_pair.is_none_or(|id| self.persistent.insert((one.src, id.0)));
        self.own[one.src] += u64::from(is_new);
    }
    fn most(&self) -> u64 {
        self.own.iter().copied().max().unwrap_or(0)
    }
}

fn add(all: &mut Subflows, one: &Placed) {
    all.src.push(one.src.0);
    all.dst.push(one.dst.0);
    all.message.push(one.message);
    all.part.push(one.part);
    all.bytes.push(one.bytes);
    all.path.push(u32::from(one.way.path.0));
    all.source_port.push(match one.route {
        Route::Hashed(port) => u32::from(port),
        Route::Pinned(_) => NONE,
    });
    all.queue_pair.push(one.queue_pair.map_or(NONE, |id| id.0));
}

fn links(network: &PlannedFabric<'_>) -> Links {
    let fabric = network.fabric;
    let ids = || fabric.ports().ids();
    Links {
        link: ids().map(|id| fabric.port_name(id)).collect(),
        rate_bps: ids().map(|id| fabric.ports()[id].rate.as_bps()).collect(),
        capacity_bps: ids().map(|id| network.capacities[id]).collect(),
    }
}

fn unreachable(network: &PlannedFabric<'_>, lost: Unreachable) -> ExperimentError {
    let name = |host: HostId| format!("host-{}", host.0);
    let leaf = |host: HostId| network.fabric.leaf_of(host);
    if is_reachable(network, lost) {
        let (src, dst) = (name(lost.src), name(lost.dst));
        let what = format!(
            "it pins what goes from {src} to {dst} to paths that are dead, and has no other; use more \
             connections or another scheme, or mend the link"
        );
        return wrong("balance.scheme", what);
    }
    let what = format!(
        "no live path is left from {} (leaf-{}) to {} (leaf-{}); mend a link or leave them out",
        name(lost.src),
        leaf(lost.src),
        name(lost.dst),
        leaf(lost.dst)
    );
    wrong("failures", what)
}

/// Whether some path is alive.
fn is_reachable(network: &PlannedFabric<'_>, Unreachable { src, dst }: Unreachable) -> bool {
    let set = network.fabric.path_set(src, dst);
    let is_alive = |path| {
        network.fabric.trace(src, dst, path).iter().all(|port| network.capacities[*port] > 0)
    };
    (0..set.len()).any(|index| is_alive(set.get(index)))
}

fn wrong(key: &str, what: String) -> ExperimentError {
    ExperimentError::new(key, Origin::Unknown, what)
}

/// The links that force a bound.
fn certificate(bottleneck: &Bottleneck) -> Certificate {
    let links = || bottleneck.links.iter();
    Certificate {
        link: links().map(|one| one.name.clone()).collect(),
        weight: links().map(|one| one.weight).collect(),
        capacity_bps: links().map(|one| one.capacity).collect(),
    }
}
