//! What it means that a message is complete.

use weft_sim::MessageResult;
use weft_units::Time;

/// When a message counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Its receiver has the last byte.
    Received,
    /// Its sender has the last acknowledgement.
    Acknowledged,
}

impl Completion {
    pub(crate) fn of(self, message: &MessageResult) -> Time {
        match self {
            Completion::Received => message.received,
            Completion::Acknowledged => message.sent,
        }
    }
}
