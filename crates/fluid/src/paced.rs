//! Flows whose rate is told: after each packet a gap passes.
//!
//! By rates the bytes of a packet take all of its gap to cross. But nobody waits for the gap behind the last one:
//! that packet crosses as fast as its links are, after the last packets of others that send in step there. So a
//! flow is through before all of its bytes would be; what it is then short of is *spared*. A persistent queue
//! pair keeps its gap: what it carries next waits until that is over, as by packets.

use crate::engine::Engine;
use crate::flows::Flow;
use weft_balance::plan::Carrier;
use weft_transport::CongestionConfig;
use weft_units::{HostId, Time};

/// So few bytes are nothing.
const NOTHING: f64 = 1e-6;

impl Engine<'_> {
    /// Bytes of the wire that a flow need not wait for, if it has its links to itself.
    pub(crate) fn most_spared(&self, flow: &Flow) -> f64 {
        match self.config.transport.congestion {
            CongestionConfig::FixedRate(_) => {
                self.last_packet(flow) as f64 * f64::from(flow.subflows)
            }
            _ => 0.0,
        }
    }

    /// Bytes of the wire that a flow need not wait for, beside those that are there now.
    fn spared(&self, flow: &Flow) -> f64 {
        match self.most_spared(flow) {
            0.0 => 0.0,
            most => most * (1.0 - self.rates.fullest(flow.rates)).max(0.0),
        }
    }

    /// Whether a flow that seemed to be through has to go on, since others have come to its links meanwhile: until
    /// then.
    pub(crate) fn goes_on_until(&self, flow: &Flow) -> Option<Time> {
        let left = flow.left_at(self.now) - self.spared(flow);
        let is_late = left > NOTHING && flow.rate > 0.0;
        is_late.then(|| self.now.saturating_add(Time((left / flow.rate).ceil() as u64)))
    }

    /// A flow is through, and its queue pair waits for the rest of its gap.
    pub(crate) fn keep_gap(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let left = flow.left_at(self.now);
        if left <= NOTHING {
            return;
        }
        flow.left = 0.0;
        if let Some(pair) = flow.subflow.carrier.persistent() {
            let over = self.now.saturating_add(Time((left / flow.rate).ceil() as u64));
            self.hosts[flow.src.0 as usize].gaps.insert(pair, over);
        }
    }

    /// For how long the queue pair of a subflow still waits.
    pub(crate) fn gap_of(&self, src: HostId, carrier: Carrier) -> Time {
        let gaps = &self.hosts[src.0 as usize].gaps;
        let over = carrier.persistent().and_then(|pair| gaps.get(&pair));
        over.map_or(Time::ZERO, |over| self.now.until(*over))
    }
}
