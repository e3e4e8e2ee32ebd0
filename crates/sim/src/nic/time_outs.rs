//! Which queue pairs have timed out and how far each backs off, and which have changed their route: apart from the queue
//! pairs, most of which never do.

use rustc_hash::FxHashMap;
use weft_balance::steer::TimeOut;
use weft_transport::BackOff;
use weft_units::Time;

/// The queue pairs of a partition that have been in trouble, by number. Never iterated.
#[derive(Debug, Default)]
pub(crate) struct TimeOuts {
    back_offs: FxHashMap<u32, BackOff>,
    /// When each took the route that it has, if it was opened with another one.
    rerouted: FxHashMap<u32, Time>,
}

impl TimeOuts {
    /// The time-out of queue pair `id`, where `rto` is the usual one and so many of its packets have arrived.
    pub(super) fn of(&self, id: u32, rto: Time, arrived: u32) -> Time {
        self.back_offs.get(&id).map_or(rto, |back_off| back_off.of(rto, arrived))
    }

    /// As [`BackOff::timed_out`].
    pub(super) fn back_off(&mut self, id: u32, now: Time, after: Time, arrived: u32) {
        self.back_offs.entry(id).or_default().timed_out(now, after, arrived);
    }

    /// Queue pair `id` goes on by another route.
    pub(super) fn reroute(&mut self, id: u32, now: Time) {
        self.rerouted.insert(id, now);
    }

    /// Whether a time-out of queue pair `id` says something of the route that it has now.
    pub(super) fn is_of_route(&self, id: u32, time_out: TimeOut) -> bool {
        self.rerouted.get(&id).is_none_or(|since| time_out.reaches(*since))
    }

    /// Queue pair `id` is over.
    pub(super) fn forget(&mut self, id: u32) {
        self.back_offs.remove(&id);
        self.rerouted.remove(&id);
    }
}
