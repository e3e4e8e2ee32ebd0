//! What is known of the ports towards one target, and the paths that follow.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What a port met at one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// The switch that answers from this address.
    Hop(Ipv4Addr),
    /// One that does not answer, asked several times.
    Silent,
    /// The target itself.
    End,
    /// One that has no way to the target: the port is of no use.
    NoWay,
}

/// What a port met, by distance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace(pub BTreeMap<u8, Seen>);

impl Trace {
    /// Whether a switch has said that it has no way to the target.
    pub fn leads_nowhere(&self) -> bool {
        self.0.values().any(|seen| *seen == Seen::NoWay)
    }
    /// Whether a switch has answered at a distance.
    pub fn names(&self, ttl: u8) -> bool {
        matches!(self.0.get(&ttl), Some(Seen::Hop(_)))
    }
    /// Whether a switch has answered from an address.
    pub fn meets(&self, address: Ipv4Addr) -> bool {
        self.0.values().any(|seen| *seen == Seen::Hop(address))
    }
}

/// Ports that take one path, as far as it can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The addresses from which its switches answered, from the first; `None`: that one is silent, or was
    /// not asked because it depends on the ones before.
    pub hops: Vec<Option<Ipv4Addr>>,
    /// Source ports that were asked, ascending.
    pub ports: Vec<u16>,
    /// Ports that were not: a hash that was found to be linear puts them there.
    pub predicted: Vec<u16>,
}

impl Path {
    /// Whether it is known which switch it meets at a distance.
    pub fn names(&self, ttl: u8) -> bool {
        self.hops.get(usize::from(ttl) - 1).is_some_and(Option::is_some)
    }
}

/// The distances at which ports met different switches on the way up, to the middle of paths of `length`
/// switches. On the way down nothing is chosen; but what a switch answers by may follow from the way that
/// its answer takes, and so differ from port to port.
pub fn branches<'a>(traces: impl Iterator<Item = &'a Trace> + Clone, length: u8) -> Vec<u8> {
    (1..=length.div_ceil(2)).filter(|ttl| common(traces.clone(), *ttl).is_none()).collect()
}

/// What all ports met that were asked at a distance; `None`: they differ.
fn common<'a>(traces: impl Iterator<Item = &'a Trace>, ttl: u8) -> Option<Option<Seen>> {
    let mut first = None;
    let mut traces = traces.filter(|trace| !trace.leads_nowhere());
    let is_same = traces.all(|trace| match trace.0.get(&ttl) {
        Some(seen) => *first.get_or_insert(*seen) == *seen,
        None => true,
    });
    is_same.then_some(first)
}

/// Whose port answers at a distance, if switches there answer by the link over which they were asked: the
/// switch before it, by the address, as far as ports met both. Nothing if they do not.
fn before(traces: &BTreeMap<u16, Trace>, ttl: u8) -> BTreeMap<Ipv4Addr, Ipv4Addr> {
    let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
    for trace in traces.values() {
        let (Some(Seen::Hop(before)), Some(Seen::Hop(at))) =
            (trace.0.get(&(ttl - 1)), trace.0.get(&ttl))
        else {
            continue;
        };
        let other = there.insert(*before, *at).is_some_and(|other| other != *at);
        if other || back.insert(*at, *before).is_some_and(|other| other != *before) {
            return BTreeMap::new();
        }
    }
    if back.len() > 1 { back } else { BTreeMap::new() }
}

/// Groups ports by what they met where paths part; those that lead nowhere are left out. Switches that all
/// ports meet are in every path. A silent switch is told from others by the next one, if that answers by the
/// link over which it was asked.
pub fn paths(traces: &BTreeMap<u16, Trace>, length: u8) -> Vec<Path> {
    let branches = branches(traces.values(), length);
    // On the way down few ports were asked, and whom they met follows from their way up. Only the last switch is
    // that of all, and only if it answers from one address whatever the way.
    let ways = |ttl: u8| {
        let asked = traces.values().filter(|trace| trace.0.contains_key(&ttl));
        // The first switch that is chosen says by which the last one is reached.
        let way = |trace: &Trace| trace.0.get(branches.first()?).copied();
        asked.map(way).collect::<BTreeSet<_>>().len()
    };
    let is_open = |ttl: u8| {
        let is_down = !branches.is_empty() && ttl > length.div_ceil(2);
        is_down && (ttl < length || ways(ttl) < 2)
    };
    let at_all = |ttl| match common(traces.values(), ttl) {
        Some(Some(Seen::Hop(address))) if !is_open(ttl) => Some(address),
        _ => None,
    };
    let of_all: Vec<Option<Ipv4Addr>> = (1..=length).map(at_all).collect();
    let behind: BTreeMap<u8, BTreeMap<Ipv4Addr, Ipv4Addr>> = branches
        .iter()
        .map(|ttl| ttl + 1)
        .filter(|ttl| *ttl <= length && !branches.contains(ttl))
        .map(|ttl| (ttl, before(traces, ttl)))
        .collect();
    let mut found: BTreeMap<Vec<Option<Ipv4Addr>>, Vec<u16>> = BTreeMap::new();
    for (port, trace) in traces.iter().filter(|(_, trace)| !trace.leads_nowhere()) {
        let seen = |ttl: u8| trace.0.get(&ttl).copied();
        // A switch that is silent, or was for this port.
        let by_next = |ttl: u8| match (seen(ttl), seen(ttl + 1)) {
            (Some(Seen::Silent), Some(Seen::Hop(next))) => {
                let known = behind.get(&(ttl + 1)).filter(|known| !known.is_empty())?;
                Some((known.get(&next).copied(), next))
            }
            _ => None,
        };
        let hop = |ttl: u8| match seen(ttl) {
            Some(Seen::Hop(address)) if branches.contains(&ttl) => Some(address),
            Some(Seen::Silent) if branches.contains(&ttl) => by_next(ttl)?.0,
            _ => match by_next(ttl.saturating_sub(1)) {
                Some((None, next)) => Some(next),
                _ => of_all[usize::from(ttl) - 1],
            },
        };
        let mut hops: Vec<Option<Ipv4Addr>> = (1..=length).map(hop).collect();
        while hops.last() == Some(&None) {
            hops.pop();
        }
        found.entry(hops).or_default().push(*port);
    }
    found.into_iter().map(|(hops, ports)| Path { hops, ports, predicted: Vec::new() }).collect()
}
