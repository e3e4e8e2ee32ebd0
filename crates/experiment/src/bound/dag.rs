//! Along dependencies: when each message can be posted and received at the earliest.

use super::Ground;
use weft_units::{IdVec, MessageId, Time};
use weft_workload::{When, Workload};

/// The earliest post of every message: each has the network to itself.
pub(super) fn earliest(ground: &Ground<'_>, workload: &Workload) -> IdVec<MessageId, Time> {
    let messages = workload.messages();
    let dependents = workload.dependents();
    let mut posted: IdVec<MessageId, Time> = messages.iter().map(|m| m.start).collect();
    for id in dependents.in_order() {
        let message = &messages[id];
        let received = received(ground, workload, &posted, id);
        let ends = [
            (When::Received, received, message.dst),
            (When::Sent, received + ground.path(message.src, message.dst).back, message.src),
        ];
        for (when, reached, observer) in ends {
            for next in dependents.waiting(id, when) {
                let waiting = &messages[*next];
                // Another host hears of it one smallest link delay later (weft-sim, jobs).
                let news = match waiting.src == observer {
                    true => reached,
                    false => reached + ground.fabric.min_delay(),
                };
                posted[*next] = posted[*next].max(news.saturating_add(waiting.start));
            }
        }
    }
    posted
}

/// The earliest receipt of any message's last byte, at its largest.
pub(super) fn longest(
    ground: &Ground<'_>,
    workload: &Workload,
    posted: &IdVec<MessageId, Time>,
) -> Time {
    let ids = workload.messages().ids();
    ids.map(|id| received(ground, workload, posted, id)).max().unwrap_or(Time::ZERO)
}

fn received(
    ground: &Ground<'_>,
    workload: &Workload,
    posted: &IdVec<MessageId, Time>,
    id: MessageId,
) -> Time {
    let message = &workload.messages()[id];
    posted[id] + ground.alone(message.src, message.dst, message.bytes)
}
