//! Sockets, as lanes want them.

use crate::memory::Span;
use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, IoSlice};
use std::mem::offset_of;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Peers that may wait to be taken in.
const BACKLOG: i32 = 1_024;

/// Listens at the first port of `ports` that is free; what it takes in has these `traits`, but for the pace.
///
/// # Errors
/// If none is free, or the address is not this host's.
pub(crate) fn listen(
    address: Ipv4Addr,
    ports: &RangeInclusive<u16>,
    traits: Traits<'_>,
) -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for port in ports.clone() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // Ports whose last connections linger are free all the same.
        socket.set_reuse_address(true)?;
        socket.set_tos_v4(u32::from(traits.dscp) << 2)?;
        traits.congestion.map_or(Ok(()), |name| socket.set_tcp_congestion(name.as_bytes()))?;
        let bound = socket.bind(&SocketAddr::from((address, port)).into());
        match bound.and_then(|()| socket.listen(BACKLOG)) {
            Ok(()) => return Ok(TcpListener::from_std(socket.into())),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// How a connection sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits<'a> {
    pub(crate) dscp: u8,
    /// Bytes a second at most.
    pub(crate) pace: Option<u64>,
    /// Its congestion control, where the system has that; else the system's own.
    pub(crate) congestion: Option<&'a str>,
}

/// What processes of one host use between them: it holds back nothing as long as no packet is lost.
pub(crate) const WITHIN_HOST: &str = "reno";

/// Begins to connect from `port` of `address`, or from any where it is zero.
///
/// # Errors
/// If the port is taken for this peer ([`is_taken`]), or there is no way to it.
pub(crate) fn connect(
    (address, port): (Ipv4Addr, u16),
    to: SocketAddrV4,
    Traits { dscp, pace, congestion }: Traits<'_>,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_tos_v4(u32::from(dscp) << 2)?;
    if let Some(name) = congestion {
        // One that was asked for has been tried before ([`try_congestion`]).
        let _ = socket.set_tcp_congestion(name.as_bytes());
    }
    if let Some(bytes) = pace {
        set_option(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes)?;
    }
    if port == 0 {
        // Else the kernel picks a port that nobody has, whoever the peer is, and a host has some
        // 28,000: picked when it connects, one of another peer will do.
        set_option(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
    }
    socket.bind(&SocketAddr::from((address, port)).into())?;
    match socket.connect(&SocketAddr::from(to).into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    let stream = TcpStream::from_std(socket.into());
    tune(&stream)?;
    Ok(stream)
}

/// Tries congestion control `name`.
///
/// # Errors
/// If the system does not have it, or not for this process.
pub fn try_congestion(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_congestion(name.as_bytes())
}

/// What every connection of a lane wants.
///
/// # Errors
/// If the system does not know it.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    let every = Duration::from_secs(15);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(every).with_interval(every))
}

/// Gives what it sends from now on another DSCP.
///
/// # Errors
/// If the system refuses.
pub(crate) fn set_dscp(stream: &TcpStream, dscp: u8) -> io::Result<()> {
    SockRef::from(stream).set_tos_v4(u32::from(dscp) << 2)
}

/// What is not sent when it is closed is thrown away.
pub(crate) fn reset(stream: &TcpStream) {
    // If that does not work, closing is slower.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// No more connections, also where a child of this process has the socket as well.
pub(crate) fn close_listener(listener: &TcpListener) {
    // It is dropped next; this is for whoever else has it.
    let _ = SockRef::from(listener).shutdown(std::net::Shutdown::Both);
}

/// Whether somebody waits to be taken in.
pub(crate) fn is_knocked_at(listener: &TcpListener) -> bool {
    wait_readable(listener.as_raw_fd(), Duration::ZERO)
}

/// Waits until `file` has something to read, or `most` is over. Whether it has.
#[expect(unsafe_code, reason = "std has no poll")]
pub(crate) fn wait_readable(file: RawFd, most: Duration) -> bool {
    let mut one = libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec {
        tv_sec: most.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(most.subsec_nanos() as i32),
    };
    // SAFETY: the place is one structure, the limit outlives the call, and no mask is given.
    unsafe { libc::ppoll(&mut one, 1, &limit, std::ptr::null()) == 1 }
}

/// Whether somebody else has the port.
pub(crate) fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}

/// Writes as much as goes. No signal comes of a connection that is gone.
///
/// # Errors
/// As the system says; [`io::ErrorKind::WouldBlock`] if nothing goes.
pub(crate) fn write(stream: &TcpStream, from: &[IoSlice<'_>]) -> io::Result<usize> {
    loop {
        match SockRef::from(stream).send_vectored_with_flags(from, libc::MSG_NOSIGNAL) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Reads, first into the one, then into the other. Zero: the peer has closed.
///
/// # Errors
/// As the system says; [`io::ErrorKind::WouldBlock`] if there is nothing.
///
/// # Safety
/// `first` is there, and nobody else reads or writes it.
#[expect(unsafe_code, reason = "payload is read to where it belongs")]
pub(crate) unsafe fn read(stream: &TcpStream, first: Span, then: &mut [u8]) -> io::Result<usize> {
    let all = [
        libc::iovec { iov_base: first.start().cast(), iov_len: first.len() },
        libc::iovec { iov_base: then.as_mut_ptr().cast(), iov_len: then.len() },
    ];
    let used = if first.is_empty() { &all[1..] } else { &all[..] };
    loop {
        // SAFETY: both point to memory of their length: `first` as the caller says.
        let count =
            unsafe { libc::readv(stream.as_raw_fd(), used.as_ptr(), used.len() as libc::c_int) };
        if let Ok(count) = usize::try_from(count) {
            return Ok(count);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// `TCP_SYN_SENT` of Linux (include/net/tcp_states.h), which libc does not have.
const SYN_SENT: u8 = 2;

/// Signs of life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// The peer's system has not answered the first packet (SYN-SENT).
    pub(crate) opening: bool,
    /// Something is sent and not acknowledged.
    pub(crate) unanswered: bool,
    /// Since the last acknowledgement of anything.
    pub(crate) silent: Duration,
    /// An acknowledgement takes no longer, as a rule: RFC 6298's time-out without its minimum.
    pub(crate) answer: Duration,
    /// Bytes that were acknowledged, and segments beyond them: it grows where packets get through.
    /// `None`: the system is too old to tell.
    pub(crate) taken: Option<(u64, u32)>,
}

/// What the system knows. `None` if it does not tell.
#[expect(unsafe_code, reason = "socket2 does not ask for TCP_INFO")]
pub(crate) fn life(stream: &TcpStream) -> Option<Life> {
    // SAFETY: a structure of numbers, for which zeros are values.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` has room for `len` bytes, and the system writes no more.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    let silent = Duration::from_millis(u64::from(info.tcpi_last_ack_recv));
    // What the system cannot even send counts as well: then it probes, and nobody answers. A peer
    // that only has no room answers probes.
    let stuck = info.tcpi_notsent_bytes > 0 && info.tcpi_probes > 0;
    let told = offset_of!(libc::tcp_info, tcpi_bytes_acked) + size_of::<u64>() <= len as usize;
    let taken = told.then_some((info.tcpi_bytes_acked, info.tcpi_sacked));
    let opening = info.tcpi_state == SYN_SENT;
    let unanswered = info.tcpi_unacked > 0 || stuck;
    let answer = u64::from(info.tcpi_rtt) + 4 * u64::from(info.tcpi_rttvar);
    let answer = Duration::from_micros(answer);
    (result == 0).then_some(Life { opening, unanswered, silent, answer, taken })
}

/// What options may be.
trait Number: Copy {}
impl Number for libc::c_int {}
impl Number for u64 {}

#[expect(unsafe_code, reason = "socket2 has no such options")]
/// `value` is a number, as wide as the system wants it.
fn set_option<T: Number>(
    socket: &Socket,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the value is a number of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
