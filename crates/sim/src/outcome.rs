//! What a run leaves behind.

use crate::histogram::DurationHistogram;
pub use weft_balance::tor::TorCounts;
use weft_units::{HostId, IdVec, MessageId, PortId, Time};

/// The result of one run. A function of the [`crate::RunConfig`] alone, to the byte.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One for each message of the workload.
    pub messages: IdVec<MessageId, MessageResult>,
    /// One for each node of each rank, by rank and node, if there is a job.
    pub nodes: Vec<NodeResult>,
    /// One for each message that ranks sent over the fabric, by name, if they were asked for.
    pub rank_messages: Vec<RankMessage>,
    /// Of those, from post to receipt, if they were not.
    pub durations: DurationHistogram,
    /// One for each port of the fabric.
    pub ports: IdVec<PortId, PortResult>,
    /// What was sampled: first the ports, then the switches of the probes, then goodput.
    pub series: Vec<Series>,
    /// Sums over the run.
    pub totals: Totals,
}

/// When a node of a rank's graph was at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeResult {
    /// The rank that ran it.
    pub rank: u32,
    /// Which of its nodes.
    pub node: u32,
    /// When all that it waited for was done.
    pub begun: Time,
    /// When it was done.
    pub finished: Time,
}

/// A message that a rank sent over the fabric, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankMessage {
    /// The `k`-th message of host `h`, both from 0, is named `k` times the number of hosts plus `h`.
    pub message: MessageId,
    /// The rank that sent it.
    pub src: u32,
    /// The rank that received it.
    pub dst: u32,
    /// Their hosts.
    pub hosts: (HostId, HostId),
    /// For which node of the sender's graph.
    pub node: u32,
    /// Payload, in bytes.
    pub bytes: u64,
    /// What became of it.
    pub result: MessageResult,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageResult {
    /// When its host posted it.
    pub posted: Time,
    /// When its receiver had the last byte.
    pub received: Time,
    /// When its sender had the last acknowledgement.
    pub sent: Time,
    /// How many queue pairs carried it.
    pub subflows: u32,
    /// Data packets that left more than once.
    pub retransmits: u32,
    /// Retransmitted packets that the receiver had already.
    pub spurious: u32,
    /// Data packets that ports or links lost; trimmed ones only if their header was lost.
    pub lost: u32,
    /// Data packets, sent for the first time, that came after one that was sent later.
    pub reordered: u32,
    /// By how many packets the farthest of them was behind.
    pub farthest: u32,
}

/// What went over one port's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortResult {
    /// Bytes sent, headers and control included, pause frames not.
    pub bytes: u64,
    /// Packets sent, control included, pause frames not.
    pub packets: u64,
    /// Packets dropped instead of queued, or with the queue of a dead link.
    pub drops: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Of those packets, how many had been trimmed to a header before.
    pub header_drops: u64,
    /// Packets trimmed.
    pub trims: u64,
    /// Bytes cut off them.
    pub trimmed_bytes: u64,
    /// Packets marked.
    pub marks: u64,
    /// Pause frames received.
    pub pauses: u64,
    /// Time spent paused.
    pub paused: Time,
    /// Most bytes that stood in the queue.
    pub peak_queue: u64,
}

/// Samples of one port's queue or one switch's buffer; of goodput the payload that all hosts
/// received for the first time since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Bytes, one sample each interval from time zero on.
    pub bytes: Vec<u64>,
}

impl Series {
    /// Adds what another partition sampled of the same at the same times.
    pub(crate) fn add(&mut self, other: &Series) {
        self.bytes.resize(self.bytes.len().max(other.bytes.len()), 0);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(sum, bytes)| *sum += bytes);
    }
}

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Collective completion time: when the last message was received.
    pub cct: Time,
    /// When the last packet of any kind reached its host or leaf, or was lost on a failed link: by
    /// then all that ports have sent is through.
    pub end: Time,
    /// Data packets that left a host, retransmissions included.
    pub packets: u64,
    /// Acknowledgements, NACKs, pulls and requests that left a host.
    pub control_packets: u64,
    /// Of those, NACKs.
    pub nacks: u64,
    /// Of those, grants of credit.
    pub pulls: u64,
    /// Of those, requests of a sender to be told what is there.
    pub requests: u64,
    /// Packets over links, data and control, pause frames not.
    pub packet_hops: u64,
    /// Events that the engine handled. The one number here that depends on how the engine
    /// works rather than on what it simulates.
    pub events: u64,
    /// Packets dropped by ports.
    pub drops: u64,
    /// Of those, how many had been trimmed to a header before.
    pub header_drops: u64,
    /// Packets trimmed.
    pub trims: u64,
    /// Bytes cut off them.
    pub trimmed_bytes: u64,
    /// Packets marked.
    pub marks: u64,
    /// Pause frames sent.
    pub pauses: u64,
    /// Packets that wait for good at ports whose pauses wait for each other.
    pub held: u64,
    /// Data packets that left a host more than once.
    pub retransmits: u64,
    /// Of those, how many the receiver had already.
    pub spurious: u64,
    /// Data packets, sent for the first time, that came after one that was sent later.
    pub reordered: u64,
    /// The sum of how many packets each of them was behind the highest that had come.
    pub reorder_distance: u64,
    /// Packets lost on links that had failed, control included.
    pub wire_drops: u64,
    /// Bytes of those.
    pub wire_dropped_bytes: u64,
    /// Switches whose buffers queues would have filled, where rates are simulated and no packets
    /// (`weft-fluid`); packets are paused or lost there.
    pub full_buffers: u32,
    /// Most queue pairs that one NIC had active at once.
    pub max_qps: u32,
    /// Most queue pairs that one NIC ever had.
    pub established_qps: u32,
    /// What switches took that keep a state.
    pub tor: TorCounts,
    /// Places of queue pairs: one that is over gives its own to the next one of its host.
    pub places: u32,
}

impl Totals {
    /// Adds what another part of the run counted; what is derived from messages, ports and
    /// hosts is left alone.
    pub(crate) fn add(&mut self, other: &Totals) {
        self.end = self.end.max(other.end);
        self.packets += other.packets;
        self.control_packets += other.control_packets;
        self.nacks += other.nacks;
        self.pulls += other.pulls;
        self.requests += other.requests;
        self.events += other.events;
        self.retransmits += other.retransmits;
        self.spurious += other.spurious;
        self.reordered += other.reordered;
        self.reorder_distance += other.reorder_distance;
        self.wire_drops += other.wire_drops;
        self.wire_dropped_bytes += other.wire_dropped_bytes;
    }
}
