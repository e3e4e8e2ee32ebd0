//! The sets of ranks that have switches work for them, and their trees as failures become known. Worked out
//! before the run, so that all partitions agree.

use super::segments::Segments;
use crate::config::{JobConfig, RunConfig};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use weft_fabric::AggregationTree;
use weft_units::{HostId, PortId, SwitchId, Time};
use weft_workload::job::SwitchedSet;

/// All sets and trees of a run.
#[derive(Debug)]
pub(crate) struct Trees {
    /// By number of the set.
    sets: Vec<Set>,
    /// By job and name.
    numbers: FxHashMap<(u32, SwitchedSet), u32>,
    /// By number of the tree: its set, and the tree if there is a way to all hosts. First those of the start,
    /// in the order of sets.
    trees: Vec<(u32, Option<AggregationTree>)>,
    /// From when on which tree each set has; the first from the start on.
    eras: Vec<(Time, Vec<u32>)>,
    /// Payload of a segment.
    payload: u32,
}

#[derive(Debug)]
struct Set {
    job: u32,
    name: SwitchedSet,
    hosts: Vec<HostId>,
    /// The collectives of its first rank.
    nodes: Vec<u32>,
    /// Segments that a host may have out.
    window: u32,
}

impl Trees {
    /// `None`: switches of the fabric do nothing for ranks.
    pub(crate) fn new(config: &RunConfig) -> Option<Trees> {
        let job = config.job.as_ref()?;
        let payload = config.switch.reduction.segment.unwrap_or(config.packet.mtu);
        let mut sets = sets(job);
        if sets.is_empty() {
            return None;
        }
        let fabric = config.fabric;
        let tree = |(number, set): (usize, &Set), dead: &[PortId]| {
            AggregationTree::new(fabric, &set.hosts, number as u32, dead)
        };
        let detected = config.failures.detected();
        let dead_at_start = detected.iter().take_while(|known| known.at == Time::ZERO).last();
        let dead_at_start = dead_at_start.map_or(&[][..], |known| &known.dead);
        let mut trees: Vec<(u32, Option<AggregationTree>)> = sets
            .iter()
            .enumerate()
            .map(|(number, set)| (number as u32, tree((number, set), dead_at_start)))
            .collect();
        let mut current: Vec<u32> = (0..sets.len() as u32).collect();
        let mut eras = vec![(Time::ZERO, current.clone())];
        for known in detected.iter().filter(|known| known.at > Time::ZERO) {
            let before = current.clone();
            for (number, own) in current.iter_mut().enumerate() {
                let is_whole = match &trees[*own as usize].1 {
                    Some(tree) => !tree.uses(fabric, &known.dead),
                    None => false,
                };
                if is_whole {
                    continue;
                }
                // Other links may be dead next time: another turn to spread them.
                let other = tree((number, &sets[number]), &known.dead);
                if other.is_some() || trees[*own as usize].1.is_some() {
                    *own = trees.len() as u32;
                    trees.push((number as u32, other));
                }
            }
            if current != before {
                eras.push((known.at, current.clone()));
            }
        }
        let most = most_on_a_switch(&trees);
        let reduction = &config.switch.reduction;
        let room = reduction.memory.map_or(u64::MAX, |memory| memory / most.max(1));
        let window = reduction.window.min(room) / u64::from(payload);
        let window = window.clamp(1, 1 << 20) as u32;
        sets.iter_mut().for_each(|set| set.window = window);
        let names = (0..).zip(&sets).map(|(number, set)| ((set.job, set.name), number));
        let numbers = names.collect();
        Some(Trees { sets, numbers, trees, eras, payload })
    }

    /// The number of a set of a job; `None`: its ranks share a server.
    pub(super) fn number(&self, job: u32, name: &SwitchedSet) -> Option<u32> {
        self.numbers.get(&(job, *name)).copied()
    }
    /// The tree of each set at the start.
    pub(super) fn at_start(&self) -> Vec<u32> {
        self.eras[0].1.clone()
    }
    /// The tree of each set from `now` on, if that is when some change.
    pub(super) fn from(&self, now: Time) -> Option<&[u32]> {
        let at = self.eras.binary_search_by_key(&now, |(from, _)| *from).ok()?;
        (at > 0).then(|| &self.eras[at].1[..])
    }
    /// Whether some tree is not the first of its set.
    pub(super) fn change(&self) -> bool {
        self.eras.len() > 1
    }
    /// Whether it stands for another one, which failed.
    pub(super) fn is_rebuilt(&self, tree: u32) -> bool {
        tree as usize >= self.sets.len()
    }
    pub(super) fn set_of(&self, tree: u32) -> u32 {
        self.trees[tree as usize].0
    }
    pub(super) fn tree(&self, tree: u32) -> Option<&AggregationTree> {
        self.trees[tree as usize].1.as_ref()
    }
    pub(super) fn window(&self, set: u32) -> u32 {
        self.sets[set as usize].window
    }
    /// The place of a host among those of a set.
    pub(super) fn place(&self, set: u32, host: HostId) -> u32 {
        let place = self.sets[set as usize].hosts.iter().position(|one| *one == host);
        place.expect("it is of the set") as u32
    }
    /// The segments of an operation.
    pub(super) fn segments(&self, jobs: &JobConfig, set: u32, number: u32) -> Segments {
        let Set { job, name, nodes, .. } = &self.sets[set as usize];
        let part = jobs.jobs[*job as usize].switched_part(name, nodes, number);
        Segments::new(part, self.payload)
    }
}

/// All sets whose ranks are in several servers.
fn sets(config: &JobConfig) -> Vec<Set> {
    let (mut sets, mut first) = (Vec::new(), 0);
    for (number, job) in (0..).zip(config.jobs) {
        let mut names = BTreeSet::new();
        for rank in 0..job.ranks() {
            job.switched(rank, |set, _, _, _| {
                names.insert(set);
            });
        }
        for name in names {
            let ranks = job.switched_ranks(&name);
            let at = |rank: &u32| (first + rank) as usize;
            let server = |rank: &u32| config.servers[at(rank)];
            if ranks.iter().any(|rank| server(rank) != server(&ranks[0])) {
                let hosts = ranks.iter().map(|rank| config.hosts[at(rank)]).collect();
                let nodes = job.switched_nodes(&name);
                sets.push(Set { job: number, name, hosts, nodes, window: 1 });
            }
        }
        first += job.ranks();
    }
    sets
}

/// How many trees the switch with most of them is part of.
fn most_on_a_switch(trees: &[(u32, Option<AggregationTree>)]) -> u64 {
    let mut counts: BTreeMap<SwitchId, u64> = BTreeMap::new();
    for (_, tree) in trees {
        for (switch, _) in tree.iter().flat_map(AggregationTree::switches) {
            *counts.entry(switch).or_default() += 1;
        }
    }
    counts.into_values().max().unwrap_or(1)
}
