//! Whether DNLB can balance a workload, before it runs: equation 4 of CTCCL (2025), and what it leaves
//! out. The segments of all queue pairs of a leaf's busy NICs are counted.

use crate::traffic::{Stream, Traffic};
use std::collections::{BTreeMap, BTreeSet};
use weft_balance::scheme::SchemeConfig;
use weft_balance::scheme::dnlb::{Condition, Dnlb, queue_pairs_by_uplink};
use weft_fabric::Fabric;

/// A line for each way in which leaves are out of balance, the first such leaf by name; none under
/// other schemes.
pub(crate) fn warnings(scheme: &SchemeConfig, fabric: &Fabric, traffic: &Traffic) -> Vec<String> {
    let SchemeConfig::Dnlb(dnlb) = scheme else { return Vec::new() };
    let mut kinds: BTreeMap<&str, (String, u32)> = BTreeMap::new();
    for (leaf, nics) in busy(dnlb, fabric, traffic) {
        if let Some((kind, what)) = complaint(dnlb, fabric, leaf, &nics) {
            kinds.entry(kind).or_insert((what, 0)).1 += 1;
        }
    }
    let line = |(what, leaves): (String, u32)| match leaves {
        1 => format!("{}: {what}", scheme.name()),
        _ => format!("{}: {what} (leaves like this one: {leaves})", scheme.name()),
    };
    kinds.into_values().map(line).collect()
}

/// The NICs of each leaf that send marked traffic up, by their places below it.
fn busy(dnlb: &Dnlb, fabric: &Fabric, traffic: &Traffic) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut leaves: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    traffic.streams(|Stream { src, dst, job, .. }| {
        let leaf = fabric.leaf_of(src);
        let is_marked = dnlb.jobs.is_none_or(|jobs| job < jobs);
        if is_marked && leaf != fabric.leaf_of(dst) {
            leaves.entry(leaf).or_default().insert(fabric.place_below_leaf(src));
        }
    });
    leaves
}

/// What is wrong at `leaf`, if something is: which way, and in words.
fn complaint(
    dnlb: &Dnlb,
    fabric: &Fabric,
    leaf: u32,
    nics: &BTreeSet<u32>,
) -> Option<(&'static str, String)> {
    let queue_pairs = dnlb.sharing.queue_pairs;
    let uplinks = fabric.uplinks(weft_units::SwitchId(leaf));
    let counts = queue_pairs_by_uplink(dnlb, nics, uplinks);
    let (least, most) = (counts.iter().min()?, counts.iter().max()?);
    if least == most {
        return None;
    }
    let all = nics.len() as u32 * queue_pairs;
    let who = format!("leaf-{leaf} has {} busy NIC(s) x {queue_pairs} queue pair(s)", nics.len());
    let enough = uplinks / gcd(nics.len() as u32, uplinks);
    let mend = format!("balance.queue_pairs = {enough}");
    Some(match Condition::of(nics.len() as u32, queue_pairs, uplinks) {
        Condition::TooFew => {
            let idle = counts.iter().filter(|count| **count == 0).count();
            let what = format!(
                "{who} for {uplinks} uplinks, fewer than equation 4 asks for: {idle} of the uplinks \
                 carry nothing; use {mend}"
            );
            ("few", what)
        }
        Condition::Uneven => {
            let what = format!(
                "{who} for {uplinks} uplinks, which do not divide {all}: some uplinks have {most} \
                 queue pairs, others {least}; use {mend}"
            );
            ("uneven", what)
        }
        Condition::Balanced => {
            let what = format!(
                "{who} for {uplinks} uplinks, enough for balance, but some uplinks have {most} \
                 queue pairs, others {least}: the places of the NICs are not in a row, or \
                 balance.formula = \"printed\" misses segments; use balance.queue_pairs = {uplinks} \
                 and formula = \"repaired\""
            );
            ("places", what)
        }
    })
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
