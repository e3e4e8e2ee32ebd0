//! What frames begin with.

use super::{
    HEADER, MOST_EAGER, MOST_PAYLOAD, NONCE, Slots, WINDOW, Welcome, WireError, check_sum, long,
    word,
};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A part of a message: `frame`, `group`, `slot`, `offset`, `total`; the body is payload. An eager one is a
    /// whole message, sent before a buffer for it was announced: `offset` is its tag, `total` how many messages
    /// with this tag were before it, and the groups below `group` have been heard of.
    Data = 1,
    /// The receiver has the lane, and all its frames below `frame`. The body is a
    /// [`Welcome`](super::Welcome).
    Welcome = 2,
    /// The receiver will not have the lane: `slot` says why ([`Reason`]).
    Refused = 3,
    /// Clear to send: `group` has `slot` buffers, and so have the `total` groups behind it. The body is a
    /// [`Slot`](super::Slot) each, with keys behind it ([`Slots`]).
    Clear = 4,
    /// The receiver has all frames of the lane below `frame`.
    Ack = 5,
    /// Nothing; only to see whether it arrives. Where `slot` is one the peer answers with another.
    Ping = 6,
    /// The channel is over: `slot` says why ([`Reason`]). Of [`Reason::TooLarge`] `offset` is the room
    /// and `total` the size.
    Bye = 7,
    /// Whoever has taken in a connection begins with it. The body is a [`Nonce`](super::Nonce).
    Challenge = 8,
    /// Request to send: the sender waits for buffers, and has begun `total` eager frames on all lanes together.
    Request = 9,
}

/// Why a channel is over, or a lane refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Somebody closed it.
    Closed = 0,
    /// A message does not fit into its buffer.
    TooLarge = 1,
    /// A peer said what it must not.
    Broken = 2,
    /// The receiver has no descriptor for a connection more.
    Full = 3,
    /// One side encrypts, and the other does not.
    Encryption = 4,
}

/// What begins a frame.
///
/// | bytes | what |
/// |---|---|
/// | 0 | [`Kind`] |
/// | 1 | flags: 1 the payload has a check sum, 2 it may come over several lanes, 4 the sender has a copy, 8 eager |
/// | 2 | `slot` |
/// | 3 | zero |
/// | 4 to 8 | length of the body |
/// | 8 to 16 | `frame` |
/// | 16 to 24 | `group` |
/// | 24 to 32 | `offset` |
/// | 32 to 40 | `total` |
/// | 40 to 44 | check sum of the body |
/// | 44 to 48 | check sum of the header |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Whether `check` counts.
    pub checked: bool,
    /// Whether the same payload may come over another lane as well: who planned it did not wait until the
    /// first lane was known to be dead.
    pub repeats: bool,
    /// The sender has a copy, and nobody waits for the acknowledgement.
    pub copied: bool,
    /// Nobody has announced a buffer for it.
    pub eager: bool,
    /// A buffer of the group, a number of them, or a reason.
    pub slot: u8,
    /// Bytes that follow.
    pub len: u32,
    /// The number of the frame on its lane, or how many are here.
    pub frame: u64,
    /// A receive, by its number on the channel.
    pub group: u64,
    /// Where in the message the body belongs.
    pub offset: u64,
    /// Bytes of all the message.
    pub total: u64,
    /// CRC32C of the body.
    pub check: u32,
}

impl Header {
    /// A frame of `kind` with nothing else in it.
    pub fn new(kind: Kind) -> Header {
        Header {
            kind,
            checked: false,
            repeats: false,
            copied: false,
            eager: false,
            slot: 0,
            len: 0,
            frame: 0,
            group: 0,
            offset: 0,
            total: 0,
            check: 0,
        }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0] = self.kind as u8;
        let flags = [self.checked, self.repeats, self.copied, self.eager];
        out[1] = (0..).zip(flags).map(|(bit, flag)| u8::from(flag) << bit).sum();
        out[2] = self.slot;
        out[4..8].copy_from_slice(&self.len.to_be_bytes());
        out[8..16].copy_from_slice(&self.frame.to_be_bytes());
        out[16..24].copy_from_slice(&self.group.to_be_bytes());
        out[24..32].copy_from_slice(&self.offset.to_be_bytes());
        out[32..40].copy_from_slice(&self.total.to_be_bytes());
        out[40..44].copy_from_slice(&self.check.to_be_bytes());
        let check = check_sum(&out[..44]);
        out[44..].copy_from_slice(&check.to_be_bytes());
        out
    }

    /// From bytes. A body is never longer than its kind allows.
    ///
    /// # Errors
    /// If they are none.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header, WireError> {
        if check_sum(&bytes[..44]) != word(bytes, 44) {
            return Err(WireError::Damaged);
        }
        let kind = match bytes[0] {
            1 => Kind::Data,
            2 => Kind::Welcome,
            3 => Kind::Refused,
            4 => Kind::Clear,
            5 => Kind::Ack,
            6 => Kind::Ping,
            7 => Kind::Bye,
            8 => Kind::Challenge,
            9 => Kind::Request,
            _ => return Err(WireError::Nonsense("an unknown kind")),
        };
        let header = Header {
            kind,
            checked: bytes[1] & 1 != 0,
            repeats: bytes[1] & 2 != 0,
            copied: bytes[1] & 4 != 0,
            eager: bytes[1] & 8 != 0,
            slot: bytes[2],
            len: word(bytes, 4),
            frame: long(bytes, 8),
            group: long(bytes, 16),
            offset: long(bytes, 24),
            total: long(bytes, 32),
            check: word(bytes, 40),
        };
        let fits = match kind {
            Kind::Data => {
                let fits = !header.eager || !header.repeats && header.offset >> 32 == 0;
                fits && header.len <= MOST_PAYLOAD
            }
            Kind::Welcome => Welcome::fits(header.len as usize),
            Kind::Challenge => header.len as usize == NONCE,
            Kind::Clear => {
                let fits = Slots::fits(header.slot, header.len as usize);
                fits && header.checked && header.total < WINDOW + MOST_EAGER as u64
            }
            _ => header.len == 0,
        };
        let flags = if kind == Kind::Data { 15 } else { 1 };
        if bytes[1] > flags || bytes[3] != 0 || !fits {
            return Err(WireError::Nonsense("a length or flag that cannot be"));
        }
        Ok(header)
    }

    /// Why, of [`Kind::Bye`] and [`Kind::Refused`].
    pub fn reason(&self) -> Reason {
        match self.slot {
            0 => Reason::Closed,
            1 => Reason::TooLarge,
            3 => Reason::Full,
            4 => Reason::Encryption,
            _ => Reason::Broken,
        }
    }
}
