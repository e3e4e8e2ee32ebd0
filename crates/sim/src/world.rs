//! What all domains of a run read and none changes.

use crate::config::RunConfig;
use crate::cut::Cut;
use crate::jobs::{ReceivingId, SendingId};
use weft_units::{IdVec, MessageId};
use weft_workload::Dependents;

/// The run, its cut, and where each message's state is found.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) config: &'a RunConfig<'a>,
    pub(crate) cut: Cut,
    pub(crate) dependents: Dependents,
    /// In the domain of its sender.
    pub(crate) sending: IdVec<MessageId, SendingId>,
    /// In the domain of its receiver.
    pub(crate) receiving: IdVec<MessageId, ReceivingId>,
}

impl<'a> World<'a> {
    /// For a run in `domains` domains, or as many as its fabric can be cut into.
    pub(crate) fn new(config: &'a RunConfig<'a>, domains: u32) -> World<'a> {
        // Domains must not take a window for a stall.
        let domains = if config.stall_after < config.fabric.min_delay() { 1 } else { domains };
        let cut = Cut::new(config.fabric, domains);
        let mut sent = vec![0; cut.territories.len()];
        let mut received = vec![0; cut.territories.len()];
        let next = |counts: &mut [u32], domain: u16| {
            let count = &mut counts[usize::from(domain)];
            *count += 1;
            *count - 1
        };
        let (mut sending, mut receiving) = (IdVec::new(), IdVec::new());
        for message in config.workload.messages().iter() {
            sending.push(SendingId(next(&mut sent, cut.hosts[message.src].domain)));
            receiving.push(ReceivingId(next(&mut received, cut.hosts[message.dst].domain)));
        }
        World { config, cut, dependents: config.workload.dependents(), sending, receiving }
    }
}
