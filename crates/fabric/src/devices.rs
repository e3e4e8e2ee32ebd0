//! What switches, NICs and servers are told: buffers, marks, pauses and trimming, packet sizes, who sends
//! next. Values only; what they do to packets is the simulator's.

use crate::HashFunction;
use weft_units::{Rate, Time};

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

impl PfcConfig {
    /// Bytes that each ingress may hold whatever the others do.
    pub fn own_bytes(&self) -> u64 {
        self.threshold.unwrap_or(self.reserve)
    }
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

/// How switches reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionConfig {
    /// What the adders of a switch take in, all its ports together; `None`: as fast as it comes.
    pub rate: Option<Rate>,
    /// From the last contribution to a sum until the sum can leave.
    pub latency: Time,
    /// Memory for sums of a switch, which its trees share equally; `None`: as much as they ask for.
    pub memory: Option<u64>,
    /// Payload that a rank may have sent up a tree without having the result, in one operation.
    pub window: u64,
    /// Payload of a segment, each with a sum of its own; `None`: of a full packet.
    pub segment: Option<u32>,
}

impl ReductionConfig {
    /// At line rate, a megabyte at a time, and 150 ns for a sum: what is told of switches of that kind is
    /// 100 to 250 ns.
    pub const USUAL: ReductionConfig = ReductionConfig {
        rate: None,
        latency: Time::ns(150),
        memory: None,
        window: 1_000_000,
        segment: None,
    };
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
    /// Ports that lead to hosts mark, too; else only those between switches.
    pub mark_last_hop: bool,
    /// Acknowledgements and NACKs overtake data in every queue.
    pub control_priority: bool,
    /// All switches hash alike (polarisation) instead of each with a salt of its own.
    pub same_salt: bool,
    /// What they hash with, over addresses and ports; `None`: a hash that nobody can foresee, over a number
    /// of the flow.
    pub hash: Option<HashFunction>,
    /// How they reduce.
    pub reduction: ReductionConfig,
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
