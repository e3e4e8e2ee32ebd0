//! What a lane begins with.

use super::{ChannelKey, HELLO, MOST_LANES, Nonce, PROOF, WireError, check_sum, half, long, word};
use crate::handle::VERSION;
use std::net::{Ipv4Addr, SocketAddrV4};

pub(crate) const MAGIC: [u8; 8] = *b"weftlane";
const CHECK: usize = HELLO - 4;
/// What the proof is of ends here.
const TEXT: usize = CHECK - PROOF;
/// Bytes of what a back end has to say.
const EXTRA: usize = 32;
/// The names of proofs.
const NAME: &[u8; 8] = b"weft hi ";
const ANSWER: &[u8; 8] = b"welcome ";

/// The first thing that the sender says on every connection of a lane.
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
/// | 32 to 48 | a number drawn for this connection |
/// | 48 to 56 | the first group that the sender was not told of |
/// | 56 to 60 | flags: 1 RoCE, 2 the sender has been welcomed before, 4 it only asks whether somebody lives, 8 the channel is over, 16 what follows is encrypted |
/// | 60 to 92 | what the back end has to say |
/// | 92 to 100 | which endpoint, by a random number |
/// | 100 to 106 | address and port at which it listens |
/// | 106 to 107 | DSCP of the channel |
/// | 107 to 108 | zero |
/// | 108 to 140 | proof that the sender knows the secret: HMAC-SHA256 of the challenge and of all before |
/// | 140 to 144 | check sum |
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
    /// Drawn for this connection: the welcome answers it.
    pub nonce: Nonce,
    /// The first group whose "clear to send" the sender lacks.
    pub next_group: u64,
    /// Whether data will come by RDMA.
    pub roce: bool,
    /// Whether the receiver has welcomed a lane of this channel before: it begins no new one.
    pub known: bool,
    /// Whether this begins no lane: it is welcome where `home` is the endpoint that hears it, and
    /// refused by any other that listens there now.
    pub asks: bool,
    /// Whether this begins no lane: the channel is over, and no lane is left that could say so.
    pub over: bool,
    /// Whether all is encrypted that follows this and the challenge, both ways.
    pub sealed: bool,
    /// Queue pair, address and so on of a lane over RDMA; zeros for TCP.
    pub extra: [u8; EXTRA],
    /// The endpoint of the sender; where it asks, that which it asks for.
    pub home: Home,
    /// DSCP of what goes either way.
    pub dscp: u8,
    /// Who says so knows the secret of the listener ([`Hello::prove`]); of a question zeros.
    pub proof: [u8; PROOF],
}

/// One endpoint of one process, told apart from others that listen at its port before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    /// A random number.
    pub life: u64,
    /// Where it listens.
    pub address: SocketAddrV4,
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
        out[32..48].copy_from_slice(&self.nonce);
        out[48..56].copy_from_slice(&self.next_group.to_be_bytes());
        let flags = u32::from(self.roce)
            | u32::from(self.known) << 1
            | u32::from(self.asks) << 2
            | u32::from(self.over) << 3
            | u32::from(self.sealed) << 4;
        out[56..60].copy_from_slice(&flags.to_be_bytes());
        out[60..92].copy_from_slice(&self.extra);
        out[92..100].copy_from_slice(&self.home.life.to_be_bytes());
        out[100..104].copy_from_slice(&self.home.address.ip().octets());
        out[104..106].copy_from_slice(&self.home.address.port().to_be_bytes());
        out[106] = self.dscp;
        out[TEXT..CHECK].copy_from_slice(&self.proof);
        let check = check_sum(&out[..CHECK]);
        out[CHECK..].copy_from_slice(&check.to_be_bytes());
        out
    }

    /// Proves that the sender knows `key`, to whoever has drawn `challenge`.
    pub fn prove(&mut self, key: &ChannelKey, challenge: &Nonce) {
        self.proof = key.prove(NAME, &[challenge, &self.encode()[..TEXT]]);
    }

    /// Whether the sender knows `key` and answers `challenge`.
    pub fn is_proven(&self, key: &ChannelKey, challenge: &Nonce) -> bool {
        key.is_proven(NAME, &[challenge, &self.encode()[..TEXT]], &self.proof)
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
        if check_sum(&bytes[..CHECK]) != word(bytes, CHECK) {
            return Err(WireError::Damaged);
        }
        let (lane, flags) = (half(bytes, 10), word(bytes, 56));
        let dscp = bytes[106];
        if lane >= MOST_LANES || flags > 31 || dscp > 63 || bytes[107] != 0 {
            return Err(WireError::Nonsense("a lane that cannot be"));
        }
        Ok(Hello {
            lane,
            epoch: word(bytes, 12),
            listener: word(bytes, 16),
            host: word(bytes, 20),
            channel: long(bytes, 24),
            nonce: bytes[32..48].try_into().expect("sixteen"),
            next_group: long(bytes, 48),
            roce: flags & 1 != 0,
            known: flags & 2 != 0,
            asks: flags & 4 != 0,
            over: flags & 8 != 0,
            sealed: flags & 16 != 0,
            extra: bytes[60..92].try_into().expect("thirty-two"),
            home: Home {
                life: long(bytes, 92),
                address: SocketAddrV4::new(Ipv4Addr::from(word(bytes, 100)), half(bytes, 104)),
            },
            dscp,
            proof: bytes[TEXT..CHECK].try_into().expect("thirty-two"),
        })
    }
}

/// The body of a [`Kind::Welcome`](super::Kind::Welcome).
///
/// | bytes | what |
/// |---|---|
/// | 0 to 32 | proof that the receiver knows the secret: HMAC-SHA256 of both numbers, of the next frame and of all behind |
/// | 32 to 64 | what the back end has to say, if there is something |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Who says so knows the secret of the listener.
    pub proof: [u8; PROOF],
    /// Queue pair, address and so on of a lane over RDMA.
    pub extra: Option<[u8; EXTRA]>,
}

impl Welcome {
    /// Answers `hello`, which has answered `challenge`: all frames below `next` are here.
    pub fn new(
        key: &ChannelKey,
        (hello, challenge): (&Nonce, &Nonce),
        next: u64,
        extra: Option<[u8; EXTRA]>,
    ) -> Welcome {
        let mut out = Welcome { proof: [0; PROOF], extra };
        out.proof = key.prove(ANSWER, &out.text((hello, challenge), &next.to_be_bytes()));
        out
    }

    /// Whether the receiver knows `key` and answers both numbers.
    pub fn is_proven(
        &self,
        key: &ChannelKey,
        (hello, challenge): (&Nonce, &Nonce),
        next: u64,
    ) -> bool {
        let next = next.to_be_bytes();
        key.is_proven(ANSWER, &self.text((hello, challenge), &next), &self.proof)
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        [&self.proof[..], self.extra.as_ref().map_or(&[], |extra| extra)].concat()
    }

    /// From the body of a frame. `None`: it is none.
    pub fn decode(body: &[u8]) -> Option<Welcome> {
        let (proof, extra) = body.split_first_chunk()?;
        let extra = if extra.is_empty() { None } else { Some(extra.try_into().ok()?) };
        Some(Welcome { proof: *proof, extra })
    }

    /// Whether a body may be so long.
    pub(super) fn fits(len: usize) -> bool {
        len == PROOF || len == PROOF + EXTRA
    }

    fn text<'a>(
        &'a self,
        (hello, challenge): (&'a Nonce, &'a Nonce),
        next: &'a [u8; 8],
    ) -> [&'a [u8]; 4] {
        [hello, challenge, next, self.extra.as_ref().map_or(&[], |extra| extra)]
    }
}
