//! What switches do for the ranks of a job: for which ranks, and how much of it there is.

use super::Job;
use super::role::Role;
use crate::collective::{Step, Switched};
use crate::trace::{Action, Collective, Members, Work};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Ranks for which switches work together, and which tree of theirs. Of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchedSet {
    /// Their group, an index into the trace's groups.
    pub group: u32,
    /// The first of them, by its number in the job.
    pub lead: u32,
    /// From one place in the group to the next of theirs.
    pub stride: u32,
    /// How many they are.
    pub ranks: u32,
    /// Which of several trees.
    pub tree: u32,
}

/// A rank's part in something that switches do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// With whom.
    pub set: SwitchedSet,
    /// The place of the rank among these.
    pub place: u32,
    /// What is done.
    pub part: Switched,
    /// Which of all that is done for these ranks: the same for all of them. Above
    /// [`largest_switched_sequence`] bits which collective of the group, below which sequence of it.
    pub number: u32,
}

/// Bits of [`Joined::number`] that name a sequence.
const SEQUENCE: u32 = 12;

/// The most sequences of a collective, its chunks one after the other, that can be told apart.
pub const fn largest_switched_sequence() -> u32 {
    1 << SEQUENCE
}

impl Joined {
    pub(super) fn new(
        one: &Collective,
        members: &Members<'_>,
        part: Switched,
        sequence: u32,
    ) -> Joined {
        assert!(one.turn < 1 << (u32::BITS - SEQUENCE), "a group has too many collectives");
        assert!(sequence < largest_switched_sequence(), "a collective has too many chunks");
        let set = SwitchedSet::new(one, members, &part);
        Joined { set, place: 0, part, number: one.turn << SEQUENCE | sequence }
    }
    /// The same at the rank of this number in the group.
    pub(super) fn at(self, place: u32) -> Joined {
        Joined { place: (place - self.part.first) / self.part.stride, ..self }
    }
}

impl SwitchedSet {
    fn new(one: &Collective, members: &Members<'_>, part: &Switched) -> SwitchedSet {
        let Switched { first, stride, ranks, tree, .. } = *part;
        SwitchedSet { group: one.group, lead: members.rank(first), stride, ranks, tree }
    }
}

impl Job {
    /// Whether switches do anything for it.
    pub fn is_in_network(&self) -> bool {
        self.algorithms.0.iter().any(|algorithm| algorithm.is_in_network())
    }

    fn has_switches_do(&self, one: &Collective) -> bool {
        match one.action {
            Action::Operation(operation) => self.algorithms.of(operation).is_in_network(),
            Action::Barrier | Action::Dispatch(_) | Action::Combine(_) => false,
        }
    }

    /// The most sequences of a collective in which switches work, through all its chunks.
    pub fn switched_sequences(&self) -> u64 {
        let of = |rank: u32| {
            let nodes = self.trace.graph(rank).nodes().iter();
            let roles = nodes.filter_map(move |node| match &node.work {
                Work::Collective(one) if self.has_switches_do(one) => self.role(rank, one),
                _ => None,
            });
            roles.map(|role| {
                u64::from(role.chunks) * u64::from(role.steps.sequences(&role.chunk(0)))
            })
        };
        (0..self.ranks()).flat_map(of).max().unwrap_or(0)
    }

    /// The ranks of `set`, by their numbers in the job.
    pub fn switched_ranks(&self, set: &SwitchedSet) -> Vec<u32> {
        let mut ranks = Vec::with_capacity(set.ranks as usize);
        self.switched_ranks_while(set, |rank| {
            ranks.push(rank);
            true
        });
        ranks
    }
    /// Whether `holds` holds for all of them, in their order; it is asked no more once it does not.
    pub fn switched_ranks_while(
        &self,
        set: &SwitchedSet,
        mut holds: impl FnMut(u32) -> bool,
    ) -> bool {
        let members = self.trace.members(set.group, set.lead).expect("it is a member");
        let first = members.place(set.lead).expect("it is a member");
        (0..set.ranks).all(|place| holds(members.rank(first + place * set.stride)))
    }

    /// The nodes of the first rank of `set` that are collectives of its group, in the order of their turns.
    pub fn switched_nodes(&self, set: &SwitchedSet) -> Vec<u32> {
        let nodes = (0..).zip(self.trace.graph(set.lead).nodes());
        let mut turns: Vec<(u32, u32)> = nodes
            .filter_map(|(node, one)| match &one.work {
                Work::Collective(one) if one.group == set.group => Some((one.turn, node)),
                _ => None,
            })
            .collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, node)| node).collect()
    }

    /// What switches do for `set` under [`Joined::number`] `number`, where the nodes of its first rank are
    /// these ([`Job::switched_nodes`]).
    ///
    /// # Panics
    /// If that is nothing.
    pub fn switched_part(&self, set: &SwitchedSet, nodes: &[u32], number: u32) -> Switched {
        let (turn, sequence) = (number >> SEQUENCE, number & (largest_switched_sequence() - 1));
        let graph = self.trace.graph(set.lead).nodes();
        let one = nodes.iter().find_map(|node| match &graph[*node as usize].work {
            Work::Collective(one) if one.turn == turn => Some(one),
            _ => None,
        });
        let one = one.expect("a collective of the group");
        let role = self.role(set.lead, one).expect("its ranks move something");
        let members = self.trace.members(set.group, set.lead).expect("it is a member");
        let mut found = None;
        role.switched_in(sequence, |part| {
            if SwitchedSet::new(one, &members, &part) == *set {
                found = Some(part);
            }
        });
        found.expect("a sequence with a part of switches")
    }

    /// All that switches do for `rank`: with whom, its place among these, what, and how often.
    pub fn switched(&self, rank: u32, mut each: impl FnMut(SwitchedSet, u32, Switched, u64)) {
        if !self.is_in_network() {
            return;
        }
        let mut alike: BTreeMap<u32, Vec<(Role, &Collective, u64)>> = BTreeMap::new();
        for node in self.trace.graph(rank).nodes() {
            let Work::Collective(one) = &node.work else { continue };
            if !self.has_switches_do(one) {
                continue;
            }
            let Some(role) = self.role(rank, one) else { continue };
            let roles = alike.entry(one.group).or_default();
            match roles.iter_mut().find(|(known, ..)| *known == role) {
                Some((.., times)) => *times += 1,
                None => roles.push((role, one, 1)),
            }
        }
        for (role, one, times) in alike.into_values().flatten() {
            let members = self.trace.members(one.group, rank).expect("it is a member");
            role.switched(|part| {
                let set = SwitchedSet::new(one, &members, &part);
                each(set, (role.place - part.first) / part.stride, part, times);
            });
        }
    }
}

impl Role<'_> {
    /// What switches do in it, chunk by chunk and sequence by sequence.
    pub(super) fn switched(&self, mut each: impl FnMut(Switched)) {
        let width = self.steps.sequences(&self.chunk(0));
        (0..self.chunks * width).for_each(|sequence| self.switched_in(sequence, &mut each));
    }
    /// The same in one sequence, numbered through all chunks.
    fn switched_in(&self, sequence: u32, mut each: impl FnMut(Switched)) {
        let width = self.steps.sequences(&self.chunk(0));
        let (call, sequence) = (self.chunk(sequence / width), sequence % width);
        let mut at = 0;
        let _ = self.steps.walk(&call, (self.place, sequence), &mut |step| {
            if let Step::Switched { payload: bytes @ 1.. } = step {
                each(self.steps.switched(&call, (self.place, sequence, at), bytes));
            }
            at += 1;
            ControlFlow::Continue(())
        });
    }
}
