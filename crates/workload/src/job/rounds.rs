//! Collectives of many rounds that are all alike, for a driver that does not want to see each.

use super::role::Role;
use super::{AwaitSends, Job};
use crate::trace::{Collective, Members};

/// A phase of a collective: rounds that are all alike, of some of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Which phase it is, from 0.
    pub phase: u32,
    /// The first of the ranks that take part, by its place in the group.
    pub first: u32,
    /// From one of them to the next.
    pub stride: u32,
    /// How many they are.
    pub ranks: u32,
    /// Its receipts in each sequence, one a round: the first, and the one behind the last.
    pub receipts: (u32, u32),
    /// Messages that a rank sends in a round.
    pub messages: u32,
}

impl Rounds {
    /// How many rounds there are.
    pub fn count(&self) -> u32 {
        self.receipts.1 - self.receipts.0
    }
    /// The ranks that take part, of a group with these members.
    pub fn members<'a>(&self, of: &'a Members<'_>) -> impl Iterator<Item = u32> + 'a {
        let Rounds { first, stride, ranks, .. } = *self;
        (0..ranks).map(move |place| of.rank(first + place * stride))
    }
}

impl Role<'_> {
    /// Its phases, if that is all there is to it, and it waits for nothing else.
    pub(super) fn phases(&self) -> impl Iterator<Item = Rounds> {
        let is_plain = self.chunks == 1 && self.await_sends == AwaitSends::Never;
        let (steps, place, call) = (self.steps, self.place, self.chunk(0));
        let phases = is_plain.then_some(0..).into_iter().flatten().map_while(move |phase| {
            let one = steps.phase(&call, place, phase)?;
            Some((phase, one))
        });
        phases.scan(0, move |receipts, (phase, one)| {
            let from = *receipts;
            *receipts += one.rounds;
            let (receipts, messages) = ((from, *receipts), steps.sequences(&call));
            let (first, stride, ranks) = (one.first, one.stride, one.ranks);
            Some(Rounds { phase, first, stride, ranks, receipts, messages })
        })
    }
    /// How many rounds of a phase reduce what they receive: the first ones.
    pub(super) fn reducing_rounds(&self, sequence: u32, phase: &Rounds) -> u32 {
        let Role { steps, call, .. } = self;
        let mut receipts = phase.receipts.0..phase.receipts.1;
        let first = receipts.position(|receipt| !steps.reduces(call, sequence, receipt));
        first.map_or(phase.count(), |first| first as u32)
    }
    /// Bytes that it sends in a round of a phase, in the mean.
    fn bytes_a_round(&self, rounds: &Rounds) -> u64 {
        let call = self.chunk(0);
        let around = |sequence| self.steps.around(&call, self.place, sequence, rounds.phase);
        let sends = (0..rounds.messages).filter_map(around).flat_map(|around| around.sends);
        let bytes: u64 = sends.map(|(size, times)| size * times).sum();
        bytes / u64::from(rounds.count().max(1))
    }
}

impl Job {
    /// Phase `phase`, from 0, of a collective that `rank` does in rounds only: in each phase it sends
    /// to one and the same rank, round after round, and goes on when it has as much from one and the
    /// same. `None`: it is none of these, `rank` waits for more than that, or there are no more phases.
    pub fn rounds(&self, rank: u32, one: &Collective, phase: u32) -> Option<Rounds> {
        self.role(rank, one)?.phases().nth(phase as usize)
    }
    /// The phase of such a collective that receipt `number` of a sequence is of.
    pub fn rounds_with(&self, rank: u32, one: &Collective, number: u32) -> Option<Rounds> {
        self.role(rank, one)?.phases().find(|rounds| number < rounds.receipts.1)
    }
    /// What `rank` sends in a round of such a phase, in the mean, in bytes.
    pub fn bytes_a_round(&self, rank: u32, one: &Collective, rounds: &Rounds) -> u64 {
        self.role(rank, one).map_or(0, |role| role.bytes_a_round(rounds))
    }
    /// How many rounds of such a phase reduce what they receive: the first ones.
    pub fn reducing_rounds(&self, rank: u32, one: &Collective, rounds: &Rounds) -> u32 {
        self.role(rank, one).map_or(0, |role| role.reducing_rounds(0, rounds))
    }
}
