//! A bottleneck in words: how many links, from where to where, what they carry and what is asked
//! of them.

use crate::cuts::Cut;
use std::collections::BTreeMap;
use weft_capacity::Bottleneck;
use weft_fabric::Fabric;

/// `16 links up from pod 0: 1.33 Tbps for 1.41 Tbps`
pub(super) fn of(fabric: &Fabric, bottleneck: &Bottleneck) -> String {
    let (capacity, demand) = told_apart(bottleneck.capacity, bottleneck.demand);
    format!("{}: {capacity} for {demand}", links(fabric, bottleneck))
}

impl Cut {
    /// What stands before the places, and what one of those is called.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Cut::HostOut => ("up from", "host", "hosts"),
            Cut::LeafUp => ("up from", "leaf", "leaves"),
            Cut::PodUp => ("up from", "pod", "pods"),
            Cut::PodDown => ("down to", "pod", "pods"),
            Cut::LeafDown => ("down to", "leaf", "leaves"),
            Cut::HostIn => ("down to", "host", "hosts"),
        }
    }
}

/// More different weights than this are not told one by one.
const MOST_WEIGHTS: usize = 2;

fn links(fabric: &Fabric, bottleneck: &Bottleneck) -> String {
    if let [only] = &bottleneck.links[..] {
        return only.name.clone();
    }
    let mut weights: Vec<u64> = bottleneck.links.iter().map(|link| link.weight).collect();
    weights.sort_unstable();
    weights.dedup();
    let told = weights.len() <= MOST_WEIGHTS;
    // By kind and weight: how many links, at which places.
    let mut groups: BTreeMap<(Cut, u64), (u32, Vec<u32>)> = BTreeMap::new();
    for link in &bottleneck.links {
        for (kind, number) in Cut::of_link(fabric, link.port) {
            let group = groups.entry((kind, if told { link.weight } else { 1 })).or_default();
            group.0 += 1;
            group.1.push(number);
        }
    }
    let parts = groups.into_iter().map(|((kind, weight), (count, mut numbers))| {
        numbers.sort_unstable();
        numbers.dedup();
        let links = if count == 1 { "link" } else { "links" };
        format!("{count} {links} {}{}", places(kind, &numbers), times(weight))
    });
    let parts = listed(parts.collect());
    if told { parts } else { format!("{parts} (by weights)") }
}

/// `up from pod 0`, `down to leaves 1 and 2`, `down to 9 hosts`
fn places(kind: Cut, numbers: &[u32]) -> String {
    const MOST: usize = 4;
    let (which, one, many) = kind.words();
    match numbers {
        [only] => format!("{which} {one} {only}"),
        few if few.len() <= MOST => {
            format!("{which} {many} {}", listed(few.iter().map(u32::to_string).collect()))
        }
        all => format!("{which} {} {many}", all.len()),
    }
}

fn times(weight: u64) -> String {
    match weight {
        1 => String::new(),
        2 => " (counted twice)".into(),
        more => format!(" (counted {more} times)"),
    }
}

/// `a`, `a and b`, `a, b and c`
fn listed(mut parts: Vec<String>) -> String {
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}

/// Two rates in three digits, or in as many more as tell them apart.
fn told_apart(capacity: f64, demand: f64) -> (String, String) {
    const FEWEST: usize = 3;
    const MOST: usize = 6;
    let both = |digits| (rate(capacity, digits), rate(demand, digits));
    let differ = |(a, b): &(String, String)| a != b;
    (FEWEST..=MOST).map(both).find(differ).unwrap_or_else(|| both(FEWEST))
}

/// `1.33 Tbps`, `100 Gbps`, `nothing`
fn rate(bits: f64, digits: usize) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "Kbps")];
    if bits == 0.0 {
        return "nothing".into();
    }
    // What rounds up to one of a unit is one of it.
    let unit = UNITS.into_iter().find(|(scale, _)| bits >= scale * 0.9999995);
    let (scale, unit) = unit.unwrap_or((1.0, "bps"));
    let value = bits / scale;
    let whole = format!("{value:.0}").len();
    let text = format!("{value:.*}", digits.saturating_sub(whole));
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}
