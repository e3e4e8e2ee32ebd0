//! What a cut carries over time, while some of its links are degraded or down.

use super::drain;
use crate::cuts::Cut;
use std::collections::{BTreeMap, BTreeSet};
use weft_fabric::{Fabric, Failures};
use weft_sim::PacketConfig;
use weft_units::{PortId, Time};

/// What one cut carries.
pub(super) struct Carrying {
    /// The first from time zero on, then by time.
    steps: Vec<Step>,
}

/// From some time on.
struct Step {
    from: Time,
    /// The summed rate, in bits per second.
    bits: u128,
    /// Bytes that come through at this moment on top: a packet in service keeps the rate that it
    /// began with, on every link that changes.
    grace: u64,
}

/// The cuts with links that fail. Flaky links count as sound ones.
pub(super) fn carrying(
    fabric: &Fabric,
    failures: &Failures,
    packet: &PacketConfig,
) -> BTreeMap<(Cut, u32), Carrying> {
    let mut failing: BTreeMap<(Cut, u32), Vec<PortId>> = BTreeMap::new();
    for port in failures.ports() {
        if !failures.turning_points(port).is_empty() {
            for cut in Cut::of_link(fabric, port) {
                failing.entry(cut).or_default().push(port);
            }
        }
    }
    let over_time = |((cut, place), ports): ((Cut, u32), Vec<PortId>)| {
        let sound = cut.rate(fabric, place);
        ((cut, place), Carrying::new(fabric, failures, &ports, sound, packet))
    };
    failing.into_iter().map(over_time).collect()
}

impl Carrying {
    /// Of the links that `ports` feed.
    pub(super) fn of_links(
        fabric: &Fabric,
        failures: &Failures,
        ports: &[PortId],
        packet: &PacketConfig,
    ) -> Carrying {
        let rate = |port: &PortId| u128::from(fabric.ports()[*port].rate.as_bps());
        Carrying::new(fabric, failures, ports, ports.iter().map(rate).sum(), packet)
    }

    /// Of a cut that carries `sound` while all is well, and of whose links `ports` fail.
    fn new(
        fabric: &Fabric,
        failures: &Failures,
        ports: &[PortId],
        sound: u128,
        packet: &PacketConfig,
    ) -> Carrying {
        let full = u64::from(packet.mtu + packet.header);
        let turns: Vec<_> = ports.iter().map(|port| failures.turning_points(*port)).collect();
        let mut times = BTreeSet::from([Time::ZERO]);
        times.extend(turns.iter().flatten());
        let step = |from: Time| {
            let lost = |port: &PortId| {
                let line = fabric.ports()[*port].rate.as_bps();
                u128::from(line - failures.capacity(fabric, *port, from))
            };
            let bits = sound - ports.iter().map(lost).sum::<u128>();
            let changing = turns.iter().filter(|turns| turns.contains(&from)).count() as u64;
            Step { from, bits, grace: full * changing }
        };
        Carrying { steps: times.into_iter().map(step).collect() }
    }

    /// When `bytes` that come from `from` on are through, at the earliest; `None`: never.
    pub(super) fn carried(&self, from: Time, mut bytes: u64) -> Option<Time> {
        // A packet that comes in the instant of a step may be in service when it begins.
        let first = self.steps.partition_point(|step| step.from < from).saturating_sub(1);
        let mut at = from;
        for (index, step) in self.steps.iter().enumerate().skip(first) {
            let next = self.steps.get(index + 1);
            let through = (step.bits > 0).then(|| at.saturating_add(drain(bytes, step.bits)));
            let Some(next) = next else { return through };
            if through.is_some_and(|through| through <= next.from) {
                return through;
            }
            let span = u128::from(at.until(next.from).0);
            // Rounded up, and the packets in service with it: in favour of the run.
            let carried = (step.bits * span).div_ceil(8_000_000_000_000) as u64 + next.grace;
            at = next.from;
            bytes = bytes.saturating_sub(carried);
            if bytes == 0 {
                return Some(at);
            }
        }
        unreachable!("the last step returns")
    }
}
