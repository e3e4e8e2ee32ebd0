//! RDMA verbs, loaded at run time: a thin safe layer over `libibverbs.so.1` and, where it is there, the
//! one function of `libmlx5.so.1` that moves a queue pair to another UDP source port.
//!
//! Nothing is linked: a program that uses this starts without RDMA libraries, and learns from
//! [`Verbs::load`] that they are not there. What is here is what a reliable connection over RoCEv2
//! takes: devices and their addresses, memory, completion queues, queue pairs whose flow label makes
//! the UDP source port ([`Route`]).
//!
//! | module | what it does |
//! |---|---|
//! | [`abi`] | the data shared with the library, size by size |
//! | `library` | loads it, finds its functions |
//! | `device` | opens a device, says its ports and addresses |
//! | `memory` | memory that a device may read and write |
//! | `completions` | what has ended |
//! | `queue_pair` | reliable connections: made, connected, posted to |
//!
//! Everything may be used from any thread; the library locks what it must. What is made of something
//! keeps it alive.

#[allow(missing_docs, reason = "the names and meanings of the library's own header")]
pub mod abi;
mod completions;
mod device;
mod error;
#[cfg(test)]
mod fake;
mod library;
mod memory;
mod queue_pair;

pub use completions::{Completion, CompletionQueue, Outcome, Work};
pub use device::{Address, Device, Port};
pub use error::VerbsError;
pub use library::Verbs;
pub use memory::{Pages, Region};
pub use queue_pair::{Capacity, MemoryRange, Peer, QueuePair, Route, Timing};
