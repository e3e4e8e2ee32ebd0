//! TCP's loss recovery without its congestion control (McClure et al. 2025, section 4): duplicate
//! acknowledgements and time-outs decide what is sent next, never how fast.
//!
//! The receiver keeps what comes out of order and acknowledges every packet with the first number
//! that is missing. So many acknowledgements in a row that say the same (three, usually) have the
//! sender resend that packet: fast retransmit. Until everything that was out then has been
//! acknowledged, every acknowledgement that stops short of it names the next hole, which is resent
//! as well (NewReno, RFC 6582). A time-out (RFC 6298) resends everything from the first missing
//! packet on, as far as acknowledgements do not overtake that.
//!
//! With selective acknowledgements (RFC 2018 and 6675) the sender knows what is here beyond the
//! gap: a hole is resent, once, when enough packets above it are here, and never what is here.
//! Every acknowledgement names the packet that it answers, which stands for a block of one.

use super::selective::{Marks, SelectiveReceiver};
use super::{Acknowledged, Recovery, RecoveryInfo, SendHalf, Sent};
use crate::SendTimes;
use std::collections::VecDeque;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

/// What TCP's recovery is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Duplicate acknowledgements that stand for a loss.
    pub dup_acks: u32,
    /// Whether they trigger a retransmission at all, or only time-outs do.
    pub fast_retransmit: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// The time-out follows the round-trip time and doubles when nothing helps (RFC 6298); else it
    /// is the configured one.
    pub adaptive_rto: bool,
    /// It never falls below this.
    pub min_rto: Time,
}

impl Recovery for Tcp {
    const INFO: RecoveryInfo = RecoveryInfo {
        name: "tcp",
        summary: "cumulative ACKs: duplicates or a time-out say what to send again, not how fast",
        source: "RFC 5681, 6582, 6675, 6298; McClure et al. (2025), section 4",
        keeps_order: true,
        resends_overtaken: true,
        trims: false,
        rateless: false,
        options: &[
            OptionInfo {
                key: "dup_acks",
                default: "3",
                kind: OptionKind::Whole(1, 1_000_000),
                meaning: "duplicate acknowledgements that stand for a loss",
            },
            OptionInfo {
                key: "fast_retransmit",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "resend after so many duplicates; else after time-outs only",
            },
            OptionInfo {
                key: "sack",
                default: "false",
                kind: OptionKind::Flag,
                meaning: "selective acknowledgements: only holes are resent",
            },
            OptionInfo {
                key: "adaptive_rto",
                default: "true",
                kind: OptionKind::Flag,
                meaning: "the time-out follows the round-trip time, starting at transport.rto",
            },
            OptionInfo {
                key: "min_rto",
                default: "100us",
                kind: OptionKind::Time(Time::ZERO),
                meaning: "an adaptive time-out never falls below this",
            },
        ],
    };
    type Sender = TcpSender;
    type Receiver = SelectiveReceiver;

    fn read(options: &mut Options<'_>) -> Result<Tcp, OptionError> {
        let dup_acks = options.number("dup_acks")?;
        let fast_retransmit = options.flag("fast_retransmit")?;
        let sack = options.flag("sack")?;
        let adaptive_rto = options.flag("adaptive_rto")?;
        let min_rto = options.time("min_rto")?;
        if min_rto == Time::ZERO {
            return Err(OptionError::new("min_rto", "0s is no time to wait; use at least 1ns"));
        }
        Ok(Tcp { dup_acks, fast_retransmit, sack, adaptive_rto, min_rto })
    }
    fn sender(&self, packets: u32) -> TcpSender {
        let state = State {
            config: *self,
            repair: Repair::None,
            resend: VecDeque::new(),
            estimate: Estimate::default(),
            board: self.sack.then(Board::default),
            span: None,
        };
        let (acked, next, fresh, duplicates) = (0, 0, 0, 0);
        let (since, state) = (Time::ZERO, Box::new(state));
        TcpSender { acked, next, fresh, packets, duplicates, since, state }
    }
    fn receiver(&self, packets: u32) -> SelectiveReceiver {
        SelectiveReceiver::new(packets)
    }
}

/// Sends in order, but for what duplicates and time-outs ask for.
#[derive(Clone, Debug)]
pub struct TcpSender {
    /// All below are acknowledged.
    acked: u32,
    /// The next to send in order.
    next: u32,
    /// All below have left at least once.
    fresh: u32,
    packets: u32,
    /// Acknowledgements in a row that said `acked`.
    duplicates: u32,
    /// The time-out counts from here: the last progress or retransmission for a loss, or the
    /// first send after none was out.
    since: Time,
    state: Box<State>,
}

/// What loss and timing ask for.
#[derive(Clone, Debug)]
struct State {
    config: Tcp,
    repair: Repair,
    /// To be sent again before anything else.
    resend: VecDeque<u32>,
    estimate: Estimate,
    board: Option<Board>,
    /// The time-out that is running, before any doubling: what the samples said when it started.
    /// `None`: the configured one.
    span: Option<Time>,
}

/// What the sender is busy with until all below some number is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// Fast recovery.
    Holes {
        until: u32,
    },
    /// After a time-out. What is sent again causes duplicates, which mean nothing until then.
    Everything {
        until: u32,
    },
}

/// The round-trip time, and the time-out that follows from it (RFC 6298).
#[derive(Clone, Debug, Default)]
struct Estimate {
    /// Mean and deviation; no mean before the first sample.
    mean: Option<Time>,
    deviation: Time,
    /// When packets left that have left once: an answer to another could be to either copy
    /// (Karn's algorithm).
    departures: SendTimes,
    /// How often the time-out has doubled.
    doubled: u32,
}

/// What is here beyond the first gap.
#[derive(Clone, Debug)]
struct Board {
    here: Marks,
    /// How many of those are not below `judged`.
    above: u32,
    /// Every hole below has been taken for lost once.
    judged: u32,
}

impl Default for Board {
    fn default() -> Board {
        Board { here: Marks::EMPTY, above: 0, judged: 0 }
    }
}

/// Time-outs double no more often than that: long enough for any network to calm down, and short
/// enough to notice that it has.
const MOST_DOUBLED: u32 = 6;

impl Estimate {
    /// What follows from the samples, before any doubling; `None`: there are none.
    fn span(&self) -> Option<Time> {
        self.mean.map(|mean| mean + Time(self.deviation.0 * 4))
    }
    /// `seq` leaves, for the first time or again.
    fn sent(&mut self, now: Time, seq: u32, again: bool) {
        self.departures.put(seq, if again { Time::MAX } else { now });
    }
    /// Packet `seq` has been answered. Every answer counts, as with timestamps (RFC 7323): what
    /// is behind a gap has taken its round trip all the same.
    fn answered(&mut self, now: Time, seq: u32) {
        let Some(left) = self.departures.get(seq) else { return };
        let sample = now - left;
        let (mean, deviation) = match self.mean {
            None => (sample, Time(sample.0 / 2)),
            Some(mean) => {
                let off = mean.0.abs_diff(sample.0);
                let deviation = Time((3 * self.deviation.0 + off) / 4);
                (Time((7 * mean.0 + sample.0) / 8), deviation)
            }
        };
        (self.mean, self.deviation) = (Some(mean), deviation);
    }
    /// All below `acked` have been acknowledged, which is news.
    fn advanced(&mut self, acked: u32) {
        self.doubled = 0;
        self.departures.forget_below(acked);
    }
}

impl Board {
    /// Packet `seq` is here, above the first gap at `acked`; returns whether that is news.
    fn put(&mut self, acked: u32, seq: u32) -> bool {
        let is_new = self.here.insert(acked, seq);
        self.above += u32::from(is_new && seq >= self.judged);
        is_new
    }
    /// The first gap moves up from `acked` to `to`, and what lies behind is forgotten.
    fn advance(&mut self, acked: u32, to: u32) {
        for seq in acked..to {
            let was_here = self.here.take(acked, seq);
            self.above -= u32::from(was_here && seq >= self.judged);
        }
        self.judged = self.judged.max(to);
    }
    /// Puts into `lost` the holes that have `enough` packets above them, each once.
    fn judge(&mut self, acked: u32, enough: u32, lost: &mut VecDeque<u32>) {
        while self.above >= enough {
            let seq = self.judged;
            self.judged += 1;
            if self.here.contains(acked, seq) {
                self.above -= 1;
            } else {
                lost.push_back(seq);
            }
        }
    }
}

impl TcpSender {
    /// Moves `next` over what is known to be here.
    fn skip_what_is_here(&mut self) {
        if let Some(board) = &self.state.board {
            self.next += board.here.run(self.acked, self.next);
        }
    }

    /// Packet `seq` is here: with selective acknowledgements it is not sent again.
    #[inline(always)]
    fn note(&mut self, seq: u32) {
        let state = &mut *self.state;
        let Some(board) = &mut state.board else { return };
        if seq > self.acked && seq < self.fresh && board.put(self.acked, seq) {
            state.resend.retain(|lost| *lost != seq);
            self.skip_what_is_here();
        }
    }

    /// All below `cumulative` are here, which is news.
    fn advance(&mut self, now: Time, cumulative: u32) {
        let state = &mut *self.state;
        if let Some(board) = &mut state.board {
            board.advance(self.acked, cumulative);
        }
        state.resend.retain(|seq| *seq >= cumulative);
        state.estimate.advanced(cumulative);
        self.acked = cumulative;
        self.next = self.next.max(cumulative);
        self.duplicates = 0;
        self.restart(now);
        let state = &mut *self.state;
        if let Repair::Holes { until } | Repair::Everything { until } = state.repair
            && cumulative >= until
        {
            state.repair = Repair::None;
        }
        // The packet that it stops at was sent before the repair began, and is not here.
        if matches!(state.repair, Repair::Holes { .. }) && state.board.is_none() {
            state.resend.push_back(cumulative);
        }
        self.skip_what_is_here();
    }

    /// An acknowledgement that brings no progress. Returns how many packets are taken for lost.
    fn duplicate(&mut self, now: Time) -> u32 {
        self.duplicates += 1;
        let state = &mut *self.state;
        let Tcp { dup_acks, fast_retransmit, .. } = state.config;
        let before = state.resend.len();
        if let Some(board) = &mut state.board {
            if fast_retransmit {
                board.judge(self.acked, dup_acks, &mut state.resend);
            }
        } else if fast_retransmit && self.duplicates == dup_acks && state.repair == Repair::None {
            state.repair = Repair::Holes { until: self.fresh };
            state.resend.push_back(self.acked);
        }
        let lost = (state.resend.len() - before) as u32;
        if lost > 0 {
            self.restart(now);
        }
        lost
    }

    /// Starts the time-out anew.
    fn restart(&mut self, now: Time) {
        self.since = now;
        self.state.span = self.state.estimate.span();
    }
}

impl SendHalf for TcpSender {
    #[inline(always)]
    fn has_work(&self) -> bool {
        self.next < self.packets || !self.state.resend.is_empty()
    }
    /// Every duplicate stands for a packet that has left the network.
    #[inline(always)]
    fn in_flight(&self) -> u32 {
        (self.next - self.acked).saturating_sub(self.duplicates)
    }
    fn arrived(&self) -> u32 {
        self.acked
    }
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.acked == self.packets
    }

    fn peek(&self) -> u32 {
        self.state.resend.front().copied().unwrap_or(self.next)
    }
    #[inline(always)]
    fn send(&mut self, now: Time) -> Sent {
        if self.next == self.acked {
            self.restart(now);
        }
        let seq = self.state.resend.pop_front().unwrap_or_else(|| {
            let seq = self.next;
            self.next += 1;
            self.skip_what_is_here();
            seq
        });
        let retransmission = seq < self.fresh;
        self.fresh = self.fresh.max(self.next);
        self.state.estimate.sent(now, seq, retransmission);
        Sent { seq, retransmission }
    }

    #[inline(always)]
    fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
        self.state.estimate.answered(now, seq);
        let in_flight = self.in_flight();
        if cumulative > self.acked {
            let packets = cumulative - self.acked;
            self.advance(now, cumulative);
            // It may have overtaken the one that said all this.
            self.note(seq);
            return Acknowledged { packets, in_flight, lost: 0 };
        }
        self.note(seq);
        // An older one has been overtaken on its way, and one that finds nothing out is late.
        let counts = cumulative == self.acked && self.fresh > self.acked;
        let lost = if counts { self.duplicate(now) } else { 0 };
        Acknowledged { packets: 0, in_flight, lost }
    }

    /// Its receivers send none, unless a switch trims: then it acknowledges what it says, and times
    /// nothing, for headers overtake what queues.
    fn on_nack(&mut self, now: Time, _: u32, cumulative: u32) -> Option<Acknowledged> {
        let in_flight = self.in_flight();
        let packets = cumulative.checked_sub(self.acked).filter(|packets| *packets > 0)?;
        self.advance(now, cumulative);
        Some(Acknowledged { packets, in_flight, lost: 0 })
    }

    fn deadline(&self, rto: Time) -> Option<Time> {
        let State { config, estimate, span, .. } = &*self.state;
        let span = match config.adaptive_rto {
            false => rto,
            true => {
                let once = span.unwrap_or(rto).max(config.min_rto);
                Time(once.0.saturating_mul(1 << estimate.doubled))
            }
        };
        (self.fresh > self.acked).then(|| self.since.saturating_add(span))
    }

    fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
        if self.deadline(rto).is_none_or(|deadline| deadline > now) {
            return 0;
        }
        let lost = self.in_flight();
        let state = &mut *self.state;
        state.repair = Repair::Everything { until: self.fresh };
        state.resend.clear();
        state.estimate.doubled = (state.estimate.doubled + 1).min(MOST_DOUBLED);
        if let Some(board) = &mut state.board {
            // Holes are resent in order now; what they are above decides nothing any more.
            let here = |seq: &u32| board.here.contains(self.acked, *seq);
            board.above -= (board.judged..self.fresh).filter(here).count() as u32;
            board.judged = self.fresh;
        }
        (self.next, self.duplicates) = (self.acked, 0);
        self.restart(now);
        lost
    }

    /// Progress starts the time-out anew and may end its doubling.
    fn longest_sleep(&self, rto: Time) -> Time {
        match self.state.config.adaptive_rto {
            true => self.state.config.min_rto.min(rto),
            false => rto,
        }
    }
}
