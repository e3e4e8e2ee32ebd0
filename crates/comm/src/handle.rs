//! What the application carries from the listener to those who connect.

/// Bytes of a handle: as many as NCCL has.
pub const HANDLE: usize = 128;

/// Address, port, number and secret of a listener, as bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub [u8; HANDLE]);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It holds a secret.
        f.write_str("Handle")
    }
}
