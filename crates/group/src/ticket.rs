//! What an operation has come to.

use crate::error::GroupError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Told when an operation is over.
type Heed = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Outcome {
    is: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    ended: Option<Result<(), GroupError>>,
    source: Option<u32>,
    heeds: Vec<Heed>,
}

/// An operation that was submitted. Clones are of the same operation.
#[derive(Clone, Default)]
pub struct Ticket(Arc<Outcome>);

impl Ticket {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.is.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it has. Then its buffers are the caller's again.
    pub fn outcome(&self) -> Option<Result<(), GroupError>> {
        self.state().ended.clone()
    }

    /// Of a receive that is over: the rank that has sent.
    pub fn source(&self) -> Option<u32> {
        self.state().source
    }

    /// Waits for its end, at most for so long if that is given.
    pub fn wait(&self, limit: Option<Duration>) -> Option<Result<(), GroupError>> {
        let state = self.state();
        let pending = |state: &mut State| state.ended.is_none();
        match limit {
            None => self.0.came.wait_while(state, pending).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.0.came.wait_timeout_while(state, limit, pending);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
        .ended
        .clone()
    }

    /// Has `heed` called when it is over, by the thread that ends it; at once if it is. It must not
    /// take long: operations stand still meanwhile.
    pub fn then(&self, heed: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.ended.is_none() {
            return state.heeds.push(Box::new(heed));
        }
        drop(state);
        heed();
    }

    pub(crate) fn end(&self, with: Result<(), GroupError>) {
        let mut state = self.state();
        state.ended.get_or_insert(with);
        let heeds = std::mem::take(&mut state.heeds);
        drop(state);
        self.0.came.notify_all();
        for heed in heeds {
            heed();
        }
    }

    /// Ends well a message to or from a peer.
    pub(crate) fn end_with(&self, peer: u32) {
        self.state().source = Some(peer);
        self.end(Ok(()));
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_tuple("Ticket").field(&self.outcome()).finish()
    }
}
