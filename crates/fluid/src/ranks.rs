//! Jobs at work, and the messages that they make: as `sim::jobs` has them, in one place.

use crate::agenda::What;
use crate::engine::Engine;
use crate::messages::{Message, Owner, Posting};
use crate::rounds::cut;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use weft_sim::{
    DurationHistogram, JobConfig, MessageResult, NodeResult, RankMessage, RunConfig, Service,
};
use weft_units::{MessageId, Time};
use weft_workload::job::{Action, Job, Receipt, Runner, Sent};

/// The ranks of all jobs.
pub(crate) struct Ranks<'a> {
    config: &'a JobConfig<'a>,
    runners: Vec<Runner<'a>>,
    /// By rank: its job, and the first rank of that.
    homes: Vec<(u32, u32)>,
    /// What will happen to each rank, and when; what comes at one time stays in order.
    due: Vec<BTreeMap<Time, Vec<Happening>>>,
    /// Until when each rank's scale-up link is busy.
    busy: Vec<Time>,
    /// From one rank to another: a message that has not left yet. Never iterated.
    connections: FxHashSet<(u32, u32)>,
    /// What waits behind these. Never iterated.
    waiting: FxHashMap<(u32, u32), VecDeque<Waiting>>,
    /// From one rank to another, where these are not in order and somebody watches hosts: how many messages have
    /// not left yet, and since when these are several. Never iterated.
    at_once: FxHashMap<(u32, u32), (u32, Time)>,
    /// Messages that each host has posted.
    posted: Vec<u32>,
    begun: FxHashMap<(u32, u32), Time>,
    nodes: Vec<NodeResult>,
    messages: Vec<RankMessage>,
    durations: DurationHistogram,
    /// Which rank something is happening to.
    awake: Option<u32>,
}

/// Bytes of a message, whose it is, and when it was posted.
type Waiting = (u64, Owner, Time);

/// Something that happens to a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    Sent(Sent),
    Received(Receipt),
    /// The time has come that it asked for, for this node.
    Woken(u32),
    /// The rounds of a ring that were not simulated are done, of this node and phase.
    RestDone(u32, u32),
}

impl<'a> Ranks<'a> {
    pub(crate) fn new(config: &RunConfig<'_>, job: &'a JobConfig<'a>) -> Ranks<'a> {
        let mut homes = Vec::new();
        let mut first = 0;
        for (number, one) in (0..).zip(job.jobs) {
            homes.extend((0..one.ranks()).map(|_| (number, first)));
            first += one.ranks();
        }
        let ranks = homes.len();
        let mut first = 0;
        let runner = |of: &'a Job| {
            let base = first;
            first += of.ranks();
            Runner::new(of, |_| true)
                .cutting(move |rank, one, rounds| cut(job, of, (base, rank), one, rounds))
        };
        let runners = job.jobs.iter().map(runner).collect();
        Ranks {
            config: job,
            runners,
            homes,
            due: vec![BTreeMap::new(); ranks],
            busy: vec![Time::ZERO; ranks],
            connections: FxHashSet::default(),
            waiting: FxHashMap::default(),
            at_once: FxHashMap::default(),
            posted: vec![0; config.fabric.hosts() as usize],
            begun: FxHashMap::default(),
            nodes: Vec::new(),
            messages: Vec::new(),
            durations: DurationHistogram::default(),
            awake: None,
        }
    }

    /// Nodes, messages and durations, in their order.
    pub(crate) fn results(mut self) -> (Vec<NodeResult>, Vec<RankMessage>, DurationHistogram) {
        self.nodes.sort_unstable();
        self.messages.sort_unstable_by_key(|one| one.message);
        (self.nodes, self.messages, self.durations)
    }
}

impl<'a> Engine<'a> {
    fn jobs(&mut self) -> &mut Ranks<'a> {
        self.ranks.as_mut().expect("a job")
    }

    /// Begins all ranks.
    pub(crate) fn start_ranks(&mut self) {
        let mut first = 0;
        for number in 0..self.jobs().runners.len() {
            let mut actions = Vec::new();
            let now = self.now;
            self.jobs().runners[number].start(now, &mut actions);
            self.act((number as u32, first), &mut actions);
            first += self.jobs().config.jobs[number].ranks();
        }
    }

    /// All that is due for `rank` happens, and what comes of it at once.
    pub(crate) fn rank(&mut self, rank: u32) {
        self.jobs().awake = Some(rank);
        let mut actions = Vec::new();
        loop {
            let now = self.now;
            let jobs = self.jobs();
            let Some(due) = jobs.due[rank as usize].first_entry() else { break };
            if *due.key() > now {
                break;
            }
            for happening in due.remove() {
                let jobs = self.jobs();
                let (job, first) = jobs.homes[rank as usize];
                let (runner, own) = (&mut jobs.runners[job as usize], rank - first);
                match happening {
                    Happening::Sent(sent) => runner.sent(now, own, sent, &mut actions),
                    Happening::Received(one) => runner.received(now, own, one, &mut actions),
                    Happening::Woken(node) => runner.woken(now, own, node, &mut actions),
                    Happening::RestDone(node, phase) => {
                        runner.rest_done(now, (own, node, phase), &mut actions);
                    }
                }
                self.act((job, first), &mut actions);
            }
        }
        self.jobs().awake = None;
    }

    pub(crate) fn tell(&mut self, rank: u32, at: Time, happening: Happening) {
        let now = self.now;
        let jobs = self.jobs();
        let due = jobs.due[rank as usize].entry(at).or_default();
        due.push(happening);
        let is_seen_to = jobs.awake == Some(rank) && at <= now;
        if due.len() == 1 && !is_seen_to {
            self.agenda.push(at, What::Rank(rank));
        }
    }

    /// Does what ranks of a job have decided; its number, and its first rank.
    fn act(&mut self, (job, first): (u32, u32), actions: &mut Vec<Action>) {
        for action in actions.drain(..) {
            match action {
                Action::Post { src, dst, bytes, sent, receipt } => {
                    let owner = Owner { src: first + src, dst: first + dst, sent, receipt };
                    self.post_for(owner, bytes);
                }
                Action::Join { .. } => {
                    unreachable!("switches that add up are done packet by packet")
                }
                Action::Wake { rank, node, at } => {
                    self.tell(first + rank, at, Happening::Woken(node));
                }
                Action::Begun { rank, node } => {
                    let now = self.now;
                    self.jobs().begun.insert((first + rank, node), now);
                }
                Action::Phase { rank, node, phase } => {
                    self.ring_begun((job, first), rank, (node, phase));
                }
                Action::Paused { rank, node, phase } => {
                    self.ring_paused((job, first), rank, (node, phase));
                }
                Action::Finished { rank, node } => {
                    let (rank, finished) = (first + rank, self.now);
                    let begun = self.jobs().begun.remove(&(rank, node)).unwrap_or(finished);
                    self.jobs().nodes.push(NodeResult { rank, node, begun, finished });
                }
            }
        }
    }

    fn post_for(&mut self, owner: Owner, bytes: u64) {
        let now = self.now;
        let is_in_order = self.config.service == Service::InOrder;
        let jobs = self.jobs();
        let servers = &jobs.config.servers;
        if servers[owner.src as usize] == servers[owner.dst as usize] {
            return self.scale_up(owner, bytes);
        }
        let pair = (owner.src, owner.dst);
        if is_in_order && !jobs.connections.insert(pair) {
            return jobs.waiting.entry(pair).or_default().push_back((bytes, owner, now));
        }
        self.send_for(owner, bytes, now);
    }

    /// All of a message has left: the next one on its connection follows.
    pub(crate) fn rank_message_left(&mut self, owner: Owner) {
        let pair = (owner.src, owner.dst);
        if self.config.service != Service::InOrder {
            return self.watch_pair(pair, false);
        }
        let jobs = self.jobs();
        let Entry::Occupied(mut waiting) = jobs.waiting.entry(pair) else {
            jobs.connections.remove(&pair);
            return;
        };
        let (bytes, owner, posted) = waiting.get_mut().pop_front().expect("else it is gone");
        if waiting.get().is_empty() {
            waiting.remove();
        }
        self.send_for(owner, bytes, posted);
    }

    /// Who watches hosts hears for how long several messages from one rank to another leave at once. By packets the
    /// first of them ends a packet before the next, begins so much sooner at the next rank, and is ahead by as many times
    /// more there as messages share the NIC; by rates all end together for ever.
    fn watch_pair(&mut self, pair: (u32, u32), begins: bool) {
        let now = self.now;
        if self.watch.is_none() {
            return;
        }
        let jobs = self.jobs();
        let host = jobs.config.hosts[pair.0 as usize];
        let (count, since) = jobs.at_once.entry(pair).or_insert((0, now));
        let passed = if *count > 1 { since.until(now) } else { Time::ZERO };
        *count = if begins { *count + 1 } else { *count - 1 };
        *since = now;
        if *count == 0 {
            jobs.at_once.remove(&pair);
        }
        if let Some(watch) = &mut self.watch {
            watch.lose(host, passed);
        }
    }

    fn send_for(&mut self, owner: Owner, bytes: u64, posted: Time) {
        if self.config.service != Service::InOrder {
            self.watch_pair((owner.src, owner.dst), true);
        }
        let hosts = self.config.fabric.hosts();
        let jobs = self.jobs();
        let [from, to] = [owner.src, owner.dst].map(|rank| jobs.config.hosts[rank as usize]);
        let (job, _) = jobs.homes[owner.src as usize];
        let count = &mut jobs.posted[from.0 as usize];
        *count += 1;
        let name = MessageId((*count - 1).wrapping_mul(hosts).wrapping_add(from.0));
        let owner = Some(owner);
        self.hand_over(Posting { name, src: from, dst: to, bytes, posted, job, owner });
    }

    /// Between ranks of one server.
    fn scale_up(&mut self, owner: Owner, bytes: u64) {
        let now = self.now;
        let jobs = self.jobs();
        let link = jobs.config.scale_up;
        let busy = &mut jobs.busy[owner.src as usize];
        *busy = (*busy).max(now) + link.serialize(bytes);
        let there = *busy + link.latency;
        let took = now.until(there) + owner.receipt.takes;
        self.ring_received(&owner, (took, took));
        self.tell(owner.dst, there + owner.receipt.takes, Happening::Received(owner.receipt));
        self.tell(owner.src, there + link.latency, Happening::Sent(owner.sent));
    }

    /// Messages took so long, so many of them.
    pub(crate) fn count_durations(&mut self, duration: Time, times: u64) {
        let jobs = self.jobs();
        if !jobs.config.each_message {
            jobs.durations.add_times(duration, times);
        }
    }

    /// How long a message takes that has its path to itself.
    fn alone(&self, owner: &Owner, bytes: u64) -> Time {
        let (fabric, packet) = (self.config.fabric, &self.config.packet);
        let hosts = &self.ranks.as_ref().expect("a job").config.hosts;
        let [src, dst] = [owner.src, owner.dst].map(|rank| hosts[rank as usize]);
        let packets = bytes.div_ceil(u64::from(packet.mtu));
        let wire = bytes + packets * u64::from(packet.header);
        let last = bytes.min(u64::from(packet.mtu)) + u64::from(packet.header);
        let line = fabric.line_rate();
        fabric.one_way(src, dst, last) + line.serialize(wire.saturating_sub(last))
    }

    /// The job of a rank, and the first rank of that.
    pub(crate) fn job_of(&self, rank: u32) -> (u32, u32) {
        self.ranks.as_ref().expect("a job").homes[rank as usize]
    }

    /// A message of a rank is complete at its receiver.
    pub(crate) fn rank_received(&mut self, message: &Message, owner: Owner) {
        let now = self.now;
        let jobs = self.jobs();
        if !jobs.config.each_message {
            jobs.durations.add(message.posted.until(now));
        }
        if !jobs.config.at_acknowledgement {
            let receipt = owner.receipt;
            self.tell(owner.dst, now + receipt.takes, Happening::Received(receipt));
        }
        if !self.rings.is_empty() {
            let took = message.left_at.until(now) + owner.receipt.takes;
            let alone = self.alone(&owner, message.bytes) + owner.receipt.takes;
            self.ring_received(&owner, (took, alone));
        }
    }

    /// A message of a rank has been acknowledged to its end.
    pub(crate) fn rank_sent(&mut self, message: &Message, owner: Owner, result: MessageResult) {
        let now = self.now;
        let Owner { src, dst, sent, receipt } = owner;
        let jobs = self.jobs();
        if jobs.config.each_message {
            let [from, to] = [src, dst].map(|rank| jobs.config.hosts[rank as usize]);
            let (message, bytes, node) = (message.name, message.bytes, sent.node);
            let hosts = (from, to);
            jobs.messages.push(RankMessage { message, src, dst, hosts, node, bytes, result });
        }
        let acknowledged = jobs.config.at_acknowledgement;
        let (job, first) = jobs.homes[src as usize];
        let awaits = jobs.config.jobs[job as usize].awaits_sent(src - first, sent.node);
        if acknowledged {
            self.tell(dst, now + receipt.takes, Happening::Received(receipt));
        }
        if awaits {
            self.tell(src, now, Happening::Sent(sent));
        }
    }
}
