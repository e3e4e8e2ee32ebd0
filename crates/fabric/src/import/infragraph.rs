//! InfraGraph (Keysight): the wiring of a cluster in YAML or JSON, version 2.4.
//!
//! `devices` say which components a box has, `instances` how many boxes of a device there are, and `edges` which
//! components of which boxes are linked, with slices as in Python: `host[0:4]` and `nic[0]`; without brackets all. A
//! scheme pairs the two lists of an edge: `one2one` the first with the first until the shorter one ends, `many2many` all
//! with all. `links` have rate and latency.
//!
//! A box with accelerators or NICs, in itself or in a device within it, is a server, any other one a switch. What of
//! a server is linked (a NIC, as a rule) is a host here. What is linked within a box is left out: hosts of a server are
//! `[fabric.server]`'s. The same edge twice is one, as in InfraGraph's own graph; boxes without an edge are not there.

use super::recognise::{Network, Role, Wire, Wires, network};
use super::yaml::{self, Tree};
use super::{LONGEST, Odd, unmarked};
use crate::{FabricError, Link, Node};
use std::collections::{BTreeMap, BTreeSet};
use weft_units::options::quoted;
use weft_units::{Time, parse_rate, parse_time};

/// The network of a file, and which of its parts is which of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Infragraph {
    /// The network, without latency in boxes.
    pub network: Network,
    /// What each part is here: first the linked parts of servers, in the order of instances, their copies, and
    /// components, then switches.
    pub nodes: Vec<Node>,
    /// What each part is called in the file, such as `host.0.nic.1` or `leaf.2`.
    pub names: Vec<String>,
    /// What the file leaves open, and what became of it.
    pub remarks: Vec<String>,
}

/// What an infrastructure has.
const KEYS: [&str; 7] =
    ["name", "description", "devices", "links", "instances", "edges", "annotations"];
/// Of links that do not say theirs: that of Weft's own topologies.
const LATENCY: Time = Time::ns(500);
/// Edges, and parts on one side of an edge: slices make many of few words.
const MOST: usize = 1 << 20;
/// Devices within devices.
const DEEPEST: u32 = 8;

/// Whether a text is one of these, by the keys at the start of its lines, or by its names in JSON.
pub(super) fn is_one(text: &str) -> bool {
    let starts = ["devices:", "instances:", "infrastructure:"];
    let yaml = text.lines().any(|line| starts.iter().any(|start| line.starts_with(start)));
    yaml || text.trim_start().starts_with('{')
        && ["\"devices\"", "\"instances\""].iter().any(|name| text.contains(name))
}

/// Reads a file; `name` stands in errors.
///
/// # Errors
/// If it is no YAML or JSON, lacks what an edge refers to, or says what is no network here: a NIC with several links, two
/// NICs linked to each other, hosts that differ in their link, parts without a link between them.
pub fn read(name: &str, text: &str) -> Result<Infragraph, FabricError> {
    parse(name, unmarked(text)).map_err(|odd| odd.of(name))
}

fn parse(name: &str, text: &str) -> Result<Infragraph, Odd> {
    let whole = yaml::read(text)?;
    let whole = whole.get("infrastructure").unwrap_or(&whole);
    if let Some(old) = whole.get("connections") {
        let what =
            "connections, as InfraGraph had before its version 1; write edges with ep1 and ep2";
        return Err(Odd::at(old.line, what));
    }
    whole.only(&KEYS, "an InfraGraph")?;
    let mut file = File::new(whole)?;
    let edges = whole.list("edges", "the infrastructure")?;
    if edges.is_empty() {
        return Err(Odd::at(
            whole.line,
            "no edges: nothing is linked; add some, or fetch it again",
        ));
    }
    edges.iter().try_for_each(|edge| file.edge(edge))?;
    file.finish(name)
}

/// What a component may stand for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// An accelerator or a NIC: what only servers have.
    OfServer,
    /// A device within the device, of the same name.
    Device,
    Other,
}

struct Component<'a> {
    name: &'a str,
    count: u32,
    kind: Kind,
}

struct Instance<'a> {
    name: &'a str,
    device: &'a str,
    count: u32,
    is_server: bool,
}

/// A part of a box: instance and copy, then components and their copies.
type Path = Vec<u32>;

struct File<'a> {
    devices: BTreeMap<&'a str, Vec<Component<'a>>>,
    instances: Vec<Instance<'a>>,
    /// Rate and latency by name, with the line.
    links: BTreeMap<&'a str, (u64, &'a Tree)>,
    /// Each edge once, with its line.
    seen: BTreeSet<(Path, Path)>,
    wires: Vec<(u64, [Path; 2], Link)>,
    /// Links without latency that edges use.
    silent: BTreeSet<&'a str>,
    /// Where an edge has no partner for some parts of servers, in words.
    single: Vec<String>,
}

impl<'a> File<'a> {
    fn new(whole: &'a Tree) -> Result<File<'a>, Odd> {
        let mut devices = BTreeMap::new();
        for device in whole.list("devices", "the infrastructure")? {
            let name = device.word("name", "a device")?;
            let parts = device.list("components", "a device")?.iter().map(component);
            if devices.insert(name, parts.collect::<Result<Vec<_>, _>>()?).is_some() {
                let what = format!("device {} is there twice; rename one", quoted(name));
                return Err(Odd::at(device.line, what));
            }
        }
        let mut instances = Vec::new();
        for instance in whole.list("instances", "the infrastructure")? {
            let [name, device] =
                [instance.word("name", "an instance")?, instance.word("device", "an instance")?];
            let is_server = is_server(&devices, device, DEEPEST)
                .map_err(|what| Odd::at(instance.line, what))?;
            let count = instance.count("count", "an instance")?;
            if instances.iter().any(|known: &Instance<'_>| known.name == name) {
                let what = format!("instance {} is there twice; rename one", quoted(name));
                return Err(Odd::at(instance.line, what));
            }
            instances.push(Instance { name, device, count, is_server });
        }
        let mut links = BTreeMap::new();
        for link in whole.list("links", "the infrastructure")? {
            links.insert(link.word("name", "a link")?, (link.line, link));
        }
        let (seen, silent) = (BTreeSet::new(), BTreeSet::new());
        let (wires, single) = (Vec::new(), Vec::new());
        Ok(File { devices, instances, links, seen, wires, silent, single })
    }

    /// Takes in the links that one edge stands for.
    fn edge(&mut self, edge: &'a Tree) -> Result<(), Odd> {
        let name = edge.word("link", "an edge")?;
        let link = self.link(name, edge.line)?;
        let ends = [edge.need("ep1", "an edge")?, edge.need("ep2", "an edge")?];
        let [low, high] = [self.parts(ends[0])?, self.parts(ends[1])?];
        let scheme = edge.word("scheme", "an edge")?;
        let (longer, shorter) = if low.len() > high.len() { (&low, &high) } else { (&high, &low) };
        let of_server = self.instances[longer[0][0] as usize].is_server;
        if scheme == "one2one" && of_server && longer.len() != shorter.len() {
            let (line, longer, shorter) = (edge.line, longer.len(), shorter.len());
            self.single.push(format!("line {line} ({longer} with {shorter})"));
        }
        let count = match scheme {
            "one2one" => low.len().min(high.len()),
            "many2many" => low.len().saturating_mul(high.len()),
            other => {
                let what = format!("scheme {}; use one2one or many2many", quoted(other));
                return Err(Odd::at(edge.line, what));
            }
        };
        if self.wires.len().saturating_add(count) > MOST {
            return Err(Odd::at(edge.line, format!("more than {MOST} links; use a smaller file")));
        }
        let all = (0..count).map(|place| match scheme {
            "one2one" => (place, place),
            _ => (place / high.len(), place % high.len()),
        });
        for (a, b) in all {
            let pair = [low[a].clone(), high[b].clone()];
            let [first, last] = if pair[0] < pair[1] { [0, 1] } else { [1, 0] };
            let is_new = self.seen.insert((pair[first].clone(), pair[last].clone()));
            if pair[0] != pair[1] && is_new {
                self.wires.push((edge.line, pair, link));
            }
        }
        Ok(())
    }

    /// The rate and the latency of a link.
    fn link(&mut self, name: &'a str, line: u64) -> Result<Link, Odd> {
        let Some(&(own, link)) = self.links.get(name) else {
            let what = format!("link {} is not among the links; add it there", quoted(name));
            return Err(Odd::at(line, what));
        };
        let physical = link.get("physical");
        let number = |of: &str, units: &[&'static str]| -> Result<_, Odd> {
            let Some(tree) = physical.and_then(|physical| physical.get(of)) else {
                return Ok(None);
            };
            let chosen = tree.get("choice").map(|_| tree.word("choice", of)).transpose()?;
            let given = units.iter().find(|unit| match chosen {
                Some(choice) => **unit == choice,
                None => tree.get(unit).is_some(),
            });
            let Some(unit) = given else {
                let what =
                    format!("{of} of link {}; give one of {}", quoted(name), units.join(", "));
                return Err(Odd::at(tree.line, what));
            };
            Ok(Some((tree.line, *unit, tree.word(unit, of)?)))
        };
        let bandwidth = ["gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"];
        let Some((at, unit, value)) = number("bandwidth", &bandwidth)? else {
            let what = format!(
                "link {} says no bandwidth; add physical: {{bandwidth: {{gigabits_per_second: 400}}}}",
                quoted(name)
            );
            return Err(Odd::at(own, what));
        };
        let rate = match unit {
            "gigabits_per_second" => parse_rate(&format!("{value}Gbps")),
            "gigabytes_per_second" => match value.parse::<f64>() {
                Ok(bytes) => parse_rate(&format!("{}Gbps", 8.0 * bytes)),
                Err(_) => parse_rate(&format!("{value}Gbps")),
            },
            _ => {
                let what = format!(
                    "{unit} of link {}, which say nothing of bits; use gigabits_per_second",
                    quoted(name)
                );
                return Err(Odd::at(at, what));
            }
        };
        let rate = rate.map_err(|error| Odd::at(at, error))?;
        let delay = match number("latency", &["ms", "us", "ns"])? {
            None => {
                self.silent.insert(name);
                LATENCY
            }
            Some((at, unit, value)) => {
                let delay = parse_time(&format!("{value}{unit}"));
                let delay = delay.map_err(|error| Odd::at(at, error))?;
                if delay == Time::ZERO || delay > LONGEST {
                    let what = format!("a latency of {delay}; use more than 0, {LONGEST} at most");
                    return Err(Odd::at(at, what));
                }
                delay
            }
        };
        Ok(Link { rate, delay })
    }

    /// All parts that an end of an edge stands for, copies of boxes outermost.
    fn parts(&self, end: &Tree) -> Result<Vec<Path>, Odd> {
        let wrong = |what: String| Odd::at(end.line, what);
        let (name, slice) = split(end.word("instance", "an end of an edge")?).map_err(wrong)?;
        let at = self.instances.iter().position(|instance| instance.name == name);
        let Some(at) = at else {
            return Err(wrong(format!("{} is no instance; add it there", quoted(name))));
        };
        let instance = &self.instances[at];
        let mut paths: Vec<Path> = vec![vec![at as u32]];
        let mut spread = |step: Option<u32>, picked: Vec<u32>| {
            if paths.len().saturating_mul(picked.len()) > MOST {
                return Err(wrong(format!("more than {MOST} parts; use a smaller slice")));
            }
            let longer = |path: &Path, copy: &u32| {
                let mut path = path.clone();
                path.extend(step);
                path.push(*copy);
                path
            };
            let all = paths.iter().flat_map(|path| picked.iter().map(|copy| longer(path, copy)));
            paths = all.collect();
            Ok(())
        };
        spread(None, slice.of(instance.count, name).map_err(wrong)?)?;
        let mut device = instance.device;
        let mut found = false;
        for element in end.word("component", "an end of an edge")?.split('.') {
            let (name, slice) = split(element).map_err(wrong)?;
            let components = &self.devices[device];
            match components.iter().position(|component| component.name == name) {
                Some(place) => {
                    let component = &components[place];
                    let picked = slice.of(component.count, name).map_err(wrong)?;
                    spread(Some(place as u32), picked)?;
                    found = true;
                    if component.kind == Kind::Device {
                        device = name;
                    }
                }
                // The device itself may stand before its components.
                None if !found && self.devices.contains_key(name) => device = name,
                None => {
                    let what = format!("device {device} has no component {}", quoted(name));
                    return Err(wrong(format!("{what}; correct it")));
                }
            }
        }
        match found {
            true => Ok(paths),
            false => Err(wrong("an end of an edge without a component; add it".into())),
        }
    }

    /// Makes a network of all edges.
    fn finish(self, name: &str) -> Result<Infragraph, Odd> {
        // A host is the first component of a server on the way to what is linked, a switch a whole box.
        let node = |path: &Path| {
            let is_server = self.instances[path[0] as usize].is_server;
            (!is_server, path[..if is_server { 4 } else { 2 }].to_vec())
        };
        let ends = self.wires.iter().flat_map(|(_, pair, _)| pair.iter().map(node));
        let all: BTreeSet<(bool, Path)> = ends.collect();
        let numbers: BTreeMap<&(bool, Path), u32> = all.iter().zip(0..).collect();
        let names: Vec<String> = all.iter().map(|(_, path)| self.name(path)).collect();
        let role =
            |(is_switch, _): &(bool, Path)| if *is_switch { Role::Switch } else { Role::Host };
        let roles = all.iter().map(role).collect();
        let wire = |(line, pair, link): &(u64, [Path; 2], Link)| Wire {
            line: *line,
            ends: [numbers[&node(&pair[0])], numbers[&node(&pair[1])]],
            link: *link,
        };
        let wires = Wires { wires: self.wires.iter().map(wire).collect(), roles };
        check(&wires, &names)?;
        let (network, nodes) = network(name, &wires)?;
        let mut remarks = Vec::new();
        if !self.silent.is_empty() {
            let links = self.silent.iter().map(|name| quoted(name)).collect::<Vec<_>>();
            remarks.push(format!(
                "links without latency have {LATENCY}, as delay of [fabric] is: {}",
                links.join(", ")
            ));
        }
        if !self.single.is_empty() {
            remarks.push(format!(
                "one2one pairs as many as the shorter list has, so that parts of servers may have no link, and are \
                 not there: {}",
                self.single.join(", ")
            ));
        }
        Ok(Infragraph { network, nodes, names, remarks })
    }

    /// What a part is called: `host.0.nic.1`.
    fn name(&self, path: &[u32]) -> String {
        let instance = &self.instances[path[0] as usize];
        let mut name = format!("{}.{}", instance.name, path[1]);
        if let [_, _, component, copy] = path {
            let component = &self.devices[instance.device][*component as usize];
            name = format!("{name}.{}.{copy}", component.name);
        }
        name
    }
}

/// Whether hosts have one link each, to a switch, and switches none to themselves.
fn check(wires: &Wires, names: &[String]) -> Result<(), Odd> {
    let mut lines: Vec<Option<u64>> = vec![None; names.len()];
    for Wire { line, ends, .. } in &wires.wires {
        let [a, b] = ends.map(|end| names[end as usize].as_str());
        if ends[0] == ends[1] {
            return Err(Odd::at(*line, format!("{a} is linked to itself; remove the edge")));
        }
        if ends.iter().all(|end| !wires.is_switch(*end)) {
            let what =
                format!("{a} and {b} are linked without a switch; only switched networks are read");
            return Err(Odd::at(*line, what));
        }
        for end in ends.iter().filter(|end| !wires.is_switch(**end)) {
            if let Some(first) = lines[*end as usize].replace(*line) {
                let name = &names[*end as usize];
                let what = format!(
                    "{name} has another link on line {first}; only NICs with one link are read"
                );
                return Err(Odd::at(*line, what));
            }
        }
    }
    Ok(())
}

fn component(tree: &Tree) -> Result<Component<'_>, Odd> {
    let what = "a component";
    let kind = match tree.word("choice", what)? {
        "device" => Kind::Device,
        // Accelerators were called npu before.
        "xpu" | "npu" | "nic" => Kind::OfServer,
        _ => Kind::Other,
    };
    Ok(Component { name: tree.word("name", what)?, count: tree.count("count", what)?, kind })
}

/// Whether a device has what only servers have.
fn is_server(
    devices: &BTreeMap<&str, Vec<Component<'_>>>,
    name: &str,
    deeper: u32,
) -> Result<bool, String> {
    let Some(components) = devices.get(name) else {
        return Err(format!("{} is no device; add it there", quoted(name)));
    };
    if deeper == 0 {
        return Err(format!(
            "devices within {} more than {DEEPEST} deep; simplify it",
            quoted(name)
        ));
    }
    let mut found = false;
    for component in components {
        found |= match component.kind {
            Kind::OfServer => true,
            Kind::Device => is_server(devices, component.name, deeper - 1)?,
            Kind::Other => false,
        };
    }
    Ok(found)
}

/// What brackets say: first, end and step.
struct Slice<'a> {
    text: &'a str,
    parts: Option<(Option<u32>, Option<u32>, u32)>,
}

/// The name before the brackets, and what is in them.
fn split(text: &str) -> Result<(&str, Slice<'_>), String> {
    let odd = || format!("{} is no name with a slice, such as nic[0:2]; correct it", quoted(text));
    let Some((name, rest)) = text.split_once('[') else {
        return Ok((text, Slice { text, parts: None }));
    };
    let inside = rest.strip_suffix(']').ok_or_else(odd)?;
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse::<u32>().map(Some).map_err(|_| odd()),
    };
    let parts = match inside.split(':').collect::<Vec<_>>()[..] {
        [one] => {
            let one = number(one)?.ok_or_else(odd)?;
            (Some(one), one.checked_add(1), 1)
        }
        [first, end] => (number(first)?, number(end)?, 1),
        [first, end, step] => (number(first)?, number(end)?, number(step)?.unwrap_or(1)),
        _ => return Err(odd()),
    };
    if parts.2 == 0 {
        return Err(odd());
    }
    Ok((name, Slice { text, parts: Some(parts) }))
}

impl Slice<'_> {
    /// Which of `count` copies of `name` it picks.
    fn of(&self, count: u32, name: &str) -> Result<Vec<u32>, String> {
        let (first, end, step) = self.parts.unwrap_or((None, None, 1));
        let (first, end) = (first.unwrap_or(0), end.unwrap_or(count));
        if end > count || first >= end {
            return Err(format!(
                "{}, but there are {count} of {}; correct one of them",
                quoted(self.text),
                quoted(name)
            ));
        }
        if ((end - first) / step) as usize > MOST {
            return Err(format!("{} is more than {MOST}; use a smaller slice", quoted(self.text)));
        }
        Ok((first..end).step_by(step as usize).collect())
    }
}
