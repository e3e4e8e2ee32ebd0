//! Ranks at work: what happens to them, and what they decide.

use super::records::Owner;
use super::state::{Addressee, Happening, Jobs, Waiting};
use crate::config::Service;
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::mail::Announcement;
use crate::messages::{Receiving, Sending};
use crate::outcome::NodeResult;
use crate::partition::{ReceivingId, SendingId};
use crate::ports::Ports;
use crate::queue::EventQueue;
use std::collections::hash_map::Entry;
use weft_balance::plan::Post;
use weft_units::{HostId, MessageId, Time};
use weft_workload::job::{Action, Receipt, Sent};

impl<'a, Q: EventQueue, P: Ports> Engine<'a, Q, P> {
    /// Begins all ranks of this partition.
    pub(crate) fn start_ranks(&mut self) {
        let Some(jobs) = &self.jobs else { return };
        let mut first = 0;
        for number in 0..jobs.config.jobs.len() {
            let Jobs { runners, actions, config, .. } = self.jobs.as_mut().expect("a job");
            let job = &config.jobs[number];
            runners[number].start(self.now, actions);
            self.act(first);
            // So many decide at once but here.
            self.jobs.as_mut().expect("a job").actions = Vec::new();
            first += job.ranks();
        }
    }

    /// A `Rank` event: all that is due happens, and what comes of it at once.
    pub(crate) fn rank(&mut self, rank: u32) {
        self.jobs.as_mut().expect("a job").awake = Some(rank);
        while let Some(happenings) = self.due_now(rank) {
            for happening in happenings {
                self.happen(rank, happening);
            }
        }
        self.jobs.as_mut().expect("a job").awake = None;
    }

    fn due_now(&mut self, rank: u32) -> Option<Vec<Happening>> {
        self.jobs.as_mut().expect("a job").due[rank as usize].remove(&self.now)
    }

    fn happen(&mut self, rank: u32, happening: Happening) {
        let now = self.now;
        let Jobs { runners, homes, actions, .. } = self.jobs.as_mut().expect("a job");
        let (job, first) = homes[rank as usize];
        let (runner, rank) = (&mut runners[job as usize], rank - first);
        match happening {
            Happening::Sent(sent) => runner.sent(now, rank, sent, actions),
            Happening::Received(receipt) => runner.received(now, rank, receipt, actions),
            Happening::Woken(node) => runner.woken(now, rank, node, actions),
            Happening::Relayed(number) => return self.relayed(first + rank, number),
            Happening::Server => return self.begin_in_server(first + rank),
        }
        self.act(first);
    }

    /// `happening` will happen to `rank` at `at`.
    pub(super) fn tell(&mut self, rank: u32, at: Time, happening: Happening) {
        let jobs = self.jobs.as_mut().expect("a job");
        let due = jobs.due[rank as usize].entry(at).or_default();
        due.push(happening);
        let is_seen_to = jobs.awake == Some(rank) && at == self.now;
        if due.len() == 1 && !is_seen_to {
            let host = self.world.partitioning.hosts[jobs.config.hosts[rank as usize]].own;
            self.agenda.push_at_host(Event::new(at, Class::Rank, rank), host);
        }
    }

    /// `rank` has what came of its part in what switches did.
    pub(crate) fn tell_received(&mut self, rank: u32, receipt: Receipt) {
        self.tell(rank, self.now + receipt.takes, Happening::Received(receipt));
    }

    /// Does what ranks of a job, the first of which is `first`, have decided.
    fn act(&mut self, first: u32) {
        let jobs = self.jobs.as_mut().expect("a job");
        let mut actions = std::mem::take(&mut jobs.actions);
        for action in actions.drain(..) {
            match action {
                Action::Post { src, dst, bytes, sent, receipt } => {
                    self.post_for(first + src, first + dst, bytes, sent, receipt);
                }
                Action::Join { rank, joined, receipt } => {
                    let rank = first + rank;
                    let (job, _) = self.jobs.as_ref().expect("a job").homes[rank as usize];
                    self.counts.progress.make(self.now);
                    if !self.join_tree(job, rank, &joined, receipt) {
                        self.join_in_server(job, rank, &joined, receipt);
                    }
                }
                Action::Wake { rank, node, at } => {
                    self.tell(first + rank, at, Happening::Woken(node));
                }
                Action::Begun { rank, node } => {
                    let jobs = self.jobs.as_mut().expect("a job");
                    jobs.begun.insert((first + rank, node), self.now);
                }
                Action::Phase { .. } | Action::Paused { .. } => {
                    unreachable!("nobody cuts collectives here")
                }
                Action::Finished { rank, node } => {
                    let (rank, now) = (first + rank, self.now);
                    let jobs = self.jobs.as_mut().expect("a job");
                    let begun = jobs.begun.remove(&(rank, node)).unwrap_or(now);
                    jobs.nodes.push(NodeResult { rank, node, begun, finished: now });
                }
            }
        }
        self.jobs.as_mut().expect("a job").actions = actions;
    }

    /// Rank `src` posts a message to rank `dst`.
    fn post_for(&mut self, src: u32, dst: u32, bytes: u64, sent: Sent, receipt: Receipt) {
        let jobs = self.jobs.as_mut().expect("a job");
        self.counts.progress.make(self.now);
        let servers = &jobs.config.servers;
        if servers[src as usize] == servers[dst as usize] {
            return self.scale_up((src, dst), bytes, sent, receipt);
        }
        let message = Waiting { bytes, sent, receipt, posted: self.now };
        if !self.relay_from(src, dst, message) {
            self.connect(src, dst, message);
        }
    }

    /// Whether anybody wants to know when all of a message has left.
    pub(crate) fn awaits_departures(&self) -> bool {
        self.jobs.is_some() && self.config.service == Service::InOrder
    }

    /// All of a message has left its host: the next one on its connection follows.
    pub(crate) fn rank_message_left(&mut self, id: SendingId) {
        let jobs = self.jobs.as_mut().expect("a job");
        let Owner { src, dst, .. } = jobs.owners[id.0 as usize];
        let Entry::Occupied(mut waiting) = jobs.waiting.entry((src, dst)) else {
            jobs.connections.remove(&(src, dst));
            return;
        };
        let next = waiting.get_mut().pop_front().expect("else the queue is gone");
        if waiting.get().is_empty() {
            waiting.remove();
        }
        self.send_for(src, dst, next);
    }

    /// Hands a message from rank `src` to rank `dst` to the NIC.
    pub(super) fn send_for(&mut self, src: u32, dst: u32, message: Waiting) {
        let Waiting { bytes, sent, receipt, posted } = message;
        let jobs = self.jobs.as_ref().expect("a job");
        let (from, to) = jobs.config.ends(src, dst);
        let relay = jobs.config.relays.as_ref().and_then(|relays| relays.at_destination(src, dst));
        let (job, _) = jobs.homes[src as usize];
        let message = self.name_message(from);
        let receiving = self.announce(to, message, (bytes, posted), (dst, receipt, relay));
        let owner = Owner { src, dst, sent, receipt };
        let sending = self.add_sending(Sending::new(message, receiving, bytes, 0), owner);
        self.messages.post_new(posted, sending);
        let ranks = (src, dst);
        let post = Post { message, dst: to, bytes, job, ranks, tag: sending.0 };
        self.plan(self.world.partitioning.hosts[from].own, post);
    }

    /// Between ranks of one server.
    fn scale_up(&mut self, (src, dst): (u32, u32), bytes: u64, sent: Sent, receipt: Receipt) {
        let jobs = self.jobs.as_mut().expect("a job");
        let link = jobs.config.scale_up;
        let busy = &mut jobs.busy[jobs.config.gpu(src) as usize];
        *busy = (*busy).max(self.now) + link.serialize(bytes);
        let there = *busy + link.latency;
        self.tell(dst, there + receipt.takes, Happening::Received(receipt));
        self.tell(src, there + link.latency, Happening::Sent(sent));
    }

    /// The next message of `host`: no other has its name, and none depends on the partitioning.
    fn name_message(&mut self, host: HostId) -> MessageId {
        let hosts = self.config.fabric.hosts();
        let jobs = self.jobs.as_mut().expect("a job");
        let posted = &mut jobs.posted[host.0 as usize];
        *posted += 1;
        MessageId((*posted - 1).wrapping_mul(hosts).wrapping_add(host.0))
    }

    /// Tells the partition of `host` of a message.
    fn announce(
        &mut self,
        host: HostId,
        message: MessageId,
        (bytes, posted): (u64, Time),
        (rank, receipt, relay): (u32, Receipt, Option<u32>),
    ) -> ReceivingId {
        let partition = self.world.partitioning.hosts[host].partition;
        let jobs = self.jobs.as_mut().expect("a job");
        let free = jobs.free_receiving[usize::from(partition)].pop();
        let number = free.unwrap_or_else(|| {
            let told = &mut jobs.told[usize::from(partition)];
            *told += 1;
            *told - 1
        });
        let announcement = Announcement { number, message, bytes, posted, rank, receipt, relay };
        if partition == self.own {
            self.hear(usize::from(partition), &announcement);
        } else {
            self.agenda.mail_to(partition).announcements.push(announcement);
        }
        ReceivingId::new(self.own, number)
    }

    /// Partition `from` tells of a message to one of this partition's hosts.
    pub(crate) fn hear(&mut self, from: usize, announcement: &Announcement) {
        let Announcement { number, message, bytes, posted, rank, receipt, relay } = *announcement;
        let receiving = Receiving::new(message, bytes, posted);
        let over = self.messages.put_receiving(from, number, receiving);
        let jobs = self.jobs.as_mut().expect("a job");
        if let Some(over) = over {
            jobs.records.add_received(&over);
        }
        let receipts = &mut jobs.receipts[from];
        let addressee = Addressee { rank, receipt, relay: relay.map(|gpu| (gpu, bytes)) };
        match receipts.get_mut(number as usize) {
            Some(place) => *place = addressee,
            None => receipts.push(addressee),
        }
    }

    fn add_sending(&mut self, sending: Sending, owner: Owner) -> SendingId {
        let jobs = self.jobs.as_mut().expect("a job");
        match jobs.free_sending.pop() {
            Some(id) => {
                self.messages.put_sending(id, sending);
                jobs.owners[id.0 as usize] = owner;
                id
            }
            None => {
                jobs.owners.push(owner);
                self.messages.push_sending(sending)
            }
        }
    }

    /// A message of a rank is complete at its receiver.
    pub(crate) fn rank_received(&mut self, id: ReceivingId) {
        let jobs = self.jobs.as_mut().expect("a job");
        let Addressee { rank, receipt, relay } = jobs.receipts[id.partition()][id.number()];
        let posted = self.messages.receiving(id).posted;
        jobs.records.add_duration(posted.until(self.now));
        if !jobs.config.at_acknowledgement {
            let there = self.relay_to(relay, posted);
            self.tell(rank, there + receipt.takes, Happening::Received(receipt));
        }
    }

    /// A message of a rank has been acknowledged to its end.
    pub(crate) fn rank_sent(&mut self, id: SendingId) {
        let jobs = self.jobs.as_mut().expect("a job");
        let owner = jobs.owners[id.0 as usize];
        let hosts = jobs.config.ends(owner.src, owner.dst);
        jobs.records.add_sent(owner, hosts, self.messages.sending(id));
        if jobs.config.at_acknowledgement {
            let relays = jobs.config.relays.as_ref();
            let relay = relays.and_then(|relays| relays.at_destination(owner.src, owner.dst));
            let sending = self.messages.sending(id);
            let (bytes, posted) = (sending.bytes, sending.result().posted);
            let handled =
                self.relay_to(relay.map(|gpu| (gpu, bytes)), posted) + owner.receipt.takes;
            self.tell(owner.dst, handled, Happening::Received(owner.receipt));
        }
        let jobs = self.jobs.as_ref().expect("a job");
        let (job, first) = jobs.homes[owner.src as usize];
        if jobs.config.jobs[job as usize].awaits_sent(owner.src - first, owner.sent.node) {
            self.tell(owner.src, self.now, Happening::Sent(owner.sent));
        }
    }

    /// Nothing in the network names the message any more: another may have its places.
    pub(crate) fn forget_message(&mut self, id: SendingId, to: HostId) {
        let receiving = self.messages.sending(id).receiving;
        let partition = self.world.partitioning.hosts[to].partition;
        let Some(jobs) = &mut self.jobs else { return };
        jobs.free_sending.push(id);
        jobs.free_receiving[usize::from(partition)].push(receiving.number() as u32);
    }
}
