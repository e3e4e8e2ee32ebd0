//! A job as steps: sets of messages that are sent side by side, each so many times.

use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use weft_fabric::Relays;
use weft_units::{HostId, IdVec, MessageId};
use weft_workload::job::Job;
use weft_workload::trace::Work;
use weft_workload::{Message, When, Workload};

/// A message of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The sending host.
    pub src: HostId,
    /// Who receives; never `src`.
    pub dst: HostId,
    /// Payload, in bytes.
    pub bytes: u64,
    /// Which job it is of; zero where there are none.
    pub job: u32,
    /// From which rank to which, numbered through all jobs; zeros where there are none.
    pub ranks: (u32, u32),
}

/// What is sent side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is a part of, the first time: `all-reduce`, say; empty for plain messages.
    pub name: String,
    /// By sender, those of a sender in the order in which it posts them.
    pub messages: Vec<Transfer>,
    /// How many steps of the job are this one.
    pub times: u64,
}

/// Where the ranks of jobs are.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a> {
    /// What they do; ranks are numbered through all of them.
    pub jobs: &'a [Job],
    /// The NIC of each.
    pub hosts: &'a [HostId],
    /// The server of each: ranks of one server do not use the fabric.
    pub servers: &'a [u32],
    /// GPUs that pass on messages between rails, if any do.
    pub relays: Option<&'a Relays>,
}

/// The steps of messages: each is in the step after the last one that it waits for.
pub fn of_messages(workload: &Workload) -> Vec<Step> {
    let dependents = workload.dependents();
    let mut unmet = dependents.unmet().clone();
    let mut level: IdVec<MessageId, u32> = unmet.iter().map(|_| 0).collect();
    let mut ready: Vec<MessageId> = unmet.ids().filter(|id| unmet[*id] == 0).collect();
    let mut levels: Vec<Vec<MessageId>> = Vec::new();
    while let Some(id) = ready.pop() {
        let at = level[id];
        levels.resize_with(levels.len().max(at as usize + 1), Vec::new);
        levels[at as usize].push(id);
        for when in [When::Sent, When::Received] {
            for next in dependents.waiting(id, when) {
                level[*next] = level[*next].max(at + 1);
                unmet[*next] -= 1;
                if unmet[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
    }
    let mut sequence = Sequence::default();
    for mut ids in levels {
        ids.sort_by_key(|id| (workload.messages()[*id].src, *id));
        let messages = ids.iter().map(|id| {
            let Message { src, dst, bytes, .. } = workload.messages()[*id];
            Transfer { src, dst, bytes, job: 0, ranks: (0, 0) }
        });
        sequence.add(messages.collect(), String::new);
    }
    sequence.steps()
}

/// The steps of jobs that run side by side: the first of each together, then the second.
pub fn of_ranks(ranks: &Ranks<'_>) -> Vec<Step> {
    let mut first = 0;
    let mut sequences: Vec<Sequence> = Vec::new();
    for (number, job) in (0..).zip(ranks.jobs) {
        let mut sequence = Sequence::default();
        job.levels(|level| {
            let messages = level.iter().filter_map(|one| {
                let (src, dst) = (first + one.src, first + one.dst);
                let server = |rank: u32| ranks.servers[rank as usize];
                (server(src) != server(dst)).then(|| {
                    let ends = Relays::ends(ranks.relays, ranks.hosts, src, dst);
                    let (bytes, job, ranks) = (one.bytes, number, (src, dst));
                    Transfer { src: ends.0, dst: ends.1, bytes, job, ranks }
                })
            });
            let mut messages: Vec<Transfer> = messages.collect();
            messages.sort_by_key(|one| one.src);
            sequence.add(messages, || name_of(job, level));
        });
        sequences.push(sequence);
        first += job.ranks();
    }
    match sequences.len() {
        1 => sequences.remove(0).steps(),
        _ => side_by_side(&sequences),
    }
}

/// What the first message of a step is a part of.
fn name_of(job: &Job, level: &[weft_workload::job::Transfer]) -> String {
    let Some(first) = level.first() else { return String::new() };
    match &job.trace().graph(first.src).nodes()[first.node as usize].work {
        Work::Collective(one) => one.action.name().to_owned(),
        _ => "send".to_owned(),
    }
}

fn side_by_side(sequences: &[Sequence]) -> Vec<Step> {
    let longest = sequences.iter().map(|one| one.order.len()).max().unwrap_or(0);
    let mut all = Sequence::default();
    for at in 0..longest {
        let parts = sequences.iter().filter_map(|one| {
            let index = one.order.get(at)?;
            Some((one.names[*index].as_str(), &one.distinct[*index]))
        });
        let (names, parts): (Vec<&str>, Vec<_>) = parts.unzip();
        let mut messages: Vec<Transfer> = parts.into_iter().flatten().copied().collect();
        messages.sort_by_key(|one| one.src);
        all.add(messages, || names.join(" + "));
    }
    all.steps()
}

/// Steps one after the other, of which equal ones are kept once.
#[derive(Debug, Default)]
struct Sequence {
    distinct: Vec<Vec<Transfer>>,
    /// Of each of these.
    names: Vec<String>,
    order: Vec<usize>,
    /// Steps that are known, by hash.
    known: FxHashMap<u64, Vec<usize>>,
}

impl Sequence {
    fn add(&mut self, messages: Vec<Transfer>, name: impl FnOnce() -> String) {
        if messages.is_empty() {
            return;
        }
        let mut hasher = rustc_hash::FxHasher::default();
        messages.hash(&mut hasher);
        let alike = self.known.entry(hasher.finish()).or_default();
        let found = alike.iter().copied().find(|index| self.distinct[*index] == messages);
        let index = found.unwrap_or_else(|| {
            alike.push(self.distinct.len());
            self.distinct.push(messages);
            self.names.push(name());
            self.distinct.len() - 1
        });
        self.order.push(index);
    }
    fn steps(self) -> Vec<Step> {
        let mut times = vec![0; self.distinct.len()];
        self.order.iter().for_each(|index| times[*index] += 1);
        let steps = self.distinct.into_iter().zip(self.names).zip(times);
        steps.map(|((messages, name), times)| Step { name, messages, times }).collect()
    }
}
