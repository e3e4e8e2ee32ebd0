//! A host: its planner and its NIC.

use super::persistent::PersistentQps;
use super::reports::Credit;
use crate::config::RunConfig;
use crate::partition::{OwnHost, Partition};
use weft_balance::Planner;
use weft_balance::plan::QueuePairId;
use weft_units::{Draw, HostId, IdVec, Stream, Time};

/// A host: its planner, and what its NIC knows of it.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number in the fabric.
    pub(super) id: HostId,
    pub(super) planner: Planner,
    /// Places of queue pairs that are over. Each host has its own, so that the order in which its
    /// queue pairs are numbered does not depend on what others do.
    pub(super) free: Vec<u32>,
    /// Random positions in the round.
    pub(super) positions: Stream,
    /// A `Wake` event is under way.
    pub(super) waking: bool,
    /// When the pending `Flush` event comes.
    pub(super) flush_at: Option<Time>,
    pub(super) persistent: PersistentQps,
    active: u32,
    most_active: u32,
    established: u32,
    /// Subflows that it has opened.
    pub(super) opened: u32,
    /// What it grants those who send to it, if that is how they are controlled.
    pub(super) credit: Option<Box<Credit>>,
}

impl Host {
    /// The hosts of a partition.
    pub(crate) fn all(config: &RunConfig, partition: &Partition) -> IdVec<OwnHost, Host> {
        let positions = Draw::new(config.seed, "queue-position");
        let hosts = partition.hosts.iter();
        hosts
            .map(|host| Host {
                id: *host,
                planner: Planner::knowing(
                    config.hashing(),
                    &config.balance,
                    *host,
                    config.seed,
                    config.packet.mtu,
                ),
                free: Vec::new(),
                positions: positions.stream(u64::from(host.0)),
                waking: false,
                flush_at: None,
                persistent: PersistentQps::default(),
                active: 0,
                most_active: 0,
                established: 0,
                opened: 0,
                credit: Credit::new(config, *host),
            })
            .collect()
    }
    pub(crate) fn most_active(&self) -> u32 {
        self.most_active
    }
    pub(crate) fn established(&self) -> u32 {
        self.established
    }
    /// A subflow begins, on a persistent queue pair or on its own.
    pub(super) fn open_queue_pair(&mut self, id: Option<QueuePairId>) {
        self.opened += 1;
        let (is_active, is_known) = id.map_or((false, false), |id| self.persistent.open(id));
        self.established += u32::from(!is_known);
        self.active += u32::from(!is_active);
        self.most_active = self.most_active.max(self.active);
    }
    /// A subflow is acknowledged to the end.
    pub(super) fn close_queue_pair(&mut self, id: Option<QueuePairId>) {
        let is_active = id.is_some_and(|id| self.persistent.close(id));
        self.active -= u32::from(!is_active);
    }
}
