//! Which queue pairs lost data packets, and how many: kept where packets are lost, which is far
//! from their two ends and cold.

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
}

impl Losses {
    /// None yet. Whether packets may have tags.
    pub(crate) fn new(tagged: bool) -> Losses {
        Losses { counts: FxHashMap::default(), tags: tagged.then(Vec::new) }
    }

    /// A packet is gone; only data counts.
    #[cold]
    pub(crate) fn add(&mut self, packet: LostPacket) {
        if let (Some(tags), Some(tag)) = (&mut self.tags, packet.tag()) {
            tags.push(tag);
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
