//! Samples of queues, buffers and goodput.

use crate::config::{ProbeConfig, RunConfig};
use crate::outcome::Series;
use crate::partition::{OutPort, OwnSwitch, Partitioning};
use weft_units::Time;

/// The probes of one partition, and their samples.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    interval: Option<Time>,
    /// By their places among all series of the run.
    probes: Vec<(usize, Probe, Series)>,
    /// How often this partition has sampled, and how many probes all partitions have.
    rounds: usize,
    everywhere: usize,
    /// Some other partition has something to do.
    pub(crate) others_unfinished: bool,
}

/// Where bytes wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    Port(OutPort),
    Switch(OwnSwitch),
}

/// What is sampled.
#[derive(Clone, Copy, Debug)]
enum Probe {
    Queue(Queue),
    /// Payload that hosts of this partition received for the first time, and how much of it had been
    /// there at the last sample. All partitions have one, at the same place.
    Goodput(u64),
}

/// Half a gigabyte of samples, in all partitions.
pub const MOST_SAMPLES: usize = 1 << 26;

impl Probes {
    /// Those of `config` that look at partition `own`.
    pub(crate) fn new(config: &RunConfig, partitioning: &Partitioning, own: u16) -> Probes {
        let ports = config.probes.ports.iter().map(|port| {
            let place = partitioning.ports[*port];
            (place.partition, Probe::Queue(Queue::Port(place.own)))
        });
        let switches = config.probes.switches.iter().map(|switch| {
            let place = partitioning.switches[*switch];
            (place.partition, Probe::Queue(Queue::Switch(place.own)))
        });
        let goodput = config.probes.goodput.then_some((own, Probe::Goodput(0)));
        let all = ports.chain(switches).chain(goodput).enumerate();
        let here = all.filter(|(_, (partition, _))| *partition == own);
        Probes {
            interval: config.probes.interval,
            probes: here.map(|(at, (_, probe))| (at, probe, Series::default())).collect(),
            rounds: 0,
            everywhere: config.probes.series(),
            others_unfinished: partitioning.partitions.len() > 1,
        }
    }
    /// Whether there is anything to sample here.
    pub(crate) fn are_any(&self) -> bool {
        self.interval.is_some() && !self.probes.is_empty()
    }
    /// Samples all, where so much payload was `received` and `bytes` says what waits elsewhere.
    pub(crate) fn sample(&mut self, received: u64, bytes: impl Fn(Queue) -> u64) {
        for (_, probe, series) in &mut self.probes {
            series.bytes.push(match probe {
                Probe::Goodput(before) => received - std::mem::replace(before, received),
                Probe::Queue(queue) => bytes(*queue),
            });
        }
        self.rounds += 1;
    }
    /// When to sample next, after `now`, if it goes on.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        self.interval.filter(|_| !self.are_too_many()).map(|interval| now + interval)
    }
    pub(crate) fn are_too_many(&self) -> bool {
        self.rounds * self.everywhere > MOST_SAMPLES
    }
    /// The samples, by their places among all series of the run.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (usize, Series)> {
        std::mem::take(&mut self.probes).into_iter().map(|(at, _, series)| (at, series))
    }
}

/// Samples that a run takes whose last message is acknowledged at `end`: one each interval from
/// time zero on, the last one at `end` or the first time after it. A partition may take more,
/// since it hears of the end late.
pub(crate) fn samples_until(end: Time, interval: Time) -> usize {
    end.0.div_ceil(interval.0) as usize + 1
}

impl ProbeConfig {
    /// How many series there are in all.
    pub(crate) fn series(&self) -> usize {
        self.ports.len() + self.switches.len() + usize::from(self.goodput)
    }
}
