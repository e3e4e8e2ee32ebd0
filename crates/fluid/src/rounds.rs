//! Collectives of many rounds that are all alike (rings): the first rounds are simulated, the others go
//! on as these did.
//!
//! In a ring every rank sends to one and the same rank, round after round, and goes on when it has as
//! much from one and the same. A round takes as long as a message in the mean over all ranks, since
//! each has to go round; or as long as the slowest rank sends. So what messages take once they leave,
//! how fast rounds follow each other and what each link carried are measured over later ones of the first
//! rounds; from then on the ring is one flow that loads all these links, no faster than both allow. If
//! others used its NICs meanwhile, it would have been faster without them, by their share.
//!
//! Between ranks of one server nobody else is in the way: there the pace is known at once.

use crate::agenda::What;
use crate::engine::Engine;
use crate::messages::Owner;
use crate::paths::Resources;
use crate::ranks::Happening;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use weft_sim::JobConfig;
use weft_units::Time;
use weft_workload::job::{Job, Rounds};
use weft_workload::trace::{Collective, Work};

/// Rounds that are simulated at least.
const FIRST: u32 = 16;
/// Messages in the rounds that are simulated, at least.
const MESSAGES: u32 = 2048;
/// Which flows of [`crate::rates::Rates`] are rings: this, and the number.
pub(crate) const RING: u32 = 1 << 31;

/// A phase of a collective in which ranks of a job go round. Ranks of several groups may be in a collective
/// of one number, and go round in several rings: the first rank tells these apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    job: u32,
    group: u32,
    turn: u32,
    phase: u32,
    first: u32,
}

/// A collective under way whose first rounds are simulated.
#[derive(Debug)]
pub(crate) struct Ring {
    /// How many rounds are simulated, and how many there are after these.
    first: u32,
    rest: u32,
    /// Messages of the first rounds, and how many of them are there.
    expected: u64,
    received: u64,
    /// When as many of them were there as are not measured, and when all that are.
    from: Time,
    to: Time,
    /// How long those in between took, together, and how long they would have taken alone.
    durations: u128,
    alone: u128,
    /// What the NICs of its ranks had sent before, and what they sent meanwhile, of all messages.
    before: u64,
    meanwhile: u64,
    /// What crossed resources meanwhile: bytes and packets.
    crossed: FxHashMap<u32, (u64, u64)>,
    rounds: Rounds,
    /// Ranks that have done the first rounds, with their nodes, and when.
    paused: Vec<(u32, u32, Time)>,
}

impl Ring {
    /// Which of its messages are measured: not the first, which find nobody under way, nor the last,
    /// behind which nobody comes.
    fn measured(&self) -> Range<u64> {
        let eighth = self.expected / 8;
        4 * eighth..7 * eighth
    }
    /// How many rounds these are.
    fn measured_rounds(&self) -> f64 {
        let Range { start, end } = self.measured();
        f64::from(self.first) * (end - start) as f64 / self.expected as f64
    }
    fn is_measured(&self) -> bool {
        self.measured().contains(&self.received)
    }
    /// How long a round takes that has the links to itself, in picoseconds, if `own` of the bytes that
    /// its NICs sent meanwhile were its own.
    fn round(&self, own: u64) -> f64 {
        let follow = self.from.until(self.to).0 as f64 / self.measured_rounds();
        let share = own as f64 / self.meanwhile.max(own).max(1) as f64;
        let alone = self.mean_alone();
        (share * follow.max(self.mean_duration().0 as f64)).max(alone)
    }
    /// What its messages would have taken alone, in the mean, in picoseconds.
    fn mean_alone(&self) -> f64 {
        let Range { start, end } = self.measured();
        self.alone as f64 / (end - start).max(1) as f64
    }
    /// What its messages took, in the mean.
    fn mean_duration(&self) -> Time {
        let Range { start, end } = self.measured();
        Time((self.durations / u128::from((end - start).max(1))) as u64)
    }
}

/// The rest of a ring, as one flow.
#[derive(Debug)]
pub(crate) struct Rest {
    ring: Ring,
    /// The first rank of its job.
    base: u32,
    /// Bytes that each rank has left, as of `since`, and how many go in a picosecond.
    left: f64,
    since: Time,
    rate: f64,
    limit: f64,
    /// What does not name this version is no longer true.
    version: u64,
    rates: u32,
}

/// How many rounds of a ring between `ranks` are simulated.
fn first_rounds(ranks: u32, rounds: u32) -> Option<u32> {
    let first = MESSAGES.div_ceil(ranks).max(FIRST);
    (rounds > 2 * first).then_some(first)
}

/// How many rounds of a phase of a collective that `rank` joins are simulated, where servers are those of
/// `config` and the first rank of the job is `base`; `None`: all.
pub(crate) fn cut(
    config: &JobConfig<'_>,
    job: &Job,
    (base, rank): (u32, u32),
    one: &Collective,
    rounds: &Rounds,
) -> Option<u32> {
    if is_inside(config, job, (base, rank), one, rounds) {
        return Some(0);
    }
    first_rounds(rounds.ranks, rounds.count()).filter(|_| !config.each_message)
}

/// Whether all ranks of a phase are in one server.
fn is_inside(
    config: &JobConfig<'_>,
    job: &Job,
    (base, rank): (u32, u32),
    one: &Collective,
    rounds: &Rounds,
) -> bool {
    let Some(members) = job.trace().members(one.group, rank) else { return false };
    let server = |rank| config.servers[(base + rank) as usize];
    let last = rounds.first + (rounds.ranks - 1) * rounds.stride;
    // Most groups that leave a server do so between these.
    let first = server(members.rank(rounds.first));
    first == server(members.rank(last)) && rounds.members(&members).all(|it| server(it) == first)
}

impl Engine<'_> {
    /// A message of a collective is at its receiver.
    pub(crate) fn ring_received(&mut self, owner: &Owner, (took, alone): (Time, Time)) {
        let now = self.now;
        let Some(key) = self.ring_of(owner) else { return };
        let Some(ring) = self.rings.get_mut(&key) else { return };
        ring.received += 1;
        let (is_first, is_last) =
            (ring.received == ring.measured().start, ring.received == ring.measured().end);
        if is_first {
            ring.from = now;
        } else if ring.is_measured() || is_last {
            ring.durations += u128::from(took.0);
            ring.alone += u128::from(alone.0);
        }
        if is_last {
            ring.to = now;
        }
        if is_first || is_last {
            let rounds = ring.rounds;
            let sent = self.sent_by_members(owner, key, &rounds);
            let ring = self.rings.get_mut(&key).expect("it is there");
            match is_first {
                true => ring.before = sent,
                false => ring.meanwhile = sent - ring.before,
            }
        }
    }

    /// What the NICs of all ranks of a ring have sent so far, in bytes.
    fn sent_by_members(&self, owner: &Owner, key: Key, rounds: &Rounds) -> u64 {
        let Some(config) = &self.config.job else { return 0 };
        let (_, base) = self.job_of(owner.src);
        let trace = config.jobs[key.job as usize].trace();
        let Some(members) = trace.members(key.group, owner.src - base) else { return 0 };
        let nic = |rank| {
            let host = config.hosts[(base + rank) as usize];
            self.layout.nic_of(host).map(|resource| self.bytes[resource as usize]).sum::<u64>()
        };
        rounds.members(&members).map(nic).sum()
    }

    /// Packets of a collective have crossed resources, on the way of a message.
    pub(crate) fn ring_crossed(
        &mut self,
        owner: &Owner,
        resources: [Resources; 2],
        bytes_and_packets: [(u64, u64); 2],
    ) {
        let Some(key) = self.ring_of(owner) else { return };
        let Some(ring) = self.rings.get_mut(&key) else { return };
        if ring.is_measured() {
            for (resources, (bytes, packets)) in resources.iter().zip(bytes_and_packets) {
                for resource in resources.as_slice() {
                    let (sum, count) = ring.crossed.entry(*resource).or_default();
                    *sum += bytes;
                    *count += packets;
                }
            }
        }
    }

    /// What a ring that crossed `resource` uses: that, or its links where flows have paths of their own.
    fn links_of_ring(&self, resource: u32) -> Vec<(u32, f64)> {
        let mut one = Resources::default();
        one.push(resource);
        match self.spreads {
            true => vec![(resource, 1.0)],
            false => self.layout.links(&one).collect(),
        }
    }

    /// The ring whose message this is.
    fn ring_of(&self, owner: &Owner) -> Option<Key> {
        if self.rings.is_empty() {
            return None;
        }
        let (job, base) = self.job_of(owner.src);
        let (of, rank) = (&self.config.job.as_ref()?.jobs[job as usize], owner.src - base);
        let Work::Collective(one) = &of.trace().graph(rank).nodes()[owner.sent.node as usize].work
        else {
            return None;
        };
        let rounds = of.rounds_with(rank, one, owner.receipt.number)?;
        self.key(job, rank, one, &rounds)
    }

    fn key(&self, job: u32, rank: u32, one: &Collective, rounds: &Rounds) -> Option<Key> {
        let of = &self.config.job.as_ref()?.jobs[job as usize];
        let first = of.trace().members(one.group, rank)?.rank(rounds.first);
        let (group, turn, phase) = (one.group, one.turn, rounds.phase);
        Some(Key { job, group, turn, phase, first })
    }

    /// A phase of a collective, with the key of its ring.
    fn phase(
        &self,
        (job, base): (u32, u32),
        rank: u32,
        (node, phase): (u32, u32),
    ) -> (Key, Rounds, Option<u32>) {
        let config = self.config.job.as_ref().expect("a job");
        let of = &config.jobs[job as usize];
        let Work::Collective(one) = &of.trace().graph(rank).nodes()[node as usize].work else {
            unreachable!("only collectives have phases")
        };
        let rounds = of.rounds(rank, one, phase).expect("it has come to it");
        let key = self.key(job, rank, one, &rounds).expect("it is a member");
        (key, rounds, cut(config, of, (base, rank), one, &rounds))
    }

    /// A rank comes to a phase that is cut: its first rounds are measured.
    pub(crate) fn ring_begun(
        &mut self,
        (job, base): (u32, u32),
        rank: u32,
        (node, phase): (u32, u32),
    ) {
        let (key, rounds, first) = self.phase((job, base), rank, (node, phase));
        let first = first.expect("it is cut");
        if self.rings.contains_key(&key) {
            return;
        }
        let ring = Ring {
            first,
            rest: rounds.count() - first,
            expected: u64::from(first) * u64::from(rounds.ranks) * u64::from(rounds.messages),
            received: 0,
            from: Time::ZERO,
            to: Time::ZERO,
            durations: 0,
            alone: 0,
            before: 0,
            meanwhile: 0,
            crossed: FxHashMap::default(),
            rounds,
            paused: Vec::new(),
        };
        self.rings.insert(key, ring);
    }

    /// A rank has done the first rounds; `rank` is numbered within its job.
    pub(crate) fn ring_paused(
        &mut self,
        (job, base): (u32, u32),
        rank: u32,
        (node, phase): (u32, u32),
    ) {
        let now = self.now;
        let (key, ..) = self.phase((job, base), rank, (node, phase));
        let ring = self.rings.get_mut(&key).expect("it has begun");
        ring.paused.push((rank, node, now));
        if ring.paused.len() < ring.rounds.ranks as usize {
            return;
        }
        let ring = self.rings.remove(&key).expect("it has begun");
        match ring.first {
            0 => self.go_round_inside(ring, job, base),
            _ => self.go_on_round(ring, base),
        }
    }

    /// The whole of a ring within a server.
    fn go_round_inside(&mut self, ring: Ring, job: u32, base: u32) {
        let config = self.config.job.as_ref().expect("a job");
        let of = &config.jobs[job as usize];
        let (rank, node, _) = ring.paused[0];
        let Work::Collective(one) = &of.trace().graph(rank).nodes()[node as usize].work else {
            unreachable!("only collectives are cut")
        };
        let bytes = of.bytes_a_round(rank, one, &ring.rounds);
        let messages = u64::from(ring.rounds.messages);
        let reducing = of.reducing_rounds(rank, one, &ring.rounds).min(ring.rest);
        let crosses = config.scale_up.serialize(bytes) + config.scale_up.latency;
        let round = |reduces| crosses + of.endpoint().takes(bytes / messages.max(1), reduces);
        let rounds = [(true, reducing), (false, ring.rest - reducing)];
        let all = |sum: Time, (reduces, count): (bool, u32)| {
            sum.saturating_add(Time(round(reduces).0.saturating_mul(u64::from(count))))
        };
        let done = rounds.into_iter().fold(self.now, all);
        let count = u64::from(ring.rest) * u64::from(ring.rounds.ranks) * messages;
        self.count_durations(crosses, count);
        for (rank, node, _) in ring.paused {
            self.tell(base + rank, done, Happening::RestDone(node, ring.rounds.phase));
        }
    }

    /// The rest of a ring becomes a flow.
    fn go_on_round(&mut self, ring: Ring, base: u32) {
        let measured = ring.measured_rounds();
        let own = ring.crossed.iter().filter(|(id, _)| self.layout.is_nic(**id));
        let own: u64 = own.map(|(_, (bytes, _))| bytes).sum();
        // In bytes of one rank, so that a ring shares links with others as a flow of each rank does.
        let bytes = (own as f64 / measured / f64::from(ring.rounds.ranks)).max(1.0);
        let limit = bytes / ring.round(own).max(1.0);
        if let Some(watch) = &mut self.watch {
            let alone = ring.mean_alone();
            watch.look_at_ring(ring.mean_duration().0 as f64, alone);
        }
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        let mut crossed: Vec<(u32, u64)> =
            ring.crossed.iter().map(|(id, (bytes, _))| (*id, *bytes)).collect();
        crossed.sort_unstable();
        for (resource, crossed) in crossed {
            let share = crossed as f64 / measured / bytes;
            for (link, part) in self.links_of_ring(resource) {
                *shares.entry(link).or_default() += share * part;
            }
        }
        // Once round, all ranks are equally far: the mean counts.
        let ahead: u128 = ring.paused.iter().map(|one| u128::from(one.2.until(self.now).0)).sum();
        let ahead = ahead as f64 / ring.paused.len() as f64;
        let left = (f64::from(ring.rest) * bytes - ahead * limit).max(0.0);
        let rates = self.rates.add_weighted(shares.into_iter(), limit);
        let number = self.rests.iter().position(Option::is_none).unwrap_or(self.rests.len());
        if number == self.rests.len() {
            self.rests.push(None);
        }
        let version = self.ring_version;
        self.rests[number] =
            Some(Rest { ring, base, left, since: self.now, rate: 0.0, limit, version, rates });
        self.know(rates, RING | number as u32);
        match self.rates.grant(rates) {
            Some(rate) => self.set_ring_rate(number as u32, rate),
            None => self.unsettle(Time::ZERO),
        }
    }

    /// A ring goes round so fast from now on, in bytes of a rank a picosecond.
    pub(crate) fn set_ring_rate(&mut self, number: u32, rate: f64) {
        let now = self.now;
        let Some(rest) = &mut self.rests[number as usize] else { return };
        if let Some(watch) = &mut self.watch {
            watch.look_at_ring(rest.limit, rate);
        }
        if (rest.rate - rate).abs() <= rate * 1e-12 && rest.rate > 0.0 {
            return;
        }
        rest.left -= rest.rate * rest.since.until(now).0 as f64;
        (rest.rate, rest.since) = (rate, now);
        self.ring_version += 1;
        rest.version = self.ring_version;
        if rate > 0.0 {
            let at = now.saturating_add(Time((rest.left.max(0.0) / rate).ceil() as u64));
            let version = rest.version;
            self.agenda.push(at, What::RingDone { ring: number, version });
        }
    }

    /// All rounds of a ring are done.
    pub(crate) fn ring_done(&mut self, number: u32, version: u64) {
        let place = &mut self.rests[number as usize];
        if place.as_ref().is_none_or(|rest| rest.version != version) {
            return;
        }
        let Rest { ring, base, rates, .. } = place.take().expect("it is there");
        self.rates.remove(rates);
        self.unsettle(self.latest);
        let times = f64::from(ring.rest) / ring.measured_rounds();
        let mean = ring.mean_duration();
        let messages = ring.expected / u64::from(ring.first) * u64::from(ring.rest);
        for (resource, (bytes, packets)) in ring.crossed {
            let packets = (packets as f64 * times) as u64;
            if resource < self.layout.len() {
                self.bytes[resource as usize] += (bytes as f64 * times) as u64;
                self.packets[resource as usize] += packets;
            }
            if self.layout.is_nic(resource) {
                // Data and its acknowledgements both leave at NICs: half of all.
                self.totals.packets += packets / 2;
                self.totals.control_packets += packets - packets / 2;
            }
        }
        self.count_durations(mean, messages);
        for (rank, node, _) in ring.paused {
            self.tell(base + rank, self.now, Happening::RestDone(node, ring.rounds.phase));
        }
    }
}
