//! Which links a failure hits: some links of every group of a tier, or links by name.
//!
//! Invariant: the same choice under the same seed is the same ports on every machine, and what
//! one group draws does not depend on which other groups are there.

use crate::{Fabric, FabricError, Node, PortGroup};
use weft_units::{Draw, HostId, PortId, SwitchId};

/// Between which switches the links lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Leaf to spine, or leaf to aggregation switch; a group is a leaf.
    LeafUp,
    /// Aggregation switch to core; a group is a pod.
    PodUp,
}

/// In which groups links fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Groups {
    /// In every leaf or pod.
    All,
    /// In the leaves or pods of these numbers; their order and repetitions do not matter.
    Listed(Vec<u32>),
}

/// Which links of a group fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Drawn by the seed. A smaller count takes part of what a larger one takes.
    Random,
    /// The first in port order: switch by switch, upper switch by upper switch.
    First,
}

/// Which directions of a link fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Both.
    Both,
    /// From the lower to the upper switch.
    Up,
    /// From the upper to the lower switch.
    Down,
}

/// Links of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChoice {
    /// `count` links of each group: the study's failures (paper 002, section 4). Its own
    /// simulator takes the first few links of the cores into one pod: [`Tier::PodUp`], group 0,
    /// [`Pick::First`], [`Direction::Down`].
    Of {
        /// Between which switches.
        tier: Tier,
        /// How many of each group, at least one. Members of a bundle count one by one.
        count: u32,
        /// In which groups.
        groups: Groups,
        /// Which of a group.
        pick: Pick,
        /// Which directions.
        direction: Direction,
    },
    /// Links by name, one direction as [`Fabric::port_name`] writes it (`leaf-0 -> spine-1`,
    /// `pod-0-agg-1 -> core-2#1`), both directions with `<->`.
    Named(Vec<String>),
}

impl LinkChoice {
    /// The ports that feed these links, sorted, none twice.
    ///
    /// # Errors
    /// With one line that says what is wrong and what there is: no such tier, group, switch or
    /// link, or fewer links than asked for.
    pub fn resolve(&self, fabric: &Fabric, seed: u64) -> Result<Vec<PortId>, FabricError> {
        let mut ports = Vec::new();
        match self {
            LinkChoice::Of { tier, count, groups, pick, direction } => {
                for group in tier.groups(fabric, groups)? {
                    let links = tier.links(fabric, group);
                    for up in pick.take(links, *count, *tier, group, seed)? {
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
        }
        ports.sort_unstable();
        ports.dedup();
        Ok(ports)
    }
}

impl Tier {
    /// What a group is called.
    fn group_name(self) -> &'static str {
        match self {
            Tier::LeafUp => "leaf",
            Tier::PodUp => "pod",
        }
    }

    /// The numbers of the chosen groups, sorted.
    fn groups(self, fabric: &Fabric, groups: &Groups) -> Result<Vec<u32>, FabricError> {
        let clos = fabric.clos();
        if self == Tier::PodUp && clos.cores() == 0 {
            return Err(FabricError(
                "a fabric of two tiers has no links from pods to cores: choose links from \
                 leaves to spines"
                    .into(),
            ));
        }
        let count = match self {
            Tier::LeafUp => fabric.leaves(),
            Tier::PodUp => clos.pods(),
        };
        let Groups::Listed(list) = groups else { return Ok((0..count).collect()) };
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

    /// The ports up of one group.
    fn links(self, fabric: &Fabric, group: u32) -> Vec<PortId> {
        let mids = fabric.clos().mids_per_pod();
        match self {
            Tier::LeafUp => ups(fabric, SwitchId(group)).ids().collect(),
            Tier::PodUp => {
                let first = fabric.leaves() + group * mids;
                (first..first + mids).flat_map(|mid| ups(fabric, SwitchId(mid)).ids()).collect()
            }
        }
    }
}

/// The ports of `switch` to the tier above it.
fn ups(fabric: &Fabric, switch: SwitchId) -> PortGroup {
    let all = fabric.ports_of(switch);
    let down = |port: &PortId| match fabric.ports()[*port].peer {
        Node::Host(_) => true,
        Node::Switch(peer) => fabric.tier(peer) < fabric.tier(switch),
    };
    let downs = all.ids().take_while(down).count() as u32;
    PortGroup { first: PortId(all.first.0 + downs), count: all.count - downs }
}

impl Pick {
    fn take(
        self,
        mut links: Vec<PortId>,
        count: u32,
        tier: Tier,
        group: u32,
        seed: u64,
    ) -> Result<Vec<PortId>, FabricError> {
        let (name, all) = (tier.group_name(), links.len());
        if count == 0 || count as usize > all {
            return Err(FabricError(format!(
                "{count} links cannot fail in {name} {group}, which has {all} up: use 1 to {all}"
            )));
        }
        if self == Pick::Random {
            let purpose = match tier {
                Tier::LeafUp => "failed-leaf-links",
                Tier::PodUp => "failed-pod-links",
            };
            Draw::new(seed, purpose).stream(u64::from(group)).shuffle(&mut links);
        }
        links.truncate(count as usize);
        Ok(links)
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
        Node::Host(host) => PortGroup { first: fabric.nic(host), count: 1 },
        Node::Switch(switch) => fabric.ports_of(switch),
    };
    group.ids()
}

fn nodes(fabric: &Fabric) -> impl Iterator<Item = Node> + use<> {
    let switches = (0..fabric.switches()).map(|id| Node::Switch(SwitchId(id)));
    switches.chain((0..fabric.hosts()).map(|id| Node::Host(HostId(id))))
}

fn node(fabric: &Fabric, text: &str, link: &str) -> Result<Node, FabricError> {
    if let Some(node) = nodes(fabric).find(|node| fabric.name(*node) == text) {
        return Ok(node);
    }
    let names = nodes(fabric).map(|node| fabric.name(node));
    // The first of equals, so that the answer does not depend on anything else.
    let nearest =
        names.min_by_key(|name| strsim::damerau_levenshtein(text, name)).unwrap_or_default();
    Err(FabricError(format!(
        "\"{link}\" names \"{text}\", which is not in the fabric: did you mean \"{nearest}\"?"
    )))
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
