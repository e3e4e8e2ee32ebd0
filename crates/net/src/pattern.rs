//! Contents of messages that both ends can compute: every byte depends on its message and place,
//! so that a receiver notices payload that belongs elsewhere.

use crate::receiver::Sink;
use crate::sender::Source;
use weft_units::{HostId, MessageId};

/// Pseudo-random contents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pattern;

impl Pattern {
    /// The eight bytes at `word * 8` of `message`.
    fn word(message: MessageId, word: u64) -> [u8; 8] {
        let mut bits = word ^ (u64::from(message.0) << 40);
        bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits ^= bits >> 32;
        bits.wrapping_mul(0xd6e8_feb8_6659_fd93).to_le_bytes()
    }

    /// Calls `each` with every stretch of `len` bytes from `offset` on that lies in one word: where
    /// it begins, and its contents.
    fn words(message: MessageId, offset: u64, len: usize, mut each: impl FnMut(usize, &[u8])) {
        let mut at = 0;
        while at < len {
            let place = offset + at as u64;
            let skip = (place % 8) as usize;
            let count = (8 - skip).min(len - at);
            each(at, &Pattern::word(message, place / 8)[skip..skip + count]);
            at += count;
        }
    }
}

impl Source for Pattern {
    fn read(&self, message: MessageId, offset: u64, out: &mut [u8]) {
        Pattern::words(message, offset, out.len(), |at, word| {
            out[at..at + word.len()].copy_from_slice(word);
        });
    }
}

/// Compares what comes with the pattern.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    /// Payload that was as it should be.
    pub right: u64,
    /// Payload in packets that were not.
    pub wrong: u64,
}

impl Sink for Checked {
    fn write(&mut self, _: HostId, message: MessageId, offset: u64, bytes: &[u8]) {
        let mut same = true;
        Pattern::words(message, offset, bytes.len(), |at, word| {
            same &= bytes[at..at + word.len()] == *word;
        });
        *(if same { &mut self.right } else { &mut self.wrong }) += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_out_of_one_whole() {
        let mut whole = [0; 100];
        Pattern.read(MessageId(7), 0, &mut whole);
        for (from, to) in [(0, 100), (3, 5), (8, 16), (9, 99), (40, 41)] {
            let mut part = vec![0; to - from];
            Pattern.read(MessageId(7), from as u64, &mut part);
            assert_eq!(part, whole[from..to]);
        }
    }

    #[test]
    fn what_belongs_elsewhere_is_wrong() {
        let mut bytes = [0; 64];
        Pattern.read(MessageId(7), 128, &mut bytes);
        let mut checked = Checked::default();
        let mut write = |message, offset| {
            checked.write(HostId(0), MessageId(message), offset, &bytes);
            (checked.right, checked.wrong)
        };
        assert_eq!(write(7, 128), (64, 0));
        assert_eq!(write(7, 136), (64, 64));
        assert_eq!(write(8, 128), (64, 128));
    }
}
