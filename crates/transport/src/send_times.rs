//! When the packets of a queue pair left: what a host keeps where somebody wants round-trip
//! times (Swift among congestion controls, some load balancers).
//!
//! A ring by packet number. It holds the numbers from the first that is not yet forgotten to the
//! last put in, and grows by doubling until these fit: as much memory as the widest such stretch
//! ever took, which follows the window so long as [`SendTimes::forget_below`] is called.

use weft_units::Time;

/// The departure times of the packets of one queue pair, by number.
#[derive(Clone, Debug, Default)]
pub struct SendTimes {
    /// Zero or a power of two slots; a number lies at its remainder.
    ring: Box<[Time]>,
    /// All numbers below are forgotten.
    first: u32,
    /// One beyond the greatest number put in, `first` at least. Slots of `first..end` are set.
    end: u32,
    /// By which way each left, as its host numbers ways, if it says so; in the slots of `ring`.
    ways: Box<[u32]>,
}

/// A number that no packet has had yet: no departure is that late.
const NEVER: Time = Time::MAX;
/// The packet has left before. No departure is that late, either.
const AGAIN: u64 = 1 << 63;
/// It has left more than once before.
const OFTEN: u64 = 1 << 62;

impl SendTimes {
    /// Slots that a ring starts with.
    const LEAST: usize = 16;

    /// Packet `seq` leaves at `now`. A packet that leaves again has its last departure kept, so
    /// that an acknowledgement of its first copy makes its round trip look too short, unless one asks
    /// by [`SendTimes::of_copy`]. A number already forgotten stays so.
    #[inline(always)]
    pub fn put(&mut self, seq: u32, now: Time) {
        if seq < self.first {
            return;
        }
        if (seq - self.first) as usize >= self.ring.len() {
            self.grow(seq);
        }
        while self.end <= seq {
            self.set(self.end, NEVER);
            self.end += 1;
        }
        let again = match self.ring[slot(&self.ring, seq)] {
            NEVER => 0,
            before if before.0 & AGAIN == 0 => AGAIN,
            _ => AGAIN | OFTEN,
        };
        self.set(seq, Time(now.0 | again));
    }

    /// Packet `seq`, which has just been put in, leaves by `way`.
    pub fn put_way(&mut self, seq: u32, way: u32) {
        if seq < self.first {
            return;
        }
        if self.ways.len() != self.ring.len() {
            let mut wider = vec![0; self.ring.len()].into_boxed_slice();
            if !self.ways.is_empty() {
                for old in self.first..self.end {
                    wider[old as usize & (wider.len() - 1)] =
                        self.ways[old as usize & (self.ways.len() - 1)];
                }
            }
            self.ways = wider;
        }
        self.ways[slot(&self.ring, seq)] = way;
    }
    /// By which way packet `seq` left last, if it left no later than `by` and its host said.
    pub fn way_until(&self, seq: u32, by: Time) -> Option<u32> {
        let left = self.get(seq)?;
        let is_known = left <= by && self.ways.len() == self.ring.len();
        is_known.then(|| self.ways[slot(&self.ring, seq)])
    }

    /// When packet `seq` left last; `None`: it has not, or it is forgotten.
    #[inline(always)]
    pub fn get(&self, seq: u32) -> Option<Time> {
        self.slot_of(seq).map(|time| Time(time.0 & !(AGAIN | OFTEN)))
    }
    /// When the copy of packet `seq` left that was acknowledged, if there can be no doubt: it is the only
    /// one, or the second of two, and the acknowledgement says that it was `resent`.
    pub fn of_copy(&self, seq: u32, resent: bool) -> Option<Time> {
        let time = self.slot_of(seq)?;
        (time.0 & OFTEN == 0 && resent == (time.0 & AGAIN != 0)).then_some(Time(time.0 & !AGAIN))
    }
    #[inline(always)]
    fn slot_of(&self, seq: u32) -> Option<Time> {
        if !(self.first..self.end).contains(&seq) {
            return None;
        }
        Some(self.ring[slot(&self.ring, seq)]).filter(|time| *time != NEVER)
    }

    /// Nobody will ask for a packet below `seq` any more: all of them are acknowledged.
    #[inline(always)]
    pub fn forget_below(&mut self, seq: u32) {
        self.first = self.first.max(seq);
        self.end = self.end.max(self.first);
    }

    /// How many numbers the ring has room for.
    pub fn capacity(&self) -> usize {
        self.ring.len()
    }

    #[inline(always)]
    fn set(&mut self, seq: u32, time: Time) {
        let slot = slot(&self.ring, seq);
        self.ring[slot] = time;
    }

    /// Doubles the ring until `seq` has a slot of its own.
    #[cold]
    fn grow(&mut self, seq: u32) {
        let span = (seq - self.first) as usize + 1;
        let slots = span.next_power_of_two().max(SendTimes::LEAST);
        let mut wider = vec![NEVER; slots].into_boxed_slice();
        for old in self.first..self.end {
            wider[slot(&wider, old)] = self.ring[slot(&self.ring, old)];
        }
        self.ring = wider;
    }
}

/// Where `seq` lies in `ring`, which has some slots.
#[inline(always)]
fn slot(ring: &[Time], seq: u32) -> usize {
    seq as usize & (ring.len() - 1)
}
