//! Topology files of other simulators: text in, a [`Clos`] out.
//!
//! | module | whose file | what comes out |
//! |---|---|---|
//! | [`ns3`] | ASTRA-sim's ns-3 backend: every link on a line | the [`Clos`] in it, or else the graph, and which node is which |
//! | [`simai`] | SimAI's ns-3 backend: the same with NVSwitches | the [`Clos`], planes of it, or else the graph; the servers |
//! | [`infragraph`] | InfraGraph: devices, instances and edges, in YAML or JSON | the same |
//! | [`htsim`] | htsim's `.topo`: radices and rates by tier | a [`Clos`], switch latency, queue sizes |
//!
//! Invariant: what comes out is all that the file says of the network, or the file is refused:
//! nothing is rounded to the nearest regular fabric. No text makes a reader panic, and memory
//! grows with the text, not with the numbers in it (slices of InfraGraph have a limit). What a reader does not do: open files
//! (texts come with a name, for errors), or build the fabric.

pub mod htsim;
pub mod infragraph;
pub mod ns3;
mod planes;
mod recognise;
pub mod simai;
mod yaml;

pub use htsim::{Htsim, Queues};
pub use infragraph::Infragraph;
pub use ns3::{Ns3, Ns3Graph};
pub use recognise::Network;
pub use simai::Simai;

use crate::topology::Graph;
use crate::{Clos, FabricError, Node};
use std::fmt;
use weft_units::{HostId, Time};

/// What one of the files holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Of ASTRA-sim's ns-3 backend.
    Ns3(Ns3),
    /// Of the same, where the network is no folded Clos.
    Ns3Graph(Ns3Graph),
    /// Of SimAI's ns-3 backend.
    Simai(Simai),
    /// Of InfraGraph.
    Infragraph(Infragraph),
    /// Of htsim.
    Htsim(Htsim),
}

impl Topology {
    /// The folded Clos, if it is one; of several planes that of each.
    pub fn clos(&self) -> Option<&Clos> {
        match self {
            Topology::Ns3(file) => Some(&file.clos),
            Topology::Htsim(file) => Some(&file.clos),
            _ => match self.network() {
                Some(Network::Clos(clos)) => Some(clos),
                _ => None,
            },
        }
    }
    /// The network, if it is no folded Clos, and why it is none, with the name of the file.
    pub fn graph(&self) -> Option<(&Graph, &str)> {
        match (self, self.network()) {
            (Topology::Ns3Graph(file), _) => Some((&file.graph, &file.why)),
            (_, Some(Network::Graph { graph, why })) => Some((graph, why)),
            _ => None,
        }
    }
    fn network(&self) -> Option<&Network> {
        match self {
            Topology::Simai(file) => Some(&file.network),
            Topology::Infragraph(file) => Some(&file.network),
            Topology::Ns3(_) | Topology::Ns3Graph(_) | Topology::Htsim(_) => None,
        }
    }
    /// Networks of that kind side by side: ports of every host.
    pub fn planes(&self) -> u32 {
        match self {
            Topology::Simai(file) => file.planes,
            _ => 1,
        }
    }
    /// What each node is called in the file, where files name them or number others besides.
    pub fn names(&self) -> &[String] {
        match self {
            Topology::Simai(file) => &file.names,
            Topology::Infragraph(file) => &file.names,
            Topology::Ns3(_) | Topology::Ns3Graph(_) | Topology::Htsim(_) => &[],
        }
    }
    /// What the file leaves open, and what became of it.
    pub fn remarks(&self) -> &[String] {
        match self {
            Topology::Simai(file) => &file.remarks,
            Topology::Infragraph(file) => &file.remarks,
            Topology::Ns3(_) | Topology::Ns3Graph(_) | Topology::Htsim(_) => &[],
        }
    }
    /// What each node is here, where files number or name them.
    pub fn nodes(&self) -> &[Node] {
        match self {
            Topology::Ns3(file) => &file.nodes,
            Topology::Ns3Graph(file) => &file.nodes,
            Topology::Simai(file) => &file.nodes,
            Topology::Infragraph(file) => &file.nodes,
            Topology::Htsim(_) => &[],
        }
    }
}

/// The hosts among `nodes` of a file, in their order.
pub fn hosts(nodes: &[Node]) -> Vec<HostId> {
    let host = |node: &Node| match node {
        Node::Host(host) => Some(*host),
        Node::Switch(_) => None,
    };
    nodes.iter().filter_map(host).collect()
}

/// Reads a topology file of any kind, told apart by its text: those of InfraGraph by their keys, those of ns-3 and
/// SimAI by a number as their first word, SimAI's by a sixth word that is none, htsim's otherwise. `name` stands in errors.
///
/// # Errors
/// One line, `name:line: what; the mend`, where the text is none of the kinds, does not follow
/// its grammar, or is no regular fabric (see the modules).
pub fn read(name: &str, text: &str) -> Result<Topology, FabricError> {
    let says = |line: &&str| !line.is_empty() && !line.starts_with('#') && *line != "---";
    let Some(first) = unmarked(text).lines().map(str::trim).find(says) else {
        return Err(Odd::whole("the file says nothing; it is empty or truncated").of(name));
    };
    if infragraph::is_one(unmarked(text)) {
        return infragraph::read(name, text).map(Topology::Infragraph);
    }
    if first.starts_with('{') {
        let what = "this is JSON, as ASTRA-sim's logical dimensions are, which name no links; \
                    give the topology file of its network";
        return Err(Odd::whole(what).of(name));
    }
    if first.starts_with('<') {
        let what = "this is XML, as MSCCL's collectives are, which name no links; give the \
                    topology file of the network";
        return Err(Odd::whole(what).of(name));
    }
    if first.starts_with('[') || first.contains('=') {
        let what = "this is TOML, as experiments and clusters are; give a topology file, or run \
                    the experiment";
        return Err(Odd::whole(what).of(name));
    }
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        if simai::is_one(first) {
            return simai::read(name, text).map(Topology::Simai);
        }
        match ns3::read(name, text) {
            Ok(file) => Ok(Topology::Ns3(file)),
            Err(why) => ns3::read_graph(name, text, why).map(Topology::Ns3Graph),
        }
    } else if first.contains(':') {
        Err(Odd::whole(ANALYTICAL).of(name))
    } else {
        htsim::read(name, text).map(Topology::Htsim)
    }
}

/// Why a file with `key:` on its first line is refused, and what to do.
const ANALYTICAL: &str = "a network of ASTRA-sim's analytical backend has no switches that packets could \
    queue in; write topology with its counts instead of file, and what is within a server as gpus \
    and scale_up of [fabric.server]";

/// `text` without the byte-order mark that some editors put first.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// No link is longer: sums of delays stay far from an overflow.
const LONGEST: Time = Time::secs(1_000);

/// What is odd about a file, and on which line, if on one.
#[derive(Debug)]
struct Odd {
    line: Option<u64>,
    what: String,
}

impl Odd {
    /// Something on one line (counted from 1).
    fn at(line: u64, what: impl fmt::Display) -> Odd {
        Odd { line: Some(line), what: what.to_string() }
    }
    /// Something about the file as a whole.
    fn whole(what: impl fmt::Display) -> Odd {
        Odd { line: None, what: what.to_string() }
    }
    /// The error for the file `name`.
    fn of(self, name: &str) -> FabricError {
        let Odd { line, what } = self;
        FabricError(match line {
            Some(line) => format!("{name}:{line}: {what}"),
            None => format!("{name}: {what}"),
        })
    }
}
