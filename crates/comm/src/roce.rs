//! Lanes over RDMA: what the engine wants of a NIC with verbs. This build has none: every type here
//! is empty, and [`Nic::open`] says so.
//!
//! A lane over RDMA has a TCP connection as any other, on which the two sides greet each other:
//! [`crate::wire::Hello::extra`] carries the sender's queue pair, the body of the `Welcome` the
//! receiver's. From then on frames go over the queue pair, and the connection stays open and silent: if
//! it breaks, the lane is lost as ever, and so it is if the queue pair breaks. Both sides resume by frame
//! numbers, which are the same ones.
//!
//! | frame | how |
//! |---|---|
//! | data | RDMA WRITE of the body to [`Outgoing::remote`], then SEND of the header, in order |
//! | all others, both ways | SEND of header and body, [`HEADER`] + [`MOST_BODY`] bytes at most |
//!
//! So each side posts receives of that size before it greets, enough for what the other may say: data
//! frames in flight are bounded by [`Link::has_room`], and the rest by the window of a channel.
//! The path of a lane is the UDP source port that [`Nic::offer`] is given, as a flow label; a lane that
//! moves gets a new queue pair.

use crate::half::sender::Outgoing;
use crate::wire::{HEADER, Header, MOST_BODY};
use crate::{CommError, EndpointConfig};
use std::convert::Infallible;
use std::os::fd::RawFd;

/// An RDMA device, its completion queue and the memory that it knows.
#[derive(Debug)]
pub(crate) struct Nic(Infallible);

/// Memory that the NIC knows; as long as it lives.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Infallible);

/// A queue pair that has no peer yet.
#[derive(Debug)]
pub(crate) struct Offer(Infallible);

/// A queue pair of a lane.
#[derive(Debug)]
pub(crate) struct Link(Infallible);

/// Something has happened to a queue pair.
#[derive(Debug)]
pub(crate) enum Event {
    /// The peer has sent a frame. The body of a data frame is in its memory already.
    Frame { header: [u8; HEADER], body: [u8; MOST_BODY] },
    /// A data frame has been written to the end, by its number.
    Written(u64),
    /// It works no more: why, in words.
    Broken(String),
}

impl Nic {
    /// Opens the device that the configuration names.
    ///
    /// # Errors
    /// If there is no such device, or no library: one clear line.
    pub(crate) fn open(config: &EndpointConfig) -> Result<Nic, CommError> {
        Err(CommError::System(format!("{}: no RoCE in this build", config.name)))
    }
    /// What to watch for [`Nic::poll`]: readable when something has happened after [`Nic::arm`].
    pub(crate) fn file(&self) -> RawFd {
        match self.0 {}
    }
    /// The next event makes the file readable. Called before the engine sleeps; then it polls once more.
    pub(crate) fn arm(&self) -> Result<(), CommError> {
        match self.0 {}
    }
    /// What has happened, by the numbers of queue pairs ([`Link::number`]).
    pub(crate) fn poll(&self, out: &mut Vec<(u32, Event)>) -> Result<(), CommError> {
        let _ = out;
        match self.0 {}
    }
    /// Makes memory known; what is known already is found in a cache.
    ///
    /// # Errors
    /// If the NIC refuses.
    ///
    /// # Safety
    /// It stays mapped while what is returned, or a clone of it, lives.
    #[expect(unsafe_code, reason = "the NIC writes to memory on its own")]
    pub(crate) unsafe fn register(&self, start: *mut u8, len: usize) -> Result<Memory, CommError> {
        let _ = (start, len);
        match self.0 {}
    }
    /// A queue pair for a new connection of a lane, whose packets shall leave from UDP port `port`
    /// (zero: any), and what the peer must know of it.
    pub(crate) fn offer(&self, port: u16) -> Result<(Offer, [u8; 32]), CommError> {
        let _ = port;
        match self.0 {}
    }
    /// The answer to an offer of the peer: a queue pair that is connected, and what the peer must
    /// know of it.
    pub(crate) fn answer(&self, offer: &[u8; 32]) -> Result<(Link, [u8; 32]), CommError> {
        let _ = offer;
        match self.0 {}
    }
}

impl Memory {
    /// The keys of local and of remote accesses.
    pub(crate) fn keys(&self) -> (u32, u32) {
        match self.0 {}
    }
}

impl Offer {
    /// Connects it with the peer that has answered.
    pub(crate) fn accept(self, answer: &[u8; 32]) -> Result<Link, CommError> {
        let _ = answer;
        match self.0 {}
    }
    /// The number of its queue pair.
    pub(crate) fn number(&self) -> u32 {
        match self.0 {}
    }
}

impl Link {
    /// The number of its queue pair.
    pub(crate) fn number(&self) -> u32 {
        match self.0 {}
    }
    /// Whether it takes one more data frame now. Room comes back with [`Event::Written`].
    pub(crate) fn has_room(&self) -> bool {
        match self.0 {}
    }
    /// Sends a data frame: the body to where it belongs, then the header. `key` is the local one of
    /// the memory that the body is in.
    pub(crate) fn send(&mut self, frame: &Outgoing, key: u32) -> Result<(), String> {
        let _ = (frame, key);
        match self.0 {}
    }
    /// Sends any other frame. What there is no room for now it keeps, and sends later, in order.
    pub(crate) fn say(&mut self, header: &Header, body: &[u8]) -> Result<(), String> {
        let _ = (header, body);
        match self.0 {}
    }
}
