//! What a linear hash does towards all targets, once one target has shown it.
//!
//! Addresses move a linear hash as ports do: another target is the same as another port. Where flipping some
//! bits of the port does what the other addresses do, ports of that target meet what the flipped ports meet
//! here. So one port tells which bits those are, and all other ports follow (RePaC, Zhang et al. 2021, does
//! the same with a hash that is known). Further ports check it: under another hash each fits by chance, once
//! for every path that there is.

use crate::linear::Space;
use crate::trace::{Seen, Trace};
use std::collections::BTreeMap;

/// Where ports lead towards one target, by class: ports that differ by what moves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    space: Space,
    /// What ports of a class meet where paths part.
    met: BTreeMap<u16, Trace>,
}

impl Model {
    /// Of a target all of whose paths are known, by ports that differ in `bits` bits; `None`: they are not, or
    /// some switch has not answered.
    pub(crate) fn of(
        space: Space,
        bits: u32,
        branches: &[u8],
        known: &BTreeMap<u16, Trace>,
    ) -> Option<Model> {
        let mut met = BTreeMap::new();
        for (port, trace) in known.iter().filter(|(_, trace)| !trace.leads_nowhere()) {
            let hops = at(branches, trace);
            let is_named = hops.0.len() == branches.len();
            if !is_named
                || met.insert(space.rest(*port), hops.clone()).is_some_and(|old| old != hops)
            {
                return None;
            }
        }
        (met.len() == space.paths(bits)).then_some(Model { space, met })
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    pub(crate) fn paths(&self) -> usize {
        self.met.len()
    }

    /// What ports of each class meet towards a target of this offset.
    pub(crate) fn by_class(&self, offset: u16) -> BTreeMap<u16, Trace> {
        self.met.iter().map(|(class, trace)| (class ^ offset, trace.clone())).collect()
    }

    /// By which difference of ports it does the same towards a target as towards its own; `None`: by none that
    /// all ports agree on, or there is no port.
    pub(crate) fn offset(&self, known: &BTreeMap<u16, Trace>) -> Option<u16> {
        let mut offset = None;
        for (port, trace) in known {
            let class = self.class_of(trace)?;
            let here = class ^ self.space.rest(*port);
            if *offset.get_or_insert(here) != here {
                return None;
            }
        }
        offset
    }

    /// Whose ports meet this.
    fn class_of(&self, trace: &Trace) -> Option<u16> {
        let same = |met: &Trace| met.0.iter().all(|(ttl, seen)| trace.0.get(ttl) == Some(seen));
        self.met.iter().find(|(_, met)| same(met)).map(|(class, _)| *class)
    }
}

/// The switches of a trace where paths part.
fn at(branches: &[u8], trace: &Trace) -> Trace {
    let hop = |ttl: &u8| match trace.0.get(ttl) {
        Some(seen @ Seen::Hop(_)) => Some((*ttl, *seen)),
        _ => None,
    };
    Trace(branches.iter().filter_map(hop).collect())
}
