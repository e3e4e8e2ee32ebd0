//! What a search has found: paths with their ports, asked or predicted, and how sure that is.

use super::Search;
use crate::linear::Space;
use crate::statistics::confidence;
use crate::trace::{Path, Trace, paths};
use std::collections::BTreeMap;

impl Search {
    /// Paths with the ports of each, of what is known to the end.
    pub(super) fn paths(&self) -> Vec<Path> {
        self.paths_of(&self.known)
    }

    fn paths_of(&self, traces: &BTreeMap<u16, Trace>) -> Vec<Path> {
        let mut found = paths(traces, self.length.unwrap_or(0));
        for first in found.iter_mut().filter_map(|path| path.hops.first_mut()) {
            *first = first.or(self.first);
        }
        found
    }

    /// The same; where the hash is linear each path has as many ports as were asked for.
    pub(crate) fn all_paths(&self) -> Vec<Path> {
        let predicted = match self.enough.then(|| self.by_class()).flatten() {
            Some((space, classes))
                if self.foretold.is_empty() || classes.len() == space.paths(self.bits) =>
            {
                self.predicted(space, &classes)
            }
            // What a table of before says has not changed.
            _ => self.foretold.clone(),
        };
        if predicted.is_empty() {
            return self.paths();
        }
        let mut all = predicted;
        all.extend(self.known.iter().map(|(port, trace)| (*port, trace.clone())));
        let mut paths = self.paths_of(&all);
        for path in &mut paths {
            let is_known = |port: &u16| self.known.contains_key(port);
            (path.ports, path.predicted) = path.ports.iter().copied().partition(is_known);
        }
        paths
    }

    /// What ports of each class meet, if the hash was found to be linear.
    fn by_class(&self) -> Option<(Space, BTreeMap<u16, Trace>)> {
        if let (Some(model), Some(offset)) = (&self.model, self.offset) {
            return Some((model.space(), model.by_class(offset)));
        }
        let space = self.space?;
        let of = |(port, trace): (&u16, &Trace)| (space.rest(*port), trace.clone());
        Some((space, self.known.iter().map(of).collect()))
    }

    /// Ports that were not asked, until each class has as many as a path should have.
    fn predicted(&self, space: Space, classes: &BTreeMap<u16, Trace>) -> BTreeMap<u16, Trace> {
        let wanted = self.rules.ports_per_path;
        let mut left: BTreeMap<u16, u32> = classes.keys().map(|class| (*class, wanted)).collect();
        for port in self.known.keys() {
            left.entry(space.rest(*port)).and_modify(|left| *left = left.saturating_sub(1));
        }
        left.retain(|_, left| *left > 0);
        let mut found = BTreeMap::new();
        for port in self.order.iter().filter(|port| !self.known.contains_key(port)) {
            let class = space.rest(*port);
            let Some(open) = left.get_mut(&class) else { continue };
            found.insert(*port, classes[&class].clone());
            *open -= 1;
            if *open == 0 {
                left.remove(&class);
            }
            if left.is_empty() {
                break;
            }
        }
        found
    }

    /// How many ports that were asked each path has.
    pub(crate) fn asked_counts(&self) -> Vec<u32> {
        self.paths().iter().map(|path| path.ports.len() as u32).collect()
    }

    /// How likely it is, at least, that all paths were seen.
    pub(crate) fn confidence(&self) -> f64 {
        let (paths, ports) = (self.paths().len(), self.known.len());
        if let (Some(model), Some(_), true) = (&self.model, self.offset, self.enough) {
            // What another hash would have had to do by chance, beyond the port that shows the offset.
            return 1.0 - libm::pow(model.paths() as f64, 1.0 - ports as f64);
        }
        let by_count = confidence(paths as u32, ports as u32);
        let Some(space) = self.space.filter(|_| self.enough) else { return by_count };
        // What another hash would have had to do by chance.
        let checks = if self.is_borrowed { (ports - paths) as u32 } else { space.surplus() };
        by_count.max(1.0 - libm::pow(paths as f64, -f64::from(checks)))
    }
}
