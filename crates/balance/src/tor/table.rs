//! Flows that are forgotten when they have been silent for some time.
//!
//! Invariant: a flow is found exactly until it has been silent for longer than the table
//! remembers, whether or not it is still in memory. What is in memory follows the flows that are
//! alive: all others go when a new one comes.

use super::FlowId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_units::Time;

/// The flows of one switch, with some state `V` each.
#[derive(Clone, Debug)]
pub(super) struct Table<V> {
    /// Never iterated: its order is nobody's business.
    flows: FxHashMap<FlowId, Entry<V>>,
    /// When each flow is to be looked at, to see whether it has been silent for too long.
    looks: BinaryHeap<Reverse<(Time, FlowId)>>,
    idle: Time,
    /// Most flows that were alive at once.
    most: usize,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    state: V,
    last: Time,
}

impl<V> Table<V> {
    /// Remembers flows that are silent for up to `idle`.
    pub(super) fn new(idle: Time) -> Table<V> {
        Table { flows: FxHashMap::default(), looks: BinaryHeap::new(), idle, most: 0 }
    }
    /// The state of `flow`, of which a packet passes now, if it is known.
    #[inline]
    pub(super) fn touch(&mut self, flow: FlowId, now: Time) -> Option<&mut V> {
        let entry = self.flows.get_mut(&flow)?;
        if entry.last.until(now) > self.idle {
            return None;
        }
        entry.last = now;
        Some(&mut entry.state)
    }
    /// The state of `flow`, if it is in memory.
    pub(super) fn get(&mut self, flow: FlowId) -> Option<&mut V> {
        self.flows.get_mut(&flow).map(|entry| &mut entry.state)
    }
    /// A flow that is not known begins.
    pub(super) fn insert(&mut self, flow: FlowId, now: Time, state: V) -> &mut V {
        self.forget(now);
        if self.flows.insert(flow, Entry { state, last: now }).is_none() {
            self.looks.push(Reverse((now.saturating_add(self.idle), flow)));
        }
        self.most = self.most.max(self.flows.len());
        &mut self.flows.get_mut(&flow).expect("just put there").state
    }
    /// Most flows that were alive at once.
    pub(super) fn most(&self) -> usize {
        self.most
    }
    /// Drops what has been silent for too long.
    fn forget(&mut self, now: Time) {
        while let Some(Reverse((at, flow))) = self.looks.peek().copied()
            && at < now
        {
            self.looks.pop();
            let Some(entry) = self.flows.get(&flow) else { continue };
            let end = entry.last.saturating_add(self.idle);
            if end < now {
                self.flows.remove(&flow);
            } else {
                self.looks.push(Reverse((end, flow)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::HostId;

    fn flow(key: u32) -> FlowId {
        FlowId { key, control: false, src: HostId(0), dst: HostId(1) }
    }

    #[test]
    fn silent_flows_are_forgotten_and_others_kept() {
        let mut table = Table::new(Time::us(10));
        for key in 0..100 {
            table.insert(flow(key), Time::us(u64::from(key)), key);
            assert_eq!(table.touch(flow(0), Time::us(u64::from(key))), Some(&mut 0));
            assert_eq!(table.flows.len(), table.looks.len());
            assert!(table.flows.len() <= 12, "flow 0 and eleven young ones");
        }
        assert_eq!(table.most(), 12);
        assert_eq!(table.touch(flow(0), Time::us(109)), Some(&mut 0), "silent for 10 us");
        assert_eq!(table.touch(flow(99), Time::us(110)), None, "silent for 11 us");
        // It begins anew, and is not counted twice.
        assert_eq!(*table.insert(flow(99), Time::us(110), 7), 7);
        assert_eq!(table.touch(flow(99), Time::us(120)), Some(&mut 7));
        assert_eq!(table.flows.len(), 2);
    }
}
