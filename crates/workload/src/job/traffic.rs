//! Who sends how much to whom in a whole job, without running it.

use super::Job;
use super::role::Role;
use crate::trace::Work;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Messages of one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The sender, by its number.
    pub src: u32,
    /// Who receives; never `src`.
    pub dst: u32,
    /// Payload of one message, at least one byte.
    pub bytes: u64,
    /// How many such messages there are.
    pub times: u64,
}

impl Job {
    /// All messages that the job sends, rank by rank, equal ones in a row together, until `each`
    /// has enough.
    pub fn traffic(&self, mut each: impl FnMut(Traffic) -> ControlFlow<()>) -> ControlFlow<()> {
        (0..self.ranks()).try_for_each(|rank| self.traffic_of(rank, &mut each))
    }

    /// The largest buffer that a rank sends of; no message is larger.
    pub fn largest_buffer(&self) -> u64 {
        let of_rank = |rank| {
            let nodes = self.trace.graph(rank).nodes().iter();
            nodes.map(move |node| match &node.work {
                Work::Send(transfer) => transfer.bytes.max(1),
                Work::Collective(one) => self.role(rank, one).map_or(0, |role| role.call.bytes),
                _ => 0,
            })
        };
        (0..self.ranks()).flat_map(of_rank).max().unwrap_or(0)
    }

    fn traffic_of(
        &self,
        rank: u32,
        each: &mut impl FnMut(Traffic) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let graph = self.trace.graph(rank);
        // By group: what the rank does in the same way, and how often.
        let mut alike: BTreeMap<u32, Vec<(Role<'_>, u64)>> = BTreeMap::new();
        for node in graph.nodes() {
            match &node.work {
                Work::Send(transfer) => {
                    let (dst, bytes) = (transfer.peer.of(rank), transfer.bytes.max(1));
                    each(Traffic { src: rank, dst, bytes, times: 1 })?;
                }
                Work::Collective(one) => {
                    let Some(role) = self.role(rank, one) else { continue };
                    let roles = alike.entry(one.group).or_default();
                    match roles.iter_mut().find(|(known, _)| *known == role) {
                        Some((_, times)) => *times += 1,
                        None => roles.push((role, 1)),
                    }
                }
                _ => {}
            }
        }
        for (group, roles) in alike {
            let members = self.trace.members(group, rank).expect("it is a member");
            for (role, times) in roles {
                role.sends(|to, bytes, messages| {
                    let (dst, times) = (members.rank(to), times * messages);
                    each(Traffic { src: rank, dst, bytes, times })
                })?;
            }
        }
        ControlFlow::Continue(())
    }
}
