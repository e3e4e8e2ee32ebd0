//! How fast to probe. A switch answers few probes a second (Linux: 6, then one a second for each host that
//! asks; others some hundred for all together), and whatever is above that is lost without a word.
//!
//! So every distance has a pace of its own: it slows down when answers stay away several times in a row
//! from where some came before, and quickens again with every answer. One that stays away alone may be
//! that of a silent switch among others. A switch is taken for silent only after a probe that came after
//! a pause: then no limit can be the reason.

use weft_units::Time;

/// Probes that may be out at one distance: what is lost if a limit is met.
const WINDOW: u32 = 8;
/// The first interval after a loss, and the longest.
const SLOW: Time = Time::ms(100);
const SLOWEST: Time = Time::secs(2);
/// A switch that has not been asked for so long has an answer left, were it one a second.
const PAUSE: Time = Time::ms(1_250);
/// Losses without an answer between them that make it slower.
const IN_A_ROW: u32 = 2;
/// Silent ports after which a distance is known to have a silent switch, if nobody else was late there: pauses
/// cost time.
const KNOWN_SILENT: u32 = 3;

/// The pace at one distance.
#[derive(Clone, Copy, Debug)]
struct Distance {
    interval: Time,
    next: Time,
    /// When a probe last left, and when the pace last slowed down.
    last: Option<Time>,
    slowed: Time,
    out: u32,
    answers: u32,
    /// Losses since the last answer.
    losses: u32,
    silent: u32,
    /// A port was answered here after it had not been: there is a limit, or loss.
    is_limited: bool,
}

/// The paces at all distances.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    shortest: Time,
    next: Time,
    by_ttl: Vec<Distance>,
}

impl Pace {
    pub(crate) fn new(shortest: Time, hops: u8) -> Pace {
        let one = Distance {
            interval: shortest,
            next: Time::ZERO,
            last: None,
            slowed: Time::ZERO,
            out: 0,
            answers: 0,
            losses: 0,
            silent: 0,
            is_limited: false,
        };
        Pace { shortest, next: Time::ZERO, by_ttl: vec![one; usize::from(hops) + 2] }
    }

    fn at(&mut self, ttl: u8) -> &mut Distance {
        &mut self.by_ttl[usize::from(ttl)]
    }

    /// When a probe of this distance may leave; after a pause, if it is to be the last of its port.
    pub(crate) fn ready(&self, ttl: u8, after_pause: bool) -> Time {
        let one = &self.by_ttl[usize::from(ttl)];
        if one.out >= WINDOW || after_pause && one.out > 0 {
            return Time::MAX;
        }
        let paused = match one.last {
            Some(last) if after_pause => last.saturating_add(PAUSE),
            _ => Time::ZERO,
        };
        self.next.max(one.next).max(paused)
    }

    /// Whether a last probe needs a pause before it.
    pub(crate) fn needs_pause(&self, ttl: u8) -> bool {
        let one = &self.by_ttl[usize::from(ttl)];
        one.is_limited || one.silent < KNOWN_SILENT
    }

    pub(crate) fn sent(&mut self, now: Time, ttl: u8) {
        self.next = now.saturating_add(self.shortest);
        let one = self.at(ttl);
        one.next = now.saturating_add(one.interval);
        one.last = Some(now);
        one.out += 1;
    }

    /// The first probe of a port at this distance was answered, or another.
    pub(crate) fn answered(&mut self, ttl: u8, is_first: bool) {
        let shortest = self.shortest;
        let one = self.at(ttl);
        one.out -= 1;
        one.is_limited |= !is_first;
        one.answers += 1;
        one.losses = 0;
        one.interval = Time(one.interval.0 - one.interval.0 / 16).max(shortest);
    }

    /// A probe could not leave.
    pub(crate) fn unsent(&mut self, ttl: u8) {
        self.at(ttl).out -= 1;
    }

    /// A probe that left at `sent` was not answered, the first of its port there or another.
    pub(crate) fn lost(&mut self, now: Time, ttl: u8, sent: Time, is_first: bool) {
        let one = self.at(ttl);
        one.out -= 1;
        // Of a silent switch all others are lost too.
        one.losses += u32::from(is_first);
        // Once for all that were out when it slowed down; and where nobody ever answers no pace helps.
        if one.answers > 0 && is_first && one.losses >= IN_A_ROW && one.slowed <= sent {
            one.interval = Time(one.interval.0 * 2).clamp(SLOW, SLOWEST);
            one.slowed = now;
        }
    }

    /// A port got no answer at this distance after all tries.
    pub(crate) fn silent(&mut self, ttl: u8) {
        self.at(ttl).silent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_slows_down_once_for_what_was_out_and_quickens_with_answers() {
        let mut pace = Pace::new(Time::ms(10), 4);
        for at in [0, 10, 20, 30] {
            assert_eq!(pace.ready(2, false), Time::ms(at));
            pace.sent(Time::ms(at), 2);
        }
        pace.answered(2, true);
        for at in [10, 20, 30] {
            pace.lost(Time::ms(400 + at), 2, Time::ms(at), true);
        }
        pace.sent(Time::ms(500), 2);
        assert_eq!(pace.ready(2, false), Time::ms(600));
        pace.answered(2, true);
        pace.sent(Time::ms(600), 2);
        assert_eq!(pace.ready(2, false), Time::us(693_750));
        // Other distances have switches of their own.
        assert_eq!(pace.ready(3, false), Time::ms(610));
    }

    #[test]
    fn a_last_probe_waits_for_a_pause_and_for_what_is_out() {
        let mut pace = Pace::new(Time::ms(10), 4);
        pace.sent(Time::ZERO, 2);
        assert_eq!(pace.ready(2, true), Time::MAX);
        pace.answered(2, true);
        assert_eq!(pace.ready(2, true), Time::ms(1_250));
    }

    #[test]
    fn nobody_answers_at_any_pace() {
        let mut pace = Pace::new(Time::ms(10), 4);
        pace.sent(Time::ZERO, 2);
        pace.lost(Time::ms(400), 2, Time::ZERO, true);
        assert_eq!(pace.ready(2, false), Time::ms(10));
    }
}
