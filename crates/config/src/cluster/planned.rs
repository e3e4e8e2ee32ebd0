//! The cluster of a plan. Somebody may have changed the file since it was written, and it ends in scripts
//! and configurations: it is held to what a cluster file is held to.

use super::check::{self, At, Written};
use super::{Cluster, Link, Switch, naming, quoted};
use crate::{ExperimentError, Origin};
use rustc_hash::FxHashMap;

type Result<T> = std::result::Result<T, ExperimentError>;

impl Cluster {
    /// What [`Cluster::to_json`] wrote, which messages call `source`.
    ///
    /// # Errors
    /// If it is something else, or names or addresses cannot be: the first that is wrong.
    pub fn from_json(text: &str, source: &str) -> Result<Cluster> {
        let read = || {
            let found: Cluster = serde_json::from_str(text)
                .map_err(|error| ExperimentError::not_as_written("cluster", &error.to_string()))?;
            found.check()?;
            Ok(found)
        };
        read().map_err(|error: ExperimentError| error.in_source(source))
    }

    /// Refuses what no cluster file gives.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_top()?;
        let leaves = self.check_switches()?;
        self.check_hosts(leaves)?;
        self.check_links()?;
        check::check(self, Written::InPlan)?;
        self.path_addresses()?;
        for (key, value) in &self.nccl.0 {
            check::variable(key, value).map_err(|what| wrong(&format!("nccl.{key}"), what))?;
        }
        Ok(())
    }

    fn check_top(&self) -> Result<()> {
        if self.title.contains(char::is_control) {
            return Err(Written::InPlan.wrong(At::top("title"), "is more than a line", ""));
        }
        for (key, given) in [
            ("dscp", u16::from(self.dscp)),
            ("port", self.port),
            ("ports", self.ports),
            ("first_port", self.first_port),
            ("last_port", self.last_port),
        ] {
            naming::in_range(key, given.into()).map_err(|what| wrong(key, what))?;
        }
        naming::in_reach(self.port, self.ports).map_err(|what| wrong("ports", what))?;
        for (key, given) in [("mtu", self.mtu), ("nics", self.nics)] {
            if given == 0 {
                return Err(Written::InPlan.wrong(At::top(key), "is zero", ""));
            }
        }
        Ok(())
    }

    /// How many leaves there are, which come first.
    fn check_switches(&self) -> Result<u32> {
        let mut tier = 0;
        for (place, switch) in self.switches.iter().enumerate() {
            let wrong =
                |key, what: &str| Err(Written::InPlan.wrong(At::switch(place, "", key), what, ""));
            let Switch { number, node, racks, gateway, .. } = switch;
            if *number as usize != place {
                return wrong("number", &format!("is {number}, and its place {place}"));
            }
            if !check::can_be(node) {
                return wrong("node", &format!("{} is no node", quoted(node)));
            }
            if !(tier..=2).contains(&switch.tier) {
                return wrong("tier", &format!("is {}, the one before has {tier}", switch.tier));
            }
            tier = switch.tier;
            if (racks.len() == 1, gateway.is_some()) != (tier == 0, tier == 0) {
                return wrong("racks", "not one with a gateway for a leaf, and none for others");
            }
        }
        Ok(self.switches.partition_point(|switch| switch.tier == 0) as u32)
    }

    fn check_hosts(&self, leaves: u32) -> Result<()> {
        if self.hosts.is_empty() {
            return Err(Written::InPlan.wrong(At::top("hosts"), "there are none", ""));
        }
        let count = self.hosts.len() as u32;
        for (place, host) in self.hosts.iter().enumerate() {
            for (key, given, below) in [
                ("leaf", host.leaf, leaves),
                ("place", host.place, count),
                ("server", host.server, count),
                ("rail", host.rail, self.nics),
            ] {
                if given >= below {
                    let what = format!("is {given}, and has to be below {below}");
                    return Err(Written::InPlan.wrong(At::host(place, "", key), &what, ""));
                }
            }
            if host.number as usize != place {
                let what = format!("is {}, and its place {place}", host.number);
                return Err(Written::InPlan.wrong(At::host(place, "", "number"), &what, ""));
            }
        }
        Ok(())
    }

    /// Links of hosts come first and say what their hosts and leaves do; others go up.
    fn check_links(&self) -> Result<()> {
        let tiers: FxHashMap<&str, u32> =
            self.switches.iter().map(|switch| (&*switch.node, switch.tier)).collect();
        if self.links.len() < self.hosts.len() {
            return Err(Written::InPlan.wrong(At::top("links"), "fewer than hosts", ""));
        }
        for (place, link) in self.links.iter().enumerate() {
            let is_wrong = |key: &str, found: &str, meant: &str| {
                let what = format!("is {}, and {} at its host", quoted(found), quoted(meant));
                Err(Written::InPlan.wrong(At::link(place, "", key), &what, ""))
            };
            let Link { lower, upper, .. } = link;
            if let Some(host) = self.hosts.get(place) {
                let leaf = &self.switches[host.leaf as usize];
                for (key, found, meant) in [
                    ("lower", lower, &format!("host-{place}")),
                    ("upper", upper, &leaf.node),
                    ("lower_port", &link.lower_port, &host.interface),
                    ("upper_port", &link.upper_port, &host.leaf_port),
                    ("lower_address", &link.lower_address, &host.address.to_string()),
                    ("upper_address", &link.upper_address, leaf.gateway.as_ref().unwrap_or(lower)),
                ] {
                    if found != meant {
                        return is_wrong(key, found, meant);
                    }
                }
            } else if tiers.get(&**lower).zip(tiers.get(&**upper)).is_none_or(|(a, b)| a >= b) {
                let what = format!("no link up from {} to {}", quoted(lower), quoted(upper));
                return Err(Written::InPlan.wrong(At::link(place, "", "lower"), &what, ""));
            }
            if link.line_bps == 0 || link.rate_bps > link.line_bps {
                let what = format!("is {} of {}", link.rate_bps, link.line_bps);
                return Err(Written::InPlan.wrong(At::link(place, "", "rate_bps"), &what, ""));
            }
        }
        Ok(())
    }
}

fn wrong(key: &str, what: String) -> ExperimentError {
    ExperimentError::new(format!("cluster.{key}"), Origin::Unknown, what)
}
