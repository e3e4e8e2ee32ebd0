//! Whether a fabric with its failures has the capacity for its workload at the rates that its
//! senders pace at (McClure et al. 2025, section 5 and appendix A).
//!
//! The demand are all messages of the first step, those that wait for no other, whenever they are
//! posted: each at its fair share ([`crate::fair`]), or at the rate that `transport.rate` gives,
//! times `transport.rate_coefficient`. Of jobs it is all that their ranks send to each other, at
//! the rate at which the busiest NIC is at line rate. Senders that fix no rate end up at the fair
//! share too; so do those at line rate, since a NIC shares its line. The capacity is asked for at
//! every time when a failure starts or ends, as though routing knew; bursts of flaky links are not
//! counted.

mod words;

use crate::experiment::Resolved;
use crate::fair::fair_shares;
use crate::pace::Base;
use crate::section::workload::WorkloadSource;
use crate::traffic::{Stream, Traffic};
use std::collections::BTreeMap;
use weft_capacity::{Demands, carries, printed_inequality};
use weft_config::{ExperimentError, Origin, only_clos_planes};
use weft_fabric::{Clos, Fabric, Failure, FailureKind, Failures, Groups, LinkChoice, Tier, Tiers};
use weft_units::{HostId, IdVec, MessageId, Rate, Time};
use weft_workload::{Pattern, Workload};

pub use weft_capacity::{Answer, Bottleneck, Verdict};

/// What [`capacity`] finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// One for each time with capacities that no earlier time had; the first is at zero.
    pub moments: Vec<Moment>,
    /// Which of them carries least.
    pub worst: usize,
    /// Its bottleneck in words; nothing without demands.
    pub bottleneck: Option<String>,
    /// What McClure et al. (2025) would say, where its inequality applies.
    pub inequality: Option<Inequality>,
}

impl Capacity {
    /// The moment that carries least, the first of equals.
    pub fn worst(&self) -> &Moment {
        &self.moments[self.worst]
    }
}

/// The answer from some time on.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// From this time on it holds.
    pub at: Time,
    /// The answer.
    pub verdict: Verdict,
}

/// Whether inequality 2 of McClure et al. (2025) holds: an all-to-all at full rate in a k-ary fat-tree of
/// which every pod has some degraded links to the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inequality {
    /// With `p` the part of a link's bandwidth that is lost, as its text says.
    pub with_part_lost: bool,
    /// With `p` the part that is kept, as the formula needs it.
    pub with_part_kept: bool,
}

/// Whether the fabric of `experiment` carries its workload, with the links that fail and the
/// messages that are sent under `seed`.
///
/// # Errors
/// If the workload cannot be built.
pub fn capacity(experiment: &Resolved, seed: u64) -> Result<Capacity, ExperimentError> {
    let fabric = &experiment.fabric;
    only_clos_planes(fabric, "capacity is worked out for")
        .map_err(|error| error.located_in(experiment.table()))?;
    if let Some(name) = experiment.workload.in_network() {
        let what = format!(
            "{name:?} has switches add up and copy: no demands of hosts on each other; use \"ring\" or \
             another algorithm of hosts"
        );
        return Err(ExperimentError::new("workload.algorithm", Origin::Unknown, what));
    }
    let traffic = experiment.traffic(seed).map_err(|error| error.in_source("experiment"))?;
    let failures = Failures::new(fabric, &experiment.failures, seed)
        .map_err(|error| ExperimentError::new("failures", Origin::Unknown, error.0))?;
    let demands = match traffic.ranks {
        None => demands(experiment, &traffic.workload),
        Some(_) => demands_of_jobs(experiment, &traffic),
    };
    let moments = moments(fabric, &failures, &demands);
    let worst = worst(&moments);
    let bottleneck = &moments[worst].verdict.bottleneck;
    Ok(Capacity {
        worst,
        bottleneck: bottleneck.as_ref().map(|bottleneck| words::of(fabric, bottleneck)),
        inequality: inequality(experiment),
        moments,
    })
}

fn demands(experiment: &Resolved, workload: &Workload) -> Demands {
    let fabric = &experiment.fabric;
    let rates = rates(experiment, workload);
    let dependents = workload.dependents();
    let mut demands = Demands::none(fabric);
    for (id, message) in workload.messages().enumerate() {
        if dependents.unmet()[id] == 0 {
            demands.add(fabric, message.src, message.dst, rates[id].as_bps());
        }
    }
    demands
}

/// What ranks send to each other in all, at the rate at which the busiest NIC is at line rate.
fn demands_of_jobs(experiment: &Resolved, traffic: &Traffic) -> Demands {
    let fabric = &experiment.fabric;
    let (out, into) = traffic.by_host(fabric.hosts());
    let most = out.into_iter().chain(into).max().unwrap_or(0).max(1);
    let mut between: BTreeMap<(HostId, HostId), u64> = BTreeMap::new();
    traffic.streams(|Stream { src, dst, bytes, times, .. }| {
        *between.entry((src, dst)).or_default() += bytes * times;
    });
    let line = u128::from(experiment.pace.share(fabric.line_rate()).as_bps());
    let mut demands = Demands::none(fabric);
    for ((src, dst), bytes) in between {
        let bits = u128::from(bytes) * line / u128::from(most);
        let bits = u64::try_from(bits).expect("not above line rate");
        demands.add(fabric, src, dst, bits.max(1));
    }
    demands
}

fn rates(experiment: &Resolved, workload: &Workload) -> IdVec<MessageId, Rate> {
    let pace = &experiment.pace;
    match pace.base {
        Base::Fixed(rate) => workload.messages().iter().map(|_| pace.share(rate)).collect(),
        Base::Line | Base::Fair => {
            let shares = fair_shares(&experiment.fabric, workload);
            shares.iter().map(|rate| pace.share(*rate)).collect()
        }
    }
}

fn moments(fabric: &Fabric, failures: &Failures, demands: &Demands) -> Vec<Moment> {
    let times = failures.different_capacities(fabric);
    times.map(|(at, of)| Moment { at, verdict: carries(fabric, &of, demands) }).collect()
}

/// By answer first: two shares within rounding of each other may have different ones.
fn worst(moments: &[Moment]) -> usize {
    let rank = |index: usize| match moments[index].verdict.answer {
        Answer::No => 0,
        Answer::Borderline => 1,
        Answer::Yes => 2,
    };
    let factor = |index: usize| moments[index].verdict.factor;
    let worse = |a: usize, b: usize| {
        let order = rank(a).cmp(&rank(b)).then(factor(a).total_cmp(&factor(b)));
        if order.is_le() { a } else { b }
    };
    (0..moments.len()).reduce(worse).expect("time zero is asked about")
}

/// What the paper's inequality says, if it is about `experiment`.
fn inequality(experiment: &Resolved) -> Option<Inequality> {
    let k = fat_tree_of(experiment.fabric.clos().filter(|_| experiment.fabric.planes() == 1)?)?;
    let WorkloadSource::Pattern { pattern: Pattern::AllToAll(_), .. } = experiment.workload else {
        return None;
    };
    let [Failure { links, kind: FailureKind::Degraded { lost }, .. }] = &experiment.failures[..]
    else {
        return None;
    };
    let LinkChoice::Of { tier: Tier::PodUp, count, groups: Groups::All, .. } = links else {
        return None;
    };
    (experiment.pace.coefficient == 1.0).then(|| Inequality {
        with_part_lost: printed_inequality(k, *count, *lost),
        with_part_kept: printed_inequality(k, *count, 1.0 - lost),
    })
}

/// The ports of a switch, if the fabric is a fat-tree of equal links.
fn fat_tree_of(clos: &Clos) -> Option<u32> {
    let Tiers::Three { pods: k, .. } = clos.tiers else { return None };
    let plain = Clos::fat_tree(k, clos.host_link);
    let rates = |clos: &Clos| {
        [clos.leaf_bundle, clos.agg_bundle].map(|bundle| (bundle.members, bundle.link.rate))
    };
    let same = |clos: &Clos| (clos.tiers, clos.hosts_per_leaf, rates(clos));
    (same(clos) == same(&plain)).then_some(k)
}
