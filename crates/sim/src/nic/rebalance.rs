//! Flows under way that get other routes all together, where a planner asks for that: after a
//! failure that it has learnt of.

use super::flow::SendingQp;
use crate::engine::Engine;
use crate::partition::OwnHost;
use crate::ports::Ports;
use crate::queue::EventQueue;
use weft_balance::plan::ActiveFlow;
use weft_units::IdVec;

impl SendingQp {
    /// What its planner is told of it, and what is left of it, where a packet carries `mtu`.
    fn active(&self, mtu: u32) -> ActiveFlow {
        let here = u64::from(self.sender.arrived()) * u64::from(mtu);
        ActiveFlow { flow: self.underway(None), left: self.bytes.saturating_sub(here) }
    }
}

impl<Q: EventQueue, P: Ports> Engine<'_, Q, P> {
    /// Lets the planner of `host` spread its flows anew, if it asks for that.
    pub(super) fn rebalance(&mut self, host: OwnHost) {
        if self.nics.hosts[host].planner.wants_rebalance() {
            let flows = (0..).zip(&self.nics.senders);
            let own = flows.filter(|(_, flow)| flow.src == host && !flow.is_done());
            let own: Vec<u32> = own.map(|(id, _)| id).collect();
            self.rebalance_flows(host, &own);
        }
    }

    /// The same for all hosts, in one look at all flows.
    #[cold]
    pub(crate) fn rebalance_all(&mut self) {
        let hosts: Vec<OwnHost> = self.nics.hosts.ids().collect();
        if !hosts.iter().any(|host| self.nics.hosts[*host].planner.wants_rebalance()) {
            return;
        }
        let mut flows: IdVec<OwnHost, Vec<u32>> = hosts.iter().map(|_| Vec::new()).collect();
        for (id, flow) in (0..).zip(&self.nics.senders).filter(|(_, flow)| !flow.is_done()) {
            flows[flow.src].push(id);
        }
        for host in hosts {
            if self.nics.hosts[host].planner.wants_rebalance() {
                self.rebalance_flows(host, &flows[host]);
            }
        }
    }

    /// The flows of a host are numbered in the order in which it opened them, or in that of places
    /// that became free: in its own, whatever other hosts do.
    #[cold]
    fn rebalance_flows(&mut self, host: OwnHost, own: &[u32]) {
        let mtu = self.config.packet.mtu;
        let flows: Vec<ActiveFlow> =
            own.iter().map(|id| self.nics.senders[*id as usize].active(mtu)).collect();
        let mut moved = Vec::new();
        let planner = &mut self.nics.hosts[host].planner;
        planner.rebalance(self.now, &flows, self.config.fabric, &mut moved);
        for (index, route) in moved {
            self.nics.senders[own[index] as usize].route = route;
            self.nics.time_outs.reroute(own[index], self.now);
        }
    }
}
