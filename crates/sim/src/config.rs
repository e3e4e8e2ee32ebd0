//! What a run is made of. Everything is resolved: no unit to parse, nothing left to default.

pub use weft_fabric::devices::*;

use weft_balance::enforce::{Enforce, Hashing};
use weft_balance::known::Known;
use weft_balance::plan::{Carrier, Subflow};
use weft_balance::scheme::BalanceConfig;
use weft_fabric::{Fabric, Failures, Port, Relays};
use weft_transport::TransportConfig;
use weft_units::{HostId, IdVec, MessageId, PortId, Rate, SwitchId, Time};
use weft_workload::Workload;
use weft_workload::job::Job;

/// One run.
#[derive(Clone, Debug)]
pub struct RunConfig<'a> {
    /// The network. Every link has a delay: without one, an event could cause another at the
    /// same instant elsewhere, and the kinds of port would not agree on which comes first.
    pub fabric: &'a Fabric,
    /// The traffic.
    pub workload: &'a Workload,
    /// Ranks at work, instead of other traffic.
    pub job: Option<JobConfig<'a>>,
    /// How switches queue, mark, pause and drop.
    pub switch: SwitchConfig,
    /// Packet sizes.
    pub packet: PacketConfig,
    /// Whose turn it is at a NIC.
    pub service: Service,
    /// Congestion control and loss recovery.
    pub transport: TransportConfig,
    /// When queue pairs that send at a rate do so.
    pub pacing: Pacing,
    /// The load balancer.
    pub balance: BalanceConfig,
    /// Which links fail, how and when.
    pub failures: Failures,
    /// What to sample while running.
    pub probes: ProbeConfig,
    /// All randomness follows from it.
    pub seed: u64,
    /// Give up when queue pairs have waited for so long, in simulated time, without any message
    /// posted or new byte delivered. Choose it above the time-out of the transport: a loss costs
    /// that much.
    pub stall_after: Time,
    /// Give up when so many data packets have been sent, by all hosts together, without any message
    /// posted or new byte delivered, and the fabric will not change any more.
    pub stall_packets: u64,
    /// Ports as queues even where plain FIFO ports would do (to test one against the other).
    pub force_queues: bool,
    /// Switches and leaves' hosts handle their events one after the other, a link's delay at a time,
    /// if a switch's ports together can send so many full packets in it; else all events are handled
    /// in the order of time. The outcome is the same. Usually [`RunConfig::LEAST_IN_WINDOW`].
    pub least_in_window: u32,
    /// Count again at the far end of every link, to check conservation. Costs speed.
    pub audit: bool,
}

impl RunConfig<'_> {
    /// Where fewer packets share a window, what it costs is not made up for.
    pub const LEAST_IN_WINDOW: u32 = 16;

    /// A port as it is when the run begins: slower if its link is degraded from the start.
    pub(crate) fn port_at_start(&self, id: PortId) -> Port {
        let rate = self.failures.rate(self.fabric, id, Time::ZERO);
        Port { rate, ..self.fabric.ports()[id] }
    }
    /// What switches hash with, if that is a function that others know.
    pub fn hashing(&self) -> Option<Hashing> {
        let (seed, same_salt) = (self.seed, self.switch.same_salt);
        self.switch.hash.map(|function| Hashing { function, seed, same_salt })
    }
    /// When the traffic begins: its first message, or its first job.
    fn begins(&self) -> Time {
        let (workload, jobs) = (self.workload, self.job.iter().flat_map(|ranks| ranks.jobs));
        let first = |id: &MessageId| workload.dependencies(*id).is_empty();
        let messages = workload.messages().ids().filter(first);
        let messages = messages.map(|id| workload.messages()[id].start);
        let nodes = jobs.flat_map(|job| &job.trace().graphs).flat_map(|graph| graph.nodes());
        messages.chain(nodes.map(|node| node.start)).min().unwrap_or(Time::ZERO)
    }
    /// What hosts are told at `at`, where routing knows `dead` links, sorted: under schemes that ask, all of it; under others
    /// that choose paths, those links that were known to be dead when the traffic began, as long as they are.
    pub fn known(&self, at: Time, dead: &[PortId]) -> Known {
        let RunConfig { fabric, failures, .. } = self;
        let scheme = &self.balance.scheme;
        let told = match scheme.info().informed {
            true => Vec::new(),
            false => failures.known_since(self.begins(), at),
        };
        let dead: &[PortId] = if scheme.info().informed { dead } else { &told };
        Known::new(fabric, scheme, |port| match dead.binary_search(&port) {
            Ok(_) => 0,
            Err(_) => failures.rate(fabric, port, at).as_bps(),
        })
    }
    /// Whether the source port of a packet says which path its host has chosen.
    pub(crate) fn pins_by_port(&self) -> bool {
        let enforce = self.balance.scheme.enforce();
        matches!(enforce, Some(Enforce::Segments | Enforce::Hash | Enforce::Discovered))
    }
    /// Whether packets between leaves have tags.
    pub(crate) fn tags(&self) -> bool {
        !self.balance.scheme.info().tor.is_none()
    }
}

/// Jobs and where their ranks are. Ranks are numbered through: first those of the first job.
#[derive(Clone, Debug)]
pub struct JobConfig<'a> {
    /// What the ranks do.
    pub jobs: &'a [Job],
    /// The host of each rank: its NIC, which several ranks may share.
    pub hosts: Vec<HostId>,
    /// The server of each rank. Ranks of one host are in one server; ranks of one server talk
    /// over its scale-up links and not over the fabric.
    pub servers: Vec<u32>,
    /// Between ranks of one server.
    pub scale_up: ScaleUp,
    /// GPUs that pass on messages between rails; `None`: every rank sends by its own NIC to that of the receiver.
    pub relays: Option<Relays>,
    /// What a rank's packets leave at, on all its queue pairs together: the way from a GPU to its
    /// NIC. `None`: the NIC alone decides.
    pub pcie: Option<Rate>,
    /// A rank has a message only when its sender has the last acknowledgement, as in the code
    /// behind Ethereal (2025); else with its last byte.
    pub at_acknowledgement: bool,
    /// Whether there is to be a result for each message, which takes memory.
    pub each_message: bool,
}

impl JobConfig<'_> {
    /// The hosts between which a message from rank `src` to rank `dst`, of different servers, crosses the network.
    pub fn ends(&self, src: u32, dst: u32) -> (HostId, HostId) {
        Relays::ends(self.relays.as_ref(), &self.hosts, src, dst)
    }
    /// What stands for the GPU of a rank: the rank itself, if nobody relays.
    pub(crate) fn gpu(&self, rank: u32) -> u32 {
        self.relays.as_ref().map_or(rank, |relays| relays.gpus[rank as usize])
    }
    /// How many of these there are.
    pub(crate) fn gpus(&self) -> usize {
        self.relays.as_ref().map_or(self.hosts.len(), |relays| relays.nics.len())
    }
    /// The GPU from which a message from rank `src` to rank `dst`, of different servers, goes to its NIC.
    pub(crate) fn sending_gpu(&self, src: u32, dst: u32) -> u32 {
        let relay = self.relays.as_ref().and_then(|relays| relays.at_source(src, dst));
        relay.unwrap_or_else(|| self.gpu(src))
    }
    /// Which job each rank belongs to, and the first rank of that one.
    pub(crate) fn homes(&self) -> Vec<(u32, u32)> {
        let mut first = 0;
        let jobs = (0..).zip(self.jobs).flat_map(|(number, job)| {
            let home = (number, first);
            first += job.ranks();
            vec![home; job.ranks() as usize]
        });
        jobs.collect()
    }
}

/// How queue pairs that send at a fixed rate are paced, and into how many a flow is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Pacing {
    /// The rate of each message, shared by its queue pairs in proportion to their bytes, where
    /// congestion control has no rate for all.
    pub rates: Rates,
    /// A queue pair starts later by up to so many of its packet gaps, at random.
    pub start_gaps: f64,
    /// Every gap is longer by up to this share of itself, at random.
    pub gap_jitter: f64,
    /// After a NACK the next gap is between a half and one and a half, at random, so that
    /// senders that lost packets together do not stay together (McClure et al. 2025, section 6.2).
    pub desynchronise: bool,
    /// Every flow but a chunk is so many queue pairs of equal size on the same route, each with recovery
    /// and congestion control of its own: units of accounting (McClure et al. 2025, section 7).
    pub subflows: u32,
}

/// At what rates messages are sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Rates {
    /// Line rate.
    #[default]
    Line,
    /// All at the same.
    Same(Rate),
    /// Each message of the workload at its own.
    Each(IdVec<MessageId, Rate>),
}

impl Rates {
    /// That of a message, unless it is line rate.
    pub(crate) fn of(&self, message: MessageId) -> Option<Rate> {
        match self {
            Rates::Line => None,
            Rates::Same(rate) => Some(*rate),
            Rates::Each(rates) => Some(rates[message]),
        }
    }
}

impl Pacing {
    /// The rate of the queue pair that carries `subflow` of a message of `whole` bytes, if congestion control leaves
    /// that to others: its part of the message's, by bytes or among those that carry it side by side, and
    /// no more than its share of the `line` rate.
    pub fn rate_of(&self, subflow: &Subflow, whole: u64, line: Rate) -> Option<Rate> {
        let rate = self.rates.of(subflow.message);
        let Carrier::Persistent { share, beside, .. } = subflow.carrier else {
            return rate.map(|rate| {
                let bits = u128::from(rate.as_bps()) * u128::from(subflow.bytes);
                Rate::bps(((bits / u128::from(whole)) as u64).max(1))
            });
        };
        let part = |rate: Rate, of: u32| Rate::bps((rate.as_bps() / u64::from(of)).max(1));
        let rate = rate.map(|rate| part(rate, beside));
        if share == 1 {
            return rate;
        }
        let share = part(line, share);
        Some(rate.map_or(share, |rate| rate.min(share)))
    }
}

impl Default for Pacing {
    /// No randomness; a flow is a queue pair.
    fn default() -> Pacing {
        Pacing {
            rates: Rates::Line,
            start_gaps: 0.0,
            gap_jitter: 0.0,
            desynchronise: false,
            subflows: 1,
        }
    }
}

/// What to sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeConfig {
    /// Time between two samples; `None`: no samples.
    pub interval: Option<Time>,
    /// Ports whose queues are sampled.
    pub ports: Vec<PortId>,
    /// Switches whose whole buffer use is sampled.
    pub switches: Vec<SwitchId>,
    /// Ports of which it is sampled how much they have sent, whatever becomes of that.
    pub sent: Vec<PortId>,
    /// How much payload all hosts together have received is sampled.
    pub goodput: bool,
}
