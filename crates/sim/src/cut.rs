//! How a fabric is cut into domains that advance together.
//!
//! A domain is a set of neighbouring racks (pods in three tiers, leaves in two) and a share of
//! the switches above them. An event in one domain reaches another one link delay later at the
//! soonest, the [`Cut::lookahead`]; for that long every domain can be simulated
//! by itself. That serves several cores, and one as well: a domain at a time fits its cache.
//!
//! Inside a domain things have numbers of their own, dense and in the order of the fabric's
//! numbers, so that events keep their order whatever the cut. No result depends on the cut.

use crate::config::RunConfig;
use crate::event;
use weft_fabric::{Fabric, Node};
use weft_units::{HostId, IdVec, PortId, SwitchId, Time, id};

id!(
    /// An output port of a domain, by its place in [`Territory::ports`].
    pub struct OutPort
);
id!(
    /// A link that ends in a domain, by its place in [`Territory::links`].
    pub struct InLink
);
id!(
    /// A host of a domain, by its place in [`Territory::hosts`]. Its NIC has the same number
    /// among the [`OutPort`]s.
    pub struct OwnHost
);
id!(
    /// A switch of a domain, by its place in [`Territory::switches`].
    pub struct OwnSwitch
);

impl OwnHost {
    /// The host's NIC.
    #[inline(always)]
    pub(crate) fn nic(self) -> OutPort {
        OutPort(self.0)
    }
}

/// Where the link of an output port ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The link, as the domain where it ends numbers it.
    pub link: InLink,
    /// That domain.
    pub domain: u16,
}

/// What one domain owns, each kind in the order of the fabric's numbers.
#[derive(Debug, Default)]
pub(crate) struct Territory {
    pub(crate) hosts: IdVec<OwnHost, HostId>,
    pub(crate) switches: IdVec<OwnSwitch, SwitchId>,
    pub(crate) ports: IdVec<OutPort, PortId>,
    /// Where the links of its ports end.
    pub(crate) exits: IdVec<OutPort, Exit>,
    /// The ports, of any domain, whose links end here.
    pub(crate) links: IdVec<InLink, PortId>,
}

/// Somebody's domain, and number in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<I> {
    pub(crate) domain: u16,
    pub(crate) own: I,
}

/// A fabric in domains.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) territories: Vec<Territory>,
    pub(crate) hosts: IdVec<HostId, Place<OwnHost>>,
    pub(crate) switches: IdVec<SwitchId, Place<OwnSwitch>>,
    pub(crate) ports: IdVec<PortId, Place<OutPort>>,
    /// Nothing that happens in one domain is felt in another any sooner.
    pub(crate) lookahead: Time,
}

/// A packet tells its sender's domain in few bits.
const MOST_DOMAINS: u32 = event::DOMAINS;

impl Cut {
    /// The fabric of `config` in `domains` domains, or as many as it can be cut into.
    pub(crate) fn new(config: &RunConfig, domains: u32) -> Cut {
        let fabric = config.fabric;
        let domains = domains.clamp(1, most_domains(fabric));
        let owner = Owner { fabric, domains };
        let mut territories: Vec<_> = (0..domains).map(|_| Territory::default()).collect();
        let hosts = (0..fabric.hosts()).map(HostId).map(|host| {
            let domain = owner.of(Node::Host(host));
            Place { domain, own: territories[usize::from(domain)].hosts.push(host) }
        });
        let hosts = hosts.collect();
        let switches = (0..fabric.switches()).map(SwitchId).map(|switch| {
            let domain = owner.of(Node::Switch(switch));
            Place { domain, own: territories[usize::from(domain)].switches.push(switch) }
        });
        let switches = switches.collect();
        let ports = fabric.ports().enumerate().map(|(id, port)| {
            let domain = owner.of(port.owner);
            Place { domain, own: territories[usize::from(domain)].ports.push(id) }
        });
        let ports: IdVec<PortId, Place<OutPort>> = ports.collect();
        for (id, port) in fabric.ports().enumerate() {
            let domain = owner.of(port.peer);
            let link = territories[usize::from(domain)].links.push(id);
            let exits = &mut territories[usize::from(ports[id].domain)].exits;
            exits.push(Exit { link, domain });
        }
        Cut { territories, hosts, switches, ports, lookahead: lookahead(config) }
    }

    /// How many domains suit a run on `threads` threads: some for each, so that a thread that
    /// is through can help another.
    pub(crate) fn suits(config: &RunConfig, threads: u32) -> u32 {
        match threads {
            0..=1 => 1,
            _ => threads.saturating_mul(SHARE).min(most_domains(config.fabric)),
        }
    }

    /// In how many domains a fabric can be cut that all have enough to do, while all ports are
    /// busy, until they must wait for each other.
    pub(crate) fn busy_domains(config: &RunConfig) -> u32 {
        let ports = config.fabric.ports();
        let fastest = ports.iter().map(|port| port.rate).max().expect("a fabric has ports");
        let packet = fastest.serialize(config.packet.largest());
        let packets = u128::from(lookahead(config).0) * ports.len() as u128 / u128::from(packet.0);
        (packets / BUSY).clamp(1, u128::from(most_domains(config.fabric))) as u32
    }
}

/// How soon one domain can feel another, in the finest cut: the smallest delay of a link between
/// two domains, or of news of a dependency.
pub(crate) fn lookahead(config: &RunConfig) -> Time {
    let fabric = config.fabric;
    let owner = Owner { fabric, domains: most_domains(fabric) };
    let between = |port: &&weft_fabric::Port| owner.of(port.owner) != owner.of(port.peer);
    let links = fabric.ports().iter().filter(between).map(|port| port.delay).min();
    match config.workload.dependency_count() {
        0 => links.unwrap_or(Time::MAX),
        _ => fabric.min_delay(),
    }
}

/// Domains for each thread.
const SHARE: u32 = 2;
/// Packets that the ports of a domain together could send within the lookahead.
const BUSY: u128 = 512;

/// Pods, or leaves where there are no pods.
fn most_domains(fabric: &Fabric) -> u32 {
    let clos = fabric.clos();
    let units = if clos.cores() == 0 { fabric.leaves() } else { clos.pods() };
    units.min(MOST_DOMAINS)
}

/// Who owns what: neighbours stay together, and every domain gets about the same.
struct Owner<'a> {
    fabric: &'a Fabric,
    domains: u32,
}

impl Owner<'_> {
    fn of(&self, node: Node) -> u16 {
        let clos = self.fabric.clos();
        let leaves = self.fabric.leaves();
        let mids = clos.pods() * clos.mids_per_pod();
        let (index, count) = match node {
            Node::Host(host) => self.below(self.fabric.leaf_of(host)),
            Node::Switch(SwitchId(id)) if id < leaves => self.below(id),
            Node::Switch(SwitchId(id)) if clos.cores() == 0 => (id - leaves, mids),
            Node::Switch(SwitchId(id)) if id < leaves + mids => {
                ((id - leaves) / clos.mids_per_pod(), clos.pods())
            }
            Node::Switch(SwitchId(id)) => (id - leaves - mids, clos.cores()),
        };
        (u64::from(index) * u64::from(self.domains) / u64::from(count)) as u16
    }

    /// The pod of `leaf` among all pods; with two tiers the leaf among all leaves.
    fn below(&self, leaf: u32) -> (u32, u32) {
        let clos = self.fabric.clos();
        match clos.cores() {
            0 => (leaf, self.fabric.leaves()),
            _ => (leaf / clos.leaves_per_pod(), clos.pods()),
        }
    }
}
