//! What a partition knows of its ranks and of their messages.

use super::expected::Expected;
use super::records::{Owner, Records};
use super::servers::SwitchedServers;
use crate::config::JobConfig;
use crate::outcome::NodeResult;
use crate::partition::SendingId;
use crate::world::World;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use weft_units::Time;
use weft_workload::job::{Action, Job, Receipt, Runner, Sent, Wait};

/// The ranks of one partition.
#[derive(Debug)]
pub(crate) struct Jobs<'a> {
    pub(super) config: &'a JobConfig<'a>,
    /// One for each job.
    pub(super) runners: Vec<Runner<'a>>,
    /// By rank: its job, and the first rank of that.
    pub(super) homes: Vec<(u32, u32)>,
    /// What will happen to each rank, and when; what comes at one time stays in order.
    pub(super) due: Vec<BTreeMap<Time, Vec<Happening>>>,
    /// Until when each GPU's scale-up link is busy.
    pub(super) busy: Vec<Time>,
    /// Until when each GPU passes on the last pieces of what has come from the network for others.
    pub(super) tails: Vec<Time>,
    /// What switches of servers do for ranks.
    pub(super) switched: SwitchedServers,
    /// When the next packet may leave each GPU for its NIC.
    pub(super) slots: Vec<Time>,
    /// From one rank to another: a message that has not left yet. Never iterated.
    pub(super) connections: FxHashSet<(u32, u32)>,
    /// What waits behind these, which most of the time is nothing. Never iterated.
    pub(super) waiting: FxHashMap<(u32, u32), VecDeque<Waiting>>,
    /// What is on its way to GPUs that pass it on, and to which rank in the end. Never iterated.
    pub(super) relaying: FxHashMap<u32, (u32, Waiting)>,
    /// How often that was so.
    pub(super) relayed: u32,
    /// Messages that each of the fabric's hosts has posted.
    pub(super) posted: Vec<u32>,
    /// Whose message it is, by [`SendingId`].
    pub(super) owners: Vec<Owner>,
    /// For whom it is, by [`ReceivingId`].
    pub(super) receipts: Vec<Vec<Addressee>>,
    pub(super) free_sending: Vec<SendingId>,
    pub(super) free_receiving: Vec<Vec<u32>>,
    /// Empty where no planner wants to know.
    pub(super) expected: Expected,
    /// How many messages partitions have been told of at once.
    pub(super) told: Vec<u32>,
    /// Which rank something is happening to.
    pub(super) awake: Option<u32>,
    /// Scratch.
    pub(super) actions: Vec<Action>,
    pub(super) begun: BTreeMap<(u32, u32), Time>,
    pub(super) nodes: Vec<NodeResult>,
    pub(crate) records: Records,
}

/// For whom a message is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressee {
    pub(super) rank: u32,
    pub(super) receipt: Receipt,
    /// The GPU that passes it on from the network, and its bytes.
    pub(super) relay: Option<(u32, u64)>,
}

/// A message behind another one on its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) bytes: u64,
    pub(super) sent: Sent,
    pub(super) receipt: Receipt,
    pub(super) posted: Time,
}

/// Something that happens to a rank.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    Sent(Sent),
    Received(Receipt),
    /// The time has come that it asked for, for this node.
    Woken(u32),
    /// So much of this message of its own has come to a GPU that passes it on that that begins.
    Relayed(u32),
    /// The switches of its server may have something to begin with.
    Server,
}

impl<'a> Jobs<'a> {
    /// Those whose hosts are in partition `own`; `None` for a run without a job.
    pub(crate) fn new(world: &World<'a>, own: u16) -> Option<Jobs<'a>> {
        let config = world.config.job.as_ref()?;
        let homes = config.homes();
        let (ranks, partitions) = (homes.len(), world.partitioning.partitions.len());
        let holds =
            |rank: u32| world.partitioning.hosts[config.hosts[rank as usize]].partition == own;
        let is_told = world.config.balance.scheme.info().watches;
        let own_hosts = &world.partitioning.partitions[usize::from(own)].hosts;
        let mut first = 0;
        let runner = |job: &'a Job| {
            first += job.ranks();
            Runner::new(job, |rank| holds(first - job.ranks() + rank))
        };
        Some(Jobs {
            config,
            runners: config.jobs.iter().map(runner).collect(),
            homes,
            due: vec![BTreeMap::new(); ranks],
            busy: vec![Time::ZERO; config.gpus()],
            tails: vec![Time::ZERO; config.gpus()],
            switched: SwitchedServers::new(config.gpus()),
            slots: vec![Time::ZERO; config.gpus()],
            connections: FxHashSet::default(),
            waiting: FxHashMap::default(),
            relaying: FxHashMap::default(),
            relayed: 0,
            posted: vec![0; world.config.fabric.hosts() as usize],
            owners: Vec::new(),
            receipts: vec![Vec::new(); partitions],
            free_sending: Vec::new(),
            free_receiving: vec![Vec::new(); partitions],
            expected: own_hosts.iter().filter(|_| is_told).map(|_| 0).collect(),
            told: vec![0; partitions],
            awake: None,
            actions: Vec::new(),
            begun: BTreeMap::new(),
            nodes: Vec::new(),
            records: Records::new(config.each_message, partitions),
        })
    }
    /// The next slot, from `now` on, for a packet of `bytes` of a message on the way from the GPU that sends
    /// it to the NIC; at once without a limit.
    pub(crate) fn next_slot(&mut self, now: Time, id: SendingId, bytes: u64) -> Time {
        let Owner { src, dst, .. } = self.owners[id.0 as usize];
        self.slot_of(now, self.config.sending_gpu(src, dst), bytes)
    }
    /// The same of what a rank sends to switches.
    pub(crate) fn next_slot_of_rank(&mut self, now: Time, rank: u32, bytes: u64) -> Time {
        self.slot_of(now, self.config.gpu(rank), bytes)
    }
    fn slot_of(&mut self, now: Time, gpu: u32, bytes: u64) -> Time {
        let Some(pcie) = self.config.pcie else { return now };
        let next = &mut self.slots[gpu as usize];
        let slot = (*next).max(now);
        *next = slot + pcie.serialize(bytes);
        slot
    }
    /// Whether some node is not done.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.runners.iter().any(|runner| runner.unfinished() > 0)
    }
    /// What each node took, in the order of their ends.
    pub(crate) fn nodes(&self) -> &[NodeResult] {
        &self.nodes
    }
    /// From which rank to which a message is.
    pub(crate) fn ends(&self, id: SendingId) -> (u32, u32) {
        let Owner { src, dst, .. } = self.owners[id.0 as usize];
        (src, dst)
    }
    /// The ranks that wait for others, and what each waits for; peers are numbered through all
    /// jobs, as ranks are.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (u32, Vec<Wait>)> + '_ {
        let ranks = (0..).zip(&self.homes).map(|(rank, (job, first))| {
            let waits = self.runners[*job as usize].waits(rank - first).into_iter();
            (rank, waits.map(|wait| Wait { peer: first + wait.peer, ..wait }).collect::<Vec<_>>())
        });
        ranks.filter(|(_, waits)| !waits.is_empty())
    }
}
