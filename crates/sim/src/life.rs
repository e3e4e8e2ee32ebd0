//! Signs of life: when a message was posted or a receiver accepted a packet.
//!
//! A run that shows none for too long has stalled. A domain knows its own signs only; when a
//! timer finds them too old, the other domains are asked (`windows`).

use weft_units::Time;

/// The signs of one domain, and those of others that it has heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// The last one.
    last: Time,
    /// The last one before this window.
    before: Time,
    /// The first one in this window; [`Time::MAX`] if there is none yet.
    first: Time,
}

impl Life {
    pub(crate) const START: Life = Life { last: Time::ZERO, before: Time::ZERO, first: Time::MAX };

    #[inline(always)]
    pub(crate) fn sign(&mut self, now: Time) {
        self.last = now;
        self.first = self.first.min(now);
    }
    pub(crate) fn begin_window(&mut self) {
        (self.before, self.first) = (self.last, Time::MAX);
    }
    /// Hears of a sign elsewhere.
    pub(crate) fn hear(&mut self, sign: Time) {
        self.last = self.last.max(sign);
    }
    /// For how long there has been no sign at `now`.
    pub(crate) fn silence(&self, now: Time) -> Time {
        self.last.until(now)
    }
    /// The last sign that was not after `time`, a time of this window; or an earlier one of
    /// this window.
    pub(crate) fn last_until(&self, time: Time) -> Time {
        let known = [self.last, self.first, self.before];
        known.into_iter().find(|sign| *sign <= time).unwrap_or(Time::ZERO)
    }
}
