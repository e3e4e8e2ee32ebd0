//! How a fabric is cut into partitions that advance together.
//!
//! A partition is a set of neighbouring racks (pods in three tiers, leaves in two) and a share of
//! the switches above them. An event in one partition reaches another one link delay later at the
//! soonest, the [`Partitioning::lookahead`]; for that long every partition can be simulated
//! by itself. That serves several cores, and one as well: a partition at a time fits its cache.
//!
//! Inside a partition things have numbers of their own, dense and in the order of the fabric's
//! numbers, so that events keep their order whatever the partitioning. No result depends on the partitioning.

use crate::config::RunConfig;
use crate::processes::{self, Processes};
use std::sync::Arc;
use weft_fabric::{Clos, Fabric, Node};
use weft_units::{FastDiv, HostId, IdVec, PortId, SwitchId, Time, id};

id!(
    /// An output port of a partition, by its place in [`Partition::ports`].
    pub struct OutPort
);
id!(
    /// A link that ends in a partition, by its place in [`Partition::links`].
    pub struct InLink
);
id!(
    /// A host of a partition, by its place in [`Partition::hosts`]. Its NIC has the same number
    /// among the [`OutPort`]s.
    pub struct OwnHost
);
id!(
    /// A switch of a partition, by its place in [`Partition::switches`].
    pub struct OwnSwitch
);

id!(
    /// A message among those that a partition's hosts send.
    pub struct SendingId
);

/// Where the ports of NICs are: those in the first plane are numbered as their hosts, and every plane has as
/// many ports in a partition. Ports at several homes count as planes here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NicPorts {
    pub(crate) planes: u32,
    /// All ports of a NIC, a bit each.
    pub(crate) all: u8,
    per_plane: FastDiv,
}

impl Default for NicPorts {
    /// Of NICs with one port.
    fn default() -> NicPorts {
        NicPorts { planes: 1, all: 1, per_plane: FastDiv::new(u32::MAX) }
    }
}

impl NicPorts {
    /// Those of a partition.
    pub(crate) fn new(fabric: &Fabric, partition: &Partition) -> NicPorts {
        let planes = fabric.nic_ports();
        let per_plane = match fabric.homes() {
            1 => partition.ports.len() as u32 / planes,
            // All ports of NICs come first.
            _ => partition.hosts.len() as u32,
        };
        let all = u8::MAX >> (u8::BITS - planes);
        NicPorts { planes, all, per_plane: FastDiv::new(per_plane.max(1)) }
    }
    /// The port of a host in a plane.
    #[inline(always)]
    pub(crate) fn of(self, host: OwnHost, plane: u32) -> OutPort {
        OutPort(host.0 + plane * self.per_plane.divisor())
    }
    /// Where something of a host or queue pair in a plane stands, if what it has in all planes stands side by side.
    #[inline(always)]
    pub(crate) fn index(self, of: u32, plane: u32) -> usize {
        (of * self.planes + plane) as usize
    }
    /// Whose port it is, and in which plane.
    #[inline(always)]
    pub(crate) fn owner(self, port: OutPort) -> (OwnHost, u32) {
        let (plane, host) = self.per_plane.div_rem(port.0);
        (OwnHost(host), plane)
    }
    /// In which plane a port is.
    #[inline(always)]
    pub(crate) fn plane(self, port: OutPort) -> u32 {
        self.per_plane.div(port.0)
    }
}

/// Where the link of an output port ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The link, as the partition where it ends numbers it.
    pub link: InLink,
    /// That partition.
    pub partition: u16,
    /// The logical process there.
    pub process: u16,
}

/// What one partition owns, each kind in the order of the fabric's numbers.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    pub(crate) hosts: IdVec<OwnHost, HostId>,
    pub(crate) switches: IdVec<OwnSwitch, SwitchId>,
    pub(crate) ports: IdVec<OutPort, PortId>,
    /// Where the links of its ports end.
    pub(crate) exits: IdVec<OutPort, Exit>,
    /// The ports, of any partition, whose links end here.
    pub(crate) links: IdVec<InLink, PortId>,
    pub(crate) processes: Arc<Processes>,
}

/// Somebody's partition, and number in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<I> {
    pub(crate) partition: u16,
    pub(crate) own: I,
}

/// A fabric in partitions.
#[derive(Debug)]
pub(crate) struct Partitioning {
    pub(crate) partitions: Vec<Partition>,
    pub(crate) hosts: IdVec<HostId, Place<OwnHost>>,
    pub(crate) switches: IdVec<SwitchId, Place<OwnSwitch>>,
    pub(crate) ports: IdVec<PortId, Place<OutPort>>,
    /// Nothing that happens in one partition is felt in another any sooner.
    pub(crate) lookahead: Time,
}

/// A number for what the hosts of one partition have with those of another, given by the partition that
/// sends, so that it need not ask.
macro_rules! between {
    ($(#[$doc:meta])* $vis:vis $Name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $Name($vis u32);

        impl $Name {
            #[doc = concat!("The `number`-th of the ", $what, " from `partition`.")]
            ///
            /// # Panics
            /// Beyond 67 million of them at once.
            $vis fn new(partition: u16, number: u32) -> $Name {
                assert!(number >> NUMBER == 0, concat!("{} ", $what, " are too many"), number);
                $Name(u32::from(partition) << NUMBER | number)
            }
            /// The partition of the sender.
            #[inline(always)]
            $vis fn partition(self) -> usize {
                (self.0 >> NUMBER) as usize
            }
            /// Which of those from there.
            #[inline(always)]
            $vis fn number(self) -> usize {
                (self.0 & ((1 << NUMBER) - 1)) as usize
            }
        }
    };
}

const NUMBER: u32 = 26;

/// A packet tells its sender's partition in few bits.
const MOST_PARTITIONS: u32 = 1 << (32 - NUMBER);

between! {
    /// The receiving half of a queue pair.
    pub ReceiverId, "queue pairs"
}

between! {
    /// A message, at the partition that receives it.
    pub(crate) ReceivingId, "messages"
}

impl Partitioning {
    /// The fabric of `config` in `partitions` partitions, or as many as it can be cut into.
    pub(crate) fn new(config: &RunConfig, partitions: u32) -> Partitioning {
        let fabric = config.fabric;
        let partitions = partitions.clamp(1, most_partitions(fabric));
        let owner = Owner { fabric, partitions };
        let mut all: Vec<_> = (0..partitions).map(|_| Partition::default()).collect();
        let hosts = (0..fabric.hosts()).map(HostId).map(|host| {
            let partition = owner.of(Node::Host(host));
            Place { partition, own: all[usize::from(partition)].hosts.push(host) }
        });
        let hosts: IdVec<HostId, Place<OwnHost>> = hosts.collect();
        let switches = (0..fabric.switches()).map(SwitchId).map(|switch| {
            let partition = owner.of(Node::Switch(switch));
            Place { partition, own: all[usize::from(partition)].switches.push(switch) }
        });
        let switches: IdVec<SwitchId, Place<OwnSwitch>> = switches.collect();
        let ports = fabric.ports().enumerate().map(|(id, port)| {
            let partition = owner.of(port.owner);
            Place { partition, own: all[usize::from(partition)].ports.push(id) }
        });
        let ports: IdVec<PortId, Place<OutPort>> = ports.collect();
        let ends: Vec<_> = fabric
            .ports()
            .enumerate()
            .map(|(id, port)| {
                let partition = owner.of(port.peer);
                (id, partition, all[usize::from(partition)].links.push(id))
            })
            .collect();
        let window = processes::window(config);
        for partition in &mut all {
            partition.processes =
                Arc::new(Processes::new(config, partition, &hosts, &switches, window));
        }
        for (id, partition, link) in ends {
            let process = all[usize::from(partition)].processes.of_link(link);
            let exits = &mut all[usize::from(ports[id].partition)].exits;
            exits.push(Exit { link, partition, process });
        }
        Partitioning { partitions: all, hosts, switches, ports, lookahead: lookahead(config) }
    }

    /// The partition of `host`, and its logical process there.
    pub(crate) fn process_of(&self, host: HostId) -> (u16, u16) {
        let Place { partition, own } = self.hosts[host];
        (partition, self.partitions[usize::from(partition)].processes.of_host(own))
    }

    /// How many partitions suit a run on `threads` threads: some for each, so that a thread that
    /// is through can help another.
    pub(crate) fn suits(config: &RunConfig, threads: u32) -> u32 {
        match threads {
            0..=1 => 1,
            _ => threads.saturating_mul(SHARE).min(most_partitions(config.fabric)),
        }
    }

    /// In how many partitions a fabric can be cut that all have enough to do, while all ports are
    /// busy, until they must wait for each other.
    pub(crate) fn busy_partitions(config: &RunConfig) -> u32 {
        let ports = config.fabric.ports();
        let fastest = ports.iter().map(|port| port.rate).max().expect("a fabric has ports");
        let packet = fastest.serialize(config.packet.largest());
        let packets = u128::from(lookahead(config).0) * ports.len() as u128 / u128::from(packet.0);
        (packets / BUSY).clamp(1, u128::from(most_partitions(config.fabric))) as u32
    }
}

/// How soon one partition can feel another, in the finest partitioning: the smallest delay of a link between
/// two partitions, or of news of a dependency.
pub(crate) fn lookahead(config: &RunConfig) -> Time {
    let fabric = config.fabric;
    let owner = Owner { fabric, partitions: most_partitions(fabric) };
    let between = |port: &&weft_fabric::Port| owner.of(port.owner) != owner.of(port.peer);
    let links = fabric.ports().iter().filter(between).map(|port| port.delay).min();
    match config.workload.dependency_count() {
        0 => links.unwrap_or(Time::MAX),
        _ => fabric.min_delay(),
    }
}

/// Partitions for each thread.
const SHARE: u32 = 2;
/// Packets that the ports of a partition together could send within the lookahead.
const BUSY: u128 = 512;

/// Pods, or leaves where there is one; in a network that is no Clos its groups of switches likewise.
fn most_partitions(fabric: &Fabric) -> u32 {
    let units =
        if fabric.pods() == 1 && fabric.tiers() != 3 { fabric.leaves() } else { fabric.pods() };
    units.min(MOST_PARTITIONS)
}

/// Who owns what: neighbours stay together, and every partition gets about the same.
struct Owner<'a> {
    fabric: &'a Fabric,
    partitions: u32,
}

impl Owner<'_> {
    fn of(&self, node: Node) -> u16 {
        let fabric = self.fabric;
        let switch = match node {
            Node::Host(host) => SwitchId(fabric.leaf_of(host)),
            Node::Switch(switch) => fabric.in_first_plane(switch),
        };
        let (index, count) = match fabric.clos() {
            Some(clos) => place_in_clos(fabric, clos, switch),
            None if fabric.pods() == 1 => (switch.0, fabric.switches()),
            None => (fabric.pod_of_switch(switch).unwrap_or(0), fabric.pods()),
        };
        (u64::from(index) * u64::from(self.partitions) / u64::from(count)) as u16
    }
}

/// Which of its like a switch is, and how many of these there are: of a leaf or aggregation switch its pod; with two
/// tiers of a leaf or spine itself.
fn place_in_clos(fabric: &Fabric, clos: &Clos, switch: SwitchId) -> (u32, u32) {
    let leaves = fabric.leaves();
    let mids = clos.pods() * clos.mids_per_pod();
    match (fabric.tier(switch), fabric.pod_of_switch(switch)) {
        (0, _) if clos.cores() == 0 => (switch.0, leaves),
        (1, _) if clos.cores() == 0 => (switch.0 - leaves, mids),
        (_, Some(pod)) => (pod, clos.pods()),
        _ => (switch.0 - leaves - mids, clos.cores()),
    }
}
