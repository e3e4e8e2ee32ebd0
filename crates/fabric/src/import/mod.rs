//! Topology files of other simulators: text in, a [`Clos`] out.
//!
//! | module | whose file | what comes out |
//! |---|---|---|
//! | [`ns3`] | ASTRA-sim's ns-3 backend: every link on a line | the [`Clos`] in it, or else the graph, and which node is which |
//! | [`htsim`] | htsim's `.topo`: radices and rates by tier | a [`Clos`], switch latency, queue sizes |
//!
//! Invariant: what comes out is all that the file says of the network, or the file is refused:
//! nothing is rounded to the nearest regular fabric. No text makes a reader panic, and memory
//! grows with the text, not with the numbers in it. What a reader does not do: open files
//! (texts come with a name, for errors), or build the fabric.

pub mod htsim;
pub mod ns3;
mod recognise;

pub use htsim::{Htsim, Queues};
pub use ns3::{Ns3, Ns3Graph};

use crate::{Clos, FabricError, Node};
use std::fmt;
use weft_units::Time;

/// What one of the files holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// Of ASTRA-sim's ns-3 backend.
    Ns3(Ns3),
    /// Of the same, where the network is no folded Clos.
    Ns3Graph(Ns3Graph),
    /// Of htsim.
    Htsim(Htsim),
}

impl Topology {
    /// The folded Clos, if it is one.
    pub fn clos(&self) -> Option<&Clos> {
        match self {
            Topology::Ns3(file) => Some(&file.clos),
            Topology::Ns3Graph(_) => None,
            Topology::Htsim(file) => Some(&file.clos),
        }
    }
    /// What each node is here, where files number them.
    pub fn nodes(&self) -> &[Node] {
        match self {
            Topology::Ns3(file) => &file.nodes,
            Topology::Ns3Graph(file) => &file.nodes,
            Topology::Htsim(_) => &[],
        }
    }
}

/// Reads a topology file of either kind, told apart by its first word: a number in those of ns-3,
/// htsim's otherwise. `name` stands in errors.
///
/// # Errors
/// One line, `name:line: what; the mend`, where the text is none of the kinds, does not follow
/// its grammar, or is no regular fabric (see the modules).
pub fn read(name: &str, text: &str) -> Result<Topology, FabricError> {
    let says = |line: &&str| !line.is_empty() && !line.starts_with('#') && *line != "---";
    let Some(first) = unmarked(text).lines().map(str::trim).find(says) else {
        return Err(Odd::whole("the file says nothing; it is empty or truncated").of(name));
    };
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
    if first.starts_with(|c: char| c.is_ascii_digit()) {
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
