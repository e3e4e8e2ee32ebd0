//! Receives from any rank or of any tag: which message each gets.

use super::tasks::{ANY, Message, Op, Task};
use crate::WorkloadError;
use crate::trace::Remark;
use std::collections::{BTreeMap, VecDeque};

/// Gives every receive that leaves its sender or its tag open the next message to its rank that no other
/// receive names, the senders in their order, and of each in the order of the file.
pub(super) fn resolve(name: &str, ranks: &mut [Vec<Task>]) -> Result<Vec<Remark>, WorkloadError> {
    let open =
        |task: &Task| matches!(&task.op, Op::Receive(one) if one.peer == ANY || one.tag == ANY);
    let count: usize =
        ranks.iter().map(|tasks| tasks.iter().filter(|task| open(task)).count()).sum();
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut unnamed = unnamed(ranks);
    for (rank, tasks) in (0u32..).zip(ranks.iter_mut()) {
        let mut left = unnamed.remove(&rank).unwrap_or_default();
        for task in tasks.iter_mut().filter(|task| open(task)) {
            let Op::Receive(one) = &mut task.op else { continue };
            let fits = |other: &Message| {
                (one.peer == ANY || one.peer == other.peer)
                    && (one.tag == ANY || one.tag == other.tag)
            };
            let Some(at) = left.iter().position(fits) else {
                let what = "waits for a message from any rank, or with any tag, that nobody sends; \
                            add the send or remove the receive";
                return Err(WorkloadError(format!(
                    "{name}: rank {rank}, line or record {}: {what}",
                    task.place
                )));
            };
            let message = left.remove(at).expect("it was found");
            (one.peer, one.tag) = (message.peer, message.tag);
        }
    }
    let what =
        "receives from any rank or with any tag take messages by sender and place, not as they \
                come"
            .to_owned();
    Ok(vec![Remark { what, count: count as u64 }])
}

/// By receiver, the messages that no receive names by sender and tag; `peer` is the sender.
fn unnamed(ranks: &[Vec<Task>]) -> BTreeMap<u32, VecDeque<Message>> {
    let mut named: BTreeMap<(u32, u32, u32), u64> = BTreeMap::new();
    for (rank, tasks) in (0u32..).zip(ranks) {
        for task in tasks {
            if let Op::Receive(Message { peer, tag, .. }) = &task.op
                && *peer != ANY
                && *tag != ANY
            {
                *named.entry((*peer, rank, *tag)).or_default() += 1;
            }
        }
    }
    let mut left: BTreeMap<u32, VecDeque<Message>> = BTreeMap::new();
    for (rank, tasks) in (0u32..).zip(ranks) {
        for task in tasks {
            let Op::Send(Message { peer, bytes, tag }) = task.op else { continue };
            match named.get_mut(&(rank, peer, tag)).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => left.entry(peer).or_default().push_back(Message { peer: rank, bytes, tag }),
            }
        }
    }
    left
}
