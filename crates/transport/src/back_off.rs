//! Time-outs that double while nothing gets through (RFC 6298, section 5.5), where a fixed time-out
//! is configured ([`TransportConfig::backs_off`](crate::TransportConfig::backs_off)).

use weft_units::Time;

/// How much longer than at first a queue pair that backs off may wait.
pub const MOST_BACKED_OFF: u64 = 16;

/// How far the time-out of one queue pair has doubled. The default: it has never run out.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackOff {
    /// How often it has doubled.
    doubled: u32,
    /// Packets that had arrived (without a gap, where only those are counted) when it last ran out, and when
    /// that was, as far as it counts.
    last: Option<(u32, Time)>,
}

impl BackOff {
    /// The time-out that runs now, where `rto` is the usual one and so many packets have arrived: the usual
    /// one again as soon as any has since it last ran out.
    pub fn of(&self, rto: Time, arrived: u32) -> Time {
        let waits_longer = self.last.is_some_and(|(before, _)| before == arrived);
        Time(rto.0.saturating_mul(if waits_longer { 1 << self.doubled } else { 1 }))
    }

    /// The queue pair has timed out now, after `after`, and so many of its packets have arrived:
    /// none since the last time, and it waits twice as long. What was lost beside a packet times
    /// out soon after it, which is the same time-out.
    pub fn timed_out(&mut self, now: Time, after: Time, arrived: u32) {
        match self.last {
            Some((before, at)) if before == arrived && now < at.saturating_add(after) => return,
            Some((before, _)) if before == arrived => {
                self.doubled = (self.doubled + 1).min(MOST_BACKED_OFF.ilog2());
            }
            _ => self.doubled = 0,
        }
        self.last = Some((arrived, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Time = Time::ms(1);

    #[test]
    fn it_doubles_while_nothing_arrives_up_to_the_most() {
        let (mut back_off, mut now) = (BackOff::default(), Time::ZERO);
        for doubled in [1, 1, 2, 4, 8, 16, 16] {
            let after = back_off.of(RTO, 5);
            assert_eq!(after, RTO * doubled);
            now += after;
            back_off.timed_out(now, after, 5);
        }
        // One more has arrived: what was sent beside it has its usual time.
        assert_eq!(back_off.of(RTO, 6), RTO);
        back_off.timed_out(now, RTO, 6);
        assert_eq!(back_off.of(RTO, 6), RTO);
    }

    #[test]
    fn packets_lost_together_are_one_time_out() {
        let mut back_off = BackOff::default();
        for late in 0..10 {
            back_off.timed_out(RTO + Time::us(late), RTO, 0);
        }
        assert_eq!(back_off.of(RTO, 0), RTO);
    }
}
