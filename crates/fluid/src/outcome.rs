//! What a run leaves behind.

use crate::engine::Engine;
use weft_sim::{DurationHistogram, Outcome, PortResult};
use weft_units::{IdVec, PortId, Time};

impl Engine<'_> {
    /// All results; what only packets show is zero.
    pub(crate) fn outcome(mut self) -> Outcome {
        let ports = self.ports();
        self.totals.packet_hops = ports.iter().map(|port| port.packets).sum();
        for host in &self.hosts {
            self.totals.max_qps = self.totals.max_qps.max(host.most);
            self.totals.established_qps = self.totals.established_qps.max(host.established);
        }
        self.totals.full_buffers = self.buffers.full();
        let (nodes, rank_messages, durations) = match self.ranks {
            None => (Vec::new(), Vec::new(), DurationHistogram::default()),
            Some(ranks) => ranks.results(),
        };
        let last = nodes.iter().map(|node| node.finished).max();
        self.totals.cct = self.totals.cct.max(last.unwrap_or(Time::ZERO));
        Outcome {
            messages: self.results,
            nodes,
            rank_messages,
            durations,
            ports,
            series: Vec::new(),
            totals: self.totals,
        }
    }

    /// What every link carried; what was spread over a cut is spread over its links.
    fn ports(&self) -> IdVec<PortId, PortResult> {
        let all = self.config.fabric.ports();
        let port = |id: PortId| PortResult {
            bytes: self.bytes[id.0 as usize],
            packets: self.packets[id.0 as usize],
            ..PortResult::default()
        };
        let mut ports: IdVec<PortId, PortResult> = all.ids().map(port).collect();
        for cut in self.layout.cuts() {
            let resource = self.layout.cut(cut) as usize;
            let members = self.layout.ports_of(cut);
            for (place, id) in (0..).zip(&members) {
                let part = |sum: u64| {
                    let links = members.len() as u64;
                    sum / links + u64::from(place < sum % links)
                };
                ports[*id].bytes += part(self.bytes[resource]);
                ports[*id].packets += part(self.packets[resource]);
            }
        }
        ports
    }
}
