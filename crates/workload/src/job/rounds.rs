//! Collectives of many rounds that are all alike, for a driver that does not want to see each.

use super::{AwaitSends, Job};
use crate::trace::Collective;
use std::ops::ControlFlow;

/// What a collective of equal rounds is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Ranks that take part.
    pub ranks: u32,
    /// How many rounds there are.
    pub rounds: u32,
    /// Messages that a rank sends in a round.
    pub messages: u32,
}

impl Job {
    /// The rounds of a collective in which every rank sends to one and the same rank, round after round,
    /// and goes on when it has as much from one and the same. `None`: it is none of these, or `rank`
    /// waits for more than that.
    pub fn rounds(&self, rank: u32, one: &Collective) -> Option<Rounds> {
        let role = self.role(rank, one)?;
        let is_plain = role.chunks == 1 && role.await_sends == AwaitSends::Never;
        let call = role.chunk(0);
        let rounds = role.algorithm.rounds(&call).filter(|_| is_plain)?;
        Some(Rounds { ranks: call.ranks, rounds, messages: role.algorithm.sequences(&call) })
    }
    /// What `rank` sends in a round of such a collective, in the mean, in bytes.
    pub fn bytes_a_round(&self, rank: u32, one: &Collective) -> u64 {
        let (Some(role), Some(rounds)) = (self.role(rank, one), self.rounds(rank, one)) else {
            return 0;
        };
        let mut bytes = 0;
        let _ = role.sends(|_, size, times| {
            bytes += size * times;
            ControlFlow::Continue(())
        });
        bytes / u64::from(rounds.rounds.max(1))
    }
}
