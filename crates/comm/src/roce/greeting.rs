//! What the two ends of a queue pair must know of each other.

use crate::handle::MOST_NICS;
use crate::wire::WireError;

/// Bytes of a [`Greeting`].
pub(crate) const GREETING: usize = 32;

/// One end of a queue pair, as the other end is told.
///
/// | bytes | what |
/// |---|---|
/// | 0 to 16 | address (GID) |
/// | 16 to 20 | number of the queue pair, of 24 bits |
/// | 20 to 24 | number of its first packet, of 24 bits |
/// | 24 to 26 | most payload of a packet |
/// | 26 to 28 | UDP source port of packets both ways; zero: the device picks |
/// | 28 | which NIC of its endpoint it is of, from 0 |
/// | 29 to 32 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) gid: [u8; 16],
    pub(crate) number: u32,
    pub(crate) first_packet: u32,
    pub(crate) mtu: u16,
    pub(crate) source_port: u16,
    pub(crate) nic: u8,
}

impl Greeting {
    /// As bytes.
    pub(crate) fn encode(&self) -> [u8; GREETING] {
        let mut out = [0; GREETING];
        out[..16].copy_from_slice(&self.gid);
        out[16..20].copy_from_slice(&self.number.to_be_bytes());
        out[20..24].copy_from_slice(&self.first_packet.to_be_bytes());
        out[24..26].copy_from_slice(&self.mtu.to_be_bytes());
        out[26..28].copy_from_slice(&self.source_port.to_be_bytes());
        out[28] = self.nic;
        out
    }

    /// From bytes, which a check sum has covered.
    ///
    /// # Errors
    /// If there can be no such queue pair.
    pub(crate) fn decode(bytes: &[u8; GREETING]) -> Result<Greeting, WireError> {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let greeting = Greeting {
            gid: bytes[..16].try_into().expect("sixteen"),
            number: word(16),
            first_packet: word(20),
            mtu: half(24),
            source_port: half(26),
            nic: bytes[28],
        };
        let sizes = [256, 512, 1_024, 2_048, 4_096];
        let port = greeting.source_port;
        let good = greeting.number >> 24 == 0
            && greeting.first_packet >> 24 == 0
            && sizes.contains(&greeting.mtu)
            && (port == 0 || port >= 0xC000)
            && usize::from(greeting.nic) < MOST_NICS
            && bytes[29..] == [0; 3];
        if good { Ok(greeting) } else { Err(WireError::Nonsense("a queue pair that cannot be")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let greeting = Greeting {
            gid: std::array::from_fn(|i| i as u8),
            number: 0xAB_CDEF,
            first_packet: 0x12_3456,
            mtu: 4_096,
            source_port: 50_000,
            nic: 7,
        };
        assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (first_packet, mtu, source_port) = (2, 1_024, 0);
        let good = Greeting { gid: [1; 16], number: 1, first_packet, mtu, source_port, nic: 0 };
        let bad = [
            Greeting { number: 1 << 24, ..good },
            Greeting { first_packet: 1 << 24, ..good },
            Greeting { mtu: 1_500, ..good },
            Greeting { source_port: 4_791, ..good },
            Greeting { nic: 8, ..good },
        ];
        for greeting in bad {
            assert!(Greeting::decode(&greeting.encode()).is_err(), "{greeting:?}");
        }
        assert!(Greeting::decode(&[0; GREETING]).is_err());
    }
}
