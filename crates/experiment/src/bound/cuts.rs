//! Cuts: links that all of some messages must cross, taken together.
//!
//! For the messages that cross a cut, and for any part of them, the last bit leaves the cut no
//! earlier than the first of them can reach it plus the time that all their bytes take at the
//! summed rate, and the packet that it belongs to still has the rest of its way to go. Parts
//! are tried by the time from which on they can arrive: all, all but the earliest, ...

use super::{Ground, drain};
use weft_fabric::Clos;
use weft_units::{IdVec, MessageId, Time};
use weft_workload::{Message, Workload};

/// The kinds of cuts, each with one cut for every host, leaf or pod.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// A host's link up.
    HostOut,
    /// All uplinks of a leaf.
    LeafUp,
    /// All links of a pod to the cores.
    PodUp,
    /// All links of the cores to a pod.
    PodDown,
    /// All links from above to a leaf.
    LeafDown,
    /// A host's link down.
    HostIn,
}

const CUTS: [Cut; 6] =
    [Cut::HostOut, Cut::LeafUp, Cut::PodUp, Cut::PodDown, Cut::LeafDown, Cut::HostIn];

/// The longest time that any cut asks for.
pub(super) fn fullest(
    ground: &Ground<'_>,
    workload: &Workload,
    posted: &IdVec<MessageId, Time>,
) -> Time {
    let times = CUTS.iter().map(|cut| cut.fullest(ground, workload, posted));
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
        workload: &Workload,
        posted: &IdVec<MessageId, Time>,
    ) -> Time {
        let messages = workload.messages();
        let mut crossings: Vec<Crossing> = messages
            .enumerate()
            .filter_map(|(id, message)| {
                let (link, place) = self.place(ground, message)?;
                let from = posted[id] + ground.path(message).before[link];
                Some(Crossing { from, place, message: id, link: link as u8 })
            })
            .collect();
        crossings.sort_unstable_by_key(|crossing| std::cmp::Reverse(crossing.from));
        let places = crossings.iter().map(|crossing| crossing.place as usize + 1).max();
        let mut loads = vec![Load { bytes: 0, after: Time::MAX }; places.unwrap_or(0)];
        let rate = self.rate(ground.fabric.clos());
        let mut fullest = Time::ZERO;
        for crossing in crossings {
            let message = &messages[crossing.message];
            let load = &mut loads[crossing.place as usize];
            load.bytes += ground.wire_bytes(message);
            load.after = load.after.min(ground.path(message).after[usize::from(crossing.link)]);
            fullest = fullest.max(crossing.from + drain(load.bytes, rate) + load.after);
        }
        fullest
    }

    /// Which link of `message`'s path crosses a cut of this kind, and which cut.
    fn place(self, ground: &Ground<'_>, message: &Message) -> Option<(usize, u32)> {
        let fabric = ground.fabric;
        let links = fabric.hops(message.src, message.dst) as usize;
        match self {
            Cut::HostOut => Some((0, message.src.0)),
            Cut::LeafUp if links >= 4 => Some((1, fabric.leaf_of(message.src))),
            Cut::PodUp if links == 6 => Some((2, fabric.pod_of(message.src))),
            Cut::PodDown if links == 6 => Some((3, fabric.pod_of(message.dst))),
            Cut::LeafDown if links >= 4 => Some((links - 2, fabric.leaf_of(message.dst))),
            Cut::HostIn => Some((links - 1, message.dst.0)),
            _ => None,
        }
    }

    /// The summed rate of the links of one cut, in bits per second.
    fn rate(self, clos: &Clos) -> u128 {
        let leaf_links = u128::from(clos.mids_per_pod()) * u128::from(clos.leaf_bundle.members);
        let pod_links = u128::from(clos.cores()) * u128::from(clos.agg_bundle.members);
        match self {
            Cut::HostOut | Cut::HostIn => u128::from(clos.host_link.rate.as_bps()),
            Cut::LeafUp | Cut::LeafDown => {
                leaf_links * u128::from(clos.leaf_bundle.link.rate.as_bps())
            }
            // Not asked for with two tiers; one link then, so that nothing divides by zero.
            Cut::PodUp | Cut::PodDown => {
                pod_links.max(1) * u128::from(clos.agg_bundle.link.rate.as_bps())
            }
        }
    }
}
