//! What an operation needs of the network.

/// Messages to and from ranks, in order from each to each. A stream is an order of its own; 0 is
/// that of collectives.
pub(crate) trait Links {
    /// A message under way.
    type Request;

    /// Sends. `None`: not now, ask again.
    ///
    /// # Safety
    /// The memory stays readable and unchanged until the request is done, or the links are closed.
    ///
    /// # Errors
    /// If the channel has failed, with what it says.
    #[expect(unsafe_code, reason = "the memory is the caller's")]
    unsafe fn send(
        &mut self,
        to: u32,
        stream: u64,
        start: *const u8,
        len: usize,
    ) -> Result<Option<Self::Request>, String>;

    /// Receives a message of `len` bytes. `None`: not now, ask again.
    ///
    /// # Safety
    /// The memory stays writable, and nobody else's, until the request is done, or the links are
    /// closed.
    ///
    /// # Errors
    /// If the channel has failed, with what it says.
    #[expect(unsafe_code, reason = "the memory is the caller's")]
    unsafe fn receive(
        &mut self,
        from: u32,
        stream: u64,
        start: *mut u8,
        len: usize,
    ) -> Result<Option<Self::Request>, String>;

    /// How many bytes went or came, if it is over.
    ///
    /// # Errors
    /// If the channel has failed, with what it says.
    fn test(&mut self, request: &Self::Request) -> Result<Option<usize>, String>;
}
