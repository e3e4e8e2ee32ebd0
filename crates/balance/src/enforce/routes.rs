//! The routes of one host that pins paths, whatever enforces them.

use super::finding::{FoundPorts, find_ports};
use super::{Ends, Enforce, Hashing, PortRange, Ports, Segments};
use crate::plan::Route;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use weft_fabric::{Fabric, PathId};
use weft_units::HostId;

/// Makes routes of paths. The queue pairs of a host that share a path take its ports in turn.
#[derive(Clone, Debug)]
pub struct PathRoutes {
    host: HostId,
    hashing: Option<Hashing>,
    enforce: Enforce,
    /// How source ports name paths, once that was asked for.
    ports: Option<Ports>,
    /// The last port for a host by a path.
    last: FxHashMap<(HostId, PathId), u16>,
    /// Ports by host and path, where this host finds them out.
    found: FxHashMap<HostId, FoundPorts>,
}

impl PathRoutes {
    /// Of `host`, which knows the switches' hash if it is told.
    pub fn new(enforce: Enforce, host: HostId, hashing: Option<Hashing>) -> PathRoutes {
        let (last, found) = (FxHashMap::default(), FxHashMap::default());
        PathRoutes { host, hashing, enforce, ports: None, last, found }
    }

    /// Makes room for `count` more paths of hosts.
    pub fn reserve(&mut self, count: usize) {
        if matches!(self.enforce, Enforce::Segments | Enforce::Hash) {
            self.last.reserve(count);
        }
    }

    /// A route to `dst` by `path`.
    ///
    /// Under a hash that has no port for it, a port that takes the uplink of the leaf at least, or
    /// any: [`Ports::check`] tells before.
    ///
    /// # Panics
    /// If the fabric has no such path, or too few ports ([`Enforce::fits`]), or if paths are enforced
    /// by a hash that the host was not told.
    pub fn route(&mut self, fabric: &Fabric, dst: HostId, path: PathId) -> Route {
        if let (Enforce::Discovered, Some(hashing)) = (self.enforce, self.hashing) {
            return self.found_route(fabric, dst, path, hashing);
        }
        if self.ports.is_none() {
            self.ports = self.ports(fabric);
        }
        let Some(ports) = &self.ports else { return Route::Pinned(path) };
        let mut last = self.last.entry((dst, path));
        let before = match &mut last {
            Entry::Occupied(last) => Some(*last.get()),
            Entry::Vacant(_) => None,
        };
        let port = match ports {
            // Without the hash to search there is nothing to look up: plans ask for millions.
            Ports::Segments(segments) => {
                segments.between(fabric, (self.host, dst), path).after(before)
            }
            Ports::Hash(..) => match ports.fitting(fabric, &Ends::of(self.host, dst), path) {
                Ok(fitting) => {
                    let port = fitting.after(before).or_else(|| fitting.at_first().after(before));
                    port.unwrap_or(PortRange::ROCE.first)
                }
                Err(error) => panic!("{error}"),
            },
        };
        last.insert_entry(port);
        Route::Hashed(port)
    }

    /// From a port that was found to lead along `path`; if none was, along another path.
    fn found_route(
        &mut self,
        fabric: &Fabric,
        dst: HostId,
        path: PathId,
        hashing: Hashing,
    ) -> Route {
        let ends = Ends::of(self.host, dst);
        let found = self.found.entry(dst).or_insert_with(|| find_ports(fabric, &ends, hashing));
        let last = self.last.get(&(dst, path)).copied();
        let port = found.after(path, last).unwrap_or(PortRange::ROCE.first);
        self.last.insert((dst, path), port);
        Route::Hashed(port)
    }

    /// The path of a route to `dst` that [`PathRoutes::route`] has made.
    pub fn path(&self, fabric: &Fabric, dst: HostId, route: Route) -> Option<PathId> {
        match route {
            Route::Pinned(path) => Some(path),
            Route::Hashed(port) if self.enforce == Enforce::Discovered => {
                self.found.get(&dst)?.path(port)
            }
            Route::Hashed(port) => {
                self.ports(fabric)?.path(fabric, &Ends::of(self.host, dst), port)
            }
        }
    }

    /// `None`: path ids.
    fn ports(&self, fabric: &Fabric) -> Option<Ports> {
        match self.enforce {
            // Whoever sends has the table of ports, or it is found out here.
            Enforce::PathId | Enforce::Discovered => None,
            Enforce::Segments => match Segments::new(fabric, PortRange::ROCE) {
                Ok(segments) => Some(Ports::Segments(segments)),
                Err(error) => panic!("{error}"),
            },
            Enforce::Hash => {
                let hashing = self.hashing.expect("hosts know the switches' hash");
                Some(Ports::Hash(PortRange::ROCE, hashing))
            }
        }
    }
}
