//! A switch, and the equal next hops of a packet there with the queues behind them.

use crate::config::RunConfig;
use crate::packet::HashFields;
use crate::partition::{OutPort, OwnSwitch, Partition, Partitioning};
use crate::ports::Ports;
use crate::world::Routes;
use weft_balance::forward::Hops;
use weft_balance::hash;
use weft_fabric::PortGroup;
use weft_units::{HostId, IdVec, PortId, SwitchId, Time};

/// What forwarding needs to know of a switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// Its number in the fabric.
    pub(crate) id: SwitchId,
    /// Its first port.
    pub(crate) first: PortId,
    /// What the partition's number of a port of it is more than the fabric's.
    shift: u32,
    /// Of its hash: its own, or one for all.
    pub(crate) salt: u64,
}

impl Switch {
    /// The partition's number of a port of it.
    #[inline(always)]
    pub(crate) fn own(self, port: PortId) -> OutPort {
        OutPort(port.0.wrapping_add(self.shift))
    }
    /// The place among its ports of the one that has this number in the partition.
    #[inline(always)]
    pub(crate) fn place(self, port: OutPort) -> u32 {
        port.0.wrapping_sub(self.shift).wrapping_sub(self.first.0)
    }
    /// The port among those of `group` that its hash picks.
    #[inline(always)]
    pub(crate) fn hashed(self, fields: HashFields, group: PortGroup) -> PortId {
        let hop = hash::choose(fields.key(), fields.entropy, self.salt, group.count);
        PortId(group.first.0 + hop)
    }
    /// The switches of a partition.
    pub(crate) fn all(
        config: &RunConfig,
        partitioning: &Partitioning,
        partition: &Partition,
    ) -> IdVec<OwnSwitch, Switch> {
        let switch = |id: &SwitchId| {
            let salted = if config.switch.same_salt { SwitchId(0) } else { *id };
            let first = config.fabric.ports_of(*id).first;
            let shift = partitioning.ports[first].own.0.wrapping_sub(first.0);
            Switch { id: *id, first, shift, salt: hash::salt(config.seed, salted) }
        };
        partition.switches.iter().map(switch).collect()
    }
}

/// The equal next hops of one packet, as a scheme sees them.
pub(crate) struct NextHops<'a, P> {
    ports: &'a P,
    now: Time,
    group: PortGroup,
    /// Those of the group that are left, if some are not.
    left: Option<&'a [PortId]>,
    /// Of those.
    weights: Option<&'a [u32]>,
    /// The switch that chooses.
    switch: Switch,
}

impl<'a, P> NextHops<'a, P> {
    /// Those of `switch` towards `dst`, of `group` or only some `among` it, by what routing knows where that is not
    /// as usual.
    pub(crate) fn new(
        ports: &'a P,
        now: Time,
        routes: Option<&'a Routes>,
        switch: Switch,
        (dst, group, among): (HostId, PortGroup, Option<&'a [PortId]>),
    ) -> NextHops<'a, P> {
        let (left, weights) = routes.map_or((None, None), |routes| routes.of(switch.id, dst));
        NextHops { ports, now, group, left: left.or(among), weights, switch }
    }
}

impl<P: Ports> Hops for NextHops<'_, P> {
    #[inline]
    fn count(&self) -> u32 {
        self.left.map_or(self.group.count, |ports| ports.len() as u32)
    }
    #[inline]
    fn queued(&self, hop: u32) -> u64 {
        self.ports.queued_bytes(self.now, self.switch.own(self.port(hop)))
    }
    #[inline]
    fn port(&self, hop: u32) -> PortId {
        match self.left {
            None => PortId(self.group.first.0 + hop),
            Some(ports) => ports[hop as usize],
        }
    }
    fn group(&self) -> u32 {
        self.port(0).0
    }
    fn places(&self) -> u32 {
        self.group.count
    }
    fn place(&self, hop: u32) -> u32 {
        self.port(hop).0 - self.group.first.0
    }
    fn weights(&self) -> Option<&[u32]> {
        self.weights
    }
}
