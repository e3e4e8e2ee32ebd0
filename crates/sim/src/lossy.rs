//! Links that may lose what they carry: dead and flaky ones.

use crate::config::RunConfig;
use crate::partition::{InLink, Partition};
use rustc_hash::FxHashMap;
use weft_fabric::{Losses, Port};
use weft_units::{Time, Wire};

/// The links that end in a partition and may lose packets.
#[derive(Debug)]
pub(crate) struct LossyLinks {
    links: FxHashMap<InLink, Lossy>,
}

/// A link that may lose packets.
#[derive(Debug)]
struct Lossy {
    losses: Losses,
    wire: Wire,
    delay: Time,
    /// The start of the last transmission that was looked at.
    asked: Time,
}

impl LossyLinks {
    /// The links that end in a partition.
    pub(crate) fn new(config: &RunConfig, partition: &Partition) -> LossyLinks {
        let links = partition.links.enumerate().filter_map(|(own, id)| {
            let Port { rate, delay, .. } = config.port_at_start(*id);
            let losses = config.failures.losses(*id)?;
            Some((own, Lossy { losses, wire: Wire::new(rate), delay, asked: Time::ZERO }))
        });
        LossyLinks { links: links.collect() }
    }

    /// Whether a packet of `size` bytes, which should arrive by `link` now, was lost on it.
    #[cold]
    pub(crate) fn is_lost(&mut self, now: Time, link: InLink, size: u16) -> bool {
        let Some(lossy) = self.links.get_mut(&link) else { return false };
        let left = now - lossy.delay;
        let began = left.0.saturating_sub(lossy.wire.time(u32::from(size)).0);
        // Where the rate changed in between, the start is not exact, and must not run back.
        lossy.asked = lossy.asked.max(Time(began));
        lossy.losses.is_lost(lossy.asked, left.max(lossy.asked))
    }
}
