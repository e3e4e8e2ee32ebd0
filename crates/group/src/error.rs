//! What can go wrong.

use crate::operation::Operation;
use std::time::Duration;
use weft_comm::CommError;

/// Why an operation did not come to its end, in one line.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GroupError {
    /// The call makes no sense.
    #[error("weft: {0}")]
    Invalid(String),
    /// The channel to or from a peer has failed. The group is over.
    #[error("weft: {operation}: rank {peer}: {why}")]
    Peer {
        /// What was under way.
        operation: &'static str,
        /// With whom.
        peer: u32,
        /// What its channel says.
        why: String,
    },
    /// It took longer than it may. The group is over.
    #[error(
        "weft: {operation}: timed out: nothing from {peers} within the timeout of {limit:?}; is it still running, and at the same operation?"
    )]
    TimeOut {
        /// What was under way.
        operation: &'static str,
        /// Who has not done its part, as "rank 2 and rank 3".
        peers: String,
        /// What it was allowed.
        limit: Duration,
    },
    /// The group was closed, or an operation before this one has failed.
    #[error("weft: {operation}: {why}")]
    Over {
        /// What was asked for.
        operation: &'static str,
        /// Why the group is over.
        why: String,
    },
}

impl GroupError {
    /// In a child of the process that made the group.
    pub(crate) fn forked() -> GroupError {
        GroupError::Invalid(CommError::forked().to_string())
    }

    /// The same, said of an operation that was under way with it.
    pub(crate) fn at(&self, operation: Operation) -> GroupError {
        match self {
            GroupError::Over { why, .. } => {
                GroupError::Over { operation: operation.name(), why: why.clone() }
            }
            other => other.clone(),
        }
    }

    /// The same, told to an operation that comes after it.
    pub(crate) fn told(&self, to: Operation) -> GroupError {
        let operation = to.name();
        let why = match self {
            GroupError::Over { why, .. } => why.clone(),
            first => {
                let text = first.to_string();
                format!("the group is over since {}", text.trim_start_matches("weft: "))
            }
        };
        GroupError::Over { operation, why }
    }
}
