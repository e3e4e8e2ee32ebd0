//! The buffers of a receive, as their sender is told.

use super::{Header, KEY, Kind, MOST_BODY, SLOT, check_sum, long, word};
use crate::MOST_BUFFERS;
use crate::handle::MOST_NICS;

/// One buffer of a receive, as its sender is told.
///
/// | bytes | what |
/// |---|---|
/// | 0 to 4 | tag |
/// | 4 to 8 | remote key, of RDMA: that of the receiver's first NIC |
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
    /// With which key, by NIC of the receiver: each knows the memory by its own.
    pub keys: [u32; MOST_NICS],
}

impl Slot {
    /// As bytes, with the first key alone.
    pub fn encode(&self) -> [u8; SLOT] {
        let mut out = [0; SLOT];
        out[..4].copy_from_slice(&self.tag.to_be_bytes());
        out[4..8].copy_from_slice(&self.keys[0].to_be_bytes());
        out[8..16].copy_from_slice(&self.size.to_be_bytes());
        out[16..].copy_from_slice(&self.address.to_be_bytes());
        out
    }
    /// From bytes. All of them mean something.
    pub fn decode(bytes: &[u8; SLOT]) -> Slot {
        let mut keys = [0; MOST_NICS];
        keys[0] = word(bytes, 4);
        Slot { tag: word(bytes, 0) as i32, keys, size: long(bytes, 8), address: long(bytes, 16) }
    }
}

/// The buffers of a group. As bytes, a [`Slot`] each; where the receiver has several NICs, behind each of them the
/// keys of the others, of 4 bytes, as many for all.
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
    /// From the body of a [`Kind::Clear`] frame with so many slots; none where it is none.
    pub fn decode(count: u8, body: &[u8]) -> Slots {
        if !Slots::fits(count, body.len()) {
            return Slots::default();
        }
        let slot = |bytes: &[u8]| {
            let (slot, keys) = bytes.split_first_chunk().expect("as long at least");
            let mut slot = Slot::decode(slot);
            for (key, from) in slot.keys[1..].iter_mut().zip(keys.chunks_exact(KEY)) {
                *key = word(from, 0);
            }
            slot
        };
        Slots::new(body.chunks_exact(body.len() / usize::from(count)).map(slot))
    }
    /// Whether a body of so many slots may be so long.
    pub(super) fn fits(count: u8, len: usize) -> bool {
        let count = usize::from(count);
        let keys = |each: usize| (0..MOST_NICS).any(|keys| each == SLOT + KEY * keys);
        (1..=MOST_BUFFERS).contains(&count) && len.is_multiple_of(count) && keys(len / count)
    }
    /// Header and body of a [`Kind::Clear`] frame for `group` and `behind` groups behind it, appended to `out`.
    pub fn encode(&self, group: u64, behind: u64, out: &mut Vec<u8>) {
        let mut body = [0; MOST_BODY];
        let last_key = |slot: &Slot| slot.keys.iter().rposition(|key| *key != 0).unwrap_or(0);
        let more = self.as_slice().iter().map(last_key).max().unwrap_or(0);
        let each = SLOT + KEY * more;
        for (slot, out) in self.as_slice().iter().zip(body.chunks_exact_mut(each)) {
            let (first, keys) = out.split_at_mut(SLOT);
            first.copy_from_slice(&slot.encode());
            for (key, out) in slot.keys[1..].iter().zip(keys.chunks_exact_mut(KEY)) {
                out.copy_from_slice(&key.to_be_bytes());
            }
        }
        let body = &body[..self.count * each];
        let header = Header {
            group,
            total: behind,
            checked: true,
            slot: self.count as u8,
            len: body.len() as u32,
            check: check_sum(body),
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
