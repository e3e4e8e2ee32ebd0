//! Does the run get on? Looked at whenever it has come to one of a row of times, which follow
//! from the run alone, so that no partitioning and no number of threads changes what is seen.

use crate::config::RunConfig;
use crate::engine::Engine;
use crate::halt::{Ending, Silence};
use crate::progress::Progress;
use crate::world::World;
use weft_units::Time;

/// When it was last looked, and what had been seen by then.
#[derive(Debug)]
pub(super) struct Watch {
    /// From one look to the next.
    every: Time,
    /// The next look.
    next: Time,
    /// Data packets that had been sent at the last look that saw progress.
    packets: u64,
}

/// Looks in the time that a run is patient for: so much later than that it may end.
const LOOKS: u64 = 16;

impl Watch {
    pub(super) fn new(config: &RunConfig) -> Watch {
        let every =
            (config.stall_after.0 / LOOKS).min(time_for(config, config.stall_packets / LOOKS));
        Watch { every: Time(every.max(1)), next: Time(every.max(1)), packets: 0 }
    }

    /// Where an epoch that begins at `start` must end at the latest: at the next look.
    pub(super) fn next_after(&mut self, start: u64) -> u64 {
        let every = self.every.0;
        self.next = Time((start / every).saturating_add(1).saturating_mul(every));
        self.next.0
    }

    /// Whether the look comes before an epoch that begins at `start`.
    pub(super) fn is_due(&self, start: u64) -> bool {
        start >= self.next.0
    }

    /// Looks at all partitions, which have handled everything before the look and nothing after it.
    pub(super) fn look<'e, 'a: 'e, Q: 'e, P: 'e>(
        &mut self,
        world: &World<'a>,
        engines: impl Iterator<Item = &'e Engine<'a, Q, P>> + Clone,
    ) -> Option<Ending> {
        let progress = Progress::of_all(engines.clone().map(|engine| engine.counts.progress));
        let packets = engines.map(|engine| engine.counts.totals.packets).sum();
        let now = self.next;
        let silent = |silence| Some(Ending::Stalled(silence));
        if progress.silence() > progress.patience(world.config.stall_after) {
            return silent(Silence { since: progress.last, now: progress.awaited, packets: None });
        }
        // What is sent before a change of the fabric may be in vain until then.
        if progress.last >= now - self.every || now <= world.last_change {
            self.packets = packets;
        } else if packets - self.packets > world.config.stall_packets {
            let packets = Some(packets - self.packets);
            return silent(Silence { since: progress.last, now, packets });
        }
        None
    }
}

/// How long all NICs together take to send `packets` full packets.
fn time_for(config: &RunConfig, packets: u64) -> u64 {
    let fabric = config.fabric;
    let full = u64::from(config.packet.mtu + config.packet.header);
    let in_a_second = |rate: weft_units::Rate| rate.as_bps() / (8 * full).max(1);
    let all: u64 = fabric.nics().map(|nic| in_a_second(fabric.ports()[nic].rate)).sum();
    let picoseconds = u128::from(packets) * u128::from(Time::secs(1).0) / u128::from(all.max(1));
    u64::try_from(picoseconds).unwrap_or(u64::MAX)
}
