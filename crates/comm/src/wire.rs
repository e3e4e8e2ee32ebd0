//! What goes over a lane, as bytes.
//!
//! A lane begins with a [`Hello`] of the sender, which the receiver answers with a
//! [`Kind::Welcome`]. After that there are frames both ways, each a [`Header`] and a body: data from
//! the sender; acknowledgements and "clear to send" from the receiver. Numbers are big-endian. Every
//! header has a CRC32C of its own, so that a length is believed only when it was meant. No decoder
//! allocates.

use crate::handle::{SECRET, VERSION};
use crate::{MOST_BUFFERS, MOST_REQUESTS};

/// Bytes of a [`Hello`].
pub const HELLO: usize = 96;
/// Bytes of a [`Header`].
pub const HEADER: usize = 48;
/// Bytes of a [`Slot`].
pub const SLOT: usize = 24;
/// Most payload of a data frame.
pub const MOST_PAYLOAD: u32 = 256 << 10;
/// Most bytes of the body of any other frame.
pub const MOST_BODY: usize = MOST_BUFFERS * SLOT;
/// Lanes of a channel are numbered below this.
pub const MOST_LANES: u16 = 4_096;

const MAGIC: [u8; 8] = *b"weftlane";
const CHECK: usize = HELLO - 4;

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

/// The first thing on every connection of a lane.
///
/// | bytes | what |
/// |---|---|
/// | 0 to 8 | `weftlane` |
/// | 8 to 10 | version |
/// | 10 to 12 | lane |
/// | 12 to 16 | which connection of the lane, counting up |
/// | 16 to 20 | number of the listener |
/// | 20 to 24 | host of the sender, or all ones |
/// | 24 to 32 | channel |
/// | 32 to 48 | secret |
/// | 48 to 56 | the first group that the sender was not told of |
/// | 56 to 60 | flags: 1 RoCE, 2 the sender has been welcomed before |
/// | 60 to 92 | what the back end has to say |
/// | 92 to 96 | check sum |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Which lane of the channel, below [`MOST_LANES`].
    pub lane: u16,
    /// A newer connection of a lane replaces an older one.
    pub epoch: u32,
    /// The listener that the channel began at.
    pub listener: u32,
    /// The host of the sender, all ones if it knows none.
    pub host: u32,
    /// The channel, by a random number of the sender.
    pub channel: u64,
    /// That of the handle.
    pub secret: [u8; SECRET],
    /// The first group whose "clear to send" the sender lacks.
    pub next_group: u64,
    /// Whether data will come by RDMA.
    pub roce: bool,
    /// Whether the receiver has welcomed a lane of this channel before: it begins no new one.
    pub known: bool,
    /// Queue pair, address and so on of a lane over RDMA; zeros for TCP.
    pub extra: [u8; 32],
}

impl std::fmt::Debug for Hello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lane {} of channel {:x}, connection {}", self.lane, self.channel, self.epoch)
    }
}

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO] {
        let mut out = [0; HELLO];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_be_bytes());
        out[10..12].copy_from_slice(&self.lane.to_be_bytes());
        out[12..16].copy_from_slice(&self.epoch.to_be_bytes());
        out[16..20].copy_from_slice(&self.listener.to_be_bytes());
        out[20..24].copy_from_slice(&self.host.to_be_bytes());
        out[24..32].copy_from_slice(&self.channel.to_be_bytes());
        out[32..48].copy_from_slice(&self.secret);
        out[48..56].copy_from_slice(&self.next_group.to_be_bytes());
        let flags = u32::from(self.roce) | u32::from(self.known) << 1;
        out[56..60].copy_from_slice(&flags.to_be_bytes());
        out[60..CHECK].copy_from_slice(&self.extra);
        let check = crc32c::crc32c(&out[..CHECK]);
        out[CHECK..].copy_from_slice(&check.to_be_bytes());
        out
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn decode(bytes: &[u8; HELLO]) -> Result<Hello, WireError> {
        if bytes[..8] != MAGIC {
            return Err(WireError::NotWeft);
        }
        if half(bytes, 8) != VERSION {
            return Err(WireError::Version);
        }
        if crc32c::crc32c(&bytes[..CHECK]) != word(bytes, CHECK) {
            return Err(WireError::Damaged);
        }
        let (lane, flags) = (half(bytes, 10), word(bytes, 56));
        if lane >= MOST_LANES || flags > 3 {
            return Err(WireError::Nonsense("a lane that cannot be"));
        }
        Ok(Hello {
            lane,
            epoch: word(bytes, 12),
            listener: word(bytes, 16),
            host: word(bytes, 20),
            channel: long(bytes, 24),
            secret: bytes[32..48].try_into().expect("sixteen"),
            next_group: long(bytes, 48),
            roce: flags & 1 != 0,
            known: flags & 2 != 0,
            extra: bytes[60..CHECK].try_into().expect("thirty-two"),
        })
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A part of a message: `frame`, `group`, `slot`, `offset`, `total`; the body is payload.
    Data = 1,
    /// The receiver has the lane, and all its frames below `frame`. The body is the back end's.
    Welcome = 2,
    /// The receiver will not have the lane: `slot` says why ([`Reason`]).
    Refused = 3,
    /// Clear to send: `group` has `slot` buffers. The body is a [`Slot`] each.
    Clear = 4,
    /// The receiver has all frames of the lane below `frame`.
    Ack = 5,
    /// Nothing; only to see whether it arrives. Where `slot` is one the peer answers with another.
    Ping = 6,
    /// The channel is over: `slot` says why ([`Reason`]). Of [`Reason::TooLarge`] `offset` is the room
    /// and `total` the size.
    Bye = 7,
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
}

/// What begins a frame.
///
/// | bytes | what |
/// |---|---|
/// | 0 | [`Kind`] |
/// | 1 | flags: 1 the payload has a check sum |
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
        out[1] = u8::from(self.checked);
        out[2] = self.slot;
        out[4..8].copy_from_slice(&self.len.to_be_bytes());
        out[8..16].copy_from_slice(&self.frame.to_be_bytes());
        out[16..24].copy_from_slice(&self.group.to_be_bytes());
        out[24..32].copy_from_slice(&self.offset.to_be_bytes());
        out[32..40].copy_from_slice(&self.total.to_be_bytes());
        out[40..44].copy_from_slice(&self.check.to_be_bytes());
        let check = crc32c::crc32c(&out[..44]);
        out[44..].copy_from_slice(&check.to_be_bytes());
        out
    }

    /// From bytes. A body is never longer than its kind allows.
    ///
    /// # Errors
    /// If they are none.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Header, WireError> {
        if crc32c::crc32c(&bytes[..44]) != word(bytes, 44) {
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
            _ => return Err(WireError::Nonsense("an unknown kind")),
        };
        let header = Header {
            kind,
            checked: bytes[1] == 1,
            slot: bytes[2],
            len: word(bytes, 4),
            frame: long(bytes, 8),
            group: long(bytes, 16),
            offset: long(bytes, 24),
            total: long(bytes, 32),
            check: word(bytes, 40),
        };
        let fits = match kind {
            Kind::Data => header.len <= MOST_PAYLOAD,
            Kind::Welcome => header.len == 0 || header.len == 32,
            Kind::Clear => {
                (1..=MOST_BUFFERS).contains(&usize::from(header.slot))
                    && header.len as usize == usize::from(header.slot) * SLOT
                    && header.checked
            }
            _ => header.len == 0,
        };
        if bytes[1] > 1 || bytes[3] != 0 || !fits {
            return Err(WireError::Nonsense("a length or flag that cannot be"));
        }
        Ok(header)
    }

    /// Why, of [`Kind::Bye`] and [`Kind::Refused`].
    pub fn reason(&self) -> Reason {
        match self.slot {
            0 => Reason::Closed,
            1 => Reason::TooLarge,
            _ => Reason::Broken,
        }
    }
}

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
    /// All.
    pub fn as_slice(&self) -> &[Slot] {
        &self.slots[..self.count]
    }
}

/// So many groups may be ahead of the oldest one that is not over.
pub const WINDOW: u64 = MOST_REQUESTS as u64;

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"))
}
fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"))
}
