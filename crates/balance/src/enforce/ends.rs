//! The two ends of a queue pair as switches see them.

use std::net::Ipv4Addr;
use weft_units::HostId;

/// The two ends of a queue pair, with the addresses that switches see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// The address of `src`.
    pub from: Ipv4Addr,
    /// The address of `dst`.
    pub to: Ipv4Addr,
}

impl Ends {
    /// With the addresses of [`address`].
    pub fn of(src: HostId, dst: HostId) -> Ends {
        Ends { src, dst, from: address(src), to: address(dst) }
    }
}

/// The address of a host where nobody has said otherwise: 10.0.0.1 and so on, by its number.
pub fn address(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from(10 << 24 | (host.0 + 1) & 0xFF_FFFF)
}
