//! What the application carries from the listener to those who connect.

use crate::CommError;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes of a handle: as many as NCCL has.
pub const HANDLE: usize = 128;
/// Bytes of a secret.
pub const SECRET: usize = 16;

const MAGIC: [u8; 4] = *b"weft";
/// Handles and lanes of another version are refused.
pub const VERSION: u16 = 4;

/// Address, port, number and secret of a listener, as bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub [u8; HANDLE]);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It holds a secret.
        f.write_str("Handle")
    }
}

/// What a [`Handle`] says. Numbers are big-endian; a CRC32C ends it, and what is between is zero.
///
/// | bytes | what |
/// |---|---|
/// | 0 to 4 | `weft` |
/// | 4 to 6 | version |
/// | 6 to 8 | port |
/// | 8 to 12 | address |
/// | 12 to 16 | number of the listener |
/// | 16 to 20 | host of the fabric, or all ones |
/// | 20 to 36 | secret |
/// | 36 to 37 | one: speaks RoCE |
/// | 116 to 124 | zero: whoever connects may note something here meanwhile |
/// | 124 to 128 | check sum |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Which listener of the endpoint.
    pub listener: u32,
    /// Which host of the fabric, if it knows.
    pub host: Option<u32>,
    /// Who does not know it is turned away.
    pub secret: [u8; SECRET],
    /// Whether lanes over RDMA are welcome.
    pub roce: bool,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "listener {} of {}", self.listener, self.address)
    }
}

const NO_HOST: u32 = u32::MAX;
const CHECK: usize = HANDLE - 4;

impl Parts {
    /// As bytes.
    pub fn encode(&self) -> Handle {
        let mut out = [0; HANDLE];
        out[..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_be_bytes());
        out[6..8].copy_from_slice(&self.address.port().to_be_bytes());
        out[8..12].copy_from_slice(&self.address.ip().octets());
        out[12..16].copy_from_slice(&self.listener.to_be_bytes());
        out[16..20].copy_from_slice(&self.host.unwrap_or(NO_HOST).to_be_bytes());
        out[20..36].copy_from_slice(&self.secret);
        out[36] = u8::from(self.roce);
        let check = crc32c::crc32c(&out[..CHECK]);
        out[CHECK..].copy_from_slice(&check.to_be_bytes());
        Handle(out)
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are no handle of this version of Weft.
    pub fn decode(handle: &Handle) -> Result<Parts, CommError> {
        let bytes = &handle.0;
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let refuse = |what: &str| Err(CommError::Invalid(format!("handle: {what}")));
        if bytes[..4] != MAGIC {
            return refuse("not one of Weft's; let all ranks use the same network plugin");
        }
        if half(4) != VERSION {
            return refuse(&format!(
                "of version {}, this is {VERSION}; install the same Weft on all hosts",
                half(4)
            ));
        }
        if crc32c::crc32c(&bytes[..CHECK]) != word(CHECK) {
            return refuse("damaged: its check sum is wrong");
        }
        let octets: [u8; 4] = bytes[8..12].try_into().expect("four");
        let address = SocketAddrV4::new(Ipv4Addr::from(octets), half(6));
        if bytes[36] > 1 || bytes[37..CHECK].iter().any(|byte| *byte != 0) || half(6) == 0 {
            return refuse("makes no sense");
        }
        Ok(Parts {
            address,
            listener: word(12),
            host: Some(word(16)).filter(|host| *host != NO_HOST),
            secret: bytes[20..36].try_into().expect("sixteen"),
            roce: bytes[36] == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 4_791);
        Parts { address, listener: 7, host: Some(3), secret: [9; SECRET], roce: false }
    }

    #[test]
    fn there_and_back() {
        for parts in [parts(), Parts { host: None, roce: true, ..parts() }] {
            assert_eq!(Parts::decode(&parts.encode()), Ok(parts));
        }
    }

    #[test]
    fn any_byte_that_is_wrong_is_noticed() {
        let good = parts().encode();
        for at in 0..HANDLE {
            let mut bad = good;
            bad.0[at] ^= 0x10;
            assert!(matches!(Parts::decode(&bad), Err(CommError::Invalid(_))), "byte {at}");
        }
    }

    #[test]
    fn garbage_is_refused_and_secrets_are_not_shown() {
        let error = Parts::decode(&Handle([0; HANDLE])).unwrap_err().to_string();
        assert!(error.starts_with("handle: not one of Weft's"), "{error}");
        assert_eq!(
            format!("{:?} {:?}", parts().encode(), parts()),
            "Handle listener 7 of 10.1.2.3:4791"
        );
    }
}
