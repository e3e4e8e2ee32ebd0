//! Collectives on real buffers, over channels of processes.
//!
//! | module | what it does |
//! |---|---|
//! | [`call`] | which operations there are, and what makes sense |
//! | `schedule` | an algorithm of `weft_workload` as sends, receives and what waits for what |
//! | `run` | a schedule under way: posts what can be posted, reduces what came |
//! | `links` | what these need of a network |
//! | `memory`, `combine` | buffers, and arithmetic on them |
//! | `mesh` | links over the channels of `weft_comm`, made when first used |
//! | `exchange`, `tagged`, `anyone` | single messages, beside the rest; those with tags; from whoever sends |
//! | `worker` | the thread: operations one after the other |
//!
//! All but the last two lines' clock and thread is sans-IO, and tested over a network in memory.
//!
//! Invariants: no byte of a buffer is touched after its [`Ticket`] is done. All ranks of an
//! all-reduce end with the same bits. An operation that fails ends the group, since nobody knows
//! what the others have got; so does one that takes longer than it may.

mod anyone;
pub mod call;
mod combine;
mod element;
mod error;
mod exchange;
mod item;
mod links;
mod memory;
mod mesh;
mod operation;
mod run;
mod schedule;
mod tagged;
#[cfg(test)]
mod tests;
mod ticket;
mod worker;

pub use call::{Call, Operation};
pub use element::{Element, Reduction};
pub use error::GroupError;
pub use memory::{Apart, Copies, Segment};
pub use schedule::Tuning;
pub use ticket::Ticket;

use mesh::Mesh;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weft_comm::{CommError, Endpoint, Handle, Listener, Process};
use worker::Shared;

/// A rank that listens, and does not know the others yet.
#[derive(Debug)]
pub struct Seat {
    endpoint: Arc<Endpoint>,
    listener: Listener,
    /// What the others need to connect. It holds a secret.
    pub handle: Handle,
}

/// One rank of a group. Dropping it closes its channels and ends what is under way.
#[derive(Debug)]
pub struct Group {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Where that thread is.
    process: Process,
    rank: u32,
    ranks: u32,
}

impl Seat {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the endpoint has failed.
    pub fn take(endpoint: Arc<Endpoint>) -> Result<Seat, CommError> {
        let (listener, handle) = endpoint.listen()?;
        Ok(Seat { endpoint, listener, handle })
    }

    /// Makes the group of the ranks that have these handles, by number; `rank` is this one.
    /// No operation may take longer than `limit`, unless it is submitted with a limit of its own.
    ///
    /// # Errors
    /// If there is no such rank, or no thread.
    pub fn join(
        self,
        handles: Vec<Handle>,
        rank: u32,
        tuning: Tuning,
        limit: Duration,
    ) -> Result<Group, GroupError> {
        let ranks = handles.len() as u32;
        if rank >= ranks {
            let text = format!("rank {rank} of {ranks}: use 0 to {}", ranks.saturating_sub(1));
            return Err(GroupError::Invalid(text));
        }
        let shared = Arc::new(Shared::new(limit));
        let mesh = Mesh::new(self.endpoint, self.listener, handles, rank);
        let own = shared.clone();
        let name = format!("weft-group-{rank}");
        let run = move || worker::work(&own, mesh, (rank, ranks), tuning);
        let thread = std::thread::Builder::new().name(name).spawn(run);
        let thread = thread.map_err(|error| GroupError::Invalid(format!("no thread: {error}")))?;
        Ok(Group { shared, thread: Some(thread), process: Process::current(), rank, ranks })
    }
}

impl Group {
    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }
    /// How many there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Begins an operation. Collectives are done one after the other in the order of submission,
    /// which must be the same at all ranks; sends and receives at once. It may take `limit`, if that is
    /// given, from when it is its turn. `copies` are done as it begins, and before the ticket is done.
    ///
    /// # Safety
    /// Until the ticket is done the buffers stay mapped, aligned for their elements; nobody writes
    /// to inputs, and nobody reads or writes outputs. Buffers of one call do not overlap, but that
    /// an output may be the very input that its own rank gives. The same holds for what `copies` names.
    ///
    /// # Errors
    /// If the call makes no sense, or this is a child of the process that made the group.
    #[expect(unsafe_code, reason = "the memory is the caller's")]
    pub unsafe fn submit(
        &self,
        call: Call,
        copies: Copies,
        limit: Option<Duration>,
    ) -> Result<Ticket, GroupError> {
        if !self.process.is_current() {
            return Err(GroupError::forked());
        }
        call.check(self.rank, self.ranks)?;
        Ok(self.shared.submit(call, copies, limit))
    }

    /// How long operations that are submitted from now on may take.
    pub fn set_limit(&self, limit: Duration) {
        if self.process.is_current() {
            self.shared.set_limit(limit);
        }
    }

    /// Closes all channels; what is under way fails.
    pub fn close(&mut self) {
        if !self.process.is_current() {
            // A child that was forked has no such thread to wait for, and its lock may be held for ever.
            std::mem::forget(self.thread.take());
            return;
        }
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // It has told everybody, however it ended.
            let _ = thread.join();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.close();
    }
}
