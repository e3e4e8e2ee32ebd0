//! Topology files of ASTRA-sim's ns-3 backend.
//!
//! The first line counts nodes, switches and links; then come the numbers of the switches, and
//! then one link a line: its two ends, rate, delay and error rate. What is no switch is a host.
//! The files of Ethereal's evaluation (2025) add four numbers to the first line (older ones
//! two), which repeat what the links say and are not used.
//!
//! Here is the grammar; `recognise` finds the folded Clos.

use super::recognise::{Role, Wire, Wires, graph, recognise};
use super::{LONGEST, Odd, hosts, unmarked};
use crate::topology::Graph;
use crate::{Clos, FabricError, Link, Node};
use weft_units::options::quoted;
use weft_units::{HostId, parse_rate, parse_time};

/// The folded Clos of a file, and which of its nodes is which of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ns3 {
    /// What [`crate::Fabric::build`] builds, without latency in boxes. A lone switch becomes a
    /// leaf under a spine that no route uses.
    pub clos: Clos,
    /// What each node of the file is here, by its number there. Hosts under a leaf keep their
    /// order; leaves and pods stand in the order of their first hosts; spines, aggregation
    /// switches of the first pod, and cores of a plane in the order of their numbers.
    pub nodes: Vec<Node>,
}

impl Ns3 {
    /// The hosts in the order of their numbers in the file, which is that of ASTRA-sim's ranks.
    pub fn hosts(&self) -> Vec<HostId> {
        hosts(&self.nodes)
    }
}

/// Reads a file; `name` stands in errors.
///
/// # Errors
/// If the text does not follow the grammar, and if it is no regular folded Clos of one switch,
/// two tiers or three: a host with several links, unequal rates or delays in a tier, a missing
/// link, an error rate above zero.
pub fn read(name: &str, text: &str) -> Result<Ns3, FabricError> {
    let read = || {
        let wires = parse(unmarked(text))?;
        let (clos, nodes) = recognise(&wires)?;
        clos.validate().map_err(Odd::whole)?;
        Ok(Ns3 { clos, nodes })
    };
    read().map_err(|odd: Odd| odd.of(name))
}

/// A file whose network is no regular folded Clos: any other, by its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ns3Graph {
    /// The network. Switches have the numbers that they have in the file; hosts of a switch are numbered together, in the
    /// order of the first host of each.
    pub graph: Graph,
    /// What each node of the file is here, by its number there.
    pub nodes: Vec<Node>,
    /// Why it is no Clos.
    pub why: String,
}

/// Reads a file whose network is no regular folded Clos, since `why`; `name` stands in errors.
///
/// # Errors
/// `why`, if it is no network of any shape either: a host without a link, hosts with more links than others or that
/// share one switch and not all, links of hosts that differ, or parts without a link between them. And if the text does not follow the grammar.
pub fn read_graph(name: &str, text: &str, why: FabricError) -> Result<Ns3Graph, FabricError> {
    let wires = parse(unmarked(text)).map_err(|odd| odd.of(name))?;
    match graph(&wires) {
        Some(Ok((graph, nodes))) => Ok(Ns3Graph { graph, nodes, why: why.0 }),
        Some(Err(error)) => Err(FabricError(format!("{name}: {}", error.0))),
        None => Err(why),
    }
}

/// A line that says something: its number and its words.
pub(super) type Line<'a> = (u64, Vec<&'a str>);

/// The first line that says something, and those behind it.
pub(super) fn lines(text: &str) -> Result<(Line<'_>, impl Iterator<Item = Line<'_>>), Odd> {
    let words = |(number, line): (u64, _)| (number, str::split_ascii_whitespace(line).collect());
    let all = (1..).zip(text.lines()).map(words);
    let mut all = all.filter(|(_, words): &Line<'_>| !words.is_empty());
    let first = all.next();
    let first =
        first.ok_or_else(|| Odd::whole("the file says nothing; it is empty or truncated"))?;
    Ok((first, all))
}

fn parse(text: &str) -> Result<Wires, Odd> {
    let ((line, words), mut lines) = lines(text)?;
    let header = Header::parse(line, &words)?;
    let switches = header.switches(&mut lines)?;
    let wires = header.wires(lines)?;
    let mut roles = vec![Role::Host; header.nodes as usize];
    for switch in switches {
        roles[switch as usize] = Role::Switch;
    }
    Ok(Wires { roles, wires })
}

/// The counts of the first line.
pub(super) struct Header {
    pub(super) line: u64,
    pub(super) nodes: u32,
    pub(super) switches: u32,
    pub(super) links: u32,
}

impl Header {
    fn parse(line: u64, words: &[&str]) -> Result<Header, Odd> {
        let counts = words.iter().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
        let [nodes, switches, links, ..] = counts.as_deref().unwrap_or_default() else {
            return Err(Header::refused(line));
        };
        if !matches!(words.len(), 3 | 5 | 7) {
            return Err(Header::refused(line));
        }
        let header = Header { line, nodes: *nodes, switches: *switches, links: *links };
        if header.switches == 0 || header.switches >= header.nodes {
            let what = format!(
                "{nodes} nodes with {switches} switches among them; a fabric has switches and hosts"
            );
            return Err(Odd::at(line, what));
        }
        Ok(header)
    }

    fn refused(line: u64) -> Odd {
        let what = "the first line counts nodes, switches and links, such as '6 2 5' (Ethereal's \
                    files add four numbers); correct it";
        Odd::at(line, what)
    }

    /// Whether all links came, and are enough to connect the nodes; so no count is larger than
    /// the text warrants.
    fn check(&self, wires: &[Wire]) -> Result<(), Odd> {
        let have = wires.len();
        if have < self.links as usize {
            let what = format!(
                "{} links promised, but the file ends after {have}: it is truncated; fetch it \
                 again or correct the count",
                self.links
            );
            return Err(Odd::at(self.line, what));
        }
        if have + 1 < self.nodes as usize {
            let what = format!(
                "{have} links cannot connect {} nodes; correct the counts or add links",
                self.nodes
            );
            return Err(Odd::at(self.line, what));
        }
        Ok(())
    }

    /// The numbers of the switches in the order of the file, which may stand on several lines.
    pub(super) fn switches<'a>(
        &self,
        lines: &mut impl Iterator<Item = Line<'a>>,
    ) -> Result<Vec<u32>, Odd> {
        let promised = self.switches as usize;
        let mut switches = Vec::new();
        while switches.len() < promised {
            let Some((line, words)) = lines.next() else {
                let what = format!(
                    "{promised} switches promised, but the file ends after {} of their numbers: it is \
                 truncated; fetch it again or correct the count",
                    switches.len()
                );
                return Err(Odd::at(self.line, what));
            };
            for word in words {
                switches.push(node(self, line, word)?);
            }
            if switches.len() > promised {
                let what = format!(
                    "more numbers of switches than the {promised} promised; correct the count"
                );
                return Err(Odd::at(line, what));
            }
        }
        let mut sorted = switches.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => {
                Err(Odd::whole(format!("switch {} is listed twice; remove one", twice[0])))
            }
            None => Ok(switches),
        }
    }

    /// The links: as many as promised, and enough to connect the nodes.
    pub(super) fn wires<'a>(
        &self,
        lines: impl Iterator<Item = Line<'a>>,
    ) -> Result<Vec<Wire>, Odd> {
        let mut wires = Vec::new();
        for (line, words) in lines {
            if wires.len() == self.links as usize {
                let what = format!(
                    "one link more than the {} of line {}; correct the count or remove the line",
                    self.links, self.line
                );
                return Err(Odd::at(line, what));
            }
            wires.push(wire(self, line, &words)?);
        }
        self.check(&wires)?;
        Ok(wires)
    }
}

/// The number of a node.
fn node(header: &Header, line: u64, word: &str) -> Result<u32, Odd> {
    let Ok(number) = word.parse::<u32>() else {
        let what = format!(
            "{} is no node's number; the {} switches are listed first, then links as 'source \
             destination rate delay error'",
            quoted(word),
            header.switches
        );
        return Err(Odd::at(line, what));
    };
    if number >= header.nodes {
        let what = format!(
            "node {number} of {} nodes; they count from 0, so use {} at most",
            header.nodes,
            header.nodes - 1
        );
        return Err(Odd::at(line, what));
    }
    Ok(number)
}

/// A line `source destination rate delay error`.
fn wire(header: &Header, line: u64, words: &[&str]) -> Result<Wire, Odd> {
    let [a, b, rate, delay, error] = words else {
        let what = format!(
            "{} words, where a link has five: 'source destination rate delay error', such as \
             '0 256 400Gbps 0.0005ms 0'",
            words.len()
        );
        return Err(Odd::at(line, what));
    };
    let ends = [node(header, line, a)?, node(header, line, b)?];
    if ends[0] == ends[1] {
        return Err(Odd::at(line, format!("node {a} is linked to itself; remove the line")));
    }
    let rate = parse_rate(rate).map_err(|e| Odd::at(line, e))?;
    let delay = parse_time(delay).map_err(|e| Odd::at(line, e))?;
    if delay > LONGEST {
        let what = format!("a delay of {delay} is out of range; use {LONGEST} at most");
        return Err(Odd::at(line, what));
    }
    if error.parse::<f64>() != Ok(0.0) {
        let what = format!(
            "error rate {}; only 0 can be imported: use 0 here, and say which links are flaky \
             where failures are described",
            quoted(error)
        );
        return Err(Odd::at(line, what));
    }
    Ok(Wire { line, ends, link: Link { rate, delay } })
}
