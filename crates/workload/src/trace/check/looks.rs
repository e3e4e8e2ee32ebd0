//! Which ranks are looked at: where ranks cannot differ, one speaks for all that run its
//! graph.
//!
//! Invariant: whoever a rank that is looked at meets is looked at too, or does the same at the
//! same time.

use crate::trace::{Membership, Peer, Trace, Work};

/// Whom a node concerns besides its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Ranks that run the same graph, all of which reach it together.
    Own,
    /// The ranks at the same place of other stages.
    Across,
    /// Any rank.
    Any,
}

/// The ranks that are looked at.
#[derive(Debug)]
pub(super) struct Looks {
    /// One of so many, from rank 0.
    stride: u32,
    /// How many there are.
    count: u32,
    groups: Vec<Reach>,
}

impl Looks {
    pub(super) fn new(trace: &Trace) -> Looks {
        let reach = |members: &Membership| reach(trace, members);
        let groups = trace.groups.iter().map(|group| reach(&group.members)).collect();
        let count = trace.graphs.len() as u32;
        let looks = Looks { stride: trace.block().max(1), count, groups };
        let mut nodes = trace.graphs.iter().flat_map(|graph| graph.nodes());
        match nodes.all(|node| looks.reach(trace, &node.work) != Reach::Any) {
            true => looks,
            false => Looks {
                stride: 1,
                count: trace.ranks.unwrap_or(1),
                groups: vec![Reach::Any; trace.groups.len()],
            },
        }
    }

    fn reach(&self, trace: &Trace, work: &Work) -> Reach {
        match work {
            Work::Collective(one) if self.is_own(one.group) => Reach::Own,
            Work::Collective(one) => self.groups[one.group as usize],
            Work::Send(one) | Work::Receive(one) => match one.peer {
                Peer::Away(distance)
                    if has_stages(trace) && distance % i64::from(self.stride) == 0 =>
                {
                    Reach::Across
                }
                _ => Reach::Any,
            },
            _ => Reach::Own,
        }
    }

    /// Whether all ranks of a group do the same at the same time.
    pub(super) fn is_own(&self, group: u32) -> bool {
        self.groups.get(group as usize).is_none_or(|reach| *reach == Reach::Own)
    }
    /// In their order.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u32> + use<> {
        let stride = self.stride;
        (0..self.count).map(move |place| place * stride)
    }
    /// Which of them `rank` is.
    pub(super) fn place(&self, rank: u32) -> usize {
        (rank / self.stride) as usize
    }
}

/// Whether each stage has a graph.
fn has_stages(trace: &Trace) -> bool {
    !trace.shared && trace.graphs.len() == trace.degrees.pipeline as usize
}

fn reach(trace: &Trace, members: &Membership) -> Reach {
    match members {
        Membership::Listed(_) => Reach::Any,
        Membership::Ends if trace.shared => Reach::Any,
        _ if trace.shared => Reach::Own,
        _ if !has_stages(trace) => Reach::Any,
        Membership::World => Reach::Any,
        Membership::Pipeline | Membership::Ends => Reach::Across,
        _ => Reach::Own,
    }
}
