//! What all domains of a run read and none changes.

use crate::config::RunConfig;
use crate::cut::{Cut, lookahead};
use crate::jobs::{ReceivingId, SendingId};
use weft_units::{IdVec, MessageId, Time};
use weft_workload::Dependents;

/// The run, its cut, and where each message's state is found.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) config: &'a RunConfig<'a>,
    pub(crate) cut: Cut,
    /// How long it takes until a host hears that a dependency was met at another: the smallest
    /// link delay.
    pub(crate) news_delay: Time,
    pub(crate) dependents: Dependents,
    /// In the domain of its sender.
    pub(crate) sending: IdVec<MessageId, SendingId>,
    /// In the domain of its receiver.
    pub(crate) receiving: IdVec<MessageId, ReceivingId>,
}

impl<'a> World<'a> {
    /// For a run in `domains` domains, or as many as its fabric can be cut into.
    pub(crate) fn new(config: &'a RunConfig<'a>, domains: u32) -> World<'a> {
        // A window without a sign of life must not be a stall.
        let domains = if config.stall_after < lookahead(config) { 1 } else { domains };
        let cut = Cut::new(config, domains);
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
        let news_delay = config.fabric.min_delay();
        let dependents = config.workload.dependents();
        World { config, cut, news_delay, dependents, sending, receiving }
    }
}
