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

    /// How many of `len` bytes from `offset` on stand before the next whole word.
    fn odd(offset: u64, len: usize) -> usize {
        ((8 - offset % 8) as usize % 8).min(len)
    }
}

impl Source for Pattern {
    fn read(&self, message: MessageId, offset: u64, out: &mut [u8]) {
        let (odd, rest) = out.split_at_mut(Pattern::odd(offset, out.len()));
        let skip = (offset % 8) as usize;
        odd.copy_from_slice(&Pattern::word(message, offset / 8)[skip..][..odd.len()]);
        let first = offset.div_ceil(8);
        let mut words = rest.chunks_exact_mut(8);
        let count = words.len() as u64;
        for (number, word) in (first..).zip(&mut words) {
            word.copy_from_slice(&Pattern::word(message, number));
        }
        let end = words.into_remainder();
        end.copy_from_slice(&Pattern::word(message, first + count)[..end.len()]);
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
        let (odd, rest) = bytes.split_at(Pattern::odd(offset, bytes.len()));
        let skip = (offset % 8) as usize;
        let first = offset.div_ceil(8);
        let words = rest.chunks_exact(8);
        let (end, count) = (words.remainder(), words.len() as u64);
        let same = *odd == Pattern::word(message, offset / 8)[skip..][..odd.len()]
            && (first..).zip(words).all(|(number, word)| *word == Pattern::word(message, number))
            && *end == Pattern::word(message, first + count)[..end.len()];
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

    #[test]
    fn stretches_that_begin_and_end_anywhere_are_right() {
        for (from, len) in [(0, 64), (3, 2), (5, 11), (8, 8), (13, 50), (7, 1), (6, 26)] {
            let mut bytes = vec![0; len];
            Pattern.read(MessageId(3), from, &mut bytes);
            let mut checked = Checked::default();
            checked.write(HostId(0), MessageId(3), from, &bytes);
            assert_eq!((checked.right, checked.wrong), (len as u64, 0), "{from}");
            for at in 0..len {
                bytes[at] ^= 128;
                checked.write(HostId(0), MessageId(3), from, &bytes);
                bytes[at] ^= 128;
            }
            assert_eq!(checked.wrong, (len * len) as u64, "{from}");
        }
    }
}
