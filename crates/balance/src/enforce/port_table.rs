//! Source ports that were found to lead along paths, whatever makes switches send them there.

use std::collections::BTreeMap;
use weft_fabric::PathId;
use weft_units::HostId;

/// Ports by the two ends of a queue pair and its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortTable(BTreeMap<(HostId, HostId), BTreeMap<PathId, Vec<u16>>>);

impl PortTable {
    /// Adds ports that lead from one host to another by `path`.
    pub fn add(&mut self, (src, dst): (HostId, HostId), path: PathId, ports: &[u16]) {
        self.0.entry((src, dst)).or_default().entry(path).or_default().extend(ports);
    }
    /// The ports that lead from `src` to `dst` by `path`; none if none is known.
    pub fn ports(&self, src: HostId, dst: HostId, path: PathId) -> &[u16] {
        self.0.get(&(src, dst)).and_then(|all| all.get(&path)).map_or(&[], Vec::as_slice)
    }
    /// The paths from `src` to `dst` that have ports.
    pub fn paths(&self, src: HostId, dst: HostId) -> impl Iterator<Item = PathId> + '_ {
        self.0.get(&(src, dst)).into_iter().flat_map(|all| all.keys().copied())
    }
    /// The path of a port from `src` to `dst`, if it is in the table.
    pub fn path(&self, src: HostId, dst: HostId, port: u16) -> Option<PathId> {
        let all = self.0.get(&(src, dst))?;
        all.iter().find(|(_, ports)| ports.contains(&port)).map(|(path, _)| *path)
    }
    /// Whether nothing is known of any two hosts.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeMap::is_empty)
    }
    /// The two ends of which something is known.
    pub fn ends(&self) -> impl Iterator<Item = (HostId, HostId)> + '_ {
        self.0.keys().copied()
    }
}
