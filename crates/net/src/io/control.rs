//! The line to whoever started this host: a Unix stream socket with lines of text.
//!
//! The host says `ready HOST BYTES` (that it expects), `come BYTES` now and then, and `done`; it is
//! told `go NANOSECONDS` (since 1970, when all begin), and `stop`. Until then it answers what others
//! repeat.

use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The host's end of the line.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
    heard: Vec<u8>,
    closed: bool,
}

/// What a host was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Begin, so many nanoseconds after 1970.
    Go(u64),
    /// End; also when the other side is gone.
    Stop,
}

impl Control {
    /// Connects to the socket at `path`, and tells `poll` to watch it as `token`.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(path: &Path, poll: &Poll, token: Token) -> io::Result<Control> {
        let mut stream = UnixStream::connect(path)?;
        poll.registry().register(&mut stream, token, Interest::READABLE)?;
        Ok(Control { stream, heard: Vec::new(), closed: false })
    }

    /// Says something. A line that the other side has no room for is dropped: only progress comes
    /// often enough for that.
    pub fn say(&mut self, line: &str) {
        // Whoever does not listen any more is gone, which `order` finds out.
        let _ = self.stream.write(line.as_bytes());
    }

    /// What was told since the last call.
    pub fn order(&mut self) -> Option<Order> {
        let mut bytes = [0; 64];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(count) => self.heard.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.closed = true,
            }
            if self.closed {
                return Some(Order::Stop);
            }
        }
        let end = self.heard.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.heard.drain(..=end).collect();
        let text = String::from_utf8_lossy(&line);
        let at = text.trim().strip_prefix("go ").and_then(|at| at.parse().ok());
        Some(at.map_or(Order::Stop, Order::Go))
    }

    /// Waits for [`Order::Go`], at most for `limit`; returns when to begin, if it came.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn wait_for_go(&mut self, poll: &mut Poll, limit: Duration) -> io::Result<Option<u64>> {
        let until = Instant::now() + limit;
        let mut events = Events::with_capacity(8);
        loop {
            match self.order() {
                Some(Order::Go(at)) => return Ok(Some(at)),
                Some(Order::Stop) => return Ok(None),
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            match poll.poll(&mut events, Some(left)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
    }
}
