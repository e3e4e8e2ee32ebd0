//! Finds planes in a list of links: networks that have their hosts in common and nothing else.

use super::recognise::{Role, Wire, Wires, recognise};
use crate::{Clos, Node};
use weft_units::SwitchId;

/// As many as NICs have ports.
const MOST: u32 = 8;

/// The same folded Clos several times.
pub(super) struct Planes {
    pub(super) clos: Clos,
    pub(super) planes: u32,
    /// What each node is in them. Planes stand in the order of their first switches.
    pub(super) nodes: Vec<Node>,
}

/// The planes of the links; `None`: there is one network, or they are not the same
/// folded Clos with the hosts in the same order.
pub(super) fn planes(wires: &Wires) -> Option<Planes> {
    let parts = Parts::new(wires);
    if !(2..=MOST).contains(&parts.count) {
        return None;
    }
    let mut parts = (0..parts.count).map(|part| parts.wires(wires, part));
    let (clos, nodes) = recognise(&parts.next()?).ok()?;
    clos.validate().ok()?;
    let switches = clos.pods() * (clos.leaves_per_pod() + clos.mids_per_pod()) + clos.cores();
    let mut found = Planes { clos, planes: 1, nodes };
    for part in parts {
        let (clos, nodes) = recognise(&part).ok()?;
        if clos != found.clos {
            return None;
        }
        for (node, role) in part.roles.iter().enumerate() {
            match (role, nodes[node]) {
                (Role::Host, host) if host != found.nodes[node] => return None,
                (Role::Switch, Node::Switch(switch)) => {
                    found.nodes[node] = Node::Switch(SwitchId(found.planes * switches + switch.0));
                }
                _ => {}
            }
        }
        found.planes += 1;
    }
    Some(found)
}

/// Which switches are linked to each other, directly or over others.
struct Parts {
    /// The part of each switch.
    of: Vec<Option<u32>>,
    count: u32,
}

impl Parts {
    fn new(wires: &Wires) -> Parts {
        let mut peers = vec![Vec::new(); wires.roles.len()];
        for Wire { ends: [a, b], .. } in &wires.wires {
            if wires.is_switch(*a) && wires.is_switch(*b) {
                peers[*a as usize].push(*b);
                peers[*b as usize].push(*a);
            }
        }
        let mut parts = Parts { of: vec![None; peers.len()], count: 0 };
        for start in 0..peers.len() as u32 {
            if !wires.is_switch(start) || parts.of[start as usize].is_some() {
                continue;
            }
            let mut open = vec![start];
            while let Some(switch) = open.pop() {
                if parts.of[switch as usize].replace(parts.count).is_none() {
                    open.extend(&peers[switch as usize]);
                }
            }
            parts.count += 1;
        }
        parts
    }

    /// All hosts, and of the switches those of one part.
    fn wires(&self, all: &Wires, part: u32) -> Wires {
        let role = |(role, of): (&Role, &Option<u32>)| match role {
            Role::Switch if *of != Some(part) => Role::Apart,
            role => *role,
        };
        let roles: Vec<Role> = all.roles.iter().zip(&self.of).map(role).collect();
        let is_here =
            |wire: &&Wire| wire.ends.iter().all(|end| roles[*end as usize] != Role::Apart);
        let wires = all.wires.iter().filter(is_here).copied().collect();
        Wires { roles, wires }
    }
}
