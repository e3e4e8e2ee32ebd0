//! Where a switch has placed the flows that pass it.
//!
//! A flow that was silent for longer than the table remembers counts as new, and so does one
//! whose set of hops has another size than before: its number of the hop may mean another port.
//! Invariant: whether the entry of such a flow is still in memory makes no difference. Memory
//! follows the flows that are alive, not the packets or all flows ever seen.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use weft_units::Time;

/// How long a flow may be silent and keep its place, unless its scheme says otherwise: longer
/// than any packet of it can still be on its way.
pub const IDLE: Time = Time::ms(10);

/// The flows of one switch.
#[derive(Clone, Debug)]
pub struct FlowTable {
    /// Never iterated: its order is nobody's business.
    flows: FxHashMap<u64, Place>,
    /// The same flows, in the order in which they will be looked at for eviction.
    rounds: VecDeque<u64>,
    idle: Time,
}

/// Where a flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The hop that the flow takes, among the equal ones.
    pub hop: u32,
    /// How many hops there are to choose from.
    count: u32,
    /// When its last packet passed.
    pub last: Time,
}

impl FlowTable {
    /// Remembers flows that are silent for up to `idle`.
    pub fn new(idle: Time) -> FlowTable {
        FlowTable { flows: FxHashMap::default(), rounds: VecDeque::new(), idle }
    }
    /// How many flows it holds in memory.
    pub fn len(&self) -> usize {
        self.flows.len()
    }
    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
    /// The place of `flow` among `count` hops; `None` for a new one. Whoever sends a packet
    /// there sets `last`.
    #[inline]
    pub fn find(&mut self, flow: u64, now: Time, count: u32) -> Option<&mut Place> {
        let idle = self.idle;
        let place = self.flows.get_mut(&flow)?;
        (place.count == count && place.last.until(now) <= idle).then_some(place)
    }
    /// Places a new flow, or one anew.
    pub fn place(&mut self, flow: u64, now: Time, count: u32, hop: u32) {
        if self.flows.insert(flow, Place { hop, count, last: now }).is_none() {
            // Two looks a new flow: the silent ones stay fewer than the others.
            self.evict(now);
            self.evict(now);
            self.rounds.push_back(flow);
        }
    }
    /// Looks at the flow that was not looked at for longest, and forgets it if it is silent.
    fn evict(&mut self, now: Time) {
        let Some(flow) = self.rounds.pop_front() else { return };
        if self.flows[&flow].last.until(now) > self.idle {
            self.flows.remove(&flow);
        } else {
            self.rounds.push_back(flow);
        }
    }
}
