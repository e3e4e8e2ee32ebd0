//! One connection of the plain sockets: parts of messages, one after the other, without headers,
//! since both sides know how long each is.

#![expect(unsafe_code, reason = "reads and writes the caller's memory")]

use crate::BenchError;
use crate::network::Span;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Which way bytes go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Out,
    In,
}

#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    direction: Direction,
    waiting: VecDeque<Span>,
    /// Bytes of the first one that have gone.
    gone: usize,
    finished: u64,
}

impl Stream {
    pub(crate) fn new(socket: TcpStream, direction: Direction) -> Stream {
        Stream { socket, direction, waiting: VecDeque::new(), gone: 0, finished: 0 }
    }

    pub(crate) fn post(&mut self, span: Span) {
        self.waiting.push_back(span);
    }

    /// Parts that have gone or come.
    pub(crate) fn finished(&self) -> u64 {
        self.finished
    }

    /// Moves as many bytes as the socket takes or has.
    ///
    /// # Safety
    /// The memory of all that was posted and is not finished is there, and nobody else uses it.
    pub(crate) unsafe fn advance(&mut self) -> Result<(), BenchError> {
        while let Some(span) = self.waiting.front() {
            let rest = span.len - self.gone;
            if rest == 0 {
                self.waiting.pop_front();
                self.finished += 1;
                self.gone = 0;
                continue;
            }
            // SAFETY: within the span; the caller vouches for the rest.
            let moved = unsafe {
                let start = span.start.add(self.gone);
                match self.direction {
                    Direction::Out => self.socket.write(std::slice::from_raw_parts(start, rest)),
                    Direction::In => self.socket.read(std::slice::from_raw_parts_mut(start, rest)),
                }
            };
            match moved {
                Ok(0) => {
                    return Err(BenchError::Broken("sockets: a peer has closed its side".into()));
                }
                Ok(bytes) => self.gone += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::broken("sockets", &error)),
            }
        }
        Ok(())
    }
}
