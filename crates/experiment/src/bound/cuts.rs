//! Cuts: links that all of some messages must cross, taken together.
//!
//! For the messages that cross a cut, and for any part of them, the last bit leaves the cut no
//! earlier than the first of them can reach it plus the time that all their bytes take from then
//! on, and the packet that it belongs to still has the rest of its way to go. Parts
//! are tried by the time from which on they can arrive: all, all but the earliest, ...

use super::carrying::Carrying;
use super::{Ground, drain};
use crate::cuts::{CUTS, Cut, Rates, crossing};
use crate::traffic::{Across, Stream, Traffic};
use std::collections::BTreeMap;
use weft_units::{HostId, IdVec, MessageId, Time};
use weft_workload::Workload;
use weft_workload::collective::{Operation, Switched};
use weft_workload::job::SwitchedSet;

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
    let mut loads = loads;
    for (place, kind, bytes) in switched(ground, traffic) {
        let load = &mut loads[kind];
        load.resize(load.len().max(place as usize + 1), NOTHING);
        let (sum, ..) = load[place as usize];
        load[place as usize] = (sum + bytes, Time::ZERO, Time::ZERO);
    }
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

/// What switches do for ranks puts on cuts at the least: which host, leaf or pod, the kind of cut, and bytes on
/// the wire. Sums and copies cross a cut once, however many ranks are behind it.
fn switched(ground: &Ground<'_>, traffic: &Traffic) -> Vec<(u32, usize, u64)> {
    let fabric = ground.fabric;
    // What is alike of a rank, once.
    let mut own: BTreeMap<(Done, u32), (u32, HostId, u64)> = BTreeMap::new();
    traffic.across(|Across { first, rank, host, set, place, part, times }| {
        own.entry(((first, set, part), rank)).or_insert((place, host, 0)).2 += times;
    });
    // By set, what is done, kind of cut and place.
    let mut behind: BTreeMap<(Done, usize, u32), Behind> = BTreeMap::new();
    for ((done, _), (place, host, times)) in own {
        let (.., part) = done;
        let has_block = matches!(part.operation, Operation::ReduceScatter | Operation::AllGather);
        for (kind, cut) in CUTS.into_iter().enumerate() {
            let at = match cut {
                Cut::HostOut | Cut::HostIn => host.0,
                Cut::LeafUp | Cut::LeafDown => fabric.leaf_of(host),
                Cut::PodUp | Cut::PodDown => fabric.pod_of(host),
            };
            let one = behind.entry((done, kind, at)).or_default();
            one.ranks += 1;
            one.blocks += if has_block { part.passes(place, place) } else { 0 };
            one.has_root |= place == part.root;
            one.times = times;
        }
    }
    let crossing = behind.into_iter().filter_map(|(((.., part), kind, place), behind)| {
        let is_out = matches!(CUTS[kind], Cut::HostOut | Cut::LeafUp | Cut::PodUp);
        let (all, own) = (part.bytes, behind.blocks);
        let bytes = match (part.operation, is_out) {
            _ if behind.ranks == part.ranks => 0,
            (Operation::ReduceScatter, true) | (Operation::AllGather, false) => all - own,
            (Operation::ReduceScatter, false) | (Operation::AllGather, true) => own,
            (Operation::Broadcast, _) if behind.has_root != is_out => 0,
            (Operation::Reduce, _) if behind.has_root == is_out => 0,
            _ => all,
        };
        (bytes > 0).then(|| (place, kind, ground.wire_bytes(bytes) * behind.times))
    });
    crossing.collect()
}

/// Something that switches do: the first rank of its job, for which ranks, and what.
type Done = (u32, SwitchedSet, Switched);

/// What is behind a cut of something that switches do.
#[derive(Default)]
struct Behind {
    ranks: u32,
    /// Their blocks together, where each has one.
    blocks: u64,
    has_root: bool,
    times: u64,
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
