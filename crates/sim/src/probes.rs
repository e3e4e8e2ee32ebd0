//! Samples of queues, buffers, what ports send, and goodput.

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

/// What can be read at any time, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gauge {
    /// In the queue of a port.
    Queue(OutPort),
    /// In the memory of a switch.
    Memory(OwnSwitch),
    /// What a port has sent so far.
    Sent(OutPort),
    /// Payload that hosts of this partition have received for the first time so far. All partitions
    /// have one, at the same place.
    Received,
}

/// A gauge, and of those that only grow what they showed at the last sample: what comes between is
/// sampled.
#[derive(Clone, Copy, Debug)]
struct Probe {
    gauge: Gauge,
    before: Option<u64>,
}

/// Half a gigabyte of samples, in all partitions.
pub const MOST_SAMPLES: usize = 1 << 26;

impl Probes {
    /// Those of `config` that look at partition `own`.
    pub(crate) fn new(config: &RunConfig, partitioning: &Partitioning, own: u16) -> Probes {
        let ports = config.probes.ports.iter().map(|port| {
            let place = partitioning.ports[*port];
            (place.partition, Probe::level(Gauge::Queue(place.own)))
        });
        let switches = config.probes.switches.iter().map(|switch| {
            let place = partitioning.switches[*switch];
            (place.partition, Probe::level(Gauge::Memory(place.own)))
        });
        let sent = config.probes.sent.iter().map(|port| {
            let place = partitioning.ports[*port];
            (place.partition, Probe::growth(Gauge::Sent(place.own)))
        });
        let goodput = config.probes.goodput.then_some((own, Probe::growth(Gauge::Received)));
        let all = ports.chain(switches).chain(sent).chain(goodput).enumerate();
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
    /// Samples all; `read` says what a gauge shows.
    pub(crate) fn sample(&mut self, read: impl Fn(Gauge) -> u64) {
        for (_, Probe { gauge, before }, series) in &mut self.probes {
            let shown = read(*gauge);
            series.bytes.push(match before {
                None => shown,
                // Where a rate rises, the packet in service seems longer than it is.
                Some(before) => shown.saturating_sub(std::mem::replace(before, shown.max(*before))),
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

impl Probe {
    fn level(gauge: Gauge) -> Probe {
        Probe { gauge, before: None }
    }
    fn growth(gauge: Gauge) -> Probe {
        Probe { gauge, before: Some(0) }
    }
}

impl ProbeConfig {
    /// How many series there are in all.
    pub fn series(&self) -> usize {
        let ProbeConfig { ports, switches, sent, goodput, .. } = self;
        ports.len() + switches.len() + sent.len() + usize::from(*goodput)
    }
}
