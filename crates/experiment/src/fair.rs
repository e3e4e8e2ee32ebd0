//! The fair share of every message: the rate that a sender may compute in advance from topology
//! and workload, and pace at (McClure et al. 2025, section 3.1 and 4).
//!
//! Messages that wait for equally long chains of others are taken to be under way together. All
//! of those that cross a cut (a host's link, the uplinks of a leaf, ...) share its capacity
//! equally, and the tightest cut of a message decides. On a network without a bottleneck above
//! the hosts that is the host's rate over the number of its concurrent messages: 1/127 of it in
//! an all-to-all of 128 hosts, all of it in a permutation. Failures do not count: nobody told
//! the sender.

use crate::cuts::{CUTS, Cut, Rates};
use rustc_hash::FxHashMap;
use weft_fabric::Fabric;
use weft_units::{IdVec, MessageId, Rate};
use weft_workload::{When, Workload};

/// The fair share of every message, in bits per second on the wire.
pub fn fair_shares(fabric: &Fabric, workload: &Workload) -> IdVec<MessageId, Rate> {
    let steps = steps(workload);
    let mut shares: IdVec<MessageId, u64> = workload.messages().iter().map(|_| u64::MAX).collect();
    for cut in CUTS {
        narrow(cut, fabric, workload, &steps, &mut shares);
    }
    shares.iter().map(|bits| Rate::bps((*bits).max(1))).collect()
}

/// The most messages that one host sends, or receives, at once.
pub fn most_concurrent(fabric: &Fabric, workload: &Workload) -> u32 {
    let steps = steps(workload);
    let ends = [Cut::HostOut, Cut::HostIn];
    let most = |cut| crowds(cut, fabric, workload, &steps).into_values().max().unwrap_or(0);
    ends.into_iter().map(most).max().unwrap_or(0)
}

/// Lowers `shares` to what `cut` leaves each message that crosses it.
fn narrow(
    cut: Cut,
    fabric: &Fabric,
    workload: &Workload,
    steps: &IdVec<MessageId, u32>,
    shares: &mut IdVec<MessageId, u64>,
) {
    let crowds = crowds(cut, fabric, workload, steps);
    let mut rates = Rates::new(cut, fabric);
    for (id, message) in workload.messages().enumerate() {
        if let Some((_, place)) = cut.place(fabric, message.src, message.dst) {
            let share = rates.of(place) / u128::from(crowds[&(steps[id], place)]);
            shares[id] = shares[id].min(u64::try_from(share).unwrap_or(u64::MAX));
        }
    }
}

/// How many messages cross each cut of a kind at each step.
fn crowds(
    cut: Cut,
    fabric: &Fabric,
    workload: &Workload,
    steps: &IdVec<MessageId, u32>,
) -> FxHashMap<(u32, u32), u32> {
    let mut crowds = FxHashMap::default();
    for (id, message) in workload.messages().enumerate() {
        if let Some((_, place)) = cut.place(fabric, message.src, message.dst) {
            *crowds.entry((steps[id], place)).or_default() += 1;
        }
    }
    crowds
}

/// How many messages stand before each in its longest chain.
fn steps(workload: &Workload) -> IdVec<MessageId, u32> {
    let messages = workload.messages();
    let dependents = workload.dependents();
    let mut steps: IdVec<MessageId, u32> = messages.iter().map(|_| 0).collect();
    for id in dependents.in_order() {
        for when in [When::Sent, When::Received] {
            for next in dependents.waiting(id, when) {
                steps[*next] = steps[*next].max(steps[id] + 1);
            }
        }
    }
    steps
}
