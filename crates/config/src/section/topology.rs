//! `[fabric]`: the keys that say which links there are, for every kind of topology.

use crate::ExperimentError;
use crate::kind::{Integer, Span, Speed};
use crate::reader::{Choice, Reader};
use weft_fabric::{Bundle, Clos, Link, Tiers};
use weft_units::{Rate, Time};

type Result<T> = std::result::Result<T, ExperimentError>;

/// How many of anything: enough for any fabric, few enough that products stay countable.
const COUNT: Integer = Integer { min: 1, max: 65_536 };
/// Links of a fabric: beyond this its description alone fills the memory.
const MAX_LINKS: u64 = 1 << 24;

/// The topologies that have keys of their own.
pub const TOPOLOGIES: &[Choice<(), Clos>] = &[
    Choice {
        name: "leaf-spine",
        summary: "two tiers: every leaf has a link, or a bundle of them, to every spine",
        source: "Ethereal (2024, 2025)",
        decode: leaf_spine,
    },
    Choice {
        name: "fat-tree",
        summary: "the k-ary fat-tree: k pods of k/2 leaves and k/2 aggregation switches",
        source: "Al-Fares et al. (SIGCOMM 2008); McClure et al. (2025)",
        decode: fat_tree,
    },
    Choice {
        name: "clos",
        summary: "a folded Clos of two or three tiers with any counts and bundles",
        source: "Ethereal (2025); ParaLet (2024)",
        decode: clos,
    },
];

fn host_link(r: &mut Reader<'_>) -> Result<Link> {
    let rate = r.get("link", Speed, Some(Rate::gbps(100)), "rate of host links")?;
    let delay = r.get("delay", Span::SOME, Some(Time::ns(500)), "one-way delay of host links")?;
    Ok(Link { rate, delay })
}

/// Leaf to spine or aggregation switch; as the host link unless given.
fn leaf_bundle(r: &mut Reader<'_>, host: Link, members: u32) -> Result<Bundle> {
    let rate =
        r.get("uplink", Speed, Some(host.rate), "rate of a leaf's uplink; as link unless given")?;
    let delay = r.get(
        "uplink_delay",
        Span::SOME,
        Some(host.delay),
        "its one-way delay; as delay unless given",
    )?;
    Ok(Bundle { link: Link { rate, delay }, members })
}

/// Aggregation switch to core; as below unless given.
fn core_bundle(r: &mut Reader<'_>, below: Link, members: u32) -> Result<Bundle> {
    let rate = r.get(
        "core_link",
        Speed,
        Some(below.rate),
        "rate of a link to a core; as uplink unless given",
    )?;
    let delay = r.get(
        "core_delay",
        Span::SOME,
        Some(below.delay),
        "its one-way delay; as uplink_delay unless given",
    )?;
    Ok(Bundle { link: Link { rate, delay }, members })
}

fn members(r: &mut Reader<'_>, key: &'static str, meaning: &'static str) -> Result<u32> {
    r.get(key, COUNT, Some(1), meaning)
}

fn leaf_spine(r: &mut Reader<'_>, _: &()) -> Result<Clos> {
    let leaves = r.get("leaves", COUNT, None, "leaf switches (racks)")?;
    let spines = r.get("spines", COUNT, None, "spine switches")?;
    let hosts = r.get("hosts_per_leaf", COUNT, None, "hosts under each leaf")?;
    let members = members(r, "links_per_pair", "parallel links from a leaf to a spine")?;
    let link = host_link(r)?;
    let leaf_bundle = leaf_bundle(r, link, members)?;
    Ok(Clos { leaf_bundle, ..Clos::leaf_spine(leaves, spines, hosts, link) })
}

fn fat_tree(r: &mut Reader<'_>, _: &()) -> Result<Clos> {
    let k = r.get("k", Integer { min: 2, max: 512 }, None, "ports of a switch, an even number")?;
    if k % 2 == 1 {
        return Err(r.wrong("k", format!("{k} is odd; use {} or {}", k - 1, k + 1)));
    }
    let over = r.get("oversubscription", COUNT, Some(1), "host capacity over uplink capacity")?;
    let link = host_link(r)?;
    let leaf_bundle = leaf_bundle(r, link, 1)?;
    let agg_bundle = core_bundle(r, leaf_bundle.link, 1)?;
    let tree = Clos::fat_tree(k, link);
    Ok(Clos { hosts_per_leaf: k / 2 * over, leaf_bundle, agg_bundle, ..tree })
}

/// The keys of a folded Clos; any can be written in them.
pub fn clos(r: &mut Reader<'_>, _: &()) -> Result<Clos> {
    let tiers =
        r.get("tiers", Integer { min: 2, max: 3 }, Some(2), "2, or 3 with pods and cores")?;
    let leaves = r.get("leaves", COUNT, None, "leaf switches (in each pod)")?;
    let hosts = r.get("hosts_per_leaf", COUNT, None, "hosts under each leaf")?;
    let members = members(r, "links_per_pair", "parallel links from a leaf to a switch above")?;
    let link = host_link(r)?;
    let leaf_bundle = leaf_bundle(r, link, members)?;
    if tiers == 2 {
        r.instead("tiers", "2", "3", |r| clos_pods(r, leaves, leaf_bundle.link));
        let tiers = clos_spines(r, leaves)?;
        return Ok(Clos { leaf_bundle, ..Clos::uniform(tiers, hosts, link) });
    }
    r.instead("tiers", "3", "2", |r| clos_spines(r, leaves));
    let (tiers, agg_bundle) = clos_pods(r, leaves, leaf_bundle.link)?;
    Ok(Clos { leaf_bundle, agg_bundle, ..Clos::uniform(tiers, hosts, link) })
}

fn clos_spines(r: &mut Reader<'_>, leaves: u32) -> Result<Tiers> {
    let spines = r.get("spines", COUNT, None, "spine switches, with 2 tiers")?;
    Ok(Tiers::Two { leaves, spines })
}

fn clos_pods(r: &mut Reader<'_>, leaves_per_pod: u32, below: Link) -> Result<(Tiers, Bundle)> {
    let pods = r.get("pods", COUNT, None, "pods, with 3 tiers")?;
    let aggs_per_pod = r.get("aggs", COUNT, None, "aggregation switches in each pod")?;
    let cores = r.get("cores", COUNT, None, "core switches, a multiple of aggs")?;
    let members =
        members(r, "core_links_per_pair", "parallel links from an aggregation switch to a core")?;
    let bundle = core_bundle(r, below, members)?;
    Ok((Tiers::Three { pods, leaves_per_pod, aggs_per_pod, cores }, bundle))
}

/// The keys that make a fabric large.
pub(super) const COUNTS: [&str; 10] = [
    "leaves",
    "spines",
    "hosts_per_leaf",
    "links_per_pair",
    "k",
    "oversubscription",
    "pods",
    "aggs",
    "cores",
    "core_links_per_pair",
];

/// How many links there are.
pub(super) fn links(clos: &Clos) -> u64 {
    let wide = |n: u32| u64::from(n);
    let leaves = wide(clos.pods()) * wide(clos.leaves_per_pod());
    let mids = wide(clos.pods()) * wide(clos.mids_per_pod());
    let up = wide(clos.mids_per_pod()).saturating_mul(wide(clos.leaf_bundle.members));
    let core = wide(clos.cores_per_plane()).saturating_mul(wide(clos.agg_bundle.members));
    leaves
        .saturating_mul(up.saturating_add(wide(clos.hosts_per_leaf)))
        .saturating_add(mids.saturating_mul(core))
}

/// Whether there are few enough links.
pub fn check_links(clos: &Clos) -> std::result::Result<(), String> {
    let links = links(clos);
    if links <= MAX_LINKS {
        return Ok(());
    }
    Err(format!("{links} links are more than {MAX_LINKS}"))
}

/// The lowest rate of any link.
pub(super) fn slowest(clos: &Clos) -> Rate {
    let edge = clos.host_link.rate.min(clos.leaf_bundle.link.rate);
    if clos.cores() > 0 { edge.min(clos.agg_bundle.link.rate) } else { edge }
}
