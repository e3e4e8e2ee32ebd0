//! Which resources a flow uses: the links of its path, or the cuts that it spreads over.

use crate::rates::MOST;
use std::ops::Range;
use weft_balance::scheme::PathUse;
use weft_fabric::{Clos, Fabric, Failures};
use weft_plan::RoutedPath;
use weft_units::{HostId, PortId, SwitchId, Time};

/// Resources of one flow, the NIC's first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    ids: [u32; MOST],
    count: usize,
}

impl Resources {
    pub(crate) fn push(&mut self, id: u32) {
        self.ids[self.count] = id;
        self.count += 1;
    }
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.ids[..self.count]
    }
}

/// The numbers of all resources: every port, then the uplinks and downlinks of every leaf, then those
/// of every pod, of all planes together; then, where there are several planes, the ports of every NIC and the links to
/// these; then the ways from GPUs to their NICs.
#[derive(Debug)]
pub(crate) struct Layout<'a> {
    fabric: &'a Fabric,
    ports: u32,
    leaves: u32,
    pods: u32,
    /// NICs with several ports, each in a plane: all or none.
    nics: u32,
    /// Whether a cut carries what its links carry together, whatever each does.
    by_room: bool,
    /// The links of each cut, as [`Layout::cuts`] has these.
    members: Vec<Vec<PortId>>,
    /// Whether the links of each cut may differ, since a flow has taken one of them. As long as all flows spread
    /// alike over a cut, it is one resource.
    apart: Vec<bool>,
}

/// Links over which packets that are sprayed spread alike, in all planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    LeafUp(u32),
    LeafDown(u32),
    PodUp(u32),
    PodDown(u32),
    NicUp(u32),
    NicDown(u32),
}

impl<'a> Layout<'a> {
    pub(crate) fn new(fabric: &'a Fabric, paths: PathUse) -> Layout<'a> {
        let (ports, pods) = (fabric.ports().len() as u32, fabric.pods());
        let (by_room, members, apart) = (paths == PathUse::AllByRoom, Vec::new(), Vec::new());
        let leaves = fabric.leaves();
        let nics = if fabric.planes() > 1 { fabric.hosts() } else { 0 };
        let mut layout = Layout { fabric, ports, leaves, pods, nics, by_room, members, apart };
        layout.members = layout.cuts().map(|cut| layout.ports_of(cut)).collect();
        layout.apart = vec![false; layout.members.len()];
        layout
    }
    /// The links of a cut; `None` for any other resource.
    pub(crate) fn links_of(&self, resource: u32) -> Option<&Vec<PortId>> {
        resource.checked_sub(self.ports).and_then(|cut| self.members.get(cut as usize))
    }
    /// Whether it is a cut between switches.
    pub(crate) fn is_cut(&self, resource: u32) -> bool {
        (self.ports..self.first_nic()).contains(&resource)
    }
    /// Whether it is a port of a NIC, or all of them.
    pub(crate) fn is_nic(&self, resource: u32) -> bool {
        let nics = self.first_nic()..self.first_nic() + self.nics;
        let is_port = || resource % self.fabric.ports_per_plane() < self.fabric.hosts();
        nics.contains(&resource) || resource < self.ports && is_port()
    }
    /// What the NIC of a host sends by: its port, or all of them and each.
    pub(crate) fn nic_of(&self, host: HostId) -> impl Iterator<Item = u32> {
        let ports = (0..self.fabric.planes()).map(move |it| self.fabric.nic_in_plane(host, it).0);
        ports.chain((self.nics > 0).then(|| self.cut(Cut::NicUp(host.0))))
    }
    /// How many links a cut has; one, if it is none.
    pub(crate) fn count(&self, resource: u32) -> usize {
        self.links_of(resource).map_or(1, Vec::len)
    }
    /// The links of a cut where these may differ; `None`: they do not, or `resource` is no cut.
    pub(crate) fn links_apart(&self, resource: u32) -> Option<&Vec<PortId>> {
        self.links_of(resource).filter(|_| self.apart[(resource - self.ports) as usize])
    }
    /// Links of a cut may differ from now on. Returns them, if that is news.
    pub(crate) fn tell_apart(&mut self, resource: u32) -> Option<Vec<u32>> {
        let apart = self.apart.get_mut(resource.checked_sub(self.ports)? as usize)?;
        let is_news = !std::mem::replace(apart, true);
        is_news.then(|| {
            self.members[(resource - self.ports) as usize].iter().map(|port| port.0).collect()
        })
    }
    /// The first link of a cut whose links may differ; of any other resource itself.
    pub(crate) fn first_link(&self, resource: u32) -> u32 {
        let first = self.links_apart(resource).and_then(|links| links.first());
        first.map_or(resource, |port| port.0)
    }
    /// What a flow uses that spreads alike over the links of every cut on its way, with its share there:
    /// the cut, or its links where these may differ.
    pub(crate) fn links(&self, resources: &Resources) -> impl Iterator<Item = (u32, f64)> {
        resources.as_slice().iter().flat_map(move |resource| {
            let cut = self.links_apart(*resource);
            let own = cut.is_none().then_some((*resource, 1.0));
            let share = cut.map_or(1.0, |links| 1.0 / links.len() as f64);
            let links = cut.into_iter().flatten().map(move |port| (port.0, share));
            own.into_iter().chain(links)
        })
    }
    /// Of these, only the links of cuts.
    pub(crate) fn links_of_cuts(&self, resources: &Resources) -> Vec<(u32, f64)> {
        let is_own = |link: &u32| resources.as_slice().contains(link);
        self.links(resources).filter(|(link, _)| !is_own(link)).collect()
    }
    /// How many resources there are before those of ranks.
    pub(crate) fn len(&self) -> u32 {
        self.first_nic() + 2 * self.nics
    }
    /// The number of the first NIC of several ports.
    fn first_nic(&self) -> u32 {
        self.ports + 2 * (self.leaves + self.pods)
    }
    /// The way from the GPU of `rank` to its NIC.
    pub(crate) fn pcie(&self, rank: u32) -> u32 {
        self.len() + rank
    }
    /// The number of the first cut; the others follow, as [`Layout::cuts`] has them.
    pub(crate) fn first_cut(&self) -> u32 {
        self.ports
    }
    pub(crate) fn cut(&self, cut: Cut) -> u32 {
        let base = self.ports;
        match cut {
            Cut::LeafUp(leaf) => base + leaf,
            Cut::LeafDown(leaf) => base + self.leaves + leaf,
            Cut::PodUp(pod) => base + 2 * self.leaves + pod,
            Cut::PodDown(pod) => base + 2 * self.leaves + self.pods + pod,
            Cut::NicUp(host) => self.first_nic() + host,
            Cut::NicDown(host) => self.first_nic() + self.nics + host,
        }
    }
    /// Each cut.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = Cut> + use<> {
        let (leaves, pods, nics) = (self.leaves, self.pods, self.nics);
        let up = (0..leaves).map(Cut::LeafUp).chain((0..leaves).map(Cut::LeafDown));
        let up = up.chain((0..pods).map(Cut::PodUp)).chain((0..pods).map(Cut::PodDown));
        up.chain((0..nics).map(Cut::NicUp)).chain((0..nics).map(Cut::NicDown))
    }
    /// All links of `path`.
    pub(crate) fn of_path(&self, path: &RoutedPath) -> Resources {
        let mut all = Resources::default();
        path.ports().iter().for_each(|port| all.push(port.0));
        all
    }
    /// The links back along `path`.
    pub(crate) fn back_along(&self, path: &RoutedPath) -> Resources {
        let mut all = Resources::default();
        path.ports().iter().rev().for_each(|port| all.push(self.fabric.ports()[*port].reverse.0));
        all
    }
    /// Of packets that take all paths from `src` to `dst` alike.
    pub(crate) fn of_spread(&self, src: HostId, dst: HostId) -> Resources {
        let fabric = self.fabric;
        let mut all = Resources::default();
        all.push(if self.nics > 0 { self.cut(Cut::NicUp(src.0)) } else { fabric.nic(src).0 });
        let hops = fabric.hops(src, dst);
        if hops >= 4 {
            all.push(self.cut(Cut::LeafUp(fabric.leaf_of(src))));
        }
        if hops == 6 {
            all.push(self.cut(Cut::PodUp(fabric.pod_of(src))));
            all.push(self.cut(Cut::PodDown(fabric.pod_of(dst))));
        }
        if hops >= 4 {
            all.push(self.cut(Cut::LeafDown(fabric.leaf_of(dst))));
        }
        all.push(match self.nics {
            0 => fabric.ports()[fabric.nic(dst)].reverse.0,
            _ => self.cut(Cut::NicDown(dst.0)),
        });
        all
    }
    /// The ports of a cut.
    pub(crate) fn ports_of(&self, cut: Cut) -> Vec<PortId> {
        let fabric = self.fabric;
        let clos: &Clos = fabric.clos().expect("rates are of a folded Clos");
        // Of switches that are numbered so in each plane.
        let uplinks = |switches: Range<u32>| -> Vec<PortId> {
            let planes = (0..fabric.planes()).map(|plane| plane * fabric.switches_per_plane());
            let all = planes.flat_map(|first| switches.clone().map(move |it| SwitchId(first + it)));
            let of = |switch: SwitchId| {
                let (all, up) = (fabric.ports_of(switch), fabric.uplinks(switch));
                (all.first.0 + all.count - up..all.first.0 + all.count).map(PortId)
            };
            all.flat_map(of).collect()
        };
        let leaf = |leaf: u32| uplinks(leaf..leaf + 1);
        let pod = |pod: u32| {
            let first = fabric.leaves() + pod * clos.mids_per_pod();
            uplinks(first..first + clos.mids_per_pod())
        };
        let nic = |host: u32| -> Vec<PortId> {
            (0..fabric.planes()).map(|plane| fabric.nic_in_plane(HostId(host), plane)).collect()
        };
        let back = |ports: Vec<PortId>| {
            ports.into_iter().map(|port| fabric.ports()[port].reverse).collect::<Vec<_>>()
        };
        match cut {
            Cut::LeafUp(number) => leaf(number),
            Cut::LeafDown(number) => back(leaf(number)),
            Cut::PodUp(number) => pod(number),
            Cut::PodDown(number) => back(pod(number)),
            Cut::NicUp(host) => nic(host),
            Cut::NicDown(host) => back(nic(host)),
        }
    }
    /// What the cut carries, in bits per second: if all its links carry alike, the slowest decides.
    pub(crate) fn capacity(&self, cut: Cut, failures: &Failures, at: Time) -> u64 {
        let ports = self.ports_of(cut);
        let links = ports.len() as u64;
        let each = ports.into_iter().map(|port| failures.capacity(self.fabric, port, at));
        match self.by_room {
            true => each.sum(),
            false => each.min().unwrap_or(0) * links,
        }
    }
}
