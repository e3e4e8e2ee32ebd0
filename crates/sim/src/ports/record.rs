//! What few packets touch, kept apart from what every packet touches: the drops, marks and
//! pauses of a port.

use crate::config::RunConfig;
use crate::outcome::PortResult;
use crate::packet::{LostPacket, Packet, flag};
use crate::partition::{OutPort, Partition};
use weft_units::{IdVec, PortId, Rate, Time};

/// The record of one port.
#[derive(Debug)]
pub(super) struct Record {
    /// Its number in the fabric.
    pub(super) id: PortId,
    rate: Rate,
    drops: u64,
    dropped_bytes: u64,
    header_drops: u64,
    /// Of the drops those that had been queued, and their bytes.
    flushed: u64,
    flushed_bytes: u64,
    /// Random numbers that were drawn for marks of packets that leave.
    draws: u64,
    trims: u64,
    trimmed_bytes: u64,
    marks: u64,
    pauses: u64,
    paused: Time,
    /// The largest queue at earlier rates, in bytes.
    peak_before: u64,
    /// When the present pause began.
    paused_at: Option<Time>,
}

impl Record {
    /// One for each port of a partition.
    pub(super) fn all(config: &RunConfig, partition: &Partition) -> IdVec<OutPort, Record> {
        let ids = partition.ports.iter();
        ids.map(|id| Record::new(*id, config.port_at_start(*id).rate)).collect()
    }
    fn new(id: PortId, rate: Rate) -> Record {
        Record {
            id,
            rate,
            drops: 0,
            dropped_bytes: 0,
            header_drops: 0,
            flushed: 0,
            flushed_bytes: 0,
            draws: 0,
            trims: 0,
            trimmed_bytes: 0,
            marks: 0,
            pauses: 0,
            paused: Time::ZERO,
            peak_before: 0,
            paused_at: None,
        }
    }
    /// Whole bytes that a backlog stands for.
    pub(super) fn bytes_of(&self, backlog: Time) -> u64 {
        self.rate.bytes_in(backlog)
    }
    /// Bytes that have left, of `bytes` that were ever queued and a `backlog` now.
    pub(super) fn sent(&self, bytes: u64, backlog: Time) -> u64 {
        (bytes - self.flushed_bytes).saturating_sub(self.bytes_of(backlog))
    }
    #[cold]
    pub(super) fn drop(&mut self, packet: LostPacket) {
        self.drops += 1;
        self.dropped_bytes += u64::from(packet.size);
        self.header_drops += u64::from(packet.is(flag::TRIMMED));
    }
    /// As `drop`, of a packet that was queued.
    pub(super) fn flush(&mut self, packet: LostPacket) {
        self.drop(packet);
        self.flushed += 1;
        self.flushed_bytes += u64::from(packet.size);
    }
    /// The number of the next random number.
    pub(super) fn draw(&mut self) -> u64 {
        self.draws += 1;
        self.draws
    }
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }
    /// All but `left` bytes of `packet` have been cut off.
    pub(super) fn trim(&mut self, packet: &Packet, left: u16) {
        self.trims += 1;
        self.trimmed_bytes += u64::from(packet.size - left);
    }
    pub(super) fn trims(&self) -> u64 {
        self.trims
    }
    /// The port has another rate from now on; its backlogs were up to `peak` so far.
    pub(super) fn set_rate(&mut self, rate: Rate, peak: Time) {
        self.peak_before = self.peak_before.max(self.bytes_of(peak));
        self.rate = rate;
    }
    pub(super) fn mark(&mut self) {
        self.marks += 1;
    }
    /// The port is paused from `now` on, or no longer.
    pub(super) fn pause(&mut self, now: Time, paused: bool) {
        if let Some(since) = self.paused_at {
            self.paused += now - since;
        } else if paused {
            self.pauses += 1;
        }
        self.paused_at = paused.then_some(now);
    }
    /// The result of a port at the `end` that queued `packets` of `bytes` and had backlogs up to
    /// `peak`.
    pub(super) fn result(&self, end: Time, bytes: u64, packets: u64, peak: Time) -> PortResult {
        let open = self.paused_at.map_or(Time::ZERO, |since| end - since);
        PortResult {
            bytes: bytes - self.flushed_bytes,
            packets: packets - self.flushed,
            drops: self.drops,
            dropped_bytes: self.dropped_bytes,
            header_drops: self.header_drops,
            trims: self.trims,
            trimmed_bytes: self.trimmed_bytes,
            marks: self.marks,
            pauses: self.pauses,
            paused: self.paused + open,
            peak_queue: self.bytes_of(peak).max(self.peak_before),
        }
    }
}
