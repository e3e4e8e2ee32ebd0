//! Thresholds of a port as times: what a queue of so many bytes takes to drain. Comparing
//! times spares the hot path a division, and both kinds of port decide alike.

use crate::config::{Buffer, EcnConfig, PacketConfig, SwitchConfig};
use crate::packet::flag;
use weft_fabric::{Node, Port};
use weft_units::{Draw, PortId, Rate, Time, Wire, random};

/// When to mark and when to drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// No mark up to here.
    kmin: Time,
    /// A mark always beyond.
    kmax: Time,
    pmax: f64,
    /// No room beyond.
    capacity: Time,
}

impl Limits {
    /// The limits of `port` as an index into `all`, which keeps each kind once.
    pub(super) fn index_of(
        port: &Port,
        config: &SwitchConfig,
        packet: &PacketConfig,
        all: &mut Vec<Limits>,
    ) -> u32 {
        let own = match port.owner {
            Node::Host(_) => Limits::of_nic(),
            Node::Switch(_) => Limits::of_switch(config, packet, port.rate, is_last_hop(port)),
        };
        own.index_in(all)
    }

    /// Their index in `all`, which keeps each kind once.
    pub(super) fn index_in(self, all: &mut Vec<Limits>) -> u32 {
        let known = all.iter().position(|other| *other == self);
        known.unwrap_or_else(|| {
            all.push(self);
            all.len() - 1
        }) as u32
    }

    /// For a switch port of `rate`; `last_hop`: it leads to a host.
    pub(super) fn of_switch(
        config: &SwitchConfig,
        packet: &PacketConfig,
        rate: Rate,
        last_hop: bool,
    ) -> Limits {
        let capacity = match config.buffer {
            _ if config.pfc.is_some() => Time::MAX,
            Buffer::PerPort { bytes } => rate.serialize(bytes) + rounding(rate, bytes, packet),
            Buffer::Shared { .. } => Time::MAX,
        };
        let never = EcnConfig { kmin: u64::MAX, kmax: u64::MAX, pmax: 0.0 };
        let ecn = config.ecn.filter(|_| config.mark_last_hop || !last_hop).unwrap_or(never);
        let time = |bytes: u64| if bytes == u64::MAX { Time::MAX } else { rate.serialize(bytes) };
        Limits { kmin: time(ecn.kmin), kmax: time(ecn.kmax), pmax: ecn.pmax, capacity }
    }

    /// Of a port that takes nothing.
    pub(super) const SHUT: Limits =
        Limits { kmin: Time::MAX, kmax: Time::MAX, pmax: 0.0, capacity: Time::ZERO };

    /// For a NIC, which neither marks nor drops.
    fn of_nic() -> Limits {
        Limits { kmin: Time::MAX, kmax: Time::MAX, pmax: 0.0, capacity: Time::MAX }
    }

    /// Whether a packet of serialisation time `size` fits behind `backlog`.
    #[inline(always)]
    pub(super) fn fits(&self, backlog: Time, size: Time) -> bool {
        backlog + size <= self.capacity
    }

    /// Whether to mark a packet that finds `backlog`; `draw` gives the random bits.
    #[inline(always)]
    pub(super) fn marks(&self, backlog: Time, draw: impl FnOnce() -> u64) -> bool {
        if backlog <= self.kmin {
            return false;
        }
        backlog > self.kmax || self.marks_between(backlog, draw())
    }

    /// The ramp from 0 at `kmin` to `pmax` at `kmax`.
    #[cold]
    fn marks_between(&self, backlog: Time, bits: u64) -> bool {
        let share = (backlog - self.kmin).0 as f64 / (self.kmax - self.kmin).0 as f64;
        random::unit(bits) < share * self.pmax
    }
}

/// Whether `port` leads to a host.
pub(super) fn is_last_hop(port: &Port) -> bool {
    matches!(port.peer, Node::Host(_))
}

/// By how much the times of single packets, each rounded up, can exceed the time of `bytes`:
/// without it a buffer of a few packets would refuse the last one where rates are odd.
fn rounding(rate: Rate, bytes: u64, packet: &PacketConfig) -> Time {
    const PS_PER_BYTE_AT_1BPS: u64 = 8_000_000_000_000;
    if PS_PER_BYTE_AT_1BPS.is_multiple_of(rate.as_bps()) {
        return Time::ZERO;
    }
    Time(2 * (bytes / packet.largest()))
}

/// What a port never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) wire: Wire,
    pub(super) delay: Time,
}

impl Line {
    pub(super) fn new(port: &Port) -> Line {
        Line { wire: Wire::new(port.rate), delay: port.delay }
    }
}

/// Kinds of packet, as flags, that no switch marks. The mark of an acknowledgement is usually
/// the one that it echoes.
pub(super) fn unmarked(config: &SwitchConfig) -> u32 {
    if config.mark_control { 0 } else { flag::CONTROL }
}

/// The random bits for the decision whether `port` marks its `packet`-th packet.
#[inline(always)]
pub(super) fn mark_bits(draw: Draw, port: PortId, packet: u64) -> u64 {
    draw.at(u64::from(port.0), packet)
}
