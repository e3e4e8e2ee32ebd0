//! The table of discovered paths: JSON, one object, whose keys `docs/discover.md` describes. Written for
//! each host that looked (`sources`), read by planners and hosts. It is written and read here.

use crate::cluster::Protocol;
use crate::{ExperimentError, Origin};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weft_discover::{Count, Known, Need, Path, Seen, TargetState, Trace};

/// The value of `format`.
pub const FORMAT: &str = "weft-paths";
/// The version that is written, and the only one that is read.
pub const VERSION: u64 = 1;

/// A table of discovered paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathsFile {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u64,
    /// Of the traffic whose ports were looked at: switches hash it too.
    pub protocol: Protocol,
    /// Its destination port.
    pub port: u16,
    /// What each host has found.
    pub sources: Vec<SourcePaths>,
}

/// The paths from one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcePaths {
    /// Its address.
    pub address: Ipv4Addr,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Probes that were sent, answered, and not answered in time.
    pub probes: u64,
    /// See `probes`.
    pub answers: u64,
    /// See `probes`.
    pub lost: u64,
    /// What is known of each target.
    pub targets: Vec<TargetPaths>,
}

/// The paths to one address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetPaths {
    /// The address.
    pub address: Ipv4Addr,
    /// Switches of a path; nothing if that is not known yet.
    pub hops: Option<u8>,
    /// Whether the search has ended.
    pub done: bool,
    /// How likely it is, at least, that all paths were seen.
    pub confidence: f64,
    /// The smallest share of all ports that would have been seen with that likelihood.
    pub smallest_share: f64,
    /// Whether the hash was found to be linear: then some ports give all.
    #[serde(default)]
    pub linear: bool,
    /// What was needed of it, if that was not all paths.
    #[serde(default)]
    pub needs: Vec<PathNeed>,
    /// The largest count of ports of a path over the mean; nothing of a single path.
    pub max_over_mean: Option<f64>,
    /// How likely counts as uneven are if all paths have equal shares.
    pub p_value: Option<f64>,
    /// Ports of an older table that were asked again, and those that took another path.
    pub checked: u32,
    /// See `checked`.
    pub changed: u32,
    /// Ports by path.
    pub paths: Vec<PathPorts>,
}

/// Ports that somebody needed ([`Need`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathNeed {
    /// The addresses of switches that they meet; none: any path.
    pub through: Vec<Ipv4Addr>,
    /// How many.
    pub ports: u32,
}

/// A path and its ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathPorts {
    /// The addresses of its switches, from the first; `null`: that one does not answer.
    pub hops: Vec<Option<Ipv4Addr>>,
    /// Source ports that were asked, ascending.
    pub ports: Vec<u16>,
    /// Ports that were not: a hash that was found to be linear puts them there.
    #[serde(default)]
    pub predicted: Vec<u16>,
}

impl PathsFile {
    /// A table without a source.
    pub fn new(protocol: Protocol, port: u16) -> PathsFile {
        let (format, version, sources) = (FORMAT.to_owned(), VERSION, Vec::new());
        PathsFile { format, version, protocol, port, sources }
    }

    /// The table in `text`, whose file is `source`.
    ///
    /// # Errors
    /// If it is none, or of another version: file, key and mend.
    pub fn read(text: &str, source: &str) -> Result<PathsFile, ExperimentError> {
        let wrong = |key: &str, what: String| {
            ExperimentError::new(key, Origin::Unknown, what).in_source(source)
        };
        let mend = "make it again with weft discover";
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: serde_json::Value,
        }
        let head: Result<Head, _> = serde_json::from_str(text);
        let head = match head {
            Ok(head) if head.format == FORMAT => head,
            Err(error) if !error.is_data() => {
                let what = format!("not JSON (line {}); {mend}", error.line());
                return Err(wrong("", what));
            }
            _ => return Err(wrong("format", format!("not a table of paths; {mend}"))),
        };
        if head.version != VERSION {
            return Err(wrong("version", format!("{} is not known; {mend}", head.version)));
        }
        serde_json::from_str(text)
            .map_err(|error| wrong("", format!("not as weft discover writes it ({error}); {mend}")))
    }
}

impl SourcePaths {
    /// What a survey found, by the addresses of its targets.
    pub fn new(
        address: Ipv4Addr,
        seconds: f64,
        count: Count,
        targets: impl Iterator<Item = (Ipv4Addr, TargetState)>,
    ) -> SourcePaths {
        let Count { probes, answers, lost } = count;
        let targets = targets.map(|(address, state)| TargetPaths::new(address, state)).collect();
        SourcePaths { address, seconds, probes, answers, lost, targets }
    }
}

impl TargetPaths {
    fn new(address: Ipv4Addr, state: TargetState) -> TargetPaths {
        let one = |Path { hops, ports, predicted }: Path| PathPorts { hops, ports, predicted };
        TargetPaths {
            address,
            hops: state.hops,
            done: state.done,
            confidence: state.confidence,
            smallest_share: state.smallest_share,
            linear: state.linear,
            needs: state.needs.into_iter().map(PathNeed::from).collect(),
            max_over_mean: state.evenness.map(|even| even.max_over_mean),
            p_value: state.evenness.map(|even| even.p_value),
            checked: state.checked,
            changed: state.changed,
            paths: state.paths.into_iter().map(one).collect(),
        }
    }

    /// What is known, for a survey that goes on from here.
    pub fn known(&self) -> Known {
        let of = |ports: fn(&PathPorts) -> &[u16]| {
            let traces = self.paths.iter().flat_map(move |path| {
                let trace = path.trace();
                ports(path).iter().map(move |port| (*port, trace.clone()))
            });
            traces.collect::<BTreeMap<u16, Trace>>()
        };
        let (asked, predicted) = (of(|path| &path.ports), of(|path| &path.predicted));
        Known { hops: self.hops, asked, predicted, done: self.done }
    }

    /// What was needed of it.
    pub fn needs(&self) -> Vec<Need> {
        let one = |need: &PathNeed| Need { through: need.through.clone(), ports: need.ports };
        self.needs.iter().map(one).collect()
    }
}

impl PathPorts {
    fn trace(&self) -> Trace {
        let seen = |hop: &Option<Ipv4Addr>| hop.map_or(Seen::Silent, Seen::Hop);
        Trace((1..).zip(self.hops.iter().map(seen)).collect())
    }
}

impl From<Need> for PathNeed {
    fn from(Need { through, ports }: Need) -> PathNeed {
        PathNeed { through, ports }
    }
}
