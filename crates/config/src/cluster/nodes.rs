//! The hosts, switches and links of a cluster, named. What there is, and in which order, is
//! [`crate::fabric_links`]; what it is called is [`crate::cluster::naming`]'s.

use crate::cluster::check::{self, At, Written};
use crate::cluster::naming::Names;
use crate::cluster::pattern::Values;
use crate::cluster::{Host, Link, State, Switch};
use crate::{ExperimentError, FabricLinks, LinkRow, LinkState, SwitchRow};
use rustc_hash::FxHashMap;
use std::net::Ipv4Addr;

type Result<T> = std::result::Result<T, ExperimentError>;

/// Hosts, switches and links of a fabric, called as `names` says.
pub(super) fn build(
    found: &FabricLinks,
    names: &Names<'_>,
) -> Result<(Vec<Host>, Vec<Switch>, Vec<Link>)> {
    let nodes = Nodes::new(found, names);
    let hosts = (0..found.fabric.hosts()).map(|number| nodes.host(number));
    let hosts = hosts.collect::<Result<Vec<_>>>()?;
    let switches = nodes.found.switches.iter().zip(0..).map(|(row, at)| nodes.switch(row, at));
    let switches = switches.collect::<Result<Vec<_>>>()?;
    let links = nodes.links(&hosts, &switches)?;
    Ok((hosts, switches, links))
}

struct Nodes<'a> {
    found: &'a FabricLinks,
    names: &'a Names<'a>,
    /// Switches by node.
    rows: FxHashMap<&'a str, &'a SwitchRow>,
    /// Links above and below each node.
    up: FxHashMap<&'a str, u32>,
    down: FxHashMap<&'a str, u32>,
    pods: u32,
    /// Leaves, spines or aggregation switches of a pod; cores in all.
    leaves: u32,
    mids: u32,
    cores: u32,
    /// Hosts below a leaf.
    per_leaf: u32,
    nics: u32,
}

/// What a link has beside its ends.
struct OfLink {
    /// Counts those between switches.
    link: u32,
    /// Which of those above its lower end.
    uplink: u32,
    member: u32,
    members: u32,
}

impl<'a> Nodes<'a> {
    fn new(found: &'a FabricLinks, names: &'a Names<'a>) -> Nodes<'a> {
        let clos = &found.clos;
        let (mut up, mut down) = (FxHashMap::default(), FxHashMap::default());
        for link in &found.links {
            *up.entry(link.lower.as_str()).or_default() += 1;
            *down.entry(link.upper.as_str()).or_default() += 1;
        }
        Nodes {
            found,
            names,
            rows: found.switches.iter().map(|row| (row.node.as_str(), row)).collect(),
            up,
            down,
            pods: clos.pods(),
            leaves: clos.leaves_per_pod(),
            mids: clos.mids_per_pod(),
            cores: clos.cores(),
            per_leaf: clos.hosts_per_leaf,
            nics: found.nics,
        }
    }

    fn above(&self, node: &str) -> u32 {
        self.up.get(node).copied().unwrap_or_default()
    }

    fn below(&self, node: &str) -> u32 {
        self.down.get(node).copied().unwrap_or_default()
    }

    fn host(&self, number: u32) -> Result<Host> {
        let (leaf, place) = (number / self.per_leaf, number % self.per_leaf);
        // With rails as many leaves as NICs share servers.
        let (server, rail) = match self.found.rails {
            true => (leaf / self.nics * self.per_leaf + place, leaf % self.nics),
            false => (number / self.nics, number % self.nics),
        };
        let values = [
            ("host", number),
            ("leaf", leaf),
            ("place", place),
            ("server", server),
            ("rail", rail),
            ("pod", leaf / self.leaves),
            ("hosts", self.per_leaf),
            ("leaves", self.leaves),
            ("nics", self.nics),
        ];
        let fill = |key: &str| self.names.fill(key, &values);
        Ok(Host {
            number,
            name: fill("host")?,
            leaf,
            place,
            address: self.host_address(number, &values)?,
            leaf_port: fill("host_port")?,
            server,
            rail,
            interface: fill("host_interface")?,
        })
    }

    fn host_address(&self, number: u32, values: &Values<'_>) -> Result<Ipv4Addr> {
        let text = self.names.fill("host_address", values)?;
        let at = At::host(number as usize, "host_address", "address");
        let who = format!("host-{number}");
        check::address(Written::AsPatterns(self.names), at, &who, &text)
    }

    fn switch(&self, row: &SwitchRow, number: u32) -> Result<Switch> {
        let SwitchRow { node, tier, pod, index } = row;
        let up = self.above(node);
        let fill = |key: &str, values: &Values<'_>| self.names.fill(key, values);
        let mut switch = Switch {
            number,
            node: node.clone(),
            name: String::new(),
            tier: *tier,
            pod: *pod,
            index: *index,
            racks: Vec::new(),
            gateway: None,
        };
        match tier {
            0 => {
                let values = [
                    ("leaf", *index),
                    ("pod", *pod),
                    ("leaves", self.leaves),
                    ("uplinks", up),
                    ("hosts", self.per_leaf),
                    ("nics", self.nics),
                ];
                switch.name = fill("leaf", &values)?;
                switch.racks = vec![fill("rack", &values)?];
                switch.gateway = Some(fill("gateway", &values)?);
            }
            1 => {
                let values = [
                    ("spine", *index),
                    ("agg", *index),
                    ("pod", *pod),
                    ("leaves", self.leaves),
                    ("uplinks", up),
                    ("spines", self.mids),
                    ("aggs", self.mids),
                    ("downlinks", self.below(node)),
                ];
                switch.name = fill(if self.cores > 0 { "agg" } else { "spine" }, &values)?;
            }
            _ => {
                let values = [
                    ("core", *index),
                    ("cores", self.cores),
                    ("pods", self.pods),
                    ("downlinks", self.below(node)),
                ];
                switch.name = fill("core", &values)?;
            }
        }
        Ok(switch)
    }

    fn links(&self, hosts: &[Host], switches: &[Switch]) -> Result<Vec<Link>> {
        let rows = &self.found.links;
        let mut members: FxHashMap<(&str, &str), u32> = FxHashMap::default();
        for row in rows {
            *members.entry((&row.lower, &row.upper)).or_default() += 1;
        }
        let mut position: FxHashMap<&str, u32> = FxHashMap::default();
        let mut links = Vec::with_capacity(rows.len());
        for (row, number) in rows.iter().zip(0..) {
            let [lower_port, upper_port, lower_address, upper_address] =
                match hosts.get(number as usize) {
                    Some(host) => {
                        let gateway = switches[host.leaf as usize].gateway.clone();
                        [
                            host.interface.clone(),
                            host.leaf_port.clone(),
                            host.address.to_string(),
                            gateway.unwrap_or_default(),
                        ]
                    }
                    None => {
                        let uplink = position.entry(&row.lower).or_default();
                        let of_link = OfLink {
                            link: number - hosts.len() as u32,
                            uplink: *uplink,
                            member: row.member,
                            members: members[&(row.lower.as_str(), row.upper.as_str())],
                        };
                        *uplink += 1;
                        self.ends(row, &of_link)?
                    }
                };
            links.push(Link {
                lower: row.lower.clone(),
                upper: row.upper.clone(),
                member: row.member,
                lower_port,
                upper_port,
                lower_address,
                upper_address,
                line_bps: row.line_bps,
                rate_bps: row.rate_bps,
                state: match row.state {
                    LinkState::Up => State::Up,
                    LinkState::Degraded => State::Degraded,
                    LinkState::Down => State::Down,
                },
            });
        }
        Ok(links)
    }

    /// Ports, then addresses, of the lower and the upper end of a link between switches.
    fn ends(&self, row: &LinkRow, of_link: &OfLink) -> Result<[String; 4]> {
        let SwitchRow { tier, pod, index, .. } = self.rows[row.lower.as_str()];
        let above = self.rows[row.upper.as_str()].index;
        let OfLink { link, uplink, member, members } = *of_link;
        let mut values = vec![
            ("member", member),
            ("members", members),
            ("link", link),
            ("uplink", uplink),
            ("pod", *pod),
            ("uplinks", self.above(&row.lower)),
        ];
        let keys = if *tier == 0 {
            values.extend([
                ("leaf", *index),
                ("leaves", self.leaves),
                ("hosts", self.per_leaf),
                ("spine", above),
                ("agg", above),
                ("spines", self.mids),
                ("aggs", self.mids),
                ("downlink", index % self.leaves * members + member),
                ("downlinks", self.below(&row.upper)),
            ]);
            ["uplink_port", "downlink_port", "uplink_address", "uplink_next_hop"]
        } else {
            values.extend([
                ("agg", *index),
                ("core", above),
                ("aggs", self.mids),
                ("cores", self.cores),
                ("downlink", pod * members + member),
                ("downlinks", self.below(&row.lower)),
            ]);
            ["agg_uplink_port", "core_downlink_port", "agg_uplink_address", "agg_uplink_next_hop"]
        };
        let mut filled = [const { String::new() }; 4];
        for (text, key) in filled.iter_mut().zip(keys) {
            *text = self.names.fill(key, &values)?;
        }
        Ok(filled)
    }
}
