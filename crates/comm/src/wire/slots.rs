//! The buffers of a receive, as their sender is told.

use super::{Header, Kind, MOST_BODY, SLOT, long, word};
use crate::MOST_BUFFERS;

/// One buffer of a receive, as its sender is told.
///
/// | bytes | what |
/// |---|---|
/// | 0 to 4 | tag |
/// | 4 to 8 | remote key, of RDMA |
/// | 8 to 16 | bytes |
/// | 16 to 24 | address, of RDMA |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Sends with this tag go into it.
    pub tag: i32,
    /// Its room.
    pub size: u64,
    /// Where the NIC of the sender may write to; zero for TCP.
    pub address: u64,
    /// With which key.
    pub rkey: u32,
}

impl Slot {
    /// As bytes.
    pub fn encode(&self) -> [u8; SLOT] {
        let mut out = [0; SLOT];
        out[..4].copy_from_slice(&self.tag.to_be_bytes());
        out[4..8].copy_from_slice(&self.rkey.to_be_bytes());
        out[8..16].copy_from_slice(&self.size.to_be_bytes());
        out[16..].copy_from_slice(&self.address.to_be_bytes());
        out
    }
    /// From bytes. All of them mean something.
    pub fn decode(bytes: &[u8; SLOT]) -> Slot {
        Slot {
            tag: word(bytes, 0) as i32,
            rkey: word(bytes, 4),
            size: long(bytes, 8),
            address: long(bytes, 16),
        }
    }
}

/// The buffers of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    count: usize,
    slots: [Slot; MOST_BUFFERS],
}

impl Slots {
    /// No more than [`MOST_BUFFERS`] are taken.
    pub fn new(from: impl IntoIterator<Item = Slot>) -> Slots {
        let mut all = Slots::default();
        for slot in from.into_iter().take(MOST_BUFFERS) {
            all.slots[all.count] = slot;
            all.count += 1;
        }
        all
    }
    /// From the body of a [`Kind::Clear`] frame.
    pub fn decode(body: &[u8]) -> Slots {
        let whole = body.chunks_exact(SLOT);
        Slots::new(whole.map(|slot| Slot::decode(slot.try_into().expect("whole"))))
    }
    /// Header and body of a [`Kind::Clear`] frame, appended to `out`.
    pub fn encode(&self, group: u64, out: &mut Vec<u8>) {
        let mut body = [0; MOST_BODY];
        for (slot, out) in self.as_slice().iter().zip(body.chunks_exact_mut(SLOT)) {
            out.copy_from_slice(&slot.encode());
        }
        let body = &body[..self.count * SLOT];
        let header = Header {
            group,
            checked: true,
            slot: self.count as u8,
            len: body.len() as u32,
            check: crc32c::crc32c(body),
            ..Header::new(Kind::Clear)
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(body);
    }
    /// All slots.
    pub fn as_slice(&self) -> &[Slot] {
        &self.slots[..self.count]
    }
}
