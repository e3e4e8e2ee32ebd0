//! What few packets touch, kept apart from what every packet touches: the drops, marks and
//! pauses of a port.

use crate::cut::{OutPort, Territory};
use crate::event::Packet;
use crate::outcome::PortResult;
use weft_fabric::Fabric;
use weft_units::{IdVec, PortId, Rate, Time};

/// The record of one port.
#[derive(Debug)]
pub(super) struct Record {
    /// Its number in the fabric.
    pub(super) id: PortId,
    rate: Rate,
    drops: u64,
    dropped_bytes: u64,
    marks: u64,
    pauses: u64,
    paused: Time,
    /// When the present pause began.
    paused_at: Option<Time>,
}

impl Record {
    /// One for each port of a domain.
    pub(super) fn all(fabric: &Fabric, territory: &Territory) -> IdVec<OutPort, Record> {
        let ids = territory.ports.iter();
        ids.map(|id| Record::new(*id, fabric.ports()[*id].rate)).collect()
    }
    fn new(id: PortId, rate: Rate) -> Record {
        let (drops, dropped_bytes, marks, pauses) = (0, 0, 0, 0);
        let (paused, paused_at) = (Time::ZERO, None);
        Record { id, rate, drops, dropped_bytes, marks, pauses, paused, paused_at }
    }
    /// Whole bytes that a backlog stands for.
    pub(super) fn bytes_of(&self, backlog: Time) -> u64 {
        self.rate.bytes_in(backlog)
    }
    #[cold]
    pub(super) fn drop(&mut self, packet: &Packet) {
        self.drops += 1;
        self.dropped_bytes += u64::from(packet.size);
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
    /// The result of a port at the `end` that sent `packets` of `bytes` and had backlogs up to
    /// `peak`.
    pub(super) fn result(&self, end: Time, bytes: u64, packets: u64, peak: Time) -> PortResult {
        let open = self.paused_at.map_or(Time::ZERO, |since| end - since);
        PortResult {
            bytes,
            packets,
            drops: self.drops,
            dropped_bytes: self.dropped_bytes,
            marks: self.marks,
            pauses: self.pauses,
            paused: self.paused + open,
            peak_queue: self.bytes_of(peak),
        }
    }
}
