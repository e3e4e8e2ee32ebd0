//! A host's UDP sockets: one that listens, and one for every source port that something leaves
//! from, opened when it is first needed.

use mio::net::UdpSocket;
use mio::{Interest, Poll, Token};
use rustc_hash::FxHashMap;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd;

/// Asked of the system for what arrives while this host does not run; it may give less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The sockets of one host.
#[derive(Debug)]
pub struct Sockets {
    address: Ipv4Addr,
    dscp: u8,
    listening: UdpSocket,
    /// By source port. Never iterated.
    sending: FxHashMap<u16, std::net::UdpSocket>,
}

impl Sockets {
    /// Listens at `at`, UDP port `port`; `poll` watches it as `token`. What is sent leaves from `address`
    /// and has `dscp`.
    ///
    /// # Errors
    /// If the address is not this host's, or taken.
    pub fn open(
        (at, address): (Ipv4Addr, Ipv4Addr),
        port: u16,
        dscp: u8,
        poll: &Poll,
        token: Token,
    ) -> io::Result<Sockets> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddr::from((at, port)).into())?;
        let mut listening = UdpSocket::from_std(socket.into());
        poll.registry().register(&mut listening, token, Interest::READABLE)?;
        Ok(Sockets { address, dscp, listening, sending: FxHashMap::default() })
    }

    /// The next datagram and the port that it came from; `None`: there is none now.
    ///
    /// # Errors
    /// If the socket is broken.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, u16)>> {
        loop {
            match self.listening.recv_from(buffer) {
                Ok((len, from)) => return Ok(Some((len, from.port()))),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // ICMP's news of earlier datagrams: time-outs see to those.
                    io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Sends `bytes` from `port` to `to`. Returns whether the system took them: what it does not
    /// take is lost like on the wire.
    ///
    /// # Errors
    /// If no socket can be opened at that port.
    pub fn send(&mut self, port: u16, to: SocketAddrV4, bytes: &[u8]) -> io::Result<bool> {
        let socket = match self.sending.get(&port) {
            Some(socket) => socket,
            None => {
                let socket = std::net::UdpSocket::bind((self.address, port))?;
                socket.set_nonblocking(true)?;
                mark(&socket, self.dscp)?;
                self.sending.entry(port).or_insert(socket)
            }
        };
        Ok(socket.send_to(bytes, to).is_ok())
    }
}

/// Gives all that leaves a socket a DSCP.
///
/// # Errors
/// If the system does not take it.
pub(super) fn mark<S: AsFd>(socket: &S, dscp: u8) -> io::Result<()> {
    SockRef::from(socket).set_tos_v4(u32::from(dscp) << 2)
}
