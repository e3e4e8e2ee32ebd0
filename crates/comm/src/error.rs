//! What can go wrong.

/// Why a channel, listener or endpoint does not work. Each says what to do in one line.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CommError {
    /// What was asked for makes no sense: a handle of somebody else, too many buffers.
    #[error("{0}")]
    Invalid(String),
    /// The system refused: no port, no memory, no device.
    #[error("{0}")]
    System(String),
    /// The other side is gone, or did what it must not.
    #[error("{0}")]
    Remote(String),
}
