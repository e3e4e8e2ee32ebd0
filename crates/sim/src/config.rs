//! What a run is made of. Everything is resolved: no unit to parse, nothing left to default.

use weft_balance::enforce::{Enforce, HashFunction, Hashing};
use weft_balance::scheme::BalanceConfig;
use weft_fabric::{Fabric, Failures, Port};
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
    /// Count again at the far end of every link, to check conservation. Costs speed.
    pub audit: bool,
}

impl RunConfig<'_> {
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
    /// Whether the source port of a packet says which path its host has chosen.
    pub(crate) fn pins_by_port(&self) -> bool {
        let enforce = self.balance.scheme.enforce();
        matches!(enforce, Some(Enforce::Segments | Enforce::Hash))
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

/// The links inside a server (NVLink, say): every rank has one, and sends one message after the
/// other on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleUp {
    /// What a rank sends at.
    pub rate: Rate,
    /// From its last byte until the message is there.
    pub latency: Time,
    /// A message is on the link for whole ones of this, rounded down; zero: for as long as its
    /// bytes take.
    pub cycle: Time,
}

impl ScaleUp {
    /// How long a message of `bytes` keeps the link busy.
    pub fn serialize(&self, bytes: u64) -> Time {
        self.rate.serialize_in(bytes, self.cycle)
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
    /// Every flow is so many queue pairs of equal size on the same route, each with recovery
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

/// In which order a NIC serves the queue pairs that have something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// A packet each, in turn (Ethereal 2025, assumption 3).
    #[default]
    RoundRobin,
    /// The same, but a rank posts a message to another only once all of the one before, to the
    /// same rank, has left: two ranks have a connection, as in NCCL.
    InOrder,
    /// That which was opened first, until it has nothing to send (the code of Ethereal (2025), for rings).
    OldestFirst,
}

/// Sizes on the wire, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketConfig {
    /// Most payload in one data packet.
    pub mtu: u32,
    /// Headers of a data packet, added to its payload.
    pub header: u32,
    /// An acknowledgement or NACK, in all.
    pub ack: u32,
}

impl PacketConfig {
    /// The largest packet, in bytes on the wire.
    pub fn largest(&self) -> u64 {
        u64::from(self.mtu + self.header).max(u64::from(self.ack))
    }
}

/// The memory of a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Every output port has `bytes` of its own; a packet that does not fit is dropped.
    PerPort {
        /// Bytes for each port.
        bytes: u64,
    },
    /// All ports share `bytes`. Without PFC a queue may hold `alpha` times what is free
    /// (dynamic threshold, Choudhury and Hahne 1998).
    Shared {
        /// Bytes for each switch, headroom and reserve included.
        bytes: u64,
        /// Dynamic threshold factor at egress.
        alpha: f64,
    },
}

/// Explicit congestion notification: by which queues packets are marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnConfig {
    /// Never mark below this many queued bytes.
    pub kmin: u64,
    /// Always mark above this many.
    pub kmax: u64,
    /// Probability of a mark just below `kmax`.
    pub pmax: f64,
}

/// When a switch marks a packet, and by which queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkAt {
    /// On arrival, by the queue that it finds.
    #[default]
    Enqueue,
    /// When its first bit leaves, by what still waits behind it at its port, itself not counted
    /// (`SwitchNode::SwitchNotifyDequeue` of the ns-3 model of RDMA).
    Dequeue,
}

/// Priority flow control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PfcConfig {
    /// Pause an ingress that holds more than this; `None`: more than its share of a shared
    /// buffer. With per-port buffers there is nothing to share, and this must be given.
    pub threshold: Option<u64>,
    /// The share: `alpha` times what is free of the shared buffer.
    pub alpha: f64,
    /// Bytes that each ingress may hold beside its share.
    pub reserve: u64,
    /// Bytes kept for each ingress to absorb what is in flight when it pauses; `None`: what
    /// the link needs so that nothing is lost.
    pub headroom: Option<u64>,
    /// Resume this many bytes below the pause threshold.
    pub resume_offset: u64,
}

/// Trimming: a full queue cuts off a packet's payload instead of dropping it (Handley et al.,
/// SIGCOMM 2017; McClure et al. (2025), section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimConfig {
    /// Bytes on the wire that are left of a packet; `None`: all of them, which is trimming
    /// without its saving (as the code behind McClure et al. 2025 has it).
    pub size: Option<u16>,
    /// Most bytes of headers that wait at a port, ahead of its data; more are dropped.
    pub queue: u64,
    /// The switch that trims sends the header back to the sender, instead of on to the
    /// receiver, which would reflect it.
    pub return_to_sender: bool,
    /// Who is trimmed.
    pub victim: Victim,
}

/// Which packet a full queue trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The one that arrives.
    Arriving,
    /// The last in the queue.
    Tail,
    /// One of these two, by a coin.
    Either,
}

/// How a switch treats packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchConfig {
    /// Memory.
    pub buffer: Buffer,
    /// Marking; `None`: never.
    pub ecn: Option<EcnConfig>,
    /// When it marks.
    pub mark: MarkAt,
    /// Trimming; `None`: a full queue drops. Needs per-port buffers without PFC.
    pub trim: Option<TrimConfig>,
    /// Pausing; `None`: lossy. With it no queue drops by its own length.
    pub pfc: Option<PfcConfig>,
    /// In the length of a queue a packet counts in full until its last bit has left; else what is
    /// left of it.
    pub whole_packets: bool,
    /// Acknowledgements are marked like data, for schemes that look at that.
    pub mark_control: bool,
    /// Acknowledgements and NACKs overtake data in every queue.
    pub control_priority: bool,
    /// All switches hash alike (polarisation) instead of each with a salt of its own.
    pub same_salt: bool,
    /// What they hash with, over addresses and ports; `None`: [`weft_balance::hash`], over a number
    /// of the flow.
    pub hash: Option<HashFunction>,
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
    /// How much payload all hosts together have received is sampled.
    pub goodput: bool,
}
