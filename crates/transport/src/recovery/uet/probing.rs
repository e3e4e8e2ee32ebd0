//! When a sender asks what has arrived: SLEEK's probes, which find the loss of the last packets of a window before
//! they time out, since nothing comes behind them that would tell of it (UEC htsim; after STrack).

use crate::congestion::Delays;
use weft_units::Time;

/// The timer of a queue pair's probes, and the last one that left.
#[derive(Clone, Debug)]
pub struct Probing {
    /// When the next one is due; [`Time::MAX`]: none is.
    due: Time,
    /// When whoever drives this looks next; [`Time::MAX`]: not before it is told to.
    wake: Time,
    sent: Time,
    number: u32,
}

/// What to do when a probe may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeDue {
    /// Nothing.
    No,
    /// Look again then.
    At(Time),
    /// Send the probe of this number, and look again then.
    Now(u32, Time),
}

impl Probing {
    pub(super) const IDLE: Probing =
        Probing { due: Time::MAX, wake: Time::MAX, sent: Time::ZERO, number: 0 };

    /// An acknowledgement has come, and `all_left`: what is not acknowledged is out. When to look, if that is sooner than
    /// planned.
    pub fn put_off(&mut self, now: Time, delays: Delays, all_left: bool) -> Option<Time> {
        let Delays { base_rtt, target } = delays;
        self.due = now + if all_left { base_rtt + target } else { base_rtt * FIRST };
        (self.due < self.wake).then(|| {
            self.wake = self.due;
            self.due
        })
    }
    /// Nothing is left to ask for.
    pub fn stop(&mut self) {
        self.due = Time::MAX;
    }
    /// It was to be looked at now.
    pub fn look(&mut self, now: Time, delays: Delays) -> ProbeDue {
        if now != self.wake {
            // A later look stands for this one.
            return ProbeDue::No;
        }
        self.wake = self.due;
        if self.due == Time::MAX {
            return ProbeDue::No;
        }
        if now < self.due {
            return ProbeDue::At(self.due);
        }
        self.number += 1;
        self.sent = now;
        self.due = now + delays.base_rtt * AGAIN;
        self.wake = self.due;
        ProbeDue::Now(self.number, self.due)
    }
    /// How long ago probe `number` left, if it was the last.
    pub fn age(&self, now: Time, number: u32) -> Option<Time> {
        (number == self.number).then(|| self.sent.until(now))
    }
}

/// Round trips after an acknowledgement until the first probe, while there is something new to send
/// ("probe_first_trial_time").
const FIRST: u64 = 3;
/// From then on ("probe_retry_time").
const AGAIN: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYS: Delays = Delays { base_rtt: Time::us(10), target: Time::us(8) };

    #[test]
    fn probes_come_when_nothing_else_does() {
        let mut probing = Probing::IDLE;
        let us = Time::us;
        assert_eq!(probing.put_off(us(5), DELAYS, false), Some(us(35)));
        // Put off: whoever looks at the old time hears of the new one.
        assert_eq!(probing.put_off(us(20), DELAYS, false), None);
        assert_eq!(probing.look(us(35), DELAYS), ProbeDue::At(us(50)));
        // All has left: sooner. The look that was planned then says nothing.
        assert_eq!(probing.put_off(us(30), DELAYS, true), Some(us(48)));
        assert_eq!(probing.look(us(48), DELAYS), ProbeDue::Now(1, us(98)));
        assert_eq!(probing.look(us(50), DELAYS), ProbeDue::No);
        assert_eq!((probing.age(us(60), 1), probing.age(us(60), 2)), (Some(us(12)), None));
        assert_eq!(probing.look(us(98), DELAYS), ProbeDue::Now(2, us(148)));
        probing.stop();
        assert_eq!(probing.look(us(148), DELAYS), ProbeDue::No);
    }
}
