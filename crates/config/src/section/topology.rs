//! `[fabric]`: the keys that say which links there are, for every kind of topology.

use crate::ExperimentError;
use crate::kind::{Integer, Kind, OneOf, Span, Speed, Text, Texts, Wholes};
use crate::reader::{Choice, Reader};
use crate::value::{Item, Value};
use weft_fabric::topology::{Dragonfly, Graph, Group, Torus};
use weft_fabric::{Bundle, Clos, Link, Shape, Tiers, Wiring};
use weft_units::{Rate, Time, parse_rate, parse_time};

type Result<T> = std::result::Result<T, ExperimentError>;

/// How many of anything: enough for any fabric, few enough that products stay countable.
const COUNT: Integer = Integer { min: 1, max: 65_536 };
/// Links of a fabric: beyond this its description alone fills the memory.
const MAX_LINKS: u64 = 1 << 24;

/// The topologies that have keys of their own.
pub const TOPOLOGIES: &[Choice<(), Shape>] = &[
    Choice {
        name: "leaf-spine",
        summary: "two tiers: every leaf has a link, or a bundle of them, to every spine",
        source: "Ethereal (2024, 2025)",
        decode: |r, ()| leaf_spine(r).map(Shape::Clos),
    },
    Choice {
        name: "fat-tree",
        summary: "the k-ary fat-tree: k pods of k/2 leaves and k/2 aggregation switches",
        source: "Al-Fares et al. (SIGCOMM 2008); McClure et al. (2025)",
        decode: |r, ()| fat_tree(r).map(Shape::Clos),
    },
    Choice {
        name: "clos",
        summary: "a folded Clos of two or three tiers with any counts and bundles",
        source: "Ethereal (2025); ParaLet (2024)",
        decode: |r, ()| clos(r).map(Shape::Clos),
    },
    Choice {
        name: "rail-only",
        summary: "a leaf or a leaf-spine for each rail: the NICs of one number of all servers; rails never meet",
        source: "Wang et al. (arXiv 2307.12169)",
        decode: |r, ()| rail_only(r).map(Shape::Clos),
    },
    Choice {
        name: "dragonfly",
        summary: "groups of switches, all linked to each other, with global links between all groups",
        source: "Kim, Dally, Scott and Abts (ISCA 2008)",
        decode: |r, ()| dragonfly(r, false).map(Shape::from),
    },
    Choice {
        name: "dragonfly+",
        summary: "groups of leaves and spines, with global links between the spines of all groups",
        source: "Shpiner et al. (HiPINEB 2017)",
        decode: |r, ()| dragonfly(r, true).map(Shape::from),
    },
    Choice {
        name: "torus",
        summary: "a grid of switches that wraps around in every dimension, routed in their order",
        source: "Dally and Seitz (1987); TPU v4, Jouppi et al. (ISCA 2023)",
        decode: |r, ()| torus(r).map(Shape::from),
    },
    Choice {
        name: "graph",
        summary: "any network: the switch of each host, and the links between switches",
        source: "shortest paths, all equal ones: RFC 2992",
        decode: |r, ()| graph(r).map(Shape::from),
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

fn leaf_spine(r: &mut Reader<'_>) -> Result<Clos> {
    let leaves = r.get("leaves", COUNT, None, "leaf switches (racks)")?;
    let spines = r.get("spines", COUNT, None, "spine switches")?;
    let hosts = r.get("hosts_per_leaf", COUNT, None, "hosts under each leaf; in short `hosts`")?;
    let members = members(r, "links_per_pair", "parallel links from a leaf to a spine")?;
    let link = host_link(r)?;
    let leaf_bundle = leaf_bundle(r, link, members)?;
    Ok(Clos { leaf_bundle, ..Clos::leaf_spine(leaves, spines, hosts, link) })
}

fn fat_tree(r: &mut Reader<'_>) -> Result<Clos> {
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

fn rail_only(r: &mut Reader<'_>) -> Result<Clos> {
    let rails = r.get("rails", COUNT, None, "rails: one for each NIC of a server")?;
    let leaves = r.get("leaves", COUNT, Some(1), "leaf switches of each rail")?;
    let none = Integer { min: 0, max: COUNT.max };
    let meaning = "spine switches of each rail; none with one leaf";
    let spines = r.get("spines", none, Some(0), meaning)?;
    match (leaves, spines) {
        (1, 1..) => {
            return Err(r.wrong("spines", "a rail of one leaf has none; use 0, or more leaves"));
        }
        (2.., 0) => {
            let what = format!("the {leaves} leaves of a rail need some to meet; use at least 1");
            return Err(r.wrong("spines", what));
        }
        _ => {}
    }
    let meaning = "NICs under each leaf, each of a server of its own; in short `hosts`";
    let hosts = r.get("hosts_per_leaf", COUNT, None, meaning)?;
    let members = members(r, "links_per_pair", "parallel links from a leaf to a spine")?;
    let link = host_link(r)?;
    let leaf_bundle = leaf_bundle(r, link, members)?;
    let tiers = Tiers::Rails { rails, leaves, spines };
    Ok(Clos { leaf_bundle, ..Clos::uniform(tiers, hosts, link) })
}

/// The keys of a folded Clos; any can be written in them.
pub fn clos(r: &mut Reader<'_>) -> Result<Clos> {
    let tiers =
        r.get("tiers", Integer { min: 2, max: 3 }, Some(2), "2, or 3 with pods and cores")?;
    let leaves = r.get("leaves", COUNT, None, "leaf switches (in each pod)")?;
    let hosts = r.get("hosts_per_leaf", COUNT, None, "hosts under each leaf; in short `hosts`")?;
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

fn dragonfly(r: &mut Reader<'_>, plus: bool) -> Result<Wiring> {
    let groups = r.get("groups", COUNT, None, "groups of switches")?;
    let group = match plus {
        false => Group::Routers(r.get("routers", COUNT, None, "switches of a group: a")?),
        true => {
            let leaves = r.get("leaves", COUNT, None, "leaves of a group, which have hosts")?;
            let spines =
                r.get("spines", COUNT, None, "spines of a group, which have global links")?;
            Group::LeavesAndSpines(leaves, spines)
        }
    };
    let meaning = "hosts of each switch that has any: p; in short `hosts`";
    let hosts = r.get("hosts_per_leaf", COUNT, None, meaning)?;
    let meaning = "global links of a router, or spine: h";
    let global_ports = r.get("global_ports", COUNT, None, meaning)?;
    let host_link = host_link(r)?;
    let local = link(r, ["local_link", "local_delay"], host_link, "links within a group")?;
    let global = link(r, ["global_link", "global_delay"], local, "links between groups")?;
    let it = Dragonfly { groups, group, hosts, global_ports, host_link, local, global };
    let large = |what| format!("{what}; use smaller counts");
    check_count(it.links()).map_err(|what| r.wrong("groups", large(what)))?;
    it.wiring().map_err(|error| r.wrong("groups", error.0))
}

/// `4x4x4`; of one dimension a number will do.
#[derive(Clone, Copy)]
struct Sizes;

impl Kind for Sizes {
    type Out = String;
    fn read(&self, item: &Item) -> std::result::Result<String, String> {
        match item.value {
            Value::Int(size) => Ok(size.to_string()),
            _ => Text.read(item),
        }
    }
    fn write(&self, value: &String) -> Value {
        Text.write(value)
    }
    fn example(&self) -> Value {
        "4x4".into()
    }
    fn describe(&self) -> String {
        "whole numbers with x between them".to_owned()
    }
}

fn torus(r: &mut Reader<'_>) -> Result<Wiring> {
    let text = r.get("sizes", Sizes, None, "switches in each dimension, such as \"4x4x4\"")?;
    let sizes: std::result::Result<Vec<u32>, _> = text.split('x').map(str::parse).collect();
    let sizes = match sizes {
        Ok(sizes) if sizes.contains(&0) => {
            let what = format!("\"{text}\" has a dimension of 0; use 1 or more for each");
            return Err(r.wrong("sizes", what));
        }
        Ok(sizes) => sizes,
        Err(_) if r.is_rehearsal() => vec![1],
        Err(_) => {
            let what = format!("\"{text}\" is no list of sizes; write \"4x4\" or \"4x4x4\"");
            return Err(r.wrong("sizes", what));
        }
    };
    let hosts =
        r.get("hosts_per_leaf", COUNT, Some(1), "hosts of each switch; in short `hosts`")?;
    let words = ["around", "ends"];
    let meaning = "whether each dimension goes \"around\" (a torus) or \"ends\" (a mesh)";
    let wraps = r.get("edges", OneOf(&words), Some(0), meaning)? == 0;
    let host_link = host_link(r)?;
    let link = link(r, ["switch_link", "switch_delay"], host_link, "links between switches")?;
    let it = Torus { sizes, wraps, hosts, host_link, link };
    let large = |what| format!("{what}; use smaller ones");
    check_count(it.links()).map_err(|what| r.wrong("sizes", large(what)))?;
    it.wiring().map_err(|error| r.wrong("sizes", error.0))
}

/// The keys of a graph; any network whose hosts have as many links can be written in them.
pub fn graph(r: &mut Reader<'_>) -> Result<Wiring> {
    let meaning = "the switch of each host, those of a switch side by side, such as [0, 0, 1, 1]";
    let host_switches = r.get("host_switches", Wholes, None, meaning)?;
    let meaning = "where NICs have several ports, the other switches of each host, such as [\"1\", \"1\", \"3\", \"3\"]; \
                   hosts that share one switch share all";
    let others = r.get("other_switches", Texts, Some(Vec::new()), meaning)?;
    let meaning = "links between switches, such as [\"0 1\", \"1 2 400Gbps 2us\"]";
    let texts = r.get("links", Texts, None, meaning)?;
    let host_link = host_link(r)?;
    let usual = link(r, ["switch_link", "switch_delay"], host_link, "links that do not say")?;
    if r.is_rehearsal() {
        let (host_switches, other_switches, links) = (vec![0], Vec::new(), Vec::new());
        let it = Graph { host_switches, other_switches, host_link, links };
        return it.wiring().map_err(|error| r.wrong("links", error.0));
    }
    let links: std::result::Result<Vec<_>, String> =
        texts.iter().map(|text| one_link(text, usual)).collect();
    let links = links.map_err(|what| r.wrong("links", what))?;
    let numbers = |text: &String| text.split_ascii_whitespace().map(str::parse).collect();
    let other_switches: std::result::Result<Vec<Vec<u32>>, _> =
        others.iter().map(numbers).collect();
    let other_switches = other_switches.map_err(|_| {
        r.wrong("other_switches", "has an item that is no list of numbers; write \"1\", or \"1 2\"")
    })?;
    let it = Graph { host_switches, other_switches, host_link, links };
    it.wiring().map_err(|error| {
        let key = match error.0.contains("hosts of") {
            true if others.is_empty() => "host_switches",
            true => "other_switches",
            false => "links",
        };
        r.wrong(key, error.0)
    })
}

/// `0 1`, or `0 1 400Gbps 2us`.
fn one_link(text: &str, usual: Link) -> std::result::Result<(u32, u32, Link), String> {
    let odd = || format!("\"{text}\" is no link; write \"0 1\", or \"0 1 400Gbps 2us\"");
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let ([a, b] | [a, b, _] | [a, b, _, _]) = words[..] else { return Err(odd()) };
    let (Ok(a), Ok(b)) = (a.parse(), b.parse()) else { return Err(odd()) };
    let wrong = |error: weft_units::UnitError| format!("\"{text}\": {error}");
    let rate = words.get(2).map_or(Ok(usual.rate), |word| parse_rate(word)).map_err(wrong)?;
    let delay = words.get(3).map_or(Ok(usual.delay), |word| parse_time(word)).map_err(wrong)?;
    Ok((a, b, Link { rate, delay }))
}

/// The rate and the delay of some links; those of others unless given.
fn link(
    r: &mut Reader<'_>,
    [rate, delay]: [&'static str; 2],
    usual: Link,
    which: &'static str,
) -> Result<Link> {
    let rate = r.get(rate, Speed, Some(usual.rate), which)?;
    let delay = r.get(delay, Span::SOME, Some(usual.delay), which)?;
    Ok(Link { rate, delay })
}

/// The keys that make a fabric large.
pub(super) const COUNTS: [&str; 14] = [
    "rails",
    "groups",
    "routers",
    "global_ports",
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

/// Whether there are few enough links.
pub fn check_links(clos: &Clos) -> std::result::Result<(), String> {
    check_count(clos.links())
}

fn check_count(links: u64) -> std::result::Result<(), String> {
    if links <= MAX_LINKS {
        return Ok(());
    }
    Err(format!("{links} links are more than {MAX_LINKS}"))
}
