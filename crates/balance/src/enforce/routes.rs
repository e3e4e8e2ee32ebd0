//! The routes of one host that pins paths, whatever enforces them.

use super::{Ends, Enforce, Hashing, PortRange, Ports, Segments};
use crate::plan::Route;
use rustc_hash::FxHashMap;
use weft_fabric::{Fabric, PathId};
use weft_units::HostId;

/// Makes routes of paths. The queue pairs of a host that share a path take its ports in turn.
#[derive(Clone, Debug)]
pub struct PathRoutes {
    host: HostId,
    hashing: Option<Hashing>,
    enforce: Enforce,
    /// The last port for a host by a path.
    last: FxHashMap<(HostId, PathId), u16>,
}

impl PathRoutes {
    /// Of `host`, which knows the switches' hash if it is told.
    pub fn new(enforce: Enforce, host: HostId, hashing: Option<Hashing>) -> PathRoutes {
        PathRoutes { host, hashing, enforce, last: FxHashMap::default() }
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
        let Some(ports) = self.ports(fabric) else { return Route::Pinned(path) };
        let ends = Ends::of(self.host, dst);
        let fitting = match ports.fitting(fabric, &ends, path) {
            Ok(fitting) => fitting,
            Err(error) => panic!("{error}"),
        };
        let last = self.last.get(&(dst, path)).copied();
        let port = fitting.after(last).or_else(|| fitting.at_first().after(last));
        let port = port.unwrap_or(PortRange::ROCE.first);
        self.last.insert((dst, path), port);
        Route::Hashed(port)
    }

    /// The path of a route to `dst` that [`PathRoutes::route`] has made.
    pub fn path(&self, fabric: &Fabric, dst: HostId, route: Route) -> Option<PathId> {
        match route {
            Route::Pinned(path) => Some(path),
            Route::Hashed(port) => {
                self.ports(fabric)?.path(fabric, &Ends::of(self.host, dst), port)
            }
        }
    }

    /// `None`: path ids.
    fn ports(&self, fabric: &Fabric) -> Option<Ports> {
        match self.enforce {
            Enforce::PathId => None,
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
