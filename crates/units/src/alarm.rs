//! A time that may be put off, for those who are called once for each time that they asked for.

use crate::Time;

/// When something is due, and when its owner is called next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// [`Time::MAX`]: nothing is.
    due: Time,
    /// [`Time::MAX`]: not before somebody asks.
    call: Time,
}

/// What a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Nothing: another call stands for this one, or nothing is due any more.
    No,
    /// It was put off: call again then.
    At(Time),
    /// It is due, and the alarm is off.
    Now,
}

impl Alarm {
    /// Nothing is due.
    pub const OFF: Alarm = Alarm { due: Time::MAX, call: Time::MAX };

    /// It is due at `due`, and no sooner or later than that. When to call, if that is sooner than asked for so far.
    #[must_use]
    pub fn set(&mut self, due: Time) -> Option<Time> {
        self.due = due;
        (due < self.call).then(|| {
            self.call = due;
            due
        })
    }
    /// Nothing is due any more.
    pub fn stop(&mut self) {
        self.due = Time::MAX;
    }
    /// Somebody calls.
    pub fn ring(&mut self, now: Time) -> Ring {
        if now != self.call {
            return Ring::No;
        }
        self.call = Time::MAX;
        if self.due <= now {
            self.due = Time::MAX;
            return Ring::Now;
        }
        self.set(self.due).map_or(Ring::No, Ring::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_a_time() {
        let mut alarm = Alarm::OFF;
        let us = Time::us;
        assert_eq!(alarm.ring(us(1)), Ring::No);
        assert_eq!(alarm.set(us(35)), Some(us(35)));
        // Put off: who calls at the old time hears of the new one.
        assert_eq!((alarm.set(us(50)), alarm.ring(us(35))), (None, Ring::At(us(50))));
        // Sooner: the call that was asked for before says nothing.
        assert_eq!((alarm.set(us(48)), alarm.ring(us(48))), (Some(us(48)), Ring::Now));
        assert_eq!(alarm.ring(us(50)), Ring::No);
        assert_eq!(alarm.set(us(60)), Some(us(60)));
        alarm.stop();
        assert_eq!((alarm.ring(us(60)), alarm.set(us(70))), (Ring::No, Some(us(70))));
    }
}
