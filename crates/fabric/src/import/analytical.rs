//! The networks of ASTRA-sim's analytical backends: dimensions instead of switches.
//!
//! A YAML file of four lists with one entry a dimension: `topology` (`Ring`, `Switch` or
//! `FullyConnected`), `npus_count`, `bandwidth` of a link in GB/s of 2^30 bytes, `latency` of a
//! link in ns. There are no queues or paths in it, so it is no [`crate::Clos`]: a network model
//! of whole messages takes it as it is. Lists stand in brackets, or one `- entry` a line; the
//! rest of YAML is not read.

use super::{LONGEST, Odd, unmarked};
use crate::FabricError;
use weft_units::options::quoted;
use weft_units::{Rate, Time};

/// A network of dimensions. NPU 0, 1, ... are neighbours in the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Analytical {
    /// The dimensions, the innermost first; at least one.
    pub dimensions: Vec<Dimension>,
}

/// What connects NPUs that differ in one coordinate only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimension {
    /// How they are connected.
    pub shape: Shape,
    /// How many of them.
    pub npus: u32,
    /// Of a link, each way, as written: GB/s of 2^30 bytes. Above zero.
    pub bandwidth: f64,
    /// Of a link, one way.
    pub latency: Time,
}

/// How the NPUs of a dimension are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each to the next and the one before; messages take the shorter way.
    Ring,
    /// Each to one switch, so two links between any two.
    Switch,
    /// Each to every other.
    FullyConnected,
}

impl Dimension {
    /// The bandwidth of a link.
    pub fn bytes_per_second(&self) -> f64 {
        // A power of two: exact.
        self.bandwidth * 1_073_741_824.0
    }
    /// The bandwidth of a link, to the nearest bit per second.
    pub fn rate(&self) -> Rate {
        // Bounded by the reader, so that neither end is cut off; one made otherwise is.
        Rate::bps(((self.bytes_per_second() * 8.0 + 0.5) as u64).max(1))
    }
    /// How many links a message between the places `from` and `to` crosses; the latency counts
    /// once for each.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let apart = from.abs_diff(to);
        match self.shape {
            _ if apart == 0 => 0,
            Shape::Ring => apart.min(self.npus.saturating_sub(apart)),
            Shape::Switch => 2,
            Shape::FullyConnected => 1,
        }
    }
}

impl Analytical {
    /// How many NPUs there are: at most 2^24 in a network that was read.
    pub fn npus(&self) -> u64 {
        let counts = self.dimensions.iter().map(|dimension| u64::from(dimension.npus));
        counts.fold(1, u64::saturating_mul)
    }
    /// The place of `npu` in each dimension.
    pub fn places(&self, npu: u32) -> Vec<u32> {
        let mut rest = npu;
        let place = |dimension: &Dimension| {
            let place = rest % dimension.npus.max(1);
            rest /= dimension.npus.max(1);
            place
        };
        self.dimensions.iter().map(place).collect()
    }
}

/// Reads a file; `name` stands in errors.
///
/// # Errors
/// If the text is not four lists of one length, or an entry is not what its list holds.
pub fn read(name: &str, text: &str) -> Result<Analytical, FabricError> {
    let read = || Lists::parse(unmarked(text))?.build();
    read().map_err(|odd: Odd| odd.of(name))
}

/// As many as there may be hosts.
const MAX_NPUS: u64 = 1 << 24;
const KEYS: [&str; 4] = ["topology", "npus_count", "bandwidth", "latency"];

/// Entries with their lines.
#[derive(Default)]
struct List<'a> {
    /// Where the key stands.
    line: u64,
    brackets: Brackets,
    entries: Vec<(u64, &'a str)>,
}

/// How a list is written.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Brackets {
    /// One `- entry` a line.
    #[default]
    None,
    Open,
    Closed,
}

/// The four lists.
#[derive(Default)]
struct Lists<'a>([Option<List<'a>>; 4]);

impl<'a> Lists<'a> {
    fn parse(text: &'a str) -> Result<Lists<'a>, Odd> {
        let mut lists = Lists::default();
        let mut current = None;
        for (number, line) in (1..).zip(text.lines()) {
            let said = without_remark(line).trim();
            if said.is_empty() || said == "---" {
                continue;
            }
            lists.line(number, said, &mut current).map_err(|what| Odd::at(number, what))?;
        }
        let open = lists.0.iter().flatten().find(|list| list.brackets == Brackets::Open);
        match open {
            None => Ok(lists),
            Some(list) => Err(Odd::at(list.line, "the bracket stays open; close it with ]")),
        }
    }

    fn line(
        &mut self,
        line: u64,
        said: &'a str,
        current: &mut Option<usize>,
    ) -> Result<(), String> {
        if let Some(list) = current.and_then(|place| self.0[place].as_mut()) {
            match said.strip_prefix('-') {
                _ if list.brackets == Brackets::Open => return list.take(line, said),
                Some(entry) if list.brackets == Brackets::None => {
                    list.entries.push((line, bare(entry)));
                    return Ok(());
                }
                _ => {}
            }
        }
        let (place, value) = self.key(said)?;
        *current = Some(place);
        let list = self.0[place].insert(List { line, ..List::default() });
        match value.strip_prefix('[') {
            Some(rest) => list.take(line, rest),
            None if value.is_empty() => Ok(()),
            None => Err(format!("{} is no list; put it in brackets", quoted(value))),
        }
    }

    /// The place of a new key, and what stands beside it.
    fn key(&self, said: &'a str) -> Result<(usize, &'a str), String> {
        let known = KEYS.join(", ");
        let Some((key, value)) = said.split_once(':') else {
            return Err(format!("{} is not 'key: [ values ]'; the keys are {known}", quoted(said)));
        };
        let key = bare(key);
        let Some(place) = KEYS.iter().position(|known| *known == key) else {
            return Err(format!("unknown key {}; the keys are {known}", quoted(key)));
        };
        match &self.0[place] {
            Some(first) => {
                Err(format!("{key} is already given on line {}; remove one", first.line))
            }
            None => Ok((place, value.trim())),
        }
    }

    fn build(&self) -> Result<Analytical, Odd> {
        let [shapes, counts, bandwidths, latencies] = self.of_one_length()?;
        let dimension = |place: usize| {
            Ok(Dimension {
                shape: shape(shapes.entries[place])?,
                npus: npus(counts.entries[place])?,
                bandwidth: bandwidth(bandwidths.entries[place])?,
                latency: latency(latencies.entries[place])?,
            })
        };
        let dimensions = (0..shapes.entries.len()).map(dimension).collect::<Result<_, _>>()?;
        let network = Analytical { dimensions };
        match network.npus() {
            npus if npus <= MAX_NPUS => Ok(network),
            npus => {
                let what = format!("{npus} NPUs are more than {MAX_NPUS}; use smaller counts");
                Err(Odd::at(counts.line, what))
            }
        }
    }

    /// All four, none of them empty.
    fn of_one_length(&self) -> Result<[&List<'a>; 4], Odd> {
        let mut lists = Vec::new();
        for (key, list) in KEYS.into_iter().zip(&self.0) {
            let Some(list) = list else {
                return Err(Odd::whole(format!("no '{key}'; add it as a list")));
            };
            if list.entries.is_empty() {
                return Err(Odd::at(list.line, format!("{key} is empty; add its values")));
            }
            lists.push(list);
        }
        let count = lists[0].entries.len();
        if let Some((key, list)) = KEYS.iter().zip(&lists).find(|(_, l)| l.entries.len() != count) {
            let what = format!(
                "{key} has {} values for {count} dimensions; give one for each of 'topology'",
                list.entries.len()
            );
            return Err(Odd::at(list.line, what));
        }
        Ok([lists[0], lists[1], lists[2], lists[3]])
    }
}

impl<'a> List<'a> {
    /// Takes entries up to the closing bracket.
    fn take(&mut self, line: u64, said: &'a str) -> Result<(), String> {
        let (inside, after) = said.split_once(']').map_or((said, None), |(a, b)| (a, Some(b)));
        self.brackets = if after.is_some() { Brackets::Closed } else { Brackets::Open };
        if let Some(after) = after.map(str::trim).filter(|after| !after.is_empty()) {
            return Err(format!("{} after the list; remove it", quoted(after)));
        }
        let mut entries: Vec<&str> = inside.split(',').map(bare).collect();
        // A comma may end a line, and a bracket may stand alone on its own.
        if entries.last() == Some(&"") {
            entries.pop();
        }
        self.entries.extend(entries.into_iter().map(|entry| (line, entry)));
        Ok(())
    }
}

/// The line up to a `#` at its start or after a blank.
fn without_remark(line: &str) -> &str {
    let starts = |(at, _): &(usize, &str)| {
        *at == 0 || line[..*at].ends_with(|c: char| c.is_ascii_whitespace())
    };
    line.match_indices('#').find(starts).map_or(line, |(at, _)| &line[..at])
}

/// A word without blanks and quotes around it.
fn bare(word: &str) -> &str {
    let word = word.trim();
    let inside = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(word)
}

fn shape((line, word): (u64, &str)) -> Result<Shape, Odd> {
    match word {
        "Ring" => Ok(Shape::Ring),
        "Switch" => Ok(Shape::Switch),
        "FullyConnected" => Ok(Shape::FullyConnected),
        _ => {
            let what = format!(
                "unknown topology {}; use one of Ring, Switch, FullyConnected",
                quoted(word)
            );
            Err(Odd::at(line, what))
        }
    }
}

fn npus((line, word): (u64, &str)) -> Result<u32, Odd> {
    match word.parse() {
        Ok(npus) if npus > 0 => Ok(npus),
        _ => {
            let what = format!("npus_count {}; use a whole number from 1", quoted(word));
            Err(Odd::at(line, what))
        }
    }
}

fn bandwidth((line, word): (u64, &str)) -> Result<f64, Odd> {
    // Within these a rate is at least one bit per second and fits 64 bits.
    match word.parse::<f64>() {
        Ok(number) if (1e-9..=1e9).contains(&number) => Ok(number),
        _ => {
            let what = format!(
                "bandwidth {} is no number of GB/s above 0; write one such as 50.0",
                quoted(word)
            );
            Err(Odd::at(line, what))
        }
    }
}

fn latency((line, word): (u64, &str)) -> Result<Time, Odd> {
    let longest = (LONGEST.0 / 1_000) as f64;
    match word.parse::<f64>() {
        Ok(ns) if (0.0..=longest).contains(&ns) => Ok(Time((ns * 1_000.0 + 0.5) as u64)),
        _ => {
            let what = format!(
                "latency {} is no number of ns from 0 to {longest:.0}; write one such as 500.0",
                quoted(word)
            );
            Err(Odd::at(line, what))
        }
    }
}
