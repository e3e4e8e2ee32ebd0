//! Dependencies read backwards: given an end of a message, who waits for it.
//!
//! Invariant: every dependency of the workload appears exactly once, so a message may be
//! posted (after its `start` delay) when it was named as often as [`Dependents::unmet`] says.

use crate::{When, Workload};
use std::ops::Range;
use weft_units::id::Id;
use weft_units::{IdVec, MessageId};

/// Who waits for which end of which message, and how much everyone waits for.
///
/// In use: copy [`unmet`](Dependents::unmet), post what stands at zero, and on every end that
/// is reached take one from each of [`waiting`](Dependents::waiting).
#[derive(Clone, Debug)]
pub struct Dependents {
    /// Those who wait for slot `s` ([`slot`]): `waiting[starts[s] .. starts[s + 1]]`.
    waiting: Vec<MessageId>,
    starts: Vec<u32>,
    unmet: IdVec<MessageId, u32>,
}

/// Both ends of one message stand side by side.
fn slot(message: MessageId, when: When) -> usize {
    message.index() * 2
        + match when {
            When::Sent => 0,
            When::Received => 1,
        }
}

impl Workload {
    /// Who waits for whom, as the engine asks: once per run, then only look-ups.
    ///
    /// # Panics
    /// If a dependency names a message that does not exist (see [`Workload::validate`]).
    pub fn dependents(&self) -> Dependents {
        Dependents::new(self)
    }
}

impl Dependents {
    /// A counting sort of all dependencies by what they wait for; linear in their number.
    pub(crate) fn new(workload: &Workload) -> Dependents {
        let ids = || workload.messages().ids();
        let mut starts = vec![0u32; workload.messages().len() * 2 + 1];
        for id in ids() {
            for dependency in workload.dependencies(id) {
                starts[slot(dependency.on, dependency.when) + 1] += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut waiting = vec![MessageId(0); workload.dependency_count()];
        for id in ids() {
            for dependency in workload.dependencies(id) {
                let place = &mut next[slot(dependency.on, dependency.when)];
                waiting[*place as usize] = id;
                *place += 1;
            }
        }
        let unmet = ids().map(|id| workload.dependencies(id).len() as u32).collect();
        Dependents { waiting, starts, unmet }
    }
    /// The messages that wait for this end of `message`, in the order of their ids. One that
    /// names the same end twice stands here twice.
    #[inline]
    pub fn waiting(&self, message: MessageId, when: When) -> &[MessageId] {
        let slot = slot(message, when);
        &self.waiting[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }
    /// As [`Dependents::waiting`], by the numbers of the dependencies: each stands for one
    /// message that waits ([`Dependents::message`]).
    #[inline]
    pub fn numbers(&self, message: MessageId, when: When) -> Range<u32> {
        let slot = slot(message, when);
        self.starts[slot]..self.starts[slot + 1]
    }
    /// Who waits under dependency `number`.
    #[inline]
    pub fn message(&self, number: u32) -> MessageId {
        self.waiting[number as usize]
    }
    /// Messages in an order in which each comes after all that it waits for. Those in a circle,
    /// and those that wait for them, are left out.
    pub fn in_order(&self) -> Vec<MessageId> {
        let mut unmet = self.unmet.clone();
        let mut order: Vec<MessageId> = unmet.ids().filter(|id| unmet[*id] == 0).collect();
        let mut at = 0;
        while let Some(id) = order.get(at).copied() {
            at += 1;
            for when in [When::Sent, When::Received] {
                for next in self.waiting(id, when) {
                    unmet[*next] -= 1;
                    if unmet[*next] == 0 {
                        order.push(*next);
                    }
                }
            }
        }
        order
    }
    /// How many dependencies each message has; zero means that only its start time holds it.
    pub fn unmet(&self) -> &IdVec<MessageId, u32> {
        &self.unmet
    }
}
