//! The hash functions of switches and NICs over the addresses and ports of a packet.
//!
//! All of them are linear over bits, but for a constant: bits of the input that are flipped flip the
//! same bits of the value, whatever the others are. What this leaves of a choice in two tiers is said
//! in `balance::enforce::hashing`.

use std::net::Ipv4Addr;

/// What switches look at of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// IP protocol; 17 for UDP.
    pub protocol: u8,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
}

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

impl FiveTuple {
    /// Of a RoCEv2 packet.
    pub fn rocev2(src: Ipv4Addr, dst: Ipv4Addr, src_port: u16) -> FiveTuple {
        FiveTuple { src, dst, protocol: 17, src_port, dst_port: ROCE_PORT }
    }

    /// Addresses, protocol and ports in network order, sources before destinations: what CRCs run
    /// over.
    pub fn bytes(&self) -> [u8; 13] {
        let mut bytes = [0; 13];
        bytes[..4].copy_from_slice(&self.src.octets());
        bytes[4..8].copy_from_slice(&self.dst.octets());
        bytes[8] = self.protocol;
        bytes[9..11].copy_from_slice(&self.src_port.to_be_bytes());
        bytes[11..].copy_from_slice(&self.dst_port.to_be_bytes());
        bytes
    }
}

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashFunction {
    /// CRC-16/ARC (polynomial 0x8005, reflected), called BISYNC by switches.
    Crc16,
    /// CRC-16/CCITT-FALSE (polynomial 0x1021).
    Crc16Ccitt,
    /// CRC-32 of Ethernet (polynomial 0x04C11DB7, reflected).
    Crc32,
    /// CRC-32C of Castagnoli (polynomial 0x1EDC6F41, reflected).
    Crc32c,
    /// The exclusive or of all 16-bit words; the protocol is one of its own.
    Xor,
    /// Toeplitz under this key, over addresses and ports, as receive-side scaling has it.
    Toeplitz([u8; 40]),
}

/// The key of Microsoft's suite for the verification of receive-side scaling, which many NICs and
/// switches come with.
pub const MICROSOFT_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

impl HashFunction {
    /// Those that have a name of their own, with it; Toeplitz with [`MICROSOFT_KEY`].
    pub const NAMED: [(&str, HashFunction); 6] = [
        ("crc16", HashFunction::Crc16),
        ("crc16-ccitt", HashFunction::Crc16Ccitt),
        ("crc32", HashFunction::Crc32),
        ("crc32c", HashFunction::Crc32c),
        ("xor", HashFunction::Xor),
        ("toeplitz", HashFunction::Toeplitz(MICROSOFT_KEY)),
    ];

    /// How many bits its values have.
    pub const fn width(&self) -> u32 {
        match self {
            HashFunction::Crc16 | HashFunction::Crc16Ccitt | HashFunction::Xor => 16,
            HashFunction::Crc32 | HashFunction::Crc32c | HashFunction::Toeplitz(_) => 32,
        }
    }

    /// The hash of `tuple`.
    pub fn value(&self, tuple: &FiveTuple) -> u32 {
        let bytes = &tuple.bytes();
        match self {
            HashFunction::Crc16 => CRC_16.of(bytes),
            HashFunction::Crc16Ccitt => CRC_16_CCITT.of(bytes),
            HashFunction::Crc32 => CRC_32.of(bytes),
            HashFunction::Crc32c => CRC_32C.of(bytes),
            HashFunction::Xor => fold(tuple),
            HashFunction::Toeplitz(key) => {
                let mut input = [0; 12];
                input[..8].copy_from_slice(&bytes[..8]);
                input[8..].copy_from_slice(&bytes[9..]);
                toeplitz(key, &input)
            }
        }
    }
}

/// All 16-bit words of `tuple` folded into one.
fn fold(tuple: &FiveTuple) -> u32 {
    let halves = |address: Ipv4Addr| u32::from(address) >> 16 ^ u32::from(address) & 0xFFFF;
    let ports = u32::from(tuple.src_port ^ tuple.dst_port);
    halves(tuple.src) ^ halves(tuple.dst) ^ ports ^ u32::from(tuple.protocol)
}

/// Of every bit of `input` that is set, the 32 bits of `key` from there on, folded together.
pub fn toeplitz(key: &[u8; 40], input: &[u8]) -> u32 {
    let (first, mut next) = key.split_at(4);
    let mut window = u32::from_be_bytes([first[0], first[1], first[2], first[3]]);
    let mut hash = 0;
    for byte in input {
        let coming = next.first().copied().unwrap_or(0);
        next = next.get(1..).unwrap_or(&[]);
        for bit in (0..8).rev() {
            if byte >> bit & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(coming >> bit & 1);
        }
    }
    hash
}

/// A cyclic redundancy check, a byte at a time.
pub struct Crc {
    table: [u32; 256],
    width: u32,
    /// Bits come lowest first.
    reflected: bool,
    start: u32,
    end: u32,
}

/// CRC-16/ARC.
pub const CRC_16: Crc = Crc::reflected(16, 0xA001, 0, 0);
/// CRC-16/CCITT-FALSE, also IBM-3740.
pub const CRC_16_CCITT: Crc = Crc::upright(16, 0x1021, 0xFFFF);
/// CRC-32, also ISO-HDLC.
pub const CRC_32: Crc = Crc::reflected(32, 0xEDB8_8320, !0, !0);
/// CRC-32C, also ISCSI.
pub const CRC_32C: Crc = Crc::reflected(32, 0x82F6_3B78, !0, !0);

impl Crc {
    /// `polynomial` has its lowest power on top.
    const fn reflected(width: u32, polynomial: u32, start: u32, end: u32) -> Crc {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut bits = byte as u32;
            let mut step = 0;
            while step < 8 {
                bits = if bits & 1 == 1 { bits >> 1 ^ polynomial } else { bits >> 1 };
                step += 1;
            }
            table[byte] = bits;
            byte += 1;
        }
        Crc { table, width, reflected: true, start, end }
    }
    /// `polynomial` has its highest power on top.
    const fn upright(width: u32, polynomial: u32, start: u32) -> Crc {
        let (top, mask) = (1 << (width - 1), u32::MAX >> (32 - width));
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut bits = (byte as u32) << (width - 8);
            let mut step = 0;
            while step < 8 {
                bits = if bits & top != 0 { bits << 1 ^ polynomial } else { bits << 1 };
                step += 1;
            }
            table[byte] = bits & mask;
            byte += 1;
        }
        Crc { table, width, reflected: false, start, end: 0 }
    }
    /// The check of `bytes`.
    pub fn of(&self, bytes: &[u8]) -> u32 {
        let mask = u32::MAX >> (32 - self.width);
        let step = |crc: u32, byte: &u8| match self.reflected {
            true => crc >> 8 ^ self.table[(crc as u8 ^ byte) as usize],
            false => {
                let top = (crc >> (self.width - 8)) as u8 ^ byte;
                (crc << 8 ^ self.table[top as usize]) & mask
            }
        };
        bytes.iter().fold(self.start, step) ^ self.end
    }
}
