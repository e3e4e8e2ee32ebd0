//! What will happen, in the order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use weft_units::{HostId, MessageId, Time};

/// What will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A message of the workload has waited for all that it depends on.
    Post(MessageId),
    /// A planner's batch is complete.
    Flush(HostId),
    /// A subflow starts later than its message was posted.
    Start(u32),
    /// The first packet of a flow has waited in queues.
    Waited(u32),
    /// All of a flow may have left its NIC.
    Sent { flow: u32, version: u32 },
    /// All of a flow may have crossed its links.
    Finish { flow: u32, version: u32 },
    /// The last acknowledgement of a flow is in.
    Acknowledged(u32),
    /// The last byte of a message is there.
    Received(u32),
    /// Something is due at a rank.
    Rank(u32),
    /// All rounds of a ring may be done.
    RingDone { ring: u32, version: u64 },
    /// Windows have grown.
    Grow,
    /// Packets wait longer, or not as long, and windows have changed.
    Queues,
    /// Routing has learnt of links.
    Learn(u32),
    /// Links carry more or less from now on.
    Turn,
    /// A flow that lost packets has heard nothing for too long.
    TimeOut { flow: u32, version: u32 },
    /// A flow that lost packets knows it from those that came after.
    Resume { flow: u32, version: u32 },
}

/// What will happen when: the time above the number of its push, so that one comparison tells.
#[derive(Clone, Copy, Debug)]
struct Next {
    key: u128,
    what: What,
}

impl PartialEq for Next {
    fn eq(&self, other: &Next) -> bool {
        self.key == other.key
    }
}
impl Eq for Next {}
impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Next {
    /// The earliest is the greatest: it comes first.
    fn cmp(&self, other: &Next) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// All of it. What is due at one time comes in the order in which it was pushed.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Next>,
    pushed: u64,
    /// How many of them happen to the fabric, whatever the traffic does.
    of_fabric: usize,
}

impl What {
    fn is_of_fabric(self) -> bool {
        matches!(self, What::Turn | What::Learn(_))
    }
}

impl Agenda {
    pub(crate) fn push(&mut self, at: Time, what: What) {
        self.pushed += 1;
        self.of_fabric += usize::from(what.is_of_fabric());
        let key = u128::from(at.0) << 64 | u128::from(self.pushed);
        self.heap.push(Next { key, what });
    }
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|next| Time((next.key >> 64) as u64))
    }
    pub(crate) fn pop(&mut self) -> Option<(Time, What)> {
        let Next { key, what } = self.heap.pop()?;
        self.of_fabric -= usize::from(what.is_of_fabric());
        Some((Time((key >> 64) as u64), what))
    }
    /// Whether nothing of the traffic is still to happen.
    pub(crate) fn is_over(&self) -> bool {
        self.heap.len() == self.of_fabric
    }
}
