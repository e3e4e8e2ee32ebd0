//! Who sends how much to whom in a whole job, without running it.

use super::Job;
use crate::collective::{Algorithm, Call, Step};
use crate::trace::Work;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Messages of one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Who sends.
    pub src: u32,
    /// Who receives; never `src`.
    pub dst: u32,
    /// Payload of one message, at least one byte.
    pub bytes: u64,
    /// How many such messages there are.
    pub times: u64,
}

/// Collectives that are alike: the same members do the same.
type Alike = (Algorithm, Call, u32);

impl Job {
    /// All messages that the job sends, rank by rank, equal ones in a row together, until `each`
    /// has enough.
    pub fn traffic(&self, mut each: impl FnMut(Traffic) -> ControlFlow<()>) -> ControlFlow<()> {
        (0..self.ranks()).try_for_each(|rank| self.traffic_of(rank, &mut each))
    }

    fn traffic_of(
        &self,
        rank: u32,
        each: &mut impl FnMut(Traffic) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let programme = self.trace.programme(rank);
        let mut alike: BTreeMap<u32, Vec<(Alike, u64)>> = BTreeMap::new();
        for node in programme.nodes() {
            match &node.work {
                Work::Send(transfer) => {
                    let (dst, bytes) = (transfer.peer.of(rank), transfer.bytes.max(1));
                    each(Traffic { src: rank, dst, bytes, times: 1 })?;
                }
                Work::Collective(one) => {
                    let Some(call) = self.call(rank, one) else { continue };
                    let calls = alike.entry(one.group).or_default();
                    match calls.iter_mut().find(|(known, _)| *known == call) {
                        Some((_, times)) => *times += 1,
                        None => calls.push((call, 1)),
                    }
                }
                _ => {}
            }
        }
        for (group, calls) in alike {
            let members = self.trace.members(group, rank).expect("it is a member");
            for ((algorithm, call, place), times) in calls {
                let mut alike: Option<Traffic> = None;
                for step in steps(algorithm, &call, place) {
                    let Step::Send { to, bytes: bytes @ 1.., .. } = step else { continue };
                    let next = Traffic { src: rank, dst: members.rank(to), bytes, times };
                    match &mut alike {
                        Some(Traffic { dst, bytes, times: sum, .. })
                            if (*dst, *bytes) == (next.dst, next.bytes) =>
                        {
                            *sum += times;
                        }
                        other => {
                            other.replace(next).map_or(ControlFlow::Continue(()), &mut *each)?
                        }
                    }
                }
                alike.map_or(ControlFlow::Continue(()), &mut *each)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Every step of the rank at `place` in a collective.
pub(super) fn steps(
    algorithm: Algorithm,
    call: &Call,
    place: u32,
) -> impl Iterator<Item = Step> + '_ {
    (0..algorithm.strands(call))
        .flat_map(move |strand| (0..).map_while(move |at| algorithm.step(call, place, strand, at)))
}
