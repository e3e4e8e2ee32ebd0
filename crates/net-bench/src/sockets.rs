//! Plain sockets as a [`NetworkPlugin`]: the baseline. A message is cut evenly over some connections of
//! a channel, whose ports the kernel picks; nobody chooses paths, and whoever asks whether a
//! request is done moves the bytes.

#![expect(unsafe_code, reason = "sends from and receives into the caller's memory")]

use crate::BenchError;
use crate::network::{Handle, NetworkPlugin, Span};
use crate::stream::{Direction, Stream};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

/// Sends of plain sockets.
#[derive(Debug)]
pub struct Sockets {
    address: IpAddr,
    connections: usize,
}

/// Waits for the connections of one channel.
#[derive(Debug)]
pub struct Listening {
    socket: TcpListener,
    here: Vec<Option<TcpStream>>,
    asking: Vec<TcpStream>,
}

/// One half of a channel.
#[derive(Debug)]
pub struct Half {
    streams: Vec<Stream>,
    posted: u64,
}

/// Which message of a channel, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    number: u64,
    bytes: usize,
}

impl Sockets {
    /// So many connections a channel, at this address.
    #[must_use]
    pub fn new(address: IpAddr, connections: usize) -> Sockets {
        Sockets { address, connections }
    }

    fn half(streams: Vec<TcpStream>, direction: Direction) -> Half {
        let stream = |socket| Stream::new(socket, direction);
        Half { streams: streams.into_iter().map(stream).collect(), posted: 0 }
    }

    /// Hands each connection its part of a message.
    ///
    /// # Safety
    /// As [`Network`] says.
    unsafe fn post(&self, half: &mut Half, span: Span) -> Message {
        let count = self.connections;
        for (at, stream) in half.streams.iter_mut().enumerate() {
            let from = span.len * at / count;
            let to = span.len * (at + 1) / count;
            // SAFETY: a part of the caller's memory.
            let start = unsafe { span.start.add(from) };
            stream.post(Span { start, len: to - from });
        }
        half.posted += 1;
        Message { number: half.posted, bytes: span.len }
    }

    fn done(half: &mut Half, message: Message) -> Result<Option<usize>, BenchError> {
        let mut done = true;
        for stream in &mut half.streams {
            // SAFETY: whoever posted said that the memory is there until the message is done.
            unsafe { stream.advance()? };
            done &= stream.finished() >= message.number;
        }
        Ok(done.then_some(message.bytes))
    }
}

fn trouble(error: &std::io::Error) -> BenchError {
    BenchError::broken("sockets", error)
}

impl NetworkPlugin for Sockets {
    type Listener = Listening;
    type Connecting = Vec<TcpStream>;
    type Sender = Half;
    type Receiver = Half;
    type Request = Message;

    fn describe(&self) -> String {
        format!("plain sockets, {} connections a channel, ports of the kernel", self.connections)
    }

    fn listen(&self) -> Result<(Listening, Handle), BenchError> {
        let socket = TcpListener::bind((self.address, 0)).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrNotAvailable => BenchError::input(format!(
                "--address: this machine has no address {}; use one that `ip address` shows",
                self.address
            )),
            _ => trouble(&error),
        })?;
        socket.set_nonblocking(true).map_err(|e| trouble(&e))?;
        let text = socket.local_addr().map_err(|e| trouble(&e))?.to_string();
        let mut handle = [0; weft_nccl_abi::HANDLE_BYTES];
        handle[..text.len()].copy_from_slice(text.as_bytes());
        let here = (0..self.connections).map(|_| None).collect();
        Ok((Listening { socket, here, asking: Vec::new() }, handle))
    }

    /// Blocks for a round trip a connection, which the baseline may.
    fn connect(&self, handle: &Handle) -> Result<Vec<TcpStream>, BenchError> {
        use std::io::Write;
        let end = handle.iter().position(|byte| *byte == 0).unwrap_or(handle.len());
        let text = String::from_utf8_lossy(&handle[..end]);
        let address: SocketAddr = text.parse().map_err(|_| {
            BenchError::Broken(format!(
                "sockets: {text:?} is no address; do all ranks run --over sockets?"
            ))
        })?;
        let open = |number: usize| {
            let mut stream = TcpStream::connect(address)?;
            // Which part of messages it carries.
            stream.write_all(&[u8::try_from(number).unwrap_or(u8::MAX)])?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        (0..self.connections).map(open).collect::<Result<_, _>>().map_err(|e| trouble(&e))
    }

    fn connected(
        &self,
        connecting: &mut Vec<TcpStream>,
        _: &[Span],
    ) -> Result<Option<Half>, BenchError> {
        Ok(Some(Sockets::half(std::mem::take(connecting), Direction::Out)))
    }

    fn accept(&self, listener: &mut Listening, _: &[Span]) -> Result<Option<Half>, BenchError> {
        listener.gather().map_err(|e| trouble(&e))?;
        if listener.here.iter().any(Option::is_none) {
            return Ok(None);
        }
        let streams = listener.here.drain(..).flatten().collect();
        Ok(Some(Sockets::half(streams, Direction::In)))
    }

    unsafe fn isend(
        &self,
        sender: &mut Half,
        _: usize,
        part: Span,
        _: i32,
    ) -> Result<Option<Message>, BenchError> {
        // SAFETY: as the caller's.
        Ok(Some(unsafe { self.post(sender, part) }))
    }

    unsafe fn irecv(
        &self,
        receiver: &mut Half,
        _: usize,
        part: Span,
        _: i32,
    ) -> Result<Option<Message>, BenchError> {
        // SAFETY: as the caller's.
        Ok(Some(unsafe { self.post(receiver, part) }))
    }

    fn sent(&self, sender: &mut Half, request: &Message) -> Result<Option<usize>, BenchError> {
        Sockets::done(sender, *request)
    }

    fn received(
        &self,
        receiver: &mut Half,
        request: &Message,
    ) -> Result<Option<usize>, BenchError> {
        Sockets::done(receiver, *request)
    }

    fn close(&self, sender: Half, receiver: Half) -> Result<(), BenchError> {
        drop((sender, receiver));
        Ok(())
    }

    fn expect(&self, _: i32, _: i32) -> Result<(), BenchError> {
        Ok(())
    }
}

impl Listening {
    /// Takes what has connected and said which part it carries.
    fn gather(&mut self) -> std::io::Result<()> {
        use std::io::{ErrorKind::WouldBlock, Read};
        loop {
            match self.socket.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    self.asking.push(stream);
                }
                Err(error) if error.kind() == WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        for mut stream in std::mem::take(&mut self.asking) {
            let mut number = [0];
            match stream.read(&mut number) {
                Ok(1) if usize::from(number[0]) < self.here.len() => {
                    self.here[usize::from(number[0])] = Some(stream);
                }
                Ok(_) => {}
                Err(error) if error.kind() == WouldBlock => self.asking.push(stream),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_machine_is_the_options_mistake() {
        let elsewhere = Sockets::new("192.0.2.1".parse().expect("an address"), 1);
        let error = elsewhere.listen().expect_err("nobody has it (RFC 5737)");
        assert!(
            matches!(&error, BenchError::Input(text) if text.starts_with("--address: ")),
            "{error}"
        );
    }
}
