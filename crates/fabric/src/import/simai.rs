//! Topology files of SimAI's ns-3 backend.
//!
//! The first line counts nodes, GPUs of a server, NVSwitches, other switches and links, and names the kind of GPU; newer
//! files add GPUs of a node, on which no link depends. Then come the numbers of the NVSwitches, those of the other
//! switches, and a link on each line as in [`super::ns3`]. What is no switch is a GPU, numbered from 0; so many of them in
//! a row are a server, and share its NVSwitches.
//!
//! Links to NVSwitches are inside a server and become a [`ScaleUp`]. The others are the network. Its hosts are the GPUs,
//! as each has a NIC of its own.

use super::ns3::{self, Header};
use super::planes::{Planes, planes};
use super::recognise::{Network, Role, Wire, Wires, network};
use super::{Odd, unmarked};
use crate::{FabricError, Link, Node, ScaleUp};
use std::collections::BTreeMap;
use weft_units::{Rate, Time};

/// The network of a file, and the servers on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Simai {
    /// The network between GPUs, without latency in boxes and without NVSwitches.
    pub network: Network,
    /// So many of that network side by side: each GPU has a port in each.
    pub planes: u32,
    /// GPUs of a server: the first so many, the next ones, ...
    pub gpus: u32,
    /// From a GPU to the others of its server, over all NVSwitches together; `None` where servers have one GPU.
    pub scale_up: Option<ScaleUp>,
    /// What each node is here: GPUs in the order of their numbers, which are SimAI's ranks, then switches. NVSwitches and
    /// switches without a link are not among them.
    pub nodes: Vec<Node>,
    /// The number of each of them in the file.
    pub names: Vec<String>,
    /// What the user should know.
    pub remarks: Vec<String>,
}

/// Whether `first` is the first line of one of these: its sixth word is no number.
pub(super) fn is_one(first: &str) -> bool {
    let kind = first.split_ascii_whitespace().nth(5);
    kind.is_some_and(|kind| kind.parse::<u32>().is_err())
}

/// Reads a file; `name` stands in errors.
///
/// # Errors
/// If the text does not follow the grammar, if NVSwitches do not connect the GPUs of each server and of no two, all
/// alike, and if the rest is no network: see [`super::ns3::read_graph`].
pub fn read(name: &str, text: &str) -> Result<Simai, FabricError> {
    parse(name, unmarked(text)).map_err(|odd| odd.of(name))
}

fn parse(name: &str, text: &str) -> Result<Simai, Odd> {
    let ((line, words), mut lines) = ns3::lines(text)?;
    let head = Head::parse(line, &words)?;
    let switches = head.counts.switches(&mut lines)?;
    let all = head.counts.wires(lines)?;
    let mut roles = head.roles(&switches)?;
    let is_nvswitch = |node: &u32| roles[*node as usize] == Role::Apart;
    let (inside, wires): (Vec<Wire>, Vec<Wire>) =
        all.into_iter().partition(|wire| wire.ends.iter().any(is_nvswitch));
    let scale_up = head.scale_up(&roles, &inside)?;
    let remarks = drop_idle(&mut roles, &wires);
    let wires = Wires { roles, wires };
    let (network, planes, nodes) = match planes(&wires) {
        Some(Planes { clos, planes, nodes }) => (Network::Clos(clos), planes, nodes),
        None => {
            let (network, nodes) = network(name, &wires)?;
            (network, 1, nodes)
        }
    };
    let here = nodes.into_iter().enumerate().filter(|(node, _)| wires.roles[*node] != Role::Apart);
    let (names, nodes) = here.map(|(node, is)| (node.to_string(), is)).unzip();
    Ok(Simai { network, planes, gpus: head.gpus, scale_up, nodes, names, remarks })
}

/// Takes switches without a link for no part of the network, and says so.
fn drop_idle(roles: &mut [Role], wires: &[Wire]) -> Vec<String> {
    let mut idle: Vec<bool> = roles.iter().map(|role| *role == Role::Switch).collect();
    for end in wires.iter().flat_map(|wire| wire.ends) {
        idle[end as usize] = false;
    }
    let Some(first) = idle.iter().position(|idle| *idle) else { return Vec::new() };
    let count = idle.iter().filter(|idle| **idle).count();
    for (role, _) in roles.iter_mut().zip(idle).filter(|(_, idle)| *idle) {
        *role = Role::Apart;
    }
    vec![format!("switches without a link are left out: {count}, of which {first} is the first")]
}

/// The first line.
struct Head {
    /// GPUs of a server.
    gpus: u32,
    nvswitches: u32,
    /// Of all switches.
    counts: Header,
}

impl Head {
    fn parse(line: u64, words: &[&str]) -> Result<Head, Odd> {
        let number = |word: &&str| word.parse::<u32>().ok();
        let counts = words.iter().take(5).map(number).collect::<Option<Vec<u32>>>();
        let is_long =
            matches!(words.len(), 6 | 7) && words.iter().skip(6).all(|word| number(word).is_some());
        let Some([nodes, gpus, nvswitches, switches, links]) =
            counts.as_deref().filter(|_| is_long)
        else {
            let what = "SimAI's first line counts nodes, GPUs of a server, NVSwitches, switches and links, and names \
                        the GPU, such as '34 8 2 16 96 H20'; correct it";
            return Err(Odd::at(line, what));
        };
        let all = nvswitches.saturating_add(*switches);
        let counts = Header { line, nodes: *nodes, switches: all, links: *links };
        let head = Head { gpus: *gpus, nvswitches: *nvswitches, counts };
        head.check().map_err(|what| Odd::at(line, what))?;
        Ok(head)
    }

    fn check(&self) -> Result<(), String> {
        let Head { gpus, nvswitches, counts: Header { nodes, switches, .. } } = self;
        if switches >= nodes {
            return Err(format!(
                "{nodes} nodes with {switches} switches among them; a fabric has switches and GPUs"
            ));
        }
        let all = nodes - switches;
        if *gpus == 0 || !all.is_multiple_of(*gpus) {
            return Err(format!(
                "{all} GPUs are no whole number of servers of {gpus}; correct the counts"
            ));
        }
        if *nvswitches == 0 && *gpus > 1 {
            return Err(format!(
                "servers of {gpus} GPUs, and no NVSwitch that connects them; add some, or use 1 GPU a server"
            ));
        }
        if nvswitches == switches {
            return Err(
                "no switches but NVSwitches, so that there is no network between servers; write topology with its \
                 counts instead of file, and what is within a server as gpus and scale_up of [fabric.server]"
                    .into(),
            );
        }
        Ok(())
    }

    /// What each node is, by the numbers of all switches; NVSwitches come first.
    fn roles(&self, switches: &[u32]) -> Result<Vec<Role>, Odd> {
        let all = self.counts.nodes - self.counts.switches;
        if let Some(low) = switches.iter().find(|switch| **switch < all) {
            let what = format!(
                "switch {low} has a number of a GPU: these are 0 to {}; give switches the numbers behind them",
                all - 1
            );
            return Err(Odd::whole(what));
        }
        let mut roles = vec![Role::Host; self.counts.nodes as usize];
        for (place, switch) in (0..).zip(switches) {
            let is_nvswitch = place < self.nvswitches;
            roles[*switch as usize] = if is_nvswitch { Role::Apart } else { Role::Switch };
        }
        Ok(roles)
    }

    /// What the links to NVSwitches are together, if they connect the GPUs of each server and are all alike.
    fn scale_up(&self, roles: &[Role], inside: &[Wire]) -> Result<Option<ScaleUp>, Odd> {
        let mut servers: BTreeMap<u32, (u32, &Wire)> = BTreeMap::new();
        let all = (self.counts.nodes - self.counts.switches) as usize;
        let mut nvswitches: Vec<Vec<u32>> = vec![Vec::new(); all];
        for wire in inside {
            let [gpu, nvswitch] = gpu_first(roles, wire)?;
            same_link(&inside[0], wire)?;
            let (other, first) = *servers.entry(nvswitch).or_insert((gpu, wire));
            if other / self.gpus != gpu / self.gpus {
                let what = format!(
                    "GPUs {other} (line {}) and {gpu} share NVSwitch {nvswitch}, but are in different servers of {} GPUs \
                     (line {}); correct a line or the count",
                    first.line, self.gpus, self.counts.line
                );
                return Err(Odd::at(wire.line, what));
            }
            nvswitches[gpu as usize].push(nvswitch);
        }
        nvswitches.iter_mut().for_each(|of_gpu| of_gpu.sort_unstable());
        self.check_servers(&nvswitches)?;
        let many = nvswitches[0].len() as u64;
        let scale_up = |Link { rate, delay }: Link| ScaleUp {
            rate: Rate::bps(rate.as_bps().saturating_mul(many)),
            // To the NVSwitch and from there.
            latency: delay + delay,
            cycle: Time::ZERO,
        };
        Ok(inside.first().filter(|_| self.gpus > 1).map(|wire| scale_up(wire.link)))
    }

    /// Whether the GPUs of each server are at the same NVSwitches, and all GPUs have as many links there.
    fn check_servers(&self, nvswitches: &[Vec<u32>]) -> Result<(), Odd> {
        for (gpu, of_gpu) in nvswitches.iter().enumerate() {
            let first = gpu - gpu % self.gpus as usize;
            let (have, most) = (of_gpu.len(), nvswitches[0].len());
            let what = if have != most || have == 0 && self.gpus > 1 {
                format!(
                    "GPU {gpu} has {have} links to NVSwitches, and GPU 0 has {most}; give all as many, at least one"
                )
            } else if *of_gpu != nvswitches[first] {
                format!(
                    "GPUs {first} and {gpu} are in one server of {} GPUs, but at other NVSwitches; correct this count, \
                     or their links",
                    self.gpus
                )
            } else {
                continue;
            };
            return Err(Odd::at(self.counts.line, what));
        }
        Ok(())
    }
}

/// The ends of a link to an NVSwitch, of which the other one has to be a GPU.
fn gpu_first(roles: &[Role], wire: &Wire) -> Result<[u32; 2], Odd> {
    let [a, b] = wire.ends;
    match [a, b].map(|end| roles[end as usize]) {
        [Role::Host, _] => Ok([a, b]),
        [_, Role::Host] => Ok([b, a]),
        [first, _] => {
            let (nvswitch, other) = if first == Role::Apart { (a, b) } else { (b, a) };
            let what = format!(
                "NVSwitch {nvswitch} is linked to switch {other}; NVSwitches connect the GPUs of a server and nothing else"
            );
            Err(Odd::at(wire.line, what))
        }
    }
}

fn same_link(first: &Wire, wire: &Wire) -> Result<(), Odd> {
    if first.link == wire.link {
        return Ok(());
    }
    let show = |Link { rate, delay }: Link| format!("{rate} and {delay}");
    let what = format!(
        "{}, but {} on line {}; links to NVSwitches have one rate and delay",
        show(wire.link),
        show(first.link),
        first.line
    );
    Err(Odd::at(wire.line, what))
}
