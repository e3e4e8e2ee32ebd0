//! The two ends of a connection that carries one subflow.

use super::sockets::mark;
use crate::pattern::Pattern;
use crate::sender::Source;
use crate::wire::{HELLO, Hello};
use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use weft_units::MessageId;

/// Kept small, so that what was written says how the network fares.
const SEND_BUFFER: usize = 64 << 10;
/// Contents made at a time.
const CHUNK: usize = 16 << 10;

/// The sending end.
#[derive(Debug)]
pub struct Outlet {
    stream: TcpStream,
    hello: [u8; HELLO],
    /// How much of the hello was written.
    greeted: usize,
    /// What the receiver said, as far as it is here.
    heard: Vec<u8>,
    /// Where in the subflow the next byte to write is; unknown until the receiver has spoken.
    at: Option<u64>,
    /// Contents that are made but not written.
    ready: Vec<u8>,
}

/// How an [`Outlet`] is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outflow {
    /// Bytes that the system took: from where in the subflow, and how many.
    pub wrote: Option<(u64, u64)>,
    /// The receiver has all of it.
    pub finished: bool,
    /// The connection is gone.
    pub broken: bool,
}

impl Outlet {
    /// Begins to connect from `port` of `address`; packets have `dscp`.
    ///
    /// # Errors
    /// If the port is taken for this receiver, or there is no way to it.
    pub fn connect(
        address: Ipv4Addr,
        port: u16,
        dscp: u8,
        to: SocketAddrV4,
        hello: &Hello,
    ) -> io::Result<Outlet> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        mark(&socket, dscp)?;
        socket.set_send_buffer_size(SEND_BUFFER)?;
        socket.bind(&SocketAddr::from((address, port)).into())?;
        match socket.connect(&SocketAddr::from(to).into()) {
            Err(error) if !is_under_way(&error) => return Err(error),
            _ => {}
        }
        let stream = TcpStream::from_std(socket.into());
        let (heard, ready) = (Vec::new(), Vec::new());
        Ok(Outlet { stream, hello: hello.encode(), greeted: 0, heard, at: None, ready })
    }

    /// What the poll watches.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Writes and reads as much as goes.
    pub fn advance(&mut self, hello: &Hello) -> Outflow {
        let mut out = Outflow::default();
        match self.try_advance(hello, &mut out) {
            Err(error) if !is_under_way(&error) => out.broken = !out.finished,
            _ => {}
        }
        out
    }

    fn try_advance(&mut self, hello: &Hello, out: &mut Outflow) -> io::Result<()> {
        while self.greeted < HELLO {
            self.greeted += self.stream.write(&self.hello[self.greeted..])?;
        }
        if let Err(error) = self.listen(hello, out)
            && !is_under_way(&error)
        {
            return Err(error);
        }
        let Some(mut at) = self.at else { return Ok(()) };
        let from = at;
        let end = loop {
            if at == hello.bytes {
                break Ok(());
            }
            if self.ready.is_empty() {
                let len = (hello.bytes - at).min(CHUNK as u64) as usize;
                self.ready.resize(len, 0);
                let message = MessageId(hello.data.message);
                Pattern.read(message, hello.data.offset + at, &mut self.ready);
            }
            match self.stream.write(&self.ready) {
                Ok(count) => {
                    self.ready.drain(..count);
                    at += count as u64;
                }
                Err(error) => break Err(error),
            }
        };
        self.at = Some(at);
        out.wrote = (at > from).then_some((from, at - from));
        end
    }

    /// The receiver speaks twice: where to go on, and that it has all.
    fn listen(&mut self, hello: &Hello, out: &mut Outflow) -> io::Result<()> {
        let mut bytes = [0; 16];
        loop {
            let count = self.stream.read(&mut bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.heard.extend_from_slice(&bytes[..count]);
            while self.heard.len() >= 8 {
                let word: Vec<u8> = self.heard.drain(..8).collect();
                let have = u64::from_be_bytes(word.try_into().expect("eight bytes"));
                if have >= hello.bytes {
                    out.finished = true;
                }
                self.at.get_or_insert(have.min(hello.bytes));
            }
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Inlet {
    stream: TcpStream,
    greeting: Vec<u8>,
    /// Which subflow comes, once that is known.
    pub hello: Option<Hello>,
}

impl Inlet {
    /// Of a connection that was accepted.
    pub fn new(stream: TcpStream) -> Inlet {
        Inlet { stream, greeting: Vec::new(), hello: None }
    }
    /// What the poll watches.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }
    /// Reads which subflow comes; `None`: not all of that is here.
    ///
    /// # Errors
    /// If the connection is gone, or makes no sense.
    pub fn greet(&mut self) -> io::Result<Option<Hello>> {
        while self.greeting.len() < HELLO {
            let mut bytes = [0; HELLO];
            match self.stream.read(&mut bytes[self.greeting.len()..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    let from = self.greeting.len();
                    self.greeting.extend_from_slice(&bytes[from..from + count]);
                }
                Err(error) if is_under_way(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let bytes: &[u8; HELLO] = self.greeting[..].try_into().expect("read to the end");
        let hello = Hello::decode(bytes).ok_or(io::ErrorKind::InvalidData)?;
        self.hello = Some(hello);
        Ok(self.hello)
    }
    /// Says how much of the subflow is here. Eight bytes always find room.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn say(&mut self, have: u64) -> io::Result<()> {
        self.stream.write_all(&have.to_be_bytes())
    }
    /// Reads what is here; `None`: nothing now.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        match self.stream.read(out) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(Some(count)),
            Err(error) if is_under_way(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_under_way(error: &io::Error) -> bool {
    // A connect under way, in Linux's words.
    const IN_PROGRESS: i32 = 115;
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::NotConnected
    ) || error.raw_os_error() == Some(IN_PROGRESS)
}
