//! Samples of queues, buffers and goodput.

use crate::config::{ProbeConfig, RunConfig};
use crate::engine::Engine;
use crate::event::{Class, Event};
use crate::outcome::Series;
use crate::partition::{OutPort, OwnSwitch, Partitioning};
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_units::Time;

/// The probes of one partition, and their samples.
#[derive(Debug)]
pub(crate) struct Probes {
    interval: Option<Time>,
    /// By their places among all series of the run.
    probes: Vec<(usize, Probe, Series)>,
    /// How often this partition has sampled, and how many probes all partitions have.
    rounds: usize,
    everywhere: usize,
}

/// What is sampled.
#[derive(Clone, Copy, Debug)]
enum Probe {
    Port(OutPort),
    Switch(OwnSwitch),
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
            (place.partition, Probe::Port(place.own))
        });
        let switches = config.probes.switches.iter().map(|switch| {
            let place = partitioning.switches[*switch];
            (place.partition, Probe::Switch(place.own))
        });
        let goodput = config.probes.goodput.then_some((own, Probe::Goodput(0)));
        let all = ports.chain(switches).chain(goodput).enumerate();
        let here = all.filter(|(_, (partition, _))| *partition == own);
        Probes {
            interval: config.probes.interval,
            probes: here.map(|(at, (_, probe))| (at, probe, Series::default())).collect(),
            rounds: 0,
            everywhere: config.probes.series(),
        }
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

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Payload that hosts of this partition have received for the first time.
    fn goodput(&self) -> u64 {
        let headers = self.accepted.packets * u64::from(self.config.packet.header);
        self.accepted.bytes - headers
    }

    /// Begins to sample, if there is anything to sample here.
    pub(crate) fn start_probes(&mut self) {
        if self.probes.interval.is_some() && !self.probes.probes.is_empty() {
            self.agenda.push(Event::new(Time::ZERO, Class::Sample, 0));
        }
    }

    /// Samples the probes, and comes back while there is something left to do.
    #[cold]
    pub(crate) fn sample(&mut self) {
        let mut probes = std::mem::take(&mut self.probes.probes);
        let received = self.goodput();
        for (_, probe, series) in &mut probes {
            series.bytes.push(match probe {
                Probe::Goodput(before) => received - std::mem::replace(before, received),
                Probe::Port(port) => self.ports.queued_bytes(self.now, *port),
                Probe::Switch(switch) => self.buffered_bytes(*switch),
            });
        }
        self.probes.probes = probes;
        self.probes.rounds += 1;
        // Not counted: several partitions with probes sample more often than one with all of them.
        self.totals.events -= 1;
        let unfinished = self.is_unfinished() || self.others_unfinished;
        if let Some(interval) = self.probes.interval
            && unfinished
            && !self.probes.are_too_many()
        {
            self.agenda.push(Event::new(self.now + interval, Class::Sample, 0));
        }
    }
}
