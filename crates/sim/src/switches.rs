//! The switches of a partition and the links that end in it: what a packet asks them.

use crate::config::{Buffer, RunConfig};
use crate::event::Event;
use crate::hops::{NextHops, Switch};
use crate::lossy::LossyLinks;
use crate::packet::HashFields;
use crate::partition::{InLink, OutPort, OwnSwitch, Partition, Partitioning};
use crate::ports::Ports;
use crate::tor::{self, Tors};
use crate::world::{Routes, World};
use std::net::Ipv4Addr;
use std::ops::Index;
use std::sync::Arc;
use weft_balance::Switching;
use weft_balance::enforce::{self, FiveTuple, Hasher};
use weft_balance::forward::{Hops, Passing, SwitchContext};
use weft_balance::hash;
use weft_fabric::{Fabric, Node, PathId, PortGroup};
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId, Rate, SwitchId, Time};

/// The switches of a partition, and the links that end in it.
#[derive(Debug)]
pub(crate) struct Switches {
    links: IdVec<InLink, Link>,
    all: IdVec<OwnSwitch, Switch>,
    routing: Routing,
    /// What switches keep, under schemes that have them do so.
    tors: Option<Tors>,
    lossy: LossyLinks,
}

impl Index<OwnSwitch> for Switches {
    type Output = Switch;
    #[inline(always)]
    fn index(&self, switch: OwnSwitch) -> &Switch {
        &self.all[switch]
    }
}

impl Switches {
    /// Those of a partition; `reduces`: packets of trees may come anywhere.
    pub(crate) fn new(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
        reduces: bool,
    ) -> Switches {
        Switches {
            links: Link::all(config, partitioning, partition, reduces),
            all: Switch::all(config, partitioning, partition),
            routing: Routing::new(config, partition),
            tors: Tors::new(config, partition),
            lossy: LossyLinks::new(config, partition),
        }
    }
    /// Whether no link that ends here loses packets or is watched.
    pub(crate) fn links_are_plain(&self) -> bool {
        self.links.iter().all(|link| link.peer & (Link::FAULTY | Link::WATCHED) == 0)
    }
    /// The end of `link`.
    #[inline(always)]
    pub(crate) fn link(&self, link: InLink) -> Link {
        self.links[link]
    }
    /// The port that leads back to where the packet of `event` came from.
    #[inline(always)]
    pub(crate) fn ingress(&self, event: &Event) -> OutPort {
        self.links[InLink(event.target().id())].reverse
    }
    /// As [`LossyLinks::is_lost`].
    #[cold]
    pub(crate) fn loses(&mut self, now: Time, link: InLink, size: u16) -> bool {
        self.lossy.is_lost(now, link, size)
    }
    /// What switches keep, if they keep something.
    pub(crate) fn tors(&self) -> Option<&Tors> {
        self.tors.as_ref()
    }
    /// Whether `switch` keeps something.
    pub(crate) fn keeps(&self, switch: OwnSwitch) -> bool {
        self.tors.as_ref().is_some_and(|tors| tors.keeps(switch))
    }
    /// The same, under a scheme that has them do so.
    pub(crate) fn tors_mut(&mut self) -> &mut Tors {
        self.tors_beside_routes().0
    }
    /// The same, beside what routing knows if that is not as usual.
    pub(crate) fn tors_beside_routes(&mut self) -> (&mut Tors, Option<&Routes>) {
        let tors = self.tors.as_mut().expect("switches keep something");
        (tors, self.routing.routes.as_deref())
    }
    /// A port has another rate from now on.
    pub(crate) fn set_rate(&mut self, world: &World, port: PortId, rate: Rate) {
        let fabric = world.config.fabric;
        if let (Some(tors), Node::Switch(switch)) = (&mut self.tors, fabric.ports()[port].owner) {
            let place = port.0 - fabric.ports_of(switch).first.0;
            tors.set_rate(world.partitioning.switches[switch].own, place, rate);
        }
    }
    /// Routing has learnt of links that died, became slow, or are back.
    pub(crate) fn learn(&mut self, routes: &Arc<Routes>) {
        self.routing.learn(routes);
    }

    /// As [`Fabric::pinned_hop`], by what routing knows.
    pub(crate) fn pinned_hop(
        &self,
        fabric: &Fabric,
        switch: SwitchId,
        dst: HostId,
        path: PathId,
    ) -> Option<(PortId, PathId)> {
        match &self.routing.routes {
            None => fabric.pinned_hop(switch, dst, path, None),
            Some(routes) => routes.detours.pinned_hop(fabric, switch, dst, path),
        }
    }

    /// Whether the scheme weighs shortest paths against those over other groups.
    pub(crate) fn weigh_detours(&self) -> bool {
        self.routing.weighs_detours
    }

    /// Whether [`Switch::hashed`] says where packets go that are not pinned.
    #[inline(always)]
    pub(crate) fn are_plain(&self) -> bool {
        self.routing.plain
    }

    /// The port that the scheme chooses among those of `group`, or some `among` them, that are left for a packet, of
    /// which it gets the parts that matter, since a packet that somebody borrows would have to
    /// be put together in memory, for every hop. `None` if no port is left.
    #[cold]
    pub(crate) fn choose<P: Ports>(
        &mut self,
        switch: OwnSwitch,
        fields: HashFields,
        (group, among): (PortGroup, Option<&[PortId]>),
        ports: &P,
        now: Time,
    ) -> Option<PortId> {
        let (dst, entropy) = (fields.dst(), fields.entropy);
        let here = self[switch];
        let salt = here.salt;
        let Routing { switching, hashers, routes, .. } = &mut self.routing;
        let routes = routes.as_deref();
        let hops = NextHops::new(ports, now, routes, here, (dst, group, among));
        let count = hops.count();
        if count == 0 {
            return None;
        }
        let (hash, hashed) = match hashers.as_slice().get(switch.index()) {
            None => {
                let hash = hash::bits(fields.key(), entropy, salt);
                (hash, hash::below(hash, count))
            }
            Some(hasher) => hasher.spread(&tuple_of(fields), count),
        };
        let hop = match switching.is_empty() || count == 1 {
            true => hashed,
            false => {
                let (control, flow) = (fields.is_control(), flow_of(fields));
                let bytes = u32::from(fields.size);
                let passing = Passing { now, flow, dst, control, entropy, hashed, hash, bytes };
                switching[switch].choose(&passing, &hops)
            }
        };
        Some(hops.port(hop))
    }
}

/// The end of a link, packed for the hot path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// A host, or with [`Link::SWITCH`] set a switch; [`Link::FAULTY`] if it may lose packets,
    /// [`Link::WATCHED`] if it ends at a switch that keeps a state, or packets of trees may come.
    pub(crate) peer: u32,
    /// The port that leads back.
    pub(crate) reverse: OutPort,
}

impl Link {
    pub(crate) const SWITCH: u32 = 1 << 31;
    pub(crate) const FAULTY: u32 = 1 << 30;
    pub(crate) const WATCHED: u32 = 1 << 29;
    pub(crate) const NUMBER: u32 = Link::WATCHED - 1;

    /// The links that end in a partition.
    fn all(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
        reduces: bool,
    ) -> IdVec<InLink, Link> {
        let link = |id: &PortId| {
            let port = &config.fabric.ports()[*id];
            let peer = match port.peer {
                Node::Host(host) => partitioning.hosts[host].own.0,
                Node::Switch(switch) => partitioning.switches[switch].own.0 | Link::SWITCH,
            };
            let faulty = config.failures.losses(*id).is_some();
            let watched =
                reduces || matches!(port.peer, Node::Switch(id) if tor::keeps(config, id));
            let peer = peer | if faulty { Link::FAULTY } else { 0 };
            let peer = peer | if watched { Link::WATCHED } else { 0 };
            Link { peer, reverse: partitioning.ports[port.reverse].own }
        };
        partition.links.iter().map(link).collect()
    }
}

/// How switches choose among equal next hops, where that is not the hash among all of them.
#[derive(Debug)]
struct Routing {
    /// The hash among all next hops decides everywhere: the usual case.
    plain: bool,
    /// What the scheme has in each switch; empty if that is nothing.
    switching: IdVec<OwnSwitch, Switching>,
    /// The hash of each switch over addresses and ports; empty where that is not what they hash.
    hashers: IdVec<OwnSwitch, Hasher>,
    /// Where these are not as usual, by what routing knows.
    routes: Option<Arc<Routes>>,
    /// Tables say which these are.
    by_tables: bool,
    weighs_detours: bool,
}

impl Routing {
    /// For the switches of a partition.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> Routing {
        let (Buffer::PerPort { bytes } | Buffer::Shared { bytes, .. }) = config.switch.buffer;
        let states = partition.switches.iter().map(|switch| {
            let RunConfig { seed, fabric, .. } = *config;
            let context = SwitchContext { switch: *switch, fabric, seed, buffer: bytes };
            Switching::new(&config.balance, &context)
        });
        let mut switching: IdVec<OwnSwitch, Switching> = states.collect();
        if switching.iter().all(Switching::is_hashed) {
            switching = IdVec::new();
        }
        let hashers = config.hashing().into_iter().flat_map(|hashing| {
            partition.switches.iter().map(move |switch| hashing.at(config.fabric, *switch))
        });
        let by_tables = config.fabric.clos().is_none();
        let mut routing = Routing {
            plain: false,
            switching,
            hashers: hashers.collect(),
            routes: None,
            by_tables,
            weighs_detours: config.balance.scheme.info().weighs_detours
                && config.fabric.has_detours(),
        };
        routing.simplify();
        routing
    }
    fn simplify(&mut self) {
        let Routing { switching, hashers, routes, by_tables, .. } = self;
        let is_hashed = switching.is_empty() && hashers.is_empty();
        self.plain = is_hashed && routes.is_none() && !*by_tables;
    }
    /// Routing has learnt of links that died, became slow, or are back.
    fn learn(&mut self, routes: &Arc<Routes>) {
        self.routes = (!routes.is_as_usual()).then(|| Arc::clone(routes));
        self.simplify();
    }
}

/// What switches see of a packet that hash addresses and ports. An acknowledgement knows its
/// destination and the port that it echoes.
fn tuple_of(fields: HashFields) -> FiveTuple {
    let src = match fields.is_control() {
        true => Ipv4Addr::UNSPECIFIED,
        false => enforce::address(fields.src()),
    };
    FiveTuple::rocev2(src, enforce::address(fields.dst()), fields.entropy)
}

/// The flow of a packet, as a switch can tell it from others.
pub(crate) fn flow_of(fields: HashFields) -> u64 {
    let dst = u64::from(fields.dst().0);
    match fields.is_control() {
        true => 1 << 63 | dst << 16 | u64::from(fields.entropy),
        false => u64::from(fields.key()) << 32 | dst,
    }
}
