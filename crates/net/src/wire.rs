//! Datagrams as bytes, all numbers big-endian.
//!
//! ```text
//! data                                       answer
//!  0 kind, version, payload bytes (u16)       0 kind, version, port of the packet answered (u16)
//!  4 sending host (u32)                       4 answering host (u32)
//!  8 flow: the sender's number (u32)          8 flow (u32)
//! 12 packet of the flow (u32)                12 packet that is answered (u32)
//! 16 packets of the flow (u32)               16 the first packet that is missing (u32)
//! 20 message (u32)                           20 clock of the packet answered (u32)
//! 24 where in the message (u64)
//! 32 bytes of the whole message (u64)
//! 40 sender's clock, microseconds (u32)
//! 44 check sum of the payload (u32)
//! 48 payload
//! ```
//!
//! An answer is an acknowledgement or a NACK, by its kind.

/// Bytes of a data datagram before its payload.
pub const DATA_HEADER: usize = 48;
/// Bytes of an answer.
pub const ANSWER: usize = 24;
/// What stands before a datagram on an Ethernet wire, check sequence and preamble apart, as Linux
/// counts: Ethernet, IPv4, UDP.
pub const LOWER_HEADERS: usize = 14 + 20 + 8;

const VERSION: u8 = 2;
const DATA: u8 = 1;
const ACK: u8 = 2;
const NACK: u8 = 3;

/// The header of a datagram with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Who sends.
    pub src: u32,
    /// The sender's number of the flow.
    pub flow: u32,
    /// Which packet of the flow.
    pub seq: u32,
    /// How many packets the flow has.
    pub packets: u32,
    /// The number of the message.
    pub message: u32,
    /// Where in the message the payload begins.
    pub offset: u64,
    /// Bytes of the whole message.
    pub total: u64,
    /// The sender's clock in microseconds; comes back in the answer.
    pub clock: u32,
}

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who answers.
    pub src: u32,
    /// The flow, as its sender numbers it.
    pub flow: u32,
    /// The packet that this answers.
    pub seq: u32,
    /// Its UDP source port.
    pub port: u16,
    /// Something is missing, and what came behind it was thrown away: a NACK.
    pub nack: bool,
    /// All packets below this one have come.
    pub cumulative: u32,
    /// The clock of the packet that this answers.
    pub clock: u32,
}

/// A datagram, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// Payload.
    Data(Data, &'a [u8]),
    /// An answer.
    Answer(Answer),
}

/// What a connection begins with: which subflow comes.
///
/// ```text
///  0 sending host (u32)    4 flow (u32)    8 message (u32)    12 zero
/// 16 where in the message (u64)    24 bytes of the message (u64)    32 bytes of the subflow (u64)
/// ```
///
/// The receiver says how much of the subflow it has (u64), the sender sends the rest, and the receiver
/// says it again when it has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Sender, flow, message, place and size of the message.
    pub data: Data,
    /// Bytes of the subflow.
    pub bytes: u64,
}

/// Bytes of a [`Hello`].
pub const HELLO: usize = 40;

impl Hello {
    /// As bytes.
    pub fn encode(&self) -> [u8; HELLO] {
        let mut out = [0; HELLO];
        put32(&mut out, 0, self.data.src);
        put32(&mut out, 4, self.data.flow);
        put32(&mut out, 8, self.data.message);
        put64(&mut out, 16, self.data.offset);
        put64(&mut out, 24, self.data.total);
        put64(&mut out, 32, self.bytes);
        out
    }
    /// From bytes. `None`: the subflow is not inside its message.
    pub fn decode(bytes: &[u8; HELLO]) -> Option<Hello> {
        let data = Data {
            src: get32(bytes, 0),
            flow: get32(bytes, 4),
            seq: 0,
            packets: 1,
            message: get32(bytes, 8),
            offset: get64(bytes, 16),
            total: get64(bytes, 24),
            clock: 0,
        };
        let hello = Hello { data, bytes: get64(bytes, 32) };
        let end = data.offset.checked_add(hello.bytes)?;
        (end <= data.total).then_some(hello)
    }
}

/// Why bytes are no datagram of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short, or of another kind or version.
    Unknown,
    /// The payload is not what its check sum says.
    Corrupt,
}

impl Data {
    /// Writes header and check sum around a payload of `len` bytes, which already stands behind the
    /// header in `out`: less than 64 KiB. Returns the bytes of the datagram.
    pub fn seal(&self, len: usize, out: &mut [u8]) -> usize {
        let sum = checksum(&out[DATA_HEADER..DATA_HEADER + len]);
        out[..2].copy_from_slice(&[DATA, VERSION]);
        out[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        put32(out, 4, self.src);
        put32(out, 8, self.flow);
        put32(out, 12, self.seq);
        put32(out, 16, self.packets);
        put32(out, 20, self.message);
        put64(out, 24, self.offset);
        put64(out, 32, self.total);
        put32(out, 40, self.clock);
        put32(out, 44, sum);
        DATA_HEADER + len
    }
}

impl Answer {
    /// The answer as bytes.
    pub fn encode(&self) -> [u8; ANSWER] {
        let mut out = [0; ANSWER];
        out[..2].copy_from_slice(&[if self.nack { NACK } else { ACK }, VERSION]);
        out[2..4].copy_from_slice(&self.port.to_be_bytes());
        put32(&mut out, 4, self.src);
        put32(&mut out, 8, self.flow);
        put32(&mut out, 12, self.seq);
        put32(&mut out, 16, self.cumulative);
        put32(&mut out, 20, self.clock);
        out
    }
}

impl Datagram<'_> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// If it is none of ours, or its payload is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
        match bytes {
            [DATA, VERSION, ..] if bytes.len() >= DATA_HEADER => data(bytes),
            [kind @ (ACK | NACK), VERSION, ..] if bytes.len() >= ANSWER => {
                Ok(Datagram::Answer(Answer {
                    nack: *kind == NACK,
                    port: get16(bytes, 2),
                    src: get32(bytes, 4),
                    flow: get32(bytes, 8),
                    seq: get32(bytes, 12),
                    cumulative: get32(bytes, 16),
                    clock: get32(bytes, 20),
                }))
            }
            _ => Err(Malformed::Unknown),
        }
    }
}

fn data(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
    let header = Data {
        src: get32(bytes, 4),
        flow: get32(bytes, 8),
        seq: get32(bytes, 12),
        packets: get32(bytes, 16),
        message: get32(bytes, 20),
        offset: get64(bytes, 24),
        total: get64(bytes, 32),
        clock: get32(bytes, 40),
    };
    let payload = &bytes[DATA_HEADER..];
    let ends = header.offset.checked_add(payload.len() as u64);
    let fits = header.seq < header.packets && ends.is_some_and(|end| end <= header.total);
    if payload.len() != usize::from(get16(bytes, 2)) || !fits {
        return Err(Malformed::Unknown);
    }
    if checksum(payload) != get32(bytes, 44) {
        return Err(Malformed::Corrupt);
    }
    Ok(Datagram::Data(header, payload))
}

/// A sum that notices flipped and moved bytes. Between two ends of a veth pair nobody computes
/// UDP's own.
pub fn checksum(payload: &[u8]) -> u32 {
    const MIX: u64 = 0xd6e8_feb8_6659_fd93;
    // Four sums side by side, since each step of one waits for the step before.
    let seed = 0x9e37_79b9_7f4a_7c15 ^ payload.len() as u64;
    let mut sums = [1, 2, 3, 4].map(|n: u64| seed.wrapping_mul(n));
    let mut rows = payload.chunks_exact(32);
    for row in &mut rows {
        for (sum, word) in sums.iter_mut().zip(row.chunks_exact(8)) {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            *sum = (sum.rotate_left(5) ^ word).wrapping_mul(MIX);
        }
    }
    let fold = |sum: u64, more: u64| (sum.rotate_left(5) ^ more).wrapping_mul(MIX);
    let sum = sums.into_iter().reduce(fold).unwrap_or_default();
    let rest = rows.remainder().iter().map(|byte| u64::from(*byte));
    (rest.fold(sum, fold) >> 32) as u32
}

pub(crate) fn put32(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
pub(crate) fn put64(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_be_bytes());
}
fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
pub(crate) fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
pub(crate) fn get64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Data = Data {
        src: 3,
        flow: 70_000,
        seq: 9,
        packets: 10,
        message: 41,
        offset: 8192,
        total: 12_000,
        clock: 77,
    };

    fn sealed() -> Vec<u8> {
        let mut out = vec![0; DATA_HEADER];
        out.extend((0..=200).map(|n| n as u8));
        let len = HEADER.seal(201, &mut out);
        assert_eq!(len, out.len());
        out
    }

    #[test]
    fn data_comes_back_as_written() {
        let bytes = sealed();
        let payload: Vec<u8> = (0..=200).collect();
        assert_eq!(Datagram::decode(&bytes), Ok(Datagram::Data(HEADER, &payload)));
    }

    #[test]
    fn an_answer_comes_back_as_written() {
        for nack in [false, true] {
            let cumulative = 1 << 20;
            let answer =
                Answer { src: 1, flow: 2, seq: 3, port: 65_000, nack, cumulative, clock: 9 };
            assert_eq!(Datagram::decode(&answer.encode()), Ok(Datagram::Answer(answer)));
        }
    }

    #[test]
    fn a_hello_comes_back_as_written() {
        let data = Data { seq: 0, packets: 1, clock: 0, ..HEADER };
        let hello = Hello { data, bytes: 3_808 };
        assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        assert_eq!(Hello::decode(&Hello { bytes: 3_809, ..hello }.encode()), None);
    }

    #[test]
    fn damage_is_noticed() {
        for at in [DATA_HEADER, DATA_HEADER + 200] {
            let mut bytes = sealed();
            bytes[at] ^= 1;
            assert_eq!(Datagram::decode(&bytes), Err(Malformed::Corrupt), "byte {at}");
        }
        let mut swapped = sealed();
        swapped.swap(DATA_HEADER, DATA_HEADER + 8);
        assert_eq!(Datagram::decode(&swapped), Err(Malformed::Corrupt));
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let bytes = sealed();
        for len in 0..bytes.len() {
            assert_eq!(Datagram::decode(&bytes[..len]), Err(Malformed::Unknown), "{len} bytes");
        }
        // Payload behind the end of its message.
        let mut out = bytes.clone();
        Data { offset: 11_900, ..HEADER }.seal(201, &mut out);
        assert_eq!(Datagram::decode(&out), Err(Malformed::Unknown));
        // A packet behind the last one.
        let mut out = bytes;
        Data { packets: 9, ..HEADER }.seal(201, &mut out);
        assert_eq!(Datagram::decode(&out), Err(Malformed::Unknown));
    }
}
