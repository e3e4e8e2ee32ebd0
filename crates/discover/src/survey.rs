//! A survey: the searches of one host towards all of its targets, at one pace.
//!
//! What one target shows holds for others as far away, and is not asked again: where paths part, if only some
//! ports are needed; what a linear hash does, until a port contradicts. So the first of them goes ahead.

use crate::linear::Space;
use crate::model::Model;
use crate::pace::Pace;
use crate::search::{Next, Search};
use crate::statistics::{Evenness, evenness, smallest_share};
use crate::trace::{Path, Trace};
use crate::{Need, Probe, Reply, Rules};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use weft_units::{Draw, Time};

/// Targets that are searched side by side: each needs sockets of its own.
const SIDE_BY_SIDE: usize = 64;
/// Targets among which a single one may take its time.
const MANY: usize = 8;
/// Targets that are as far away, from which it pays to find out whether the hash is linear although each
/// needs few ports: that takes all paths of one.
const WORTH_LEARNING: usize = 16;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this probe.
    Send(Probe),
    /// Nothing before this time, or before an answer.
    Wait(Time),
    /// All is known.
    Done,
}

/// What a survey has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Probes that were sent.
    pub probes: u64,
    /// Probes that were answered.
    pub answers: u64,
    /// Probes that were not answered in time.
    pub lost: u64,
}

/// What an earlier survey found about a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The switches of a path.
    pub hops: Option<u8>,
    /// What each port has met that was asked.
    pub asked: BTreeMap<u16, Trace>,
    /// What others meet that were not, since the hash is linear.
    pub predicted: BTreeMap<u16, Trace>,
    /// Whether it had ended.
    pub done: bool,
}

/// What is known of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetState {
    /// How many switches a path has; `None`: not known yet.
    pub hops: Option<u8>,
    /// At which distances paths part.
    pub branches: Vec<u8>,
    /// Ports by path.
    pub paths: Vec<Path>,
    /// What each port has met.
    pub traces: BTreeMap<u16, Trace>,
    /// How likely it is at least that all paths were seen ([`crate::statistics::confidence`]).
    pub confidence: f64,
    /// Whether the hash was found to be linear ([`crate::linear`]).
    pub linear: bool,
    /// What was needed of it: no more was looked for. Empty: all paths.
    pub needs: Vec<Need>,
    /// The smallest share of all ports that would have been seen ([`smallest_share`]).
    pub smallest_share: f64,
    /// How even the paths' shares of ports are, if there are several.
    pub evenness: Option<Evenness>,
    /// Ports of an older table that were asked again, and those that now take another path.
    pub checked: u32,
    /// See `checked`.
    pub changed: u32,
    /// Whether the search has ended.
    pub done: bool,
}

impl TargetState {
    /// Whether there are as many ports as somebody needs.
    pub fn meets(&self, need: &Need) -> bool {
        let leads = |path: &&Path| need.through.iter().all(|hop| path.hops.contains(&Some(*hop)));
        let ports = |path: &Path| path.ports.len() + path.predicted.len();
        self.paths.iter().filter(leads).map(ports).sum::<usize>() >= need.ports as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    ttl: u8,
    sent: Time,
}

/// A survey of the paths from one host.
#[derive(Clone, Debug)]
pub struct Survey {
    rules: Rules,
    pace: Pace,
    searches: Vec<Search>,
    /// Probes that are out, by target and port.
    out: BTreeMap<(u32, u16), Flight>,
    seed: u64,
    /// Searches that go on side by side, and those that have not begun, in order.
    running: Vec<usize>,
    waiting: Vec<usize>,
    /// Where to look first for the next probe.
    turn: usize,
    is_begun: bool,
    first_is_known: bool,
    /// The first target of each distance.
    leaders: BTreeMap<u8, usize>,
    /// What moves nothing under a linear hash, by the length of paths: the same for all targets.
    spaces: BTreeMap<u8, Space>,
    /// What a linear hash does, by the distance.
    models: BTreeMap<u8, Arc<Model>>,
    count: Count,
}

impl Survey {
    /// Of so many targets, by source ports of `ports`, taken in an order that follows from `seed`.
    pub fn new(rules: Rules, ports: &[u16], seed: u64, targets: usize) -> Survey {
        let mut order = ports.to_vec();
        Draw::new(seed, "ports to probe").stream(0).shuffle(&mut order);
        let order: Arc<[u16]> = order.into();
        let searches = vec![Search::new(rules, order); targets];
        let pace = Pace::new(rules.interval, rules.most_hops);
        let (out, count) = (BTreeMap::new(), Count::default());
        Survey {
            rules,
            pace,
            searches,
            out,
            seed,
            running: Vec::new(),
            waiting: (0..targets).rev().collect(),
            turn: 0,
            is_begun: false,
            first_is_known: false,
            leaders: BTreeMap::new(),
            spaces: BTreeMap::new(),
            models: BTreeMap::new(),
            count,
        }
    }

    /// Paths to a target have so many switches: nobody is asked behind them, where the target itself would
    /// have to answer.
    pub fn expect(&mut self, target: u32, hops: u8) {
        self.searches[target as usize].expect(hops);
    }

    /// What is needed of a target: it is done as soon as all of that is there. Before the first
    /// [`Survey::poll`].
    pub fn need(&mut self, target: u32, needs: Vec<Need>) {
        self.searches[target as usize].need(needs);
    }

    /// What an earlier survey found about a target: goes on from there. If that survey was done, some ports of
    /// every path are asked again, others under another seed; if one of them takes another path, all of it is
    /// found out anew. Before the first [`Survey::poll`].
    pub fn restore(&mut self, target: u32, known: Known) {
        let check = known.done.then_some(self.seed);
        self.searches[target as usize].restore(known, check);
    }

    /// What to do now.
    pub fn poll(&mut self, now: Time) -> Step {
        self.expire(now);
        self.refill();
        let mut earliest = self.next_deadline();
        // Round robin: the next one after the last that sent.
        let count = self.running.len();
        let first = self.running.iter().position(|target| *target >= self.turn).unwrap_or(0);
        for place in 0..count {
            let target = self.running[(first + place) % count];
            match self.searches[target].next(now, &self.pace) {
                Next::Probe(port, ttl) => {
                    self.turn = target + 1;
                    return self.send(now, target as u32, port, ttl);
                }
                Next::At(at) => earliest = earliest.min(at),
                // Others may take its place.
                Next::Done => earliest = now,
            }
        }
        match count == 0 && self.waiting.is_empty() && self.out.is_empty() {
            true => Step::Done,
            false => Step::Wait(earliest.max(now)),
        }
    }

    /// Ends searches and begins others. The first switch is the same for all of them, and answers few probes:
    /// until one has shown that it does not depend on the port, the others wait.
    fn refill(&mut self) {
        if !self.is_begun {
            self.is_begun = true;
            self.find_leaders();
        }
        if !self.first_is_known && self.running.iter().any(|one| self.searches[*one].shows_first())
        {
            self.first_is_known = true;
            self.searches.iter_mut().for_each(Search::first_is_known);
        }
        self.learn();
        self.running.retain(|one| !self.searches[*one].is_done());
        let most = if self.first_is_known { SIDE_BY_SIDE } else { 1 };
        while self.running.len() < most
            && let Some(place) = self.waiting.iter().rposition(|one| self.may_begin(*one))
        {
            let target = self.waiting.remove(place);
            self.begin(target);
        }
        for target in &self.running {
            let search = &mut self.searches[*target];
            let Some(length) = search.length() else { continue };
            self.models.get(&length).into_iter().for_each(|model| search.offer_model(model));
            self.spaces.get(&length).into_iter().for_each(|space| search.offer(*space));
        }
    }

    /// The first target of each distance; it looks for all paths, if enough others gain by that.
    fn find_leaders(&mut self) {
        let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
        for (target, search) in self.searches.iter().enumerate() {
            let Some(length) = search.expected() else { continue };
            self.leaders.entry(length).or_insert(target);
            let is_dear = search.needs().iter().any(|need| !need.through.is_empty());
            *counts.entry(length).or_default() += usize::from(is_dear);
        }
        for (length, leader) in &self.leaders {
            self.searches[*leader].lead();
            if counts[length] >= WORTH_LEARNING {
                self.searches[*leader].need(Vec::new());
            }
        }
    }

    /// Whether nobody has to go ahead of a target.
    fn may_begin(&self, target: usize) -> bool {
        let leader = self.searches[target].expected().and_then(|length| self.leaders.get(&length));
        leader.is_none_or(|leader| *leader == target || self.searches[*leader].is_done())
    }

    fn begin(&mut self, target: usize) {
        let expected = self.searches[target].expected();
        if let Some(length) = expected
            && let Some(leader) = self.leaders.get(&length).copied()
            && leader != target
            && self.searches[leader].length() == expected
        {
            let others = self.searches.get_disjoint_mut([leader, target]);
            let [leader, search] = others.expect("two of them");
            search.parted(leader.branches());
            if self.models.contains_key(&length) || !search.needs().is_empty() {
                search.begin_like(leader);
            }
        }
        if self.searches.len() >= MANY {
            self.searches[target].is_of_many();
        }
        self.running.push(target);
        self.running.sort_unstable();
    }

    /// What running searches have shown of a linear hash.
    fn learn(&mut self) {
        for target in &self.running {
            let search = &self.searches[*target];
            let Some(length) = search.length() else { continue };
            if let Some(space) = search.space() {
                self.spaces.entry(length).or_insert(space);
            }
            if !self.models.contains_key(&length)
                && let Some(model) = search.shown_model()
            {
                self.models.insert(length, Arc::new(model));
            }
        }
    }

    fn send(&mut self, now: Time, target: u32, port: u16, ttl: u8) -> Step {
        self.pace.sent(now, ttl);
        self.searches[target as usize].sent(port);
        self.out.insert((target, port), Flight { ttl, sent: now });
        self.count.probes += 1;
        Step::Send(Probe { target, port, ttl })
    }

    fn next_deadline(&self) -> Time {
        let sent = self.out.values().map(|flight| flight.sent).min();
        sent.map_or(Time::MAX, |sent| sent.saturating_add(self.rules.time_out))
    }

    /// Probes whose answers do not come any more.
    fn expire(&mut self, now: Time) {
        let late = |flight: &Flight| flight.sent.saturating_add(self.rules.time_out) <= now;
        let lost: Vec<_> =
            self.out.iter().filter(|(_, flight)| late(flight)).map(|(k, v)| (*k, *v)).collect();
        for ((target, port), Flight { ttl, sent }) in lost {
            self.out.remove(&(target, port));
            self.count.lost += 1;
            let search = &mut self.searches[target as usize];
            self.pace.lost(now, ttl, sent, search.is_first_try(port));
            if search.lost(now, port, ttl) {
                self.pace.silent(ttl);
            }
        }
    }

    /// A probe was answered, perhaps too late.
    pub fn answered(&mut self, probe: Probe, reply: Reply) {
        let Probe { target, port, ttl } = probe;
        let flight = self.out.get(&(target, port)).filter(|flight| flight.ttl == ttl);
        let in_time = flight.is_some();
        if in_time {
            self.out.remove(&(target, port));
            let is_first = self.searches[target as usize].is_first_try(port);
            self.pace.answered(ttl, is_first);
        }
        let Some(search) = self.searches.get_mut(target as usize) else { return };
        if search.answered(port, ttl, reply, in_time) || in_time {
            self.count.answers += 1;
        }
    }

    /// This host cannot send to a target from a port: somebody else has it.
    pub fn refused(&mut self, probe: Probe) {
        let Probe { target, port, ttl } = probe;
        if self.out.remove(&(target, port)).is_some() {
            self.pace.unsent(ttl);
            self.count.probes -= 1;
        }
        self.searches[target as usize].refuse(port);
    }

    /// What it has cost so far.
    pub fn count(&self) -> Count {
        self.count
    }

    /// How many targets are done.
    pub fn done(&self) -> usize {
        self.searches.iter().filter(|search| search.is_done()).count()
    }

    /// What is known of a target.
    pub fn state(&self, target: u32) -> TargetState {
        let search = &self.searches[target as usize];
        let paths = search.all_paths();
        // Only what was asked is a sample; of few ports of a linear hash there is none.
        let counts = search.asked_counts();
        let ports = search.traces().len() as u32;
        TargetState {
            hops: search.length(),
            branches: search.branches().to_vec(),
            confidence: search.confidence(),
            linear: search.is_linear(),
            needs: search.needs().to_vec(),
            smallest_share: smallest_share(ports, self.rules.unseen),
            evenness: evenness(&counts),
            paths,
            traces: search.traces().clone(),
            checked: search.checked,
            changed: search.changed,
            done: search.is_done(),
        }
    }

    /// All addresses of switches that have answered.
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        let mut all: Vec<_> = self.searches.iter().flat_map(Search::addresses).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
