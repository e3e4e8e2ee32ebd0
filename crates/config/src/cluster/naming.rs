//! `[cluster]`: what the nodes, ports and addresses of a cluster are called.
//!
//! Each key is a number or a pattern over the numbers that its place has. The defaults give valid,
//! distinct Linux names and private addresses up to 65,536 leaves.

use crate::cluster::pattern::{Pattern, Values};
use crate::cluster::{Protocol, quoted};
use crate::value::{Item, Table, Value};
use crate::{ExperimentError, Origin};
use std::collections::BTreeMap;

/// The first UDP source port of RoCEv2; the last one is the last there is.
pub const FIRST_PORT: u16 = 0xC000;

/// What protocol the traffic that is steered has.
const PROTOCOL: &str = "protocol";
/// The network that addresses of paths are in.
pub(super) const PATH_ADDRESSES: &str = "path_addresses";

/// Key, default, least and most.
const NUMBERS: [(&str, u16, u16, u16); 5] = [
    ("dscp", 26, 0, 63),
    ("port", 4791, 1, u16::MAX),
    // The default is the protocol's.
    ("ports", 0, 1, 4_096),
    ("first_port", FIRST_PORT, 1, u16::MAX),
    ("last_port", u16::MAX, 1, u16::MAX),
];

const ON_HOST: &[&str] =
    &["host", "leaf", "place", "pod", "server", "rail", "hosts", "leaves", "nics"];
const ON_LEAF: &[&str] = &["leaf", "pod", "hosts", "leaves", "uplinks", "nics"];
const ON_MID: &[&str] =
    &["spine", "agg", "pod", "leaves", "spines", "aggs", "uplinks", "downlinks"];
const ON_CORE: &[&str] = &["core", "cores", "pods", "downlinks"];
const ABOVE_LEAF: &[&str] = &[
    "leaf",
    "uplink",
    "spine",
    "agg",
    "member",
    "pod",
    "link",
    "downlink",
    "uplinks",
    "members",
    "hosts",
    "leaves",
    "spines",
    "aggs",
    "downlinks",
];
const ABOVE_AGG: &[&str] = &[
    "agg",
    "uplink",
    "core",
    "member",
    "pod",
    "link",
    "downlink",
    "uplinks",
    "members",
    "aggs",
    "cores",
    "downlinks",
];

/// Key, default and names. `link` counts the links between switches; `uplink` those of the lower
/// switch (spine * members + member), `downlink` those below the upper one; `downlinks` of an
/// aggregation switch are its links to leaves. Empty defaults depend on the counts.
const PATTERNS: [(&str, &str, &[&str]); 18] = [
    ("host", "h{host}", ON_HOST),
    ("host_interface", "eth0", ON_HOST),
    ("host_address", "", ON_HOST),
    ("host_port", "eth{place+1}", ON_HOST),
    ("rack", "", ON_LEAF),
    ("gateway", "", ON_LEAF),
    ("leaf", "leaf-{leaf}", ON_LEAF),
    ("spine", "spine-{spine}", ON_MID),
    ("agg", "agg-{agg}", ON_MID),
    ("core", "core-{core}", ON_CORE),
    ("uplink_port", "eth{hosts+uplink+1}", ABOVE_LEAF),
    ("uplink_address", "100.{64+link//32768}.{link//128%256}.{link%128*2}", ABOVE_LEAF),
    ("uplink_next_hop", "100.{64+link//32768}.{link//128%256}.{link%128*2+1}", ABOVE_LEAF),
    ("downlink_port", "eth{downlink+1}", ABOVE_LEAF),
    ("agg_uplink_port", "eth{downlinks+uplink+1}", ABOVE_AGG),
    ("agg_uplink_address", "100.{64+link//32768}.{link//128%256}.{link%128*2}", ABOVE_AGG),
    ("agg_uplink_next_hop", "100.{64+link//32768}.{link//128%256}.{link%128*2+1}", ABOVE_AGG),
    ("core_downlink_port", "eth{downlink+1}", ABOVE_AGG),
];

/// Up to so many leaves with so many hosts each: address of a host, prefix and gateway of a rack.
const RACKS: [(u32, u32, [&str; 3]); 3] = [
    (256, 51_200, ["10.{leaf}.{place//200}.{place%200+2}", "10.{leaf}.0.0/16", "10.{leaf}.0.1"]),
    (
        4_096,
        3_200,
        [
            "10.{leaf//16}.{leaf%16*16+place//200}.{place%200+2}",
            "10.{leaf//16}.{leaf%16*16}.0/20",
            "10.{leaf//16}.{leaf%16*16}.1",
        ],
    ),
    (
        65_536,
        252,
        [
            "10.{leaf//256}.{leaf%256}.{place+2}",
            "10.{leaf//256}.{leaf%256}.0/24",
            "10.{leaf//256}.{leaf%256}.1",
        ],
    ),
];

/// All keys of `[cluster]`.
pub fn keys() -> Vec<&'static str> {
    let numbers = NUMBERS.iter().map(|number| number.0);
    let all = [PROTOCOL, PATH_ADDRESSES].into_iter().chain(numbers);
    all.chain(PATTERNS.iter().map(|pattern| pattern.0)).collect()
}

/// The counts that defaults depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// How many leaves there are in all pods.
    pub(crate) leaves: u32,
    /// Below each leaf.
    pub(crate) hosts: u32,
    /// Of a server.
    pub(crate) nics: u32,
}

/// What `[cluster]` says, with defaults.
pub(crate) struct Names<'a> {
    section: &'a Table,
    patterns: BTreeMap<&'static str, Pattern>,
}

impl<'a> Names<'a> {
    /// Reads the section.
    pub(crate) fn read(section: &'a Table, shape: Shape) -> Result<Names<'a>, ExperimentError> {
        let mut names = Names { section, patterns: BTreeMap::new() };
        let keys = keys();
        for (key, item) in section.iter() {
            if !keys.contains(&key) {
                return Err(unknown(&format!("cluster.{key}"), key, item.origin, &keys));
            }
        }
        let usual = usual(shape);
        for (key, default, allowed) in PATTERNS {
            let default = usual.get(key).copied().unwrap_or(default);
            let pattern = names.pattern(key, default, allowed)?;
            names.patterns.insert(key, pattern);
        }
        Ok(names)
    }

    /// The name or address that `key` gives for these numbers.
    pub(crate) fn fill(&self, key: &str, values: &Values<'_>) -> Result<String, ExperimentError> {
        self.patterns[key].fill(values).map_err(|error| self.wrong(key, error.0))
    }

    /// The mistake `what` (with its mend) at `key`.
    pub(crate) fn wrong(&self, key: &str, what: impl Into<String>) -> ExperimentError {
        let origin = self.section.get(key).map_or(Origin::Unknown, |item| item.origin);
        ExperimentError::new(format!("cluster.{key}"), origin, what)
    }

    fn pattern(
        &self,
        key: &str,
        default: &str,
        allowed: &[&str],
    ) -> Result<Pattern, ExperimentError> {
        let text = match self.section.get(key).map(|item| &item.value) {
            None if default.is_empty() => {
                let what = "there is no default for so many leaves and hosts; write one";
                return Err(self.wrong(key, what));
            }
            None => default,
            Some(Value::Text(text)) if !text.is_empty() => text,
            Some(other) => {
                let what = if other.as_text().is_some() { "is empty" } else { "not text" };
                let example = if default.is_empty() { "10.{leaf}.0.1" } else { default };
                return Err(self.wrong(key, format!("{what}; write {key} = \"{example}\"")));
            }
        };
        Pattern::read(text, allowed).map_err(|error| self.wrong(key, error.0))
    }

    /// The text of `key`, if it is there; `example` is one.
    pub(super) fn text(&self, key: &str, example: &str) -> Result<Option<String>, ExperimentError> {
        match self.section.get(key).map(|item| &item.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(key, format!("not text; write {key} = \"{example}\""))),
        }
    }

    /// The protocol.
    pub(crate) fn protocol(&self) -> Result<Protocol, ExperimentError> {
        let Some(item) = self.section.get(PROTOCOL) else { return Ok(Protocol::default()) };
        let text = item.value.to_label();
        let found = Protocol::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            let what = format!("{} is not known; use \"udp\" or \"tcp\"", quoted(&text));
            self.wrong(PROTOCOL, what)
        })
    }

    /// How many destination ports there are from `port` on.
    pub(crate) fn ports(&self, protocol: Protocol, port: u16) -> Result<u16, ExperimentError> {
        let ports = match self.section.get("ports") {
            None => protocol.ports(),
            Some(_) => self.number("ports")?,
        };
        in_reach(port, ports).map_err(|what| self.wrong("ports", what))?;
        Ok(ports)
    }

    /// One of the numbers.
    pub(crate) fn number(&self, key: &str) -> Result<u16, ExperimentError> {
        let given = match self.section.get(key).map(|item| &item.value) {
            None => return Ok(row(key).1),
            Some(Value::Int(given)) => *given,
            Some(_) => {
                let (_, _, least, most) = row(key);
                return Err(self.wrong(key, format!("not a whole number; use {least} to {most}")));
            }
        };
        in_range(key, given).map_err(|what| self.wrong(key, what))
    }
}

/// The row of a number.
fn row(key: &str) -> (&'static str, u16, u16, u16) {
    let found = NUMBERS.iter().find(|number| number.0 == key);
    *found.unwrap_or_else(|| panic!("{key} is a number"))
}

/// The number `given` for `key`.
///
/// # Errors
/// What it may be, if it is out of range.
pub(super) fn in_range(key: &str, given: i64) -> Result<u16, String> {
    let (_, _, least, most) = row(key);
    let fits = u16::try_from(given).ok().filter(|number| (least..=most).contains(number));
    fits.ok_or_else(|| format!("{given} is out of range; use {least} to {most}"))
}

/// Whether so many destination ports from `port` on exist.
///
/// # Errors
/// How many do, if not.
pub(super) fn in_reach(port: u16, ports: u16) -> Result<(), String> {
    match port.checked_add(ports - 1) {
        Some(_) => Ok(()),
        None => {
            let most = u16::MAX - port + 1;
            Err(format!("{ports} from {port} on end above 65535; use {most} at most"))
        }
    }
}

/// Defaults that depend on the counts.
fn usual(shape: Shape) -> BTreeMap<&'static str, &'static str> {
    let mut usual = BTreeMap::new();
    if shape.nics > 1 {
        usual.insert("host", "s{server}r{rail}");
        usual.insert("host_interface", "eth{rail}");
    }
    let fits = |row: &&(u32, u32, _)| shape.leaves <= row.0 && shape.hosts <= row.1;
    if let Some((_, _, patterns)) = RACKS.iter().find(fits) {
        usual.extend(["host_address", "rack", "gateway"].into_iter().zip(*patterns));
    }
    usual
}

/// The refusal of `key`, all of it `dotted`, where there are `known` ones.
pub(crate) fn unknown(dotted: &str, key: &str, origin: Origin, known: &[&str]) -> ExperimentError {
    let mend = match crate::nearest::nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => format!("use one of {}", known.join(", ")),
    };
    ExperimentError::new(dotted, origin, format!("unknown key; {mend}"))
}

/// The table under `key` of `whole`, or an empty one.
pub(crate) fn section<'a>(
    whole: &'a Table,
    key: &str,
    none: &'a Table,
) -> Result<&'a Table, ExperimentError> {
    match whole.get(key) {
        None => Ok(none),
        Some(Item { value: Value::Table(table), .. }) => Ok(table),
        Some(Item { origin, .. }) => {
            Err(ExperimentError::new(key, *origin, format!("not a table; write [{key}]")))
        }
    }
}
