//! Loss recovery: what to send next, what to acknowledge, what to send again.
//!
//! One file a recovery, or a folder, below; here its `mod` line and one line in the registry.
//! Nothing else in Weft lists recoveries. A sender and its receiver speak through [`Reply`]s
//! only, which may be lost, delayed or reordered like any packet.
//!
//! Invariant: as long as some packets and some answers get through, every sender is done some
//! day, and by then its receiver has everything.

mod coding;
mod go_back_n;
mod registry;
mod selective;
mod tcp;
mod uet;

use registry::recoveries;
use std::fmt::Debug;
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, Options, Time};

pub use go_back_n::Rewind;
pub use uet::{Probing, Window};

/// A loss recovery: what it is told, and its two halves at a queue pair.
pub trait Recovery: Copy + Debug + PartialEq {
    /// Its line of the catalogue.
    const INFO: RecoveryInfo;
    /// Whether its acknowledgements are [`Report`]s, one for several packets: then hosts call
    /// [`ReceiveHalf::on_packet`], [`ReceiveHalf::report`] and [`SendHalf::on_report`] instead of
    /// [`ReceiveHalf::on_data`] and [`SendHalf::on_ack`].
    const REPORTS: bool = false;
    /// The bytes on the wire after which its receiver reports without being asked, where it [reports](Recovery::REPORTS).
    fn report_every(&self) -> u32 {
        0
    }
    /// The sending half. Put what is large or rare into a [`Box`], or all of it: the build fails
    /// if a [`Sender`] of any kind exceeds 56 bytes.
    type Sender: SendHalf;
    /// The receiving half, of at most 32 bytes.
    type Receiver: ReceiveHalf;

    /// What it is told.
    ///
    /// # Errors
    /// If an option is not what it may be.
    fn read(options: &mut Options<'_>) -> Result<Self, OptionError>;
    /// A sender of `packets` packets, at least one.
    fn sender(&self, packets: u32) -> Self::Sender;
    /// A receiver of `packets` packets, at least one.
    fn receiver(&self, packets: u32) -> Self::Receiver;
}

/// A recovery, as lists and help texts show it, and what the rest of Weft must know of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryInfo {
    /// The value of `transport.recovery`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether its receiver keeps what comes out of order, as multipath schemes want.
    pub keeps_order: bool,
    /// Whether it takes what was only overtaken for lost.
    pub resends_overtaken: bool,
    /// Whether it is made for switches that trim.
    pub trims: bool,
    /// Whether all packets are symbols of a rateless code: of one size, and none is ever sent twice.
    pub rateless: bool,
    /// What it can be told.
    pub options: &'static [OptionInfo],
}

/// The sending half of a queue pair. Time does not run backwards from call to call.
pub trait SendHalf: Clone + Debug {
    /// Whether there is something to send, were the window open.
    fn has_work(&self) -> bool;
    /// How many packets are out: sent, and neither acknowledged nor taken for lost.
    fn in_flight(&self) -> u32;
    /// How many packets are known to have arrived, as far as anybody has counted them: what is
    /// left of a flow goes by this where schemes ask.
    fn arrived(&self) -> u32 {
        0
    }
    /// How many symbols of a rateless code have left beyond as many as would do if none were lost.
    fn beyond(&self) -> u32 {
        0
    }
    /// How many packets wait to leave, those that are sent again included, as far as anybody has counted them.
    fn backlog(&self) -> u32 {
        0
    }
    /// Shows the packets that are taken for lost and wait to be sent again, as far as anybody knows which.
    fn each_lost(&self, see: &mut dyn FnMut(u32)) {
        let _ = see;
    }
    /// Everything is acknowledged.
    fn is_done(&self) -> bool;
    /// The packet that [`SendHalf::send`] takes next, if there is work.
    fn peek(&self) -> u32;
    /// Takes the next packet to send. Called only if there is work.
    fn send(&mut self, now: Time) -> Sent;
    /// The receiver got packet `seq`, and says `cumulative`.
    fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged;
    /// The receiver sent a report, when congestion control let out a `window`.
    fn on_report(&mut self, now: Time, report: &Report, window: Window) -> Acknowledged {
        let _ = window;
        self.on_ack(now, report.cumulative, report.cumulative)
    }
    /// An answer came, with a report unless it is a pull. Called for each, before it is acted upon.
    fn hear(&mut self, report: Option<&Report>) {
        let _ = report;
    }
    /// A request for a report leaves.
    fn on_request(&mut self) {}
    /// The timer of its probes, if it sends any.
    fn probing(&mut self) -> Option<&mut Probing> {
        None
    }
    /// Whether every packet has left once, of one that sends probes.
    fn has_left(&self) -> bool {
        false
    }
    /// A probe was answered so soon that what is missing is lost.
    fn on_quick_probe(&mut self, window: Window) {
        let _ = window;
    }
    /// Whether there is something to send that a window of so many packets lets out.
    #[inline(always)]
    fn has_work_below(&self, window: u32) -> bool {
        self.has_work() && self.in_flight() < window
    }
    /// Whether all is acknowledged and nothing is under way to the receiver or back, of one that reports.
    fn is_quiet(&self) -> bool {
        false
    }
    /// The receiver missed a packet: as [`Reply::Nack`] says, in answer to packet `seq`. `None`:
    /// that was known already.
    fn on_nack(&mut self, now: Time, seq: u32, cumulative: u32) -> Option<Acknowledged>;
    /// When [`SendHalf::on_timer`] wants to be called, if at all; `rto` is the configured
    /// time-out.
    fn deadline(&self, rto: Time) -> Option<Time>;
    /// Takes for lost what has been out for too long; returns how many packets that were.
    fn on_timer(&mut self, now: Time, rto: Time) -> u32;
    /// The deadline may come closer without a call of `on_timer`, but never closer than this
    /// from the call that brings it closer: so whoever sleeps no longer never misses one.
    fn longest_sleep(&self, rto: Time) -> Time {
        rto
    }
}

impl<S: SendHalf> SendHalf for Box<S> {
    #[inline(always)]
    fn has_work(&self) -> bool {
        S::has_work(self)
    }
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        S::in_flight(self)
    }
    fn arrived(&self) -> u32 {
        S::arrived(self)
    }
    fn beyond(&self) -> u32 {
        S::beyond(self)
    }
    fn backlog(&self) -> u32 {
        S::backlog(self)
    }
    fn each_lost(&self, see: &mut dyn FnMut(u32)) {
        S::each_lost(self, see);
    }
    fn on_report(&mut self, now: Time, report: &Report, window: Window) -> Acknowledged {
        S::on_report(self, now, report, window)
    }
    fn hear(&mut self, report: Option<&Report>) {
        S::hear(self, report);
    }
    fn on_request(&mut self) {
        S::on_request(self);
    }
    fn probing(&mut self) -> Option<&mut Probing> {
        S::probing(self)
    }
    fn has_left(&self) -> bool {
        S::has_left(self)
    }
    fn on_quick_probe(&mut self, window: Window) {
        S::on_quick_probe(self, window);
    }
    #[inline(always)]
    fn has_work_below(&self, window: u32) -> bool {
        S::has_work_below(self, window)
    }
    fn is_quiet(&self) -> bool {
        S::is_quiet(self)
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        S::is_done(self)
    }
    fn peek(&self) -> u32 {
        S::peek(self)
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        S::send(self, now)
    }
    #[inline(always)]
    fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        S::on_ack(self, now, seq, cumulative)
    }
    fn on_nack(&mut self, now: Time, seq: u32, cumulative: u32) -> Option<Acknowledged> {
        S::on_nack(self, now, seq, cumulative)
    }
    fn deadline(&self, rto: Time) -> Option<Time> {
        S::deadline(self, rto)
    }
    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        S::on_timer(self, now, rto)
    }
    fn longest_sleep(&self, rto: Time) -> Time {
        S::longest_sleep(self, rto)
    }
}

/// The receiving half of a queue pair.
pub trait ReceiveHalf: Clone + Debug {
    /// Packet `seq` arrived.
    fn on_data(&mut self, now: Time, seq: u32) -> Arrival;
    /// The same, with what the packet said beside: for receivers that [report](Recovery::REPORTS).
    #[inline(always)]
    fn on_packet(&mut self, now: Time, seq: u32, carried: Carried) -> Arrival {
        let _ = carried;
        self.on_data(now, seq)
    }
    /// What an acknowledgement of packet `seq` says; `exact`: its bitmap begins there, as it does for
    /// marked packets and requests.
    fn report(&mut self, seq: u32, exact: bool) -> Report {
        let _ = (seq, exact);
        Report { cumulative: self.expected(), ..Report::default() }
    }
    /// The sender asks for a report, and for one of each of the `following` packets that come.
    fn on_request(&mut self, following: u32) {
        let _ = following;
    }
    /// Another answer than a report leaves.
    fn on_pull(&mut self) {}
    /// Packet `seq` arrived without its payload, which a switch had cut off. By default that is
    /// as good as nothing.
    fn on_trimmed(&mut self, now: Time, seq: u32) -> Arrival {
        let _ = (now, seq);
        Arrival { reply: Reply::None, accepted: false, duplicate: false }
    }
    /// Everything is here.
    fn is_done(&self) -> bool;
    /// How many packets are here to stay: the first that is missing.
    fn expected(&self) -> u32;
}

/// What a data packet says beside its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Its bytes on the wire.
    pub bytes: u16,
    /// It met congestion (ECN).
    pub marked: bool,
    /// Its sender asks for an acknowledgement at once.
    pub asks: bool,
}

/// What an acknowledgement says that stands for several packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All packets below are here.
    pub cumulative: u32,
    /// The packet at the lowest bit of `bits`.
    pub base: u32,
    /// Which packets from `base` on are here.
    pub bits: u64,
    /// Packets that are here, each counted once.
    pub received: u32,
    /// Of these, how many are beyond one that is missing.
    pub out_of_order: u32,
    /// Packets of any kind that have come, and answers that have left, with this one: when the sender has
    /// sent and heard as many, nothing names the connection any more.
    pub came: u32,
    /// See `came`.
    pub answers: u32,
}

impl<R: ReceiveHalf> ReceiveHalf for Box<R> {
    fn on_data(&mut self, now: Time, seq: u32) -> Arrival {
        R::on_data(self, now, seq)
    }
    #[inline(always)]
    fn on_packet(&mut self, now: Time, seq: u32, carried: Carried) -> Arrival {
        R::on_packet(self, now, seq, carried)
    }
    fn report(&mut self, seq: u32, exact: bool) -> Report {
        R::report(self, seq, exact)
    }
    fn on_request(&mut self, following: u32) {
        R::on_request(self, following);
    }
    fn on_pull(&mut self) {
        R::on_pull(self);
    }
    fn on_trimmed(&mut self, now: Time, seq: u32) -> Arrival {
        R::on_trimmed(self, now, seq)
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        R::is_done(self)
    }
    fn expected(&self) -> u32 {
        R::expected(self)
    }
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub seq: u32,
    /// It has left before.
    pub retransmission: bool,
}

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// All packets below `cumulative` are here; of symbols, so many.
    Ack {
        /// The first packet that is missing.
        cumulative: u32,
    },
    /// As `Ack`, and something did not arrive: what follows `cumulative` was thrown away, or the
    /// packet that this answers came without payload.
    Nack {
        /// The first packet that is missing.
        cumulative: u32,
    },
    /// Nothing to say.
    None,
}

/// What a data packet did at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The answer.
    pub reply: Reply,
    /// The packet was accepted: neither known already nor thrown away.
    pub accepted: bool,
    /// The packet was known already.
    pub duplicate: bool,
}

/// What an acknowledgement taught the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Packets acknowledged for the first time.
    pub packets: u32,
    /// Packets that were out before.
    pub in_flight: u32,
    /// Packets newly taken for lost.
    pub lost: u32,
}

// The registry: one line a recovery.
recoveries! {
    go_back_n::GoBackN,
    selective::SelectiveRepeat,
    selective::Trim,
    selective::SelectiveNack,
    tcp::Tcp,
    coding::Coding,
    uet::Uet,
}

impl RecoveryConfig {
    /// Go-back-N as Ethereal (2025) and Ethereal (2024) have it: one NACK a gap, and a rewind to it.
    pub const GO_BACK_N: RecoveryConfig = RecoveryConfig::GoBackN(GoBackN::PLAIN);
    /// Selective repeat.
    pub const SELECTIVE_REPEAT: RecoveryConfig = RecoveryConfig::SelectiveRepeat(SelectiveRepeat);

    /// The recovery called `name` with options as an experiment file writes them:
    /// `[("dup_acks", "6")]`.
    ///
    /// # Errors
    /// If the name (key `recovery`) or an option is unknown, or a value is not what the option
    /// takes.
    pub fn read(name: &str, given: &[(&str, &str)]) -> Result<RecoveryConfig, OptionError> {
        RecoveryConfig::resolve(name, given).map(|(recovery, _)| recovery)
    }
    /// All recoveries with their default options, in the order of [`RECOVERIES`].
    ///
    /// # Panics
    /// If a recovery refuses its own defaults.
    pub fn all() -> Vec<RecoveryConfig> {
        let usual = |info: &RecoveryInfo| match RecoveryConfig::read(info.name, &[]) {
            Ok(recovery) => recovery,
            Err(error) => panic!("{}: {error}", info.name),
        };
        RECOVERIES.iter().map(usual).collect()
    }
    /// Its name, as experiment files and tables have it.
    pub fn name(&self) -> &'static str {
        self.info().name
    }
}

impl Sender {
    /// A sender that is done, and holds no memory.
    pub fn done() -> Sender {
        Sender::GoBackN(go_back_n::GoBackNSender::done())
    }
}

/// Every flow has one, and each packet sent or acknowledged touches it: within a cache line.
const _: () = assert!(size_of::<Sender>() <= 56);
/// Every flow has one, and each packet that arrives touches it: it shares a cache line.
const _: () = assert!(size_of::<Receiver>() <= 32);
