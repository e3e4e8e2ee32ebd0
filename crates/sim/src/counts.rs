//! What one partition counts: packets that were sent, arrived or got lost, and whether the run gets
//! on.

use crate::audit::Audit;
use crate::config::RunConfig;
use crate::event::{Class, Event};
use crate::losses::Losses;
use crate::outcome::Totals;
use crate::packet::{LostPacket, Packed, Packet, flag};
use crate::partition::{InLink, OutPort, Partition};
use crate::progress::Progress;
use weft_units::Time;

/// The counts of one partition.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) totals: Totals,
    pub(crate) progress: Progress,
    /// What reached a host.
    delivered: Delivered,
    /// Of that, data that its receiver did not have yet.
    accepted: Delivered,
    /// How many of those the world has heard of.
    told: u64,
    /// What links that had failed lost, by queue pair.
    pub(crate) losses: Losses,
    audit: Option<Audit>,
}

/// Packets and bytes, of all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    pub packets: u64,
    pub bytes: u64,
}

impl Delivered {
    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
    /// Both together.
    pub(crate) fn and(self, other: Delivered) -> Delivered {
        Delivered { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Counts {
    /// None yet, for a partition.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> Counts {
        Counts {
            totals: Totals::default(),
            progress: Progress::START,
            delivered: Delivered::default(),
            accepted: Delivered::default(),
            told: 0,
            losses: Losses::new(config),
            audit: config.audit.then(|| Audit::new(config, partition)),
        }
    }
    /// What reached hosts.
    pub(crate) fn delivered(&self) -> Delivered {
        self.delivered
    }
    /// What was counted a second time, if it was.
    pub(crate) fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }
    /// Payload that hosts have received for the first time, where a packet has `header` bytes beside.
    pub(crate) fn goodput(&self, header: u32) -> u64 {
        self.accepted.bytes - self.accepted.packets * u64::from(header)
    }
    /// How many packets more than at the last time were new to their receivers.
    pub(crate) fn newly_accepted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.told, self.accepted.packets);
        self.accepted.packets - before
    }

    /// Whether somebody counts a second time.
    pub(crate) fn are_audited(&self) -> bool {
        self.audit.is_some()
    }
    /// `packet` has reached the end of `link`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, link: InLink, packet: Packet) {
        if self.audit.is_some() {
            self.audit_arrival(Packed::new(packet, link.0));
        }
    }
    /// What a window has for a switch: as [`Counts::arrive`], for a packet that is relayed.
    #[cold]
    pub(crate) fn relay(&mut self, event: &Event) {
        if event.target().is(Class::Arrive) && !event.packet().is(flag::PFC) {
            self.arrive(InLink(event.target().id()), event.packet());
        }
    }
    /// By itself: it borrows the packet.
    #[cold]
    #[inline(never)]
    fn audit_arrival(&mut self, packed: Packed) {
        let audit = self.audit.as_mut().expect("its caller has looked");
        audit.arrived(InLink(packed.beside()), &packed.packet());
    }
    /// `packet` has reached its host.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Time, packet: &Packet) {
        self.delivered.add(packet);
        self.totals.end = self.totals.end.max(now);
    }
    /// The data of `packet` is new to its receiver.
    #[inline(always)]
    pub(crate) fn accept(&mut self, now: Time, packet: &Packet) {
        self.progress.make(now);
        self.accepted.add(packet);
    }
    /// Data, sent for the first time, came `behind` packets after the highest that had come.
    #[inline(always)]
    pub(crate) fn reorder(&mut self, behind: u32) {
        self.totals.reordered += 1;
        self.totals.reorder_distance += u64::from(behind);
    }
    /// The switch of `port` has made a packet of `size` bytes, which leaves there.
    pub(crate) fn make(&mut self, port: OutPort, size: u16) {
        if let Some(audit) = &mut self.audit {
            audit.made(port, size);
        }
    }
    /// A packet, which came by the link that `reverse` leads back, ends at its switch.
    pub(crate) fn end(&mut self, now: Time, reverse: OutPort, packet: LostPacket) {
        if let Some(audit) = &mut self.audit {
            audit.lost(reverse, packet);
        }
        self.totals.end = self.totals.end.max(now);
    }
    /// A packet is gone: the link that `reverse` leads back lost it, or no way is left to where it
    /// goes.
    #[cold]
    pub(crate) fn lose(&mut self, now: Time, reverse: OutPort, packet: LostPacket) {
        self.end(now, reverse, packet);
        self.totals.wire_drops += 1;
        self.totals.wire_dropped_bytes += u64::from(packet.size);
        self.losses.add(packet);
    }
}
