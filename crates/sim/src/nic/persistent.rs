//! Persistent queue pairs: they carry one subflow after the other, as a planner hands them out.
//!
//! Each subflow is a flow with a window of packet numbers, loss recovery and acknowledgements of its
//! own, and begins once the last packet of the one before is on the wire. Congestion control goes
//! over from subflow to subflow, and so does the pace. What this simplifies: a subflow that must send
//! packets again does so beside its successor, where one queue pair would hold that one back, and
//! feedback on the last packets of a subflow teaches its successor nothing.

use weft_balance::plan::QueuePairId;
use weft_transport::Congestion;
use weft_units::{IdVec, Time};

/// Those of one host, by the numbers of its planner.
#[derive(Debug, Default)]
pub(super) struct PersistentQps(IdVec<QueuePairId, PersistentQp>);

/// A queue pair of one host.
#[derive(Clone, Debug, Default)]
struct PersistentQp {
    /// Subflows on it that are not acknowledged to the end.
    open: u32,
    /// It has carried one.
    used: bool,
    /// What its last subflow left.
    left: Left,
}

/// What a subflow leaves to the next one on its queue pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    /// The state of congestion control; a new one, if there is none.
    pub(super) congestion: Option<Congestion>,
    /// When the next packet is due.
    pub(super) due: Time,
}

impl PersistentQps {
    fn get(&mut self, id: QueuePairId) -> &mut PersistentQp {
        while self.0.len() <= id.0 as usize {
            self.0.push(PersistentQp::default());
        }
        &mut self.0[id]
    }
    /// What a new subflow takes over from the one before.
    pub(super) fn take_over(&mut self, id: QueuePairId) -> Left {
        std::mem::take(&mut self.get(id).left)
    }
    /// The last packet of a subflow is on the wire: the next one takes over.
    pub(super) fn leave(&mut self, id: QueuePairId, left: Left) {
        self.get(id).left = left;
    }
    /// A subflow begins. Returns whether another one is not acknowledged to the end, and whether the
    /// queue pair has carried one before.
    pub(super) fn open(&mut self, id: QueuePairId) -> (bool, bool) {
        let queue_pair = self.get(id);
        queue_pair.open += 1;
        (queue_pair.open > 1, std::mem::replace(&mut queue_pair.used, true))
    }
    /// A subflow is acknowledged to the end. Returns whether another one is not.
    pub(super) fn close(&mut self, id: QueuePairId) -> bool {
        let queue_pair = self.get(id);
        queue_pair.open -= 1;
        queue_pair.open > 0
    }
}
