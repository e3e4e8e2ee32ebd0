//! A job at work: what each of its ranks does next, and what it waits for.
//!
//! A [`Runner`] holds some ranks of a [`Job`], all or those of one part of a simulation. Things
//! that happen at a rank go in (a message has been acknowledged or received, a time has come),
//! what the rank does comes out as [`Action`]s. All that a rank waits for happens at itself, so
//! that ranks need not know of each other, and the state of a rank is what it is busy with: a
//! collective among thousands takes no memory for messages that are not under way.
//!
//! A rank computes one thing at a time on each of its streams, in the order of its nodes; collectives,
//! transfers and memory go on beside it.
//!
//! What it does not do: move bytes, or keep the time.

mod advance;
mod ahead;
mod earliest;
mod endpoint;
mod levels;
mod meeting;
mod rings;
mod role;
mod rounds;
mod runner;
mod sequence;
mod switched;
mod traffic;
mod unfold;
mod waits;

pub use earliest::{IdleNetwork, earliest};
pub use endpoint::{AwaitSends, Endpoint};
pub use levels::Transfer;
pub use meeting::Meeting;
pub use rounds::Rounds;
pub use runner::{Action, Receipt, Runner, Sent};
pub use switched::{Joined, SwitchedSet, largest_switched_sequence};
pub use traffic::Traffic;
pub use waits::{Awaited, Wait};

use self::role::{Role, Steps};
use crate::WorkloadError;
use crate::collective::{Algorithm, Call, Operation, Servers, Step};
use crate::stragglers::Paces;
use crate::trace::rank_graph::{Followers, RankGraph};
use crate::trace::{Action as What, Collective, Compute, Trace, Work};
use std::collections::BTreeMap;
use weft_units::Time;

/// Which algorithm does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithms([Algorithm; Operation::ALL.len()]);

/// A job: what its ranks do, and how their collectives go about it.
#[derive(Clone, Debug)]
pub struct Job {
    trace: Trace,
    algorithms: Algorithms,
    splits: u32,
    /// Messages are no larger, in bytes.
    message_limit: Option<u64>,
    await_sends: AwaitSends,
    endpoint: Endpoint,
    /// GPUs and NICs of the servers that its ranks fill, if they do.
    servers: Servers,
    /// How fast each rank is; `None`: all are as fast as the trace says.
    paces: Option<Paces>,
    /// Whether some rank computes.
    computes: bool,
    /// Who waits for each node, by graph.
    followers: Vec<Followers>,
}

impl Algorithms {
    /// Rings for everything, and direct exchange for all-to-all.
    pub fn usual() -> Algorithms {
        let usual = |operation: Operation| {
            let name = if operation == Operation::AllToAll { "direct" } else { "ring" };
            Algorithm::read(name, &[]).expect("their options have defaults")
        };
        Algorithms(Operation::ALL.map(usual))
    }
    /// The same with another algorithm for `operation`.
    pub fn with(mut self, operation: Operation, algorithm: Algorithm) -> Algorithms {
        self.0[operation as usize] = algorithm;
        self
    }
    /// Which does `operation`.
    pub fn of(&self, operation: Operation) -> Algorithm {
        self.0[operation as usize]
    }
}

impl Job {
    /// A job of a trace whose number of ranks is settled.
    ///
    /// # Errors
    /// If it is not, if the trace can never finish, or if an algorithm cannot do what it is
    /// asked for: with the node.
    pub fn new(trace: Trace, algorithms: Algorithms) -> Result<Job, WorkloadError> {
        if trace.ranks.is_none() {
            let what = format!("{}: the number of ranks is open; settle it", trace.name);
            return Err(WorkloadError(what));
        }
        crate::trace::check(&trace).into_result()?;
        let followers = trace.graphs.iter().map(|graph| graph.followers()).collect();
        let endpoint = Endpoint::default();
        let servers = Servers::EACH;
        let job = Job {
            trace,
            algorithms,
            splits: 1,
            message_limit: None,
            await_sends: AwaitSends::Never,
            endpoint,
            servers,
            paces: None,
            computes: false,
            followers,
        };
        job.check_calls()?;
        let job = Job { computes: job.computing() > Time::ZERO, ..job };
        Ok(job)
    }
    /// The same with every operation done in `splits` chunks of its buffer, one after the other:
    /// a rank begins the next one when it is done with the one before it (ASTRA-sim's
    /// `preferred-dataset-splits` with one active chunk).
    ///
    /// # Panics
    /// If `splits` is zero.
    pub fn in_chunks(self, splits: u32) -> Job {
        assert!(splits > 0, "a buffer is at least one chunk");
        Job { splits, ..self }
    }
    /// The same with more chunks, so many that no message of what ranks pass on (all but all-to-all and
    /// send-recv) is larger than `limit` bytes.
    pub fn limiting_messages(self, limit: Option<u64>) -> Job {
        Job { message_limit: limit, ..self }
    }
    /// The same with ranks that wait for what they sent.
    pub fn awaiting_sends(self, await_sends: AwaitSends) -> Job {
        Job { await_sends, ..self }
    }
    /// The same on servers that its ranks fill one after the other.
    pub fn on_servers(self, servers: Servers) -> Job {
        Job { servers, ..self }
    }
    /// The same on GPUs that take time to handle messages.
    pub fn handled_by(self, endpoint: Endpoint) -> Job {
        Job { endpoint, ..self }
    }
    /// The same on GPUs of these paces, one for each of its ranks.
    pub fn paced(self, paces: Paces) -> Job {
        Job { paces: Some(paces), ..self }
    }
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.trace.ranks.expect("settled when it was made")
    }
    /// What its ranks do.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Whether `rank` moves anything in a collective: those of no bytes, and of groups of one, are
    /// over as they begin.
    pub fn moves(&self, rank: u32, one: &Collective) -> bool {
        self.role(rank, one).is_some()
    }
    /// What the algorithm of a collective is called.
    pub fn algorithm(&self, action: What) -> &'static str {
        match action {
            What::Operation(operation) => self.algorithms.of(operation).info().name,
            What::Barrier => "tree",
            What::Dispatch(index) | What::Combine(index) => {
                self.trace.exchanges[index as usize].name()
            }
        }
    }
    /// How many collectives of all ranks go otherwise than they would if nothing but the trace were known: by
    /// another algorithm or with other options, in chunks, or awaiting sends.
    pub fn told_otherwise(&self) -> u64 {
        let plain = Job {
            algorithms: Algorithms::usual(),
            splits: 1,
            message_limit: None,
            await_sends: AwaitSends::Never,
            ..self.clone()
        };
        let of_rank = |rank: u32| {
            let nodes = self.trace.graph(rank).nodes().iter();
            let otherwise = nodes.filter(|node| match &node.work {
                Work::Collective(one) => self.role(rank, one) != plain.role(rank, one),
                _ => false,
            });
            otherwise.count() as u64
        };
        (0..self.ranks()).map(of_rank).sum()
    }
    /// Whether ranks get unequal shares of some all-to-all.
    pub fn is_skewed(&self) -> bool {
        let all = |rank: u32| self.trace.graph(rank).nodes();
        let is =
            |what: What| matches!(what, What::Operation(of) if self.algorithms.of(of).is_skewed());
        (0..self.ranks()).flat_map(all).any(|node| match &node.work {
            Work::Collective(one) => is(one.action),
            _ => false,
        })
    }
    /// Bytes of the broadcasts and reduces that go along a ring, of the graph that has most of them.
    pub fn along_chains(&self) -> u64 {
        let block = self.trace.block().max(1);
        let of_graph = |(place, graph): (u32, &RankGraph)| {
            let rank = block.saturating_mul(place);
            let bytes = graph.nodes().iter().map(|node| match &node.work {
                Work::Collective(one) => self.role(rank, one).map_or(0, |role| role.along_chain()),
                _ => 0,
            });
            bytes.fold(0_u64, u64::saturating_add)
        };
        (0..).zip(&self.trace.graphs).map(of_graph).max().unwrap_or(0)
    }
    /// Whether `rank` waits for acknowledgements of what it sends for `node`; if not, none need be
    /// told to [`Runner::sent`].
    pub fn awaits_sent(&self, rank: u32, node: u32) -> bool {
        match &self.trace.graph(rank).nodes()[node as usize].work {
            Work::Collective(Collective { action: What::Operation(operation), .. }) => {
                self.await_sends != AwaitSends::Never
                    || self.algorithms.of(*operation).awaits_acknowledgements()
            }
            Work::Collective(_) => self.await_sends != AwaitSends::Never,
            _ => true,
        }
    }
    /// What GPUs take to handle messages.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }
    /// How long the stream computes that does so longest.
    pub fn computing(&self) -> Time {
        let of_rank = |rank: u32| {
            let mut streams: BTreeMap<u32, Time> = BTreeMap::new();
            for (node, one) in (0..).zip(self.trace.graph(rank).nodes()) {
                if let Work::Compute(compute) = &one.work
                    && !compute.on_host
                {
                    let sum = streams.entry(compute.stream).or_default();
                    *sum = sum.saturating_add(self.takes(rank, node, compute));
                }
            }
            streams.into_values().max().unwrap_or(Time::ZERO)
        };
        // Without stragglers, all ranks with the same graph take as long.
        let apart = if self.paces.is_some() { 1 } else { self.trace.block().max(1) };
        (0..self.ranks()).step_by(apart as usize).map(of_rank).max().unwrap_or(Time::ZERO)
    }
    /// Whether some rank computes.
    pub fn computes(&self) -> bool {
        self.computes
    }
    /// What `rank` takes over a computation.
    fn takes(&self, rank: u32, node: u32, compute: &Compute) -> Time {
        match &self.paces {
            Some(paces) if !compute.on_host => paces.computing(rank, node, compute.time),
            _ => compute.time,
        }
    }
    /// By how much `rank` is late for `node`, all that it waits for being done.
    fn delay(&self, rank: u32, node: u32) -> Time {
        match &self.paces {
            Some(paces) if !self.computes && self.is_collective(rank, node) => {
                paces.delay(rank, node)
            }
            _ => Time::ZERO,
        }
    }
    fn is_collective(&self, rank: u32, node: u32) -> bool {
        matches!(self.trace.graph(rank).nodes()[node as usize].work, Work::Collective(_))
    }

    /// What a run keeps of the job at once, at most: nodes that ranks have before them, and messages
    /// that are under way in the collective of each rank that has most of them.
    pub fn extent(&self) -> (u64, u64) {
        let block = self.trace.block().max(1);
        let (mut nodes, mut messages) = (0_u64, 0_u64);
        for (place, graph) in (0..).zip(&self.trace.graphs) {
            let ranks = u64::from(block);
            nodes = nodes.saturating_add(graph.nodes().len() as u64 * ranks);
            let rank = block.saturating_mul(place);
            let most = graph.nodes().iter().map(|node| match &node.work {
                Work::Collective(one) => self.role(rank, one).map_or(0, |role| role.at_once()),
                _ => 1,
            });
            messages = messages.saturating_add(most.max().unwrap_or(0).saturating_mul(ranks));
        }
        (nodes, messages)
    }

    /// The most chunks that a collective is done in; those of a graph's first rank speak for the others.
    pub fn most_chunks(&self) -> u32 {
        let block = self.trace.block().max(1);
        let chunks = |(place, graph): (u32, &RankGraph)| {
            let rank = block.saturating_mul(place);
            let roles = graph.nodes().iter().filter_map(move |node| match &node.work {
                Work::Collective(one) => self.role(rank, one),
                _ => None,
            });
            roles.map(|role| role.chunks).max()
        };
        (0..).zip(&self.trace.graphs).filter_map(chunks).max().unwrap_or(0)
    }

    /// Whether the algorithms can do all collectives: those of a graph's first rank speak for
    /// the others.
    fn check_calls(&self) -> Result<(), WorkloadError> {
        let block = self.trace.block().max(1);
        for (place, graph) in (0..).zip(&self.trace.graphs) {
            let rank = block.saturating_mul(place);
            for (index, node) in (0..).zip(graph.nodes()) {
                let error = |what: String| {
                    let label = graph.label(index);
                    Err(WorkloadError(format!("{}: {label}: {what}", graph.source)))
                };
                if let Work::Collective(one) = &node.work
                    && let Some(Role { steps: Steps::Algorithm(algorithm), call, .. }) =
                        self.role(rank, one)
                    && let Err(WorkloadError(what)) = algorithm.check(&call)
                {
                    return error(what);
                }
            }
        }
        Ok(())
    }

    /// In how many chunks a collective is done for its messages to be as short as they have to be.
    fn chunks_within_limit(&self, steps: Steps<'_>, call: &Call) -> u32 {
        let (Some(limit), false) = (
            self.message_limit,
            matches!(call.operation, Operation::AllToAll | Operation::SendReceive),
        ) else {
            return 1;
        };
        if call.ranks < 2 {
            return 1;
        }
        // The first message of any sequence is as long as all others, nearly.
        let first = |sequence| {
            let ranks = [0, 1, call.root.min(call.ranks - 1)];
            ranks.into_iter().find_map(|rank| {
                (0..4).find_map(|at| match steps.step(call, rank, sequence, at) {
                    Some(Step::Send { payload: payload @ 1.., .. }) => Some(payload),
                    _ => None,
                })
            })
        };
        let sequences = 0..steps.sequences(call).min(2);
        let longest = sequences.filter_map(first).max().unwrap_or(0);
        u32::try_from(longest.div_ceil(limit)).unwrap_or(u32::MAX).max(1)
    }
    /// What `rank` does in a collective; `None` if that is nothing.
    fn role(&self, rank: u32, one: &Collective) -> Option<Role<'_>> {
        let members = self.trace.members(one.group, rank)?;
        let place = members.place(rank)?;
        let (ranks, root) = (members.len(), one.root);
        let bytes = one.bytes(ranks);
        let servers = members.servers(self.servers);
        let (steps, call, splits) = match one.action {
            What::Operation(operation) => {
                let call = Call { operation, ranks, bytes, root, servers };
                let steps = Steps::Algorithm(self.algorithms.of(operation));
                (steps, call, self.splits.max(self.chunks_within_limit(steps, &call)))
            }
            // A few bytes up a tree and down again: nobody leaves before all have come.
            What::Barrier => {
                let tree = Algorithm::read("double-binary-tree", &[("trees", "1")]);
                let tree = tree.expect("an algorithm of ours");
                let operation = Operation::AllReduce;
                let call = Call { operation, ranks, bytes: BARRIER, root: 0, servers };
                (Steps::Algorithm(tree), call, 1)
            }
            What::Dispatch(index) | What::Combine(index) => {
                let exchange = &self.trace.exchanges[index as usize];
                let is_combine = matches!(one.action, What::Combine(_));
                // What they have in common with an exchange of everybody with everybody.
                let operation = Operation::AllToAll;
                let call = Call { operation, ranks, bytes, root, servers };
                (Steps::Experts { exchange, index, is_combine }, call, 1)
            }
        };
        let chunks = call.bytes.min(u64::from(splits)) as u32;
        (ranks > 1 && call.bytes > 0).then_some(Role {
            steps,
            call,
            place,
            chunks,
            await_sends: self.await_sends,
        })
    }
}

/// What a barrier sends along each edge of its tree, in bytes.
const BARRIER: u64 = 4;
