//! Which lane a subflow goes over, and which source ports lead along its path.

use crate::{CommError, EndpointConfig, PathPlan, SharedPorts};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use weft_balance::enforce::{Ends, Enforce, PortRange, PortTable, Ports, Segments};
use weft_balance::known::Known;
use weft_balance::plan::{Carrier, QueuePairId, Route};
use weft_balance::scheme::platform::Platform;
use weft_fabric::{Fabric, PathId};
use weft_units::HostId;

/// What tells the lanes of a channel apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// One of so many alike, which switches hash.
    Even(u32),
    /// The one along a path.
    Path(PathId),
    /// That of a persistent queue pair.
    Pair(QueuePairId),
}

/// How packets of a lane find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LanePath {
    /// From which NIC of the endpoint.
    pub(super) member: u8,
    /// The path, if it is known.
    pub(super) path: Option<PathId>,
    /// What its planner calls it.
    pub(super) route: Option<Route>,
    /// Source ports that lead there.
    ports: PortSet,
    /// With which of them it begins.
    first: u32,
    /// The next one is so much further.
    step: u32,
    /// Bytes per second at most.
    pub(super) pace: Option<u64>,
}

/// Source ports to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortSet {
    /// Any that the system picks.
    System,
    /// All of these.
    Range(PortRange),
    /// Those that were found to lead along a path: so many of the first.
    Found([u16; MOST_FOUND], u8),
}

/// The most ports of a path that are kept of a table: as many as a lane tries.
const MOST_FOUND: usize = 16;

impl PortSet {
    /// The first of `ports`; `None`: there are none.
    fn found(ports: &[u16]) -> Option<PortSet> {
        let mut all = [0; MOST_FOUND];
        let count = ports.len().min(MOST_FOUND);
        all[..count].copy_from_slice(&ports[..count]);
        (count > 0).then_some(PortSet::Found(all, count as u8))
    }
}

/// `ip rule` takes no range that ends at the very last port.
const LAST_PORT: u16 = 65_534;
/// Where ports are hashed, the next one shall be in another segment as well: a prime.
const FAR: u32 = 10_007;

impl LanePath {
    /// Whatever the system picks, from a NIC.
    pub(super) const fn of(member: u8) -> LanePath {
        let (path, route, pace) = (None, None, None);
        LanePath { member, path, route, ports: PortSet::System, first: 0, step: 1, pace }
    }

    /// The `spare`-th port, going round.
    pub(super) fn port(&self, spare: u32) -> u16 {
        let place = self.first.wrapping_add(spare.wrapping_mul(self.step)) % self.count();
        match self.ports {
            PortSet::System => 0,
            PortSet::Range(ports) => ports.first + place as u16,
            PortSet::Found(ports, _) => ports[place as usize],
        }
    }
    /// How many ports there are to try.
    pub(super) fn count(&self) -> u32 {
        match self.ports {
            PortSet::System => 1,
            PortSet::Range(PortRange { first, last }) => {
                u32::from(last.min(LAST_PORT).saturating_sub(first)) + 1
            }
            PortSet::Found(_, count) => u32::from(count),
        }
    }
    /// Whether packets go where those of `other` do, as far as anybody knows.
    pub(super) fn is_like(&self, other: &LanePath) -> bool {
        (self.member, self.path, self.ports) == (other.member, other.path, other.ports)
    }
}

/// What the entropies of hashed routes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entropies {
    /// Ports of segments, each of which is a path.
    Paths,
    /// Ports of segments, each of which is an uplink of the leaf.
    Uplinks,
    /// Any source port.
    Any,
}

/// The table of ports as this host has it, and where a newer one would be.
#[derive(Debug)]
struct Found {
    shared: SharedPorts,
    version: u64,
    table: Arc<PortTable>,
}

impl Found {
    fn new(shared: &SharedPorts) -> Found {
        // Asked before the table: else one that comes between would be overlooked.
        let version = shared.version();
        Found { shared: shared.clone(), version, table: shared.get() }
    }
}

/// The ways from one host.
#[derive(Debug)]
pub(super) struct Routes {
    fabric: Arc<Fabric>,
    known: Arc<Known>,
    host: HostId,
    addresses: Arc<[Ipv4Addr]>,
    by_path: Arc<[Vec<Ipv4Addr>]>,
    /// As planners name ports, and as switches have been told.
    named: Segments,
    real: Segments,
    /// Ports that were found to lead along paths, instead of those of segments.
    found: Option<Found>,
    entropies: Entropies,
    connections: u32,
    line_bps: u64,
    member: u8,
}

impl Routes {
    /// # Errors
    /// If the scheme does not work with connections, or the plan with the fabric.
    pub(super) fn new(
        config: &EndpointConfig,
        plan: &PathPlan,
        member: u8,
    ) -> Result<Routes, CommError> {
        let invalid = |what: String| CommError::Invalid(format!("{}: {what}", config.name));
        let PathPlan { fabric, host, addresses, balance, source_ports, ports, quantum, .. } = plan;
        if host.0 >= fabric.hosts() || addresses.len() != fabric.hosts() as usize {
            let (hosts, known) = (fabric.hosts(), addresses.len());
            return Err(invalid(format!(
                "host {} with {known} addresses in a fabric of {hosts} hosts",
                host.0
            )));
        }
        if source_ports.is_empty() || *quantum == 0 {
            return Err(invalid("no source ports, or a quantum of zero".into()));
        }
        let scheme = &balance.scheme;
        if let Some(what) = scheme.info().needs_beyond(Platform::Sockets) {
            return Err(invalid(format!(
                "connections cannot do what {} needs ({what}); use one of {}",
                scheme.name(),
                Platform::Sockets.schemes()
            )));
        }
        let entropies = match scheme.enforce() {
            Some(Enforce::Hash) => {
                let what = "enforce = \"hash\" is for UDP; use enforce = \"segments\"";
                return Err(invalid(what.into()));
            }
            Some(Enforce::Discovered) if ports.is_none() => {
                let what = "enforce = \"discovered\" without a table of discovered ports";
                return Err(invalid(what.into()));
            }
            Some(Enforce::Segments) => Entropies::Paths,
            _ if scheme.info().port_policy => Entropies::Uplinks,
            _ => Entropies::Any,
        };
        let real = PortRange { first: *source_ports.start(), last: *source_ports.end() };
        let segments = |range| Segments::new(fabric, range).map_err(|error| invalid(error.0));
        Ok(Routes {
            fabric: fabric.clone(),
            known: plan.known.clone(),
            host: *host,
            addresses: addresses.clone(),
            by_path: plan.path_addresses.clone(),
            named: segments(PortRange::ROCE)?,
            real: segments(real)?,
            found: ports.as_ref().map(Found::new),
            entropies,
            connections: config.connections,
            line_bps: config.line_bps,
            member,
        })
    }

    /// The host that has this number or this address, if there are several paths to it.
    pub(super) fn find(&self, number: Option<u32>, address: Ipv4Addr) -> Option<HostId> {
        let has = |number: &u32| self.addresses.get(*number as usize) == Some(&address);
        let by_address = || self.addresses.iter().position(|one| *one == address);
        let number = number.filter(has).or_else(|| Some(by_address()? as u32))?;
        let dst = HostId(number);
        (self.fabric.leaf_of(dst) != self.fabric.leaf_of(self.host)).then_some(dst)
    }

    /// Where a connection to `dst`, which is at `to`, goes to take the path of `way`.
    pub(super) fn address(&self, dst: HostId, way: &LanePath, to: SocketAddrV4) -> SocketAddrV4 {
        let path = way.path.filter(|_| self.found.is_none());
        let by_path = self.by_path.get(dst.0 as usize).zip(path);
        let found = by_path.and_then(|(of, path)| of.get(usize::from(path.first())));
        SocketAddrV4::new(found.copied().unwrap_or(*to.ip()), to.port())
    }

    /// The lane for a subflow, and its way.
    pub(super) fn lane(&self, dst: HostId, route: Route, carrier: Carrier) -> (Key, LanePath) {
        if let Carrier::Persistent { queue_pair, share, .. } = carrier {
            let pace = (share > 1 && self.line_bps > 0)
                .then(|| (self.line_bps / 8 / u64::from(share)).max(1));
            return (Key::Pair(queue_pair), LanePath { pace, ..self.way(dst, route) });
        }
        let way = self.way(dst, route);
        match (way.path, route) {
            (Some(path), _) => (Key::Path(path), way),
            (None, Route::Hashed(entropy)) => self.even(dst, u32::from(entropy) % self.connections),
            // Nothing is known: a connection for each path, which switches hash.
            (None, Route::Pinned(path)) => (Key::Even(u32::from(path.first())), way),
        }
    }

    /// One of the lanes that switches hash. Its port follows from where it leads from and to.
    pub(super) fn even(&self, dst: HostId, number: u32) -> (Key, LanePath) {
        let mix = u64::from(self.host.0) << 32 | u64::from(dst.0);
        let draw = weft_units::Draw::new(mix, "even lane").at(u64::from(number), 0);
        let way = LanePath {
            ports: PortSet::Range(self.real.range()),
            first: (draw >> 40) as u32,
            step: FAR,
            ..LanePath::of(self.member)
        };
        (Key::Even(number), way)
    }

    /// The lane that a channel begins with: not on a path that is known to be dead, or it would wait for a
    /// connection there.
    pub(super) fn first(&self, dst: HostId, draw: u64, pinned: bool) -> (Key, LanePath) {
        if !pinned {
            return self.even(dst, 0);
        }
        let paths = self.known.paths(&self.fabric, self.host, dst);
        let path = paths[(draw % paths.len() as u64) as usize];
        (Key::Path(path), self.pinned(dst, path, Route::Pinned(path)))
    }

    pub(super) fn way(&self, dst: HostId, route: Route) -> LanePath {
        let ends =
            Ends { src: self.host, dst, from: Ipv4Addr::UNSPECIFIED, to: Ipv4Addr::UNSPECIFIED };
        match (route, self.entropies) {
            (Route::Pinned(path), _) => self.pinned(dst, path, route),
            (Route::Hashed(port), Entropies::Paths) => {
                match Ports::Segments(self.named).path(&self.fabric, &ends, port) {
                    Some(path) => self.pinned(dst, path, route),
                    None => self.hashed(route, port),
                }
            }
            (Route::Hashed(port), Entropies::Uplinks) => {
                let uplinks = self.fabric.uplinks_of(self.host);
                let path = Ports::Segments(self.named).path(&self.fabric, &ends, port);
                if let (Some(path), true) = (path, self.found.is_some()) {
                    return self.pinned(dst, path, route);
                }
                match self.named.range().part_of(port, uplinks) {
                    Some(uplink) => LanePath {
                        path,
                        route: Some(route),
                        ports: PortSet::Range(self.real.range().part(uplink, uplinks)),
                        ..LanePath::of(self.member)
                    },
                    None => self.hashed(route, port),
                }
            }
            (Route::Hashed(entropy), Entropies::Any) => self.hashed(route, entropy),
        }
    }

    fn pinned(&self, dst: HostId, path: PathId, route: Route) -> LanePath {
        if let Some(found) = &self.found {
            return self.by_table(&found.table, dst, path, route);
        }
        let pods = self.fabric.pod_of(self.host) == self.fabric.pod_of(dst);
        let tiers = if pods { 1 } else { 2 };
        let ports = PortSet::Range(self.real.ports(path, tiers));
        LanePath { path: Some(path), route: Some(route), ports, ..LanePath::of(self.member) }
    }

    /// By a port that was found to lead along `path`. Where there is none, the path is dead or was not
    /// seen: along another one; and where none is known at all, from a port that switches hash.
    fn by_table(&self, found: &PortTable, dst: HostId, path: PathId, route: Route) -> LanePath {
        let along = |path: PathId| {
            let ports = PortSet::found(found.ports(self.host, dst, path))?;
            Some(LanePath {
                path: Some(path),
                route: Some(route),
                ports,
                ..LanePath::of(self.member)
            })
        };
        let other = || {
            let paths: Vec<PathId> = found.paths(self.host, dst).collect();
            let place = usize::from(path.first()).checked_rem(paths.len())?;
            along(paths[place])
        };
        along(path).or_else(other).unwrap_or_else(|| self.hashed(route, u16::from(path.first())))
    }

    /// Takes a newer table, if there is one. Whether there was.
    pub(super) fn renew(&mut self) -> bool {
        let Some(found) = &mut self.found else { return false };
        let is_new = found.shared.version() != found.version;
        if is_new {
            *found = Found::new(&found.shared.clone());
        }
        is_new
    }

    /// The paths to `dst` that no port is known of, if some of the others have one.
    pub(super) fn missing(&self, dst: HostId) -> Vec<PathId> {
        let Some(Found { table: found, .. }) = &self.found else { return Vec::new() };
        if found.paths(self.host, dst).next().is_none() {
            return Vec::new();
        }
        let all = self.fabric.path_set(self.host, dst);
        let paths = (0..all.len()).map(|index| all.get(index));
        paths.filter(|path| found.ports(self.host, dst, *path).is_empty()).collect()
    }

    fn hashed(&self, route: Route, entropy: u16) -> LanePath {
        LanePath {
            route: Some(route),
            ports: PortSet::Range(self.real.range()),
            first: u32::from(entropy),
            step: FAR,
            ..LanePath::of(self.member)
        }
    }
}
