//! The numbers of a Clos: its switches and its ports.

use crate::graph::{CORE, LEAF, MID, Switch};
use crate::{Bundle, Clos, Link, Node, Port};
use weft_units::{FastDiv, HostId, IdVec, PortId, SwitchId};

/// Where everything gets its number.
pub(crate) struct Layout<'a> {
    clos: &'a Clos,
    hosts: u32,
    leaves: u32,
    mids: u32,
    /// Ports of one leaf, aggregation switch (spine) and core.
    leaf_ports: u32,
    mid_ports: u32,
    core_ports: u32,
}

impl Layout<'_> {
    pub(crate) fn new(clos: &Clos) -> Layout<'_> {
        let leaf_ups = clos.mids_per_pod() * clos.leaf_bundle.members;
        let mid_downs = clos.leaves_per_pod() * clos.leaf_bundle.members;
        let mid_ups = clos.cores_per_plane() * clos.agg_bundle.members;
        Layout {
            clos,
            hosts: clos.hosts(),
            leaves: clos.pods() * clos.leaves_per_pod(),
            mids: clos.pods() * clos.mids_per_pod(),
            leaf_ports: clos.hosts_per_leaf + leaf_ups,
            mid_ports: mid_downs + mid_ups,
            core_ports: clos.pods() * clos.agg_bundle.members,
        }
    }

    fn leaf_base(&self, leaf: u32) -> u32 {
        self.hosts + leaf * self.leaf_ports
    }
    fn mid_base(&self, mid: u32) -> u32 {
        self.leaf_base(self.leaves) + mid * self.mid_ports
    }
    fn core_base(&self, core: u32) -> u32 {
        self.mid_base(self.mids) + core * self.core_ports
    }
    fn mid_downs(&self) -> u32 {
        self.clos.leaves_per_pod() * self.clos.leaf_bundle.members
    }

    pub(crate) fn switches(&self) -> IdVec<SwitchId, Switch> {
        let clos = self.clos;
        let hosts = clos.hosts_per_leaf;
        let leaves = (0..self.leaves).map(|leaf| {
            let down = self.leaf_base(leaf);
            Switch {
                unit: FastDiv::new(1),
                first: leaf * hosts,
                units: hosts,
                members: 1,
                down,
                up: down + hosts,
                ups: self.leaf_ports - hosts,
                tier: LEAF,
            }
        });
        let mids = (0..self.mids).map(|mid| {
            let down = self.mid_base(mid);
            Switch {
                unit: FastDiv::new(hosts),
                first: mid / clos.mids_per_pod() * clos.leaves_per_pod(),
                units: clos.leaves_per_pod(),
                members: clos.leaf_bundle.members,
                down,
                up: down + self.mid_downs(),
                ups: self.mid_ports - self.mid_downs(),
                tier: MID,
            }
        });
        let cores = (0..clos.cores()).map(|core| {
            let down = self.core_base(core);
            Switch {
                unit: FastDiv::new(hosts * clos.leaves_per_pod()),
                first: 0,
                units: clos.pods(),
                members: clos.agg_bundle.members,
                down,
                up: down + self.core_ports,
                ups: 0,
                tier: CORE,
            }
        });
        leaves.chain(mids).chain(cores).collect()
    }

    pub(crate) fn ports(&self) -> IdVec<PortId, Port> {
        let mut ports = IdVec::new();
        self.push_nics(&mut ports);
        for leaf in 0..self.leaves {
            self.push_leaf(leaf, &mut ports);
        }
        for mid in 0..self.mids {
            self.push_mid(mid, &mut ports);
        }
        for core in 0..self.clos.cores() {
            self.push_core(core, &mut ports);
        }
        ports
    }

    fn push_nics(&self, ports: &mut IdVec<PortId, Port>) {
        for host in 0..self.hosts {
            let (leaf, slot) = (host / self.clos.hosts_per_leaf, host % self.clos.hosts_per_leaf);
            ports.push(self.port(
                Node::Host(HostId(host)),
                Node::Switch(SwitchId(leaf)),
                PortId(self.leaf_base(leaf) + slot),
                self.clos.host_link,
            ));
        }
    }

    fn push_leaf(&self, leaf: u32, ports: &mut IdVec<PortId, Port>) {
        let clos = self.clos;
        let me = Node::Switch(SwitchId(leaf));
        for slot in 0..clos.hosts_per_leaf {
            let host = HostId(leaf * clos.hosts_per_leaf + slot);
            ports.push(self.port(me, Node::Host(host), PortId(host.0), clos.host_link));
        }
        let (pod, in_pod) = (leaf / clos.leaves_per_pod(), leaf % clos.leaves_per_pod());
        let Bundle { link, members } = clos.leaf_bundle;
        for up in 0..clos.mids_per_pod() * members {
            let mid = pod * clos.mids_per_pod() + up / members;
            let reverse = self.mid_base(mid) + in_pod * members + up % members;
            ports.push(self.port(me, self.mid(mid), PortId(reverse), link));
        }
    }

    fn push_mid(&self, mid: u32, ports: &mut IdVec<PortId, Port>) {
        let clos = self.clos;
        let me = self.mid(mid);
        let (pod, plane) = (mid / clos.mids_per_pod(), mid % clos.mids_per_pod());
        let Bundle { link, members } = clos.leaf_bundle;
        for down in 0..self.mid_downs() {
            let leaf = pod * clos.leaves_per_pod() + down / members;
            let leaf_up = clos.hosts_per_leaf + plane * members + down % members;
            let reverse = PortId(self.leaf_base(leaf) + leaf_up);
            ports.push(self.port(me, Node::Switch(SwitchId(leaf)), reverse, link));
        }
        let Bundle { link, members } = clos.agg_bundle;
        for up in 0..clos.cores_per_plane() * members {
            let core = plane * clos.cores_per_plane() + up / members;
            let reverse = PortId(self.core_base(core) + pod * members + up % members);
            ports.push(self.port(me, self.core(core), reverse, link));
        }
    }

    fn push_core(&self, core: u32, ports: &mut IdVec<PortId, Port>) {
        let clos = self.clos;
        let Bundle { link, members } = clos.agg_bundle;
        let (plane, in_plane) = (core / clos.cores_per_plane(), core % clos.cores_per_plane());
        for down in 0..self.core_ports {
            let mid = down / members * clos.mids_per_pod() + plane;
            let mid_up = self.mid_downs() + in_plane * members + down % members;
            let reverse = PortId(self.mid_base(mid) + mid_up);
            ports.push(self.port(self.core(core), self.mid(mid), reverse, link));
        }
    }

    fn mid(&self, mid: u32) -> Node {
        Node::Switch(SwitchId(self.leaves + mid))
    }
    fn core(&self, core: u32) -> Node {
        Node::Switch(SwitchId(self.leaves + self.mids + core))
    }

    fn port(&self, owner: Node, peer: Node, reverse: PortId, link: Link) -> Port {
        let latency = match peer {
            Node::Host(_) => self.clos.nic_latency,
            Node::Switch(_) => self.clos.switch_latency,
        };
        Port { owner, peer, reverse, rate: link.rate, delay: link.delay + latency }
    }
}
