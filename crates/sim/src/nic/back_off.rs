//! Which queue pairs have timed out, and how far each backs off: apart from the queue pairs, most of
//! which never time out.

use rustc_hash::FxHashMap;
use weft_transport::BackOff;
use weft_units::Time;

/// The queue pairs of a partition that have timed out, by number. Never iterated.
#[derive(Debug, Default)]
pub(crate) struct BackOffs(FxHashMap<u32, BackOff>);

impl BackOffs {
    /// The time-out of queue pair `id`, where `rto` is the usual one.
    pub(super) fn of(&self, id: u32, rto: Time) -> Time {
        self.0.get(&id).map_or(rto, |back_off| back_off.of(rto))
    }

    /// As [`BackOff::timed_out`].
    pub(super) fn timed_out(&mut self, id: u32, now: Time, after: Time, arrived: u32) {
        self.0.entry(id).or_default().timed_out(now, after, arrived);
    }

    /// Queue pair `id` is over.
    pub(super) fn forget(&mut self, id: u32) {
        self.0.remove(&id);
    }
}
