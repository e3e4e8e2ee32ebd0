//! Time-outs that double while nothing gets through (RFC 6298, section 5.5): apart from the queue pairs,
//! most of which never time out.

use rustc_hash::FxHashMap;
use weft_transport::MOST_BACKED_OFF;
use weft_units::Time;

/// The queue pairs of a partition that have timed out, by number. Never iterated.
#[derive(Debug, Default)]
pub(crate) struct BackOffs(FxHashMap<u32, BackOff>);

#[derive(Clone, Copy, Debug)]
struct BackOff {
    /// How often the time-out has doubled.
    doubled: u32,
    /// Packets that had arrived when it last ran out.
    arrived: u32,
    /// When that was, as far as it counts.
    at: Time,
}

impl BackOffs {
    /// The time-out of queue pair `id`, where `rto` is the usual one.
    pub(super) fn of(&self, id: u32, rto: Time) -> Time {
        let doubled = self.0.get(&id).map_or(0, |back_off| back_off.doubled);
        Time(rto.0.saturating_mul(1 << doubled))
    }

    /// Queue pair `id` has timed out now, after `after`, and so many of its packets have arrived:
    /// none since the last time, and it waits twice as long. What was lost beside a packet times
    /// out soon after it, which is the same time-out.
    pub(super) fn timed_out(&mut self, id: u32, now: Time, after: Time, arrived: u32) {
        let new = BackOff { doubled: 0, arrived, at: now };
        let last = self.0.entry(id).or_insert(new);
        if last.arrived != arrived {
            *last = new;
        } else if now >= last.at.saturating_add(after) {
            let doubled = (last.doubled + 1).min(MOST_BACKED_OFF.ilog2());
            *last = BackOff { doubled, ..new };
        }
    }

    /// Queue pair `id` is over.
    pub(super) fn forget(&mut self, id: u32) {
        self.0.remove(&id);
    }
}
