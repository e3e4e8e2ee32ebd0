//! Which links a failure hits: some links or whole switches of every group of a tier, or links
//! or switches by name. A switch that fails is all of its links that fail.
//!
//! Invariant: the same choice under the same seed is the same ports on every machine, and what
//! one group draws does not depend on which other groups are there.

use crate::{Fabric, FabricError, Node, Port, PortGroup, Shape};
use weft_units::id::Id;
use weft_units::{Draw, HostId, PortId, Stream, SwitchId};

/// Between which switches the links lie, or which switches fail as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Links from leaf to spine, or from leaf to aggregation switch; a group is a leaf.
    LeafUp,
    /// Links from aggregation switch to core, where Ethereal (2025) says spine-core; a group is a pod.
    PodUp,
    /// Whole leaves, with the links of their hosts; a group is a pod, and a leaf-spine is one.
    Leaves,
    /// Whole spines, or aggregation switches; a group is a pod, and a leaf-spine is one.
    Spines,
    /// Whole cores; all together are the only group, which cannot be listed.
    Cores,
}

/// In which groups links or switches fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Groups {
    /// In every leaf or pod.
    All,
    /// In the leaves or pods of these numbers; their order and repetitions do not matter.
    Listed(Vec<u32>),
}

/// Which links or switches of a group fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Drawn by the seed. A smaller count takes part of what a larger one takes.
    Random,
    /// The first in the order of ports: switch by switch, upper switch by upper switch.
    First,
}

/// Which directions of a link fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Both directions.
    Both,
    /// From the lower to the upper switch.
    Up,
    /// From the upper to the lower switch.
    Down,
}

/// Links of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChoice {
    /// `count` links, or switches, of each group: the study's failures (McClure et al. 2025, section 4).
    /// Its own simulator takes the first few links of the cores into one pod: [`Tier::PodUp`],
    /// group 0, [`Pick::First`], [`Direction::Down`].
    Of {
        /// Between which switches, or which switches.
        tier: Tier,
        /// How many of each group, at least one. Members of a bundle count one by one.
        count: u32,
        /// In which groups.
        groups: Groups,
        /// Which of a group.
        pick: Pick,
        /// Which directions of each link fail.
        direction: Direction,
        /// In which plane; `None`: in each of them.
        plane: Option<u32>,
    },
    /// All links of these planes, in both directions, those of NICs included.
    Planes(Vec<u32>),
    /// Links by name, one direction as [`Fabric::port_name`] writes it (`leaf-0 -> spine-1`,
    /// `pod-0-agg-1 -> core-2#1`), both directions with `<->`.
    Named(Vec<String>),
    /// All links of the switches of these names, in both directions, those to hosts included.
    Switches(Vec<String>),
}

impl LinkChoice {
    /// Whether switches are chosen, and links because they are theirs.
    pub fn is_of_switches(&self) -> bool {
        match self {
            LinkChoice::Of { tier, .. } => tier.is_of_switches(),
            LinkChoice::Named(_) => false,
            LinkChoice::Switches(_) | LinkChoice::Planes(_) => true,
        }
    }

    /// The ports that feed these links, sorted, none twice.
    ///
    /// # Errors
    /// With one line that says what is wrong and what there is: no such tier, group, switch or
    /// link, or fewer links or switches than asked for.
    pub fn resolve(&self, fabric: &Fabric, seed: u64) -> Result<Vec<PortId>, FabricError> {
        let mut ports = Vec::new();
        match self {
            LinkChoice::Of { tier, count, groups, pick, direction, plane } => {
                let all = fabric.planes();
                if let Some(plane) = plane.filter(|plane| *plane >= all) {
                    let what = format!("there is no plane {plane}: use 0 to {}", all - 1);
                    return Err(FabricError(what));
                }
                let planes = plane.map_or(0..all, |one| one..one + 1);
                let groups = tier.groups(fabric, groups)?;
                for (plane, group) in
                    planes.flat_map(|one| groups.iter().map(move |group| (one, *group)))
                {
                    let units = tier.units(fabric, plane, group);
                    tier.check(fabric, group, *count, units.len())?;
                    let random = Draw::new(seed, tier.purpose());
                    let random = random.stream(u64::from(plane) << 32 | u64::from(group));
                    for up in pick.take(units, *count, random).into_iter().flatten() {
                        direction.push(fabric, up, &mut ports);
                    }
                }
            }
            LinkChoice::Named(names) if names.is_empty() => {
                return Err(FabricError("no link is named: name at least one".into()));
            }
            LinkChoice::Named(names) => {
                for name in names {
                    push_named(fabric, name, &mut ports)?;
                }
            }
            LinkChoice::Planes(planes) => {
                let all = fabric.planes();
                if let Some(plane) = planes.iter().find(|plane| **plane >= all) {
                    let what = format!("there is no plane {plane}: use 0 to {}", all - 1);
                    return Err(FabricError(what));
                }
                for plane in planes {
                    let switches = fabric.switches_of_plane(*plane);
                    let all = switches.flat_map(|switch| links_of(fabric, switch));
                    all.for_each(|up| Direction::Both.push(fabric, up, &mut ports));
                }
            }
            LinkChoice::Switches(names) if names.is_empty() => {
                return Err(FabricError("no switch is named: name at least one".into()));
            }
            LinkChoice::Switches(names) => {
                for name in names {
                    for up in links_of(fabric, switch(fabric, name)?) {
                        Direction::Both.push(fabric, up, &mut ports);
                    }
                }
            }
        }
        ports.sort_unstable();
        ports.dedup();
        Ok(ports)
    }
}

impl Tier {
    fn is_of_switches(self) -> bool {
        !matches!(self, Tier::LeafUp | Tier::PodUp)
    }

    /// What a group is called.
    fn group_name(self) -> &'static str {
        match self {
            Tier::LeafUp => "leaf",
            _ => "pod",
        }
    }

    /// What fails, if there are several.
    fn unit_name(self, fabric: &Fabric) -> &'static str {
        match self {
            Tier::LeafUp | Tier::PodUp => "links",
            Tier::Leaves => "leaves",
            Tier::Spines if fabric.tiers() == 3 => "aggregation switches",
            Tier::Spines if fabric.tiers() == 0 => "switches without hosts",
            Tier::Spines => "spines",
            Tier::Cores => "cores",
        }
    }

    /// What the draws are called.
    fn purpose(self) -> &'static str {
        match self {
            Tier::LeafUp => "failed-leaf-links",
            Tier::PodUp => "failed-pod-links",
            Tier::Leaves => "failed-leaves",
            Tier::Spines => "failed-spines",
            Tier::Cores => "failed-cores",
        }
    }

    /// Whether `count` can fail of all that are in `group`.
    fn check(self, fabric: &Fabric, group: u32, count: u32, all: usize) -> Result<(), FabricError> {
        if (1..=all).contains(&(count as usize)) {
            return Ok(());
        }
        let what = self.unit_name(fabric);
        let place = match self {
            Tier::LeafUp | Tier::PodUp => {
                format!("in {} {group}, which has {all} up", self.group_name())
            }
            Tier::Leaves | Tier::Spines if fabric.pods() > 1 || fabric.tiers() == 3 => {
                format!("in pod {group}, which has {all}")
            }
            _ => format!("in a fabric of {all}"),
        };
        Err(FabricError(match all {
            0 => format!("there are no {what} here: choose another tier"),
            _ => format!("{count} {what} cannot fail {place}: use 1 to {all}"),
        }))
    }

    /// The numbers of the chosen groups, sorted.
    fn groups(self, fabric: &Fabric, groups: &Groups) -> Result<Vec<u32>, FabricError> {
        let count = self.count_groups(fabric)?;
        let Groups::Listed(list) = groups else { return Ok((0..count).collect()) };
        if self == Tier::Cores {
            return Err(FabricError("cores stand in no pod: list none".into()));
        }
        let name = self.group_name();
        if let Some(group) = list.iter().find(|group| **group >= count) {
            let last = count - 1;
            return Err(FabricError(format!("there is no {name} {group}: use 0 to {last}")));
        }
        if list.is_empty() {
            return Err(FabricError(format!("no {name} is listed: list at least one")));
        }
        let mut list = list.clone();
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }

    fn count_groups(self, fabric: &Fabric) -> Result<u32, FabricError> {
        match self {
            Tier::PodUp if fabric.tiers() == 2 => Err(FabricError(
                "a fabric of two tiers has no links from pods to cores: choose links from \
                 leaves to spines"
                    .into(),
            )),
            Tier::PodUp if fabric.pods() == 1 => Err(FabricError(
                "the fabric has one group, and no links to others: choose links of leaves".into(),
            )),
            Tier::Cores if fabric.tiers() < 3 => {
                Err(FabricError("a fabric of two tiers has no cores: choose spines".into()))
            }
            Tier::LeafUp => Ok(fabric.leaves() * fabric.homes()),
            Tier::Cores => Ok(1),
            _ => Ok(fabric.pods()),
        }
    }

    /// What may fail in one group, each as the ports up of its links.
    fn units(self, fabric: &Fabric, plane: u32, group: u32) -> Vec<Vec<PortId>> {
        let first = plane * fabric.switches_per_plane();
        let switches = self.switches(fabric, group).map(|switch| SwitchId(first + switch.0));
        if self.is_of_switches() {
            switches.map(|switch| links_of(fabric, switch)).collect()
        } else {
            let leaves = |up: &PortId| self != Tier::PodUp || leaves_pod(fabric, *up);
            let ups = switches.flat_map(|switch| ups(fabric, switch).ids()).filter(leaves);
            ups.map(|up| vec![up]).collect()
        }
    }

    /// The switches of one group that fail, or whose links up fail.
    fn switches(self, fabric: &Fabric, group: u32) -> std::vec::IntoIter<SwitchId> {
        let clos = match fabric.shape() {
            Shape::Clos(clos) => clos,
            Shape::Wiring(wiring) => {
                let is_one = |switch: &SwitchId| match self {
                    Tier::LeafUp => switch.0 == group,
                    Tier::PodUp | Tier::Cores => wiring.groups[switch.index()] == group,
                    Tier::Leaves | Tier::Spines => {
                        let is_leaf = fabric.tier(*switch) == 0;
                        wiring.groups[switch.index()] == group && is_leaf == (self == Tier::Leaves)
                    }
                };
                let all = (0..fabric.switches()).map(SwitchId).filter(is_one);
                return all.collect::<Vec<_>>().into_iter();
            }
        };
        let (leaves, mids) = (clos.leaves_per_pod(), clos.mids_per_pod());
        let above = fabric.leaves() + clos.pods() * mids;
        let (first, count) = match self {
            Tier::LeafUp => (group, 1),
            Tier::Leaves => (group * leaves, leaves),
            Tier::PodUp | Tier::Spines => (fabric.leaves() + group * mids, mids),
            Tier::Cores => (above, clos.cores()),
        };
        (first..first + count).map(SwitchId).collect::<Vec<_>>().into_iter()
    }
}

/// The ports of `switch` to the tier above it, or to other switches.
fn ups(fabric: &Fabric, switch: SwitchId) -> PortGroup {
    let (all, count) = (fabric.ports_of(switch), fabric.uplinks(switch));
    PortGroup { first: PortId(all.first.0 + all.count - count), count }
}

/// Whether the link of a port leads out of its pod, or group of switches.
fn leaves_pod(fabric: &Fabric, port: PortId) -> bool {
    let Port { owner: Node::Switch(from), peer: Node::Switch(to), .. } = fabric.ports()[port]
    else {
        return false;
    };
    match fabric.shape() {
        Shape::Clos(_) => fabric.tier(to) > 1,
        Shape::Wiring(wiring) => wiring.groups[from.index()] != wiring.groups[to.index()],
    }
}

/// All links of `switch`, each as its port up.
fn links_of(fabric: &Fabric, switch: SwitchId) -> Vec<PortId> {
    let first_up = ups(fabric, switch).first;
    let up = |port: PortId| if port < first_up { fabric.ports()[port].reverse } else { port };
    fabric.ports_of(switch).ids().map(up).collect()
}

impl Pick {
    /// `count` of `units`, which are those of one group.
    fn take<T>(self, mut units: Vec<T>, count: u32, mut random: Stream) -> Vec<T> {
        if self == Pick::Random {
            random.shuffle(&mut units);
        }
        units.truncate(count as usize);
        units
    }
}

impl Direction {
    fn push(self, fabric: &Fabric, up: PortId, ports: &mut Vec<PortId>) {
        if self != Direction::Down {
            ports.push(up);
        }
        if self != Direction::Up {
            ports.push(fabric.ports()[up].reverse);
        }
    }
}

fn push_named(fabric: &Fabric, name: &str, ports: &mut Vec<PortId>) -> Result<(), FabricError> {
    let both = name.split_once("<->");
    let Some((from, to)) = both.or_else(|| name.split_once("->")) else {
        return Err(FabricError(format!(
            "\"{name}\" is not a link: write \"leaf-0 -> spine-1\", or <-> for both directions"
        )));
    };
    let (to, member) = to.split_once('#').unwrap_or((to, "0"));
    let (from, to) = (node(fabric, from.trim(), name)?, node(fabric, to.trim(), name)?);
    let bundle: Vec<PortId> =
        outputs(fabric, from).filter(|port| fabric.ports()[*port].peer == to).collect();
    if bundle.is_empty() {
        return Err(FabricError(not_neighbours(fabric, from, to)));
    }
    let port = member.trim().parse().ok().and_then(|member: usize| bundle.get(member));
    let Some(&port) = port else {
        let last = bundle.len() - 1;
        return Err(FabricError(format!(
            "\"{name}\" names a parallel link that is not there: use #0 to #{last}"
        )));
    };
    ports.push(port);
    if both.is_some() {
        ports.push(fabric.ports()[port].reverse);
    }
    Ok(())
}

fn outputs(fabric: &Fabric, node: Node) -> impl Iterator<Item = PortId> + use<> {
    let group = match node {
        Node::Host(host) => {
            let nics = (0..fabric.nic_ports()).map(|port| fabric.nic_in_plane(host, port));
            return nics.collect::<Vec<_>>().into_iter();
        }
        Node::Switch(switch) => fabric.ports_of(switch),
    };
    group.ids().collect::<Vec<_>>().into_iter()
}

fn nodes(fabric: &Fabric) -> impl Iterator<Item = Node> + use<> {
    let switches = (0..fabric.switches()).map(|id| Node::Switch(SwitchId(id)));
    switches.chain((0..fabric.hosts()).map(|id| Node::Host(HostId(id))))
}

fn node(fabric: &Fabric, text: &str, link: &str) -> Result<Node, FabricError> {
    if let Some(node) = nodes(fabric).find(|node| fabric.name(*node) == text) {
        return Ok(node);
    }
    let nearest = nearest(text, nodes(fabric).map(|node| fabric.name(node)));
    Err(FabricError(format!(
        "\"{link}\" names \"{text}\", which is not in the fabric: did you mean \"{nearest}\"?"
    )))
}

fn switch(fabric: &Fabric, text: &str) -> Result<SwitchId, FabricError> {
    let names = (0..fabric.switches()).map(|id| fabric.name(Node::Switch(SwitchId(id))));
    fabric.switch_named(text).ok_or_else(|| {
        let nearest = nearest(text, names);
        FabricError(format!(
            "\"{text}\" is not a switch of the fabric: did you mean \"{nearest}\"?"
        ))
    })
}

/// The first of those that are most like `text`, so that the answer depends on nothing else.
fn nearest(text: &str, names: impl Iterator<Item = String>) -> String {
    // A plane that was left out is the likeliest mistake.
    let distance = |name: &String| match name.strip_prefix("plane-0-") {
        Some(rest) if rest == text => 0,
        _ => strsim::damerau_levenshtein(text, name),
    };
    names.min_by_key(distance).unwrap_or_default()
}

fn not_neighbours(fabric: &Fabric, from: Node, to: Node) -> String {
    let mut peers: Vec<String> =
        outputs(fabric, from).map(|port| fabric.name(fabric.ports()[port].peer)).collect();
    peers.dedup();
    const SHOWN: usize = 4;
    if peers.len() > SHOWN {
        peers.truncate(SHOWN);
        peers.push("...".into());
    }
    let (from, to, peers) = (fabric.name(from), fabric.name(to), peers.join(", "));
    format!("{from} has no link to {to}: it has links to {peers}")
}
