//! The bytes of a connection, encrypted: records of AES-256-GCM (NIST SP 800-38D), each as long as its four
//! first bytes say. A record has its number for a nonce, so that none can be changed, left out, brought twice or
//! out of order without notice. Keys are of one connection and one direction alone.

use crate::wire::{SEAL_KEY, WireError};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::io::IoSlice;

/// Most bytes of a record before it is encrypted.
pub const RECORD: usize = 32 << 10;
const LENGTH: usize = 4;
const TAG: usize = 16;
/// Bytes of a record of no bytes.
pub const OVERHEAD: usize = LENGTH + TAG;

/// What both directions have.
struct Cipher {
    key: LessSafeKey,
    /// Records so far.
    count: u64,
}

impl Cipher {
    fn new(key: &[u8; SEAL_KEY]) -> Cipher {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("a key is so long");
        Cipher { key: LessSafeKey::new(key), count: 0 }
    }
    /// The nonce of the next record. None is used twice: no connection lives for 2^64 records.
    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.count.to_be_bytes());
        self.count += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// The sending end.
pub struct Sealer {
    cipher: Cipher,
    /// Records that are not written to the end, and how much of them is.
    out: Vec<u8>,
    written: usize,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer of record {}", self.cipher.count)
    }
}

impl Sealer {
    /// With a key that no other connection or direction has.
    pub fn new(key: &[u8; SEAL_KEY]) -> Sealer {
        Sealer { cipher: Cipher::new(key), out: Vec::new(), written: 0 }
    }

    /// Puts the first bytes of `from` into one more record. How many: up to [`RECORD`].
    pub fn seal(&mut self, from: &[IoSlice<'_>]) -> usize {
        let begin = self.out.len();
        self.out.extend_from_slice(&[0; LENGTH]);
        let mut room = RECORD;
        for slice in from {
            let take = slice.len().min(room);
            self.out.extend_from_slice(&slice[..take]);
            room -= take;
        }
        let len = RECORD - room;
        let nonce = self.cipher.nonce();
        let (head, body) = self.out[begin..].split_at_mut(LENGTH);
        head.copy_from_slice(&(len as u32).to_be_bytes());
        let tag = self.cipher.key.seal_in_place_separate_tag(nonce, Aad::from(&*head), body);
        self.out.extend_from_slice(tag.expect("a record is short enough").as_ref());
        len
    }

    /// What is to be written next.
    pub fn rest(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many bytes of it are written.
    pub fn advance(&mut self, count: usize) {
        self.written += count;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }
}

/// The receiving end.
pub struct Opener {
    cipher: Cipher,
    bytes: Box<[u8; OVERHEAD + RECORD]>,
    have: usize,
    /// What of the record was opened and not taken: from where to where.
    open: (usize, usize),
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opener of record {}", self.cipher.count)
    }
}

impl Opener {
    /// With the key of the other end's [`Sealer`].
    pub fn new(key: &[u8; SEAL_KEY]) -> Opener {
        let bytes = Box::new([0; OVERHEAD + RECORD]);
        Opener { cipher: Cipher::new(key), bytes, have: 0, open: (0, 0) }
    }

    /// Where to read to: the rest of one record, as far as its length is known. Not empty while
    /// [`Opener::take`] has given nothing.
    pub fn room(&mut self) -> &mut [u8] {
        let end = self.end().unwrap_or(LENGTH);
        &mut self.bytes[self.have..end]
    }

    /// So many bytes were read to [`Opener::room`].
    ///
    /// # Errors
    /// If this is no record, or not the next one, of somebody who has the key.
    pub fn advance(&mut self, count: usize) -> Result<(), WireError> {
        self.have += count;
        let Some(end) = self.end() else { return Ok(()) };
        if end > self.bytes.len() {
            return Err(WireError::Nonsense("a record that is too long"));
        }
        if self.have < end {
            return Ok(());
        }
        let nonce = self.cipher.nonce();
        let (head, rest) = self.bytes[..end].split_at_mut(LENGTH);
        self.cipher
            .key
            .open_in_place(nonce, Aad::from(&*head), rest)
            .map_err(|_| WireError::Damaged)?;
        (self.have, self.open) = (0, (LENGTH, end - TAG));
        Ok(())
    }

    /// Some of what was opened, at most as much as there is room for; empty: more is to be read first.
    pub fn take(&mut self, room: usize) -> &[u8] {
        let (from, to) = self.open;
        let until = to.min(from + room);
        self.open.0 = until;
        &self.bytes[from..until]
    }

    /// Whether something was opened and not taken.
    pub fn has_some(&self) -> bool {
        self.open.0 < self.open.1
    }

    /// Where the record ends that is being read, if its length is here.
    fn end(&self) -> Option<usize> {
        let len = self.bytes[..self.have].first_chunk::<LENGTH>()?;
        Some(OVERHEAD.saturating_add(u32::from_be_bytes(*len) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(opener: &mut Opener, mut from: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        while !from.is_empty() {
            let room = opener.room();
            let count = room.len().min(from.len()).min(1_000);
            room[..count].copy_from_slice(&from[..count]);
            from = &from[count..];
            opener.advance(count)?;
            while opener.has_some() {
                out.extend_from_slice(opener.take(777));
            }
        }
        Ok(out)
    }

    fn sealed(sealer: &mut Sealer, text: &[u8]) -> Vec<u8> {
        let mut done = 0;
        while done < text.len() {
            done += sealer.seal(&[IoSlice::new(&[]), IoSlice::new(&text[done..])]);
        }
        let out = sealer.rest().to_vec();
        sealer.advance(out.len());
        out
    }

    #[test]
    fn what_is_sealed_is_opened_and_not_seen() {
        let (mut sealer, mut opener) = (Sealer::new(&[7; 32]), Opener::new(&[7; 32]));
        for len in [1, 48, RECORD, 3 * RECORD + 5] {
            let text: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let wire = sealed(&mut sealer, &text);
            assert_eq!(wire.len(), len + OVERHEAD * len.div_ceil(RECORD));
            assert!(len < 16 || !wire.windows(16).any(|some| some == &text[..16]));
            assert_eq!(opened(&mut opener, &wire), Ok(text));
        }
    }

    #[test]
    fn what_was_changed_left_out_or_comes_again_is_noticed() {
        let wire = |sealer: &mut Sealer| sealed(sealer, b"a frame of the lane");
        let mut sealer = Sealer::new(&[7; 32]);
        let (first, second) = (wire(&mut sealer), wire(&mut sealer));
        let opener = || Opener::new(&[7; 32]);
        for at in 0..first.len() {
            let mut bad = first.clone();
            bad[at] ^= 1;
            let mut opener = opener();
            // A length that is greater waits for more; what comes is not what was sealed.
            let heard = opened(&mut opener, &[&bad[..], &second, &first].concat());
            assert!(heard.is_err() || heard.is_ok_and(|text| text.is_empty()), "byte {at}");
        }
        assert_eq!(opened(&mut opener(), &second), Err(WireError::Damaged));
        assert!(opened(&mut opener(), &[&first[..], &first].concat()).is_err());
        assert!(opened(&mut Opener::new(&[8; 32]), &first).is_err());
    }
}
