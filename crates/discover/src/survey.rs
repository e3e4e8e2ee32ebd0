//! A survey: the searches of one host towards all of its targets, at one pace.

use crate::linear::Space;
use crate::pace::Pace;
use crate::search::{Next, Search};
use crate::statistics::{Evenness, evenness, smallest_share};
use crate::trace::{Path, Trace};
use crate::{Probe, Reply, Rules};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use weft_units::{Draw, Time};

/// Targets that are searched side by side: each needs sockets of its own.
const SIDE_BY_SIDE: usize = 64;

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
    /// Where to look first for the next probe.
    turn: usize,
    first_is_known: bool,
    /// What moves nothing under a linear hash, by the length of paths: the same for all targets.
    spaces: BTreeMap<u8, Space>,
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
            turn: 0,
            first_is_known: false,
            spaces: BTreeMap::new(),
            count,
        }
    }

    /// Paths to a target have so many switches: nobody is asked behind them, where the target itself would
    /// have to answer.
    pub fn expect(&mut self, target: u32, hops: u8) {
        self.searches[target as usize].expect(hops);
    }

    /// What an earlier survey found about a target: goes on from there. With `check` that survey was done,
    /// and some ports of every path are asked again, others under another seed; if one of them takes
    /// another path, all of it is found out anew. `hops` are the switches of a path. Before the first
    /// [`Survey::poll`].
    pub fn restore(
        &mut self,
        target: u32,
        hops: Option<u8>,
        known: BTreeMap<u16, Trace>,
        check: bool,
    ) {
        self.searches[target as usize].restore(hops, known, check.then_some(self.seed));
    }

    /// What to do now.
    pub fn poll(&mut self, now: Time) -> Step {
        self.expire(now);
        let mut earliest = self.next_deadline();
        let active = self.active();
        // Round robin: the next one after the last that sent.
        let first = active.iter().position(|target| *target >= self.turn).unwrap_or(0);
        for target in active[first..].iter().chain(&active[..first]).copied() {
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
        match self.searches.iter().all(Search::is_done) && self.out.is_empty() {
            true => Step::Done,
            false => Step::Wait(earliest.max(now)),
        }
    }

    /// The searches that go on side by side. The first switch is the same for all of them, and answers few
    /// probes: until one has shown that it does not depend on the port, the others wait.
    fn active(&mut self) -> Vec<usize> {
        if !self.first_is_known && self.searches.iter().any(Search::shows_first) {
            self.first_is_known = true;
            self.searches.iter_mut().for_each(Search::first_is_known);
        }
        for search in &mut self.searches {
            let Some(length) = search.length() else { continue };
            match (self.spaces.get(&length), search.space()) {
                (None, Some(space)) => drop(self.spaces.insert(length, space)),
                (Some(space), None) => search.offer(*space),
                _ => {}
            }
        }
        let most = if self.first_is_known { SIDE_BY_SIDE } else { 1 };
        let open = (0..self.searches.len()).filter(|target| !self.searches[*target].is_done());
        open.take(most).collect()
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
        let counts: Vec<u32> = paths.iter().map(|path| path.ports.len() as u32).collect();
        let ports = search.traces().len() as u32;
        TargetState {
            hops: search.length(),
            branches: search.branches().to_vec(),
            confidence: search.confidence(),
            linear: search.space().is_some(),
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
