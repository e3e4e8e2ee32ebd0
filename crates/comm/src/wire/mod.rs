//! What goes over a lane, as bytes.
//!
//! A lane begins with a [`Kind::Challenge`] of the receiver. The sender answers with a [`Hello`], the
//! receiver with a [`Kind::Welcome`]; both prove that they know the secret of the listener. After that there are frames both ways, each a [`Header`] and a body: data from
//! the sender; acknowledgements and "clear to send" from the receiver. Numbers are big-endian. Every
//! header has a CRC32C of its own, so that a length is believed only when it was meant. No decoder
//! allocates.

mod frame;
mod hello;
mod proof;
mod slots;

pub use frame::{Header, Kind, Reason};
pub(crate) use hello::MAGIC;
pub use hello::{Hello, Home, Welcome};
pub use proof::{ChannelKey, NONCE, Nonce, PROOF, SEAL_KEY};
pub use slots::{Slot, Slots};

use crate::handle::MOST_NICS;
use crate::{MOST_BUFFERS, MOST_REQUESTS};

/// Bytes of a [`Hello`].
pub const HELLO: usize = 144;
/// Bytes of a [`Header`].
pub const HEADER: usize = 48;
/// Bytes of a [`Slot`].
pub const SLOT: usize = 24;
/// Most payload of a data frame.
pub const MOST_PAYLOAD: u32 = 512 << 10;
/// Bytes of a key behind a [`Slot`]: one for each further NIC of the receiver.
const KEY: usize = 4;
/// Most bytes of the body of any other frame.
pub const MOST_BODY: usize = MOST_BUFFERS * (SLOT + KEY * (MOST_NICS - 1));
/// Lanes of a channel are numbered below this.
pub const MOST_LANES: u16 = 4_096;

/// Why bytes from a peer are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No hello of Weft.
    #[error("not a lane of Weft")]
    NotWeft,
    /// Of another version.
    #[error("a lane of another version of Weft; install the same on all hosts")]
    Version,
    /// Damaged on the way.
    #[error("a check sum is wrong")]
    Damaged,
    /// Intact, but nothing that a peer may say.
    #[error("a frame makes no sense: {0}")]
    Nonsense(&'static str),
}

/// So many groups may be ahead of the oldest one that is not over.
pub const WINDOW: u64 = MOST_REQUESTS as u64;

/// Eager frames for which no buffer was announced: so many at most, of so many bytes together. Who runs further ahead
/// of a receiver than that has what it sends copied there.
pub const MOST_EAGER: usize = MOST_REQUESTS;
/// See [`MOST_EAGER`].
pub const MOST_EAGER_BYTES: u64 = 1 << 20;
/// After so many eager frames a receiver takes it that its sender does not wait for buffers.
pub const CALM: u64 = 8;

/// The CRC32C of `bytes` (Castagnoli's polynomial, as in iSCSI, RFC 7143).
pub(crate) fn check_sum(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}
fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"))
}
fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"))
}
