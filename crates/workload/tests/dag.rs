//! The message DAG: what is refused, and dependencies read from both ends.

use weft_trial::prelude::*;
use weft_units::{HostId, MessageId, Time};
use weft_workload::{Dependency, Message, When, Workload};

fn message(src: u32, dst: u32, bytes: u64) -> Message {
    Message { src: HostId(src), dst: HostId(dst), bytes, start: Time::ZERO }
}
fn after(id: u32) -> Dependency {
    Dependency { on: MessageId(id), when: When::Received }
}
/// Messages 0 to 1 over two hosts that wait for each other as `edges` (waiter, awaited) says.
fn chain(messages: u32, edges: &[(u32, u32)]) -> Workload {
    let mut workload = Workload::new(2);
    for id in 0..messages {
        let waits: Vec<_> =
            edges.iter().filter(|(m, _)| *m == id).map(|(_, on)| after(*on)).collect();
        workload.push(message(0, 1, 1), &waits);
    }
    workload
}
fn refusal(workload: &Workload) -> String {
    let line = workload.validate().unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn impossible_messages_are_refused_by_name() {
    let one = |m: Message| {
        let mut workload = Workload::new(4);
        workload.push(message(0, 1, 5), &[]);
        workload.push(m, &[]);
        refusal(&workload)
    };
    let outside = one(message(1, 4, 5));
    assert_eq!(outside, "message 1 (host 1 to host 4): host 4 does not exist; hosts are 0 to 3");
    assert!(one(message(2, 2, 5)).contains("sends to itself"));
    assert!(one(message(2, 3, 0)).contains("sends nothing"));
    assert!(one(message(2, 3, u64::MAX)).contains("exceed 2^64 bytes"));
    assert!(refusal(&chain(2, &[(1, 7)])).contains("waits for message 7, but there are only 2"));
}

#[test]
fn a_cycle_is_refused_with_its_messages() {
    // 0 is fine; 4 waits for the cycle without being on it.
    let workload = chain(5, &[(1, 0), (1, 3), (2, 1), (3, 2), (4, 3)]);
    assert_eq!(
        refusal(&workload),
        "message 1 (host 0 to host 1): can never start, since message 1 waits for message 3, \
         message 3 for message 2, message 2 for message 1; remove one of these dependencies"
    );
    assert_eq!(chain(1, &[(0, 0)]).cycle(), Some(vec![MessageId(0)]));
    let long: Vec<_> = (0..100).map(|id| (id, (id + 1) % 100)).collect();
    assert!(refusal(&chain(100, &long)).contains("... (100 in all) and back to message 0"));
}

#[test]
fn both_ends_of_a_message_have_their_own_waiters() {
    let mut workload = Workload::new(2);
    let on = |when| Dependency { on: MessageId(2), when };
    workload.push(message(0, 1, 1), &[on(When::Sent), on(When::Received)]);
    workload.push(message(0, 1, 1), &[on(When::Received), on(When::Received)]);
    workload.push(message(1, 0, 1), &[]);
    let dependents = workload.dependents();
    assert_eq!(dependents.waiting(MessageId(2), When::Sent), [MessageId(0)]);
    assert_eq!(dependents.waiting(MessageId(2), When::Received), [0, 1, 1].map(MessageId));
    assert_eq!(dependents.unmet().as_slice(), [2, 2, 0]);
    assert!(workload.validate().is_ok());
}

#[test]
fn a_larger_fabric_is_fine_and_a_smaller_one_is_not() {
    let workload = chain(1, &[]);
    assert_eq!(workload.clone().on_fabric_of(8).unwrap().hosts(), 8);
    assert!(workload.on_fabric_of(1).unwrap_err().to_string().contains("has 2 hosts"));
    assert_eq!(Workload::default().push(message(0, 1, 1), &[]), MessageId(0));
}

trials! {
    /// Dependents are the dependencies turned round, no more and no less.
    fn dependents_are_the_transpose(edges in prop::collection::vec((0u32..20, 0u32..20), 0..60)) {
        let workload = chain(20, &edges);
        let dependents = workload.dependents();
        let mut turned = Vec::new();
        for on in workload.messages().ids() {
            prop_assert!(dependents.waiting(on, When::Sent).is_empty());
            let waiting = dependents.waiting(on, When::Received);
            prop_assert!(waiting.is_sorted());
            turned.extend(waiting.iter().map(|waiter| (waiter.0, on.0)));
        }
        let mut expected = edges.clone();
        expected.sort_unstable();
        turned.sort_unstable();
        prop_assert_eq!(turned, expected);
        for id in workload.messages().ids() {
            let count = edges.iter().filter(|(waiter, _)| *waiter == id.0).count();
            prop_assert_eq!(dependents.unmet()[id] as usize, count);
        }
    }

    /// Edges to earlier messages never make a cycle; a reported cycle is one.
    fn cycles_are_found_and_only_cycles(
        edges in prop::collection::vec((0u32..12, 0u32..12), 0..30),
    ) {
        let forward: Vec<_> = edges.iter().copied().filter(|(waiter, on)| on < waiter).collect();
        prop_assert_eq!(chain(12, &forward).cycle(), None);
        match chain(12, &edges).cycle() {
            Some(cycle) => for (at, waiter) in cycle.iter().enumerate() {
                let on = cycle[(at + 1) % cycle.len()];
                prop_assert!(edges.contains(&(waiter.0, on.0)));
            },
            None => prop_assert!(has_topological_order(12, &edges)),
        }
    }
}

/// The plain definition: repeatedly take out someone who waits for nobody left.
fn has_topological_order(count: u32, edges: &[(u32, u32)]) -> bool {
    let mut left: Vec<u32> = (0..count).collect();
    while !left.is_empty() {
        let free = |id: &u32| !edges.iter().any(|(waiter, on)| waiter == id && left.contains(on));
        let Some(at) = left.iter().position(free) else { return false };
        left.remove(at);
    }
    true
}
