//! Failures of links over time, as data (McClure et al. 2025, section 4; Ethereal 2025, section 4): links that
//! lose part of their bandwidth, flaky links that lose packets in bursts, and dead links of which
//! routing learns late. A switch fails as all of its links.
//!
//! [`Failures`] resolves what an experiment says into what an engine asks for: the rates of
//! links over time ([`Failures::rate_changes`]), what is lost on the wire
//! ([`Failures::losses`]), and which links routing knows to be dead ([`Failures::detected`],
//! the input of [`crate::Detours`]).
//!
//! Invariant: a pure function of fabric, failures and seed. Nothing here keeps the time: an
//! engine goes through the lists by its own clock.

mod choice;
mod loss;

pub use choice::{Direction, Groups, LinkChoice, Pick, Tier};
pub use loss::{Bursts, Interval, Losses};

use crate::{Fabric, FabricError, Node, Shape};
use loss::Rhythm;
use std::collections::{BTreeMap, BTreeSet};
use weft_units::{Draw, IdVec, PortId, Rate, Time};

/// What is wrong with a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailureKind {
    /// The link is slower: a link aggregation group that lost members.
    Degraded {
        /// The share of the bandwidth that is lost, above 0 and below 1, counted in
        /// billionths. (The study's own simulator names the share that is kept.)
        lost: f64,
    },
    /// The link loses everything on its wire in bursts.
    Flaky {
        /// From the start of one burst to the start of the next, in the mean: bursts are a
        /// Poisson process.
        every: Time,
        /// The mean length of a burst, exponentially distributed.
        length: Time,
        /// Bursts start exactly `every` apart instead, the first within the first `every`: the
        /// study's own simulator.
        regular: bool,
    },
    /// The link loses everything.
    Down {
        /// After this time routing knows, both that the link died and that it is back; an
        /// outage that is shorter goes unnoticed. Until then switches go on sending into it
        /// (Ethereal 2025, section 4: 100 ms). `None`: routing never learns of it.
        detect: Option<Time>,
        /// What becomes of what switches have for the link.
        queued: Queued,
        /// Hosts know from the start what routing knew by then ([`Failures::known_since`]), as under
        /// a plan. If not, who chooses paths finds out by time-outs.
        hosts_know: bool,
    },
}

/// What becomes of the packets that a switch has for a dead link. NICs keep their pace either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queued {
    /// The port goes on at its rate: they hold memory until they leave, and are lost on the wire.
    #[default]
    Drains,
    /// The port throws away what waits when the link dies, and all that comes while it is dead
    /// (the code of Ethereal (2025)).
    Lost,
}

/// Some links, what is wrong with them, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The links that fail.
    pub links: LinkChoice,
    /// What is wrong with them.
    pub kind: FailureKind,
    /// When it begins.
    pub start: Time,
    /// Until, not including, this time; [`Time::MAX`]: for ever.
    pub end: Time,
}

impl Failure {
    fn validate(&self) -> Result<(), FabricError> {
        let Failure { start, end, .. } = self;
        if start >= end {
            return Err(FabricError(format!(
                "a failure from {start} to {end} never happens: let it end later than it starts"
            )));
        }
        match self.kind {
            FailureKind::Degraded { lost } if !(1e-9..=1.0 - 1e-9).contains(&lost) => {
                Err(FabricError(format!(
                    "a degraded link cannot lose {lost} of its bandwidth: use a share above 0 and \
                     below 1, or a link that is down"
                )))
            }
            FailureKind::Flaky { every, length, .. } if every.min(length) == Time::ZERO => {
                Err(FabricError(format!(
                    "a flaky link cannot have bursts of {length} every {every}: use at least 1ps"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether routing can go around it, which takes tables.
    ///
    /// # Errors
    /// If they would be too large; says what to do.
    pub fn check_routes(&self, fabric: &Fabric) -> Result<(), FabricError> {
        let Shape::Wiring(wiring) = fabric.shape() else { return Ok(()) };
        match self.kind {
            FailureKind::Down { detect: Some(_), .. } if !wiring.fits_in_tables() => {
                Err(FabricError(format!(
                    "ways around dead links of {} switches are too many to keep: use \"never\", or \
                     fewer switches",
                    fabric.switches()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether it leaves hosts a way to come back, if it takes whole switches. Who names the
    /// link of a host means that host, and is not asked.
    fn check_hosts(&self, fabric: &Fabric, ports: &[PortId]) -> Result<(), FabricError> {
        let is_for_ever = matches!(self.kind, FailureKind::Down { .. }) && self.end == Time::MAX;
        let host = |id: &PortId| match fabric.ports()[*id].owner {
            Node::Host(host) => Some(host.0),
            Node::Switch(_) => None,
        };
        let mut nics: Vec<u32> = ports.iter().filter_map(host).collect();
        // A host is cut off when all its ports are.
        nics.sort_unstable();
        let each = fabric.nic_ports() as usize;
        let cuts_off = nics.chunk_by(|a, b| a == b).any(|one| one.len() == each);
        if is_for_ever && self.links.is_of_switches() && cuts_off {
            return Err(FabricError(
                "a leaf that stays down cuts off its hosts for ever: let it come back".into(),
            ));
        }
        Ok(())
    }
}

/// One failure of one link.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: FailureKind,
    start: Time,
    end: Time,
}

/// From some time on a link has another rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateChange {
    /// The time at which it happens.
    pub at: Time,
    /// The port that sends into the link.
    pub port: PortId,
    /// Its rate from then on.
    pub rate: Rate,
}

/// At some time a switch throws away what waits at one of its ports, and takes nothing for it
/// until later: its link is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flush {
    /// The time at which it happens.
    pub at: Time,
    /// The port that sends into the link.
    pub port: PortId,
    /// Until, not including, this time.
    pub until: Time,
}

/// From some time on routing knows that these links, and no others, are dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The time at which it happens.
    pub at: Time,
    /// Ports that feed dead links, sorted.
    pub dead: Vec<PortId>,
}

/// All failures of one run, by link.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    seed: u64,
    ports: BTreeMap<PortId, Vec<Entry>>,
}

impl Failures {
    /// Resolves `failures`. Each draws its links for itself: two that ask for random links may
    /// hit different ones.
    ///
    /// # Errors
    /// As [`LinkChoice::resolve`]; or if a failure ends before it starts, a lost share is not
    /// between 0 and 1, bursts take no time, or a leaf never comes back.
    pub fn new(fabric: &Fabric, failures: &[Failure], seed: u64) -> Result<Failures, FabricError> {
        let mut ports: BTreeMap<PortId, Vec<Entry>> = BTreeMap::new();
        for (index, failure) in failures.iter().enumerate() {
            failure.validate()?;
            failure.check_routes(fabric)?;
            let links_seed = Draw::new(seed, "failure").at(index as u64, 0);
            let resolved = failure.links.resolve(fabric, links_seed)?;
            failure.check_hosts(fabric, &resolved)?;
            for port in resolved {
                let Failure { kind, start, end, .. } = *failure;
                ports.entry(port).or_default().push(Entry { kind, start, end });
            }
        }
        Ok(Failures { seed, ports })
    }

    /// Whether nothing fails.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// The links that fail in any way, at any time: sorted.
    pub fn ports(&self) -> impl Iterator<Item = PortId> {
        self.ports.keys().copied()
    }

    fn entries(&self, port: PortId) -> &[Entry] {
        self.ports.get(&port).map_or(&[], Vec::as_slice)
    }

    /// All that is ever wrong with `port`: what, from when, and until when ([`Time::MAX`]: for ever).
    pub fn of(&self, port: PortId) -> impl Iterator<Item = (FailureKind, Time, Time)> {
        self.entries(port).iter().map(|entry| (entry.kind, entry.start, entry.end))
    }

    /// The bursts of each flaky failure of `port`.
    pub fn bursts(&self, port: PortId) -> impl Iterator<Item = Bursts> {
        let flaky = self.entries(port).iter().filter_map(|entry| match entry.kind {
            FailureKind::Flaky { every, length, regular } => {
                Some((Rhythm { every, length, regular }, (entry.start, entry.end)))
            }
            _ => None,
        });
        let by_index = flaky.enumerate();
        by_index.map(move |(index, (rhythm, interval))| {
            Bursts::new(rhythm, interval, (self.seed, port, index as u64))
        })
    }

    /// What is lost on the wire behind `port`; `None` if nothing ever is.
    pub fn losses(&self, port: PortId) -> Option<Losses> {
        let mut losses = Losses::default();
        let mut any = false;
        for bursts in self.bursts(port) {
            losses.add_flaky(bursts);
            any = true;
        }
        for entry in self.entries(port) {
            if let FailureKind::Down { .. } = entry.kind {
                losses.add_dead((entry.start, entry.end));
                any = true;
            }
        }
        any.then_some(losses)
    }

    /// What `port` carries at `at`, in bits per second: its line rate, less where it is
    /// degraded, nothing while it is down. The bursts of a flaky link are not counted.
    pub fn capacity(&self, fabric: &Fabric, port: PortId, at: Time) -> u64 {
        match self.is_down(port, at) {
            true => 0,
            false => self.rate(fabric, port, at).as_bps(),
        }
    }

    /// The same of every port.
    pub fn capacities(&self, fabric: &Fabric, at: Time) -> IdVec<PortId, u64> {
        fabric.ports().ids().map(|port| self.capacity(fabric, port, at)).collect()
    }

    /// [`Failures::capacities`] at time zero and at every later one with some that no earlier time had.
    pub fn different_capacities(
        &self,
        fabric: &Fabric,
    ) -> impl Iterator<Item = (Time, IdVec<PortId, u64>)> {
        let mut times = BTreeSet::from([Time::ZERO]);
        times.extend(self.ports().flat_map(|port| self.turning_points(port)));
        let mut seen = Vec::new();
        times.into_iter().filter_map(move |at| {
            let capacities = self.capacities(fabric, at);
            let is_new = !seen.contains(&capacities);
            is_new.then(|| {
                seen.push(capacities.clone());
                (at, capacities)
            })
        })
    }

    /// Whether the link behind `port` is dead at `at`.
    pub fn is_down(&self, port: PortId, at: Time) -> bool {
        self.present(port, at).any(|entry| matches!(entry.kind, FailureKind::Down { .. }))
    }

    /// The links that are dead at `at`, in words, one of two directions for both:
    /// `leaf-0 <-> spine-1`, or `leaf-0 -> spine-1` where only that direction is.
    pub fn down_links(&self, fabric: &Fabric, at: Time) -> Vec<String> {
        let links = self.ports().filter(|port| self.is_down(*port, at)).filter_map(|port| {
            let back = fabric.ports()[port].reverse;
            let name = fabric.port_name(port);
            match self.is_down(back, at) {
                true if back < port => None,
                true => Some(name.replace(" -> ", " <-> ")),
                false => Some(name),
            }
        });
        links.collect()
    }

    /// The times, sorted, at which [`Failures::capacity`] of `port` may change.
    pub fn turning_points(&self, port: PortId) -> BTreeSet<Time> {
        let lasting =
            self.entries(port).iter().filter(|e| !matches!(e.kind, FailureKind::Flaky { .. }));
        lasting.flat_map(|entry| [entry.start, entry.end]).filter(|at| *at < Time::MAX).collect()
    }

    /// The rate of `port` at `at`: its line rate, less where it is degraded. A link that is down
    /// keeps its rate, and loses what is sent.
    pub fn rate(&self, fabric: &Fabric, port: PortId, at: Time) -> Rate {
        let line = fabric.ports()[port].rate;
        self.present(port, at).fold(line, |rate, entry| entry.kind.left_of(rate))
    }

    /// The lowest rate that `port` ever has.
    pub fn lowest_rate(&self, fabric: &Fabric, port: PortId) -> Rate {
        let starts = self.entries(port).iter().map(|entry| entry.start);
        let rates = starts.map(|at| self.rate(fabric, port, at));
        rates.fold(fabric.ports()[port].rate, Rate::min)
    }

    /// What is wrong with `port` at `at`.
    fn present(&self, port: PortId, at: Time) -> impl Iterator<Item = &Entry> {
        self.entries(port).iter().filter(move |entry| entry.start <= at && at < entry.end)
    }

    /// All changes of rates, sorted by time, then port. A link keeps its line rate until the
    /// first; where degradations overlap, each takes its share of what the others leave.
    /// Rates are rounded down to bits per second, to one at least.
    pub fn rate_changes(&self, fabric: &Fabric) -> Vec<RateChange> {
        let mut changes = Vec::new();
        for (&port, entries) in &self.ports {
            let line = fabric.ports()[port].rate;
            let degraded: Vec<&Entry> =
                entries.iter().filter(|e| matches!(e.kind, FailureKind::Degraded { .. })).collect();
            let edges: BTreeSet<Time> = degraded.iter().flat_map(|e| [e.start, e.end]).collect();
            let mut before = line;
            for at in edges.into_iter().filter(|at| *at < Time::MAX) {
                let now = degraded.iter().filter(|e| e.start <= at && at < e.end);
                let rate = now.fold(line, |rate, entry| entry.kind.left_of(rate));
                if rate != before {
                    changes.push(RateChange { at, port, rate });
                }
                before = rate;
            }
        }
        changes.sort_unstable();
        changes
    }

    /// When queues are thrown away ([`Queued::Lost`]), sorted by time, then port.
    pub fn flushes(&self, fabric: &Fabric) -> Vec<Flush> {
        let all = self.ports.iter().flat_map(|(&port, entries)| {
            let of_switch = matches!(fabric.ports()[port].owner, Node::Switch(_));
            let lost = move |entry: &&Entry| {
                of_switch && matches!(entry.kind, FailureKind::Down { queued: Queued::Lost, .. })
            };
            let flush = move |entry: &Entry| Flush { at: entry.start, port, until: entry.end };
            entries.iter().filter(lost).map(flush)
        });
        let mut all: Vec<Flush> = all.collect();
        all.sort_unstable();
        all
    }

    /// When routing's knowledge of dead links changes, sorted by time, each with all links
    /// that are known to be dead from then on.
    pub fn detected(&self) -> Vec<Detected> {
        // At each time: ports with the number of outages that become known less those over.
        let mut edges: BTreeMap<Time, Vec<(PortId, i32)>> = BTreeMap::new();
        for (&port, entries) in &self.ports {
            for (from, until) in entries.iter().filter_map(Entry::known) {
                edges.entry(from).or_default().push((port, 1));
                edges.entry(until).or_default().push((port, -1));
            }
        }
        edges.remove(&Time::MAX);
        let mut outages: BTreeMap<PortId, i32> = BTreeMap::new();
        let mut list: Vec<Detected> = Vec::new();
        for (at, changes) in edges {
            for (port, change) in changes {
                *outages.entry(port).or_default() += change;
            }
            outages.retain(|_, count| *count > 0);
            let dead: Vec<PortId> = outages.keys().copied().collect();
            if list.last().map_or(&[][..], |last| &last.dead) != dead {
                list.push(Detected { at, dead });
            }
        }
        list
    }

    /// Links, sorted, that routing takes for dead at `since`, at `at` and all the time between, of failures of
    /// which hosts know: what hosts that begin at `since` know at `at`.
    pub fn known_since(&self, since: Time, at: Time) -> Vec<PortId> {
        let knows = |entry: &Entry| {
            let told = matches!(entry.kind, FailureKind::Down { hosts_know: true, .. });
            let known = |(from, until)| from <= since.min(at) && since.max(at) < until;
            told && entry.known().is_some_and(known)
        };
        let told = self.ports.iter().filter(|(_, entries)| entries.iter().any(knows));
        told.map(|(port, _)| *port).collect()
    }
}

impl Entry {
    /// From when until when routing takes the link for dead.
    fn known(&self) -> Option<Interval> {
        let FailureKind::Down { detect: Some(detect), .. } = self.kind else { return None };
        let known = self.start.saturating_add(detect);
        (known < self.end).then(|| (known, self.end.saturating_add(detect)))
    }
}

impl FailureKind {
    /// A dead link, of which routing learns after `detect`, if ever; queues drain into it, and hosts
    /// know what routing knows when they begin.
    pub const fn down(detect: Option<Time>) -> FailureKind {
        FailureKind::Down { detect, queued: Queued::Drains, hosts_know: true }
    }
    /// What is left of `rate`.
    fn left_of(self, rate: Rate) -> Rate {
        let FailureKind::Degraded { lost } = self else { return rate };
        // In billionths, because the nearest binary fraction to 0.9 would leave 9.999999999 of
        // 100 Gb/s.
        const WHOLE: u64 = 1_000_000_000;
        let left = WHOLE - (lost * WHOLE as f64 + 0.5) as u64;
        let bits = u128::from(rate.as_bps()) * u128::from(left) / u128::from(WHOLE);
        Rate::bps((bits as u64).max(1))
    }
}
