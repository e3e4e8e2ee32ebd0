//! The fabric as a plan sees it: what its links carry now, and which way a packet goes.

use weft_balance::Switching;
use weft_balance::enforce::{self, FiveTuple, HashFunction, Hasher, Hashing, PortRules};
use weft_balance::forward::{Hops, Passing, SwitchContext};
use weft_balance::hash;
use weft_balance::plan::Route;
use weft_balance::scheme::BalanceConfig;
use weft_fabric::{Detours, Fabric, Node, PathId, Weights};
use weft_units::id::Id;
use weft_units::{HostId, IdVec, PortId, SwitchId, Time};

/// A fabric, what is left of it, and how its switches choose.
#[derive(Debug)]
pub struct PlannedFabric<'a> {
    /// The fabric without failures.
    pub fabric: &'a Fabric,
    /// What each link carries, in bits per second; zero: it is dead, and routing knows.
    pub capacities: IdVec<PortId, u64>,
    detours: Detours,
    weights: Option<Weights>,
    switching: IdVec<SwitchId, Switching>,
    /// What switches are configured to do with source ports, before anything else; empty if nothing.
    rules: IdVec<SwitchId, PortRules>,
    salts: IdVec<SwitchId, u64>,
    /// The hash of each over addresses and ports; empty where that is not what they hash.
    hashers: IdVec<SwitchId, Hasher>,
}

/// How switches hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// The seed of their salts.
    pub seed: u64,
    /// Whether all have the same.
    pub same_salt: bool,
    /// The function, over addresses and ports, that hosts know; `None`: [`weft_balance::hash`].
    pub function: Option<HashFunction>,
}

impl Hashes {
    /// What hosts know of it.
    pub fn known(self) -> Option<Hashing> {
        let Hashes { seed, same_salt, function } = self;
        function.map(|function| Hashing { function, seed, same_salt })
    }
}

/// The way of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutedPath {
    /// As a path id would name it: the place of the hop that the first switch chose, then of that
    /// of the second.
    pub path: PathId,
    /// Links in order, the NIC's first; the first [`Way::count`] of them.
    ports: [PortId; MOST_LINKS],
    count: usize,
}

/// Up three tiers and down again, and both NICs' links.
const MOST_LINKS: usize = 6;

impl RoutedPath {
    /// The links in order, the NIC's first.
    pub fn ports(&self) -> &[PortId] {
        &self.ports[..self.count]
    }
}

impl<'a> PlannedFabric<'a> {
    /// For switches under `balance`.
    pub fn new(
        fabric: &'a Fabric,
        capacities: IdVec<PortId, u64>,
        balance: &BalanceConfig,
        hashes: Hashes,
    ) -> PlannedFabric<'a> {
        let Hashes { seed, same_salt, .. } = hashes;
        let salt = |switch| hash::salt(seed, if same_salt { SwitchId(0) } else { switch });
        let dead: Vec<PortId> =
            fabric.ports().ids().filter(|port| capacities[*port] == 0).collect();
        let weighted = balance.scheme.info().weighted;
        let switches = || (0..fabric.switches()).map(SwitchId);
        let state = |switch| {
            let context = SwitchContext { switch, fabric, seed, buffer: 0 };
            Switching::new(balance, &context)
        };
        PlannedFabric {
            detours: Detours::new(fabric, &dead),
            weights: weighted.then(|| Weights::new(fabric, |port| capacities[port])),
            switching: switches().map(state).collect(),
            rules: IdVec::new(),
            salts: switches().map(salt).collect(),
            hashers: hashes
                .known()
                .into_iter()
                .flat_map(|hashing| switches().map(move |switch| hashing.at(fabric, switch)))
                .collect(),
            fabric,
            capacities,
        }
    }

    /// The same with the rules of a switch configuration, which know the links of their own switch only; in a
    /// simulation switches hash what is named an uplink that has lost its way farther on.
    pub fn with_rules(mut self, balance: &BalanceConfig, seed: u64) -> PlannedFabric<'a> {
        let fabric = self.fabric;
        let rules = |switch| {
            let context = SwitchContext { switch, fabric, seed, buffer: 0 };
            match balance.scheme.enforce() {
                Some(enforce) => enforce.rules(&context),
                None if balance.scheme.info().port_policy => PortRules::of_uplinks(&context),
                None => PortRules::none(),
            }
        };
        self.rules = (0..fabric.switches()).map(SwitchId).map(rules).collect();
        self
    }

    /// Whether every link carries all that it can.
    pub fn is_whole(&self) -> bool {
        self.fabric.ports().enumerate().all(|(id, port)| self.capacities[id] == port.rate.as_bps())
    }

    /// The way of a packet from `src` to `dst`, in the first plane. `key` stands for its addresses where switches hash.
    /// `None`: a switch on the way knows no live link there. A rule for its source port may have led it to that
    /// switch.
    pub fn way(&mut self, src: HostId, dst: HostId, route: Route, key: u32) -> Option<RoutedPath> {
        self.way_in_plane(0, (src, dst), route, key)
    }

    /// The same in any plane.
    pub fn way_in_plane(
        &mut self,
        plane: u32,
        (src, dst): (HostId, HostId),
        route: Route,
        key: u32,
    ) -> Option<RoutedPath> {
        let mut way =
            RoutedPath { path: PathId::default(), ports: [PortId(0); MOST_LINKS], count: 0 };
        way.push(self.fabric.nic_in_plane(src, plane));
        let mut pinned = match route {
            Route::Pinned(path) => path,
            Route::Hashed(_) => PathId::default(),
        };
        let mut places = [0; 2];
        while let Node::Switch(switch) = self.fabric.ports()[way.last()].peer {
            let group = self.fabric.next_hops(switch, dst);
            let (port, next) = match route {
                Route::Pinned(_) => self.detours.pinned_hop(self.fabric, switch, dst, pinned)?,
                Route::Hashed(entropy) => (self.hashed(switch, (src, dst), entropy, key)?, pinned),
            };
            pinned = next;
            if let Some(place) = places.get_mut(way.count - 1) {
                *place = port.0 - group.first.0;
            }
            way.push(port);
        }
        // A first switch that leads straight to the host has chosen nothing.
        if way.count > 2 {
            way.path = PathId::new(places[0] as u8, places[1] as u8);
        }
        Some(way)
    }

    /// Whether the link behind `port` carries anything both ways: else no rule leads over it.
    fn is_up(&self, port: PortId) -> bool {
        let reverse = self.fabric.ports()[port].reverse;
        self.capacities[port] > 0 && self.capacities[reverse] > 0
    }

    fn hashed(
        &mut self,
        switch: SwitchId,
        (src, dst): (HostId, HostId),
        entropy: u16,
        key: u32,
    ) -> Option<PortId> {
        let group = self.fabric.next_hops(switch, dst);
        let rules = self.rules.as_slice().get(switch.index());
        let hop = rules.and_then(|rules| rules.hop(dst, entropy));
        if let Some(hop) = hop.filter(|hop| *hop < group.count) {
            let port = PortId(group.first.0 + hop);
            if self.is_up(port) {
                return Some(port);
            }
        }
        let left = self.detours.next_hops(switch, dst);
        let weights = self.weights.as_ref().and_then(|weights| weights.of(switch, dst));
        let hops = Equal { first: group.first, places: group.count, left, weights };
        let count = hops.count();
        if count < 2 {
            return (count == 1).then(|| hops.port(0));
        }
        let (hash, hashed) = match self.hashers.as_slice().get(switch.index()) {
            None => {
                let hash = hash::bits(key, entropy, self.salts[switch]);
                (hash, hash::below(hash, count))
            }
            Some(hasher) => {
                let (src, dst) = (enforce::address(src), enforce::address(dst));
                hasher.spread(&FiveTuple::rocev2(src, dst, entropy), count)
            }
        };
        let flow = u64::from(key) << 32 | u64::from(dst.0);
        let passing =
            Passing { now: Time::ZERO, flow, dst, control: false, entropy, hashed, hash, bytes: 0 };
        Some(hops.port(self.switching[switch].choose(&passing, &hops)))
    }
}

impl RoutedPath {
    fn push(&mut self, port: PortId) {
        self.ports[self.count] = port;
        self.count += 1;
    }
    fn last(&self) -> PortId {
        self.ports[self.count - 1]
    }
}

/// Equal next hops with nothing in their queues.
struct Equal<'a> {
    first: PortId,
    places: u32,
    left: Option<&'a [PortId]>,
    weights: Option<&'a [u32]>,
}

impl Hops for Equal<'_> {
    fn count(&self) -> u32 {
        self.left.map_or(self.places, |ports| ports.len() as u32)
    }
    fn queued(&self, _: u32) -> u64 {
        0
    }
    fn port(&self, hop: u32) -> PortId {
        match self.left {
            None => PortId(self.first.0 + hop),
            Some(ports) => ports[hop as usize],
        }
    }
    fn group(&self) -> u32 {
        self.port(0).0
    }
    fn places(&self) -> u32 {
        self.places
    }
    fn place(&self, hop: u32) -> u32 {
        self.port(hop).0 - self.first.0
    }
    fn weights(&self) -> Option<&[u32]> {
        self.weights
    }
}
