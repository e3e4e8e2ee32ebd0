//! What a host knows of the links that its chunks take.

use super::ways::usual;
use std::collections::VecDeque;
use weft_units::Time;

/// Time that may be below zero, in picoseconds.
pub(super) type Span = f64;

/// A link, as one host sees it: by its own chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    /// The chunks on it after which nothing has left that has come back, in the order in which they left.
    out: VecDeque<Out>,
    /// Payload that is out on it.
    bytes: u64,
    /// How much may be out on it, in bytes; less than a chunk: chunks pause. `None`: anything, as long as nothing was late.
    window: Option<f64>,
    /// When the window was cut last: what left before says nothing new.
    cut_at: Time,
    /// Before that no other chunk takes it.
    paused_until: Time,
    /// What is late before that was no accident.
    suspected_until: Time,
    /// How long the last one to come back took.
    took: Span,
    /// By how much the last ones to come back were above the usual, the newest first.
    excess: [Span; MANY],
    /// When a chunk came back last that had left but once, and the number of the one that left last of these.
    heard_at: Time,
    newest: u64,
    /// How often in a row something timed out.
    strikes: u32,
    barred_until: Time,
    /// Since when, unless it is known to work; [`Time::MAX`]: it drops though it works, and what gets through says nothing.
    barred_at: Time,
    /// The window before that.
    before: Option<f64>,
    /// Strikes are forgotten after that.
    forgiven_at: Time,
    /// It is known to be dead.
    pub(super) is_dead: bool,
}

/// How many in a row are looked at, at the most.
pub(super) const MANY: usize = 3;
/// Windows are no smaller than this part of a chunk.
const LEAST_WINDOW: f64 = 1.0 / 32.0;
/// A link is left alone after a time-out for so long as the chunk was out, doubled so often for each strike.
const BAR_DOUBLED: u32 = 3;
/// More strikes are as bad as so many.
const MOST_STRIKES: u32 = 4;
/// Strikes are forgotten after so many times as long as the link was left alone.
const FORGIVEN_AFTER: u64 = 8;
/// So much of what would bring a link to its aim a window grows by in a round trip; and no more than it doubles.
const GROWTH: f64 = 0.5;
/// A link that has a window is to be late by this part of what is late.
const AIM: f64 = 0.25;

/// A chunk that is out on a link.
#[derive(Clone, Copy, Debug)]
struct Out {
    number: u64,
    /// When it should be back if there is no queue, and how much later is late then.
    due: Time,
    late: Span,
    /// Which queues tell how much longer it takes: by number, that to its leaf and that to its receiver.
    queues: [u32; 2],
}

/// A chunk that has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The how manieth of its host it was.
    pub(super) number: u64,
    pub(super) since: Time,
    pub(super) bytes: u64,
}

/// A chunk that came back.
pub(super) struct Return {
    pub(super) now: Time,
    pub(super) sent: Sent,
    /// How long it took without the NIC, and by how much that was longer than usual.
    pub(super) took: Span,
    pub(super) excess: Span,
    /// How much is late.
    pub(super) late: Span,
    /// A whole chunk, in bytes.
    pub(super) chunk: f64,
    /// It had timed out, and left again by another way: in vain.
    pub(super) undone: bool,
}

impl Link {
    /// A chunk leaves.
    pub(super) fn put(&mut self, sent: &Sent, due: Time, late: Span, queues: [u32; 2]) {
        self.out.push_back(Out { number: sent.number, due, late, queues });
        self.bytes += sent.bytes;
    }
    /// How much longer than it should the first chunk is out, where `least` is a queue that all chunks meet now.
    pub(super) fn overdue(&self, now: Time, queues: &[Span], least: Span) -> Time {
        let Some(out) = self.out.front().filter(|out| out.due < now) else { return Time::ZERO };
        let usual = usual(queues, out.queues).max(least);
        (out.due + Time((usual + out.late.max(usual)) as u64)).until(now)
    }
    /// For how long the first chunk is out beyond what it takes where there is no queue.
    pub(super) fn waits(&self, now: Time) -> Time {
        self.out.front().map_or(Time::ZERO, |out| out.due.until(now))
    }

    /// By how much a chunk that takes it now must be expected to be late, where the first is so by `overdue`;
    /// zero if that is not known to be so.
    pub(super) fn lateness(&self, now: Time, chunk: u64, overdue: Time) -> Time {
        let window = self.window.filter(|_| self.bytes > 0).unwrap_or(Span::MAX).max(chunk as f64);
        // A window takes as long as the last chunk.
        let beyond = ((self.bytes + chunk) as f64 / window - 1.0).max(0.0) * self.took;
        let late = overdue.max(Time(beyond as u64)).max(now.until(self.paused_until));
        if late > Time::ZERO { late.max(Time(self.excess[0] as u64)) } else { late }
    }
    /// When something that left before `sent` came back last; zero where what left later is back, too.
    pub(super) fn progress(&self, sent: &Sent) -> Time {
        if self.newest < sent.number { self.heard_at } else { Time::ZERO }
    }
    fn is_barred(&self, now: Time) -> bool {
        self.barred_until > now
    }
    /// While it is left alone: how often in a row something timed out. Else zero.
    pub(super) fn barred(&self, now: Time) -> u32 {
        if self.is_barred(now) { self.strikes } else { 0 }
    }
    /// The same until something has come back: it may still be dead.
    pub(super) fn doubt(&self, now: Time) -> u32 {
        if self.is_barred(now) || self.heard_at < self.barred_at { self.strikes } else { 0 }
    }
    /// By how much the last one to come back took longer than usual.
    pub(super) fn last_excess(&self) -> Span {
        self.excess[0]
    }

    /// A chunk is back that had timed out before, or was lost. If it left while the link was left alone, that works.
    pub(super) fn take_again(&mut self, now: Time, sent: &Sent) {
        self.take(sent);
        if sent.since >= self.barred_at {
            self.absolve(now, true);
        }
    }
    /// A chunk is not looked for on it any more. Those before it are.
    fn give_up(&mut self, sent: &Sent) {
        self.out.retain(|out| out.number != sent.number);
        self.bytes -= sent.bytes;
    }
    /// Something has come back in the later half of the time for which `sent` has been out, so that what is before it moves.
    fn has_moved(&self, now: Time, sent: &Sent) -> bool {
        self.heard_at.until(now) * 2 < sent.since.until(now) && !self.is_barred(now)
    }
    /// A chunk is not on it any more, and those before it say nothing of it.
    pub(super) fn take(&mut self, sent: &Sent) {
        while self.out.front().is_some_and(|out| out.number <= sent.number) {
            self.out.pop_front();
        }
        self.bytes -= sent.bytes;
    }

    /// A chunk is back. The window of the link is cut if the last `needed` were late: to what would have been in time.
    pub(super) fn judge(&mut self, back: &Return, needed: usize) {
        let had = self.bytes as f64;
        match back.undone {
            true => self.absolve(back.now, back.excess > back.late),
            false => self.take(&back.sent),
        }
        (self.heard_at, self.newest) = (back.now, self.newest.max(back.sent.number));
        self.excess.rotate_right(1);
        self.excess[0] = back.excess;
        self.took = back.took;
        let least = self.excess[..needed].iter().copied().fold(Span::MAX, Span::min);
        let aim = back.late * AIM;
        let most = if self.window.is_some() { aim } else { back.late };
        if least > most {
            if self.window.is_none() && back.now > self.suspected_until {
                // Perhaps many have met there. If that is all, it is over by then.
                let over = Time((least - back.late) as u64);
                self.paused_until = back.now + over;
                self.cut_at = self.paused_until;
                self.suspected_until = self.paused_until + over * FORGIVEN_AFTER;
            } else if back.sent.since >= self.cut_at {
                let window = self.window.map_or(had, |window| window.min(had));
                let window = window * (1.0 - (least - aim) / back.took);
                (self.window, self.cut_at) =
                    (Some(window.max(back.chunk * LEAST_WINDOW)), back.now);
            }
        } else if let Some(window) = &mut self.window
            && back.excess < aim
        {
            let growth = ((aim - back.excess) / back.took * GROWTH).min(1.0);
            *window += back.chunk.min(*window) * growth;
        }
        if let Some(window) = self.window.filter(|window| *window < back.chunk) {
            let pause = back.took * (back.chunk / window - 1.0);
            self.paused_until = back.now + Time(pause as u64);
        }
    }

    /// A new connection by it was answered.
    pub(super) fn works(&mut self, now: Time) {
        if self.barred_at < Time::MAX {
            self.absolve(now, false);
        }
    }

    /// It works: what timed out on it was perhaps late.
    fn absolve(&mut self, now: Time, is_late: bool) {
        self.barred_at = Time::ZERO;
        if self.is_barred(now) {
            self.barred_until = now;
            self.strikes = self.strikes.saturating_sub(1);
            self.window = if is_late { self.window } else { self.before };
        }
    }

    /// A chunk has timed out, or is lost. The link is left alone if nothing that left after it has come back by it, unless
    /// something else has not long ago: then it is slow. Always if that is no excuse: nobody drops packets where queues
    /// are short.
    pub(super) fn lose(&mut self, now: Time, sent: &Sent, chunk: f64, is_bad: bool) {
        let is_silent = self.out.front().is_some_and(|out| out.number <= sent.number);
        if is_silent && !is_bad && self.has_moved(now, sent) {
            return self.give_up(sent);
        }
        self.take(sent);
        if !is_silent && !is_bad {
            return;
        }
        if !self.is_barred(now) {
            self.before = self.window;
            self.strikes = if now > self.forgiven_at { 1 } else { self.strikes + 1 };
            let bar = sent.since.until(now) * (1 << (BAR_DOUBLED * self.strikes.min(MOST_STRIKES)));
            self.barred_until = now + bar;
            self.barred_at = if is_bad { Time::MAX } else { now };
            self.forgiven_at = now + bar * FORGIVEN_AFTER;
        } else if sent.since >= self.barred_at {
            // All were left alone, and another one goes first the next time.
            self.strikes += 1;
        }
        self.window = Some(chunk);
        // Nothing may ever have come back by it.
        self.took = self.took.max(sent.since.until(now).0 as Span);
    }
}
