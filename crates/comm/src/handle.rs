//! What the application carries from the listener to those who connect.

use crate::CommError;
use crate::wire::check_sum;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes of a handle: as many as NCCL has.
pub const HANDLE: usize = 128;
/// Bytes of a secret.
pub const SECRET: usize = 16;

const MAGIC: [u8; 4] = *b"weft";
/// Handles and lanes of another version are refused.
pub const VERSION: u16 = 8;

/// NICs that may be used as one: as many as NCCL merges.
pub const MOST_NICS: usize = 8;
/// Bytes of a further NIC, and where they begin.
const NIC: usize = 11;
const NICS: usize = 39;

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
/// | 37 to 38 | how many more NICs it listens at, as one |
/// | 38 to 39 | plane of the first, or all ones |
/// | 39 to 116 | 11 of each of those: address, port, host, plane |
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
    /// The plane of the first NIC, if there are several.
    pub plane: Option<u8>,
    /// The other NICs, where several are used as one.
    pub more: [Option<Nic>; MOST_NICS - 1],
}

/// A NIC of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Which host of the fabric of its plane, if it knows.
    pub host: Option<u32>,
    /// Its plane, if there are several.
    pub plane: Option<u8>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "listener {} of {}", self.listener, self.address)
    }
}

const NO_HOST: u32 = u32::MAX;
const NO_PLANE: u8 = u8::MAX;
const CHECK: usize = HANDLE - 4;

impl Nic {
    fn encode(&self) -> [u8; NIC] {
        let mut out = [0; NIC];
        out[..4].copy_from_slice(&self.address.ip().octets());
        out[4..6].copy_from_slice(&self.address.port().to_be_bytes());
        out[6..10].copy_from_slice(&self.host.unwrap_or(NO_HOST).to_be_bytes());
        out[10] = self.plane.unwrap_or(NO_PLANE);
        out
    }

    fn decode(bytes: &[u8]) -> Nic {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        let port = u16::from_be_bytes([bytes[4], bytes[5]]);
        Nic {
            address: SocketAddrV4::new(Ipv4Addr::from(word(0)), port),
            host: Some(word(6)).filter(|host| *host != NO_HOST),
            plane: Some(bytes[10]).filter(|plane| *plane != NO_PLANE),
        }
    }
}

impl Parts {
    /// All NICs.
    pub fn nics(&self) -> impl Iterator<Item = Nic> + use<> {
        let Parts { address, host, plane, more, .. } = *self;
        std::iter::once(Nic { address, host, plane }).chain(more.into_iter().flatten())
    }

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
        out[38] = self.plane.unwrap_or(NO_PLANE);
        for (nic, place) in self.more.iter().flatten().zip(out[NICS..].chunks_exact_mut(NIC)) {
            place.copy_from_slice(&nic.encode());
        }
        out[37] = self.more.iter().flatten().count() as u8;
        let check = check_sum(&out[..CHECK]);
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
        if check_sum(&bytes[..CHECK]) != word(CHECK) {
            return refuse("damaged: its check sum is wrong");
        }
        let octets: [u8; 4] = bytes[8..12].try_into().expect("four");
        let address = SocketAddrV4::new(Ipv4Addr::from(octets), half(6));
        let count = usize::from(bytes[37]);
        let end = NICS + NIC * count.min(MOST_NICS);
        let mut more = [None; MOST_NICS - 1];
        for (nic, from) in more.iter_mut().zip(bytes[NICS..CHECK].chunks_exact(NIC)).take(count) {
            *nic = Some(Nic::decode(from));
        }
        let is_wrong = bytes[36] > 1
            || count >= MOST_NICS
            || bytes[end.min(CHECK)..CHECK].iter().any(|byte| *byte != 0)
            || half(6) == 0
            || more.iter().flatten().any(|nic| nic.address.port() == 0);
        if is_wrong {
            return refuse("makes no sense");
        }
        Ok(Parts {
            address,
            listener: word(12),
            host: Some(word(16)).filter(|host| *host != NO_HOST),
            secret: bytes[20..36].try_into().expect("sixteen"),
            roce: bytes[36] == 1,
            plane: Some(bytes[38]).filter(|plane| *plane != NO_PLANE),
            more,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 4_791);
        let (plane, more) = Default::default();
        Parts { address, listener: 7, host: Some(3), secret: [9; SECRET], roce: false, plane, more }
    }

    #[test]
    fn there_and_back() {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 2, 2, 3), 4_792);
        let nic =
            |plane: u8| Nic { address, host: Some(9).filter(|_| plane > 1), plane: Some(plane) };
        let mut some = Parts { plane: Some(0), ..parts() };
        (some.more[0], some.more[1]) = (Some(nic(1)), Some(nic(2)));
        let all = Parts { more: [1, 2, 3, 4, 5, 6, 7].map(|plane| Some(nic(plane))), ..some };
        for parts in [parts(), Parts { host: None, roce: true, ..parts() }, some, all] {
            assert_eq!(Parts::decode(&parts.encode()), Ok(parts));
        }
        assert_eq!((parts().nics().count(), some.nics().count(), all.nics().count()), (1, 3, 8));
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
