//! The two halves of a queue pair, laid out for the cache.

use crate::config::RunConfig;
use crate::mail::Opening;
use crate::partition::{OwnHost, ReceiverId, ReceivingId, SendingId};
use weft_balance::Steering;
use weft_balance::plan::{FlowInfo, QueuePairId, Route};
use weft_balance::steer::Departure;
use weft_transport::{Congestion, Receiver, RecoveryConfig, SendTimes, Sender, Sent};
use weft_units::prefetch::prefetch;
use weft_units::{HostId, Time};

/// The sending half of a queue pair: what decides whether it may send stands first, in two
/// cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct SendingQp {
    pub(super) sender: Sender,
    /// How many; zero if all are symbols of a code, each as large as the last one.
    pub(super) packets: u32,
    /// In its host's round: a bit for each plane.
    pub(super) queued: u8,
    /// A `Start` event will bring it back: it has not started yet, or it is paced.
    pub(super) waiting: bool,
    pub(super) stage: Stage,
    /// A `Timer` event is under way.
    pub(super) timed: bool,
    pub(super) congestion: Congestion,
    pub(super) route: Route,
    /// What switches hash: stands for the addresses of the flow.
    pub(super) key: u32,
    pub(super) dst: HostId,
    /// The receiving half.
    pub(super) receiver: ReceiverId,
    pub(super) src: OwnHost,
    /// Payload of the last packet; all before it are full.
    pub(super) last_payload: u16,
    pub(super) hooks: PacketHooks,
    /// Packets that nothing has answered, on their way or lost; [`MANY`] stays as it is.
    pub(super) out: u8,
    pub(crate) message: SendingId,
    /// Has had a NACK since its last packet, and leaves the times of the others.
    pub(super) nacked: bool,
    /// Its next packet has a slot on the way from its GPU to the NIC.
    pub(super) granted: bool,
    /// The planes that its packets may take, a bit each.
    pub(super) planes: u8,
    /// Those in which a port at either end is known to be dead, a bit each.
    pub(super) dead: u8,
    /// Where the NIC has several ports, `Plane` has what steers.
    pub(super) steering: Steering,
    /// The persistent queue pair that it is on, if it is on one.
    pub(super) queue_pair: Option<QueuePairId>,
    /// When its next packet is due, if it is paced.
    pub(super) due: Time,
    /// When each packet left, if somebody wants round-trip times.
    pub(super) departures: Option<Box<SendTimes>>,
    /// Payload of the whole flow.
    pub(super) bytes: u64,
}

/// What a queue pair needs beyond the usual, packet by packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketHooks(u8);

impl PacketHooks {
    const STEERED: u8 = 1;
    const AWAITED: u8 = 2;
    const REPORTED: u8 = 4;
    const PLANED: u8 = 8;
    const HEARS: u8 = 16;
    const NAMES_LOSSES: u8 = 32;
    const TIMED: u8 = 64;
    const ASKED: u8 = 128;

    /// Of one that is `steering`, or `timed`; `awaited`: somebody wants to know when all of it has
    /// left; `reported`: its receiver answers with reports.
    pub(super) fn new(
        steering: &Steering,
        timed: bool,
        awaited: bool,
        reported: bool,
    ) -> PacketHooks {
        let bits = [
            (timed || !steering.is_fixed(), PacketHooks::STEERED),
            (awaited, PacketHooks::AWAITED),
            (reported, PacketHooks::REPORTED),
            (steering.hears(), PacketHooks::HEARS),
            (steering.names_losses(), PacketHooks::NAMES_LOSSES),
            (timed, PacketHooks::TIMED),
        ];
        PacketHooks(bits.iter().fold(0, |all, (is, bit)| all | if *is { *bit } else { 0 }))
    }
    /// Its scheme wants to hear of acknowledgements.
    #[inline(always)]
    pub(super) fn hears(self) -> bool {
        self.0 & PacketHooks::HEARS != 0
    }
    /// Its scheme wants to know which packets were lost.
    #[inline(always)]
    pub(super) fn names_losses(self) -> bool {
        self.0 & PacketHooks::NAMES_LOSSES != 0
    }
    /// Somebody wants to know when its packets left.
    #[inline(always)]
    fn is_timed(self) -> bool {
        self.0 & PacketHooks::TIMED != 0
    }
    /// The last that left, of one that is reported, asked for a report.
    fn has_asked(self) -> bool {
        self.0 & PacketHooks::ASKED != 0
    }
    /// Something leaves that `asks` for a report, or does not.
    #[inline(always)]
    pub(super) fn note_asked(&mut self, asks: bool) {
        let asked = if asks { PacketHooks::ASKED } else { 0 };
        self.0 = self.0 & !PacketHooks::ASKED | asked;
    }
    /// What stays when all is acknowledged.
    pub(super) fn of_done(self) -> PacketHooks {
        PacketHooks(self.0 & (PacketHooks::REPORTED | PacketHooks::PLANED))
    }
    /// The same, of one whose NIC has several ports.
    pub(super) fn in_planes(self) -> PacketHooks {
        PacketHooks(self.0 | PacketHooks::PLANED)
    }
    /// Its NIC has several ports.
    #[inline(always)]
    pub(super) fn is_planed(self) -> bool {
        self.0 & PacketHooks::PLANED != 0
    }
    #[inline(always)]
    pub(super) fn is_reported(self) -> bool {
        self.0 & PacketHooks::REPORTED != 0
    }
    /// All packets take the flow's route, whatever `steering` is, and nobody wants round-trip
    /// times: what comes after `hooks` in a [`SendingQp`] is of no interest.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        self.0 & PacketHooks::STEERED == 0
    }
    #[inline(always)]
    pub(super) fn is_awaited(self) -> bool {
        self.0 & PacketHooks::AWAITED != 0
    }
}

/// Where a queue pair is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Has not entered its NIC's round yet.
    New,
    Started,
    /// All is acknowledged.
    Done,
}

/// More unanswered packets are not counted, so that a queue pair which has had so many keeps its
/// place for good: it is large, and large ones are few.
const MANY: u8 = u8::MAX;

impl SendingQp {
    #[inline(always)]
    pub(super) fn note_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }
    #[inline(always)]
    pub(super) fn note_answer(&mut self) {
        self.out -= u8::from(self.out != MANY);
    }
    #[inline(always)]
    pub(super) fn may_send(&self) -> bool {
        !self.waiting && self.sender.has_work_below(self.congestion.window())
    }
    /// Whether something is to be sent that may not leave, and nothing is under way that could change that:
    /// what was, `timed_out`. Of one whose receiver reports when it is asked.
    pub(super) fn is_stuck(&self, timed_out: bool, rto: Time) -> bool {
        let is_held = self.hooks.is_reported() && self.is_held() && !self.waiting;
        is_held && (timed_out || self.sender.deadline(rto).is_none())
    }
    /// Whether something is to be sent, and window or credit hold it back.
    fn is_held(&self) -> bool {
        self.sender.has_work() && !self.sender.has_work_below(self.congestion.window())
    }
    /// Whether it is held back until a report comes that its receiver has no reason to send: none was asked for, and
    /// all that is out, in packets of `wire_bytes`, is less than what makes it report of itself. The window was larger when
    /// that left.
    pub(super) fn lacks_report(&self, wire_bytes: u32, recovery: &RecoveryConfig) -> bool {
        let out = u64::from(self.sender.in_flight()) * u64::from(wire_bytes);
        !self.hooks.has_asked()
            && (1..u64::from(recovery.report_every())).contains(&out)
            && self.is_held()
    }
    /// Whether some round lacks it.
    #[inline(always)]
    pub(super) fn may_join(&self) -> bool {
        // Its planes are in a cache line that is of no interest else.
        self.queued == 0 || self.hooks.is_planed() && self.queued != self.planes
    }
    /// Whether its packets may take a plane, by what is known of its ports.
    #[inline(always)]
    pub(super) fn takes(&self, plane: u32) -> bool {
        (self.planes & !self.dead) >> plane & 1 == 1
    }
    /// How many packets the window lets out now.
    #[inline(always)]
    pub(super) fn room(&self) -> u32 {
        self.congestion.window().saturating_sub(self.sender.in_flight())
    }
    #[inline(always)]
    pub(super) fn payload(&self, seq: u32, mtu: u32) -> u32 {
        if seq + 1 >= self.packets { u32::from(self.last_payload) } else { mtu }
    }
    /// Whether `sent`, of `size` bytes, asks for a report: what leaves again, what nothing follows for now, and, where the
    /// window is less than what makes a receiver report of itself, all (Ultra Ethernet specification 1.0: AckRequest).
    #[inline(always)]
    pub(super) fn asks(&self, sent: &Sent, size: u32, recovery: &RecoveryConfig) -> bool {
        let window = u64::from(self.congestion.window()) * u64::from(size);
        sent.retransmission || !self.may_send() || window < u64::from(recovery.report_every())
    }
    /// Whether `sent` is the last of its packets, for the first time.
    #[inline(always)]
    pub(super) fn is_last(&self, sent: &Sent) -> bool {
        sent.seq + 1 == self.packets && !sent.retransmission
    }
    /// Packet `seq` leaves, when `in_flight` were out before it: by which route?
    #[inline(always)]
    pub(super) fn leave(&mut self, now: Time, seq: u32, in_flight: u32) -> Route {
        self.note_departure(now, seq);
        let route = self.steering.route(self.route, Departure { now, in_flight });
        if self.hooks.names_losses() {
            self.note_way(seq, 0, route);
        }
        route
    }
    /// Packet `seq`, which has just left, took this route in a plane.
    pub(super) fn note_way(&mut self, seq: u32, plane: u32, route: Route) {
        if let Some(departures) = &mut self.departures {
            departures.put_way(seq, plane << u16::BITS | u32::from(route.number()));
        }
    }
    #[inline(always)]
    pub(super) fn note_departure(&mut self, now: Time, seq: u32) {
        if let Some(departures) = self.departures_if_timed() {
            departures.put(seq, now);
        }
    }
    /// When each packet left. Plain ones, and those that are only steered, need not look where it would be, which may
    /// be far from the core.
    #[inline(always)]
    pub(super) fn departures_if_timed(&mut self) -> Option<&mut SendTimes> {
        if self.hooks.is_timed() { self.departures.as_deref_mut() } else { None }
    }
    /// From the departure of packet `seq` until now; zero where nobody asks.
    #[inline(always)]
    pub(super) fn rtt(&self, now: Time, seq: u32) -> Time {
        if !self.hooks.is_timed() {
            return Time::ZERO;
        }
        match &self.departures {
            None => Time::ZERO,
            Some(times) => times.get(seq).map_or(Time::ZERO, |left| now - left),
        }
    }
    /// The same, of the copy of packet `seq` that was acknowledged, if that is known.
    pub(super) fn rtt_of_copy(&self, now: Time, seq: u32, is_resent: bool) -> Time {
        let left = self.departures.as_ref().and_then(|times| times.of_copy(seq, is_resent));
        left.map_or(Time::ZERO, |left| now - left)
    }
    /// What its planner knows of it, which has that number for it if it watches over it.
    pub(super) fn underway(&self, chunk: Option<u32>) -> FlowInfo {
        let queue_pair = self.queue_pair;
        FlowInfo { dst: self.dst, route: self.route, bytes: self.bytes, queue_pair, chunk }
    }
    /// Has the cache fetch what the flow's next packet or acknowledgement needs; `all`: not only what plain ones do.
    #[inline(always)]
    pub(super) fn prefetch(&self, all: bool) {
        prefetch(self);
        prefetch(&self.congestion);
        if all {
            prefetch(&self.steering);
        }
    }
    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }
    /// Whether it carries part of `message`, and is not done.
    pub(crate) fn is_open_of(&self, message: SendingId) -> bool {
        self.message == message && !self.is_done()
    }
    /// Symbols of a code that have left beyond as many as would do if none were lost.
    pub(crate) fn symbols_beyond(&self) -> u64 {
        u64::from(self.sender.beyond())
    }
    /// Whether nothing in the network or the round names it any more, so that another may have its
    /// place. A timer that is under way will be the other one's: it comes no later than that one
    /// could need it.
    pub(super) fn is_over(&self) -> bool {
        let is_out = match self.hooks.is_reported() {
            true => !self.sender.is_quiet(),
            false => self.out > 0,
        };
        self.is_done() && !(self.queued != 0 || self.waiting || is_out)
    }
}

/// The receiving half of a queue pair: a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ReceivingQp {
    pub(crate) receiver: Receiver,
    pub(super) src: HostId,
    /// The sending half, as the partition of `src` numbers it.
    pub(super) sender: u32,
    pub(crate) message: ReceivingId,
    /// The highest number that has arrived.
    pub(super) highest: u32,
    /// Payload of the whole flow.
    pub(super) bytes: u64,
    pub(crate) reordering: Reordering,
}

/// Packets that had been sent once and came after one that was sent later (RFC 4737).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reordering {
    /// How many packets.
    pub(crate) packets: u32,
    /// How far the farthest was behind the highest that had come, in packets.
    pub(crate) farthest: u32,
}

impl Reordering {
    /// Adds those of another queue pair.
    pub(crate) fn add(&mut self, other: &Reordering) {
        self.packets += other.packets;
        self.farthest = self.farthest.max(other.farthest);
    }
}

impl ReceivingQp {
    /// The receiving half of a new queue pair.
    pub(crate) fn new(config: &RunConfig, opening: &Opening) -> ReceivingQp {
        let Opening { src, sender, message, bytes, .. } = *opening;
        let packets = packets_of(config, bytes);
        let receiver = Receiver::new(&config.transport.recovery, packets);
        let reordering = Reordering::default();
        ReceivingQp { receiver, src, sender, message, highest: 0, bytes, reordering }
    }
    /// Its sending half: whose, and the number that the partition of that host gave it.
    pub(crate) fn back(&self) -> (HostId, u32) {
        (self.src, self.sender)
    }
    /// Payload that has come in order, if some is missing yet.
    pub(crate) fn bytes_of_open_subflow(&self, mtu: u32) -> u64 {
        match self.receiver.is_done() {
            true => 0,
            // A code may need more symbols than the subflow has packets.
            false => (u64::from(self.receiver.expected()) * u64::from(mtu)).min(self.bytes),
        }
    }
}

/// `bytes` of a subflow in so many parts, numbered and with the bytes of each: whole packets, as equal as they can be,
/// and no part without one.
pub fn parts(config: &RunConfig, bytes: u64, count: u32) -> impl Iterator<Item = (u32, u64)> {
    let mtu = u64::from(config.packet.mtu);
    let packets = bytes.div_ceil(mtu);
    let count = u64::from(count).clamp(1, packets);
    let end = move |part: u64| (packets * part / count * mtu).min(bytes);
    (0..count).map(move |part| (part as u32, end(part + 1) - end(part)))
}

/// `share` of `gap`.
pub(super) fn stretched(gap: Time, share: f64) -> Time {
    Time((gap.0 as f64 * share) as u64)
}

/// How many packets carry `bytes` of payload.
pub(super) fn packets_of(config: &RunConfig, bytes: u64) -> u32 {
    let packets = bytes.div_ceil(u64::from(config.packet.mtu));
    u32::try_from(packets).expect("2^32 packets are too many")
}

const _: () = assert!(size_of::<ReceivingQp>() == 64, "a receiving half is one cache line");
const _: () = assert!(size_of::<SendingQp>() == 192, "a sending half is three cache lines");
const _: () = assert!(std::mem::offset_of!(SendingQp, message) <= 128);
