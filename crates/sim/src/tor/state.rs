//! The states of switches.

use crate::config::RunConfig;
use crate::outcome::TorCounts;
use crate::packet::Packed;
use crate::partition::{OwnSwitch, Partition};
use weft_balance::tor::{Tor, TorContext};
use weft_units::{IdVec, Rate, SwitchId, Time};

/// The states of a partition's switches.
#[derive(Debug)]
pub(crate) struct Tors {
    /// What is held is a packet, beside the port that it came in by.
    pub(super) states: IdVec<OwnSwitch, Option<Tor<Packed>>>,
    /// When the `Leaf` events of each come, the next one last.
    pub(super) alarms: IdVec<OwnSwitch, Vec<Time>>,
    /// Scratch: what is let go.
    pub(super) out: Vec<Packed>,
    /// Control packets, at both ends.
    pub(crate) written: u64,
    pub(crate) read: u64,
}

/// What `switch` keeps in a run.
fn state(config: &RunConfig, switch: SwitchId) -> Option<Tor<Packed>> {
    let RunConfig { fabric, seed, packet, .. } = *config;
    let packet = packet.mtu + packet.header;
    config.balance.scheme.tor(&TorContext { switch, fabric, seed, packet })
}

/// Whether `switch` keeps a state.
pub(crate) fn keeps(config: &RunConfig, switch: SwitchId) -> bool {
    config.balance.scheme.info().tor.includes(switch.0 < config.fabric.leaves())
}

impl Tors {
    /// Those of a partition, if the scheme has any.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> Option<Tors> {
        let states = || partition.switches.iter().map(|switch| state(config, *switch)).collect();
        let mut tors = config.tags().then(|| Tors {
            states: states(),
            alarms: partition.switches.iter().map(|_| Vec::new()).collect(),
            out: Vec::new(),
            written: 0,
            read: 0,
        })?;
        for (own, switch) in partition.switches.enumerate() {
            for (place, port) in (0..).zip(config.fabric.ports_of(*switch).ids()) {
                tors.set_rate(own, place, config.port_at_start(port).rate);
            }
        }
        Some(tors)
    }
    /// The `port`-th port of `switch` has another rate from now on.
    pub(crate) fn set_rate(&mut self, switch: OwnSwitch, port: u32, rate: Rate) {
        if let Some(Tor::Conga(state)) = &mut self.states[switch] {
            state.set_rate(port, rate);
        }
    }
    /// Adds what they took to `counts`.
    pub(crate) fn add_counts(&self, counts: &mut TorCounts) {
        self.states.iter().flatten().for_each(|state| counts.add(&state.counts()));
    }
    /// Whether `switch` keeps something.
    pub(crate) fn keeps(&self, switch: OwnSwitch) -> bool {
        self.states[switch].is_some()
    }
    /// Packets that are held.
    pub(crate) fn holding(&self) -> u64 {
        let held = self.states.iter().flatten().map(|state| match state {
            Tor::ConWeave(leaf) => leaf.holding(),
            Tor::Conga(_) | Tor::Themis(_) | Tor::Glb(_) => 0,
        });
        held.sum()
    }
}
