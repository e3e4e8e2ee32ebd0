//! A packet at the far end of a link: handed to its host, or sent on by a switch.

use crate::config::{Buffer, RunConfig};
use crate::engine::Engine;
use crate::hops::NextHops;
use crate::packet::{Answer, Data, HashFields, Packed, Packet, flag};
use crate::partition::{InLink, OutPort, OwnHost, OwnSwitch, Partition, Partitioning};
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::tor;
use crate::world::Routes;
use std::net::Ipv4Addr;
use std::sync::Arc;
use weft_balance::Switching;
use weft_balance::enforce::{self, FiveTuple, Hasher};
use weft_balance::forward::{Hops, Passing, SwitchContext};
use weft_balance::hash;
use weft_balance::plan::Route;
use weft_fabric::{Node, PortGroup};
use weft_units::id::Id;
use weft_units::{IdVec, PortId, SwitchId};

/// The end of a link, packed for the hot path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// A host, or with [`Link::SWITCH`] set a switch; [`Link::FAULTY`] if it may lose packets,
    /// [`Link::WATCHED`] if it ends at a switch that keeps a state.
    peer: u32,
    /// The port that leads back.
    reverse: OutPort,
}

impl Link {
    const SWITCH: u32 = 1 << 31;
    const FAULTY: u32 = 1 << 30;
    const WATCHED: u32 = 1 << 29;
    const NUMBER: u32 = Link::WATCHED - 1;

    /// The links that end in a partition.
    pub(crate) fn all(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
    ) -> IdVec<InLink, Link> {
        let link = |id: &PortId| {
            let port = &config.fabric.ports()[*id];
            let peer = match port.peer {
                Node::Host(host) => partitioning.hosts[host].own.0,
                Node::Switch(switch) => partitioning.switches[switch].own.0 | Link::SWITCH,
            };
            let faulty = config.failures.losses(*id).is_some();
            let watched = matches!(port.peer, Node::Switch(id) if tor::keeps(config, id));
            let peer = peer | if faulty { Link::FAULTY } else { 0 };
            let peer = peer | if watched { Link::WATCHED } else { 0 };
            Link { peer, reverse: partitioning.ports[port.reverse].own }
        };
        partition.links.iter().map(link).collect()
    }
}

/// What forwarding needs to know of a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// Its number in the fabric.
    pub(crate) id: SwitchId,
    /// What the partition's number of a port of it is more than the fabric's.
    shift: u32,
    /// Of its hash: its own, or one for all.
    salt: u64,
}

impl Switch {
    /// The partition's number of a port of it.
    #[inline(always)]
    pub(crate) fn own(self, port: PortId) -> OutPort {
        OutPort(port.0.wrapping_add(self.shift))
    }
    /// The switches of a partition.
    pub(crate) fn all(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
    ) -> IdVec<OwnSwitch, Switch> {
        let switch = |id: &SwitchId| {
            let salted = if config.switch.same_salt { SwitchId(0) } else { *id };
            let first = config.fabric.ports_of(*id).first;
            let shift = partitioning.ports[first].own.0.wrapping_sub(first.0);
            Switch { id: *id, shift, salt: hash::salt(config.seed, salted) }
        };
        partition.switches.iter().map(switch).collect()
    }
}

/// How switches choose among equal next hops, where that is not the hash among all of them.
#[derive(Debug)]
pub(crate) struct Routing {
    /// The hash among all next hops decides everywhere: the usual case.
    plain: bool,
    /// What the scheme has in each switch; empty if that is nothing.
    switching: IdVec<OwnSwitch, Switching>,
    /// The hash of each switch over addresses and ports; empty where that is not what they hash.
    hashers: IdVec<OwnSwitch, Hasher>,
    /// Where these are not as usual, by what routing knows.
    routes: Option<Arc<Routes>>,
}

impl Routing {
    /// What routing knows, if that is not as usual.
    pub(crate) fn routes(&self) -> Option<&Routes> {
        self.routes.as_deref()
    }
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
        let mut routing =
            Routing { plain: false, switching, hashers: hashers.collect(), routes: None };
        routing.simplify();
        routing
    }
    fn simplify(&mut self) {
        let Routing { switching, hashers, routes, .. } = self;
        self.plain = switching.is_empty() && hashers.is_empty() && routes.is_none();
    }
    /// Routing has learnt of links that died, became slow, or are back.
    pub(crate) fn learn(&mut self, routes: &Arc<Routes>) {
        self.routes = (!routes.is_as_usual()).then(|| Arc::clone(routes));
        self.simplify();
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// A packet has reached the end of `link`.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, link: InLink, packet: Packet) {
        let Link { peer, reverse } = self.links[link];
        if packet.is(flag::PFC) {
            return self.pfc_frame(reverse, packet);
        }
        if let Some(audit) = &mut self.audit {
            audit.arrived(link, &packet);
        }
        if peer & (Link::FAULTY | Link::WATCHED) != 0 {
            if peer & Link::FAULTY != 0 && self.faults.is_lost(self.now, link, packet.size) {
                return self.lose(reverse, packet.lost());
            }
            if peer & Link::WATCHED != 0 {
                let packed = Packed::new(packet, reverse.0);
                return self.enter(OwnSwitch(peer & Link::NUMBER), packed);
            }
        }
        if peer & Link::SWITCH != 0 {
            let switch = OwnSwitch(peer & !(Link::SWITCH | Link::FAULTY));
            return self.relay(switch, reverse, packet);
        }
        let peer = peer & !Link::FAULTY;
        self.delivered.add(&packet);
        self.totals.end = self.now;
        if packet.is(flag::CONTROL) {
            self.answered(OwnHost(peer), packet);
        } else {
            self.receive(OwnHost(peer), packet);
        }
    }

    /// A switch chooses the next port and queues the packet there.
    #[inline(always)]
    pub(crate) fn relay(&mut self, switch: OwnSwitch, ingress: OutPort, mut packet: Packet) {
        let Switch { id, shift, salt } = self.switches[switch];
        let group = self.config.fabric.next_hops(id, packet.dst());
        if group.count == 1 {
            self.expect(packet);
        }
        let port = if packet.is(flag::PINNED) {
            group.pinned(packet.swap_path()).0
        } else if self.routing.plain {
            group.first.0
                + hash::choose(packet.hash_fields().key(), packet.entropy(), salt, group.count)
        } else {
            match self.choose_hop(switch, packet.hash_fields(), group) {
                Some(port) => port.0,
                None => return self.lose(ingress, packet.lost()),
            }
        };
        let port = OutPort(port.wrapping_add(shift));
        self.ports.forward(self.now, port, ingress, packet, &mut self.agenda);
        if let Some(header) = self.ports.returned() {
            self.return_header(switch, ingress, header);
        }
    }

    /// The port that the scheme chooses among those of `group` that are left for a packet, of
    /// which it gets the parts that matter, since a packet that somebody borrows would have to
    /// be put together in memory, for every hop. `None` if no port is left.
    #[cold]
    fn choose_hop(
        &mut self,
        switch: OwnSwitch,
        fields: HashFields,
        group: PortGroup,
    ) -> Option<PortId> {
        let (dst, entropy) = (fields.dst(), fields.entropy);
        let here = self.switches[switch];
        let salt = here.salt;
        let Routing { switching, hashers, routes, .. } = &mut self.routing;
        let routes = routes.as_deref();
        let hops = NextHops::new(&self.ports, self.now, routes, here, (dst, group));
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
                let (now, control, flow) = (self.now, fields.is_control(), flow_of(fields));
                let passing = Passing { now, flow, dst, control, entropy, hashed, hash };
                switching[switch].choose(&passing, &hops)
            }
        };
        Some(hops.port(hop))
    }

    /// The port that the hash, or what stands in its place, chooses for a packet that is not
    /// pinned.
    pub(crate) fn next_port(&mut self, switch: OwnSwitch, packet: &Packet) -> Option<PortId> {
        let Switch { id, salt, .. } = self.switches[switch];
        let group = self.config.fabric.next_hops(id, packet.dst());
        if self.routing.plain {
            let hop = hash::choose(packet.hash_fields().key(), packet.entropy(), salt, group.count);
            return Some(PortId(group.first.0 + hop));
        }
        self.choose_hop(switch, packet.hash_fields(), group)
    }

    /// Sends a header that `switch` trimmed back to its sender.
    #[cold]
    pub(crate) fn return_header(&mut self, switch: OwnSwitch, ingress: OutPort, header: Packet) {
        let (header, _) = self.untag(header);
        let Data { receiver: id, seq, .. } = header.as_data();
        let (src, sender) = self.receivers[id.partition()][id.number()].back();
        // Not pinned: the way back of a path id begins at its far end.
        let route = Route::Hashed(header.entropy());
        let nack = Answer { is_nack: true, sender, seq, cumulative: 0, echo: false };
        let nack = Packet::answer(src, route, header.size, nack);
        // Still a header, which goes first, and is known as one if it is lost.
        self.relay(switch, ingress, nack.trimmed(header.size));
    }

    /// A PFC frame for `port`.
    #[cold]
    fn pfc_frame(&mut self, port: OutPort, packet: Packet) {
        if self.ports.pause(self.now, port, packet.pauses(), &mut self.agenda) {
            // Only a NIC asks for data, and NICs are numbered like their hosts.
            self.pull(OwnHost(port.0));
        }
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
fn flow_of(fields: HashFields) -> u64 {
    let dst = u64::from(fields.dst().0);
    match fields.is_control() {
        true => 1 << 63 | dst << 16 | u64::from(fields.entropy),
        false => u64::from(fields.key()) << 32 | dst,
    }
}
