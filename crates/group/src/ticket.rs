//! What an operation has come to.

use crate::error::GroupError;
use crate::memory::Copies;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weft_comm::Process;

/// Told when an operation is over.
type Heed = Box<dyn FnOnce() + Send>;

struct Outcome {
    is: Mutex<State>,
    came: Condvar,
    /// Where the thread is that ends it.
    process: Process,
}

#[derive(Default)]
struct State {
    ended: Option<Result<(), GroupError>>,
    source: Option<u32>,
    heeds: Vec<Heed>,
    copies: Copies,
}

/// An operation that was submitted. Clones are of the same operation.
#[derive(Clone)]
pub struct Ticket(Arc<Outcome>);

impl Ticket {
    /// Of an operation that copies this besides, under the contract of `Group::submit`.
    pub(crate) fn new(copies: Copies) -> Ticket {
        let is = Mutex::new(State { copies, ..State::default() });
        Ticket(Arc::new(Outcome { is, came: Condvar::new(), process: Process::current() }))
    }

    /// How it ended in a child that was forked: nobody ends it there, and its lock may be held for ever.
    fn in_child(&self) -> Option<Result<(), GroupError>> {
        if self.0.process.is_current() {
            return None;
        }
        let ended = self.0.is.try_lock().ok().and_then(|state| state.ended.clone());
        Some(ended.unwrap_or_else(|| Err(GroupError::forked())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.is.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it has. Then its buffers are the caller's again.
    pub fn outcome(&self) -> Option<Result<(), GroupError>> {
        self.in_child().or_else(|| self.state().ended.clone())
    }

    /// Of a receive that is over: the rank that has sent.
    pub fn source(&self) -> Option<u32> {
        self.in_child().is_none().then(|| self.state().source)?
    }

    /// Waits for its end, at most for so long if that is given.
    pub fn wait(&self, limit: Option<Duration>) -> Option<Result<(), GroupError>> {
        if let Some(ended) = self.in_child() {
            return Some(ended);
        }
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
        if self.in_child().is_none() {
            let mut state = self.state();
            if state.ended.is_none() {
                return state.heeds.push(Box::new(heed));
            }
        }
        heed();
    }

    /// It begins now.
    pub(crate) fn begin(&self) {
        let before = std::mem::take(&mut self.state().copies.before);
        for apart in before {
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: `Group::submit`'s contract, until the ticket is done.
            unsafe {
                apart.gather();
            }
        }
    }

    pub(crate) fn end(&self, with: Result<(), GroupError>) {
        let after = std::mem::take(&mut self.state().copies.after);
        // Before anybody hears of it.
        for apart in after.into_iter().filter(|_| with.is_ok()) {
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: as above.
            unsafe {
                apart.scatter();
            }
        }
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
