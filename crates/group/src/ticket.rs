//! What an operation has come to.

use crate::error::GroupError;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct Outcome {
    is: Mutex<Option<Result<(), GroupError>>>,
    came: Condvar,
}

/// An operation that was submitted. Clones are of the same operation.
#[derive(Clone, Debug, Default)]
pub struct Ticket(Arc<Outcome>);

impl Ticket {
    /// How it ended, if it has. Then its buffers are the caller's again.
    pub fn outcome(&self) -> Option<Result<(), GroupError>> {
        self.0.is.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for its end, at most for so long if that is given.
    pub fn wait(&self, limit: Option<Duration>) -> Option<Result<(), GroupError>> {
        let outcome = self.0.is.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = |is: &mut Option<_>| is.is_none();
        match limit {
            None => {
                self.0.came.wait_while(outcome, pending).unwrap_or_else(PoisonError::into_inner)
            }
            Some(limit) => {
                let waited = self.0.came.wait_timeout_while(outcome, limit, pending);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
        .clone()
    }

    pub(crate) fn end(&self, with: Result<(), GroupError>) {
        let mut outcome = self.0.is.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.get_or_insert(with);
        self.0.came.notify_all();
    }
}
