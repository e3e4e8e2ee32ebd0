//! A channel that loses, delays, duplicates, trims and reorders packets and answers alike.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_units::{Draw, Stream, Time};

/// How the channel treats everybody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Probability of a loss.
    pub(crate) loss: f64,
    /// Probability that what arrives does so twice.
    pub(crate) twice: f64,
    /// Probability that a data packet loses its payload.
    pub(crate) trims: f64,
    pub(crate) delay: Time,
    /// Random extra delay: packets overtake each other.
    pub(crate) jitter: Time,
    pub(crate) rto: Time,
    pub(crate) window: u32,
}

pub(crate) const FAIR: Weather = Weather {
    loss: 0.0,
    twice: 0.0,
    trims: 0.0,
    delay: Time::us(5),
    jitter: Time::ZERO,
    rto: Time::us(40),
    window: 16,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Parcel {
    Data(u32),
    /// A data packet without its payload.
    Header(u32),
    Ack {
        seq: u32,
        cumulative: u32,
    },
    Nack {
        seq: u32,
        cumulative: u32,
    },
}

/// Whatever is under way, both ways.
pub(crate) struct Channel {
    weather: Weather,
    chance: Stream,
    /// The second is a number of its own, so that equal times are in the order of posting.
    under_way: BinaryHeap<Reverse<(Time, u64, Parcel)>>,
    posted: u64,
}

impl Channel {
    pub(crate) fn new(weather: Weather, seed: u64) -> Channel {
        let chance = Draw::new(seed, "channel").stream(0);
        Channel { weather, chance, under_way: BinaryHeap::new(), posted: 0 }
    }
    /// Posts a data packet, of which `copies` may arrive.
    pub(crate) fn post_data(&mut self, now: Time, seq: u32, copies: bool) {
        let trimmed = self.chance.unit() < self.weather.trims;
        let parcel = if trimmed { Parcel::Header(seq) } else { Parcel::Data(seq) };
        self.post(now, parcel, copies);
    }
    pub(crate) fn post_answer(&mut self, now: Time, parcel: Parcel) {
        self.post(now, parcel, true);
    }
    fn post(&mut self, now: Time, parcel: Parcel, copies: bool) {
        if self.chance.unit() < self.weather.loss {
            return;
        }
        let twice = copies && self.chance.unit() < self.weather.twice;
        for _ in 0..=u32::from(twice) {
            let jitter = self.chance.below(self.weather.jitter.0 as u32 + 1);
            let at = now + self.weather.delay + Time(u64::from(jitter));
            self.posted += 1;
            self.under_way.push(Reverse((at, self.posted, parcel)));
        }
    }
    /// When the next parcel arrives.
    pub(crate) fn next(&self) -> Option<Time> {
        self.under_way.peek().map(|Reverse((at, ..))| *at)
    }
    pub(crate) fn take(&mut self) -> Parcel {
        self.under_way.pop().expect("something is under way").0.2
    }
}
