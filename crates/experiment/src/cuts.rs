//! The cuts of a fabric that all of some messages must cross, and what they can carry: in a network that is
//! no Clos, all links of a leaf to other switches, and of a group of switches to others.

use crate::traffic::{Stream, Traffic};
use rustc_hash::FxHashMap;
use weft_fabric::{Clos, Fabric, Node, Port, Shape};
use weft_units::id::Id;
use weft_units::{HostId, PortId, SwitchId};

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
        let links = fabric.least_links(stream.src, stream.dst);
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

/// The rates of cuts of a kind, each worked out once.
pub(crate) struct Rates<'a> {
    cut: Cut,
    fabric: &'a Fabric,
    known: FxHashMap<u32, u128>,
}

impl Rates<'_> {
    pub(crate) fn new(cut: Cut, fabric: &Fabric) -> Rates<'_> {
        Rates { cut, fabric, known: FxHashMap::default() }
    }
    /// As [`Cut::rate`].
    pub(crate) fn of(&mut self, place: u32) -> u128 {
        let Rates { cut, fabric, known } = self;
        *known.entry(place).or_insert_with(|| cut.rate(fabric, place))
    }
}

impl Cut {
    /// Which link of the way from `src` to `dst` crosses a cut of this kind, and which cut.
    pub(crate) fn place(self, fabric: &Fabric, src: HostId, dst: HostId) -> Option<(usize, u32)> {
        self.place_of(fabric, (src, dst), fabric.least_links(src, dst))
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
        if fabric.clos().is_none() {
            return self.place_in_wiring(fabric, (src, dst), links);
        }
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

    /// The same in a network that is no Clos, where any link between switches may be the first out of a group or
    /// the last into one.
    fn place_in_wiring(
        self,
        fabric: &Fabric,
        (src, dst): (HostId, HostId),
        links: usize,
    ) -> Option<(usize, u32)> {
        let leaves = [src, dst].map(|host| fabric.leaf_of(host));
        let pods = [src, dst].map(|host| fabric.pod_of(host));
        match self {
            Cut::HostOut => Some((0, src.0)),
            Cut::HostIn => Some((links - 1, dst.0)),
            Cut::LeafUp if leaves[0] != leaves[1] => Some((1, leaves[0])),
            Cut::LeafDown if leaves[0] != leaves[1] => Some((links - 2, leaves[1])),
            Cut::PodUp if pods[0] != pods[1] => Some((1, pods[0])),
            Cut::PodDown if pods[0] != pods[1] => Some((links - 2, pods[1])),
            _ => None,
        }
    }

    /// The cuts that the link behind `port` is part of, and which of their kinds.
    pub(crate) fn of_link(fabric: &Fabric, port: PortId) -> Vec<(Cut, u32)> {
        let Port { owner, peer, .. } = fabric.ports()[port];
        let (from, to) = match (owner, peer) {
            (Node::Host(host), _) => return vec![(Cut::HostOut, host.0)],
            (_, Node::Host(host)) => return vec![(Cut::HostIn, host.0)],
            (Node::Switch(from), Node::Switch(to)) => (from, to),
        };
        let clos = match fabric.shape() {
            Shape::Clos(clos) => clos,
            Shape::Wiring(wiring) => {
                let leaves = [from, to].map(|switch| wiring.leaf_of_switch(switch.0));
                let pods = [from, to].map(|switch| wiring.groups[switch.index()]);
                let mut cuts = Vec::new();
                // A link between switches of one leaf leads nowhere.
                let apart = leaves[0] != leaves[1];
                cuts.extend(leaves[0].filter(|_| apart).map(|leaf| (Cut::LeafUp, leaf)));
                cuts.extend(leaves[1].filter(|_| apart).map(|leaf| (Cut::LeafDown, leaf)));
                if pods[0] != pods[1] {
                    cuts.extend([(Cut::PodUp, pods[0]), (Cut::PodDown, pods[1])]);
                }
                return cuts;
            }
        };
        // A cut goes through all planes. Leaves come first, then the switches above them, pod by pod.
        let [from, to] = [from, to].map(|switch| fabric.in_first_plane(switch));
        let pod = |mid: u32| (mid - fabric.leaves()) / clos.mids_per_pod();
        vec![match (fabric.tier(from), fabric.tier(to)) {
            (0, _) => (Cut::LeafUp, from.0),
            (_, 0) => (Cut::LeafDown, to.0),
            (1, _) => (Cut::PodUp, pod(from.0)),
            _ => (Cut::PodDown, pod(to.0)),
        }]
    }

    /// How many links a cut has.
    pub(crate) fn links(self, fabric: &Fabric, place: u32) -> u64 {
        match fabric.clos() {
            Some(clos) => self.links_of(clos) * u64::from(fabric.planes()),
            // Not asked for where there is one group; one link then, so that nothing divides by zero.
            None => (self.ports(fabric, place).count() as u64).max(1),
        }
    }

    /// The summed rate of the links of a cut, in bits per second.
    pub(crate) fn rate(self, fabric: &Fabric, place: u32) -> u128 {
        let rate = |port: PortId| u128::from(fabric.ports()[port].rate.as_bps());
        match fabric.clos() {
            Some(clos) => self.rate_of(clos) * u128::from(fabric.planes()),
            None => self.ports(fabric, place).map(rate).sum(),
        }
    }

    /// Its links.
    fn ports(self, fabric: &Fabric, place: u32) -> impl Iterator<Item = PortId> + '_ {
        let cut = (self, place);
        let candidates: Vec<PortId> = match self {
            Cut::HostOut | Cut::HostIn => {
                let nics =
                    (0..fabric.nic_ports()).map(|port| fabric.nic_in_plane(HostId(place), port));
                nics.flat_map(|nic| [nic, fabric.ports()[nic].reverse]).collect()
            }
            Cut::LeafUp => ends(fabric, place).flat_map(|one| fabric.ports_of(one).ids()).collect(),
            Cut::LeafDown => {
                let ports = ends(fabric, place).flat_map(|one| fabric.ports_of(one).ids());
                ports.map(|port| fabric.ports()[port].reverse).collect()
            }
            Cut::PodUp | Cut::PodDown => {
                let switches = (0..fabric.switches()).map(SwitchId);
                let own = switches.filter(|switch| fabric.pod_of_switch(*switch) == Some(place));
                let ports = own.flat_map(|switch| fabric.ports_of(switch).ids());
                ports.flat_map(|port| [port, fabric.ports()[port].reverse]).collect()
            }
        };
        candidates.into_iter().filter(move |port| Cut::of_link(fabric, *port).contains(&cut))
    }

    fn links_of(self, clos: &Clos) -> u64 {
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

    fn rate_of(self, clos: &Clos) -> u128 {
        let link = match self {
            Cut::HostOut | Cut::HostIn => clos.host_link,
            Cut::LeafUp | Cut::LeafDown => clos.leaf_bundle.link,
            Cut::PodUp | Cut::PodDown => clos.agg_bundle.link,
        };
        u128::from(self.links_of(clos)) * u128::from(link.rate.as_bps())
    }
}

/// The switches of a leaf, in a network that is no Clos.
fn ends(fabric: &Fabric, leaf: u32) -> impl Iterator<Item = SwitchId> + '_ {
    let ends: Vec<u32> = match fabric.shape() {
        Shape::Clos(_) => vec![leaf],
        Shape::Wiring(wiring) => wiring.ends(leaf).collect(),
    };
    ends.into_iter().map(SwitchId)
}
