//! Who knows the secret of a listener shows so without telling it: HMAC-SHA256 (RFC 2104, FIPS 180-4) over
//! what is said and over a number that the other side has drawn for this connection alone (challenge and
//! response). What was heard on the wire opens nothing a second time.

use crate::handle::SECRET;
use ring::hmac::{self, HMAC_SHA256};

/// Bytes of a [`Nonce`].
pub const NONCE: usize = 16;
/// Bytes of a proof.
pub const PROOF: usize = 32;

/// Bytes of a key that encrypts.
pub const SEAL_KEY: usize = PROOF;

/// A number that is drawn for one connection.
pub type Nonce = [u8; NONCE];

/// What both sides of a channel know, and nobody else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChannelKey([u8; 32]);

impl std::fmt::Debug for ChannelKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChannelKey")
    }
}

impl ChannelKey {
    /// Of the listener with this `secret`, among processes that share `job`: with it, whoever has seen the
    /// handle knows no key. Empty: there is none.
    pub fn new(job: &[u8], secret: &[u8; SECRET]) -> ChannelKey {
        ChannelKey(mac(job, b"weft key", &[secret]))
    }

    /// Shows that the key is known, for `parts` under the name `what`.
    pub(crate) fn prove(&self, what: &[u8; 8], parts: &[&[u8]]) -> [u8; PROOF] {
        mac(&self.0, what, parts)
    }

    /// Whether `proof` is that of somebody who knows the key, in a time that does not tell how near it is.
    pub(crate) fn is_proven(&self, what: &[u8; 8], parts: &[&[u8]], proof: &[u8; PROOF]) -> bool {
        let key = hmac::Key::new(HMAC_SHA256, &self.0);
        hmac::verify(&key, &text(what, parts), proof).is_ok()
    }

    /// Keys of what this connection carries: of the sender's bytes, and of the receiver's.
    pub(crate) fn seals(&self, hello: &Nonce, challenge: &Nonce) -> [[u8; SEAL_KEY]; 2] {
        [b"sender's", b"receiver"].map(|what| self.prove(what, &[hello, challenge]))
    }
}

fn mac(key: &[u8], what: &[u8; 8], parts: &[&[u8]]) -> [u8; PROOF] {
    let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), &text(what, parts));
    tag.as_ref().try_into().expect("SHA-256 is so long")
}

/// Parts have lengths that follow from the name before them, so that no two texts are alike.
fn text(what: &[u8; 8], parts: &[&[u8]]) -> Vec<u8> {
    [&what[..], &parts.concat()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn it_is_the_hmac_of_the_standard() {
        let tag = mac(b"Jefe", b"what do ", &[b"ya want ", b"for nothing?"]);
        let hex: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn another_key_name_or_text_proves_nothing() {
        let key = ChannelKey::new(b"", &[1; SECRET]);
        let proof = key.prove(b"a hello!", &[b"one", b"two"]);
        assert!(key.is_proven(b"a hello!", &[b"one", b"two"], &proof));
        assert!(!key.is_proven(b"welcome!", &[b"one", b"two"], &proof));
        assert!(!key.is_proven(b"a hello!", &[b"one", b"twO"], &proof));
        for other in [ChannelKey::new(b"", &[2; SECRET]), ChannelKey::new(b"job", &[1; SECRET])] {
            assert!(!other.is_proven(b"a hello!", &[b"one", b"two"], &proof));
        }
        let mut bent = proof;
        bent[31] ^= 1;
        assert!(!key.is_proven(b"a hello!", &[b"one", b"two"], &bent));
    }
}
