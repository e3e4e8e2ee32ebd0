//! The logical processes of a partition: each switch is one, and the hosts of a leaf are one; where NICs have
//! several ports, fewer hosts, with as many ports.
//!
//! What happens at one is felt at another a link's delay later at the soonest. So within a window of
//! that length the events of each are handled one process after the other, with its ports, queue
//! pairs and events in the cache, instead of all in the order of time (conservative synchronisation
//! with bounded lag, Lubachevsky 1989, on one core).

use crate::config::RunConfig;
use crate::partition::{InLink, NicPorts, OutPort, OwnHost, OwnSwitch, Partition, Place};
use crate::queue::LONGEST_WINDOW;
use std::ops::Range;
use weft_fabric::{Fabric, Node};
use weft_units::{HostId, IdVec, SwitchId, Time};

/// Who belongs to which logical process of a partition.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// How many there are, numbered from 0.
    pub(crate) count: u16,
    /// For how long nothing that happens at one is felt at another, if that is used.
    pub(crate) window: Option<Time>,
    hosts: IdVec<OwnHost, u16>,
    /// Of ports of NICs; what stands between these has no meaning.
    nics: IdVec<OutPort, u16>,
    switches: IdVec<OwnSwitch, u16>,
    links: IdVec<InLink, u16>,
    /// The place of each link among those that end at its process.
    places: IdVec<InLink, u16>,
}

impl Processes {
    /// One process for all of `partition`.
    fn one(partition: &Partition) -> Processes {
        Processes {
            count: 1,
            window: None,
            hosts: partition.hosts.iter().map(|_| 0).collect(),
            nics: partition.ports.iter().map(|_| 0).collect(),
            switches: partition.switches.iter().map(|_| 0).collect(),
            links: partition.links.iter().map(|_| 0).collect(),
            places: IdVec::new(),
        }
    }

    /// Processes that have nothing but their numbers.
    pub(crate) fn without_links(count: u16, window: Time) -> Processes {
        Processes { count, window: Some(window), ..Processes::default() }
    }

    /// The processes of a partition, of a fabric whose hosts and switches have these numbers; one
    /// for all of it where `window` is `None`.
    pub(crate) fn new(
        config: &RunConfig,
        partition: &Partition,
        host_places: &IdVec<HostId, Place<OwnHost>>,
        switch_places: &IdVec<SwitchId, Place<OwnSwitch>>,
        window: Option<Time>,
    ) -> Processes {
        let fabric = config.fabric;
        let home = Home::new(config);
        let mut homes: Vec<_> = partition.hosts.iter().map(|host| home.of(*host)).collect();
        homes.dedup();
        let count = homes.len() + partition.switches.len();
        let Some(window) = window.filter(|_| count < usize::from(u16::MAX)) else {
            return Processes::one(partition);
        };
        let below = |host: &HostId| {
            homes.binary_search(&home.of(*host)).expect("homes have their hosts' order") as u16
        };
        let hosts: IdVec<OwnHost, u16> = partition.hosts.iter().map(below).collect();
        let switches = partition.switches.ids();
        let switches = switches.map(|switch| (homes.len() + switch.0 as usize) as u16);
        let switches: IdVec<OwnSwitch, u16> = switches.collect();
        let links = partition.links.iter().map(|link| match fabric.ports()[*link].peer {
            Node::Host(host) => hosts[host_places[host].own],
            Node::Switch(switch) => switches[switch_places[switch].own],
        });
        let links: IdVec<InLink, u16> = links.collect();
        let mut ends = vec![0; count];
        let places = links.iter().map(|process| {
            let end: &mut u16 = &mut ends[usize::from(*process)];
            // Of more hosts than that nobody asks.
            *end = end.wrapping_add(1);
            end.wrapping_sub(1)
        });
        let places = places.collect();
        let (count, window) = (count as u16, Some(window));
        let owners = NicPorts::new(fabric, partition);
        let mut nics: IdVec<OutPort, u16> = partition.ports.iter().map(|_| 0).collect();
        for plane in 0..owners.planes {
            for host in partition.hosts.ids() {
                nics[owners.of(host, plane)] = hosts[host];
            }
        }
        Processes { count, window, hosts, nics, switches, links, places }
    }

    /// That of `host`.
    #[inline(always)]
    pub(crate) fn of_host(&self, host: OwnHost) -> u16 {
        self.hosts[host]
    }
    /// That of a NIC's `port`.
    #[inline(always)]
    pub(crate) fn of_nic(&self, port: OutPort) -> u16 {
        self.nics[port]
    }
    /// That of `switch`.
    #[inline(always)]
    pub(crate) fn of_switch(&self, switch: OwnSwitch) -> u16 {
        self.switches[switch]
    }
    /// That of what is at the end of `link`.
    #[inline(always)]
    pub(crate) fn of_link(&self, link: InLink) -> u16 {
        self.links[link]
    }
    /// Those of switches.
    pub(crate) fn switches(&self) -> Range<u16> {
        self.switches.iter().next().map_or(0..0, |first| *first..self.count)
    }
    /// The place of `link` among those that end at its process, in their order.
    #[inline(always)]
    pub(crate) fn place_of(&self, link: InLink) -> u16 {
        self.places[link]
    }
    /// The most links that end at one switch.
    pub(crate) fn most_links(&self) -> u16 {
        let switches = self.switches();
        let of_switches = self.links.iter().zip(self.places.iter());
        let of_switches = of_switches.filter(|(process, _)| switches.contains(process));
        of_switches.map(|(_, place)| place + 1).max().unwrap_or(0)
    }
    /// That of what concerns all of them: once a window is cut there, it comes last.
    pub(crate) fn of_all(&self) -> u16 {
        match self.window {
            Some(_) => self.count,
            None => 0,
        }
    }
}

/// For how long nothing that happens at one process is felt at another, if it is worth while to
/// handle one after the other for so long.
pub(crate) fn window(config: &RunConfig) -> Option<Time> {
    let fabric = config.fabric;
    let fastest = fabric.ports().iter().map(|port| port.rate).max()?;
    let packet = fastest.serialize(u64::from(config.packet.mtu + config.packet.header)).0;
    let mut window = fabric.min_delay().0.min(LONGEST_WINDOW);
    if let Home::Together = Home::new(config) {
        let most = packet.saturating_mul(MOST_PACKETS) / u64::from(fabric.hosts());
        window = window.min(most);
    }
    let ports = fabric.ports().len() as u128 - u128::from(fabric.hosts());
    let packets = u128::from(window) * ports / u128::from(fabric.switches()) / u128::from(packet);
    let pays = window > 0 && packets >= u128::from(config.least_in_window);
    pays.then_some(Time(window))
}

/// So many packets at most come to all hosts in a window if they are one process: with what comes of them
/// it still sorts its events by words.
const MOST_PACKETS: u64 = 2048;

/// Which hosts are one process.
enum Home<'a> {
    /// All: ranks learn at once of what the host of another leaf has seen, or talk over a server's own links.
    Together,
    /// So many below a leaf.
    Below(&'a Fabric, u32),
}

impl Home<'_> {
    /// That of a run: the fewest hosts that have as many ports as the hosts of a leaf have in one plane, if no server
    /// is split.
    fn new<'a>(config: &RunConfig<'a>) -> Home<'a> {
        let fabric = config.fabric;
        if config.job.as_ref().is_some_and(|job| job.at_acknowledgement) {
            return Home::Together;
        }
        let most = fabric.hosts_per_leaf().unwrap_or(u32::MAX);
        let mut some = most.div_ceil(fabric.nic_ports());
        loop {
            let home = Home::Below(fabric, some);
            if !splits_server(config, |host| home.of(host)) {
                return home;
            }
            if some == most {
                return Home::Together;
            }
            some = some.saturating_mul(2).min(most);
        }
    }
    /// The leaf of `host`, and which part of the hosts below.
    fn of(&self, host: HostId) -> (u32, u32) {
        match self {
            Home::Together => (0, 0),
            Home::Below(fabric, some) => {
                (fabric.leaf_of(host), fabric.place_below_leaf(host) / some)
            }
        }
    }
}

/// Whether the hosts of some server's ranks have different homes.
pub(crate) fn splits_server<H: PartialEq + Copy>(
    config: &RunConfig,
    home: impl Fn(HostId) -> H,
) -> bool {
    let Some(job) = &config.job else { return false };
    if let Some(relays) = &job.relays {
        // Any GPU of a server may pass on what the others send.
        let mut servers = relays.nics.chunks(relays.per_server as usize);
        return servers.any(|nics| nics.iter().any(|nic| home(*nic) != home(nics[0])));
    }
    let servers = job.servers.iter().map(|server| *server as usize + 1).max();
    let mut homes = vec![None; servers.unwrap_or(0)];
    job.servers.iter().zip(&job.hosts).any(|(server, host)| {
        let home = home(*host);
        *homes[*server as usize].get_or_insert(home) != home
    })
}
