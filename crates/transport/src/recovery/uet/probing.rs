//! When a sender asks what has arrived: SLEEK's probes, which find the loss of the last packets of a window before
//! they time out, since nothing comes behind them that would tell of it (UEC htsim; after STrack).

use crate::congestion::Delays;
use weft_units::{Alarm, Ring, Time};

/// The timer of a queue pair's probes, and the last one that left.
#[derive(Clone, Debug)]
pub struct Probing {
    alarm: Alarm,
    sent: Time,
    number: u32,
}

impl Probing {
    pub(super) const IDLE: Probing = Probing { alarm: Alarm::OFF, sent: Time::ZERO, number: 0 };

    /// An acknowledgement has come, and `all_left`: what is not acknowledged is out. When to [look](Probing::look), if that
    /// is sooner than planned.
    pub fn put_off(&mut self, now: Time, delays: Delays, all_left: bool) -> Option<Time> {
        let Delays { base_rtt, target } = delays;
        self.alarm.set(now + if all_left { base_rtt + target } else { base_rtt * FIRST })
    }
    /// Nothing is left to ask for.
    pub fn stop(&mut self) {
        self.alarm.stop();
    }
    /// It was to be looked at now: whether a probe is to leave, which is [noted](Probing::leave) then.
    pub fn look(&mut self, now: Time) -> Ring {
        self.alarm.ring(now)
    }
    /// A probe leaves: its number, and when to look again.
    pub fn leave(&mut self, now: Time, delays: Delays) -> (u32, Option<Time>) {
        self.number += 1;
        self.sent = now;
        (self.number, self.alarm.set(now + delays.base_rtt * AGAIN))
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
        assert_eq!(probing.put_off(us(20), DELAYS, false), None);
        assert_eq!(probing.look(us(35)), Ring::At(us(50)));
        // All has left: sooner.
        assert_eq!(probing.put_off(us(30), DELAYS, true), Some(us(48)));
        assert_eq!(probing.look(us(48)), Ring::Now);
        assert_eq!(probing.leave(us(48), DELAYS), (1, Some(us(98))));
        assert_eq!((probing.age(us(60), 1), probing.age(us(60), 2)), (Some(us(12)), None));
        assert_eq!(probing.look(us(98)), Ring::Now);
        assert_eq!(probing.leave(us(98), DELAYS), (2, Some(us(148))));
        probing.stop();
        assert_eq!(probing.look(us(148)), Ring::No);
    }
}
