//! What a collective needs of a network: the calls of `ncclNet`, in which plugins and plain sockets
//! are alike.

use crate::BenchError;
use weft_nccl_abi::HANDLE_BYTES;

/// Address of a listener as bytes.
pub type Handle = [u8; HANDLE_BYTES];

/// Memory that a benchmark sends from and receives into. It lives as long as what it was registered
/// with.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The address of its first byte.
    pub start: *mut u8,
    /// Its length, in bytes.
    pub len: usize,
}

/// One NIC of one rank. Nothing blocks; `None`: ask again.
///
/// `isend` and `irecv` are unsafe: the memory is the network's until the request is done or the
/// channel is closed; until then nobody writes what is sent, or touches what is received.
#[expect(unsafe_code, reason = "memory is handed over by pointer, as NCCL does")]
pub trait NetworkPlugin {
    /// Where one peer connects to.
    type Listener;
    /// A sending half that is not there yet.
    type Connecting;
    /// The sending half of a channel.
    type Sender;
    /// The receiving half.
    type Receiver;
    /// A send or receive under way.
    type Request;

    /// What is measured, in a few words.
    fn describe(&self) -> String;

    /// Begins to listen.
    ///
    /// # Errors
    /// If the network refuses, as all below.
    fn listen(&self) -> Result<(Self::Listener, Handle), BenchError>;
    /// Begins to connect.
    ///
    /// # Errors
    /// As above.
    fn connect(&self, handle: &Handle) -> Result<Self::Connecting, BenchError>;
    /// The sending half, once it is there. `spans`: all the memory that it will send from.
    ///
    /// # Errors
    /// As above.
    fn connected(
        &self,
        connecting: &mut Self::Connecting,
        spans: &[Span],
    ) -> Result<Option<Self::Sender>, BenchError>;
    /// The receiving half, once it is there; closes the listener then.
    ///
    /// # Errors
    /// As above.
    fn accept(
        &self,
        listener: &mut Self::Listener,
        spans: &[Span],
    ) -> Result<Option<Self::Receiver>, BenchError>;
    /// Sends a part of the span of that number.
    ///
    /// # Safety
    /// As said at the trait.
    ///
    /// # Errors
    /// As above.
    unsafe fn isend(
        &self,
        sender: &mut Self::Sender,
        span: usize,
        part: Span,
        tag: i32,
    ) -> Result<Option<Self::Request>, BenchError>;
    /// Receives into a part of the span of that number.
    ///
    /// # Safety
    /// As said at the trait.
    ///
    /// # Errors
    /// As above.
    unsafe fn irecv(
        &self,
        receiver: &mut Self::Receiver,
        span: usize,
        part: Span,
        tag: i32,
    ) -> Result<Option<Self::Request>, BenchError>;
    /// Bytes of a send, if it is done; then it is over.
    ///
    /// # Errors
    /// As above.
    fn sent(
        &self,
        sender: &mut Self::Sender,
        request: &Self::Request,
    ) -> Result<Option<usize>, BenchError>;
    /// Bytes of a receive, if it is done; then it is over.
    ///
    /// # Errors
    /// As above.
    fn received(
        &self,
        receiver: &mut Self::Receiver,
        request: &Self::Request,
    ) -> Result<Option<usize>, BenchError>;
    /// Closes both halves that a rank has.
    ///
    /// # Errors
    /// As above.
    fn close(&self, sender: Self::Sender, receiver: Self::Receiver) -> Result<(), BenchError>;
    /// Says how many peers are sent to at a time, and how many messages to each.
    ///
    /// # Errors
    /// As above.
    fn expect(&self, peers: i32, flows: i32) -> Result<(), BenchError>;
}
