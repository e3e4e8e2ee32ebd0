//! Cuts: links that all of some messages must cross, taken together.
//!
//! For the messages that cross a cut, and for any part of them, the last bit leaves the cut no
//! earlier than the first of them can reach it plus the time that all their bytes take from then
//! on, and the packet that it belongs to still has the rest of its way to go. Parts
//! are tried by the time from which on they can arrive: all, all but the earliest, ...

use super::carrying::Carrying;
use super::{Ground, drain};
use crate::cuts::{CUTS, Cut, Rates, crossing};
use crate::traffic::{Stream, Traffic};
use std::collections::BTreeMap;
use weft_units::{IdVec, MessageId, Time};
use weft_workload::Workload;

/// The longest time that any cut asks for.
pub(super) fn fullest(
    ground: &Ground<'_>,
    carrying: &BTreeMap<(Cut, u32), Carrying>,
    workload: &Workload,
    posted: &IdVec<MessageId, Time>,
) -> Time {
    let times = CUTS.iter().map(|cut| cut.fullest(ground, carrying, workload, posted));
    times.max().unwrap_or(Time::ZERO)
}

/// The same of ranks, all of whose messages may be there as soon as the first can.
pub(super) fn fullest_of(
    ground: &Ground<'_>,
    carrying: &BTreeMap<(Cut, u32), Carrying>,
    traffic: &Traffic,
) -> Time {
    /// What crosses a cut, by host, leaf or pod: the bytes, and the least way before and behind it.
    type Load = (u64, Time, Time);
    const NOTHING: Load = (0, Time::MAX, Time::MAX);
    let of = |stream: &Stream| {
        (ground.wire_bytes(stream.bytes) * stream.times, ground.path(stream.src, stream.dst))
    };
    let loads = crossing(ground.fabric, traffic, NOTHING, of, |load, (wire, path), link| {
        let (before, after) = (path.before[link], path.after[link]);
        *load = (load.0 + wire, load.1.min(before), load.2.min(after));
    });
    let all = CUTS.into_iter().zip(loads).flat_map(|(cut, loads)| {
        let places = (0..).zip(loads).filter(|(_, load)| *load != NOTHING);
        places.map(move |(place, load)| ((cut, place), load))
    });
    let times = all.map(|(cut, (bytes, before, after))| {
        let carried = carrying.get(&cut).and_then(|carrying| carrying.carried(before, bytes));
        carried.unwrap_or_else(|| before + drain(bytes, cut.0.rate(ground.fabric, cut.1))) + after
    });
    times.max().unwrap_or(Time::ZERO)
}

/// A message at a cut.
struct Crossing {
    /// When its first packet can be there.
    from: Time,
    /// Which host, leaf or pod.
    place: u32,
    message: MessageId,
    /// Which link of the message's path.
    link: u8,
}

/// What is known of one cut so far.
#[derive(Clone, Copy)]
struct Load {
    bytes: u64,
    /// The least that any of the messages has left to go behind the cut.
    after: Time,
}

impl Cut {
    fn fullest(
        self,
        ground: &Ground<'_>,
        carrying: &BTreeMap<(Cut, u32), Carrying>,
        workload: &Workload,
        posted: &IdVec<MessageId, Time>,
    ) -> Time {
        let messages = workload.messages();
        let mut crossings: Vec<Crossing> = messages
            .enumerate()
            .filter_map(|(id, message)| {
                let (link, place) = self.place(ground.fabric, message.src, message.dst)?;
                let from = posted[id] + ground.path(message.src, message.dst).before[link];
                Some(Crossing { from, place, message: id, link: link as u8 })
            })
            .collect();
        crossings.sort_unstable_by_key(|crossing| std::cmp::Reverse(crossing.from));
        let places = crossings.iter().map(|crossing| crossing.place as usize + 1).max();
        let mut loads = vec![Load { bytes: 0, after: Time::MAX }; places.unwrap_or(0)];
        let mut rates = Rates::new(self, ground.fabric);
        let mut fullest = Time::ZERO;
        for crossing in crossings {
            let message = &messages[crossing.message];
            let load = &mut loads[crossing.place as usize];
            load.bytes += ground.wire_bytes(message.bytes);
            load.after = load
                .after
                .min(ground.path(message.src, message.dst).after[usize::from(crossing.link)]);
            // A cut that will never let all through stalls the run, which says so itself.
            let carrying = carrying.get(&(self, crossing.place));
            let left = match carrying.and_then(|c| c.carried(crossing.from, load.bytes)) {
                Some(left) => left,
                None => crossing.from + drain(load.bytes, rates.of(crossing.place)),
            };
            fullest = fullest.max(left + load.after);
        }
        fullest
    }
}
