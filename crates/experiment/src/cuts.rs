//! The cuts of a folded Clos that all of some messages must cross, and what they can carry.

use crate::traffic::{Stream, Traffic};
use weft_fabric::{Clos, Fabric, Node};
use weft_units::{HostId, PortId};

/// The kinds of cuts, each with one cut for every host, leaf or pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cut {
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

pub(crate) const CUTS: [Cut; 6] =
    [Cut::HostOut, Cut::LeafUp, Cut::PodUp, Cut::PodDown, Cut::LeafDown, Cut::HostIn];

/// What crosses each cut of each kind, by host, leaf or pod: `nothing`, and for every stream of
/// `traffic` that crosses it, what `of` makes of the stream, added by `add`, with the link of the
/// stream's way that crosses.
pub(crate) fn crossing<T: Copy, U>(
    fabric: &Fabric,
    traffic: &Traffic,
    nothing: T,
    of: impl Fn(&Stream) -> U,
    add: impl Fn(&mut T, &U, usize),
) -> [Vec<T>; CUTS.len()] {
    let mut all = CUTS.map(|_| Vec::new());
    traffic.streams(|stream| {
        let one = of(&stream);
        let links = fabric.hops(stream.src, stream.dst);
        for (cut, places) in CUTS.iter().zip(&mut all) {
            let place = cut.place_of(fabric, (stream.src, stream.dst), links);
            let Some((link, place)) = place else { continue };
            let place = place as usize;
            if places.len() <= place {
                places.resize(place + 1, nothing);
            }
            add(&mut places[place], &one, link);
        }
    });
    all
}

impl Cut {
    /// Which link of the way from `src` to `dst` crosses a cut of this kind, and which cut.
    pub(crate) fn place(self, fabric: &Fabric, src: HostId, dst: HostId) -> Option<(usize, u32)> {
        self.place_of(fabric, (src, dst), fabric.hops(src, dst))
    }

    /// The same of a way of `links` links.
    #[inline]
    fn place_of(
        self,
        fabric: &Fabric,
        (src, dst): (HostId, HostId),
        links: u32,
    ) -> Option<(usize, u32)> {
        let links = links as usize;
        match self {
            Cut::HostOut => Some((0, src.0)),
            Cut::LeafUp if links >= 4 => Some((1, fabric.leaf_of(src))),
            Cut::PodUp if links == 6 => Some((2, fabric.pod_of(src))),
            Cut::PodDown if links == 6 => Some((3, fabric.pod_of(dst))),
            Cut::LeafDown if links >= 4 => Some((links - 2, fabric.leaf_of(dst))),
            Cut::HostIn => Some((links - 1, dst.0)),
            _ => None,
        }
    }

    /// The cut that the link behind `port` is part of, and which of its kind.
    pub(crate) fn of_link(fabric: &Fabric, port: PortId) -> (Cut, u32) {
        let port = &fabric.ports()[port];
        let (from, to) = match (port.owner, port.peer) {
            (Node::Host(host), _) => return (Cut::HostOut, host.0),
            (_, Node::Host(host)) => return (Cut::HostIn, host.0),
            (Node::Switch(from), Node::Switch(to)) => (from, to),
        };
        // Leaves come first, then the switches above them, pod by pod.
        let pod = |mid: u32| (mid - fabric.leaves()) / fabric.clos().mids_per_pod();
        match (fabric.tier(from), fabric.tier(to)) {
            (0, _) => (Cut::LeafUp, from.0),
            (_, 0) => (Cut::LeafDown, to.0),
            (1, _) => (Cut::PodUp, pod(from.0)),
            _ => (Cut::PodDown, pod(to.0)),
        }
    }

    /// How many links one cut has.
    pub(crate) fn links(self, clos: &Clos) -> u64 {
        match self {
            Cut::HostOut | Cut::HostIn => 1,
            Cut::LeafUp | Cut::LeafDown => {
                u64::from(clos.mids_per_pod()) * u64::from(clos.leaf_bundle.members)
            }
            // Not asked for with two tiers; one link then, so that nothing divides by zero.
            Cut::PodUp | Cut::PodDown => {
                (u64::from(clos.cores()) * u64::from(clos.agg_bundle.members)).max(1)
            }
        }
    }

    /// The summed rate of the links of one cut, in bits per second.
    pub(crate) fn rate(self, clos: &Clos) -> u128 {
        let link = match self {
            Cut::HostOut | Cut::HostIn => clos.host_link,
            Cut::LeafUp | Cut::LeafDown => clos.leaf_bundle.link,
            Cut::PodUp | Cut::PodDown => clos.agg_bundle.link,
        };
        u128::from(self.links(clos)) * u128::from(link.rate.as_bps())
    }
}
