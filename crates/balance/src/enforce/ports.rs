//! Source ports for paths, and back.

use super::crossing::crossings;
use super::fitting::Fitting;
use super::{Ends, FiveTuple, Hashing, PortError, PortRange, Segments, clos};
use std::collections::BTreeSet;
use weft_fabric::{Fabric, Node, PathId};

/// How source ports name paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ports {
    /// By the segment that they are in.
    Segments(Segments),
    /// By what switches make of them: ports of this range, and the hash.
    Hash(PortRange, Hashing),
}

impl Ports {
    /// The `number`-th port, from zero, that leads from one end to the other by `path`: queue pairs
    /// that share a path each have a port of their own. Within a rack any port does.
    ///
    /// # Errors
    /// If the path does not exist, or has fewer ports; the error says how many.
    pub fn port(
        &self,
        fabric: &Fabric,
        ends: &Ends,
        path: PathId,
        number: u32,
    ) -> Result<u16, PortError> {
        let fitting = self.fitting(fabric, ends, path)?;
        fitting
            .ports()
            .nth(number as usize)
            .ok_or_else(|| self.too_few(fabric, ends, path, (number, fitting.ports().count())))
    }

    /// What is wrong if `path` has `count` ports, and one is wanted that `number` others are before.
    fn too_few(
        &self,
        fabric: &Fabric,
        ends: &Ends,
        path: PathId,
        (number, count): (u32, usize),
    ) -> PortError {
        let [src, dst] = [ends.src, ends.dst].map(|host| fabric.name(Node::Host(host)));
        let (path, all) = (format!("path {}.{}", path.first(), path.second()), self.range().len());
        PortError(match count {
            0 => format!(
                "no source port of {all} leads from {src} to {dst} by {path} under this hash; use \
                 segments, or another hash"
            ),
            _ => format!(
                "{path} from {src} to {dst} has {count} of {all} source ports, too few for {} queue \
                 pairs with a port each; use {count} or fewer",
                number + 1
            ),
        })
    }

    /// The path that packets from `port` take; `None`: no path of [`Fabric::path_set`].
    pub fn path(&self, fabric: &Fabric, ends: &Ends, port: u16) -> Option<PathId> {
        let (src, dst) = (ends.src, ends.dst);
        let set = fabric.path_set(src, dst);
        if fabric.leaf_of(src) == fabric.leaf_of(dst) {
            return Some(set.get(0));
        }
        let (first, second) = match self {
            Ports::Segments(segments) => segments.named(port)?,
            Ports::Hash(_, hashing) => hashing.named(fabric, ends, port),
        };
        let across = fabric.pod_of(src) != fabric.pod_of(dst);
        let down = first % clos(fabric).leaf_bundle.members;
        let path = PathId::new(first as u8, if across { second? } else { down } as u8);
        self.fitting(fabric, ends, path).is_ok_and(|all| all.fits(port)).then_some(path)
    }

    /// Whether every path between the first and the last host has a port. Under a hash other hosts
    /// may still lack one: see [`Ports::port`].
    ///
    /// # Errors
    /// With a path that has none.
    pub fn check(&self, fabric: &Fabric) -> Result<(), PortError> {
        let (first, last) = fabric.farthest();
        let ends = Ends::of(first, last);
        let set = fabric.path_set(ends.src, ends.dst);
        let named: BTreeSet<PathId> =
            self.range().ports().filter_map(|port| self.path(fabric, &ends, port)).collect();
        let missing = (0..set.len()).map(|index| set.get(index)).find(|path| !named.contains(path));
        missing.map_or(Ok(()), |path| Err(self.too_few(fabric, &ends, path, (0, 0))))
    }

    /// The ports that lead along `path`.
    pub(crate) fn fitting(
        &self,
        fabric: &Fabric,
        ends: &Ends,
        path: PathId,
    ) -> Result<Fitting, PortError> {
        let crossings = crossings(fabric, ends.src, ends.dst, path)?;
        Ok(match self {
            Ports::Segments(segments) => {
                Fitting::all(segments.between(fabric, (ends.src, ends.dst), path))
            }
            Ports::Hash(range, hashing) => {
                let wanted = crossings.iter().map(|at| (hashing.at(fabric, at.switch), *at));
                let tuple = FiveTuple::rocev2(ends.from, ends.to, range.first);
                Fitting::hashed(*range, hashing.function, tuple, wanted.collect())
            }
        })
    }

    fn range(&self) -> PortRange {
        match self {
            Ports::Segments(segments) => segments.range(),
            Ports::Hash(range, _) => *range,
        }
    }
}
