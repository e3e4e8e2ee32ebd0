//! What the kernel keeps in the error queue of a socket (ip(7), `IP_RECVERR`).

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg};
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use weft_discover::Reply;

/// Payload that is kept of what an answer quotes.
const QUOTED: usize = 64;

/// `SO_EE_ORIGIN_ICMP`, and the types and the code of ICMP that matter.
const ICMP: u8 = 2;
const UNREACHABLE: u8 = 3;
const NETWORK: u8 = 0;
const HOST: u8 = 1;
const PORT: u8 = 3;
const TIME_EXCEEDED: u8 = 11;

/// An answer in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Where the probe was to go, as the answer quotes it.
    pub(crate) to: Option<Ipv4Addr>,
    pub(crate) reply: Reply,
    /// What it quotes of the payload: perhaps nothing.
    pub(crate) payload: Vec<u8>,
}

/// The next answer of a socket; `Ok(None)`: something else was in the queue.
///
/// # Errors
/// [`Errno::EAGAIN`] if there is nothing.
pub(crate) fn next<S: AsFd>(socket: &S) -> Result<Option<Answer>, Errno> {
    let mut payload = [0; QUOTED];
    let mut control = nix::cmsg_space!([u8; 256]);
    let mut into = [IoSliceMut::new(&mut payload)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let fd = socket.as_fd().as_raw_fd();
    let got = recvmsg::<SockaddrIn>(fd, &mut into, Some(&mut control), flags)?;
    let (bytes, to) = (got.bytes, got.address.map(|address| address.ip()));
    let mut reply = None;
    for message in got.cmsgs().into_iter().flatten() {
        let ControlMessageOwned::Ipv4RecvErr(error, Some(offender)) = message else { continue };
        let from = Ipv4Addr::from(u32::from_be(offender.sin_addr.s_addr));
        reply = match (error.ee_origin, error.ee_type, error.ee_code) {
            (ICMP, TIME_EXCEEDED, 0) => Some(Reply::Hop(from)),
            (ICMP, UNREACHABLE, PORT) => Some(Reply::End),
            (ICMP, UNREACHABLE, _) if Some(from) == to => Some(Reply::End),
            (ICMP, UNREACHABLE, NETWORK | HOST) => Some(Reply::NoWay),
            _ => None,
        };
    }
    Ok(reply.map(|reply| Answer { to, reply, payload: payload[..bytes].to_vec() }))
}
