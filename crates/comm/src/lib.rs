//! One-way channels between processes, each over several paths that a load balancer chooses: what a
//! collective library needs of a network.
//!
//! An [`Endpoint`] is one NIC of one process. It listens under a [`Handle`], which the application
//! carries to the other side by its own means; there `connect` makes the sending half of a channel
//! and `try_accept` here the receiving half. Sends and receives match in the order of posting.
//! Nothing blocks: what is not ready yet is asked for again.

#![expect(unsafe_code, reason = "callers vouch for memory that is sent and received in place")]

mod config;
mod error;
mod handle;

pub use config::{Backend, EndpointConfig, Hint, PathPlan};
pub use error::CommError;
pub use handle::{HANDLE, Handle};

/// Most buffers of one receive.
pub const MOST_BUFFERS: usize = 8;
/// Requests that a channel holds at a time, in receives: of sends [`MOST_BUFFERS`] times as many.
pub const MOST_REQUESTS: usize = 32;

/// One NIC of one process.
#[derive(Debug)]
pub struct Endpoint {}

/// Where peers connect to.
#[derive(Debug)]
pub struct Listener {}

/// The sending half of a channel that is not there yet.
#[derive(Debug)]
pub struct Connecting {}

/// The sending half of a channel.
#[derive(Debug)]
pub struct SendChannel {}

/// The receiving half of a channel.
#[derive(Debug)]
pub struct RecvChannel {}

/// Memory that the NIC may read and write. Of TCP there is nothing to it.
#[derive(Clone, Debug)]
pub struct Region {}

/// A send or receive under way. Dropping it does not end it.
#[derive(Debug)]
pub struct Request {}

/// One buffer of a receive.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    /// Where.
    pub start: *mut u8,
    /// Bytes.
    pub len: usize,
    /// Sends with this tag go into it.
    pub tag: i32,
    /// The memory that it is a part of.
    pub region: Option<&'a Region>,
}

/// Bytes that came, by buffer of a receive; of a send one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// How many of `sizes` count.
    pub count: usize,
    /// Bytes.
    pub sizes: [usize; MOST_BUFFERS],
}

impl Endpoint {
    /// Opens a NIC: a socket that listens, a thread that moves bytes.
    ///
    /// # Errors
    /// If no port is free or the back end is not there.
    pub fn open(config: EndpointConfig) -> Result<Endpoint, CommError> {
        let _ = config;
        unimplemented!()
    }
    /// Begins to listen for one peer, or several.
    ///
    /// # Errors
    /// If the endpoint has failed.
    pub fn listen(&self) -> Result<(Listener, Handle), CommError> {
        unimplemented!()
    }
    /// Begins to connect.
    ///
    /// # Errors
    /// If the handle is none of ours, or the endpoint has failed.
    pub fn connect(&self, handle: &Handle) -> Result<Connecting, CommError> {
        let _ = handle;
        unimplemented!()
    }
    /// Tells what traffic is to be expected.
    pub fn hint(&self, hint: Hint) {
        let _ = hint;
        unimplemented!()
    }
    /// Makes memory known to the NIC.
    ///
    /// # Safety
    /// The memory stays mapped until all of the region's clones are dropped.
    ///
    /// # Errors
    /// If the NIC refuses.
    pub unsafe fn register(&self, start: *mut u8, len: usize) -> Result<Region, CommError> {
        let _ = (start, len);
        unimplemented!()
    }
}

impl Listener {
    /// The next peer that has connected, if one has.
    ///
    /// # Errors
    /// If the endpoint has failed.
    pub fn try_accept(&self) -> Result<Option<RecvChannel>, CommError> {
        unimplemented!()
    }
}

impl Connecting {
    /// The channel, as soon as it is there. After that and after an error it is over.
    ///
    /// # Errors
    /// If the peer refuses or does not answer for as long as [`EndpointConfig::give_up`].
    pub fn try_finish(&mut self) -> Result<Option<SendChannel>, CommError> {
        unimplemented!()
    }
}

impl SendChannel {
    /// Sends `len` bytes from `start` on. `None`: too much is under way; ask again.
    ///
    /// # Safety
    /// The memory stays readable and unchanged until the request is done or has failed and the channel is closed.
    ///
    /// # Errors
    /// If the channel has failed.
    pub unsafe fn isend(
        &self,
        start: *const u8,
        len: usize,
        tag: i32,
        region: Option<&Region>,
    ) -> Result<Option<Request>, CommError> {
        let _ = (start, len, tag, region);
        unimplemented!()
    }
}

impl RecvChannel {
    /// Receives into 1 to [`MOST_BUFFERS`] buffers. `None`: too much is under way; ask again.
    ///
    /// # Safety
    /// The memory stays writable, and nobody else's, until the request is done or has failed and the channel is closed.
    ///
    /// # Errors
    /// If the channel has failed, or a buffer is too small for what was sent.
    pub unsafe fn irecv(&self, buffers: &[Buffer<'_>]) -> Result<Option<Request>, CommError> {
        let _ = buffers;
        unimplemented!()
    }
}

impl Request {
    /// The sizes, if it is done. From any thread, as often as one likes.
    ///
    /// # Errors
    /// If the channel has failed.
    pub fn test(&self) -> Result<Option<Sizes>, CommError> {
        unimplemented!()
    }
}
