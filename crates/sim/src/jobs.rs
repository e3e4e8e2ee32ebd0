//! Jobs: ranks at work on hosts, and what they make of messages.
//!
//! The ranks of a host are held where the host is. What a rank does follows from what happens at
//! its host alone, so that nothing depends on the partitioning. Ranks of one server talk over its
//! scale-up links: each rank sends one message after the other, at their rate.
//!
//! Invariant: whatever happens to a rank at one time is handled by one event of it, in the order
//! in which it was told.

use crate::config::{JobConfig, Service};
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::mail::Announcement;
use crate::messages::{Receiving, Sending, SendingId};
use crate::outcome::NodeResult;
use crate::partition::ReceivingId;
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::records::{Owner, Records};
use crate::world::World;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use weft_balance::plan::Post;
use weft_units::{HostId, MessageId, Time};
use weft_workload::job::{Action, Job, Receipt, Runner, Sent, Wait};

/// The ranks of one partition.
#[derive(Debug)]
pub(crate) struct Jobs<'a> {
    config: &'a JobConfig<'a>,
    /// One for each job.
    runners: Vec<Runner<'a>>,
    /// By rank: its job, and the first rank of that.
    homes: Vec<(u32, u32)>,
    /// What will happen to each rank, and when; what comes at one time stays in order.
    due: Vec<BTreeMap<Time, Vec<Happening>>>,
    /// Until when each rank's scale-up link is busy.
    busy: Vec<Time>,
    /// When the next packet of each rank may leave its GPU.
    slots: Vec<Time>,
    /// From one rank to another: a message that has not left yet. Never iterated.
    connections: FxHashSet<(u32, u32)>,
    /// What waits behind these, which most of the time is nothing. Never iterated.
    waiting: FxHashMap<(u32, u32), VecDeque<Waiting>>,
    /// Messages that each of the fabric's hosts has posted.
    posted: Vec<u32>,
    /// Whose message it is, by [`SendingId`].
    owners: Vec<Owner>,
    /// For whom it is, by [`ReceivingId`].
    receipts: Vec<Vec<(u32, Receipt)>>,
    free_sending: Vec<SendingId>,
    free_receiving: Vec<Vec<u32>>,
    /// How many messages partitions have been told of at once.
    told: Vec<u32>,
    /// Which rank something is happening to.
    awake: Option<u32>,
    /// Scratch.
    actions: Vec<Action>,
    begun: BTreeMap<(u32, u32), Time>,
    nodes: Vec<NodeResult>,
    pub(crate) records: Records,
}

/// A message behind another one on its connection.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: u64,
    sent: Sent,
    receipt: Receipt,
    posted: Time,
}

/// Something that happens to a rank.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Sent(Sent),
    Received(Receipt),
    /// The time has come that it asked for, for this node.
    Woken(u32),
}

impl<'a> Jobs<'a> {
    /// Those whose hosts are in partition `own`; `None` for a run without a job.
    pub(crate) fn new(world: &World<'a>, own: u16) -> Option<Jobs<'a>> {
        let config = world.config.job.as_ref()?;
        let homes = config.homes();
        let (ranks, partitions) = (homes.len(), world.partitioning.partitions.len());
        let holds =
            |rank: u32| world.partitioning.hosts[config.hosts[rank as usize]].partition == own;
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
            busy: vec![Time::ZERO; ranks],
            slots: vec![Time::ZERO; ranks],
            connections: FxHashSet::default(),
            waiting: FxHashMap::default(),
            posted: vec![0; world.config.fabric.hosts() as usize],
            owners: Vec::new(),
            receipts: vec![Vec::new(); partitions],
            free_sending: Vec::new(),
            free_receiving: vec![Vec::new(); partitions],
            told: vec![0; partitions],
            awake: None,
            actions: Vec::new(),
            begun: BTreeMap::new(),
            nodes: Vec::new(),
            records: Records::new(config.each_message, partitions),
        })
    }
    /// The next slot, from `now` on, of the rank whose message it is, for a packet of `bytes` on the
    /// way from its GPU to the NIC; at once without a limit.
    pub(crate) fn next_slot(&mut self, now: Time, id: SendingId, bytes: u64) -> Time {
        let Some(pcie) = self.config.pcie else { return now };
        let next = &mut self.slots[self.owners[id.0 as usize].src as usize];
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

impl<'a, Q: EventQueue, P: Ports> Engine<'a, Q, P> {
    /// Begins all ranks of this partition.
    pub(crate) fn start_ranks(&mut self) {
        let Some(ranks) = &self.ranks else { return };
        let mut first = 0;
        for number in 0..ranks.config.jobs.len() {
            let Jobs { runners, actions, config, .. } = self.ranks.as_mut().expect("a job");
            let job = &config.jobs[number];
            runners[number].start(self.now, actions);
            self.act(first);
            // So many decide at once but here.
            self.ranks.as_mut().expect("a job").actions = Vec::new();
            first += job.ranks();
        }
    }

    /// A `Rank` event: all that is due happens, and what comes of it at once.
    pub(crate) fn rank(&mut self, rank: u32) {
        self.ranks.as_mut().expect("a job").awake = Some(rank);
        while let Some(happenings) = self.due_now(rank) {
            for happening in happenings {
                self.happen(rank, happening);
            }
        }
        self.ranks.as_mut().expect("a job").awake = None;
    }

    fn due_now(&mut self, rank: u32) -> Option<Vec<Happening>> {
        self.ranks.as_mut().expect("a job").due[rank as usize].remove(&self.now)
    }

    fn happen(&mut self, rank: u32, happening: Happening) {
        let now = self.now;
        let Jobs { runners, homes, actions, .. } = self.ranks.as_mut().expect("a job");
        let (job, first) = homes[rank as usize];
        let (runner, rank) = (&mut runners[job as usize], rank - first);
        match happening {
            Happening::Sent(sent) => runner.sent(now, rank, sent, actions),
            Happening::Received(receipt) => runner.received(now, rank, receipt, actions),
            Happening::Woken(node) => runner.woken(now, rank, node, actions),
        }
        self.act(first);
    }

    /// `happening` will happen to `rank` at `at`.
    fn tell(&mut self, rank: u32, at: Time, happening: Happening) {
        let ranks = self.ranks.as_mut().expect("a job");
        let due = ranks.due[rank as usize].entry(at).or_default();
        due.push(happening);
        let is_seen_to = ranks.awake == Some(rank) && at == self.now;
        if due.len() == 1 && !is_seen_to {
            self.agenda.push(Event::new(at, Class::Rank, rank));
        }
    }

    /// Does what ranks of a job, the first of which is `first`, have decided.
    fn act(&mut self, first: u32) {
        let ranks = self.ranks.as_mut().expect("a job");
        let mut actions = std::mem::take(&mut ranks.actions);
        for action in actions.drain(..) {
            match action {
                Action::Post { src, dst, bytes, sent, receipt } => {
                    self.post_for(first + src, first + dst, bytes, sent, receipt);
                }
                Action::Wake { rank, node, at } => {
                    self.tell(first + rank, at, Happening::Woken(node));
                }
                Action::Begun { rank, node } => {
                    let ranks = self.ranks.as_mut().expect("a job");
                    ranks.begun.insert((first + rank, node), self.now);
                }
                Action::Finished { rank, node } => {
                    let (rank, now) = (first + rank, self.now);
                    let ranks = self.ranks.as_mut().expect("a job");
                    let begun = ranks.begun.remove(&(rank, node)).unwrap_or(now);
                    ranks.nodes.push(NodeResult { rank, node, begun, finished: now });
                }
            }
        }
        self.ranks.as_mut().expect("a job").actions = actions;
    }

    /// Rank `src` posts a message to rank `dst`.
    fn post_for(&mut self, src: u32, dst: u32, bytes: u64, sent: Sent, receipt: Receipt) {
        let ranks = self.ranks.as_mut().expect("a job");
        self.progress.make(self.now);
        let servers = &ranks.config.servers;
        if servers[src as usize] == servers[dst as usize] {
            return self.scale_up((src, dst), bytes, sent, receipt);
        }
        let message = Waiting { bytes, sent, receipt, posted: self.now };
        let is_in_order = self.config.service == Service::InOrder;
        if is_in_order && !ranks.connections.insert((src, dst)) {
            return ranks.waiting.entry((src, dst)).or_default().push_back(message);
        }
        self.send_for(src, dst, message);
    }

    /// Whether anybody wants to know when all of a message has left.
    pub(crate) fn awaits_departures(&self) -> bool {
        self.ranks.is_some() && self.config.service == Service::InOrder
    }

    /// All of a message has left its host: the next one on its connection follows.
    pub(crate) fn rank_message_left(&mut self, id: SendingId) {
        let ranks = self.ranks.as_mut().expect("a job");
        let Owner { src, dst, .. } = ranks.owners[id.0 as usize];
        let Entry::Occupied(mut waiting) = ranks.waiting.entry((src, dst)) else {
            ranks.connections.remove(&(src, dst));
            return;
        };
        let next = waiting.get_mut().pop_front().expect("else the queue is gone");
        if waiting.get().is_empty() {
            waiting.remove();
        }
        self.send_for(src, dst, next);
    }

    /// Hands a message from rank `src` to rank `dst` to the NIC.
    fn send_for(&mut self, src: u32, dst: u32, message: Waiting) {
        let Waiting { bytes, sent, receipt, posted } = message;
        let ranks = self.ranks.as_ref().expect("a job");
        let hosts = &ranks.config.hosts;
        let (from, to) = (hosts[src as usize], hosts[dst as usize]);
        let (job, _) = ranks.homes[src as usize];
        let message = self.name_message(from);
        let receiving = self.announce(to, message, (bytes, posted), (dst, receipt));
        let owner = Owner { src, dst, sent, receipt };
        let sending = self.add_sending(Sending::new(message, receiving, bytes, 0), owner);
        self.jobs.post(sending, posted);
        let ranks = (src, dst);
        let post = Post { message, dst: to, bytes, job, ranks, tag: sending.0 };
        self.plan(self.world.partitioning.hosts[from].own, post);
    }

    /// Between ranks of one server.
    fn scale_up(&mut self, (src, dst): (u32, u32), bytes: u64, sent: Sent, receipt: Receipt) {
        let ranks = self.ranks.as_mut().expect("a job");
        let link = ranks.config.scale_up;
        let busy = &mut ranks.busy[src as usize];
        *busy = (*busy).max(self.now) + link.serialize(bytes);
        let there = *busy + link.latency;
        self.tell(dst, there + receipt.takes, Happening::Received(receipt));
        self.tell(src, there + link.latency, Happening::Sent(sent));
    }

    /// The next message of `host`: no other has its name, and none depends on the partitioning.
    fn name_message(&mut self, host: HostId) -> MessageId {
        let hosts = self.config.fabric.hosts();
        let ranks = self.ranks.as_mut().expect("a job");
        let posted = &mut ranks.posted[host.0 as usize];
        *posted += 1;
        MessageId((*posted - 1).wrapping_mul(hosts).wrapping_add(host.0))
    }

    /// Tells the partition of `host` of a message.
    fn announce(
        &mut self,
        host: HostId,
        message: MessageId,
        (bytes, posted): (u64, Time),
        (rank, receipt): (u32, Receipt),
    ) -> ReceivingId {
        let partition = self.world.partitioning.hosts[host].partition;
        let ranks = self.ranks.as_mut().expect("a job");
        let free = ranks.free_receiving[usize::from(partition)].pop();
        let number = free.unwrap_or_else(|| {
            let told = &mut ranks.told[usize::from(partition)];
            *told += 1;
            *told - 1
        });
        let announcement = Announcement { number, message, bytes, posted, rank, receipt };
        if partition == self.own {
            self.hear(usize::from(partition), &announcement);
        } else {
            self.agenda.mail_to(partition).announcements.push(announcement);
        }
        ReceivingId::new(self.own, number)
    }

    /// Partition `from` tells of a message to one of this partition's hosts.
    pub(crate) fn hear(&mut self, from: usize, announcement: &Announcement) {
        let Announcement { number, message, bytes, posted, rank, receipt } = *announcement;
        let receiving = Receiving::new(message, bytes, posted);
        let over = self.jobs.put_receiving(from, number, receiving);
        let ranks = self.ranks.as_mut().expect("a job");
        if let Some(over) = over {
            ranks.records.add_received(&over);
        }
        let receipts = &mut ranks.receipts[from];
        match receipts.get_mut(number as usize) {
            Some(place) => *place = (rank, receipt),
            None => receipts.push((rank, receipt)),
        }
    }

    fn add_sending(&mut self, sending: Sending, owner: Owner) -> SendingId {
        let ranks = self.ranks.as_mut().expect("a job");
        match ranks.free_sending.pop() {
            Some(id) => {
                self.jobs.put_sending(id, sending);
                ranks.owners[id.0 as usize] = owner;
                id
            }
            None => {
                ranks.owners.push(owner);
                self.jobs.push_sending(sending)
            }
        }
    }

    /// A message of a rank is complete at its receiver.
    pub(crate) fn rank_received(&mut self, id: ReceivingId) {
        let ranks = self.ranks.as_mut().expect("a job");
        let (rank, receipt) = ranks.receipts[id.partition()][id.number()];
        ranks.records.add_duration(self.jobs.receiving(id).posted.until(self.now));
        if !ranks.config.at_acknowledgement {
            self.tell(rank, self.now + receipt.takes, Happening::Received(receipt));
        }
    }

    /// A message of a rank has been acknowledged to its end.
    pub(crate) fn rank_sent(&mut self, id: SendingId) {
        let ranks = self.ranks.as_mut().expect("a job");
        let owner = ranks.owners[id.0 as usize];
        let hosts =
            (ranks.config.hosts[owner.src as usize], ranks.config.hosts[owner.dst as usize]);
        ranks.records.add_sent(owner, hosts, self.jobs.sending(id));
        if ranks.config.at_acknowledgement {
            let handled = self.now + owner.receipt.takes;
            self.tell(owner.dst, handled, Happening::Received(owner.receipt));
        }
        let ranks = self.ranks.as_ref().expect("a job");
        let (job, first) = ranks.homes[owner.src as usize];
        if ranks.config.jobs[job as usize].awaits_sent(owner.src - first, owner.sent.node) {
            self.tell(owner.src, self.now, Happening::Sent(owner.sent));
        }
    }

    /// Nothing in the network names the message any more: another may have its places.
    pub(crate) fn forget_message(&mut self, id: SendingId, to: HostId) {
        let receiving = self.jobs.sending(id).receiving;
        let partition = self.world.partitioning.hosts[to].partition;
        let Some(ranks) = &mut self.ranks else { return };
        ranks.free_sending.push(id);
        ranks.free_receiving[usize::from(partition)].push(receiving.number() as u32);
    }
}
