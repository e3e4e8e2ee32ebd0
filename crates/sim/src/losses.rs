//! Which queue pairs lost data packets, and how many: kept where packets are lost, which is far
//! from their two ends and cold.

use crate::config::RunConfig;
use crate::packet::LostPacket;
use crate::partition::ReceiverId;
use rustc_hash::FxHashMap;
use weft_units::HostId;

/// Data packets lost in one partition, by the receiving half of their queue pair.
#[derive(Debug)]
pub struct Losses {
    /// By destination host above the receiving half.
    counts: FxHashMap<u64, u32>,
    /// Where packets may have tags: the places of those that are of no use any more.
    tags: Option<Vec<u32>>,
    /// Where packets may have extended headers: the places of those that are of no use any more.
    headers: Option<Vec<u32>>,
    /// Data has such headers, too.
    on_data: bool,
}

impl Losses {
    /// None yet.
    pub(crate) fn new(config: &RunConfig) -> Losses {
        Losses {
            counts: FxHashMap::default(),
            tags: config.tags().then(Vec::new),
            headers: config.transport.recovery.reports().then(Vec::new),
            on_data: config.transport.congestion.grants_credit(),
        }
    }

    /// A packet is gone; only data counts.
    #[cold]
    pub(crate) fn add(&mut self, packet: LostPacket) {
        if let (Some(tags), Some(tag)) = (&mut self.tags, packet.tag()) {
            tags.push(tag);
        }
        if let (Some(headers), Some(place)) = (&mut self.headers, packet.header(self.on_data)) {
            headers.push(place);
        }
        if let Some((dst, receiver)) = packet.receiver() {
            let key = u64::from(dst.0) << 32 | u64::from(receiver.0);
            *self.counts.entry(key).or_default() += 1;
        }
    }

    /// The place of a tag whose packet is gone.
    pub(crate) fn take_tag(&mut self) -> Option<u32> {
        self.tags.as_mut()?.pop()
    }

    /// The place of an extended header whose packet is gone.
    pub(crate) fn take_header(&mut self) -> Option<u32> {
        self.headers.as_mut()?.pop()
    }
    /// How many of them are not taken yet.
    pub(crate) fn idle_headers(&self) -> usize {
        self.headers.as_ref().map_or(0, Vec::len)
    }

    /// How many tags are of no use any more, and not taken yet.
    pub(crate) fn idle_tags(&self) -> usize {
        self.tags.as_ref().map_or(0, Vec::len)
    }

    /// Destination, receiving half and count of every queue pair that lost something, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (HostId, ReceiverId, u32)> {
        let counts = self.counts.iter();
        counts.map(|(key, count)| (HostId((key >> 32) as u32), ReceiverId(*key as u32), *count))
    }
}
