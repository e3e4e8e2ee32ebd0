//! Sockets that probes leave from.
//!
//! Invariant: of a target and a port one probe at most is out, so that an answer that quotes no payload
//! belongs to that one.

use crate::answers;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockRef, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use weft_discover::{Probe, Reply};

/// UDP sockets that are kept open.
const MOST: usize = 256;
/// A connection that is not answered for so long is given up before its first packet is sent again.
const GIVE_UP: Duration = Duration::from_millis(900);
/// The header of a RoCEv2 packet: a send in one packet (UD), the default partition, no queue pair.
const HEADER: [u8; 12] = [0x64, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
/// Behind it: what tells our probes from others.
const MARK: [u8; 3] = *b"wft";

/// What carries the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RoCEv2, among others.
    Udp,
    /// Connections.
    Tcp,
}

/// What switches see of the traffic but source port and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The address of this host.
    pub source: Ipv4Addr,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its destination port.
    pub port: u16,
    /// Its DSCP.
    pub dscp: u8,
}

#[derive(Debug)]
struct Connecting {
    socket: Socket,
    ttl: u8,
    since: Instant,
}

/// Sends probes, and hears of answers.
#[derive(Debug)]
pub struct Prober {
    traffic: Traffic,
    targets: Vec<Ipv4Addr>,
    by_address: BTreeMap<Ipv4Addr, u32>,
    udp: BTreeMap<u16, Socket>,
    /// The distance of the last probe, by target and port.
    last: BTreeMap<(u32, u16), u8>,
    tcp: BTreeMap<(u32, u16), Connecting>,
}

impl Prober {
    /// Of `traffic` towards these targets.
    pub fn new(traffic: Traffic, targets: Vec<Ipv4Addr>) -> Prober {
        let numbers = targets.iter().zip(0..).map(|(address, number)| (*address, number));
        let by_address = numbers.collect();
        let (udp, last, tcp) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Prober { traffic, targets, by_address, udp, last, tcp }
    }

    /// Sends a probe. `false`: somebody else has the port.
    ///
    /// # Errors
    /// If no socket can be opened.
    pub fn send(&mut self, probe: Probe) -> io::Result<bool> {
        let sent = match self.traffic.protocol {
            Protocol::Udp => self.send_datagram(probe),
            Protocol::Tcp => self.connect(probe),
        };
        match sent {
            Err(error) if is_taken(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }

    fn socket(&self, port: u16, kind: Type) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, kind, None)?;
        socket.set_nonblocking(true)?;
        if kind == Type::STREAM {
            socket.set_reuse_address(true)?;
        }
        socket.set_tos_v4(u32::from(self.traffic.dscp) << 2)?;
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        let source = self.traffic.source;
        socket.bind(&SocketAddrV4::new(source, port).into()).map_err(|error| {
            match error.kind() {
                io::ErrorKind::AddrNotAvailable => {
                    io::Error::other(format!("{source} is no address of this host"))
                }
                _ => error,
            }
        })?;
        Ok(socket)
    }

    fn to(&self, probe: Probe) -> SocketAddrV4 {
        SocketAddrV4::new(self.targets[probe.target as usize], self.traffic.port)
    }

    fn send_datagram(&mut self, probe: Probe) -> io::Result<()> {
        let Probe { target, port, ttl } = probe;
        if !self.udp.contains_key(&port) {
            if self.udp.len() >= MOST {
                // The first of all has been idle for longest, or has answers that come late.
                self.udp.pop_first();
            }
            let socket = self.socket(port, Type::DGRAM)?;
            self.udp.insert(port, socket);
        }
        let (socket, to) = (&self.udp[&port], self.to(probe));
        socket.set_ttl_v4(u32::from(ttl))?;
        let mut payload = HEADER.to_vec();
        payload.extend(MARK);
        payload.push(ttl);
        self.last.insert((target, port), ttl);
        // What the system does not take is lost like on the wire; an error of before is told once.
        if socket.send_to(&payload, &to.into()).is_err() {
            let _ = socket.send_to(&payload, &to.into());
        }
        Ok(())
    }

    fn connect(&mut self, probe: Probe) -> io::Result<()> {
        let Probe { target, port, ttl } = probe;
        self.close((target, port));
        let socket = self.socket(port, Type::STREAM)?;
        socket.set_ttl_v4(u32::from(ttl))?;
        match socket.connect(&self.to(probe).into()) {
            Err(error) if is_taken(&error) => return Err(error),
            _ => {}
        }
        self.tcp.insert((target, port), Connecting { socket, ttl, since: Instant::now() });
        Ok(())
    }

    /// Gives a connection up, with a reset if the target took it.
    fn close(&mut self, key: (u32, u16)) {
        if let Some(old) = self.tcp.remove(&key) {
            let _ = SockRef::from(&old.socket).set_linger(Some(Duration::ZERO));
        }
    }

    /// Waits for answers for so long, and tells of those that there are.
    ///
    /// # Errors
    /// If sockets cannot be polled.
    pub fn wait(&mut self, time: Duration, mut tell: impl FnMut(Probe, Reply)) -> io::Result<()> {
        let datagrams = self.udp.values().map(|one| PollFd::new(one.as_fd(), PollFlags::empty()));
        let connections =
            self.tcp.values().map(|one| PollFd::new(one.socket.as_fd(), PollFlags::POLLOUT));
        let mut all: Vec<PollFd<'_>> = datagrams.chain(connections).collect();
        let ms =
            PollTimeout::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(PollTimeout::MAX);
        match poll(&mut all, ms) {
            Err(nix::errno::Errno::EINTR) => return Ok(()),
            other => other?,
        };
        let ready: Vec<bool> = all.iter().map(|one| one.any().unwrap_or(true)).collect();
        let (udp, tcp) = ready.split_at(self.udp.len());
        for (port, socket) in ready_of(&self.udp, udp) {
            self.hear(*port, socket, &mut tell);
        }
        self.hear_connections(tcp, &mut tell);
        Ok(())
    }

    /// All that is in the queue of a UDP socket.
    fn hear(&self, port: u16, socket: &Socket, tell: &mut impl FnMut(Probe, Reply)) {
        loop {
            let answer = match answers::next(socket) {
                Ok(Some(answer)) => answer,
                Ok(None) => continue,
                Err(_) => break,
            };
            let target = answer.to.and_then(|to| self.by_address.get(&to));
            let Some(target) = target.copied() else { continue };
            let quoted = match answer.payload.get(HEADER.len()..) {
                Some([a, b, c, ttl, ..]) if [*a, *b, *c] == MARK => Some(*ttl),
                _ => None,
            };
            let last = || self.last.get(&(target, port)).copied();
            let Some(ttl) = quoted.or_else(last) else { continue };
            tell(Probe { target, port, ttl }, answer.reply);
        }
        // A pending error keeps the socket ready.
        let _ = socket.take_error();
    }

    fn hear_connections(&mut self, ready: &[bool], tell: &mut impl FnMut(Probe, Reply)) {
        let mut over = Vec::new();
        for ((key, one), is_ready) in self.tcp.iter().zip(ready) {
            let (target, port) = *key;
            let probe = Probe { target, port, ttl: one.ttl };
            if *is_ready {
                over.push(*key);
                if let Some(reply) = of_connection(&one.socket) {
                    tell(probe, reply);
                }
            } else if one.since.elapsed() >= GIVE_UP {
                over.push(*key);
            }
        }
        over.into_iter().for_each(|key| self.close(key));
    }
}

/// What became of an attempt to connect that has ended.
fn of_connection(socket: &Socket) -> Option<Reply> {
    while let Ok(answer) = answers::next(socket) {
        if let Some(answer) = answer {
            return Some(answer.reply);
        }
    }
    match socket.take_error() {
        // The target took it, or refused it.
        Ok(None) => Some(Reply::End),
        Ok(Some(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Some(Reply::End),
        _ => None,
    }
}

fn ready_of<'a>(
    sockets: &'a BTreeMap<u16, Socket>,
    ready: &'a [bool],
) -> impl Iterator<Item = (&'a u16, &'a Socket)> {
    sockets.iter().zip(ready).filter(|(_, ready)| **ready).map(|(one, _)| one)
}

/// Whether somebody else has the port, or the connection from it.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}
