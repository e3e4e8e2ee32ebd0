//! What a run is made of. Everything is resolved: no unit to parse, nothing left to default.

use weft_balance::scheme::BalanceConfig;
use weft_fabric::Fabric;
use weft_transport::TransportConfig;
use weft_units::{PortId, SwitchId, Time};
use weft_workload::Workload;

/// One run.
#[derive(Clone, Debug)]
pub struct RunConfig<'a> {
    /// The network. Every link has a delay: without one, an event could cause another at the
    /// same instant elsewhere, and the kinds of port would not agree on which comes first.
    pub fabric: &'a Fabric,
    /// The traffic.
    pub workload: &'a Workload,
    /// How switches queue, mark, pause and drop.
    pub switch: SwitchConfig,
    /// Packet sizes.
    pub packet: PacketConfig,
    /// Congestion control and loss recovery.
    pub transport: TransportConfig,
    /// The load balancer.
    pub balance: BalanceConfig,
    /// What to sample while running.
    pub probes: ProbeConfig,
    /// All randomness follows from it.
    pub seed: u64,
    /// Give up when this much simulated time has passed without any message posted or new byte
    /// delivered. Choose it above the time-out of the transport: a loss costs that much.
    pub stall_after: Time,
    /// Ports as queues even where plain FIFO ports would do (to test one against the other).
    pub force_queues: bool,
    /// Count again at the far end of every link, to check conservation. Costs speed.
    pub audit: bool,
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

/// Explicit congestion notification: marked at enqueue, by the queue found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnConfig {
    /// Never mark below this many queued bytes.
    pub kmin: u64,
    /// Always mark above this many.
    pub kmax: u64,
    /// Probability of a mark just below `kmax`.
    pub pmax: f64,
}

/// Priority flow control, on a shared buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PfcConfig {
    /// Pause an ingress that holds more than `alpha` times the free shared buffer.
    pub alpha: f64,
    /// Bytes that each ingress may always hold.
    pub reserve: u64,
    /// Bytes kept for each ingress to absorb what is in flight when it pauses; `None`: what
    /// the link needs so that nothing is lost.
    pub headroom: Option<u64>,
    /// Resume this many bytes below the pause threshold.
    pub resume_offset: u64,
}

/// How a switch treats packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchConfig {
    /// Memory.
    pub buffer: Buffer,
    /// Marking; `None`: never.
    pub ecn: Option<EcnConfig>,
    /// Pausing; `None`: lossy. Needs a shared buffer.
    pub pfc: Option<PfcConfig>,
    /// Acknowledgements and NACKs overtake data in every queue.
    pub control_priority: bool,
    /// All switches hash alike (polarisation) instead of each with a salt of its own.
    pub same_salt: bool,
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
}
