//! Persistent queue pairs: they carry one subflow after the other, as a planner hands them out.
//!
//! Each subflow is a flow with a window of packet numbers, loss recovery and acknowledgements of its
//! own, and begins once the last packet of the one before is on the wire. Congestion control goes
//! over from subflow to subflow, and so does the pace. What this simplifies: a subflow that must send
//! packets again does so beside its successor, where one queue pair would hold that one back, and
//! feedback on the last packets of a subflow teaches its successor nothing.

use super::Host;
use crate::engine::Engine;
use crate::partition::OwnHost;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::plan::QueuePairId;
use weft_transport::Congestion;
use weft_units::Time;

/// A queue pair of one host.
#[derive(Clone, Debug, Default)]
pub(super) struct PersistentQp {
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

impl Host {
    fn persistent(&mut self, id: QueuePairId) -> &mut PersistentQp {
        while self.persistent.len() <= id.0 as usize {
            self.persistent.push(PersistentQp::default());
        }
        &mut self.persistent[id]
    }
    /// What a new subflow takes over from the one before.
    pub(super) fn take_over(&mut self, id: Option<QueuePairId>) -> Left {
        id.map_or_else(Left::default, |id| std::mem::take(&mut self.persistent(id).left))
    }
    /// A subflow begins, on a persistent queue pair or on its own.
    pub(super) fn open_queue_pair(&mut self, id: Option<QueuePairId>) {
        self.opened += 1;
        let (is_active, is_known) = match id.map(|id| self.persistent(id)) {
            None => (false, false),
            Some(queue_pair) => {
                queue_pair.open += 1;
                (queue_pair.open > 1, std::mem::replace(&mut queue_pair.used, true))
            }
        };
        self.established += u32::from(!is_known);
        self.active += u32::from(!is_active);
        self.most_active = self.most_active.max(self.active);
    }
    /// A subflow is acknowledged to the end.
    pub(super) fn close_queue_pair(&mut self, id: Option<QueuePairId>) {
        let is_active = id.is_some_and(|id| {
            let queue_pair = self.persistent(id);
            queue_pair.open -= 1;
            queue_pair.open > 0
        });
        self.active -= u32::from(!is_active);
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// The last packet of flow `id`, on a persistent queue pair, is on the wire: that takes the next
    /// subflow.
    #[cold]
    pub(super) fn hand_over(&mut self, host: OwnHost, queue_pair: QueuePairId, id: u32) {
        let flow = &self.senders[id as usize];
        let left = Left { congestion: Some(flow.congestion.clone()), due: flow.due };
        let state = &mut self.hosts[host];
        state.persistent(queue_pair).left = left;
        let subflow = state.planner.next(self.now, queue_pair, self.config.fabric);
        self.subflows.extend(subflow);
        self.open_flows(host);
    }
}
